//! Element types.

use std::fmt;

use tfp_sys::TF_DataType;

/// The type of a tensor's elements, or a reference to such a type.
///
/// Every value that TensorFlow may return can be held, known or not; [`Self::is_known`] tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DataType(u32);

macro_rules! data_types {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:literal, $size:literal;)*) => {
        impl DataType {
            $($(#[$doc])* pub const $constant: Self = Self($number);)*

            /// All element types of TensorFlow 2.21 without the references, in order of their number.
            pub const ALL: &[Self] = &[$(Self::$constant),*];

            /// Returns the lower-case name that Python prints, without `_ref`; `unknown` for none.
            #[must_use]
            pub const fn base_name(self) -> &'static str {
                match self.base().0 {
                    $($number => $name,)*
                    _ => "unknown",
                }
            }

            /// Returns the bytes of an element; `None` for types whose elements are not plain bytes
            /// (string, resource, variant) and for unknown ones.
            ///
            /// The types of fewer than 8 bits take a whole byte per element.
            #[must_use]
            pub const fn size(self) -> Option<usize> {
                match self.base().0 {
                    $($number => if $size == 0 { None } else { Some($size) },)*
                    _ => None,
                }
            }
        }
    };
}

data_types! {
    /// 32-bit IEEE float.
    FLOAT = 1, "float32", 4;
    /// 64-bit IEEE float.
    DOUBLE = 2, "float64", 8;
    /// Signed 32-bit integer.
    INT32 = 3, "int32", 4;
    /// Unsigned 8-bit integer.
    UINT8 = 4, "uint8", 1;
    /// Signed 16-bit integer.
    INT16 = 5, "int16", 2;
    /// Signed 8-bit integer.
    INT8 = 6, "int8", 1;
    /// Bytes of any length.
    STRING = 7, "string", 0;
    /// Two 32-bit floats: real and imaginary part.
    COMPLEX64 = 8, "complex64", 8;
    /// Signed 64-bit integer.
    INT64 = 9, "int64", 8;
    /// Truth value in a byte.
    BOOL = 10, "bool", 1;
    /// Quantized signed 8-bit integer.
    QINT8 = 11, "qint8", 1;
    /// Quantized unsigned 8-bit integer.
    QUINT8 = 12, "quint8", 1;
    /// Quantized signed 32-bit integer.
    QINT32 = 13, "qint32", 4;
    /// The upper half of a 32-bit float.
    BFLOAT16 = 14, "bfloat16", 2;
    /// Quantized signed 16-bit integer.
    QINT16 = 15, "qint16", 2;
    /// Quantized unsigned 16-bit integer.
    QUINT16 = 16, "quint16", 2;
    /// Unsigned 16-bit integer.
    UINT16 = 17, "uint16", 2;
    /// Two 64-bit floats: real and imaginary part.
    COMPLEX128 = 18, "complex128", 16;
    /// 16-bit IEEE float.
    HALF = 19, "float16", 2;
    /// Handle of a resource.
    RESOURCE = 20, "resource", 0;
    /// Value of a type that only some kernels know.
    VARIANT = 21, "variant", 0;
    /// Unsigned 32-bit integer.
    UINT32 = 22, "uint32", 4;
    /// Unsigned 64-bit integer.
    UINT64 = 23, "uint64", 8;
    /// 8-bit float: 5 bits of exponent, 2 of mantissa.
    FLOAT8_E5M2 = 24, "float8_e5m2", 1;
    /// 8-bit float: 4 bits of exponent, 3 of mantissa, finite only.
    FLOAT8_E4M3FN = 25, "float8_e4m3fn", 1;
    /// 8-bit float: 4 bits of exponent, 3 of mantissa, finite, no negative zero.
    FLOAT8_E4M3FNUZ = 26, "float8_e4m3fnuz", 1;
    /// 8-bit float: 4 bits of exponent with bias 11, 3 of mantissa, finite, no negative zero.
    FLOAT8_E4M3B11FNUZ = 27, "float8_e4m3b11fnuz", 1;
    /// 8-bit float: 5 bits of exponent, 2 of mantissa, finite, no negative zero.
    FLOAT8_E5M2FNUZ = 28, "float8_e5m2fnuz", 1;
    /// Signed 4-bit integer.
    INT4 = 29, "int4", 1;
    /// Unsigned 4-bit integer.
    UINT4 = 30, "uint4", 1;
    /// Signed 2-bit integer.
    INT2 = 31, "int2", 1;
    /// Unsigned 2-bit integer.
    UINT2 = 32, "uint2", 1;
    /// 4-bit float: 2 bits of exponent, 1 of mantissa, finite only.
    FLOAT4_E2M1FN = 33, "float4_e2m1fn", 1;
}

/// What TensorFlow adds to a type's number to mean a reference to it.
const REF: u32 = 100;

impl DataType {
    /// Returns the type of a number of TensorFlow's `DataType` enumeration.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number in TensorFlow's `DataType` enumeration.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the type of a number of the C API.
    #[must_use]
    pub const fn from_raw(raw: TF_DataType) -> Self {
        Self(raw.0)
    }

    /// Returns the number for the C API.
    #[must_use]
    pub const fn raw(self) -> TF_DataType {
        TF_DataType(self.0)
    }

    /// Whether this is a reference to a type, as the outputs of old variables are.
    #[must_use]
    pub const fn is_ref(self) -> bool {
        self.0 > REF
    }

    /// Returns the type that a reference refers to, and any other type itself.
    #[must_use]
    pub const fn base(self) -> Self {
        if self.is_ref() {
            Self(self.0 - REF)
        } else {
            self
        }
    }

    /// Returns the reference to this type.
    #[must_use]
    pub const fn to_ref(self) -> Self {
        if self.is_ref() {
            self
        } else {
            Self(self.0 + REF)
        }
    }

    /// Whether this is one of [`Self::ALL`] or a reference to one.
    #[must_use]
    pub fn is_known(self) -> bool {
        Self::ALL.contains(&self.base())
    }

    /// Whether elements are real floating-point numbers of any width.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(
            self.base(),
            Self::FLOAT
                | Self::DOUBLE
                | Self::HALF
                | Self::BFLOAT16
                | Self::FLOAT8_E5M2
                | Self::FLOAT8_E4M3FN
                | Self::FLOAT8_E4M3FNUZ
                | Self::FLOAT8_E4M3B11FNUZ
                | Self::FLOAT8_E5M2FNUZ
                | Self::FLOAT4_E2M1FN
        )
    }

    /// Whether elements are integers, signed or not, of any width, quantized ones aside.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(
            self.base(),
            Self::INT32
                | Self::UINT8
                | Self::INT16
                | Self::INT8
                | Self::INT64
                | Self::UINT16
                | Self::UINT32
                | Self::UINT64
                | Self::INT4
                | Self::UINT4
                | Self::INT2
                | Self::UINT2
        )
    }

    /// Whether elements are complex numbers.
    #[must_use]
    pub const fn is_complex(self) -> bool {
        matches!(self.base(), Self::COMPLEX64 | Self::COMPLEX128)
    }

    /// Returns the type of a name as Python prints it (`float32`, `string`, `int32_ref`).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let (base, is_ref) = match name.strip_suffix("_ref") {
            Some(base) => (base, true),
            None => (name, false),
        };
        let found = *Self::ALL.iter().find(|dtype| dtype.base_name() == base)?;
        Some(if is_ref { found.to_ref() } else { found })
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base_name())?;
        if !self.is_known() {
            write!(f, " type {}", self.0)?;
        } else if self.is_ref() {
            f.write_str("_ref")?;
        }
        Ok(())
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
