//! Tapes, options, custom gradients, slices and errors.

use tfp::{
    AnyContext, AnyValue, Context, DataType, EagerContext, ErrorKind, FuncGraph, Gradient,
    GradientOptions, Graph, GraphFunction, Mode, OpBuilder, Output, Result, Session, Shape, Tape,
    Tensor, TensorHandle, Unconnected, ops,
};

use crate::support::refused;

fn eager_scalar(eager: &EagerContext, value: f32) -> Result<TensorHandle> {
    eager.handle(&Tensor::scalar(value)?)
}

fn value(handle: &TensorHandle) -> Result<f32> {
    handle.to_tensor()?.to_scalar()
}

fn placeholder(graph: &Graph, dims: &[i64]) -> Result<Output> {
    graph
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::new(dims))
}

#[test]
fn a_tape_is_asked_more_than_once() -> Result<()> {
    let eager = EagerContext::new()?;
    let (x, y) = (eager_scalar(&eager, 3.0)?, eager_scalar(&eager, 4.0)?);
    let tape = Tape::new(&eager);
    tape.watch(&x)?;
    let product = ops::mul(&tape, &x, &y)?;
    let square = ops::square(&tape, &product)?;
    assert_eq!(value(&tape.gradient(&product, &x)?)?, 4.0);
    assert_eq!(value(&tape.gradient(&square, &x)?)?, 96.0);
    // With respect to an intermediate value.
    assert_eq!(value(&tape.gradient(&square, &product)?)?, 24.0);
    assert_eq!(tape.len(), 2);
    // Nobody watched y.
    assert!(tape.gradients(&[&square], &[&y])?[0].is_none());
    refused(tape.gradient(&square, &y), &["does not depend", "watch"]);
    let zeros = GradientOptions {
        unconnected: Unconnected::Zeros,
        ..Default::default()
    };
    let found = tape
        .gradients_with(&[&square], &[&y], &zeros)?
        .remove(0)
        .expect("zeros");
    assert_eq!(value(&found.dense(&eager)?)?, 0.0);
    // A given gradient, and a value that counts as constant.
    let three = [Some(eager_scalar(&eager, 3.0)?)];
    let given = GradientOptions {
        grad_ys: &three,
        ..Default::default()
    };
    let found = tape
        .gradients_with(&[&product], &[&x], &given)?
        .remove(0)
        .expect("a gradient");
    assert_eq!(value(&found.dense(&eager)?)?, 12.0);
    let stop = [product.clone()];
    let stopped = GradientOptions {
        stop: &stop,
        ..Default::default()
    };
    assert!(tape.gradients_with(&[&square], &[&x], &stopped)?[0].is_none());
    let held = ops::mul(&tape, ops::stop_gradient(&tape, &x)?, &x)?;
    assert_eq!(value(&tape.gradient(&held, &x)?)?, 3.0);
    Ok(())
}

#[test]
fn gradients_are_added_to_their_own_graph() -> Result<()> {
    let (graph, other) = (Graph::new()?, Graph::new()?);
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::scalar())?;
    let y = ops::square(&scope, &x)?;
    let error = refused(
        tfp::gradients(
            &other.scope(),
            std::slice::from_ref(&y),
            std::slice::from_ref(&x),
        ),
        &["'Square:0'", "is not of the graph of the scope"],
    );
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }));
    assert_eq!(other.operations().count(), 0);
    Ok(())
}

#[test]
fn what_a_replaced_gradient_holds_may_use_gradients() {
    /// Registers another gradient when it is dropped.
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            tfp::register_gradient("RegisteredWhenDropped", |_| Ok(vec![None]));
        }
    }
    let last = Last;
    tfp::register_gradient("ReplacedInATest", move |_| {
        let _ = &last;
        Ok(vec![None])
    });
    tfp::register_gradient("ReplacedInATest", |_| Ok(vec![None]));
}

