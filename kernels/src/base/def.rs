//! What a TensorFlow kernel says of itself, for an adapter that knows TensorFlow.
//!
//! A [`KernelDef`] names an op of TensorFlow by its `OpDef`, the types it serves, which arguments
//! live in host memory, and three functions: the output shapes, the scratch size, the compute.
//! The adapter registers one TensorFlow kernel per combination of [`Variants`], reads the attributes
//! once when a node is constructed, and calls `outputs`, `scratch` and `run` in this order for every
//! step.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;

use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::simd::numbers;

/// One kernel of the crate as TensorFlow sees it. [`KernelDef::of`] has what most kernels need.
pub struct KernelDef {
    /// Name of the `OpDef`.
    pub op: &'static str,
    /// The combinations of types that are served; one registration each.
    pub variants: &'static [Variants],
    /// The attributes that the functions below read.
    pub attrs: &'static [(&'static str, AttrKind)],
    /// Pairs (input, output): the output may take over the input's buffer if nobody else needs
    /// it. The kernel then finds [`TensorRef::is_forwarded`] true and works in place.
    pub forward: &'static [(usize, usize)],
    /// Calls the sink once per output, in order, with its type and shape. Reads values only of
    /// inputs in host memory.
    pub outputs: fn(&Inputs<'_>, &mut OutputSink<'_>) -> Result<()>,
    /// Bytes of scratch memory that `run` needs, given at a 64-byte boundary.
    pub scratch: fn(&Inputs<'_>) -> Result<usize>,
    /// Computes all outputs; every element of each is written.
    pub run: fn(&mut Call<'_>) -> Result<()>,
}

impl KernelDef {
    /// A kernel of `op` that reads no attribute, works in place nowhere and needs no scratch memory.
    /// Its `variants`, `outputs` and `run` are not given yet: the last two fail.
    #[must_use]
    pub const fn of(op: &'static str) -> Self {
        Self {
            op,
            variants: &[],
            attrs: &[],
            forward: &[],
            outputs: no_outputs,
            scratch: no_scratch,
            run: no_run,
        }
    }
}

/// The error of a kernel without `outputs` or `run`.
const NOT_GIVEN: Error = Error::Value {
    argument: "kernel",
    expected: "a definition with `outputs` and `run`",
};

fn no_outputs(_: &Inputs<'_>, _: &mut OutputSink<'_>) -> Result<()> {
    Err(NOT_GIVEN)
}

fn no_run(_: &mut Call<'_>) -> Result<()> {
    Err(NOT_GIVEN)
}

/// Receives the type and shape of each output, in order.
pub type OutputSink<'a> = dyn FnMut(DType, Shape) -> Result<()> + 'a;

/// Combinations of types that a kernel serves: one type of each list.
pub struct Variants {
    /// Type attributes of the `OpDef`, each with the types that it may have.
    pub types: &'static [(&'static str, &'static [DType])],
    /// Names of the arguments (inputs or outputs) that are in host memory.
    pub host: &'static [&'static str],
}

impl Variants {
    /// How many combinations there are; 1 without a type attribute.
    #[must_use]
    pub fn count(&self) -> usize {
        self.types.iter().map(|(_, list)| list.len()).product()
    }

    /// The type of each attribute in combination `number`; those from [`Variants::count`] on repeat.
    pub fn combination(&self, number: usize) -> impl Iterator<Item = (&'static str, DType)> {
        let mut rest = number;
        self.types.iter().filter_map(move |&(attr, list)| {
            let dtype = list.get(rest.checked_rem(list.len())?)?;
            rest /= list.len();
            Some((attr, *dtype))
        })
    }
}

/// The kind of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `string`
    String,
    /// `type`
    Type,
    /// `list(int)`
    Ints,
}

