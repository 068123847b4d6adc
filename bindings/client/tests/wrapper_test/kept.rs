//! Functions leave an eager context when nothing can call them any more, and not before.

use std::sync::atomic::{AtomicUsize, Ordering};

use tfp::{
    Context, DataType, EagerContext, EagerOptions, GraphFunction, Mode, Model, ModelWriter, Result,
    Shape, Tape, Tensor, TensorHandle, Variable, ops, register_gradient,
};

use crate::models::write_model;
use crate::scratch;

fn argument() -> [(DataType, Shape); 1] {
    [(DataType::FLOAT, Shape::from([-1, 2]))]
}

fn x(ctx: &EagerContext) -> Result<TensorHandle> {
    ctx.handle(&Tensor::from_array([[1.0_f32, 2.0]])?)
}

fn values(list: &[TensorHandle]) -> Result<Vec<f32>> {
    list[0].to_tensor()?.to_vec()
}

fn square<C: Mode>(cx: &C) -> Result<GraphFunction> {
    GraphFunction::trace(cx, "square", &argument(), |cx, args| {
        Ok(vec![ops::mul(cx, &args[0], &args[0])?])
    })
}

#[test]
fn a_traced_function() -> Result<()> {
    let ctx = EagerContext::new()?;
    let function = square(&ctx)?;
    let name = function.name().to_owned();
    assert!(!ctx.has_function(&name)?);
    assert_eq!(values(&function.call(&ctx, &[x(&ctx)?])?)?, [1.0, 4.0]);
    let clone = function.clone();
    drop(function);
    assert!(ctx.has_function(&name)?);
    assert_eq!(values(&clone.call(&ctx, &[x(&ctx)?])?)?, [1.0, 4.0]);
    drop(clone);
    assert!(!ctx.has_function(&name)?);
    Ok(())
}

#[test]
fn a_function_that_another_one_calls() -> Result<()> {
    let ctx = EagerContext::new()?;
    let inner = square(&ctx)?;
    let name = inner.name().to_owned();
    let mut outers = Vec::new();
    for _ in 0..2 {
        outers.push(GraphFunction::trace(
            &ctx,
            "outer",
            &argument(),
            |cx, args| {
                let squares = inner.call(cx, &[args[0].clone()])?;
                inner.call(cx, &squares)
            },
        )?);
    }
    drop(inner);
    for outer in &outers {
        assert_eq!(values(&outer.call(&ctx, &[x(&ctx)?])?)?, [1.0, 16.0]);
    }
    let second = outers.remove(1);
    drop(outers);
    assert!(ctx.has_function(&name)?);
    ctx.clear_caches();
    assert_eq!(values(&second.call(&ctx, &[x(&ctx)?])?)?, [1.0, 16.0]);
    drop(second);
    assert!(!ctx.has_function(&name)?);
    Ok(())
}

#[test]
fn a_function_on_a_tape() -> Result<()> {
    let ctx = EagerContext::new()?;
    let (function, x) = (square(&ctx)?, x(&ctx)?);
    let name = function.name().to_owned();
    let outer = Tape::new(&ctx);
    outer.watch(&x)?;
    let tape = Tape::new(&outer);
    tape.watch(&x)?;
    let y = function.call(&tape, std::slice::from_ref(&x))?;
    drop(function);
    ctx.clear_caches();
    let dy = tape.gradient(&y[0], &x)?;
    drop(tape);
    ctx.clear_caches();
    assert_eq!(dy.to_tensor()?.to_vec::<f32>()?, [2.0, 4.0]);
    let second = outer.gradient(&dy, &x)?;
    assert_eq!(second.to_tensor()?.to_vec::<f32>()?, [2.0, 2.0]);
    drop((outer, y));
    assert!(!ctx.has_function(&name)?);
    Ok(())
}

#[test]
fn a_function_of_two_contexts_and_one_that_is_gone() -> Result<()> {
    let (ctx, other) = (EagerContext::new()?, EagerContext::new()?);
    let function = square(&ctx)?;
    let name = function.name().to_owned();
    for cx in [&ctx, &other, &EagerContext::new()?] {
        function.install(cx)?;
        assert!(cx.has_function(&name)?);
    }
    drop(function);
    assert!(!ctx.has_function(&name)? && !other.has_function(&name)?);
    Ok(())
}

#[test]
fn ops_in_the_background_keep_their_functions() -> Result<()> {
    let options = EagerOptions {
        is_async: true,
        ..Default::default()
    };
    let ctx = EagerContext::with_options(&options)?;
    let function = square(&ctx)?;
    let name = function.name().to_owned();
    let y = function.call(&ctx, &[x(&ctx)?])?;
    drop(function);
    assert!(ctx.has_function(&name)?);
    assert_eq!(values(&y)?, [1.0, 4.0]);
    Ok(())
}

