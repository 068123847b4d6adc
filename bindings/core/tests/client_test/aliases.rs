//! No op changes a tensor whose elements are borrowed.

use tfp_core::*;

const IN_PLACE: [(&str, [f32; 4]); 3] = [
    ("InplaceUpdate", [9.0, 9.0, 3.0, 4.0]),
    ("InplaceAdd", [10.0, 11.0, 3.0, 4.0]),
    ("InplaceSub", [-8.0, -7.0, 3.0, 4.0]),
];
const X: [[f32; 2]; 2] = [[1.0, 2.0], [3.0, 4.0]];
const FLAT: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn in_place<'a, C: Context>(
    ctx: &C,
    op: &str,
    x: impl IntoOperand<'a, C::Value>,
) -> Result<C::Value> {
    let call = OpBuilder::new(op)?.input(x);
    call.input([0_i32]).input([[9.0_f32, 9.0]]).one(ctx)
}

#[test]
fn eager_calls_write_to_copies() -> Result<()> {
    for is_async in [false, true] {
        let ctx = EagerContext::with_options(&EagerOptions {
            is_async,
            ..EagerOptions::default()
        })?;
        for (op, expected) in IN_PLACE {
            let x = Tensor::from_array(X)?;
            let elements = x.as_slice::<f32>()?;
            let handle = ctx.handle(&x)?;
            let result = in_place(&ctx, op, &handle)?;
            assert_eq!(result.to_tensor()?.as_slice::<f32>()?, expected, "{op}");
            let direct = in_place(&ctx, op, &x)?.to_tensor()?;
            assert_eq!(direct.as_slice::<f32>()?, expected, "{op}");
            // Neither what was given nor what came back changes by a later call.
            let _ = in_place(&ctx, op, &result)?.to_tensor()?;
            assert_eq!(result.to_tensor()?.as_slice::<f32>()?, expected, "{op}");
            assert_eq!(elements, FLAT, "{op}");
        }
    }
    Ok(())
}

#[test]
fn graphs_write_to_copies() -> Result<()> {
    for (op, expected) in IN_PLACE {
        let graph = Graph::new()?;
        let scope = graph.scope();
        let fed = scope.placeholder("x", DataType::FLOAT, &Shape::from([2, 2]))?;
        let constant = scope.constant(&Tensor::from_array(X)?)?;
        let results = [
            in_place(&scope.named("changed"), op, &fed)?,
            in_place(&scope, op, &constant)?,
        ];
        assert_eq!(results[0].operation().name(), "changed");
        let session = Session::new(&graph)?;
        let x = Tensor::from_array(X)?;
        let elements = x.as_slice::<f32>()?;
        let fetches = [&results[0], &results[1], &constant];
        let first = session.eval(&[(&fed, &x)], &fetches)?;
        for _ in 0..2 {
            let values = session.eval(&[(&fed, &x)], &fetches)?;
            assert_eq!(values[0].as_slice::<f32>()?, expected, "{op}");
            assert_eq!(values[1].as_slice::<f32>()?, expected, "{op}");
            assert_eq!(values[2].as_slice::<f32>()?, FLAT, "{op}");
        }
        assert_eq!(first[2].as_slice::<f32>()?, FLAT, "{op}");
        assert_eq!(elements, FLAT, "{op}");
    }
    Ok(())
}

/// A graph whose in-place operation has its operand as it is, as Python's graphs have.
fn bare(op: &str) -> Result<Graph> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([2, 2]))?;
    let result = in_place(&scope.named("result"), op, &x)?;
    graph.update_edge(&x, result.operation(), 0)?;
    Ok(graph)
}

#[test]
fn graphs_from_elsewhere_get_copies() -> Result<()> {
    for (op, expected) in IN_PLACE {
        let made = bare(op)?;
        let imported = Graph::new()?;
        imported.import(&made.to_graph_def()?, &ImportOptions::default())?;
        for graph in [made, imported] {
            let (x, result) = (graph.output("x")?, graph.output("result")?);
            let session = Session::new(&graph)?;
            let tensor = Tensor::from_array(X)?;
            let elements = tensor.as_slice::<f32>()?;
            let values = session.eval(&[(&x, &tensor)], &[&result])?;
            assert_eq!(values[0].as_slice::<f32>()?, expected, "{op}");
            let callable = session.callable(&[x.clone()], &[result.clone()], &[])?;
            assert_eq!(callable.call(&[&tensor])?[0].as_slice::<f32>()?, expected);
            let partial = session.partial_run(&[x.clone()], &[result.clone()], &[])?;
            let values = partial.step(&[(&x, &tensor)], &[&result], &[])?;
            assert_eq!(values[0].as_slice::<f32>()?, expected, "{op}");
            assert_eq!(elements, FLAT, "{op}");
        }
    }
    Ok(())
}

