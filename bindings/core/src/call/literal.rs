//! Literals as tensors: which element types hold their values, and the conversion.

use crate::base::error::{Error, Result};
use crate::call::operand::{Literal, Repr};
use crate::tensor::Tensor;
use crate::tensor::element::{BFloat16, Half};
use tfp_wire::DataType;

/// A number of any element type, without loss.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i128),
    Float(f64),
    Complex(f64, f64),
}

/// The plain data of a literal.
struct Plain<'a> {
    dtype: DataType,
    bytes: &'a [u8],
    dims: &'a [i64],
}

impl Literal<'_> {
    /// Returns the element type of the Rust data.
    pub(crate) fn dtype(&self) -> Result<DataType> {
        match &self.0 {
            Repr::Inline { dtype, .. } | Repr::Slice { dtype, .. } | Repr::View { dtype, .. } => {
                Ok(*dtype)
            }
            Repr::Made(tensor) => made(tensor).map(Tensor::dtype),
        }
    }

    /// Whether a type can hold the values: integers exactly, floats rounded, truth values and
    /// strings only as such.
    pub(crate) fn fits(&self, dtype: DataType) -> Result<bool> {
        let from = self.dtype()?;
        if from == dtype {
            return Ok(true);
        }
        if !is_number(from) || !is_number(dtype) {
            return Ok(false);
        }
        // Floats never become integers, complex numbers never real ones.
        if from.is_complex() && !dtype.is_complex() || from.is_float() && dtype.is_integer() {
            return Ok(false);
        }
        if !dtype.is_integer() {
            return Ok(true);
        }
        let (low, high) = integer_range(dtype);
        self.with_plain(|plain| {
            numbers(plain.dtype, plain.bytes).all(
                |number| matches!(number, Number::Integer(value) if (low..=high).contains(&value)),
            )
        })
    }

    /// Returns the tensor that the literal was made as, when it has this type.
    pub(crate) fn as_tensor(&self, dtype: DataType) -> Option<&Tensor> {
        match &self.0 {
            Repr::Made(tensor) => tensor.as_ref().as_ref().ok().filter(|t| t.dtype() == dtype),
            _ => None,
        }
    }

    /// Returns the data as a new tensor of a type that [`Self::fits`].
    pub(crate) fn to_tensor(&self, dtype: DataType) -> Result<Tensor> {
        self.with_plain(|plain| {
            if plain.dtype == dtype {
                return Tensor::from_bytes(dtype, plain.bytes, plain.dims);
            }
            let mut bytes = Vec::with_capacity(plain.bytes.len());
            for number in numbers(plain.dtype, plain.bytes) {
                write(number, dtype, &mut bytes)?;
            }
            Tensor::from_bytes(dtype, &bytes, plain.dims)
        })?
    }

    fn with_plain<R>(&self, f: impl FnOnce(Plain<'_>) -> R) -> Result<R> {
        Ok(match &self.0 {
            Repr::Inline {
                dtype,
                bytes,
                len,
                dims,
            } => f(Plain {
                dtype: *dtype,
                bytes: &bytes[..usize::from(*len)],
                dims,
            }),
            Repr::Slice { dtype, bytes, len } => f(Plain {
                dtype: *dtype,
                bytes,
                dims: &[*len],
            }),
            Repr::View { dtype, bytes, dims } => f(Plain {
                dtype: *dtype,
                bytes,
                dims,
            }),
            Repr::Made(tensor) => {
                let tensor = made(tensor)?;
                f(Plain {
                    dtype: tensor.dtype(),
                    bytes: tensor.as_bytes()?,
                    dims: tensor.dims(),
                })
            }
        })
    }
}

/// Returns the tensor of a literal that was one from the beginning.
fn made(tensor: &Result<Tensor>) -> Result<&Tensor> {
    tensor.as_ref().map_err(Clone::clone)
}

fn is_number(dtype: DataType) -> bool {
    matches!(
        dtype,
        DataType::FLOAT
            | DataType::DOUBLE
            | DataType::HALF
            | DataType::BFLOAT16
            | DataType::COMPLEX64
            | DataType::COMPLEX128
            | DataType::INT8
            | DataType::INT16
            | DataType::INT32
            | DataType::INT64
            | DataType::UINT8
            | DataType::UINT16
            | DataType::UINT32
            | DataType::UINT64
    )
}

