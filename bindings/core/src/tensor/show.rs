//! Tensors as text.

use std::fmt;

use super::Tensor;
use crate::tensor::element::{BFloat16, Complex, Element, Half};
use tfp_wire::DataType;

/// Up to how many elements are all written.
const ALL: usize = 1000;
/// How many are written at either end of a dimension of a larger tensor.
const EDGE: usize = 3;

/// Writes one element.
type Write<'w> = dyn Fn(&mut fmt::Formatter<'_>, usize) -> fmt::Result + 'w;

fn write_dimension(
    f: &mut fmt::Formatter<'_>,
    dims: &[usize],
    first: usize,
    depth: usize,
    edge: usize,
    write: &Write<'_>,
) -> fmt::Result {
    let Some((&size, inner)) = dims.split_first() else {
        return write(f, first);
    };
    let stride: usize = inner.iter().product();
    f.write_str("[")?;
    let mut index = 0;
    while index < size {
        if index > 0 {
            f.write_str(",")?;
            // Rows are lines, and each further dimension puts one more line between them.
            match inner.len() {
                0 => f.write_str(" ")?,
                lines => write!(f, "{}{}", "\n".repeat(lines), " ".repeat(depth + 1))?,
            }
        }
        if index == edge && size > 2 * edge {
            f.write_str("...")?;
            index = size - edge;
            continue;
        }
        write_dimension(f, inner, first + index * stride, depth + 1, edge, write)?;
        index += 1;
    }
    f.write_str("]")
}

/// Writes `lead` and the elements in nested brackets as `dims` has them, the first and last `edge` of a
/// longer dimension; returns false, and writes nothing, for types without numbers in Rust, as quantized ones.
fn write_elements(
    tensor: &Tensor,
    f: &mut fmt::Formatter<'_>,
    lead: &str,
    dims: &[usize],
    edge: usize,
) -> Result<bool, fmt::Error> {
    let all = |f: &mut fmt::Formatter<'_>, write: &Write<'_>| {
        f.write_str(lead)?;
        write_dimension(f, dims, 0, 0, edge, write)
    };
    macro_rules! elements {
        ($type:ty, $element:ident => $shown:expr) => {{
            let elements = tensor.as_slice::<$type>().map_err(|_| fmt::Error)?;
            all(f, &|f, at| {
                let $element = elements[at];
                write!(f, "{:?}", $shown)
            })
        }};
    }
    fn complex<T: Copy + fmt::Debug>(f: &mut fmt::Formatter<'_>, value: Complex<T>) -> fmt::Result {
        write!(f, "({:?}, {:?})", value.re, value.im)
    }
    match tensor.dtype() {
        DataType::FLOAT => elements!(f32, x => x),
        DataType::DOUBLE => elements!(f64, x => x),
        DataType::HALF => elements!(Half, x => x.to_f32()),
        DataType::BFLOAT16 => elements!(BFloat16, x => x.to_f32()),
        DataType::INT8 => elements!(i8, x => x),
        DataType::INT16 => elements!(i16, x => x),
        DataType::INT32 => elements!(i32, x => x),
        DataType::INT64 => elements!(i64, x => x),
        DataType::UINT8 => elements!(u8, x => x),
        DataType::UINT16 => elements!(u16, x => x),
        DataType::UINT32 => elements!(u32, x => x),
        DataType::UINT64 => elements!(u64, x => x),
        DataType::BOOL => elements!(bool, x => x),
        <Complex<f32>>::DTYPE => {
            let elements = tensor.as_slice::<Complex<f32>>().map_err(|_| fmt::Error)?;
            all(f, &|f, at| complex(f, elements[at]))
        }
        <Complex<f64>>::DTYPE => {
            let elements = tensor.as_slice::<Complex<f64>>().map_err(|_| fmt::Error)?;
            all(f, &|f, at| complex(f, elements[at]))
        }
        DataType::STRING => {
            let strings = tensor.as_strings().map_err(|_| fmt::Error)?;
            all(f, &|f, at| write!(f, "\"{}\"", strings[at].escape_ascii()))
        }
        _ => return Ok(false),
    }
    .map(|()| true)
}

/// Type, shape, and the elements in the order of memory on one line, of more than six the first and
/// last three: `Tensor(float32 [2,2] [1.0, 2.0, 3.0, 4.0])`.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {}", self.dtype(), self.shape())?;
        // A scalar has no brackets.
        let flat = [self.len()];
        let dims = &flat[..usize::from(!self.dims().is_empty())];
        if !self.is_empty() {
            write_elements(self, f, " ", dims, EDGE)?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Tensor {
    /// Writes the elements in nested brackets. Of a dimension of a tensor with more than 1000 elements
    /// only the first and last three are written. Type and shape stand for several dimensions without an
    /// element, and for element types without numbers in Rust, as quantized ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() && self.dims().len() > 1 {
            return fmt::Debug::fmt(self, f);
        }
        let dims: Vec<usize> = self.dims().iter().map(|&dim| dim as usize).collect();
        let edge = if self.len() > ALL {
            EDGE
        } else {
            usize::MAX / 2
        };
        if write_elements(self, f, "", &dims, edge)? {
            return Ok(());
        }
        fmt::Debug::fmt(self, f)
    }
}