#[test]
fn tapes_that_are_closed_or_foreign_are_refused() -> Result<()> {
    let (eager, other) = (EagerContext::new()?, EagerContext::new()?);
    let (x, foreign) = (eager_scalar(&eager, 3.0)?, eager_scalar(&other, 4.0)?);
    let tape = Tape::new(&eager);
    let is_foreign = |kind: &ErrorKind| matches!(kind, ErrorKind::Foreign { .. });
    assert!(is_foreign(
        refused(tape.watch(&foreign), &["another eager context"]).kind()
    ));
    assert!(is_foreign(
        refused(ops::mul(&tape, &x, &foreign), &["another eager context"]).kind()
    ));
    tape.watch(&x)?;
    let y = ops::square(&tape, &x)?;
    assert!(is_foreign(
        refused(tape.gradient(&foreign, &x), &["another eager context"]).kind()
    ));
    let count = eager.handle(&Tensor::scalar(3_i32)?)?;
    refused(tape.watch(&count), &["floating-point", "int32"]);
    refused(tape.gradient(&count, &x), &["int32"]);
    // A gradient that does not fit.
    let wrong = [Some(eager.handle(&Tensor::from_array([1.0_f32, 2.0])?)?)];
    let options = GradientOptions {
        grad_ys: &wrong,
        ..Default::default()
    };
    refused(
        tape.gradients_with(&[&y], &[&x], &options),
        &["value 0", "[2]"],
    );
    let wrong = [Some(eager.handle(&Tensor::scalar(1.0_f64)?)?)];
    let options = GradientOptions {
        grad_ys: &wrong,
        ..Default::default()
    };
    refused(
        tape.gradients_with(&[&y], &[&x], &options),
        &["float32", "float64"],
    );
    tape.close();
    let closed = refused(tape.gradient(&y, &x), &["tape", "closed"]);
    assert_eq!(closed.kind(), &ErrorKind::Closed { what: "tape" });
    refused(ops::square(&tape, &x), &["tape", "closed"]);
    Ok(())
}

#[test]
fn tapes_that_were_dropped_or_saw_nothing_say_so() -> Result<()> {
    let eager = EagerContext::new()?;
    let x = eager_scalar(&eager, 3.0)?;
    // What one tape saw, another does not know.
    let (first, second) = (Tape::new(&eager), Tape::new(&eager));
    first.watch(&x)?;
    second.watch(&x)?;
    let y = ops::square(&first, &x)?;
    drop(first);
    refused(second.gradient(&y, &x), &["does not depend"]);
    // A context keeps its tape alive.
    let context = {
        let tape = Tape::new(&eager);
        tape.watch(&x)?;
        tape.any()
    };
    let y = ops::square(&context, &AnyValue::from(&x))?;
    let AnyContext::Tape(tape) = &context else {
        panic!("a tape's context is {context:?}");
    };
    assert_eq!(value(&tape.gradient(y.handle()?, &x)?)?, 6.0);
    // A tape over one that was closed.
    let outer = Tape::new(&eager);
    let inner = Tape::new(&outer);
    inner.watch(&x)?;
    outer.close();
    let closed = refused(ops::square(&inner, &x), &["tape", "closed"]);
    assert_eq!(closed.kind(), &ErrorKind::Closed { what: "tape" });
    Ok(())
}

#[test]
fn outputs_of_other_graphs_are_refused() -> Result<()> {
    let (graph, other) = (Graph::new()?, Graph::new()?);
    let (x, foreign) = (placeholder(&graph, &[])?, placeholder(&other, &[])?);
    let y = ops::square(&graph, &x)?;
    let error = refused(
        tfp::gradients(&graph, &[y.clone()], &[foreign]),
        &["graph", "x:0"],
    );
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }));
    let eager = EagerContext::new()?;
    let h = eager_scalar(&eager, 1.0)?;
    refused(tfp::gradients(&eager, &[h.clone()], &[h]), &["Tape"]);
    // Nothing depends on it.
    let z = placeholder(&graph, &[2])?;
    assert!(tfp::gradients(&graph, &[y.clone()], &[z.clone()])?[0].is_none());
    let options = GradientOptions {
        unconnected: Unconnected::Zeros,
        ..Default::default()
    };
    let found = tfp::gradients_with(&graph, &[y], &[z], &options)?
        .remove(0)
        .expect("zeros");
    assert_eq!(found.dense(&graph)?.shape()?, Shape::new(&[2]));
    Ok(())
}

