//! Where tensors are during a call: a workspace in which the converter has planned every place.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;

use crate::bytes::{Pod, view, view_mut};
use crate::error::{Error, Result};
use crate::kernels::base::parallel::Parallel;
use crate::weights::Tensor;

/// The place of a tensor in the workspace. Both numbers are for one example; a call with more
/// multiplies them, so that places that are apart stay apart.
pub struct Slot<T> {
    at: usize,
    len: usize,
    fixed: bool,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} elements at byte {})", self.len, self.at)
    }
}

impl<T> Slot<T> {
    /// A tensor of `len` elements per example from byte `at` on, a multiple of 64.
    #[must_use]
    pub const fn new(at: usize, len: usize) -> Self {
        Self {
            at,
            len,
            fixed: false,
            element: PhantomData,
        }
    }

    /// A tensor of `len` elements, whatever the batch.
    #[must_use]
    pub const fn fixed(at: usize, len: usize) -> Self {
        Self {
            fixed: true,
            ..Self::new(at, len)
        }
    }

    /// Elements for a batch.
    #[must_use]
    pub const fn len(&self, batch: usize) -> usize {
        if self.fixed {
            self.len
        } else {
            self.len * batch
        }
    }

    #[inline(always)]
    fn bytes(&self, batch: usize) -> Range<usize> {
        let from = self.at * batch;
        from..from + self.len(batch) * size_of::<T>()
    }
}

/// Where an operand comes from.
pub enum Source<'a, T> {
    /// The workspace.
    Slot(Slot<T>),
    /// The weights.
    Weights(Tensor<T>),
    /// The caller.
    Slice(&'a [T]),
}

impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}

impl<T> From<Slot<T>> for Source<'_, T> {
    #[inline]
    fn from(slot: Slot<T>) -> Self {
        Self::Slot(slot)
    }
}

impl<T> From<Tensor<T>> for Source<'_, T> {
    #[inline]
    fn from(tensor: Tensor<T>) -> Self {
        Self::Weights(tensor)
    }
}

impl<'a, T> From<&'a [T]> for Source<'a, T> {
    #[inline]
    fn from(slice: &'a [T]) -> Self {
        Self::Slice(slice)
    }
}

/// All that a call of a model works with.
pub struct Memory<'a> {
    arena: &'a mut [u8],
    /// The weights that are not packed.
    pub weights: &'a [u8],
    /// Examples.
    pub batch: usize,
    /// Threads.
    pub parallel: &'a dyn Parallel,
}

impl<'a> Memory<'a> {
    /// Memory for `batch` examples of a model that plans `arena_bytes` for one.
    ///
    /// # Errors
    /// [`Error::Workspace`] if the workspace is too small.
    #[inline]
    pub fn new(
        arena: &'a mut [u8],
        arena_bytes: usize,
        weights: &'a [u8],
        batch: usize,
        parallel: &'a dyn Parallel,
    ) -> Result<Self> {
        let expected = arena_bytes.saturating_mul(batch.max(1));
        if arena.len() < expected {
            return Err(Error::Workspace {
                found: arena.len(),
                expected,
            });
        }
        Ok(Self {
            arena,
            weights,
            batch,
            parallel,
        })
    }

    /// The elements of a slot.
    ///
    /// # Errors
    /// [`Error::Plan`] if it lies outside the workspace.
    #[inline]
    pub fn get<T: Pod>(&self, slot: Slot<T>) -> Result<&[T]> {
        view(self.arena.get(slot.bytes(self.batch)).ok_or_else(outside)?)
    }

    /// The elements of a slot, to change in place.
    ///
    /// # Errors
    /// [`Error::Plan`] if it lies outside the workspace.
    pub fn get_mut<T: Pod>(&mut self, slot: Slot<T>) -> Result<&mut [T]> {
        view_mut(
            self.arena
                .get_mut(slot.bytes(self.batch))
                .ok_or_else(outside)?,
        )
    }

    /// The memory of `out`, and access to all that lies outside of it.
    ///
    /// # Errors
    /// [`Error::Plan`] if the slot lies outside the workspace.
    #[inline(always)]
    pub fn write<T: Pod>(&mut self, out: Slot<T>) -> Result<(Reader<'_>, &mut [T])> {
        let range = out.bytes(self.batch);
        let (reader, bytes) = self.split(range)?;
        Ok((reader, view_mut(bytes)?))
    }

