//! A value times its own sigmoid has a gradient of its own, unless somebody asks for the sigmoid's.

use tfp::{
    DataType, EagerContext, GradientOptions, Graph, Mode, Result, Session, Shape, Tape, Tensor,
    TensorHandle, hessian, ops,
};

const POINTS: [f64; 5] = [-3.0, -0.5, 0.0, 1.25, 4.0];

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The first and the second derivative.
fn derivatives(x: f64) -> (f64, f64) {
    let s = sigmoid(x);
    let (first, second) = (s * (1.0 - s), s * (1.0 - s) * (1.0 - 2.0 * s));
    (s + x * first, 2.0 * first + x * second)
}

fn near(found: &[f64], expected: impl Iterator<Item = f64>) {
    assert_eq!(found.len(), POINTS.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12, "{found}, not {expected}");
    }
}

/// `x * sigmoid(x)`, with the sigmoid.
fn swish<C: Mode>(cx: &C, x: &C::Value) -> Result<(C::Value, C::Value)> {
    let s = ops::sigmoid(cx, x)?;
    Ok((ops::mul(cx, x, &s)?, s))
}

fn numbers(found: Option<&TensorHandle>) -> Result<Vec<f64>> {
    found.expect("a gradient").to_tensor()?.to_vec()
}

#[test]
fn a_tape_gives_the_derivatives_of_a_swish() -> Result<()> {
    let eager = EagerContext::new()?;
    let x = eager.handle(&Tensor::from_array(POINTS)?)?;
    let tape = Tape::new(&eager);
    tape.watch(&x)?;
    let (y, s) = swish(&tape, &x)?;
    let slopes = || POINTS.iter().map(|&x| derivatives(x).0);
    near(
        &numbers(tape.gradients(&[&y], &[&x])?[0].as_ref())?,
        slopes(),
    );
    // The sigmoid's own gradient beside it.
    let both = tape.gradients(&[&y], &[&x, &s])?;
    near(&numbers(both[0].as_ref())?, slopes());
    near(&numbers(both[1].as_ref())?, POINTS.into_iter());
    // The sigmoid is used elsewhere, too.
    let more = ops::add_v2(&tape, &y, &s)?;
    let expected = POINTS.iter().map(|&x| {
        let s = sigmoid(x);
        derivatives(x).0 + s * (1.0 - s)
    });
    near(
        &numbers(tape.gradients(&[&more], &[&x])?[0].as_ref())?,
        expected,
    );
    // It counts as constant.
    let stop = [s];
    let options = GradientOptions {
        stop: &stop,
        ..Default::default()
    };
    let held = tape.gradients_with(&[&y], &[&x], &options)?.remove(0);
    let held = held.expect("a gradient").dense(&eager)?;
    near(&numbers(Some(&held))?, POINTS.iter().map(|&x| sigmoid(x)));

    let second = hessian(&eager, &x, |cx, x| {
        let (y, _) = swish(cx, x)?;
        ops::sum(cx, y, 0, Default::default())
    })?;
    let second = second.to_tensor()?.to_vec::<f64>()?;
    let diagonal: Vec<f64> = second.iter().step_by(POINTS.len() + 1).copied().collect();
    near(&diagonal, POINTS.iter().map(|&x| derivatives(x).1));
    Ok(())
}

#[test]
fn a_graph_has_three_operations_for_the_gradient_of_a_swish() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::DOUBLE, &Shape::new(&[POINTS.len() as i64]))?;
    let (y, _) = swish(&scope, &x)?;
    let seed = ops::ones_like(&scope, &y)?;
    let before = graph.operations().count();
    let options = GradientOptions {
        grad_ys: &[Some(seed)],
        ..Default::default()
    };
    let found = tfp::gradients_with(&scope, &[y], &[x.clone()], &options)?.remove(0);
    let found = found.expect("a gradient").dense(&scope)?;
    let added: Vec<String> = graph
        .operations()
        .skip(before)
        .map(|op| op.op_type())
        .collect();
    assert_eq!(added, ["SigmoidGrad", "AddV2", "Mul"]);
    let session = Session::new(&graph)?;
    let fed = Tensor::from_array(POINTS)?;
    let values = session.eval(&[(&x, &fed)], &[&found])?;
    let expected = POINTS.iter().map(|&x| derivatives(x).0);
    near(&values[0].to_vec::<f64>()?, expected);
    Ok(())
}