/// The attributes of a node. Every getter fails with [`Error::Value`] if the attribute is missing
/// or of another kind.
pub trait Attrs: Sync {
    /// An `int`.
    ///
    /// # Errors
    /// See the trait.
    fn int(&self, name: &'static str) -> Result<i64>;
    /// A `float`.
    ///
    /// # Errors
    /// See the trait.
    fn float(&self, name: &'static str) -> Result<f32>;
    /// A `bool`.
    ///
    /// # Errors
    /// See the trait.
    fn boolean(&self, name: &'static str) -> Result<bool>;
    /// A `string`.
    ///
    /// # Errors
    /// See the trait; also if it is not UTF-8.
    fn string(&self, name: &'static str) -> Result<&str>;
    /// A `type`.
    ///
    /// # Errors
    /// See the trait.
    fn dtype(&self, name: &'static str) -> Result<DType>;
    /// A `list(int)`.
    ///
    /// # Errors
    /// See the trait.
    fn ints(&self, name: &'static str) -> Result<&[i64]>;
}

/// What a node keeps between steps. One per kernel object, shared by concurrent steps.
#[derive(Debug)]
pub struct State {
    /// Two random words, drawn once when the node was constructed: the seed of a node that has
    /// none of its own.
    pub entropy: [u64; 2],
    /// Starts at 0; kernels that continue a stream advance it atomically.
    #[cfg(target_has_atomic = "64")]
    pub counter: AtomicU64,
}

/// The inputs and attributes of one step.
pub struct Inputs<'a> {
    /// All input tensors, list inputs in place.
    pub tensors: &'a [TensorRef<'a>],
    /// The attributes named by the [`KernelDef`].
    pub attrs: &'a dyn Attrs,
}

/// All that the compute function of one step gets.
pub struct Call<'a> {
    /// Inputs and attributes.
    pub inputs: Inputs<'a>,
    /// Output tensors with the types and shapes that `outputs` gave.
    pub outputs: &'a mut [TensorMut<'a>],
    /// As many bytes as `scratch` asked for, at a 64-byte boundary.
    pub scratch: &'a mut [u8],
    /// Where large work may be spread.
    pub parallel: &'a dyn Parallel,
    /// What the node keeps between steps.
    pub state: &'a State,
}

/// Element type and shape of a tensor whose bytes can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    dtype: DType,
    shape: Shape,
    bytes: usize,
}

impl Spec {
    /// Of a tensor of this type and shape.
    ///
    /// # Errors
    /// [`Error::Overflow`] if the number of bytes has no `usize`.
    pub fn new(dtype: DType, shape: Shape) -> Result<Self> {
        let bytes = shape
            .elements()
            .checked_mul(dtype.size())
            .ok_or(Error::Overflow { argument: "tensor" })?;
        Ok(Self {
            dtype,
            shape,
            bytes,
        })
    }

    /// Of a scalar.
    #[must_use]
    pub const fn scalar(dtype: DType) -> Self {
        Self {
            dtype,
            shape: Shape::SCALAR,
            bytes: dtype.size(),
        }
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes of all elements.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    fn check(&self, found: usize) -> Result<()> {
        if found == self.bytes {
            Ok(())
        } else {
            Err(Error::Length {
                argument: "tensor bytes",
                found,
                expected: self.bytes,
            })
        }
    }
}

/// A dense row-major tensor that a kernel reads.
#[derive(Clone, Copy)]
pub struct TensorRef<'a> {
    spec: &'a Spec,
    data: &'a [u8],
    forwarded: bool,
}

/// A dense row-major tensor that a kernel writes.
pub struct TensorMut<'a> {
    spec: &'a Spec,
    data: &'a mut [u8],
}

macro_rules! typed {
    ($($name:ident, $name_mut:ident, $type:ty, $dtype:path, $text:literal;)*) => {
        impl<'a> TensorRef<'a> {
            $(
                #[doc = concat!("The elements of a ", $text, " tensor; `argument` names it in the error.")]
                ///
                /// # Errors
                /// [`Error::DType`] if the tensor is of another type.
                pub fn $name(&self, argument: &'static str) -> Result<&'a [$type]> {
                    if self.spec.dtype != $dtype {
                        return Err(Error::DType { argument, found: self.spec.dtype, expected: $text });
                    }
                    numbers::all(self.data).ok_or(Error::Value { argument, expected: "aligned data" })
                }
            )*
        }

        impl TensorMut<'_> {
            $(
                #[doc = concat!("The elements of a ", $text, " tensor; `argument` names it in the error.")]
                ///
                /// # Errors
                /// [`Error::DType`] if the tensor is of another type.
                pub fn $name_mut(&mut self, argument: &'static str) -> Result<&mut [$type]> {
                    if self.spec.dtype != $dtype {
                        return Err(Error::DType { argument, found: self.spec.dtype, expected: $text });
                    }
                    numbers::all_mut(self.data).ok_or(Error::Value { argument, expected: "aligned data" })
                }
            )*
        }
    };
}

