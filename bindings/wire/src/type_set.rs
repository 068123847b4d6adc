//! Sets of element types.

use std::fmt;

use crate::data_type::DataType;

/// A set of element types: what an attribute allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeSet(u64);

impl TypeSet {
    /// Every type.
    pub const ANY: Self = Self(u64::MAX);

    /// Returns the set of some types, whose numbers must be below 64.
    #[must_use]
    pub const fn of(types: &[DataType]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < types.len() {
            assert!(
                types[index].number() < 64,
                "only base types can be in a set"
            );
            bits |= 1 << types[index].number();
            index += 1;
        }
        Self(bits)
    }

    /// Whether the set holds a type, or the type that a reference refers to.
    #[must_use]
    #[inline]
    pub const fn contains(self, dtype: DataType) -> bool {
        let number = dtype.base().number();
        self.0 == u64::MAX || (number < 64 && self.0 >> number & 1 == 1)
    }

    /// Returns the types of the set, in order of their number; all known ones for [`Self::ANY`].
    pub fn iter(self) -> impl Iterator<Item = DataType> {
        DataType::ALL
            .iter()
            .copied()
            .filter(move |&dtype| self.contains(dtype))
    }
}

impl fmt::Display for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ANY {
            return f.write_str("any type");
        }
        for (index, dtype) in self.iter().enumerate() {
            write!(f, "{}{dtype}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}
