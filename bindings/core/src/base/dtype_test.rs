//! Element types against TensorFlow's own tables.

use crate::*;

#[test]
fn sizes_are_those_of_tensorflow() -> Result<()> {
    let api = api()?;
    for &dtype in DataType::ALL {
        // SAFETY: the function takes any number.
        let size = unsafe { api.tf_datatype.TF_DataTypeSize(dtype.raw()) };
        let opaque = [DataType::STRING, DataType::RESOURCE, DataType::VARIANT];
        if opaque.contains(&dtype) {
            assert_eq!(dtype.size(), None, "{dtype}");
        } else {
            assert_eq!(dtype.size(), Some(size), "{dtype}");
        }
        assert_eq!(DataType::from_name(&dtype.to_string()), Some(dtype));
        assert_eq!(
            DataType::from_name(&dtype.to_ref().to_string()),
            Some(dtype.to_ref())
        );
    }
    Ok(())
}
