//! The one table between TensorFlow's element types and the kernels'.

use tfp_bindings::DataType;
use tfp_kernels::base::dtype::DType;

const TYPES: &[(DType, DataType)] = &[
    (DType::F32, DataType::FLOAT),
    (DType::F64, DataType::DOUBLE),
    (DType::F16, DataType::HALF),
    (DType::BF16, DataType::BFLOAT16),
    (DType::I8, DataType::INT8),
    (DType::I16, DataType::INT16),
    (DType::I32, DataType::INT32),
    (DType::I64, DataType::INT64),
    (DType::U8, DataType::UINT8),
    (DType::U16, DataType::UINT16),
    (DType::U32, DataType::UINT32),
    (DType::U64, DataType::UINT64),
    (DType::Bool, DataType::BOOL),
];

/// The kernels' type; `None` if they have none.
pub fn from_tensorflow(data_type: DataType) -> Option<DType> {
    let found = TYPES.iter().find(|(_, candidate)| *candidate == data_type);
    found.map(|&(dtype, _)| dtype)
}

/// TensorFlow's type; `None` for a type that is not in the table.
pub fn to_tensorflow(dtype: DType) -> Option<DataType> {
    let found = TYPES.iter().find(|(candidate, _)| *candidate == dtype);
    found.map(|&(_, data_type)| data_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes_agree() {
        for &(dtype, data_type) in TYPES {
            assert_eq!(data_type.to_string(), dtype.name());
            assert_eq!(data_type.size(), Some(dtype.size()));
            assert_eq!(from_tensorflow(data_type), Some(dtype));
            assert_eq!(to_tensorflow(dtype), Some(data_type));
        }
        assert_eq!(from_tensorflow(DataType::STRING), None);
    }
}
