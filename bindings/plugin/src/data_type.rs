//! Element types of tensors.

use std::fmt;

use tfp_sys as sys;

/// A `TF_DataType`: any number, known to this crate or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataType(pub i32);

macro_rules! types {
    ($($name:ident = $number:literal, $text:literal, $size:literal;)*) => {
        impl DataType {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $name: Self = Self($number);
            )*

            /// Bytes of one element; `None` for types whose elements are not plain bytes (strings,
            /// resources, variants) and for unknown ones.
            #[must_use]
            pub const fn size(self) -> Option<usize> {
                match self {
                    $(Self::$name => if $size == 0 { None } else { Some($size) },)*
                    _ => None,
                }
            }

            /// TensorFlow's name of the type; `None` for unknown ones.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }

        #[cfg(test)]
        const ALL: &[DataType] = &[$(DataType::$name),*];
    };
}

types! {
    FLOAT = 1, "float32", 4;
    DOUBLE = 2, "float64", 8;
    INT32 = 3, "int32", 4;
    UINT8 = 4, "uint8", 1;
    INT16 = 5, "int16", 2;
    INT8 = 6, "int8", 1;
    STRING = 7, "string", 0;
    COMPLEX64 = 8, "complex64", 8;
    INT64 = 9, "int64", 8;
    BOOL = 10, "bool", 1;
    QINT8 = 11, "qint8", 1;
    QUINT8 = 12, "quint8", 1;
    QINT32 = 13, "qint32", 4;
    BFLOAT16 = 14, "bfloat16", 2;
    QINT16 = 15, "qint16", 2;
    QUINT16 = 16, "quint16", 2;
    UINT16 = 17, "uint16", 2;
    COMPLEX128 = 18, "complex128", 16;
    HALF = 19, "float16", 2;
    RESOURCE = 20, "resource", 0;
    VARIANT = 21, "variant", 0;
    UINT32 = 22, "uint32", 4;
    UINT64 = 23, "uint64", 8;
    FLOAT8_E5M2 = 24, "float8_e5m2", 1;
    FLOAT8_E4M3FN = 25, "float8_e4m3fn", 1;
    FLOAT8_E4M3FNUZ = 26, "float8_e4m3fnuz", 1;
    FLOAT8_E4M3B11FNUZ = 27, "float8_e4m3b11fnuz", 1;
    FLOAT8_E5M2FNUZ = 28, "float8_e5m2fnuz", 1;
    INT4 = 29, "int4", 1;
    UINT4 = 30, "uint4", 1;
    INT2 = 31, "int2", 1;
    UINT2 = 32, "uint2", 1;
    FLOAT4_E2M1FN = 33, "float4_e2m1fn", 1;
}

impl DataType {
    /// A reference type of TensorFlow 1 (`type + 100`) as its plain type.
    #[must_use]
    pub const fn base(self) -> Self {
        if self.0 > 100 {
            Self(self.0 - 100)
        } else {
            self
        }
    }

    #[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]
    pub(crate) fn to_raw(self) -> sys::TF_DataType {
        sys::TF_DataType(self.0 as _)
    }

    #[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]
    pub(crate) fn from_raw(raw: sys::TF_DataType) -> Self {
        Self(raw.0 as i32)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A Rust type whose values are the elements of tensors of one [`DataType`]. Every bit pattern is
/// a value.
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type of the tensors.
    const DATA_TYPE: DataType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $name:ident;)*) => {
        $(
            impl sealed::Sealed for $rust {}
            impl Element for $rust {
                const DATA_TYPE: DataType = DataType::$name;
            }
        )*
    };
}

elements! {
    f32 => FLOAT;
    f64 => DOUBLE;
    i8 => INT8;
    i16 => INT16;
    i32 => INT32;
    i64 => INT64;
    u8 => UINT8;
    u16 => UINT16;
    u32 => UINT32;
    u64 => UINT64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_c_header() {
        let raw = [
            (DataType::FLOAT, sys::TF_FLOAT),
            (DataType::HALF, sys::TF_HALF),
            (DataType::BFLOAT16, sys::TF_BFLOAT16),
            (DataType::BOOL, sys::TF_BOOL),
            (DataType::RESOURCE, sys::TF_RESOURCE),
            (DataType::UINT64, sys::TF_UINT64),
        ];
        for (data_type, constant) in raw {
            assert_eq!(data_type.to_raw(), constant);
            assert_eq!(DataType::from_raw(constant), data_type);
        }
    }

    #[test]
    fn names_are_unique_and_unknown_types_have_none() {
        let mut names: Vec<_> = ALL.iter().filter_map(|t| t.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(DataType(99).size(), None);
        assert_eq!(DataType(99).to_string(), "type 99");
        assert_eq!(DataType(101).base(), DataType::FLOAT);
    }
}
