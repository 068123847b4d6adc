//! Which name in a file is which variable's.

use std::fmt;
use std::sync::Arc;

type Rename = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// From the names of variables to those of tensors in a file, and how the tensors lie there. One mapping
/// serves to load and to save.
///
/// Without a rule, names are equal. Rules are applied in the order in which they were added.
#[derive(Clone, Default)]
pub struct Mapping {
    rules: Vec<Rename>,
    permutations: Vec<(String, Vec<usize>)>,
    ignored: Vec<String>,
    pub(super) casts: bool,
    pub(super) is_strict: bool,
}

impl Mapping {
    /// Equal names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Computes the name of the tensor from that of the variable.
    #[must_use]
    pub fn rename(mut self, name: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.rules.push(Arc::new(name));
        self
    }

    /// Replaces each occurrence of a text in the names of variables, as `"/"` by `"."`; with a whole name
    /// it is that variable's rule.
    #[must_use]
    pub fn replace(self, variable: &str, tensor: &str) -> Self {
        let (variable, tensor) = (variable.to_owned(), tensor.to_owned());
        self.rename(move |name| name.replace(&variable, &tensor))
    }

    /// Puts a text before the names of variables, as `"sequential/"`.
    #[must_use]
    pub fn prefix(self, prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        self.rename(move |name| format!("{prefix}{name}"))
    }

    /// Says that tensors of variables whose names end with a text have their axes in another order in the
    /// file: axis `i` of the variable is axis `axes[i]` of the tensor. `[1, 0]` is for kernels of
    /// PyTorch's linear layers, `[2, 3, 1, 0]` for those of its convolutions over images.
    #[must_use]
    pub fn permute(mut self, variable_end: &str, axes: &[usize]) -> Self {
        self.permutations
            .push((variable_end.to_owned(), axes.to_vec()));
        self
    }

    /// Leaves tensors of the file whose names begin with a text out of the report, as those of an
    /// optimizer.
    #[must_use]
    pub fn ignore(mut self, tensor_prefix: &str) -> Self {
        self.ignored.push(tensor_prefix.to_owned());
        self
    }

    /// Converts numbers to the element type of the variable, as bfloat16 to float32. Without this,
    /// another type is a mismatch.
    #[must_use]
    pub fn cast(mut self) -> Self {
        self.casts = true;
        self
    }

    /// Makes anything that does not match an error, with which no variable is changed.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Returns the name in the file of a variable.
    #[must_use]
    pub fn tensor_name(&self, variable: &str) -> String {
        let start = variable.to_owned();
        self.rules.iter().fold(start, |name, rule| rule(&name))
    }

    pub(super) fn axes(&self, variable: &str) -> Option<&[usize]> {
        let mut all = self.permutations.iter();
        let found = all.find(|(end, _)| variable.ends_with(end.as_str()));
        found.map(|(_, axes)| axes.as_slice())
    }

    pub(super) fn is_ignored(&self, tensor: &str) -> bool {
        self.ignored
            .iter()
            .any(|prefix| tensor.starts_with(prefix.as_str()))
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping")
            .field("rules", &self.rules.len())
            .field("permutations", &self.permutations)
            .field("ignored", &self.ignored)
            .field("casts", &self.casts)
            .field("is_strict", &self.is_strict)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_apply_in_order() {
        let names = Mapping::new()
            .replace("dense/kernel", "fc/weight")
            .replace("/", ".")
            .prefix("model.");
        assert_eq!(names.tensor_name("dense/kernel"), "model.fc.weight");
        assert_eq!(names.tensor_name("a/b"), "model.a.b");
        assert_eq!(Mapping::new().tensor_name("a/b"), "a/b");
        let axes = Mapping::new().permute("kernel", &[1, 0]);
        assert_eq!(axes.axes("dense/kernel"), Some(&[1, 0][..]));
        assert_eq!(axes.axes("dense/bias"), None);
    }
}
