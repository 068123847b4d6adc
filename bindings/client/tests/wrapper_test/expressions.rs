//! Arithmetic with the signs of Rust.

use tfp::{Context, EagerContext, Expression, Graph, IntoOperand, Result, Session, Tensor, ops};

/// `-(2 a + b / 4 - 1) * b`, by signs.
fn signs<C: Context>(cx: &C, a: &C::Value, b: &C::Value) -> Result<C::Value> {
    let (a, b) = (Expression::new(cx, a), Expression::new(cx, b));
    (-(2.0 * &a + &b / 4.0 - 1.0) * b).value()
}

#[test]
fn signs_compute_in_both_modes() -> Result<()> {
    let (a, b) = (
        Tensor::from_array([1.0_f32, 2.0])?,
        Tensor::from_array([4.0_f32, 8.0])?,
    );
    let expected = [-8.0, -40.0];
    let eager = EagerContext::new()?;
    let found = signs(&eager, &eager.handle(&a)?, &eager.handle(&b)?)?;
    assert_eq!(found.to_tensor()?.as_slice::<f32>()?, expected);
    let graph = Graph::new()?;
    let scope = graph.scope();
    let value = |tensor| -> Result<_> { scope.constant(tensor) };
    let y = signs(&scope, &value(&a)?, &value(&b)?)?;
    let found = Session::new(&graph)?.eval(&[], &[&y])?;
    assert_eq!(found[0].as_slice::<f32>()?, expected);
    Ok(())
}

fn numbers<'v>(
    eager: &EagerContext,
    x: impl IntoOperand<'v, tfp::TensorHandle>,
    compute: impl Fn(Expression<'_, EagerContext>) -> Expression<'_, EagerContext>,
) -> Result<Vec<f32>> {
    compute(Expression::new(eager, x))
        .value()?
        .to_tensor()?
        .to_vec::<f32>()
}

#[test]
fn parts_and_sums() -> Result<()> {
    let eager = EagerContext::new()?;
    let x = [[1.0_f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
    assert_eq!(numbers(&eager, x, |x| x.slice(1..3).sum())?, [18.0]);
    assert_eq!(numbers(&eager, x, |x| x.at(-1))?, [5.0, 6.0]);
    assert_eq!(numbers(&eager, x, |x| x.at(0).pow(2.0).mean())?, [2.5]);
    assert_eq!(
        numbers(&eager, x, |x| x.slice(0..2).matmul(&x.slice(1..3)))?,
        [13.0, 16.0, 29.0, 36.0]
    );
    assert_eq!(numbers(&eager, [1.0_f32, 3.0], |x| 1.0 - x)?, [0.0, -2.0]);
    // An integer beside floats is one of them.
    assert_eq!(numbers(&eager, [1.0_f32, 3.0], |x| &x * 2 + x)?, [3.0, 9.0]);
    Ok(())
}

#[test]
fn the_first_error_is_kept() -> Result<()> {
    let eager = EagerContext::new()?;
    let x = Expression::new(&eager, [1.0_f32, 2.0]);
    let wrong = x.at(5);
    let first = wrong.value().expect_err("no such element").to_string();
    assert!(first.contains("index 5"), "{first}");
    let other = Expression::of(&eager, ops::reshape(&eager, [1.0_f32], [7]));
    for later in [
        &wrong + &x,
        &x * &wrong,
        -(&wrong / 2.0),
        &wrong - &other,
        wrong.sum(),
    ] {
        assert_eq!(later.value().expect_err("an error").to_string(), first);
    }
    Ok(())
}