#[test]
fn functions_write_to_copies_or_are_refused() -> Result<()> {
    let shape = Shape::from([2, 2]);
    for (op, expected) in IN_PLACE {
        let graph = Graph::new()?;
        let x = graph.scope().placeholder("x", DataType::FLOAT, &shape)?;
        let result = in_place(&graph.scope(), op, &x)?;
        let options = FunctionOptions::default();
        let function = graph.to_function(&format!("own_{op}"), &[x], &[result], &options)?;
        let ctx = EagerContext::new()?;
        let tensor = Tensor::from_array(X)?;
        let elements = tensor.as_slice::<f32>()?;
        let types = [DataType::FLOAT];
        let call = |function: &Function| {
            OpBuilder::new("PartitionedCall")?
                .list([&tensor])
                .attr("Tout", &types[..])?
                .attr("f", FuncRef::from(function))?
                .execute(&ctx)
        };
        let value = call(&function)?.list()?.remove(0).to_tensor()?;
        assert_eq!(value.as_slice::<f32>()?, expected, "{op}");

        let graph = bare(op)?;
        let (x, result) = (graph.output("x")?, graph.output("result")?);
        let function = graph.to_function(&format!("bare_{op}"), &[x], &[result], &options)?;
        crate::support::refused(call(&function), &["can't be called eagerly", "'result"]);
        let bytes = function.to_function_def()?;
        crate::support::refused(ctx.add_function_def(&bytes), &["bare_", "'result"]);

        // A session that calls it feeds copies.
        let graph = Graph::new()?;
        let x = graph.scope().placeholder("x", DataType::FLOAT, &shape)?;
        let function = Function::from_function_def(&bytes)?;
        let called = OpBuilder::new("PartitionedCall")?
            .list([&x])
            .attr("Tout", &types[..])?
            .attr("f", FuncRef::from(&function))?;
        let called = called.execute(&graph.scope())?.list()?.remove(0);
        let values = Session::new(&graph)?.eval(&[(&x, &tensor)], &[&called])?;
        assert_eq!(values[0].as_slice::<f32>()?, expected, "{op}");
        assert_eq!(elements, FLAT, "{op}");
    }
    Ok(())
}

#[test]
fn reference_variables_leave_what_was_fetched() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let shape = Shape::from([2, 2]);
    let variable = OpBuilder::new("VariableV2")?
        .attr("dtype", DataType::FLOAT)?
        .attr("shape", &shape)?
        .one(&scope)?;
    let identity = OpBuilder::new("Identity")?.input(&variable).one(&scope)?;
    let x = scope.placeholder("x", DataType::FLOAT, &shape)?;
    let assign = OpBuilder::new("Assign")?
        .input(&variable)
        .input(&x)
        .one(&scope)?;
    let add = OpBuilder::new("AssignAdd")?
        .input(&variable)
        .input(&x)
        .one(&scope)?;
    let copy = Graph::new()?;
    copy.import(&graph.to_graph_def()?, &ImportOptions::default())?;
    for graph in [graph, copy] {
        let of = |output: &Output| graph.output(&output.name());
        let session = Session::new(&graph)?;
        let tensor = Tensor::from_array(X)?;
        let elements = tensor.as_slice::<f32>()?;
        let feeds = [(&of(&x)?, &tensor)];
        let assigned = session.eval(&feeds, &[&of(&assign)?])?;
        let fetched = session.eval(&[], &[&of(&variable)?, &of(&identity)?])?;
        let added = session.eval(&feeds, &[&of(&add)?])?;
        session.eval(&feeds, &[&of(&add)?])?;
        for value in assigned.iter().chain(&fetched) {
            assert_eq!(value.as_slice::<f32>()?, FLAT);
        }
        assert_eq!(added[0].as_slice::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(elements, FLAT);
    }
    Ok(())
}

/// Every op that changes a resource variable of two by two floats, with its operands.
fn changes(ctx: &EagerContext, variable: &TensorHandle) -> Result<()> {
    let op = |name: &str| Ok::<_, Error>(OpBuilder::new(name)?.input(variable));
    for name in ["AssignAddVariableOp", "AssignSubVariableOp"] {
        op(name)?.input([[1.0_f32, 1.0], [1.0, 1.0]]).execute(ctx)?;
    }
    for change in ["Update", "Add", "Sub", "Mul", "Div", "Min", "Max"] {
        let call = op(&format!("ResourceScatter{change}"))?.input([0_i32]);
        call.input([[7.0_f32, 8.0]]).execute(ctx)?;
    }
    for change in ["Update", "Add", "Sub", "Min", "Max"] {
        let call = op(&format!("ResourceScatterNd{change}"))?.input([[1_i32, 1]]);
        call.input([0.5_f32]).execute(ctx)?;
    }
    op("ResourceStridedSliceAssign")?
        .input([0_i32, 0])
        .input([1_i32, 2])
        .input([1_i32, 1])
        .input([[5.0_f32, 6.0]])
        .execute(ctx)?;
    let gradient = || Tensor::from_array([[1.0_f32, 1.0], [1.0, 1.0]]);
    op("ResourceApplyGradientDescent")?
        .input(0.5_f32)
        .input(&gradient()?)
        .execute(ctx)?;
    op("ResourceApplyProximalGradientDescent")?
        .input(0.5_f32)
        .input(0.1_f32)
        .input(0.1_f32)
        .input(&gradient()?)
        .execute(ctx)?;
    Ok(())
}

#[test]
fn resource_variables_leave_what_was_given_and_read() -> Result<()> {
    let ctx = EagerContext::new()?;
    let shape = Shape::from([2, 2]);
    let variable = OpBuilder::new("VarHandleOp")?
        .attr("dtype", DataType::FLOAT)?
        .attr("shape", &shape)?
        .one(&ctx)?;
    let given = Tensor::from_array(X)?;
    let elements = given.as_slice::<f32>()?;
    OpBuilder::new("AssignVariableOp")?
        .input(&variable)
        .input(&given)
        .execute(&ctx)?;
    let read = || {
        let call = OpBuilder::new("ReadVariableOp")?.input(&variable);
        call.attr("dtype", DataType::FLOAT)?.one(&ctx)?.to_tensor()
    };
    let before = read()?;
    changes(&ctx, &variable)?;
    assert_eq!(elements, FLAT);
    assert_eq!(before.as_slice::<f32>()?, FLAT);
    let between = read()?;
    let values = between.to_vec::<f32>()?;
    assert_ne!(values, FLAT);
    changes(&ctx, &variable)?;
    assert_eq!(between.as_slice::<f32>()?, values);
    Ok(())
}
