//! Linear regression by hand: variables, a loss, TensorFlow's own gradients, and a loop of steps.
//! Finds `y = 2 x + 1` from noisy points and prints what it found.

use tfp_core::{Bytes, DataType, Graph, Operation, Output, Result, Scope, Session, Shape, Tensor};
use tfp_ops::{
    VarHandleOpOptions, add_v2, assign_variable_op, mean, mul, read_variable_op,
    resource_apply_gradient_descent, square, sub, var_handle_op,
};

/// A variable: its handle, an operation that sets it to zero, and its value.
struct Variable {
    handle: Output,
    init: Operation,
    value: Output,
}

fn variable(scope: &Scope, name: &str) -> Result<Variable> {
    let options = VarHandleOpOptions {
        shared_name: Some(Bytes::new(name)),
        ..Default::default()
    };
    let handle = var_handle_op(
        &scope.named(name),
        DataType::FLOAT,
        &Shape::scalar(),
        options,
    )?;
    let init = assign_variable_op(scope, &handle, 0.0_f32, Default::default())?;
    let value = read_variable_op(scope, &handle, DataType::FLOAT)?;
    Ok(Variable {
        handle,
        init,
        value,
    })
}

fn main() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([-1]))?;
    let y = scope.placeholder("y", DataType::FLOAT, &Shape::from([-1]))?;
    let slope = variable(&scope, "slope")?;
    let offset = variable(&scope, "offset")?;

    let predicted = add_v2(&scope, mul(&scope, &slope.value, &x)?, &offset.value)?;
    let error = square(&scope, sub(&scope, predicted, &y)?)?;
    let loss = mean(&scope, error, [0], Default::default())?;

    let losses = [loss];
    let values = [slope.value.clone(), offset.value.clone()];
    let gradients = graph.add_gradients(None, &losses, &values, &[])?;
    let mut step = Vec::new();
    for (variable, gradient) in [&slope, &offset]
        .into_iter()
        .zip(gradients.iter().flatten())
    {
        let handle = &variable.handle;
        step.push(resource_apply_gradient_descent(
            &scope,
            handle,
            0.5_f32,
            gradient,
            Default::default(),
        )?);
    }

    let points: Vec<f32> = (0..100).map(|i| i as f32 / 100.0).collect();
    let noise = |i: usize| ((i * 37 % 100) as f32 - 49.5) / 1000.0;
    let labels: Vec<f32> = points
        .iter()
        .enumerate()
        .map(|(i, x)| 2.0 * x + 1.0 + noise(i))
        .collect();
    let (points, labels) = (
        Tensor::from_vec(points, &[100])?,
        Tensor::from_vec(labels, &[100])?,
    );

    let session = Session::new(&graph)?;
    session
        .run()
        .target(&slope.init)
        .target(&offset.init)
        .go()?;
    let train = session.callable(&[x.clone(), y.clone()], &losses, &step)?;
    let mut last = 0.0;
    for _ in 0..500 {
        last = train.call(&[&points, &labels])?[0].to_scalar::<f32>()?;
    }
    let found = session.eval(&[], &[&slope.value, &offset.value])?;
    let (slope, offset) = (found[0].to_scalar::<f32>()?, found[1].to_scalar::<f32>()?);
    println!("y = {slope:.2} x + {offset:.2}, loss {last:.4}");
    Ok(())
}
