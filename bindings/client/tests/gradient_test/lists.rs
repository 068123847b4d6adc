//! Gradients of lists of tensors and of rows of variables; every gradient function has a test.

use tfp::{
    AnyContext, AnyValue, Context, DataType, EagerContext, Graph, Mode, Result, Session, Shape,
    Tape, Tensor, ops,
};

use crate::fixture;
use crate::support::distance;
use crate::variants;

pub type Program = fn(&AnyContext, &AnyValue) -> Result<AnyValue>;

/// The point at which programs are differentiated.
const X: [[f64; 3]; 2] = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]];

fn shape_of(cx: &AnyContext, dims: &[i32]) -> Result<AnyValue> {
    cx.constant(&Tensor::from_slice(dims, &[dims.len() as i64])?)
}

/// The rows of x on a list, the second one twice.
fn rows(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    let parts = ops::unpack(cx, x, 2, Default::default())?;
    let shape = shape_of(cx, &[3])?;
    let list = ops::empty_tensor_list(cx, &shape, 10, DataType::DOUBLE)?;
    let list = ops::tensor_list_push_back(cx, &list, &parts[0])?;
    let list = ops::tensor_list_push_back(cx, &list, &parts[1])?;
    ops::tensor_list_push_back(cx, &list, &parts[1])
}

pub fn total(cx: &AnyContext, value: &AnyValue) -> Result<AnyValue> {
    let squared = ops::mul(cx, ops::square(cx, value)?, value)?;
    let flat = ops::reshape(cx, squared, [-1])?;
    ops::sum(cx, flat, [0], Default::default())
}

fn stacked(cx: &AnyContext, list: &AnyValue) -> Result<AnyValue> {
    let shape = shape_of(cx, &[3])?;
    let stack = ops::tensor_list_stack(cx, list, shape, DataType::DOUBLE, Default::default())?;
    total(cx, &stack)
}

static PROGRAMS: &[(&str, Program)] = &[
    ("push and stack", |cx, x| stacked(cx, &rows(cx, x)?)),
    ("pop", |cx, x| {
        let shape = shape_of(cx, &[3])?;
        let popped = ops::tensor_list_pop_back(cx, rows(cx, x)?, shape, DataType::DOUBLE)?;
        let rest = stacked(cx, &popped.output_handle)?;
        ops::mul(cx, rest, total(cx, &popped.tensor)?)
    }),
    ("get and set", |cx, x| {
        let list = rows(cx, x)?;
        let shape = shape_of(cx, &[3])?;
        let item = ops::tensor_list_get_item(cx, &list, 0, shape, DataType::DOUBLE)?;
        let item = ops::square(cx, &item)?;
        let list = ops::tensor_list_set_item(cx, &list, 1, item, Default::default())?;
        stacked(cx, &list)
    }),
    ("from a tensor", |cx, x| {
        let shape = shape_of(cx, &[3])?;
        stacked(cx, &ops::tensor_list_from_tensor(cx, x, shape)?)
    }),
    ("resize", |cx, x| {
        stacked(cx, &ops::tensor_list_resize(cx, rows(cx, x)?, 2)?)
    }),
    ("gather", |cx, x| {
        let shape = shape_of(cx, &[3])?;
        let list = rows(cx, x)?;
        let found = ops::tensor_list_gather(cx, &list, [2, 0], shape, DataType::DOUBLE)?;
        total(cx, &found)
    }),
    ("scatter", |cx, x| {
        let shape = shape_of(cx, &[3])?;
        stacked(cx, &ops::tensor_list_scatter(cx, x, [1, 0], shape)?)
    }),
    ("scatter to a length", |cx, x| {
        let shape = shape_of(cx, &[3])?;
        stacked(cx, &ops::tensor_list_scatter_v2(cx, x, [1, 0], shape, 2)?)
    }),
    ("concat", |cx, x| {
        let shape = Shape::new(&[3]);
        let options = ops::TensorListConcatOptions {
            element_shape: Some(&shape),
        };
        let joined = ops::tensor_list_concat(cx, rows(cx, x)?, DataType::DOUBLE, options)?;
        total(cx, &joined.tensor)
    }),
    ("concat of a shape", |cx, x| {
        let shape = shape_of(cx, &[3])?;
        let none = cx.constant(&Tensor::from_slice::<i64>(&[], &[0])?)?;
        let list = rows(cx, x)?;
        let joined = ops::tensor_list_concat_v2(cx, &list, shape, none, DataType::DOUBLE)?;
        total(cx, &joined.tensor)
    }),
    ("scatter into a list", |cx, x| {
        let (list, square) = (rows(cx, x)?, ops::square(cx, x)?);
        stacked(
            cx,
            &ops::tensor_list_scatter_into_existing_list(cx, list, square, [2, 0])?,
        )
    }),
    ("split", |cx, x| {
        let shape = shape_of(cx, &[-1, 3])?;
        let list = ops::tensor_list_split(cx, x, shape, [1_i64, 1])?;
        let shape = shape_of(cx, &[1, 3])?;
        let item = ops::tensor_list_get_item(cx, &list, 1, shape, DataType::DOUBLE)?;
        total(cx, &item)
    }),
];

