//! What the `run` and `outputs` functions of the kernels share.

use crate::base::def::{Call, Inputs, TensorMut, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::{MAX_RANK, Shape};

/// A Rust type that elements of a tensor can be viewed as. `u8` stands for `bool`.
pub trait Element: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;

    /// Whether loops over such elements have a copy per [`Level`](crate::base::level::Level).
    const LEVELS: bool = matches!(Self::DTYPE, DType::F32);

    /// The elements of `tensor`; `argument` names it in the error.
    ///
    /// # Errors
    /// [`Error::DType`] if the tensor is of another type.
    fn view<'a>(tensor: &TensorRef<'a>, argument: &'static str) -> Result<&'a [Self]>;

    /// The elements of `tensor`; `argument` names it in the error.
    ///
    /// # Errors
    /// [`Error::DType`] if the tensor is of another type.
    fn view_mut<'b>(
        tensor: &'b mut TensorMut<'_>,
        argument: &'static str,
    ) -> Result<&'b mut [Self]>;
}

macro_rules! element {
    ($($type:ident $view_mut:ident $dtype:ident;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn view<'a>(tensor: &TensorRef<'a>, argument: &'static str) -> Result<&'a [Self]> {
                tensor.$type(argument)
            }

            fn view_mut<'b>(
                tensor: &'b mut TensorMut<'_>,
                argument: &'static str,
            ) -> Result<&'b mut [Self]> {
                tensor.$view_mut(argument)
            }
        }
    )*};
}

element! {
    f32 f32_mut F32;
    f64 f64_mut F64;
    i32 i32_mut I32;
    i64 i64_mut I64;
    u32 u32_mut U32;
    u64 u64_mut U64;
}

impl Element for u8 {
    const DTYPE: DType = DType::Bool;

    fn view<'a>(tensor: &TensorRef<'a>, argument: &'static str) -> Result<&'a [Self]> {
        check_bool(tensor.dtype(), argument)?;
        Ok(tensor.bytes())
    }

    fn view_mut<'b>(
        tensor: &'b mut TensorMut<'_>,
        argument: &'static str,
    ) -> Result<&'b mut [Self]> {
        check_bool(tensor.dtype(), argument)?;
        Ok(tensor.bytes_mut())
    }
}

fn check_bool(found: DType, argument: &'static str) -> Result<()> {
    if found == DType::Bool {
        Ok(())
    } else {
        Err(Error::DType {
            argument,
            found,
            expected: "bool",
        })
    }
}

/// The error for a type that a kernel has no variant for.
pub(crate) fn unserved(argument: &'static str, found: DType) -> Error {
    Error::DType {
        argument,
        found,
        expected: "one of the types that the kernel lists",
    }
}

/// Fails unless a slice has as many elements as a shape.
#[inline(never)]
pub(crate) fn check_len(argument: &'static str, found: usize, shape: &Shape) -> Result<()> {
    check_count(argument, found, shape.elements())
}

/// Fails unless a slice has `expected` elements.
#[inline]
pub(crate) fn check_count(argument: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Length {
            argument,
            found,
            expected,
        })
    }
}

/// Fails unless a tensor has the shape that other arguments imply.
#[inline(never)]
pub(crate) fn check_shape(argument: &'static str, found: &Shape, expected: &Shape) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Shape {
            argument,
            found: *found,
            expected: *expected,
        })
    }
}

/// Fails unless a tensor has this rank, which `expected` writes out.
#[inline(never)]
pub(crate) fn check_rank(
    shape: &Shape,
    argument: &'static str,
    rank: usize,
    expected: &'static str,
) -> Result<()> {
    if shape.rank() == rank {
        Ok(())
    } else {
        Err(Error::Rank {
            argument,
            found: shape.rank(),
            expected,
        })
    }
}

