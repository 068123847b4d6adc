//! Tensors of every element type, and who owns their memory.

use tfp_core::*;

use crate::support::refused;

/// Sends elements through a tensor and an eager op and back.
fn round_trip<T: Element + std::fmt::Debug>(elements: &[T]) -> Result<()> {
    let dims = [elements.len() as i64, 1];
    let tensor = Tensor::from_slice(elements, &dims)?;
    assert_eq!(tensor.dtype(), T::DTYPE);
    assert_eq!(tensor.dims(), dims);
    assert_eq!(tensor.as_slice::<T>()?, elements);
    let ctx = EagerContext::new()?;
    let same = OpBuilder::new("Identity")?.input(&tensor).one(&ctx)?;
    assert_eq!(same.to_tensor()?.as_slice::<T>()?, elements);
    Ok(())
}

/// As [`round_trip`], for types that came after TensorFlow 2.18: a version that lacks one says so.
fn round_trip_of_later<T: Element + std::fmt::Debug>(elements: &[T]) -> Result<()> {
    let lacks = |error: &Error| {
        error.code() == Code::InvalidArgument && error.to_string().contains("invalid DataType")
    };
    let found = version()?;
    let is_before = ["2.18.", "2.19.", "2.20."]
        .iter()
        .any(|version| found.starts_with(version));
    match round_trip(elements) {
        Err(error) if is_before && lacks(&error) => Ok(()),
        done => done,
    }
}

#[test]
fn every_element_type_goes_through_tensorflow() -> Result<()> {
    round_trip(&[1.5_f32, -0.0, f32::INFINITY])?;
    round_trip(&[1.5_f64, f64::MIN_POSITIVE])?;
    round_trip(&[i8::MIN, i8::MAX])?;
    round_trip(&[i16::MIN, i16::MAX])?;
    round_trip(&[i32::MIN, i32::MAX])?;
    round_trip(&[i64::MIN, i64::MAX])?;
    round_trip(&[u8::MAX, 1])?;
    round_trip(&[u16::MAX, 1])?;
    round_trip(&[u32::MAX, 1])?;
    round_trip(&[u64::MAX, 1])?;
    round_trip(&[true, false, true])?;
    round_trip(&[Half::from_f32(0.5)])?;
    round_trip(&[BFloat16::from_f32(0.5)])?;
    round_trip(&[Complex::new(1.0_f32, -2.0)])?;
    round_trip(&[Complex::new(1.0_f64, -2.0)])?;
    round_trip(&[Float8E5M2(0x3c)])?;
    round_trip(&[Float8E4M3Fn(0x38)])?;
    round_trip_of_later(&[Float8E4M3FnUz(0x38)])?;
    round_trip_of_later(&[Float8E4M3B11FnUz(0x38)])?;
    round_trip_of_later(&[Float8E5M2FnUz(0x3c)])?;
    round_trip_of_later(&[Float4E2M1Fn(0x3)])?;
    round_trip(&[Int4(7), Int4(0)])?;
    round_trip(&[UInt4(15)])?;
    round_trip_of_later(&[Int2(1)])?;
    round_trip_of_later(&[UInt2(3)])?;
    round_trip(&[QInt8(-5)])?;
    round_trip(&[QUInt8(5)])?;
    round_trip(&[QInt16(-5)])?;
    round_trip(&[QUInt16(5)])?;
    round_trip(&[QInt32(-5)])
}

#[test]
fn strings_are_bytes_of_any_length() -> Result<()> {
    let long = vec![0xff_u8; 100_000];
    let strings: Vec<&[u8]> = vec![b"", b"short", b"\0\xfe\0", &[7; 22], &[8; 23], &long];
    let tensor = Tensor::from_strings(&strings, &[2, 3])?;
    assert_eq!(tensor.as_strings()?, strings);
    let ctx = EagerContext::new()?;
    let handle = ctx.handle(&tensor)?;
    drop(tensor);
    let joined = OpBuilder::new("Identity")?
        .input(&handle)
        .one(&ctx)?
        .to_tensor()?;
    assert_eq!(joined.as_strings()?, strings);
    assert_eq!(joined.deep_copy()?.reshaped(&[6])?.as_strings()?, strings);
    assert_eq!(
        Tensor::zeros(DataType::STRING, &[3])?.as_strings()?,
        [b""; 3]
    );
    refused(joined.as_slice::<u8>(), &["expected uint8", "string"]);
    refused(
        Tensor::scalar(1.0_f32)?.as_strings(),
        &["expected string", "float32"],
    );
    Ok(())
}

