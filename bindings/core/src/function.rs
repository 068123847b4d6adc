//! Functions: graphs that ops call.

/// A graph with arguments and results, which ops call by its name.
#[derive(Debug)]
pub struct Function {
    name: String,
}

impl Function {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