#[test]
fn functions_of_a_model() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("kept"));
    write_model(&ctx, &folder)?;
    let model = Model::load(&ctx, &folder, &[])?;
    let function = model.signature("serving_default")?;
    let trace = || GraphFunction::trace(&ctx, "outer", &argument(), |cx, x| function.call(cx, x));
    let traced = trace()?;
    let name = traced.function().called()?[0].clone();
    assert!(ctx.has_function(&name)?);
    drop(model);
    // A function of the model, without the model.
    assert_eq!(values(&function.call(&ctx, &[x(&ctx)?])?)?, [2.0, 6.0]);
    let watched = x(&ctx)?;
    let tape = Tape::new(&ctx);
    tape.watch(&watched)?;
    let y = function.call(&tape, std::slice::from_ref(&watched))?;
    let again = trace()?;
    drop(function);
    ctx.clear_caches();
    // A function that calls it, and one that calls that.
    let outermost = GraphFunction::trace(&ctx, "outermost", &argument(), |cx, x| {
        let once = traced.call(cx, x)?;
        again.call(cx, &once)
    })?;
    drop((traced, again));
    assert_eq!(values(&outermost.call(&ctx, &[x(&ctx)?])?)?, [4.0, 18.0]);
    drop(outermost);
    ctx.clear_caches();
    // A tape has what the gradient needs.
    let gradient = tape.gradient(&y[0], &watched)?;
    assert_eq!(gradient.to_tensor()?.to_vec::<f32>()?, [2.0, 3.0]);
    drop((tape, y));
    assert!(!ctx.has_function(&name)?);
    Ok(())
}

#[test]
fn a_gradient_of_a_model_is_worked_out_once() -> Result<()> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    // An op of this test alone.
    register_gradient("Ndtri", |call| {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(vec![Some(call.grad(0)?.into())])
    });
    let (ctx, folder) = (EagerContext::new()?, scratch("once"));
    let mut writer = ModelWriter::new();
    let w = Variable::new(&ctx, "w", 3.0_f32)?;
    writer.variable("w", &w)?;
    let x = ("x", DataType::FLOAT, Shape::from([-1]));
    writer.signature("serving_default", &[x], |func, arguments| {
        let y = ops::mul(func, ops::ndtri(func, &arguments["x"])?, w.read(func)?)?;
        Ok(vec![("y".to_owned(), y)])
    })?;
    writer.write(&folder)?;
    let model = Model::load(&ctx, &folder, &[])?;
    let function = model.signature("serving_default")?;
    let x = ctx.handle(&Tensor::from_array([0.5_f32])?)?;
    let x_and_w = [
        x.clone(),
        model.variables().next().expect("w").1.handle_in(&ctx)?,
    ];
    for _ in 0..3 {
        let tape = Tape::new(&ctx);
        tape.watch(&x)?;
        let y = function.call(&tape, std::slice::from_ref(&x))?;
        let found = tape.gradients(&[&y[0]], &[&x_and_w[0], &x_and_w[1]])?;
        let found: Vec<TensorHandle> = found.into_iter().flatten().collect();
        assert_eq!(values(&found)?, [3.0]);
        assert!(values(&found[1..])?[0].abs() < 1e-6);
        assert_eq!(COUNT.load(Ordering::Relaxed), 1);
    }
    // What was worked out does not keep the model.
    let argument = [(DataType::FLOAT, Shape::from([-1]))];
    let traced = GraphFunction::trace(&ctx, "outer", &argument, |cx, x| function.call(cx, x))?;
    let name = traced.function().called()?[0].clone();
    drop(traced);
    assert!(ctx.has_function(&name)?);
    drop((model, function));
    assert!(!ctx.has_function(&name)?);
    Ok(())
}

#[test]
fn threads_that_trace_and_drop() -> Result<()> {
    let ctx = EagerContext::new()?;
    let shared = square(&ctx)?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (ctx, shared) = (ctx.clone(), shared.clone());
                scope.spawn(move || -> Result<()> {
                    for _ in 0..25 {
                        let argument = argument();
                        // So large that the kernels of calls are dropped every now and then.
                        let large = Tensor::zeros(DataType::FLOAT, &[128, 128])?;
                        let own = GraphFunction::trace(&ctx, "own", &argument, |cx, args| {
                            let zeros = cx.constant(&large)?;
                            let zero = ops::sum(cx, zeros, [0, 1], Default::default())?;
                            let args = [ops::add_v2(cx, &args[0], zero)?];
                            shared.call(cx, &args)
                        })?;
                        assert_eq!(values(&own.call(&ctx, &[x(&ctx)?])?)?, [1.0, 4.0]);
                        assert!(ctx.function_def(own.name())?.len() > 1 << 16);
                    }
                    Ok(())
                })
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    let name = shared.name().to_owned();
    assert!(ctx.has_function(&name)?);
    drop(shared);
    assert!(!ctx.has_function(&name)?);
    Ok(())
}