fn value_at(eager: &EagerContext, program: Program, x: &[f64]) -> Result<f64> {
    let x = eager.handle(&Tensor::from_slice(x, &[2, 3])?)?;
    let y = program(&eager.any(), &x.into())?;
    y.handle()?.to_tensor()?.to_scalar()
}

fn check(name: &str, program: Program) -> Result<f64> {
    let eager = EagerContext::new()?;
    let flat: Vec<f64> = X.iter().flatten().copied().collect();
    let slopes: Vec<f64> = (0..flat.len())
        .map(|index| {
            let moved = |step: f64| {
                let mut x = flat.clone();
                x[index] += step;
                value_at(&eager, program, &x)
            };
            Ok((moved(1e-5)? - moved(-1e-5)?) / 2e-5)
        })
        .collect::<Result<_>>()?;
    let x = eager.handle(&Tensor::from_array(X)?)?;
    let tape = Tape::new(&eager);
    tape.watch(&x)?;
    let y = program(&tape.any(), &(&x).into())?;
    let on_tape = tape.gradient(y.handle()?, &x)?.to_tensor()?;
    let graph = Graph::new()?;
    let input = graph
        .scope()
        .placeholder("x", DataType::DOUBLE, &Shape::new(&[2, 3]))?;
    let any = graph.any();
    let y = program(&any, &(&input).into())?;
    let found = tfp::gradients(&any, &[y], &[(&input).into()])?
        .remove(0)
        .expect("a gradient");
    let session = Session::new(&graph)?;
    let at = Tensor::from_array(X)?;
    let in_graph = session
        .eval(&[(&input, &at)], &[found.output()?])?
        .remove(0);
    let a = distance(on_tape.as_slice::<f64>()?, &slopes);
    let b = distance(in_graph.as_slice::<f64>()?, &slopes);
    let python = distance(in_graph.as_slice::<f64>()?, &fixture::program(name));
    // A slope has rounding errors that gradients do not have.
    Ok(a.max(b).max(python * 100.0))
}

