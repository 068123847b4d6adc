"""Pure functions that the generators share: names, Rust text, rendering, errors."""
