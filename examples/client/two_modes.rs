//! The same program in both modes: `hypotenuse` adds operations to a graph, or executes them,
//! by the context that it gets. Prints the same numbers twice.

use tfp_core::{Context, DataType, EagerContext, Graph, Result, Session, Shape, Tensor};
use tfp_ops::{add_v2, sqrt, square};

/// Returns the square root of `a * a + b * b`, element by element.
fn hypotenuse<C: Context>(ctx: &C, a: &C::Value, b: &C::Value) -> Result<C::Value> {
    let sum = add_v2(ctx, square(ctx, a)?, square(ctx, b)?)?;
    sqrt(ctx, sum)
}

fn main() -> Result<()> {
    let (a, b) = (
        Tensor::from_array([3.0_f32, 5.0, 8.0])?,
        Tensor::from_array([4.0_f32, 12.0, 15.0])?,
    );

    let eager = EagerContext::new()?;
    let executed = hypotenuse(&eager, &eager.handle(&a)?, &eager.handle(&b)?)?;
    println!("eager: {:?}", executed.to_tensor()?.as_slice::<f32>()?);

    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("a", DataType::FLOAT, &Shape::from([-1]))?;
    let y = scope.placeholder("b", DataType::FLOAT, &Shape::from([-1]))?;
    let added = hypotenuse(&scope, &x, &y)?;
    let session = Session::new(&graph)?;
    let values = session.eval(&[(&x, &a), (&y, &b)], &[&added])?;
    println!("graph: {:?}", values[0].as_slice::<f32>()?);
    Ok(())
}
