//! Op functions compute what they say, in both modes: executed one by one, and added to a graph
//! that then runs as a function.

use tfp_core::{
    Context, DataType, EagerContext, FuncRef, Function, FunctionOptions, Graph, IntoOperands,
    Operand, Result, Shape, Tensor, TensorHandle,
};
use tfp_ops::*;

/// Runs a program in both modes and hands its results to a check.
macro_rules! in_both_modes {
    ($cx:ident => $program:expr, $check:expr) => {{
        let check: fn(&[Tensor]) -> Result<()> = $check;
        let eager = EagerContext::new()?;
        let executed: Vec<TensorHandle> = {
            let $cx = &eager;
            $program
        };
        check(&tensors(&executed)?)?;
        let graph = Graph::new()?;
        let added = {
            let $cx = &graph;
            $program
        };
        let function = graph.to_function("program", &[], &added, &FunctionOptions::default())?;
        let types: Vec<DataType> = added.iter().map(|output| output.dtype()).collect();
        for nested in graph.functions()? {
            eager.add_function(&nested)?;
        }
        let options = PartitionedCallOptions::default();
        let ran = partitioned_call(&eager, (), &types, &function, options)?;
        check(&tensors(&ran)?)
    }};
}

fn tensors(handles: &[TensorHandle]) -> Result<Vec<Tensor>> {
    handles.iter().map(TensorHandle::to_tensor).collect()
}

#[test]
fn literals_take_the_type_of_the_other_operand() -> Result<()> {
    in_both_modes!(
        cx => {
            let x = cx.constant(&Tensor::from_array([1.0_f32, 2.0])?)?;
            let y = add_v2(cx, &x, 1.0)?;
            let half = cast(cx, &y, DataType::HALF, CastOptions::default())?;
            vec![mul(cx, 2, &y)?, cast(cx, mul(cx, half, 2.0)?, DataType::DOUBLE, CastOptions::default())?]
        },
        |out| {
            assert_eq!(out[0].as_slice::<f32>()?, [4.0, 6.0]);
            assert_eq!(out[1].as_slice::<f64>()?, [4.0, 6.0]);
            Ok(())
        }
    )
}

#[test]
fn lists_go_in_and_come_out() -> Result<()> {
    in_both_modes!(
        cx => {
            let x = cx.constant(&Tensor::from_array([[1_i32, 2], [3, 4]])?)?;
            let mut out = split(cx, 1, &x, 2)?;
            out.push(concat_v2(cx, (&x, [[5, 6]]), 0)?);
            out.push(concat_v2(cx, &[out[0].clone(), out[1].clone()], 1)?);
            let mixed = identity_n(cx, (&x, 1.5_f64, "text"))?;
            assert_eq!(mixed.len(), 3);
            out.extend(mixed);
            out
        },
        |out| {
            assert_eq!(out[0].as_slice::<i32>()?, [1, 3]);
            assert_eq!(out[1].as_slice::<i32>()?, [2, 4]);
            assert_eq!(out[2].as_slice::<i32>()?, [1, 2, 3, 4, 5, 6]);
            assert_eq!(out[3].as_slice::<i32>()?, [1, 2, 3, 4]);
            assert_eq!(out[4].as_slice::<i32>()?, [1, 2, 3, 4]);
            assert_eq!(out[5].to_scalar::<f64>()?, 1.5);
            assert_eq!(out[6].as_strings()?, [b"text"]);
            Ok(())
        }
    )
}

#[test]
fn several_outputs_have_names() -> Result<()> {
    in_both_modes!(
        cx => {
            let options = TopKV2Options { index_type: Some(DataType::INT64), ..Default::default() };
            let top = top_kv2(cx, [0.5_f32, 2.5, 1.5], 2, options)?;
            let found = unique_with_counts(cx, [7_i32, 8, 7], Default::default())?;
            vec![top.values, top.indices, found.y, found.idx, found.count]
        },
        |out| {
            assert_eq!(out[0].as_slice::<f32>()?, [2.5, 1.5]);
            assert_eq!(out[1].as_slice::<i64>()?, [1, 2]);
            assert_eq!(out[2].as_slice::<i32>()?, [7, 8]);
            assert_eq!(out[3].as_slice::<i32>()?, [0, 1, 0]);
            assert_eq!(out[4].as_slice::<i32>()?, [2, 1]);
            Ok(())
        }
    )
}

