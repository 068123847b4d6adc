//! The wire format: what is written is read, and bytes from anywhere are read or refused.

use proptest::prelude::*;

use crate::attr::AttrValue;
use crate::base::shape::Shape;
use crate::wire::{
    Field, Reader, Writer, attr_proto, read_floats, read_ints, read_shape, shape_proto,
};
use crate::{DataType, Literal, Tensor};

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut fields = 0;
        for field in Reader::new("test", &bytes) {
            match field {
                Ok((number, field)) => {
                    prop_assert!(number > 0);
                    prop_assert!(!matches!(field, Field::Bytes(inner) if inner.len() > bytes.len()));
                    let _ = read_ints(field, &mut Vec::new());
                    let _ = read_floats(field, &mut Vec::new());
                    fields += 1;
                }
                Err(error) => prop_assert!(error.to_string().contains("test")),
            }
        }
        prop_assert!(fields <= bytes.len());
        let _ = read_shape(&bytes);
    }

    #[test]
    fn written_fields_are_read(ints in proptest::collection::vec(any::<i64>(), 0..20), text in ".*") {
        let mut out = Writer::new();
        ints.iter().for_each(|&value| out.int(3, value));
        out.float(4, 1.5);
        out.message(5, |out| out.bytes(1, text.as_bytes()));
        let bytes = out.into_bytes();
        let mut found = Vec::new();
        for field in Reader::new("test", &bytes) {
            match field.map_err(|error| TestCaseError::fail(error.to_string()))? {
                (3, field) => found.push(field.int()?),
                (4, field) => prop_assert_eq!(field.float()?, 1.5),
                (5, field) => {
                    let inner = Reader::new("inner", field.bytes()?).next();
                    let expected = Field::Bytes(text.as_bytes());
                    prop_assert!(matches!(inner, Some(Ok((1, found))) if found == expected));
                }
                other => prop_assert!(false, "unexpected field {:?}", other),
            }
        }
        prop_assert_eq!(found, ints);
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
fn a_field_of_another_kind_is_an_error_that_says_so() {
    let number = Field::Varint(3);
    let text = Field::Bytes(b"abc");
    let expected = |error: crate::Error, message: &str| {
        assert!(error.to_string().contains(message), "{error}");
    };
    assert_eq!(number.int().ok(), Some(3));
    assert_eq!(text.text().ok().as_deref(), Some("abc"));
    expected(
        number.bytes().unwrap_err(),
        "expected bytes, found an integer",
    );
    expected(
        text.int().unwrap_err(),
        "expected an integer, found 3 bytes",
    );
    expected(text.float().unwrap_err(), "expected a float, found 3 bytes");
    expected(
        Field::Bytes(&[0xff]).text().unwrap_err(),
        "text in UTF-8, found 1 bytes",
    );
    expected(
        Field::Fixed64(1).int().unwrap_err(),
        "a number of eight bytes",
    );
    let mut list = Vec::new();
    assert!(read_floats(text, &mut list).is_err() && list.is_empty());
    assert!(read_ints(Field::Fixed32(1), &mut Vec::new()).is_err());
}

#[test]
fn an_integer_has_64_bits() {
    let of = |last: u8| {
        let mut bytes = vec![8];
        bytes.extend([0xff; 9]);
        bytes.push(last);
        Reader::new("test", &bytes)
            .next()
            .and_then(|field| field.ok()?.1.int().ok())
    };
    assert_eq!(of(1), Some(-1));
    assert_eq!(of(2), None);
    assert_eq!(of(0x81), None);
}

#[test]
fn fields_are_copied_as_they_are() {
    let all = [
        Field::Varint(u64::MAX),
        Field::Fixed64(0x0102_0304_0506_0708),
        Field::Bytes(b"ab"),
        // A NaN whose bits a float would not keep everywhere.
        Field::Fixed32(0x7fa0_0001),
    ];
    let mut out = Writer::new();
    for field in all {
        out.field(9, field);
    }
    let bytes = out.into_bytes();
    let read: Vec<_> = Reader::new("test", &bytes)
        .filter_map(|field| field.ok())
        .collect();
    assert_eq!(read, all.map(|field| (9, field)));
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
