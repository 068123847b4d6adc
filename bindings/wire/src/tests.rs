//! What is written is read, and bytes from anywhere are read or refused.

use proptest::prelude::*;

use crate::*;

/// The first field of a message.
fn first(bytes: &[u8]) -> Field<'_> {
    Reader::new("Test", bytes).next().unwrap().unwrap().1
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = Writer::new();
    write(&mut out);
    out.into_bytes()
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut read = Vec::new();
        for field in Reader::new("Test", &bytes) {
            match field {
                Ok((number, field)) => {
                    prop_assert!(number > 0);
                    prop_assert_eq!(number, field.number());
                    let _ = field.ints(&mut Vec::new());
                    let _ = field.floats(&mut Vec::new());
                    read.extend_from_slice(field.raw());
                }
                Err(error) => prop_assert!(error.to_string().contains("not a valid Test: ")),
            }
        }
        prop_assert!(bytes.starts_with(&read));
    }

    #[test]
    fn what_is_written_is_read(
        ints in proptest::collection::vec(any::<i64>(), 0..20), text in ".*", float: f32, double: f64,
        number in 1..=u32::MAX >> 3,
    ) {
        let bytes = written(|out| {
            ints.iter().for_each(|&value| out.int(number, value));
            out.float(1, float);
            out.double(2, double);
            out.message(3, |out| out.bytes(1, text.as_bytes()));
        });
        let mut fields = Reader::new("Test", &bytes).map(Result::unwrap);
        let mut found = Vec::new();
        for _ in &ints {
            let (at, field) = fields.next().unwrap();
            prop_assert_eq!(at, number);
            field.ints(&mut found).unwrap();
        }
        prop_assert_eq!(found, ints);
        prop_assert_eq!(fields.next().unwrap().1.float().unwrap().to_bits(), float.to_bits());
        prop_assert_eq!(fields.next().unwrap().1.value(), Value::Fixed64(double.to_bits()));
        let (_, inner) = fields.next().unwrap();
        prop_assert_eq!(first(inner.bytes().unwrap()).text().unwrap(), text);
        prop_assert!(fields.next().is_none());
    }

    #[test]
    fn packed_lists_are_read(
        ints in proptest::collection::vec(any::<i64>(), 0..20),
        floats in proptest::collection::vec(any::<u32>(), 0..20),
    ) {
        let packed = written(|out| {
            out.ints(1, &ints);
            out.floats(2, &floats.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>());
        });
        let mut fields = Reader::new("Test", &packed).map(|field| field.unwrap().1);
        let mut found = Vec::new();
        if !ints.is_empty() {
            fields.next().unwrap().ints(&mut found).unwrap();
        }
        prop_assert_eq!(found, ints);
        let mut found = Vec::new();
        if !floats.is_empty() {
            fields.next().unwrap().floats(&mut found).unwrap();
        }
        prop_assert!(fields.next().is_none());
        prop_assert_eq!(found.into_iter().map(f32::to_bits).collect::<Vec<_>>(), floats);
    }
}

#[test]
fn cut_off_messages_are_errors() {
    let bytes = written(|out| {
        out.bytes(1, b"abcdef");
        out.float(2, 1.0);
        out.double(3, 1.0);
    });
    for end in 1..bytes.len() {
        let is_whole = Reader::new("Test", &bytes[..end]).all(|field| field.is_ok());
        assert_eq!(is_whole, [8, 13].contains(&end), "cut at {end}");
    }
}

#[test]
fn nothing_is_read_after_an_error() {
    let mut reader = Reader::new("Test", &[0x0f, 1, 0x08, 1]);
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a valid Test: a field has wire type 7 at byte 1 of 4"
    );
    assert_eq!(error.message_type(), "Test");
    assert!(reader.next().is_none());
}

#[test]
fn lengths_beyond_the_message_are_errors() {
    // Field 1 of 2^64 - 1 bytes.
    let mut bytes = vec![0x0a];
    bytes.extend([0xff; 9]);
    bytes.push(1);
    let error = Reader::new("Test", &bytes).next().unwrap().unwrap_err();
    assert_eq!(
        error.into_problem(),
        "18446744073709551615 bytes are announced, 0 left at byte 11 of 11"
    );
}

