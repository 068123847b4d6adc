//! Rust types as elements of tensors.

#[doc(inline)]
pub use tfp_wire::DataType;

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
