//! Messages: what is written is read, and bytes from anywhere are read or refused.

use proptest::prelude::*;

use crate::attr::AttrValue;
use crate::base::shape::Shape;
use crate::wire::{Writer, attr_proto, read_shape, shape_proto};
use crate::{DataType, Literal, Tensor};

proptest! {
    #[test]
    fn any_bytes_are_a_shape_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = read_shape(&bytes) {
            prop_assert!(error.to_string().contains("TensorShapeProto"), "{}", error);
        }
    }

    #[test]
    fn shapes_survive(dims in proptest::collection::vec(-1..i64::MAX, 0..10)) {
        let shape = Shape::new(&dims);
        let read = read_shape(&shape_proto(&shape));
        prop_assert_eq!(read.ok(), Some(shape));
    }

    /// What a literal becomes is what Rust's own conversion gives.
    #[test]
    fn integer_literals_keep_their_value_or_are_refused(value in any::<i64>(), small in any::<i8>()) {
        for value in [value, small.into()] {
            let literal = Literal::from_scalar(&value);
            let fits = literal.fits(DataType::INT16).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(fits, i16::try_from(value).is_ok());
            prop_assert_eq!(literal.to_tensor(DataType::INT16).is_ok(), fits);
            if let Ok(expected) = u64::try_from(value) {
                prop_assert_eq!(scalar::<u64>(literal.to_tensor(DataType::UINT64)), Some(expected));
            }
            prop_assert_eq!(scalar::<f32>(literal.to_tensor(DataType::FLOAT)), Some(value as f32));
            prop_assert_eq!(scalar::<f64>(literal.to_tensor(DataType::DOUBLE)), Some(value as f64));
        }
    }

    #[test]
    fn float_literals_are_rounded_once(value in any::<f64>()) {
        let literal = Literal::from_scalar(&value);
        prop_assert_eq!(literal.fits(DataType::INT64).ok(), Some(false));
        let found = scalar::<f32>(literal.to_tensor(DataType::FLOAT)).map(f32::to_bits);
        prop_assert_eq!(found, Some((value as f32).to_bits()));
    }
}

fn scalar<T: crate::Element>(tensor: crate::Result<Tensor>) -> Option<T> {
    tensor.ok()?.to_scalar().ok()
}

#[test]
fn attribute_values_are_those_of_the_format() -> crate::Result<()> {
    // AttrValue.i is field 3, a varint; AttrValue.list is field 1 and its integers are field 3.
    assert_eq!(attr_proto(&AttrValue::Int(5))?, [0x18, 5]);
    assert_eq!(
        attr_proto(&AttrValue::IntList(&[1, 2]))?,
        [0x0a, 4, 0x18, 1, 0x18, 2]
    );
    assert_eq!(attr_proto(&AttrValue::from("ab"))?, [0x12, 2, b'a', b'b']);
    assert_eq!(attr_proto(&AttrValue::Type(DataType::INT32))?, [0x30, 3]);
    Ok(())
}

#[test]
fn a_graph_with_a_number_for_a_name_is_refused() {
    // GraphDef.node is field 1, NodeDef.name is field 1.
    let mut graph = Writer::new();
    graph.message(1, |node| node.int(1, 5));
    let error = crate::check_graph_def(&graph.into_bytes()).unwrap_err();
    assert!(
        matches!(error.kind(), crate::ErrorKind::Proto { .. }),
        "{error}"
    );
}