#[test]
fn strings_of_an_attribute_are_enums() -> Result<()> {
    in_both_modes!(
        cx => {
            let image = [[[[1.0_f32], [2.0]], [[3.0], [4.0]]]];
            let filter = [[[[1.0_f32]], [[1.0]]], [[[1.0]], [[1.0]]]];
            let strides = &[1, 1, 1, 1];
            let options = Conv2DOptions {
                data_format: Some(DataFormat::Nhwc),
                ..Default::default()
            };
            vec![
                conv2d(cx, image, filter, strides, Padding::Valid, options)?,
                conv2d(cx, image, filter, strides, PaddingOrExplicit::Same, options)?,
                conv2d(
                    cx,
                    image,
                    filter,
                    strides,
                    PaddingOrExplicit::Explicit,
                    Conv2DOptions {
                        explicit_paddings: Some(&[0, 0, 1, 0, 1, 0, 0, 0]),
                        ..options
                    },
                )?,
                mirror_pad(cx, [1_i32, 2, 3], [[1, 1]], MirrorPadMode::Reflect)?,
            ]
        },
        |out| {
            assert_eq!(out[0].as_slice::<f32>()?, [10.0]);
            assert_eq!(out[1].as_slice::<f32>()?, [10.0, 6.0, 7.0, 4.0]);
            assert_eq!(out[2].as_slice::<f32>()?, [1.0, 3.0, 4.0, 10.0]);
            assert_eq!(out[3].as_slice::<i32>()?, [2, 1, 2, 3, 2]);
            Ok(())
        }
    )
}

#[test]
fn texts_and_bytes() -> Result<()> {
    in_both_modes!(
        cx => {
            let options = StringJoinOptions { separator: Some("-".into()) };
            let joined = string_join(cx, ("a", "b"), options)?;
            let encoded = decode_base64(cx, "_w")?;
            vec![
                regex_full_match(cx, &joined, "a.b")?,
                joined,
                decode_raw(cx, encoded, DataType::UINT8, Default::default())?,
                as_string(cx, 7_i32, AsStringOptions { width: Some(3), ..Default::default() })?,
            ]
        },
        |out| {
            assert!(out[0].to_scalar::<bool>()?);
            assert_eq!(out[1].as_strings()?, [b"a-b"]);
            assert_eq!(out[2].as_slice::<u8>()?, [255]);
            assert_eq!(out[3].as_strings()?, [b"  7"]);
            Ok(())
        }
    )
}

/// A function that adds a number to its argument.
fn adder(name: &str, number: f32) -> Result<Function> {
    let graph = Graph::new()?;
    let x = placeholder(&graph, DataType::FLOAT, PlaceholderOptions::default())?;
    let y = add_v2(&graph, &x, number)?;
    graph.to_function(name, &[x], &[y], &FunctionOptions::default())
}