#[test]
fn a_field_needs_a_number() {
    for bytes in [&[0x00, 1][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 1, 1]] {
        let error = Reader::new("Test", bytes).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("no valid number"), "{error}");
    }
}

#[test]
fn a_field_of_another_kind_is_an_error_that_says_so() {
    let number = written(|out| out.int(4, 3));
    let text = written(|out| out.bytes(5, b"abc"));
    let double = written(|out| out.double(6, 1.0));
    let problem = |error: Error| error.into_problem();
    assert_eq!(first(&number).int(), Ok(3));
    assert_eq!(first(&text).text(), Ok("abc"));
    assert_eq!(
        first(&number).bytes().map_err(problem).unwrap_err(),
        "field 4: expected bytes, found an integer"
    );
    assert_eq!(
        first(&text).int().map_err(problem).unwrap_err(),
        "field 5: expected an integer, found 3 bytes"
    );
    assert_eq!(
        first(&double).float().map_err(problem).unwrap_err(),
        "field 6: expected a float, found a number of eight bytes"
    );
    let strange = written(|out| out.bytes(5, &[0xff]));
    assert_eq!(
        first(&strange).text().map_err(problem).unwrap_err(),
        "field 5: expected text in UTF-8, found 1 bytes"
    );
    let (mut floats, mut ints) = (Vec::new(), Vec::new());
    assert!(first(&text).floats(&mut floats).is_err() && floats.is_empty());
    assert!(first(&double).ints(&mut ints).is_err() && ints.is_empty());
}

#[test]
fn an_integer_has_64_bits() {
    let of = |last: u8| {
        let mut bytes = vec![8];
        bytes.extend([0xff; 9]);
        bytes.push(last);
        let mut reader = Reader::new("Test", &bytes);
        reader.next().and_then(|field| field.ok()?.1.int().ok())
    };
    assert_eq!(of(1), Some(-1));
    assert_eq!(of(2), None);
    assert_eq!(of(0x81), None);
}

#[test]
fn fields_are_copied_as_they_are() {
    // A float is a NaN whose bits a conversion may change; an integer is longer than it need be.
    let bytes = [
        0x0d, 1, 0, 0xa0, 0x7f, 0x10, 0x81, 0x80, 0, 0x1a, 2, b'a', b'b',
    ];
    let mut out = Writer::new();
    for field in Reader::new("Test", &bytes) {
        out.raw(field.unwrap().1.raw());
    }
    assert_eq!(out.into_bytes(), bytes);
}

#[test]
fn types_are_those_of_the_c_header() {
    for (dtype, raw) in [
        (DataType::FLOAT, tfp_sys::TF_FLOAT),
        (DataType::HALF, tfp_sys::TF_HALF),
        (DataType::BFLOAT16, tfp_sys::TF_BFLOAT16),
        (DataType::BOOL, tfp_sys::TF_BOOL),
        (DataType::RESOURCE, tfp_sys::TF_RESOURCE),
        (DataType::UINT64, tfp_sys::TF_UINT64),
    ] {
        assert_eq!(dtype.raw(), raw);
        assert_eq!(DataType::from_raw(raw), dtype);
    }
}

#[test]
fn names_of_types_are_unique() {
    let mut names: Vec<_> = DataType::ALL.iter().map(ToString::to_string).collect();
    for (name, &dtype) in names.iter().zip(DataType::ALL) {
        assert_eq!(DataType::from_name(name), Some(dtype));
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), DataType::ALL.len());
}

#[test]
fn unknown_types_have_neither_name_nor_size() {
    let unknown = DataType::from_number(99);
    assert_eq!(unknown.size(), None);
    assert_eq!(unknown.to_string(), "unknown type 99");
    assert!(!unknown.is_known());
    assert_eq!(DataType::from_name("unknown"), None);
    let reference = DataType::from_number(101);
    assert_eq!(reference.base(), DataType::FLOAT);
    assert_eq!(reference.to_string(), "float32_ref");
}
