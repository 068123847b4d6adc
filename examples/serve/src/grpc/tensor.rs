//! Arrays as tensors of messages, and back.

use super::message::{Dim, Shape, Tensor};
use crate::array::{Array, DType, Data};
use crate::failure::{Failure, Status};

/// TensorFlow's numbers of element types.
const NUMBERS: [(&str, i32); 25] = [
    ("DT_FLOAT", 1),
    ("DT_DOUBLE", 2),
    ("DT_INT32", 3),
    ("DT_UINT8", 4),
    ("DT_INT16", 5),
    ("DT_INT8", 6),
    ("DT_STRING", 7),
    ("DT_COMPLEX64", 8),
    ("DT_INT64", 9),
    ("DT_BOOL", 10),
    ("DT_QINT8", 11),
    ("DT_QUINT8", 12),
    ("DT_QINT32", 13),
    ("DT_BFLOAT16", 14),
    ("DT_QINT16", 15),
    ("DT_QUINT16", 16),
    ("DT_UINT16", 17),
    ("DT_COMPLEX128", 18),
    ("DT_HALF", 19),
    ("DT_RESOURCE", 20),
    ("DT_VARIANT", 21),
    ("DT_UINT32", 22),
    ("DT_UINT64", 23),
    ("DT_FLOAT8_E5M2", 24),
    ("DT_FLOAT8_E4M3FN", 25),
];

/// The number of a type's name; 0, which is an invalid type, for others.
pub(super) fn number(name: &str) -> i32 {
    let found = NUMBERS.iter().find(|(known, _)| *known == name);
    found.map_or(0, |(_, number)| *number)
}

fn dtype(number: i32) -> Result<DType, Failure> {
    let found = NUMBERS.iter().find(|(_, known)| *known == number);
    let name = found.map_or("an unknown type", |(name, _)| name);
    DType::from_name(name).ok_or_else(|| {
        let message = format!("a tensor of {name} ({number}), which is not served");
        Failure::new(Status::Unimplemented, message)
    })
}

/// The shape of a message, with -1 for what is open; without sizes for an unknown rank.
pub(super) fn shape(dims: Option<&[i64]>) -> Shape {
    Shape {
        dims: dims
            .unwrap_or_default()
            .iter()
            .map(|&size| Dim { size })
            .collect(),
        is_unknown: dims.is_none(),
    }
}

/// Numbers in the order of their bytes in a message, the lowest first.
trait Bytes: Sized {
    const SIZE: usize;
    fn of(bytes: &[u8]) -> Self;
    fn write(&self, to: &mut Vec<u8>);
}