#[test]
fn an_op_without_a_gradient_is_named() -> Result<()> {
    let eager = EagerContext::new()?;
    let x = eager.handle(&Tensor::from_array([[2.0_f32, 0.0], [0.0, 2.0]])?)?;
    let tape = Tape::new(&eager);
    tape.watch(&x)?;
    let y = OpBuilder::new("MatrixExponential")?.input(&x).one(&tape);
    // Where TensorFlow has no kernel for it any more there is nothing to differentiate.
    if let Ok(y) = y {
        let error = refused(
            tape.gradient(&y, &x),
            &["MatrixExponential", "register_gradient"],
        );
        assert!(matches!(error.kind(), ErrorKind::NotFound { .. }));
    }
    let graph = Graph::new()?;
    let x = placeholder(&graph.scope().graph().clone(), &[2, 2])?;
    let y = OpBuilder::new("MatrixLogarithm")?
        .input(ops::complex(&graph, &x, &x, Default::default())?)
        .one(&graph)?;
    let y = ops::real(&graph, &y, Default::default())?;
    refused(
        tfp::gradients(&graph, &[y], &[x]),
        &[
            "MatrixLogarithm",
            "operation 'MatrixLogarithm'",
            "register_gradient",
        ],
    );
    Ok(())
}

#[test]
fn tensorflows_own_gradients_fill_the_gaps() -> Result<()> {
    // This registry has no function for it, TensorFlow's own has one.
    let graph = Graph::new()?;
    let x = placeholder(&graph, &[2])?;
    assert!(!tfp::differentiable_ops().contains(&"Bitcast"));
    let same = ops::bitcast(&graph, &x, DataType::FLOAT)?;
    refused(
        tfp::gradients(&graph, &[same], &[x]),
        &["Bitcast", "TensorFlow's own registry"],
    );
    Ok(())
}

#[test]
fn rows_of_a_table_have_slices() -> Result<()> {
    let eager = EagerContext::new()?;
    let table = eager.handle(&Tensor::from_array([
        [1.0_f32, 2.0],
        [3.0, 4.0],
        [5.0, 6.0],
    ])?)?;
    let tape = Tape::new(&eager);
    tape.watch(&table)?;
    let rows = ops::gather_v2(&tape, &table, [2, 0, 2], 0, Default::default())?;
    let y = ops::sum(&tape, ops::square(&tape, rows)?, [0, 1], Default::default())?;
    let found = tape
        .gradients_with(&[&y], &[&table], &GradientOptions::default())?
        .remove(0);
    let Some(Gradient::Slices(slices)) = &found else {
        panic!("expected slices, found {found:?}");
    };
    assert_eq!(slices.indices.to_tensor()?.as_slice::<i32>()?, [2, 0, 2]);
    assert_eq!(slices.values.to_tensor()?.dims(), [3, 2]);
    let dense = tape.gradient(&y, &table)?;
    assert_eq!(
        dense.to_tensor()?.as_slice::<f32>()?,
        [2.0, 4.0, 0.0, 0.0, 20.0, 24.0]
    );
    // Two of them are slices, with a dense one a tensor.
    let more = ops::gather_v2(&tape, &table, [1], 0, Default::default())?;
    let more = ops::sum(&tape, more, [0, 1], Default::default())?;
    let both = ops::add_v2(&tape, &y, &more)?;
    let found = tape
        .gradients_with(&[&both], &[&table], &GradientOptions::default())?
        .remove(0);
    assert!(matches!(&found, Some(Gradient::Slices(_))));
    let whole = ops::add_v2(
        &tape,
        &both,
        ops::sum(&tape, &table, [0, 1], Default::default())?,
    )?;
    let found = tape
        .gradients_with(&[&whole], &[&table], &GradientOptions::default())?
        .remove(0);
    let Some(Gradient::Dense(dense)) = found else {
        panic!("expected a tensor, found {found:?}");
    };
    assert_eq!(
        dense.to_tensor()?.as_slice::<f32>()?,
        [3.0, 5.0, 2.0, 2.0, 21.0, 25.0]
    );
    Ok(())
}

