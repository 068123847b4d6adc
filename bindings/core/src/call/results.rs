//! A call that was checked, and what it returns.

use crate::base::error::{Error, Result};
use crate::base::op::{ArgKind, OpDesc};
use crate::base::small_vec::{IntoIter, SmallVec};
use crate::call::lengths::Lengths;
use crate::call::operand::{Operand, Value};
use crate::call::slot::Slots;

/// A call whose operands are values, whose attributes are known and which was checked.
pub struct Prepared<'c, V> {
    pub(super) desc: &'static OpDesc,
    pub(super) operands: &'c [Operand<'c, V>],
    pub(super) lengths: &'c [u32],
    pub(super) slots: &'c Slots,
    pub(super) outputs: Lengths,
}

impl<'c, V: Value> Prepared<'c, V> {
    /// Returns the values of each input, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (bool, &'c [Operand<'c, V>])> {
        let (operands, desc) = (self.operands, self.desc);
        let mut next = 0;
        desc.inputs
            .iter()
            .zip(self.lengths)
            .map(move |(input, &length)| {
                let first = next;
                next += length as usize;
                let is_list = !matches!(input.kind, ArgKind::One(_));
                (is_list, &operands[first..next])
            })
    }

    /// Returns all values, those of lists one by one.
    pub fn values(&self) -> impl Iterator<Item = &'c V> {
        self.operands.iter().filter_map(Operand::value)
    }

    /// Returns the attributes that the operands determine.
    #[must_use]
    pub fn inferred(&self) -> &Slots {
        self.slots
    }

    /// Returns how many values the op will have.
    #[must_use]
    #[inline]
    pub fn output_count(&self) -> usize {
        self.outputs.total()
    }

    /// Makes the results of the values that the op had.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when their number is not
    /// [`Self::output_count`].
    #[inline]
    pub fn results<O>(&self, values: SmallVec<V, 4>, operation: O) -> Result<Results<V, O>> {
        if values.len() != self.output_count() {
            return Err(self.wrong_count(values.len()));
        }
        Ok(Results {
            desc: self.desc,
            values: values.into_iter(),
            lengths: self.outputs.clone(),
            next: 0,
            operation,
        })
    }
}

impl<V> Prepared<'_, V> {
    #[cold]
    fn wrong_count(&self, found: usize) -> Error {
        Error::internal(format!(
            "{} has {found} outputs, expected {}",
            self.desc.name_str(),
            self.outputs.total()
        ))
    }
}

impl<V> Operand<'_, V> {
    /// Returns the value, which every operand of a prepared call has.
    #[must_use]
    #[inline]
    pub fn value(&self) -> Option<&V> {
        match self {
            Self::Value(value) => Some(value),
            Self::Owned(value) => Some(value),
            Self::Tensor(_) | Self::Literal(_) => None,
        }
    }
}

/// What a call returns: values, taken in the order of the op's outputs.
pub struct Results<V, O> {
    desc: &'static OpDesc,
    values: IntoIter<V, 4>,
    lengths: Lengths,
    next: usize,
    operation: O,
}

impl<V, O> Results<V, O> {
    #[inline]
    fn next_length(&mut self) -> Result<u32> {
        let length = self.lengths.get(self.next).copied();
        self.next += 1;
        length.ok_or_else(|| self.wrong("has no further output"))
    }

    #[cold]
    fn wrong(&self, problem: &str) -> Error {
        Error::internal(format!("{} {problem}", self.desc.name_str()))
    }

    /// Takes the next output, which is a single tensor.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when there is none or it is a list.
    #[inline]
    pub fn one(&mut self) -> Result<V> {
        let length = self.next_length()?;
        match self.values.next() {
            Some(value) if length == 1 => Ok(value),
            _ => Err(self.wrong("has a list where one output was expected")),
        }
    }

    /// Takes the next output, which is a list.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when there is none.
    pub fn list(&mut self) -> Result<Vec<V>> {
        let length = self.next_length()? as usize;
        Ok(self.values.by_ref().take(length).collect())
    }

    /// Takes all remaining values, those of lists one by one.
    #[must_use]
    pub fn all(self) -> Vec<V> {
        self.values.collect()
    }

    /// Returns the operation, when nothing else of the call matters.
    pub fn operation(self) -> O {
        self.operation
    }

    /// Returns the number of tensors of each output.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }
}
