//! Eager contexts: placement, copies, background execution, functions.

use std::sync::{Arc, mpsc};

use tfp_core::*;

use crate::support::{add, refused};

#[test]
fn devices_are_listed_and_used() -> Result<()> {
    let ctx = EagerContext::new()?;
    let devices = ctx.devices()?;
    assert_eq!(devices[0].kind, "CPU");
    let cpu = ctx.on_device(&devices[0].name)?;
    let sum = add(&cpu, 1.0_f32, 2.0)?;
    assert_eq!(sum.device()?, devices[0].name);
    assert_eq!(sum.backing_device()?, devices[0].name);
    let copy = sum.copy_to(&devices[0].name)?;
    assert_eq!(copy.to_tensor()?.to_scalar::<f32>()?, 3.0);
    let short = sum.copy_to("/job:localhost/device:CPU:0")?;
    assert_eq!(short.device()?, devices[0].name);
    for missing in [
        "/device:TPU:9",
        "/job:nonsense/device:CPU:0",
        "/device:CPU:1",
    ] {
        let expected = [missing, "none of the devices", &devices[0].name];
        refused(ctx.on_device(missing), &expected);
        refused(sum.copy_to(missing), &expected);
    }
    refused(
        ctx.on_device("no device"),
        &["\"no device\"", "/device:CPU:0"],
    );
    // After a failed call the context is as before.
    assert_eq!(add(&ctx, 1, 2)?.to_tensor()?.to_scalar::<i32>()?, 3);
    Ok(())
}

#[test]
fn soft_placement_takes_another_device() -> Result<()> {
    let soft = |allow: bool| EagerOptions {
        config: Config::new().soft_placement(!allow).soft_placement(allow),
        ..EagerOptions::default()
    };
    let missing = "/device:TPU:9";
    let ctx = EagerContext::with_options(&soft(true))?;
    let sum = add(&ctx.on_device(missing)?, 1.0_f32, 2.0)?;
    assert_eq!(sum.device()?, ctx.devices()?[0].name);
    let ctx = EagerContext::with_options(&soft(false))?;
    refused(ctx.on_device(missing), &[missing, "none of the devices"]);
    Ok(())
}

#[test]
fn background_errors_reach_the_one_who_waits() -> Result<()> {
    let options = EagerOptions {
        is_async: true,
        ..EagerOptions::default()
    };
    let ctx = EagerContext::with_options(&options)?;
    let mut value = ctx.handle(&Tensor::scalar(0.0_f64)?)?;
    for _ in 0..100 {
        value = add(&ctx, &value, 1.0)?;
    }
    assert_eq!(value.to_tensor()?.to_scalar::<f64>()?, 100.0);
    ctx.wait()?;
    // Gather looks at its indices only when it runs.
    let gather = OpBuilder::new("GatherV2")?
        .input([1.0_f32, 2.0])
        .input(7)
        .input(0)
        .one(&ctx);
    match gather {
        Ok(value) => drop(refused(value.to_tensor(), &["indices"])),
        Err(error) => drop(refused::<()>(Err(error), &["indices"])),
    }
    let executor = ctx.thread_executor()?;
    assert!(executor.is_async());
    assert!(ctx.wait().is_err());
    executor.clear_error();
    assert_eq!(add(&ctx, 1, 2)?.to_tensor()?.to_scalar::<i32>()?, 3);
    ctx.wait()
}

#[test]
fn a_thread_may_have_its_own_executor() -> Result<()> {
    let ctx = EagerContext::new()?;
    assert!(!ctx.thread_executor()?.is_async());
    let executor = Executor::new(&ctx, true, 0)?;
    executor.use_for_thread();
    assert!(ctx.thread_executor()?.is_async());
    let value = add(&ctx, 1.0, 2.0)?;
    executor.wait()?;
    assert_eq!(value.to_tensor()?.to_scalar::<f64>()?, 3.0);
    drop(executor);
    assert!(ctx.thread_executor()?.is_async());
    assert_eq!(add(&ctx, 1, 2)?.to_tensor()?.to_scalar::<i32>()?, 3);
    Ok(())
}