#[test]
fn variables_are_watched_when_they_are_read() -> Result<()> {
    let eager = EagerContext::new()?;
    let shape = Shape::new(&[2]);
    let variable = ops::var_handle_op(
        &eager,
        DataType::FLOAT,
        &shape,
        ops::VarHandleOpOptions {
            shared_name: Some(tfp::Bytes::new("watched")),
            ..Default::default()
        },
    )?;
    ops::assign_variable_op(&eager, &variable, [3.0_f32, 4.0], Default::default())?;
    let tape = Tape::new(&eager);
    let read = ops::read_variable_op(&tape, &variable, DataType::FLOAT)?;
    let y = ops::square(&tape, read)?;
    assert_eq!(tape.watched_variables().len(), 1);
    let found = tape.gradient(&y, &variable)?;
    assert_eq!(found.to_tensor()?.as_slice::<f32>()?, [6.0, 8.0]);
    let blind = Tape::without_variables(&eager);
    ops::read_variable_op(&blind, &variable, DataType::FLOAT)?;
    assert!(blind.is_empty() && blind.watched_variables().is_empty());
    Ok(())
}

/// Doubles, and claims a gradient of 100.
fn claimed<C: Mode>(cx: &C, x: &C::Value) -> Result<C::Value> {
    let found = tfp::custom_gradient(
        cx,
        std::slice::from_ref(x),
        |cx, x| Ok(vec![ops::add_v2(cx, &x[0], &x[0])?]),
        |call| {
            let hundred = ops::mul(call.context(), call.grad(0)?, 100.0)?;
            Ok(vec![Some(hundred.into())])
        },
    )?;
    Ok(found.into_iter().next().expect("one value"))
}

#[test]
fn a_computation_brings_its_gradient() -> Result<()> {
    let eager = EagerContext::new()?;
    let x = eager_scalar(&eager, 3.0)?;
    let outer = Tape::new(&eager);
    let tape = Tape::new(&outer);
    outer.watch(&x)?;
    tape.watch(&x)?;
    let y = ops::square(&tape, claimed(&tape, &x)?)?;
    assert_eq!(value(&y)?, 36.0);
    let dy = tape.gradient(&y, &x)?;
    assert_eq!(value(&dy)?, 1200.0);
    // dy = 2 * claimed(x) * 100: its gradient is 200 * 100.
    assert_eq!(value(&outer.gradient(&dy, &x)?)?, 20000.0);
    // In a graph, and in a function.
    let graph = Graph::new()?;
    let x = placeholder(&graph, &[])?;
    let direct = claimed(&graph, &x)?;
    let function = GraphFunction::trace(
        &graph,
        "claims",
        &[(DataType::FLOAT, Shape::scalar())],
        |cx, args| Ok(vec![claimed(cx, &args[0])?]),
    )?;
    let called = function.call(&graph, &[x.clone()])?.remove(0);
    let session = Session::new(&graph)?;
    let three = Tensor::scalar(3.0_f32)?;
    for y in [direct, called] {
        let dy = tfp::gradients(&graph, &[y], &[x.clone()])?
            .remove(0)
            .expect("a gradient");
        assert_eq!(
            session.eval(&[(&x, &three)], &[&dy])?[0].to_scalar::<f32>()?,
            100.0
        );
    }
    Ok(())
}

