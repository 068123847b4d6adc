//! Arrays that requests bring and models return: dense, row by row, of one element type.

use crate::failure::Failure;

/// Does the same for the elements of every type.
#[macro_export]
macro_rules! each_type {
    ($data:expr, $list:ident => $body:expr) => {
        match $data {
            $crate::array::Data::F32($list) => $body,
            $crate::array::Data::F64($list) => $body,
            $crate::array::Data::I8($list) => $body,
            $crate::array::Data::I16($list) => $body,
            $crate::array::Data::I32($list) => $body,
            $crate::array::Data::I64($list) => $body,
            $crate::array::Data::U8($list) => $body,
            $crate::array::Data::U16($list) => $body,
            $crate::array::Data::U32($list) => $body,
            $crate::array::Data::U64($list) => $body,
            $crate::array::Data::Bool($list) => $body,
            $crate::array::Data::Bytes($list) => $body,
        }
    };
}

macro_rules! types {
    ($($name:ident($element:ty) = $wire:literal;)*) => {
        /// The elements of an array, by their type.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Data {
            $(#[doc = concat!("Elements of `", $wire, "`.")] $name(Vec<$element>),)*
        }

        /// An element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DType {
            $(#[doc = concat!("`", $wire, "`")] $name,)*
        }

        impl DType {
            /// The name that TensorFlow gives it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// The type of a name, such as `DT_FLOAT`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($wire => Some(Self::$name),)* _ => None }
            }

            /// Room for elements of the type.
            #[must_use]
            pub fn room(self, elements: usize) -> Data {
                match self { $(Self::$name => Data::$name(Vec::with_capacity(elements)),)* }
            }
        }

        impl Data {
            /// The element type.
            #[must_use]
            pub fn dtype(&self) -> DType {
                match self { $(Self::$name(_) => DType::$name,)* }
            }

            /// Appends elements of the same type; says whether they were.
            fn append(&mut self, other: Self) -> bool {
                match (self, other) {
                    $((Self::$name(to), Self::$name(mut from)) => to.append(&mut from),)*
                    _ => return false,
                }
                true
            }

            /// Cuts the elements into pieces of these lengths.
            fn split(self, lengths: &[usize]) -> Vec<Self> {
                match self {
                    $(Self::$name(list) => {
                        let mut all = list.into_iter();
                        let piece = |&length: &usize| {
                            Self::$name(all.by_ref().take(length).collect())
                        };
                        lengths.iter().map(piece).collect()
                    })*
                }
            }
        }
    };
}

types! {
    F32(f32) = "DT_FLOAT";
    F64(f64) = "DT_DOUBLE";
    I8(i8) = "DT_INT8";
    I16(i16) = "DT_INT16";
    I32(i32) = "DT_INT32";
    I64(i64) = "DT_INT64";
    U8(u8) = "DT_UINT8";
    U16(u16) = "DT_UINT16";
    U32(u32) = "DT_UINT32";
    U64(u64) = "DT_UINT64";
    Bool(bool) = "DT_BOOL";
    Bytes(Vec<u8>) = "DT_STRING";
}

impl Data {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        each_type!(self, list => list.len())
    }

    /// Whether there is not an element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A dense array; the last dimension varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The shape.
    pub dims: Vec<usize>,
    /// As many elements as the shape has.
    pub data: Data,
}

impl Array {
    /// An array of a shape.
    ///
    /// # Errors
    /// For another number of elements than the shape has.
    pub fn new(dims: Vec<usize>, data: Data) -> Result<Self, Failure> {
        let mut sizes = dims.iter();
        let count = sizes.try_fold(1_usize, |count, &size| count.checked_mul(size));
        match count == Some(data.len()) {
            true => Ok(Self { dims, data }),
            false => Err(Failure::invalid(format!(
                "{} elements for the shape {dims:?}",
                data.len()
            ))),
        }
    }

    /// The number of rows: the size of axis 0; `None` for a scalar.
    #[must_use]
    pub fn rows(&self) -> Option<usize> {
        self.dims.first().copied()
    }

    /// Puts arrays behind each other along axis 0.
    ///
    /// # Errors
    /// For arrays of different types or shapes of rows, for scalars, and for an empty list.
    pub fn concat(arrays: Vec<Self>) -> Result<Self, Failure> {
        let mut arrays = arrays.into_iter();
        let first = arrays.next().filter(|first| !first.dims.is_empty());
        let mut all = first.ok_or_else(|| Failure::invalid("there are no rows"))?;
        for array in arrays {
            let fits = array.dims.len() == all.dims.len() && array.dims[1..] == all.dims[1..];
            if !fits || !all.data.append(array.data) {
                return Err(Failure::invalid(format!(
                    "rows of the shape {:?} beside rows of the shape {:?}",
                    array.dims.get(1..),
                    &all.dims[1..]
                )));
            }
            all.dims[0] += array.dims[0];
        }
        Ok(all)
    }

    /// Cuts the array along axis 0 into pieces of so many rows each.
    ///
    /// # Errors
    /// For other rows than there are.
    pub fn split(self, rows: &[usize]) -> Result<Vec<Self>, Failure> {
        let total: usize = rows.iter().sum();
        if self.rows() != Some(total) {
            let dims = &self.dims;
            return Err(Failure::invalid(format!(
                "the shape {dims:?} is not that of {total} rows"
            )));
        }
        let row: usize = self.dims[1..].iter().product();
        let lengths: Vec<usize> = rows.iter().map(|count| count * row).collect();
        let pieces = self.data.split(&lengths).into_iter().zip(rows);
        let piece = |(data, &count): (Data, &usize)| {
            let mut dims = self.dims.clone();
            dims[0] = count;
            Self { dims, data }
        };
        Ok(pieces.map(piece).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(dims: &[usize], values: &[i32]) -> Array {
        Array::new(dims.to_vec(), Data::I32(values.to_vec())).unwrap()
    }

    #[test]
    fn rows_go_together_and_come_apart() {
        let parts = vec![
            array(&[2, 2], &[1, 2, 3, 4]),
            array(&[0, 2], &[]),
            array(&[1, 2], &[5, 6]),
        ];
        let all = Array::concat(parts.clone()).unwrap();
        assert_eq!(all, array(&[3, 2], &[1, 2, 3, 4, 5, 6]));
        assert_eq!(all.split(&[2, 0, 1]), Ok(parts));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let one = array(&[1, 2], &[1, 2]);
        let floats = Array::new(vec![1, 2], Data::F32(vec![1.0, 2.0])).unwrap();
        for other in [array(&[1, 3], &[1, 2, 3]), array(&[2], &[1, 2]), floats] {
            assert!(Array::concat(vec![one.clone(), other]).is_err());
        }
        assert!(Array::concat(Vec::new()).is_err());
        assert!(Array::concat(vec![array(&[], &[1])]).is_err());
        assert!(one.clone().split(&[2]).is_err());
        assert!(array(&[], &[1]).split(&[1]).is_err());
        assert!(Array::new(vec![3], Data::I32(vec![1])).is_err());
        assert!(Array::new(vec![usize::MAX, 2], Data::I32(vec![])).is_err());
    }

    #[test]
    fn types_have_tensorflows_names() {
        for dtype in [DType::F32, DType::U64, DType::Bool, DType::Bytes] {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert_eq!(dtype.room(3).dtype(), dtype);
        }
        assert_eq!(DType::from_name("DT_COMPLEX64"), None);
    }
}
