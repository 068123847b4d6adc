//! One call of an op: its operands on the way in, its values on the way out.

use crate::attr::AttrValue;
use crate::check;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::infer::{self, Slots};
use crate::op::{ArgKind, OpDesc};
use crate::operand::{IntoOperand, IntoOperands, Operand, Operands, Value};
use crate::small_vec::{IntoIter, SmallVec};

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
    fn total(&self) -> usize {
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

/// A call of an op with its operands, in the order of the op's inputs.
pub struct Call<'a, V> {
    desc: &'static OpDesc,
    operands: Operands<'a, V>,
    lengths: Lengths,
}

impl<'a, V: Value> Call<'a, V> {
    /// Begins a call.
    #[must_use]
    #[inline]
    pub const fn new(desc: &'static OpDesc) -> Self {
        Self {
            desc,
            operands: Operands::new(),
            lengths: Lengths::new(),
        }
    }

    /// Appends the operand of a single input.
    #[inline]
    pub fn input(&mut self, operand: impl IntoOperand<'a, V>) -> &mut Self {
        self.operands.push(operand.into_operand());
        self.lengths.push(1);
        self
    }

    /// Appends the operands of a list input.
    #[inline]
    pub fn list(&mut self, operands: impl IntoOperands<'a, V>) -> &mut Self {
        let before = self.operands.len();
        operands.append_to(&mut self.operands);
        self.lengths.push((self.operands.len() - before) as u32);
        self
    }

    /// Returns the op's description.
    #[must_use]
    pub fn desc(&self) -> &'static OpDesc {
        self.desc
    }

    /// Returns all operands, those of lists one by one.
    #[must_use]
    pub fn operands(&self) -> &[Operand<'a, V>] {
        &self.operands
    }

    /// Returns the number of operands of each input.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Replaces the first operand.
    pub(crate) fn replace_first(&mut self, value: V) {
        if let Some(first) = self.operands.iter_mut().next() {
            *first = Operand::Owned(value);
        }
    }

    /// Infers the attributes that the operands determine, makes constants of tensors and literals,
    /// and checks everything that the op's description rules out.
    ///
    /// A context does this first; one that wraps another may do it and pass the call on.
    ///
    /// # Errors
    /// As for [`Context::execute`].
    pub fn prepare<C>(&mut self, context: &C, attrs: &[AttrValue<'_>]) -> Result<Prepared<'_, V>>
    where
        C: Context<Value = V> + ?Sized,
    {
        let slots = infer::infer(self.desc, &self.operands, &self.lengths)?;
        check::check_attrs(self.desc, &slots, attrs)?;
        if self
            .operands
            .iter()
            .any(|operand| operand.value().is_none())
        {
            infer::make_constants(
                self.desc,
                &mut self.operands,
                &self.lengths,
                &slots,
                context,
            )?;
        }
        let outputs = infer::output_lengths(self.desc, &slots, attrs)?;
        Ok(Prepared {
            desc: self.desc,
            operands: &self.operands,
            lengths: &self.lengths,
            slots,
            outputs,
        })
    }
}

/// A call whose operands are values, whose attributes are known and which was checked.
pub struct Prepared<'c, V> {
    desc: &'static OpDesc,
    operands: &'c [Operand<'c, V>],
    lengths: &'c [u32],
    slots: Slots,
    outputs: Lengths,
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
        &self.slots
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