typed! {
    f32, f32_mut, f32, DType::F32, "float32";
    f64, f64_mut, f64, DType::F64, "float64";
    i32, i32_mut, i32, DType::I32, "int32";
    i64, i64_mut, i64, DType::I64, "int64";
    u32, u32_mut, u32, DType::U32, "uint32";
    u64, u64_mut, u64, DType::U64, "uint64";
}

fn half_of(found: DType, argument: &'static str) -> Result<Half> {
    Half::of(found).ok_or(Error::DType {
        argument,
        found,
        expected: "float16 or bfloat16",
    })
}

impl<'a> TensorRef<'a> {
    /// A tensor over `data`.
    ///
    /// # Errors
    /// [`Error::Length`] if `data` is not exactly as long as type and shape say.
    #[inline]
    pub fn new(spec: &'a Spec, data: &'a [u8]) -> Result<Self> {
        spec.check(data.len())?;
        Ok(Self {
            spec,
            data,
            forwarded: false,
        })
    }

    /// Stands for an input whose buffer, with its values, has become the output's.
    #[must_use]
    #[inline]
    pub const fn forwarded(spec: &'a Spec) -> Self {
        Self {
            spec,
            data: &[],
            forwarded: true,
        }
    }

    /// Whether the values are in the output's buffer instead.
    #[must_use]
    pub fn is_forwarded(&self) -> bool {
        self.forwarded
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.spec.dtype
    }

    /// Shape.
    #[must_use]
    pub fn shape(&self) -> &'a Shape {
        &self.spec.shape
    }

    /// The elements of a tensor of 16-bit floats, as their bits.
    ///
    /// # Errors
    /// [`Error::DType`] if the tensor is of another type.
    pub fn halves(&self, argument: &'static str) -> Result<(Half, &'a [u16])> {
        let half = half_of(self.spec.dtype, argument)?;
        let bits = numbers::all(self.data);
        bits.map(|bits| (half, bits)).ok_or(Error::Value {
            argument,
            expected: "aligned data",
        })
    }

    /// The bytes of all elements. A `bool` is a byte, 0 for false.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }
}

/// The type and shape of [`TensorMut::nothing`].
static NOTHING: Spec = Spec {
    dtype: DType::U8,
    shape: Shape::SCALAR,
    bytes: 0,
};

impl<'a> TensorMut<'a> {
    /// Stands in a place for a tensor that is not there.
    pub(crate) fn nothing() -> Self {
        Self {
            spec: &NOTHING,
            data: &mut [],
        }
    }

    /// A tensor over `data`.
    ///
    /// # Errors
    /// [`Error::Length`] if `data` is not exactly as long as type and shape say.
    #[inline]
    pub fn new(spec: &'a Spec, data: &'a mut [u8]) -> Result<Self> {
        spec.check(data.len())?;
        Ok(Self { spec, data })
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.spec.dtype
    }

    /// Shape.
    #[must_use]
    pub fn shape(&self) -> &'a Shape {
        &self.spec.shape
    }

    /// The elements of a tensor of 16-bit floats, as their bits.
    ///
    /// # Errors
    /// [`Error::DType`] if the tensor is of another type.
    pub fn halves_mut(&mut self, argument: &'static str) -> Result<(Half, &mut [u16])> {
        let half = half_of(self.spec.dtype, argument)?;
        let bits = numbers::all_mut(self.data);
        bits.map(|bits| (half, bits)).ok_or(Error::Value {
            argument,
            expected: "aligned data",
        })
    }

    /// The bytes of all elements. A `bool` is a byte and must be written as 0 or 1.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.data
    }
}

/// For kernels that need no scratch memory.
///
/// # Errors
/// Never.
pub fn no_scratch(_: &Inputs<'_>) -> Result<usize> {
    Ok(0)
}

#[cfg(test)]
mod tests;