impl<'a> Inputs<'a> {
    /// Input number `index`; `argument` names it in the error.
    ///
    /// # Errors
    /// [`Error::Value`] if there are fewer inputs.
    pub fn get(&self, index: usize, argument: &'static str) -> Result<TensorRef<'a>> {
        self.tensors.get(index).copied().ok_or(Error::Value {
            argument,
            expected: "an input tensor",
        })
    }

    /// The shape of input number `index`.
    ///
    /// # Errors
    /// As [`Inputs::get`].
    pub fn shape(&self, index: usize, argument: &'static str) -> Result<Shape> {
        Ok(*self.get(index, argument)?.shape())
    }

    /// The integers of input number `index`, an int32 or int64 vector in host memory.
    ///
    /// # Errors
    /// [`Error::DType`] for other types, [`Error::Rank`] of another rank than 1, or above
    /// [`MAX_RANK`] elements: there is one per axis.
    pub fn ints(&self, index: usize, argument: &'static str) -> Result<Ints> {
        check_rank(self.get(index, argument)?.shape(), argument, 1, "1")?;
        self.ints_of_any_rank(index, argument)
    }

    /// As [`Inputs::ints`], of a tensor of any rank.
    ///
    /// # Errors
    /// As [`Inputs::ints`], but for the rank.
    pub fn ints_of_any_rank(&self, index: usize, argument: &'static str) -> Result<Ints> {
        let tensor = self.get(index, argument)?;
        let mut ints = Ints::default();
        let count = tensor.shape().elements();
        let slots = ints.values.get_mut(..count).ok_or(Error::Rank {
            argument,
            found: count,
            expected: "at most 8",
        })?;
        match tensor.dtype() {
            DType::I32 => {
                for (slot, &value) in slots.iter_mut().zip(tensor.i32(argument)?) {
                    *slot = i64::from(value);
                }
            }
            DType::I64 => slots.copy_from_slice(tensor.i64(argument)?),
            found => {
                return Err(Error::DType {
                    argument,
                    found,
                    expected: "int32 or int64",
                });
            }
        }
        ints.len = count;
        Ok(ints)
    }

    /// The value of input number `index`, an int32 or int64 scalar in host memory.
    ///
    /// # Errors
    /// [`Error::DType`] for other types, [`Error::Rank`] of another rank than 0.
    pub fn int(&self, index: usize, argument: &'static str) -> Result<i64> {
        check_rank(self.get(index, argument)?.shape(), argument, 0, "0")?;
        self.int_of_any_rank(index, argument)
    }

    /// As [`Inputs::int`], of a tensor of any rank with one element.
    ///
    /// # Errors
    /// [`Error::DType`] for other types, [`Error::Length`] unless it has one element.
    pub fn int_of_any_rank(&self, index: usize, argument: &'static str) -> Result<i64> {
        let ints = self.ints_of_any_rank(index, argument)?;
        match *ints {
            [value] => Ok(value),
            _ => Err(Error::Length {
                argument,
                found: ints.len(),
                expected: 1,
            }),
        }
    }

    /// The shape that input number `index` holds as its values.
    ///
    /// # Errors
    /// As [`Inputs::ints`], and [`Error::Value`] for a dimension below 0.
    pub fn shape_value(&self, index: usize, argument: &'static str) -> Result<Shape> {
        shape_of(argument, &self.ints(index, argument)?)
    }
}

/// The shape with these dimensions.
///
/// # Errors
/// [`Error::Value`] for a negative one; as [`Shape::new`].
pub(crate) fn shape_of(argument: &'static str, dims: &[i64]) -> Result<Shape> {
    let mut shape = Shape::SCALAR;
    for &dim in dims {
        shape.push(usize::try_from(dim).map_err(|_| Error::Value {
            argument,
            expected: "dimensions that are not negative",
        })?)?;
    }
    Ok(shape)
}

/// A few integers from a host tensor; derefs to a slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ints {
    values: [i64; MAX_RANK],
    len: usize,
}

impl core::ops::Deref for Ints {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.values.get(..self.len).unwrap_or_default()
    }
}

impl<'a> Call<'a> {
    /// Whether no output has elements. Its other dimensions may be so large that even a loop around
    /// nothing takes hours.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut outputs = self.outputs.iter();
        outputs.all(|output| output.shape().elements() == 0)
    }

    /// Output number `index`.
    ///
    /// # Errors
    /// [`Error::Value`] if there are fewer outputs.
    pub fn output(&mut self, index: usize) -> Result<&mut TensorMut<'a>> {
        self.outputs.get_mut(index).ok_or(Error::Value {
            argument: "output",
            expected: "an output tensor",
        })
    }
}

/// The elements of a tensor of any type as groups of `N` bytes.
pub(crate) fn units<const N: usize>(bytes: &[u8]) -> &[[u8; N]] {
    bytes.as_chunks().0
}

/// The elements of an output of any type as groups of `N` bytes.
pub(crate) fn units_mut<const N: usize>(bytes: &mut [u8]) -> &mut [[u8; N]] {
    bytes.as_chunks_mut().0
}

/// Calls a function that is generic over the bytes per element with those of `$dtype`.
macro_rules! by_width {
    ($dtype:expr, $function:ident($($argument:expr),*)) => {
        match $dtype.size() {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            4 => $function::<4>($($argument),*),
            _ => $function::<8>($($argument),*),
        }
    };
}
pub(crate) use by_width;

/// Evaluates an expression in which `$name` is the element type `$dtype`, one of those listed. More arms
/// of a `match` may follow.
///
/// # Errors
/// That of [`unserved`] for another type, with the name of the argument.
macro_rules! by_type {
    (
        $dtype:expr, $argument:literal, $name:ident of [$($type:ident)*] => $result:expr
        $(, $others:pat => $other:expr)* $(,)?
    ) => {
        match $dtype {
            $(<$type as $crate::base::adapt::Element>::DTYPE => {
                type $name = $type;
                $result
            })*
            $($others => $other,)*
            found => Err($crate::base::adapt::unserved($argument, found)),
        }
    };
}
pub(crate) use by_type;

/// The [`Variants`](crate::base::def::Variants) of a kernel: rows such as
/// `["T": F32 F64, "Tidx": I32 I64] host &["axis"];`.
macro_rules! variants {
    ($([$($attr:literal: $($dtype:ident)+),*] $(host $host:expr)?;)*) => {
        &[$(
            $crate::base::def::Variants {
                types: &[$(($attr, &[$($crate::base::dtype::DType::$dtype),+])),*],
                host: $crate::base::adapt::variants!(@host $($host)?),
            },
        )*]
    };
    (@host) => { &[] };
    (@host $host:expr) => { $host };
}
pub(crate) use variants;
