//! Adds numbers: the smallest program. Prints `3 + 4 = 7`, computed by a graph in a session.

use tfp_core::{DataType, Graph, Result, Session, Shape, Tensor};
use tfp_ops::add_v2;

fn main() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::INT32, &Shape::scalar())?;
    let y = scope.placeholder("y", DataType::INT32, &Shape::scalar())?;
    let sum = add_v2(&scope, &x, &y)?;

    let session = Session::new(&graph)?;
    let (three, four) = (Tensor::scalar(3)?, Tensor::scalar(4)?);
    let values = session.eval(&[(&x, &three), (&y, &four)], &[&sum])?;
    println!("3 + 4 = {}", values[0].to_scalar::<i32>()?);
    Ok(())
}