#[test]
fn aligned_memory_is_taken_without_a_copy() -> Result<()> {
    let mut buffer = Buffer::<f32>::new(1000)?;
    buffer
        .iter_mut()
        .enumerate()
        .for_each(|(index, value)| *value = index as f32);
    let address = buffer.as_ptr();
    assert!(address.addr().is_multiple_of(ALIGNMENT));
    let tensor = Tensor::from_buffer(buffer, &[10, 100])?;
    assert_eq!(tensor.as_slice::<f32>()?.as_ptr(), address);
    let ctx = EagerContext::new()?;
    let out = ctx.handle(&tensor)?.to_tensor()?;
    assert_eq!(out.as_slice::<f32>()?.as_ptr(), address);
    let graph = Graph::new()?;
    let x = graph
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::unknown())?;
    let same = OpBuilder::new("Identity")?.input(&x).one(&graph)?;
    let session = Session::new(&graph)?;
    let fetched = session.eval(&[(&x, &tensor)], &[&same])?;
    assert_eq!(fetched[0].as_slice::<f32>()?.as_ptr(), address);
    Ok(())
}

#[test]
fn a_vector_is_freed_once_whatever_its_alignment() -> Result<()> {
    for length in [0, 1, 16, 100_000] {
        for _ in 0..8 {
            let tensor = Tensor::from_vec(vec![1_u8; length], &[length as i64])?;
            assert!(tensor.as_slice::<u8>()?.iter().all(|&value| value == 1));
        }
    }
    refused(
        Tensor::from_vec(vec![1_u8; 64], &[63]),
        &["64 elements", "[63]"],
    );
    Ok(())
}

#[test]
fn writing_never_changes_memory_that_tensorflow_shares() -> Result<()> {
    let mut tensor = Tensor::from_array([1.0_f32, 2.0])?;
    let before = tensor.as_slice::<f32>()?.as_ptr();
    tensor.as_mut_slice::<f32>()?[0] = 5.0;
    assert_eq!(
        tensor.as_slice::<f32>()?.as_ptr(),
        before,
        "unique memory is written in place"
    );
    let ctx = EagerContext::new()?;
    let handle = ctx.handle(&tensor)?;
    let view = tensor.reshaped(&[2, 1])?;
    tensor.as_mut_slice::<f32>()?[0] = 7.0;
    assert_eq!(tensor.as_slice::<f32>()?, [7.0, 2.0]);
    assert_eq!(handle.to_tensor()?.as_slice::<f32>()?, [5.0, 2.0]);
    assert_eq!(view.as_slice::<f32>()?, [5.0, 2.0]);
    Ok(())
}

#[test]
fn bad_sizes_are_refused() -> Result<()> {
    refused(Tensor::from_slice(&[1, 2, 3], &[2]), &["3 elements", "[2]"]);
    refused(Tensor::from_slice::<i32>(&[], &[-1]), &["not negative"]);
    refused(Tensor::zeros(DataType::FLOAT, &[i64::MAX, 2]), &["63 bits"]);
    refused(
        Tensor::zeros(DataType::FLOAT, &[i64::MAX / 2]),
        &["overflow"],
    );
    // TensorFlow multiplies before it comes to the zero.
    let too_large = [i64::MAX, i64::MAX, 0];
    let none = Tensor::from_slice::<f32>(&[], &[0])?;
    refused(Tensor::zeros(DataType::FLOAT, &too_large), &["63 bits"]);
    refused(Tensor::zeros(DataType::STRING, &too_large), &["63 bits"]);
    refused(Tensor::from_vec::<f32>(vec![], &too_large), &["63 bits"]);
    refused(Tensor::from_strings::<&str>(&[], &too_large), &["63 bits"]);
    refused(none.reshaped(&too_large), &["63 bits"]);
    refused(none.bitcast(DataType::INT32, &too_large), &["63 bits"]);
    assert!(none.reshaped(&[0, i64::MAX, i64::MAX])?.is_empty());
    refused(Tensor::zeros(DataType::RESOURCE, &[]), &["resource"]);
    refused(
        Tensor::zeros(DataType::FLOAT.to_ref(), &[]),
        &["float32_ref"],
    );
    refused(Tensor::zeros(DataType::from_number(77), &[]), &["unknown"]);
    refused(
        Tensor::from_bytes(DataType::INT32, &[1, 2, 3], &[1]),
        &["3 bytes", "expected 4"],
    );
    refused(Tensor::from_slice(&[1_u8], &[1; 300]), &["300 dimensions"]);
    refused(Buffer::<f64>::new(usize::MAX / 4), &["overflow"]);
    let bytes = Tensor::from_bytes(DataType::BOOL, &[0, 1, 2], &[3])?;
    refused(bytes.as_slice::<bool>(), &["bool", "no value"]);
    let floats = Tensor::from_array([1.0_f32; 4])?;
    refused(
        floats.bitcast(DataType::DOUBLE, &[4]),
        &["16 bytes", "32 bytes"],
    );
    assert_eq!(
        floats
            .bitcast(DataType::UINT8, &[16])?
            .as_slice::<u8>()?
            .len(),
        16
    );
    refused(floats.to_scalar::<f32>(), &["one element"]);
    assert_eq!(
        Tensor::from_slice::<f32>(&[], &[0, 3])?.as_slice::<f32>()?,
        [0.0; 0]
    );
    Ok(())
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    let large = 1_i64 << 50;
    let exhausted = |error: Error| assert_eq!(error.code(), Code::ResourceExhausted);
    exhausted(refused(
        Tensor::zeros(DataType::FLOAT, &[large]),
        &["4503599627370496 bytes", "float32"],
    ));
    exhausted(refused(
        Tensor::zeros(DataType::STRING, &[large]),
        &["no memory"],
    ));
    exhausted(refused(
        Buffer::<u8>::new(1 << 50),
        &["no memory", "1125899906842624 elements"],
    ));
}

