"""C headers of TensorFlow to raw Rust bindings."""
