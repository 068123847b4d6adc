//! Types that the models of this crate share.

use core::num::NonZeroI32;

/// Element type of a tensor.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE half precision; handed out as its bits in a `u16`.
    Float16,
    /// `f32`.
    Float32,
    /// `f64`.
    Float64,
    /// Signed four-bit integers, two to a `u8`.
    Int4,
    /// `i8`.
    Int8,
    /// `i16`.
    Int16,
    /// `i32`.
    Int32,
    /// `i64`.
    Int64,
    /// `u8`.
    UInt8,
    /// `u16`.
    UInt16,
    /// `u32`.
    UInt32,
    /// `u64`.
    UInt64,
    /// A `u8` that is 0 or 1.
    Bool,
}

/// Moment in a device's life at which TVM calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Before the model's first operator.
    Activate,
    /// Before each operator on the device.
    Open,
    /// After each operator on the device.
    Close,
    /// After the model's last operator.
    Deactivate,
}

/// Why a run failed.
///
/// TVM's code is kept: see [`Error::code`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// A kernel, or a hook of a device without a Rust driver, failed; TVM returned -1.
    Kernel,
    /// An error of TVM's C runtime, which TVM codes as `category << 8 | code`.
    Crt {
        /// TVM's category, 1 to 9 in TVM 0.18.
        category: u8,
        /// The code inside the category.
        code: u8,
    },
    /// A hook of a Rust driver failed.
    Device {
        /// The device's name in the model's `devices`.
        device: &'static str,
        /// The hook that failed.
        hook: Hook,
        /// The driver's own code.
        code: NonZeroI32,
    },
    /// Any other code of the model's entry point.
    Other(NonZeroI32),
}

impl Error {
    /// Turns the code of a C entry point into a result; 0 is success.
    #[inline]
    pub const fn from_code(code: i32) -> Result<(), Error> {
        match NonZeroI32::new(code) {
            None => Ok(()),
            Some(code) => Err(Self::from_nonzero(code)),
        }
    }

    #[inline]
    const fn from_nonzero(code: NonZeroI32) -> Error {
        match code.get() {
            -1 => Error::Kernel,
            value @ 0x100..=0xffff => Error::Crt {
                category: (value >> 8) as u8,
                code: (value & 0xff) as u8,
            },
            _ => Error::Other(code),
        }
    }

    /// The code that the C entry point returned, or the driver's code; never 0.
    #[inline]
    pub const fn code(&self) -> i32 {
        match self {
            Error::Kernel => -1,
            Error::Crt { category, code } => (*category as i32) << 8 | *code as i32,
            Error::Device { code, .. } | Error::Other(code) => code.get(),
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Kernel => f.write_str("a kernel of the model failed (code -1)"),
            Error::Crt { category, code } => {
                write!(f, "TVM runtime error: category {category}, code {code}")
            }
            Error::Device { device, hook, code } => {
                write!(f, "device `{device}` failed in {hook:?} (code {code})")
            }
            Error::Other(code) => write!(f, "the model failed (code {code})"),
        }
    }
}

impl core::error::Error for Error {}

/// Why memory that exists already can't be borrowed as a tensor or as constants.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferError {
    /// The memory has another number of elements.
    Length {
        /// Elements that the model needs.
        expected: usize,
        /// Elements that were given.
        found: usize,
    },
    /// The address is not a multiple of the model's alignment.
    Alignment {
        /// The model's alignment in bytes.
        expected: usize,
    },
    /// The address is null.
    Null,
}

impl core::fmt::Display for BufferError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BufferError::Length { expected, found } => {
                write!(f, "{found} elements; the model needs {expected}")
            }
            BufferError::Alignment { expected } => {
                write!(f, "the address is not a multiple of {expected}")
            }
            BufferError::Null => f.write_str("the address is null"),
        }
    }
}

impl core::error::Error for BufferError {}

/// Checks length and address of memory for `length` elements, before anything reads it.
pub(crate) fn check_buffer<T>(
    memory: *const [T],
    length: usize,
    alignment: usize,
) -> Result<(), BufferError> {
    if memory.is_null() {
        Err(BufferError::Null)
    } else if memory.len() != length {
        Err(BufferError::Length {
            expected: length,
            found: memory.len(),
        })
    } else if !(memory.cast::<u8>() as usize).is_multiple_of(alignment) {
        Err(BufferError::Alignment {
            expected: alignment,
        })
    } else {
        Ok(())
    }
}