#[test]
fn tensors_are_shown_with_their_elements() -> Result<()> {
    let shown = |tensor: Result<Tensor>| tensor.map(|tensor| tensor.to_string());
    assert_eq!(shown(Tensor::scalar(1.5_f32))?, "1.5");
    assert_eq!(shown(Tensor::from_array([1_u8, 2]))?, "[1, 2]");
    assert_eq!(shown(Tensor::zeros(DataType::INT32, &[0]))?, "[]");
    let cube = Tensor::from_array([[[1.0_f64, f64::NAN]], [[-2.5, 1e30]]]);
    assert_eq!(shown(cube)?, "[[[1.0, NaN]],\n\n [[-2.5, 1e30]]]");
    let halves = Tensor::from_array([Half::from_f32(0.5)]);
    assert_eq!(shown(halves)?, "[0.5]");
    let complex = Tensor::scalar(Complex::new(1.0_f32, -2.0));
    assert_eq!(shown(complex)?, "(1.0, -2.0)");
    assert_eq!(shown(Tensor::from_array([true, false]))?, "[true, false]");
    let strings = Tensor::from_strings(&[&b"a\0\"\xff"[..]], &[1]);
    assert_eq!(shown(strings)?, "[\"a\\x00\\\"\\xff\"]");
    let many = Tensor::from_slice(&(0..2000).collect::<Vec<i32>>(), &[2, 1000]);
    assert_eq!(
        shown(many)?,
        "[[0, 1, 2, ..., 997, 998, 999],\n [1000, 1001, 1002, ..., 1997, 1998, 1999]]"
    );
    let tall = Tensor::zeros(DataType::BOOL, &[1001, 1]);
    assert_eq!(shown(tall)?.lines().count(), 7);
    let whole = Tensor::zeros(DataType::INT8, &[1000]);
    assert_eq!(shown(whole)?, format!("{:?}", [0_i8; 1000]));
    let small = Tensor::from_slice(&[Int4(1)], &[1]);
    assert_eq!(shown(small)?, "Tensor(int4 [1])");
    let empty = Tensor::from_slice::<f32>(&[], &[0, i64::MAX, i64::MAX]);
    assert!(shown(empty)?.starts_with("Tensor(float32 [0,"));
    Ok(())
}

#[test]
fn a_tensor_is_debugged_on_one_line() -> Result<()> {
    let square = Tensor::from_array([[1.0_f32, 2.0], [3.0, f32::NAN]])?;
    assert_eq!(
        format!("{square:?}"),
        "Tensor(float32 [2,2] [1.0, 2.0, 3.0, NaN])"
    );
    let many = Tensor::from_slice(&(0..2000).collect::<Vec<i32>>(), &[2, 1000])?;
    let expected = "Tensor(int32 [2,1000] [0, 1, 2, ..., 1997, 1998, 1999])";
    assert_eq!(format!("{many:?}"), expected);
    let words = Tensor::from_strings(&["a\n"], &[1])?;
    assert_eq!(format!("{words:?}"), r#"Tensor(string [1] ["a\n"])"#);
    assert_eq!(
        format!("{:?}", Tensor::scalar(true)?),
        "Tensor(bool [] true)"
    );
    assert_eq!(
        format!("{:?}", Tensor::zeros(DataType::FLOAT, &[0])?),
        "Tensor(float32 [0])"
    );
    assert_eq!(
        format!("{:?}", Tensor::from_slice(&[Int4(1)], &[1])?),
        "Tensor(int4 [1])"
    );
    Ok(())
}