#[test]
fn the_user_registers_gradients_by_name() -> Result<()> {
    tfp::register_gradient("tests.Tenfold", |call| {
        Ok(vec![Some(
            ops::mul(call.context(), call.grad(0)?, 10.0)?.into(),
        )])
    });
    let graph = Graph::new()?;
    let x = placeholder(&graph, &[])?;
    let scope = graph
        .scope()
        .with_attr("_gradient_op_type", "tests.Tenfold")?;
    let y = ops::identity(&scope, &x)?;
    let dy = tfp::gradients(&graph, &[y], &[x.clone()])?
        .remove(0)
        .expect("a gradient");
    let one = Tensor::scalar(1.0_f32)?;
    let session = Session::new(&graph)?;
    assert_eq!(
        session.eval(&[(&x, &one)], &[&dy])?[0].to_scalar::<f32>()?,
        10.0
    );
    let scope = graph
        .scope()
        .with_attr("_gradient_op_type", "tests.Nobody")?;
    let y = ops::identity(&scope, &x)?;
    refused(tfp::gradients(&graph, &[y], &[x]), &["Identity"]);
    Ok(())
}

#[test]
fn a_function_checks_what_it_is_given() -> Result<()> {
    let eager = EagerContext::new()?;
    let function = GraphFunction::trace(
        &eager,
        "pair",
        &[(DataType::FLOAT, Shape::new(&[-1, 2]))],
        |cx, args| Ok(vec![ops::square(cx, &args[0])?]),
    )?;
    let ok = eager.handle(&Tensor::from_array([[1.0_f32, 2.0]])?)?;
    let found = function.call(&eager, &[ok.clone()])?;
    assert_eq!(found[0].to_tensor()?.as_slice::<f32>()?, [1.0, 4.0]);
    refused(
        function.call(&eager, &[]),
        &["pair", "takes 1 arguments, 0"],
    );
    let wrong = eager.handle(&Tensor::from_array([1.0_f32, 2.0])?)?;
    refused(
        function.call(&eager, &[wrong]),
        &["argument 0", "[?,2]", "[2]"],
    );
    let wrong = eager.handle(&Tensor::from_array([[1.0_f64, 2.0]])?)?;
    refused(
        function.call(&eager, &[wrong]),
        &["argument 0", "float32", "float64"],
    );
    // By its name, as one of a loaded graph.
    let again = GraphFunction::named(&eager, function.name())?;
    assert_eq!(again.arguments().len(), 1);
    let tape = Tape::new(&eager);
    tape.watch(&ok)?;
    let y = again.call(&tape, &[ok.clone()])?.remove(0);
    let dy = tape.gradient(&y, &ok)?;
    assert_eq!(dy.to_tensor()?.as_slice::<f32>()?, [2.0, 4.0]);
    refused(
        GraphFunction::named(&eager, "nobody"),
        &["function 'nobody'", "eager context"],
    );
    Ok(())
}

#[test]
fn effects_in_a_function_keep_their_order() -> Result<()> {
    let eager = EagerContext::new()?;
    let variable = ops::var_handle_op(
        &eager,
        DataType::FLOAT,
        &Shape::scalar(),
        ops::VarHandleOpOptions {
            shared_name: Some(tfp::Bytes::new("ordered")),
            ..Default::default()
        },
    )?;
    ops::assign_variable_op(&eager, &variable, 2.0_f32, Default::default())?;
    let function = GraphFunction::trace(&eager, "steps", &[], |cx, _| {
        let before = ops::read_variable_op(cx, &variable, DataType::FLOAT)?;
        ops::assign_add_variable_op(cx, &variable, 3.0_f32)?;
        let after = ops::read_variable_op(cx, &variable, DataType::FLOAT)?;
        ops::assign_variable_op(
            cx,
            &variable,
            ops::mul(cx, &after, 10.0)?,
            Default::default(),
        )?;
        Ok(vec![before, after])
    })?;
    assert!(function.is_stateful());
    let found = function.call(&eager, &[])?;
    assert_eq!((value(&found[0])?, value(&found[1])?), (2.0, 5.0));
    assert_eq!(
        value(&ops::read_variable_op(&eager, &variable, DataType::FLOAT)?)?,
        50.0
    );
    Ok(())
}

