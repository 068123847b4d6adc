//! How many tensors each argument of a call has.

use crate::base::small_vec::SmallVec;

/// The number of tensors of each argument.
#[derive(Clone)]
pub(crate) enum Lengths {
    /// One of each, as almost always. At most as many as [`ONES`].
    Ones(usize),
    /// Any.
    Any(SmallVec<u32, 6>),
}

static ONES: [u32; 64] = [1; 64];

impl Lengths {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self::Ones(0)
    }

    #[inline]
    pub(crate) fn push(&mut self, length: u32) {
        match self {
            Self::Ones(count) if length == 1 && *count < ONES.len() => *count += 1,
            _ => self.push_any(length),
        }
    }

    #[inline(never)]
    fn push_any(&mut self, length: u32) {
        if let Self::Ones(count) = self {
            *self = Self::Any(ONES[..*count].iter().copied().collect());
        }
        if let Self::Any(list) = self {
            list.push(length);
        }
    }

    /// Returns the number of tensors of all arguments.
    #[inline]
    pub(crate) fn total(&self) -> usize {
        match self {
            Self::Ones(count) => *count,
            Self::Any(list) => list.iter().map(|&length| length as usize).sum(),
        }
    }
}

impl std::ops::Deref for Lengths {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        match self {
            Self::Ones(count) => &ONES[..*count],
            Self::Any(list) => list,
        }
    }
}
