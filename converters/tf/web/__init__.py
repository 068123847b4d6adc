"""A model for the browser: an npm package around its crate."""