#[test]
fn branches_and_loops_that_do_not_agree_are_refused() -> Result<()> {
    let graph = Graph::new()?;
    let x = placeholder(&graph, &[])?;
    let positive = ops::greater(&graph, &x, 0.0)?;
    let any: AnyValue = (&x).into();
    refused(
        tfp::cond(&graph, &x, |_| Ok(vec![]), |_| Ok(vec![])),
        &["predicate", "bool", "float32"],
    );
    refused(
        tfp::cond(&graph, &positive, |_| Ok(vec![any.clone()]), |_| Ok(vec![])),
        &["branch 1", "0 values"],
    );
    refused(
        tfp::cond(
            &graph,
            &positive,
            |_| Ok(vec![any.clone()]),
            |cx| Ok(vec![cx.constant(&Tensor::scalar(1_i32)?)?]),
        ),
        &["branch 1", "float32", "int32"],
    );
    refused(
        tfp::while_loop(
            &graph,
            &[x.clone()],
            |cx, v| ops::less(cx, &v[0], 3.0),
            |_, _| Ok(vec![]),
        ),
        &["0 values for 1 variables"],
    );
    refused(
        tfp::while_loop(
            &graph,
            &[x],
            |cx, v| ops::less(cx, &v[0], 3.0),
            |cx, v| Ok(vec![ops::expand_dims(cx, &v[0], 0)?]),
        ),
        &["loop"],
    );
    Ok(())
}

#[test]
fn gradients_are_taken_inside_of_a_function() -> Result<()> {
    let eager = EagerContext::new()?;
    let w = eager_scalar(&eager, 5.0)?;
    let func = FuncGraph::new(Some(eager.any()))?;
    let x = func.argument("x", DataType::FLOAT, &Shape::scalar())?;
    let captured = func.capture(&(&w).into())?;
    let y = ops::mul(&func, ops::square(&func, &x)?, &captured)?;
    let any = func.any();
    let grads = tfp::gradients(&any, &[(&y).into()], &[(&x).into(), (&w).into()])?;
    let results: Vec<AnyValue> = grads.into_iter().flatten().collect();
    let function = GraphFunction::of_graph("slopes", &func, &results)?;
    let found = function.call(&eager, &[eager_scalar(&eager, 3.0)?])?;
    assert_eq!((value(&found[0])?, value(&found[1])?), (30.0, 9.0));
    Ok(())
}

#[test]
fn variables_that_a_function_reads_are_watched() -> Result<()> {
    let eager = EagerContext::new()?;
    let options = ops::VarHandleOpOptions {
        shared_name: Some(tfp::Bytes::new("in a function")),
        ..Default::default()
    };
    let weight = ops::var_handle_op(&eager, DataType::FLOAT, &Shape::scalar(), options)?;
    ops::assign_variable_op(&eager, &weight, 4.0_f32, Default::default())?;
    let model = GraphFunction::trace(
        &eager,
        "model",
        &[(DataType::FLOAT, Shape::scalar())],
        |cx, args| {
            let weight = ops::read_variable_op(cx, &weight, DataType::FLOAT)?;
            Ok(vec![ops::mul(cx, ops::square(cx, weight)?, &args[0])?])
        },
    )?;
    // Twice, as in training: the second time nothing is traced.
    for _ in 0..2 {
        let tape = Tape::new(&eager);
        let loss = model.call(&tape, &[eager_scalar(&eager, 3.0)?])?.remove(0);
        assert_eq!(tape.watched_variables().len(), 1);
        assert_eq!(value(&tape.gradient(&loss, &weight)?)?, 24.0);
    }
    Ok(())
}