#[test]
fn a_thread_keeps_the_executor_that_another_one_drops() -> Result<()> {
    let ctx = EagerContext::new()?;
    let shared = Arc::new(Executor::new(&ctx, true, 0)?);
    let theirs = Arc::clone(&shared);
    let (begin, wait) = mpsc::channel();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| -> Result<()> {
            let sum = add(&ctx, 1, 2)?;
            theirs.use_for_thread();
            drop(theirs);
            begin.send(()).expect("a listener");
            for _ in 0..1000 {
                assert_eq!(add(&ctx, &sum, 2)?.to_tensor()?.to_scalar::<i32>()?, 5);
            }
            Ok(())
        });
        wait.recv().expect("a worker");
        drop(shared);
        worker.join().expect("no panic")
    })
}

#[test]
fn functions_of_a_graph_are_called() -> Result<()> {
    let body = Graph::new()?;
    let x = body
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::unknown())?;
    let y = add(&body, &x, 1.0)?;
    let function = body.to_function("plus_one", &[x], &[y], &FunctionOptions::default())?;
    let ctx = EagerContext::new()?;
    assert!(!ctx.has_function("plus_one")?);
    let types = [DataType::FLOAT];
    let call = |func: FuncRef<'_>| -> Result<TensorHandle> {
        let out = OpBuilder::new("StatefulPartitionedCall")?
            .list([1.5_f32])
            .attr("Tout", &types[..])?
            .attr("f", func)?
            .execute(&ctx)?;
        Ok(out.all().remove(0))
    };
    refused(call("plus_one".into()), &["plus_one"]);
    assert_eq!(
        call((&function).into())?.to_tensor()?.to_scalar::<f32>()?,
        2.5
    );
    assert_eq!(
        call("plus_one".into())?.to_tensor()?.to_scalar::<f32>()?,
        2.5
    );
    assert!(ctx.has_function("plus_one")?);
    ctx.remove_function("plus_one")?;
    refused(ctx.remove_function("plus_one"), &["plus_one"]);
    refused(ctx.add_function_def(b"junk"), &["not a valid FunctionDef"]);
    // Functions as branches of a conditional: attributes of kind func, twice.
    let chosen = OpBuilder::new("If")?
        .input(true)
        .list([3.0_f32])
        .attr("Tout", &types[..])?
        .attr("then_branch", FuncRef::from(&function))?
        .attr("else_branch", FuncRef::from(&function))?
        .execute(&ctx)?
        .all();
    assert_eq!(chosen[0].to_tensor()?.to_scalar::<f32>()?, 4.0);
    // list(func).
    let branches = [FuncRef::from(&function), FuncRef::named("plus_one")];
    let chosen = OpBuilder::new("Case")?
        .input(1)
        .list([3.0_f32])
        .attr("Tout", &types[..])?
        .attr("branches", &branches[..])?
        .execute(&ctx)?
        .all();
    assert_eq!(chosen[0].to_tensor()?.to_scalar::<f32>()?, 4.0);
    Ok(())
}

