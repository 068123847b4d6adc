//! What Keras' files say of a rule.

use crate::formats::json::Json;

/// How Keras' files describe a rule: its class, its options, and the order of its slots.
#[derive(Clone, Debug)]
pub struct KerasRule {
    pub(crate) class: &'static str,
    pub(crate) config: Vec<(String, Json)>,
    /// The slots, by number: Keras lists those of a group variable by variable, one group after the
    /// other.
    pub(crate) groups: Vec<Vec<usize>>,
}

impl KerasRule {
    /// A rule of one of Keras' classes.
    pub(crate) fn new(class: &'static str, groups: &[&[usize]]) -> Self {
        Self {
            class,
            config: Vec::new(),
            groups: groups.iter().map(|group| group.to_vec()).collect(),
        }
    }

    pub(crate) fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.config.push((key.to_owned(), value.into()));
        self
    }
}
