//! Jacobians, Hessians and products with tangents are those of Python, in both modes.

use tfp::{
    AnyContext, AnyValue, Context, Graph, Output, Result, Session, Tape, TensorHandle,
    batch_jacobian, forward_products, hessian, jacobian, ops,
};

use crate::goldens::Goldens;

/// As far as sums of another order differ.
const NEAR: f32 = 5e-6;

fn function<C: Context>(cx: &C, x: &C::Value, w: &C::Value) -> Result<C::Value> {
    let keep = ops::SumOptions {
        keep_dims: Some(true),
    };
    let squares = ops::sum(cx, ops::square(cx, x)?, 1, keep)?;
    let rows = ops::gather_v2(cx, squares, [0, 1, 2], 0, ops::GatherV2Options::default())?;
    let product = ops::mat_mul(cx, x, w, ops::MatMulOptions::default())?;
    ops::mul(cx, ops::softmax(cx, ops::tanh(cx, product)?)?, rows)
}

/// The sum of the squares of what the function gives.
fn total<C: Context>(cx: &C, x: &C::Value, w: &C::Value) -> Result<C::Value> {
    let y = function(cx, x, w)?;
    ops::sum(cx, ops::square(cx, y)?, [0, 1], ops::SumOptions::default())
}

fn golden(name: &str) -> String {
    format!("derivatives/{name}")
}

#[test]
fn in_eager_mode() -> Result<()> {
    let goldens = Goldens::open()?;
    let eager = &goldens.eager;
    let get = |name: &str| goldens.get(&golden(name));
    let check = |name: &str, found: &TensorHandle| goldens.check(&golden(name), found, NEAR);
    let (x, w, unused) = (get("x")?, get("w")?, get("tx")?);
    let tape = Tape::new(eager);
    for one in [&x, &w, &unused] {
        tape.watch(one)?;
    }
    let y = function(&tape, &x, &w)?;
    let found = tape.jacobian(&y, &[&x, &w, &unused])?;
    check("jacobian_x", found[0].as_ref().expect("x"))?;
    check("jacobian_w", found[1].as_ref().expect("w"))?;
    assert!(found[2].is_none());
    check("batch", &tape.batch_jacobian(&y, &x)?)?;
    let wrong = tape.batch_jacobian(&y, &w).expect_err("other sizes");
    assert!(
        wrong.to_string().contains("same first dimension"),
        "{wrong}"
    );

    let (any_x, any_w) = (AnyValue::from(&x), AnyValue::from(&w));
    check(
        "hessian_x",
        &hessian(eager, &x, |cx, x| total(cx, x, &any_w))?,
    )?;
    check(
        "hessian_w",
        &hessian(eager, &w, |cx, w| total(cx, &any_x, w))?,
    )?;
    let wrong = hessian(eager, &x, |cx, x| function(cx, x, &any_w)).expect_err("no number");
    assert!(wrong.to_string().contains("of one number"), "{wrong}");
    let flat = hessian(eager, &w, |cx, w| {
        ops::sum(cx, w, [0, 1], ops::SumOptions::default())
    })?;
    let flat = flat.to_tensor()?;
    assert_eq!(flat.dims(), [4, 2, 4, 2]);
    assert!(flat.as_slice::<f32>()?.iter().all(|&one| one == 0.0));

    let tangents = [get("tx")?, get("tw")?];
    let found = forward_products(eager, &[x.clone(), w.clone()], &tangents, |cx, values| {
        let constant = ops::ones_like(cx, &any_x)?;
        Ok(vec![function(cx, &values[0], &values[1])?, constant])
    })?;
    check("y", &found[0].0)?;
    check("forward", found[0].1.as_ref().expect("a tangent"))?;
    assert!(found[1].1.is_none());
    let wrong = forward_products(eager, std::slice::from_ref(&x), &tangents, |_, _| {
        Ok(vec![])
    });
    assert!(wrong.is_err_and(|error| error.to_string().contains("1 values and 2 tangents")));
    Ok(())
}

#[test]
fn in_a_graph() -> Result<()> {
    let goldens = Goldens::open()?;
    let graph = Graph::new()?;
    let cx = graph.scope();
    let get =
        |name: &str| -> Result<Output> { cx.constant(&goldens.get(&golden(name))?.to_tensor()?) };
    let (x, w) = (get("x")?, get("w")?);
    let y = function(&cx, &x, &w)?;
    let mut found = jacobian(&cx, &y, &[x.clone(), w.clone()])?
        .into_iter()
        .flatten();
    let mut named: Vec<(&str, Output)> = ["jacobian_x", "jacobian_w"]
        .into_iter()
        .zip(found.by_ref())
        .collect();
    assert_eq!(named.len(), 2);
    named.push(("batch", batch_jacobian(&cx, &y, &x)?));
    let (any_x, any_w) = (AnyValue::from(&x), AnyValue::from(&w));
    let of_x = hessian(&cx, &x, |cx, x| total(cx, x, &any_w))?;
    let of_w = hessian(&cx, &w, |cx, w| total(cx, &any_x, w))?;
    named.extend([("hessian_x", of_x), ("hessian_w", of_w)]);
    let tangents = [get("tx")?, get("tw")?];
    let products = forward_products(&cx, &[x, w], &tangents, |cx: &AnyContext, values| {
        Ok(vec![function(cx, &values[0], &values[1])?])
    })?;
    let (y, tangent) = products.into_iter().next().expect("a result");
    named.extend([("y", y), ("forward", tangent.expect("a tangent"))]);
    let session = Session::new(&graph)?;
    for (name, output) in named {
        let value = session.eval(&[], &[&output])?.remove(0);
        goldens.check(&golden(name), &goldens.eager.handle(&value)?, NEAR)?;
    }
    Ok(())
}