#[test]
fn a_function_is_the_same_in_a_graph_and_at_once() -> Result<()> {
    let body = Graph::new()?;
    let a = body
        .scope()
        .placeholder("a", DataType::FLOAT, &Shape::unknown())?;
    let b = add(&body, &a, 1.0)?;
    let function = body.to_function("plus_one", &[a], &[b], &FunctionOptions::default())?;
    let before = function.to_function_def()?;
    let graph = Graph::new()?;
    graph.add_function(&function)?;
    let ctx = EagerContext::new()?;
    let x = ctx.handle(&Tensor::scalar(1.0_f32)?)?;
    let call = || -> Result<f32> {
        OpBuilder::new("PartitionedCall")?
            .list([&x])
            .attr("Tout", &[DataType::FLOAT][..])?
            .attr("f", FuncRef::from(&function))?
            .execute(&ctx)?
            .all()
            .remove(0)
            .to_tensor()?
            .to_scalar()
    };
    assert_eq!([call()?, call()?], [2.0, 2.0]);
    assert_eq!(function.to_function_def()?, before);
    graph.add_function(&function)?;
    // However often it was called, it is gone once it is removed; and it comes back with a call.
    ctx.remove_function("plus_one")?;
    assert!(!ctx.has_function("plus_one")?);
    assert_eq!(call()?, 2.0);
    // Another function of the name is refused, also once the first one is dropped.
    let copy = Function::from_function_def(&before)?;
    ctx.add_function(&copy)?;
    drop(function);
    let a = body
        .scope()
        .placeholder("a", DataType::FLOAT, &Shape::unknown())?;
    let b = add(&body, &a, 2.0)?;
    let options = FunctionOptions {
        operations: Some(&[
            b.operation().clone(),
            b.operation().inputs()[1].operation().clone(),
        ]),
        ..FunctionOptions::default()
    };
    let other = body.to_function("plus_one", &[a], &[b], &options)?;
    refused(ctx.add_function(&other), &["plus_one"]);
    refused(graph.add_function(&other), &["plus_one"]);
    Ok(())
}

#[test]
fn handles_of_another_context_are_refused() -> Result<()> {
    let (one, two) = (EagerContext::new()?, EagerContext::new()?);
    let x = one.handle(&Tensor::scalar(1.0_f32)?)?;
    let error = refused(add(&two, &x, 1.0), &["AddV2", "another eager context"]);
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }));
    assert!(x.context().is_same(&one));
    let bad = EagerOptions {
        config: b"\xff\xff".to_vec().into(),
        ..EagerOptions::default()
    };
    refused(EagerContext::with_options(&bad), &["InvalidArgument"]);
    Ok(())
}

#[test]
fn executions_are_recorded_on_demand() -> Result<()> {
    let ctx = EagerContext::new()?;
    ctx.start_recording();
    add(&ctx, 1.0, 2.0)?;
    ctx.stop_recording()?;
    ctx.set_thread_placement(PlacementPolicy::Warn);
    ctx.clear_caches();
    assert_eq!(add(&ctx, 1, 2)?.to_tensor()?.to_scalar::<i32>()?, 3);
    Ok(())
}

#[test]
fn ops_on_references_are_refused_by_name() -> Result<()> {
    let ctx = EagerContext::new()?;
    let types = [DataType::FLOAT];
    let variable = OpBuilder::new("VariableV2")?
        .attr("shape", &Shape::scalar())?
        .attr("dtype", types[0])?
        .one(&ctx);
    let error = refused(variable, &["VariableV2", "'ref'", "reference", "graphs"]);
    assert!(matches!(error.kind(), ErrorKind::GraphOnly { .. }));
    assert_eq!(error.code(), Code::Unimplemented);
    refused(
        OpBuilder::new("Assign")?
            .input(1.0_f32)
            .input(2.0_f32)
            .one(&ctx),
        &["Assign", "'ref'"],
    );
    Ok(())
}

/// TensorFlow itself infers the types of a second list from the wrong operand.
#[test]
fn a_list_after_a_list_has_its_own_type() -> Result<()> {
    let eager = EagerContext::new()?;
    let stitched = OpBuilder::new("DynamicStitch")?
        .list([[0_i32, 2], [1, 3]])
        .list([[0.5_f64, 2.5], [1.5, 3.5]])
        .one(&eager)?;
    assert_eq!(
        stitched.to_tensor()?.as_slice::<f64>()?,
        [0.5, 1.5, 2.5, 3.5]
    );
    let first = eager.handle(&Tensor::from_array([1_i32, 2])?)?;
    assert_ne!(first.id(), stitched.id());
    assert_eq!(first.id(), first.clone().id());
    Ok(())
}
