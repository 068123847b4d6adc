//! Gradients of functions that call functions, deep inside of each other.

use tfp::{
    DataType, Graph, GraphFunction, ImportOptions, Output, Result, Session, Shape, Tensor, ops,
};

/// Returns a function that calls a function, and so on: `sin` of twice the value at each level.
fn chain(graph: &Graph, depth: usize) -> Result<GraphFunction> {
    let signature = [(DataType::DOUBLE, Shape::scalar())];
    let mut function = GraphFunction::trace(graph, "level", &signature, |cx, args| {
        Ok(vec![ops::sin(cx, &args[0])?])
    })?;
    for _ in 1..depth {
        let inner = function;
        function = GraphFunction::trace(graph, "level", &signature, |cx, args| {
            let called = inner.call(cx, &[args[0].clone()])?.remove(0);
            Ok(vec![ops::sin(cx, ops::mul(cx, called, 2.0)?)?])
        })?;
    }
    Ok(function)
}

/// Returns the value and the derivatives of a chain at 0.3, as numbers know them.
fn expected(depth: usize) -> [f64; 3] {
    let (mut value, mut first, mut second) = (0.3_f64.sin(), 0.3_f64.cos(), -0.3_f64.sin());
    for _ in 1..depth {
        let (s, c) = (2.0 * value).sin_cos();
        second = 2.0 * c * second - 4.0 * s * first * first;
        first *= 2.0 * c;
        value = s;
    }
    [value, first, second]
}

/// Returns a chain at `x`, and its first derivatives.
fn derivatives(graph: &Graph, x: &Output, depth: usize, order: usize) -> Result<Vec<Output>> {
    let mut values = chain(graph, depth)?.call(graph, &[x.clone()])?;
    for at in 0..order {
        let last = &values[at..=at];
        values.extend(tfp::gradients(graph, last, &[x.clone()])?.remove(0));
    }
    Ok(values)
}

fn graph() -> Result<(Graph, Output)> {
    let graph = Graph::new()?;
    let x = graph
        .scope()
        .placeholder("x", DataType::DOUBLE, &Shape::scalar())?;
    Ok((graph, x))
}

#[test]
fn through_a_chain_of_functions() -> Result<()> {
    for depth in [1, 2, 5] {
        let (graph, x) = graph()?;
        let values = derivatives(&graph, &x, depth, 2)?;
        let at = Tensor::scalar(0.3_f64)?;
        let fetched =
            Session::new(&graph)?.eval(&[(&x, &at)], &values.iter().collect::<Vec<_>>())?;
        assert_eq!(fetched.len(), 3);
        for (tensor, expected) in fetched.iter().zip(expected(depth)) {
            let value: f64 = tensor.to_scalar()?;
            let error = (value - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-12, "depth {depth}: {value} is not {expected}");
        }
    }
    Ok(())
}

/// Each level adds a function that keeps values and one of gradients, and copies no other's.
#[test]
fn a_deep_chain_has_three_functions_a_level() -> Result<()> {
    let depth = 60;
    let (graph, x) = graph()?;
    assert_eq!(derivatives(&graph, &x, depth, 1)?.len(), 2);
    assert_eq!(graph.functions()?.len(), 3 * depth);
    Ok(())
}

#[test]
fn the_library_of_a_body_is_kept_beside() -> Result<()> {
    let (graph, x) = graph()?;
    derivatives(&graph, &x, 2, 0)?;
    let names = |graph: &Graph| -> Result<Vec<String>> {
        let functions = graph.functions()?;
        Ok(functions.iter().map(|f| f.name().to_owned()).collect())
    };
    let body = Graph::of_bodies()?;
    for function in graph.functions()? {
        body.add_function(&function)?;
        body.add_function(&function)?;
    }
    assert_eq!(names(&body)?, names(&graph)?);
    assert_eq!(names(&graph)?.len(), 2);
    // What TensorFlow has of it is read, too.
    let copy = Graph::new()?;
    copy.import(&graph.to_graph_def()?, &ImportOptions::default())?;
    assert_eq!(names(&copy)?, names(&graph)?);
    copy.add_function(&graph.functions()?[0])?;
    assert_eq!(names(&copy)?, names(&graph)?);
    Ok(())
}
