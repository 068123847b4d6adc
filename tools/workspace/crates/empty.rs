//! Cargo wants a target in a package; this one only carries the dependencies.
