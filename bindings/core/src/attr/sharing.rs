//! What the operations of a graph or function may write to.

/// What a graph's operations may write to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Sharing {
    /// Memory of their own.
    #[default]
    Nothing,
    /// Memory that they returned.
    Results,
    /// Memory that they were given, or returned.
    Operands,
}

impl Sharing {
    pub(crate) const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Nothing,
            1 => Self::Results,
            _ => Self::Operands,
        }
    }
}