#[test]
fn functions_are_attributes() -> Result<()> {
    let (one, ten) = (adder("add_one", 1.0)?, adder("add_ten", 10.0)?);
    let float = &[DataType::FLOAT];
    in_both_modes!(
        cx => {
            let branches: [FuncRef<'_>; 2] = [(&one).into(), (&ten).into()];
            let mut out = Vec::new();
            for condition in [true, false] {
                let options = StatelessIfOptions::default();
                out.extend(stateless_if(cx, condition, (1.0_f32,), float, &one, &ten, options)?);
            }
            out.extend(stateless_case(cx, 1, (2.0_f32,), float, &branches, Default::default())?);
            out.extend(partitioned_call(cx, (3.0_f32,), float, "add_one", Default::default())?);
            out
        },
        |out| {
            let values: Result<Vec<f32>> = out.iter().map(|tensor| tensor.to_scalar()).collect();
            assert_eq!(values?, [2.0, 11.0, 12.0, 4.0]);
            Ok(())
        }
    )
}

#[test]
fn tensors_types_and_shapes_are_attributes() -> Result<()> {
    let tensor = Tensor::from_array([[1_i64, 2, 3]])?;
    in_both_modes!(
        cx => {
            let x = r#const(cx, &tensor, DataType::INT64)?;
            let zero = arg_max(cx, &x, 1, ArgMaxOptions { output_type: Some(DataType::INT32) })?;
            vec![
                ensure_shape(cx, &x, &[-1, 3].into())?,
                zero,
                r#where(cx, [true, false, true])?,
                einsum(cx, ([[1.0_f32, 2.0]], [[3.0_f32], [4.0]]), "ij,jk->ik")?,
            ]
        },
        |out| {
            assert_eq!(out[0].as_slice::<i64>()?, [1, 2, 3]);
            assert_eq!(out[1].as_slice::<i32>()?, [2]);
            assert_eq!(out[2].as_slice::<i64>()?, [0, 2]);
            assert_eq!(out[3].as_slice::<f32>()?, [11.0]);
            Ok(())
        }
    )
}

#[test]
fn lists_are_attributes() -> Result<()> {
    in_both_modes!(
        cx => {
            let shapes = &[Shape::scalar(), [2].into()];
            let parsed = parse_single_example(
                cx,
                "",
                (7.5_f32, [1_i64, 2]),
                0,
                &[],
                &["a", "b"],
                &[],
                shapes,
            )?;
            let mut out = parsed.dense_values;
            let strides = &[1, 2, 2, 1];
            let image = [[[[1.0_f32], [2.0]], [[3.0], [4.0]]]];
            let format = MaxPoolOptions { data_format: Some(DataFormatVectC::Nhwc), ..Default::default() };
            out.push(max_pool(cx, image, strides, strides, Padding::Valid, format)?);
            out.push(bucketize(cx, [0.5_f32, 5.0], &[1.0, 2.0])?);
            out
        },
        |out| {
            assert_eq!(out[0].to_scalar::<f32>()?, 7.5);
            assert_eq!(out[1].as_slice::<i64>()?, [1, 2]);
            assert_eq!(out[2].as_slice::<f32>()?, [4.0]);
            assert_eq!(out[3].as_slice::<i32>()?, [0, 2]);
            Ok(())
        }
    )
}

#[test]
fn stateful_ops_in_eager_mode() -> Result<()> {
    let cx = &EagerContext::new()?;
    let types = &[DataType::INT32, DataType::STRING];
    let queue = fifo_queue_v2(cx, types, FIFOQueueV2Options::default())?;
    queue_enqueue_v2(cx, &queue, (5, "five"), Default::default())?;
    let out = queue_dequeue_v2(cx, &queue, types, Default::default())?;
    assert_eq!(out[0].to_tensor()?.to_scalar::<i32>()?, 5);
    assert_eq!(out[1].to_tensor()?.as_strings()?, [b"five"]);
    let options = VarHandleOpOptions {
        shared_name: Some("v".into()),
        ..Default::default()
    };
    let variable = var_handle_op(cx, DataType::FLOAT, &[2].into(), options)?;
    assign_variable_op(cx, &variable, [1.0_f32, 2.0], Default::default())?;
    assign_add_variable_op(cx, &variable, [0.5_f32, 0.5])?;
    let value = read_variable_op(cx, &variable, DataType::FLOAT)?.to_tensor()?;
    assert_eq!(value.as_slice::<f32>()?, [1.5, 2.5]);
    no_op(cx)
}

/// Asserts that a call is refused with a text that has all the parts.
#[track_caller]
fn refused<T>(result: Result<T>, parts: &[&str]) {
    let message = result
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    for part in parts {
        assert!(message.contains(part), "{message:?} does not say {part:?}");
    }
}

fn refused_in<C: Context>(cx: &C) -> Result<()> {
    let floats = cx.constant(&Tensor::from_array([1.0_f32])?)?;
    let ints = cx.constant(&Tensor::from_array([1_i32])?)?;
    refused(
        bitwise_and(cx, &floats, &floats),
        &["BitwiseAnd", "T", "float32", "int32"],
    );
    refused(add_v2(cx, &floats, &ints), &["AddV2", "float32", "int32"]);
    refused(concat_v2(cx, (&floats,), 0), &["ConcatV2", "N", "2"]);
    refused(split(cx, 0, &floats, 0), &["Split", "num_split", "1"]);
    refused(identity_n(cx, no_operands::<C>()), &["IdentityN", "T", "1"]);
    let to = DataType::RESOURCE;
    refused(
        range_dataset(cx, 0, 1, 1, &[to], &[], Default::default()),
        &["RangeDataset"],
    );
    Ok(())
}

fn no_operands<'a, C: Context>() -> impl IntoOperands<'a, C::Value> {
    Vec::<Operand<'a, C::Value>>::new()
}

#[test]
fn what_a_definition_rules_out_is_refused_by_name() -> Result<()> {
    refused_in(&EagerContext::new()?)?;
    refused_in(&Graph::new()?)
}

#[test]
fn every_op_is_described() {
    let described: usize = modules().iter().map(|(_, ops)| ops.len()).sum();
    assert_eq!(described, OP_COUNT);
}