macro_rules! bytes {
    ($($number:ty),*) => {
        $(impl Bytes for $number {
            const SIZE: usize = size_of::<$number>();

            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap_or_default())
            }

            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

bytes!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl Bytes for bool {
    const SIZE: usize = 1;

    fn of(bytes: &[u8]) -> Self {
        bytes != [0]
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
}

/// As many elements as a shape has: of the bytes, or of the list. A shorter list goes on with its last
/// element, an empty one with zeros.
fn numbers<T: Bytes + Clone + Default, E: Clone>(
    content: &[u8],
    list: &[E],
    count: usize,
    read: impl Fn(E) -> Option<T>,
) -> Result<Vec<T>, Failure> {
    if !content.is_empty() {
        if Some(content.len()) != count.checked_mul(T::SIZE) {
            return Err(Failure::invalid(format!(
                "tensor_content has {} bytes, expected {count} elements of {}",
                content.len(),
                T::SIZE
            )));
        }
        return Ok(content.chunks_exact(T::SIZE).map(T::of).collect());
    }
    let unfit = || Failure::invalid("a number does not fit the type of its tensor");
    let read = |each: &E| read(each.clone()).ok_or_else(unfit);
    filled(list.iter().map(read).collect::<Result<_, _>>()?, count)
}

fn filled<T: Clone + Default>(mut list: Vec<T>, count: usize) -> Result<Vec<T>, Failure> {
    if list.len() > count {
        return Err(Failure::invalid(format!(
            "a tensor has {} values, its shape {count} elements",
            list.len()
        )));
    }
    let last = list.last().cloned().unwrap_or_default();
    list.resize(count, last);
    Ok(list)
}

/// Reads a tensor of at most `most` elements. Strings that one string stands for have at most as many bytes.
///
/// # Errors
/// For a type that is not served, for values that don't fit type and shape, and for a larger tensor.
pub(super) fn read(tensor: Tensor, most: usize) -> Result<Array, Failure> {
    let dtype = dtype(tensor.dtype)?;
    let shape = tensor.shape.unwrap_or_default();
    let size = |dim: &Dim| usize::try_from(dim.size).ok();
    let dims = shape.dims.iter().map(size).collect::<Option<Vec<_>>>();
    let dims = dims.filter(|_| !shape.is_unknown);
    let dims = dims.ok_or_else(|| Failure::invalid("a tensor whose shape is not known"))?;
    // An element may stand for many: the message's size does not bound theirs.
    let mut sizes = dims.iter();
    let count = sizes.try_fold(1_usize, |count, &size| count.checked_mul(size));
    let count = count.filter(|&count| count <= most).ok_or_else(|| {
        let message = format!("a tensor of the shape {dims:?}, expected at most {most} elements");
        Failure::new(Status::TooLarge, message)
    })?;
    let content = &tensor.content[..];
    let ints = &tensor.ints;
    let data = match dtype {
        DType::F32 => Data::F32(numbers(content, &tensor.floats, count, Some)?),
        DType::F64 => Data::F64(numbers(content, &tensor.doubles, count, Some)?),
        DType::I8 => Data::I8(numbers(content, ints, count, |n| n.try_into().ok())?),
        DType::I16 => Data::I16(numbers(content, ints, count, |n| n.try_into().ok())?),
        DType::I32 => Data::I32(numbers(content, ints, count, Some)?),
        DType::I64 => Data::I64(numbers(content, &tensor.int64s, count, Some)?),
        DType::U8 => Data::U8(numbers(content, ints, count, |n| n.try_into().ok())?),
        DType::U16 => Data::U16(numbers(content, ints, count, |n| n.try_into().ok())?),
        DType::U32 => Data::U32(numbers(content, &tensor.uint32s, count, Some)?),
        DType::U64 => Data::U64(numbers(content, &tensor.uint64s, count, Some)?),
        DType::Bool => Data::Bool(numbers(content, &tensor.bools, count, Some)?),
        DType::Bytes => {
            let last = tensor.strings.last().map_or(0, Vec::len).max(1);
            if count.saturating_mul(last) > most && count > tensor.strings.len() {
                let message = format!("a string for {count} elements, which is too much");
                return Err(Failure::new(Status::TooLarge, message));
            }
            Data::Bytes(filled(tensor.strings, count)?)
        }
    };
    Array::new(dims, data)
}

/// Writes a tensor.
pub(super) fn write(array: Array) -> Tensor {
    let dims: Vec<i64> = array.dims.iter().map(|&size| size as i64).collect();
    let mut tensor = Tensor {
        dtype: number(array.data.dtype().name()),
        shape: Some(shape(Some(&dims))),
        ..Tensor::default()
    };
    match array.data {
        Data::Bytes(strings) => tensor.strings = strings,
        data => tensor.content = content(&data).into(),
    }
    tensor
}

fn content(data: &Data) -> Vec<u8> {
    fn bytes<T: Bytes>(list: &[T]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(list.len() * T::SIZE);
        list.iter().for_each(|each| each.write(&mut bytes));
        bytes
    }
    match data {
        Data::Bytes(_) => Vec::new(),
        Data::F32(list) => bytes(list),
        Data::F64(list) => bytes(list),
        Data::I8(list) => bytes(list),
        Data::I16(list) => bytes(list),
        Data::I32(list) => bytes(list),
        Data::I64(list) => bytes(list),
        Data::U8(list) => bytes(list),
        Data::U16(list) => bytes(list),
        Data::U32(list) => bytes(list),
        Data::U64(list) => bytes(list),
        Data::Bool(list) => bytes(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dtype: &str, dims: &[i64]) -> Tensor {
        Tensor {
            dtype: number(dtype),
            shape: Some(shape(Some(dims))),
            ..Tensor::default()
        }
    }

    #[test]
    fn arrays_of_every_type_go_there_and_back() {
        for (name, _) in NUMBERS {
            let Some(dtype) = DType::from_name(name) else {
                continue;
            };
            let zeros = read(tensor(name, &[2, 3]), 100).unwrap();
            assert_eq!(
                (zeros.dims.as_slice(), zeros.data.len()),
                ([2, 3].as_slice(), 6)
            );
            assert_eq!(zeros.data.dtype(), dtype);
            assert_eq!(read(write(zeros.clone()), 100), Ok(zeros));
        }
        let numbers = Array::new(vec![3], Data::I16(vec![-1, 2, 300])).unwrap();
        assert_eq!(write(numbers.clone()).content[..], [255, 255, 2, 0, 44, 1]);
        assert_eq!(read(write(numbers.clone()), 3), Ok(numbers));
        let texts = Array::new(vec![1], Data::Bytes(vec![b"x\0".to_vec()])).unwrap();
        assert_eq!(read(write(texts.clone()), 3), Ok(texts));
    }

    #[test]
    fn a_short_list_goes_on_with_its_last_element() {
        let two = Tensor {
            floats: vec![1.0, 2.0],
            ..tensor("DT_FLOAT", &[4])
        };
        let four = read(two, 4).unwrap();
        assert_eq!(four.data, Data::F32(vec![1.0, 2.0, 2.0, 2.0]));
        let scalar = Tensor {
            ints: vec![7],
            ..tensor("DT_INT8", &[])
        };
        assert_eq!(read(scalar, 4).unwrap().data, Data::I8(vec![7]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let status = |tensor: Tensor| read(tensor, 100).unwrap_err().status;
        let float = |dims: &[i64]| tensor("DT_FLOAT", dims);
        let many = Tensor {
            floats: vec![1.0; 5],
            ..float(&[4])
        };
        let short = Tensor {
            content: vec![0; 15].into(),
            ..float(&[4])
        };
        let wide = Tensor {
            ints: vec![300],
            ..tensor("DT_INT8", &[1])
        };
        let rankless = Tensor {
            shape: Some(shape(None)),
            ..float(&[])
        };
        for wrong in [many, short, wide, rankless, float(&[-1])] {
            assert_eq!(status(wrong), Status::Invalid);
        }
        assert_eq!(status(float(&[101])), Status::TooLarge);
        assert_eq!(status(float(&[i64::MAX, 8])), Status::TooLarge);
        let long = Tensor {
            strings: vec![vec![0; 50]],
            ..tensor("DT_STRING", &[3])
        };
        assert_eq!(status(long), Status::TooLarge);
        assert_eq!(status(tensor("DT_HALF", &[1])), Status::Unimplemented);
        assert_eq!(status(tensor("DT_NONE", &[1])), Status::Unimplemented);
    }
}