fn integer_range(dtype: DataType) -> (i128, i128) {
    let bits = 8 * dtype.size().unwrap_or(1) as u32;
    let signed = matches!(
        dtype,
        DataType::INT8 | DataType::INT16 | DataType::INT32 | DataType::INT64
    );
    if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// Reads elements of a type that [`is_number`].
fn numbers(dtype: DataType, bytes: &[u8]) -> impl Iterator<Item = Number> + '_ {
    bytes
        .chunks_exact(dtype.size().unwrap_or(1))
        .map(move |element| read(dtype, element))
}

fn read(dtype: DataType, element: &[u8]) -> Number {
    fn array<const N: usize>(element: &[u8]) -> [u8; N] {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(element) {
            *to = *from;
        }
        bytes
    }
    match dtype {
        DataType::INT8 => Number::Integer(i8::from_ne_bytes(array(element)).into()),
        DataType::INT16 => Number::Integer(i16::from_ne_bytes(array(element)).into()),
        DataType::INT32 => Number::Integer(i32::from_ne_bytes(array(element)).into()),
        DataType::INT64 => Number::Integer(i64::from_ne_bytes(array(element)).into()),
        DataType::UINT8 => Number::Integer(u8::from_ne_bytes(array(element)).into()),
        DataType::UINT16 => Number::Integer(u16::from_ne_bytes(array(element)).into()),
        DataType::UINT32 => Number::Integer(u32::from_ne_bytes(array(element)).into()),
        DataType::UINT64 => Number::Integer(u64::from_ne_bytes(array(element)).into()),
        DataType::DOUBLE => Number::Float(f64::from_ne_bytes(array(element))),
        DataType::HALF => Number::Float(Half(u16::from_ne_bytes(array(element))).to_f32().into()),
        DataType::BFLOAT16 => {
            Number::Float(BFloat16(u16::from_ne_bytes(array(element))).to_f32().into())
        }
        DataType::COMPLEX64 => Number::Complex(
            f32::from_ne_bytes(array(element)).into(),
            f32::from_ne_bytes(array(&element[4..])).into(),
        ),
        DataType::COMPLEX128 => Number::Complex(
            f64::from_ne_bytes(array(element)),
            f64::from_ne_bytes(array(&element[8..])),
        ),
        _ => Number::Float(f32::from_ne_bytes(array(element)).into()),
    }
}

fn write(number: Number, dtype: DataType, bytes: &mut Vec<u8>) -> Result<()> {
    if let Number::Integer(value) = number
        && dtype.is_integer()
    {
        let (low, high) = integer_range(dtype);
        if !(low..=high).contains(&value) {
            return Err(Error::argument(format!(
                "the literal {value} does not fit {dtype}"
            )));
        }
        // In two's complement the low bytes of a wider integer are the narrower one.
        bytes.extend_from_slice(&value.to_le_bytes()[..dtype.size().unwrap_or(0)]);
        return Ok(());
    }
    if let Number::Integer(value) = number
        && dtype == DataType::FLOAT
    {
        // By way of a float of 64 bits it would be rounded twice.
        bytes.extend((value as f32).to_ne_bytes());
        return Ok(());
    }
    let (re, im) = match number {
        Number::Integer(value) => (value as f64, 0.0),
        Number::Float(value) => (value, 0.0),
        Number::Complex(re, im) => (re, im),
    };
    match dtype {
        DataType::FLOAT => bytes.extend((re as f32).to_ne_bytes()),
        DataType::DOUBLE => bytes.extend(re.to_ne_bytes()),
        DataType::HALF => bytes.extend(Half::from_f32(re as f32).0.to_ne_bytes()),
        DataType::BFLOAT16 => bytes.extend(BFloat16::from_f32(re as f32).0.to_ne_bytes()),
        DataType::COMPLEX64 => {
            bytes.extend((re as f32).to_ne_bytes());
            bytes.extend((im as f32).to_ne_bytes());
        }
        DataType::COMPLEX128 => {
            bytes.extend(re.to_ne_bytes());
            bytes.extend(im.to_ne_bytes());
        }
        _ => {
            return Err(Error::argument(format!(
                "a number can't be a literal of {dtype}"
            )));
        }
    }
    Ok(())
}