    /// As [`Memory::write`], with a slot for intermediate results right after the output.
    ///
    /// # Errors
    /// [`Error::Plan`] if a slot lies outside the workspace or the second is not after the first.
    #[inline]
    pub fn write_with<T: Pod, U: Pod>(
        &mut self,
        out: Slot<T>,
        scratch: Slot<U>,
    ) -> Result<(Reader<'_>, &mut [T], &mut [U])> {
        let (first, second) = (out.bytes(self.batch), scratch.bytes(self.batch));
        if second.start < first.end {
            return Err(order());
        }
        let (from, len) = (first.start, first.len());
        let (reader, bytes) = self.split(from..second.end)?;
        let (out, rest) = bytes.split_at_mut(len);
        let scratch = rest
            .get_mut(second.start - first.end..)
            .ok_or_else(outside)?;
        Ok((reader, view_mut(out)?, view_mut(scratch)?))
    }

    /// As [`Memory::write`], for several slots that follow each other.
    ///
    /// # Errors
    /// [`Error::Plan`] if a slot lies outside the workspace or before the one before it.
    pub fn write_many<T: Pod, const N: usize>(
        &mut self,
        slots: [Slot<T>; N],
    ) -> Result<(Reader<'_>, [&mut [T]; N])> {
        let ranges = slots.map(|slot| slot.bytes(self.batch));
        let from = ranges.first().map_or(0, |r| r.start);
        let to = ranges.last().map_or(0, |r| r.end);
        let (reader, mut rest) = self.split(from..to)?;
        let mut at = from;
        let mut outs = [const { None }; N];
        for (out, range) in outs.iter_mut().zip(ranges) {
            let skip = range.start.checked_sub(at).ok_or_else(order)?;
            let (_, tail) = rest.split_at_mut_checked(skip).ok_or_else(outside)?;
            let (part, tail) = tail.split_at_mut_checked(range.len()).ok_or_else(outside)?;
            *out = Some(view_mut(part)?);
            at = range.end;
            rest = tail;
        }
        Ok((reader, outs.map(Option::unwrap_or_default)))
    }

    #[inline(always)]
    fn split(&mut self, range: Range<usize>) -> Result<(Reader<'_>, &mut [u8])> {
        let (before, rest) = self
            .arena
            .split_at_mut_checked(range.start)
            .ok_or_else(outside)?;
        let (bytes, after) = rest
            .split_at_mut_checked(range.end - range.start)
            .ok_or_else(outside)?;
        let reader = Reader {
            before,
            after,
            after_from: range.end,
            weights: self.weights,
            batch: self.batch,
            parallel: self.parallel,
        };
        Ok((reader, bytes))
    }
}

/// How many parts of `one` elements there are in `found`; none if a part has none.
///
/// The examples of a layer need not be those of the model: frames or windows may be merged into
/// the batch, and a model may be made for a batch of one size. Kernels refuse what is left over.
#[inline]
pub(crate) fn count(found: usize, one: usize) -> usize {
    found.checked_div(one).unwrap_or(0)
}

#[cold]
fn outside() -> Error {
    Error::Plan {
        expected: "slots inside the workspace",
    }
}

#[cold]
fn order() -> Error {
    Error::Plan {
        expected: "the slots of an operation in their order",
    }
}

#[cold]
fn overlap() -> Error {
    Error::Plan {
        expected: "operands outside of the results",
    }
}

/// The memory around the slots that an operation writes.
pub struct Reader<'a> {
    before: &'a [u8],
    after: &'a [u8],
    /// The byte of the workspace that `after` starts at.
    after_from: usize,
    /// The weights that are not packed.
    pub weights: &'a [u8],
    /// Examples.
    pub batch: usize,
    /// Threads.
    pub parallel: &'a dyn Parallel,
}

impl<'a> Reader<'a> {
    /// The elements of an operand.
    ///
    /// # Errors
    /// [`Error::Plan`] if it lies outside the workspace or where the operation writes.
    #[inline(always)]
    pub fn read<T: Pod>(&self, source: Source<'a, T>) -> Result<&'a [T]> {
        match source {
            Source::Slice(slice) => Ok(slice),
            Source::Weights(tensor) => tensor.of(self.weights),
            Source::Slot(slot) => {
                let range = slot.bytes(self.batch);
                let bytes = if range.end <= self.before.len() {
                    self.before.get(range)
                } else {
                    range.start.checked_sub(self.after_from).and_then(|start| {
                        let end = range.end - self.after_from;
                        self.after.get(start..end)
                    })
                };
                view(bytes.ok_or_else(overlap)?)
            }
        }
    }
}
