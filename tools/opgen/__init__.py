"""OpDefs of TensorFlow -> Rust op wrappers: parse, model, rules, api, emit."""