#[test]
fn lists_have_the_gradients_of_their_slopes() {
    let mut problems = Vec::new();
    for (name, program) in PROGRAMS.iter().chain(variants::PROGRAMS) {
        match check(name, *program) {
            Ok(distance) if distance < 1e-8 => {}
            Ok(distance) => problems.push(format!("{name}: {distance:.2e} away")),
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn rows_of_a_variable_have_gradients() -> Result<()> {
    let eager = EagerContext::new()?;
    let shape = Shape::new(&[3, 2]);
    let options = ops::VarHandleOpOptions {
        shared_name: Some(tfp::Bytes::new("table")),
        ..Default::default()
    };
    let table = ops::var_handle_op(&eager, DataType::FLOAT, &shape, options)?;
    let values = [[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
    ops::assign_variable_op(&eager, &table, values, Default::default())?;
    let tape = Tape::new(&eager);
    let rows = ops::resource_gather(&tape, &table, [2, 2], DataType::FLOAT, Default::default())?;
    let y = ops::sum(&tape, ops::square(&tape, rows)?, [0, 1], Default::default())?;
    let found = tape.gradient(&y, &table)?.to_tensor()?;
    assert_eq!(found.as_slice::<f32>()?, [0.0, 0.0, 0.0, 0.0, 20.0, 24.0]);
    let items = ops::resource_gather_nd(&tape, &table, [[1, 0]], DataType::FLOAT)?;
    let found = tape
        .gradient(&ops::square(&tape, items)?, &table)?
        .to_tensor()?;
    assert_eq!(found.as_slice::<f32>()?, [0.0, 0.0, 6.0, 0.0, 0.0, 0.0]);
    Ok(())
}

/// Gradient functions that no case of the fixture calls, and the test that does.
const ELSEWHERE: &[(&str, &str)] = &[
    ("CSRSparseMatrixToDense", "variants.rs"),
    ("CSRSparseMatrixToSparseTensor", "variants.rs"),
    ("Case", "calls.rs"),
    ("DenseToCSRSparseMatrix", "variants.rs"),
    ("If", "calls.rs"),
    ("OptionalFromValue", "variants.rs"),
    ("OptionalGetValue", "variants.rs"),
    ("PartitionedCall", "calls.rs"),
    ("PreventGradient", "its gradient is an error: below"),
    ("RaggedTensorFromVariant", "variants.rs"),
    ("RaggedTensorToVariant", "variants.rs"),
    ("ReadVariableOp", "api.rs"),
    ("ResourceGather", "above"),
    ("ResourceGatherNd", "above"),
    ("SparseMatrixMatMul", "variants.rs"),
    ("SparseMatrixSparseMatMul", "variants.rs"),
    ("SparseMatrixTranspose", "variants.rs"),
    ("SparseTensorToCSRSparseMatrix", "variants.rs"),
    ("StatefulPartitionedCall", "calls.rs"),
    ("StatelessCase", "calls.rs"),
    ("StatelessIf", "calls.rs"),
    ("StatelessWhile", "calls.rs"),
    ("TensorListConcat", "above"),
    ("TensorListConcatV2", "above"),
    ("TensorListFromTensor", "above"),
    ("TensorListGather", "above"),
    ("TensorListGetItem", "above"),
    ("TensorListPopBack", "above"),
    ("TensorListPushBack", "above"),
    ("TensorListResize", "above"),
    ("TensorListScatter", "above"),
    ("TensorListScatterIntoExistingList", "above"),
    ("TensorListScatterV2", "above"),
    ("TensorListSetItem", "above"),
    ("TensorListSplit", "above"),
    ("TensorListStack", "above"),
    ("While", "calls.rs"),
];

/// Gradients that can't be compared with a slope.
const WITHOUT_SLOPE: &[(&str, &str)] = &[
    (
        "CTCLossV2",
        "no kernel on CPUs; CTCLoss, whose function it has, has a slope",
    ),
    (
        "FakeQuantWithMinMaxArgs",
        "a step function: the gradient goes straight through",
    ),
    (
        "FakeQuantWithMinMaxVars",
        "a step function: the gradient goes straight through",
    ),
    (
        "FakeQuantWithMinMaxVarsPerChannel",
        "a step function: the gradient goes straight through",
    ),
    (
        "ImageProjectiveTransformV2",
        "Python's function transforms by the inverse, which is not the slope",
    ),
    (
        "ImageProjectiveTransformV3",
        "Python's function transforms by the inverse, which is not the slope",
    ),
    (
        "QuantizeAndDequantize",
        "a step function: the gradient goes straight through",
    ),
    (
        "QuantizeAndDequantizeV2",
        "a step function: the gradient goes straight through",
    ),
    (
        "QuantizeAndDequantizeV3",
        "a step function: the gradient goes straight through",
    ),
    (
        "QuantizeAndDequantizeV4",
        "a step function: the gradient goes straight through, within the range",
    ),
    ("RandomGamma", "samples are found by rejection, which jumps"),
    (
        "StatelessRandomGammaV2",
        "samples are found by rejection, which jumps",
    ),
    (
        "StatelessRandomGammaV3",
        "samples are found by rejection, which jumps",
    ),
    (
        "TopK",
        "its kernel asks for an attribute that the op has not; TopKV2 has its function and a slope",
    ),
];

/// Gradients that Python does not have; each is compared with its slope.
const NOT_IN_PYTHON: &[(&str, &str)] = &[
    (
        "BlockLSTMV2",
        "Python calls the function of the first version, whose gates are in another order",
    ),
    ("IRFFT3D", "is not in Python's registry"),
    ("RFFT3D", "is not in Python's registry"),
    ("Snapshot", "is not in Python's registry"),
    ("SparseConcat", "no gradient flows through it in Python"),
    ("SparseDenseCwiseAdd", "Python's function raises an error"),
];

#[test]
fn every_gradient_function_is_tested() -> Result<()> {
    let cases = fixture::read()?;
    let ops = tfp::differentiable_ops();
    let named = |list: &[(&str, &str)], op: &str| list.iter().any(|(other, _)| *other == op);
    let mut problems = Vec::new();
    for op in &ops {
        let own: Vec<_> = cases.iter().filter(|case| case.op == *op).collect();
        if own.is_empty() != named(ELSEWHERE, op) {
            problems.push(format!(
                "{op}: {} cases, or none and a test elsewhere",
                own.len()
            ));
        }
        if own.is_empty() {
            continue;
        }
        if own.iter().any(|case| case.numeric) == named(WITHOUT_SLOPE, op) {
            problems.push(format!(
                "{op}: a slope to compare with, or a reason why not"
            ));
        }
        if own.iter().any(|case| case.python) == named(NOT_IN_PYTHON, op) {
            problems.push(format!("{op}: Python's gradient, or a place in the list"));
        }
    }
    let lists = ELSEWHERE.iter().chain(WITHOUT_SLOPE).chain(NOT_IN_PYTHON);
    for (op, _) in lists.filter(|(op, _)| !ops.contains(op)) {
        problems.push(format!("{op} has no gradient function"));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    println!("{} types of op have a gradient function", ops.len());
    assert!(ops.len() >= 200);
    Ok(())
}

#[test]
fn a_forbidden_gradient_says_why() -> Result<()> {
    let graph = Graph::new()?;
    let x = graph
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::scalar())?;
    let options = ops::PreventGradientOptions {
        message: Some(tfp::Bytes::new("not here")),
    };
    let y = ops::prevent_gradient(&graph, &x, options)?;
    let found = tfp::gradients(&graph, &[y], &[x]);
    crate::support::refused(found, &["PreventGradient", "not here"]);
    Ok(())
}
