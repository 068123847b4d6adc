//! What threads share stays whole, and what is dropped gives its memory back.

use std::cell::RefCell;
use std::thread;

use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Batches, Plan, Trainer};
use tfp::nn::{Loss, Weights};
use tfp::{
    AnyContext, DataType, EagerContext, Graph, GraphFunction, Mode, Model, Result, Session, Shape,
    Tape, Tensor, Variable, ops,
};

use crate::models::write_model;
use crate::scratch;
use crate::variables::resident_mib;

const THREADS: usize = 8;
const ROUNDS: usize = 200;

/// Runs work on several threads, and returns the first error.
fn on_threads(work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|number| {
                let work = &work;
                scope.spawn(move || work(number))
            })
            .collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a thread panicked"))
    })
}

#[test]
fn threads_add_to_one_variable() -> Result<()> {
    let ctx = EagerContext::new()?;
    let v = Variable::new(&ctx, "v", [0.0_f32; 16])?;
    on_threads(|_| {
        for _ in 0..ROUNDS {
            v.assign_add(&ctx, [1.0_f32; 16])?;
            // Nobody sees a part of a sum.
            let seen = v.to_tensor()?.to_vec::<f32>()?;
            assert_eq!(seen, [seen[0]; 16]);
        }
        Ok(())
    })?;
    let sum = (THREADS * ROUNDS) as f32;
    assert_eq!(v.to_tensor()?.to_vec::<f32>()?, [sum; 16]);
    Ok(())
}

#[test]
fn threads_call_one_model() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("shared"));
    write_model(&ctx, &folder)?;
    let model = Model::load(&ctx, &folder, &[])?;
    on_threads(|number| {
        let signature = model.signature("serving_default")?;
        for round in 0..ROUNDS {
            let (a, b) = (number as f32, round as f32);
            let y = signature.call_named(&ctx, [("x", [[a, b]])])?;
            let y = y["y"].to_tensor()?.to_vec::<f32>()?;
            assert_eq!(y, [2.0 * a, 3.0 * b]);
        }
        Ok(())
    })
}

/// What a program does again and again, by name.
type Habit = (&'static str, Box<dyn Fn() -> Result<()>>);

fn habits(ctx: &EagerContext) -> Result<Vec<Habit>> {
    let folder = scratch("habits");
    write_model(ctx, &folder)?;
    let model = Model::load(ctx, &folder, &[])?;
    let cx = || ctx.clone();
    let (eager, traced, called, taped, loaded) = (cx(), cx(), cx(), cx(), cx());
    let x = ctx.handle(&Tensor::from_slice(&[1.0_f32; 4096], &[64, 64])?)?;
    let (stepped, watched) = (x.clone(), x);
    let (step, fit, file) = (graph_step()?, fit(ctx)?, weights_file(ctx)?);
    Ok(vec![
        ("graph steps", step),
        ("fits", fit),
        ("weights of a file", file),
        (
            "eager steps",
            Box::new(move || {
                let y = ops::mat_mul(&eager, &stepped, &stepped, Default::default())?;
                ops::relu(&eager, y)?.to_tensor().map(drop)
            }),
        ),
        (
            "gradients on tapes",
            Box::new(move || {
                let tape = Tape::new(&taped);
                tape.watch(&watched)?;
                let y = ops::mul(&tape, &watched, &watched)?;
                tape.gradient(&y, &watched).map(drop)
            }),
        ),
        (
            "traces and drops",
            Box::new(move || {
                let signature = [(DataType::FLOAT, Shape::from([64, 64]))];
                let any: AnyContext = traced.any();
                let function = GraphFunction::trace(&any, "f", &signature, |cx, args| {
                    Ok(vec![ops::relu(cx, &args[0])?])
                })?;
                let x = traced.handle(&Tensor::zeros(DataType::FLOAT, &[64, 64])?)?;
                function.call(&traced, &[x]).map(drop)
            }),
        ),
        (
            "loads and drops",
            Box::new(move || {
                let model = Model::load(&loaded, &folder, &[])?;
                let signature = model.signature("serving_default")?;
                signature
                    .call_named(&loaded, [("x", [[1.0_f32, 2.0]])])
                    .map(drop)
            }),
        ),
        (
            "predictions",
            Box::new(move || {
                let signature = model.signature("serving_default")?;
                signature
                    .call_named(&called, [("x", [[1.0_f32, 2.0]])])
                    .map(drop)
            }),
        ),
    ])
}

/// A product in a graph, in a session.
fn graph_step() -> Result<Box<dyn Fn() -> Result<()>>> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = ops::placeholder(&scope, DataType::FLOAT, Default::default())?;
    let y = ops::mat_mul(&scope, &x, &x, Default::default())?;
    let session = Session::new(&graph)?;
    let value = Tensor::from_slice(&[1.0_f32; 4096], &[64, 64])?;
    Ok(Box::new(move || {
        session.run().feed(&x, &value).fetch(&y).go().map(drop)
    }))
}

/// An epoch of two batches.
fn fit(ctx: &EagerContext) -> Result<Box<dyn Fn() -> Result<()>>> {
    let trainer = RefCell::new(trainer(ctx)?);
    let x = Tensor::from_slice(&[0.5_f32; 64], &[16, 4])?;
    let truth = Tensor::from_slice(&[1.0_f32; 16], &[16, 1])?;
    let data = Batches::new(x, truth, 8)?;
    Ok(Box::new(move || {
        trainer.borrow_mut().fit(&data, 1, None, &mut []).map(drop)
    }))
}

/// The weights of a network, written and read again.
fn weights_file(ctx: &EagerContext) -> Result<Box<dyn Fn() -> Result<()>>> {
    let trainer = trainer(ctx)?;
    let path = scratch("habit").join("w.weights.h5");
    Ok(Box::new(move || {
        trainer.save_weights(&path)?;
        trainer.load_weights(&path)
    }))
}

fn trainer(ctx: &EagerContext) -> Result<Trainer<Adam>> {
    let weights = Weights::new(ctx, 1);
    let model = Sequential::new(&weights, &[4], &[&Dense::new(8), &Dense::new(1)])?;
    Trainer::new(model, Plan::new(Loss::MeanSquaredError, Adam::default()))
}

/// `TFP_HABITS=100000` is the long run, whose result docs/memory.md has.
#[test]
fn what_is_done_again_and_again_keeps_no_memory() -> Result<()> {
    if std::env::var_os("TFP_HABITS").is_none() {
        // Other tests would take memory of this process meanwhile.
        let this = std::env::current_exe().expect("a program");
        let test = "shared::what_is_done_again_and_again_keeps_no_memory";
        let mut command = std::process::Command::new(this);
        let command = command.args(["--exact", test, "--nocapture"]);
        let done = command
            .env("TFP_HABITS", "200")
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&done.stdout);
        println!("{text}");
        assert!(done.status.success() && text.contains("1 passed"));
        return Ok(());
    }
    let count = std::env::var("TFP_HABITS").expect("it is set");
    let count: usize = count.parse().expect("a number");
    let ctx = EagerContext::new()?;
    for (name, habit) in habits(&ctx)? {
        for _ in 0..count / 2 {
            habit()?;
        }
        let before = resident_mib();
        for _ in 0..count {
            habit()?;
        }
        let after = resident_mib();
        println!("{name}: {before} MiB, after {count} more {after} MiB");
        assert!(
            after < before + 24,
            "{name}: {before} MiB, then {after} MiB"
        );
    }
    Ok(())
}
