//! What threads share stays whole, and what is dropped gives its memory back.

use std::thread;

use tfp::{
    AnyContext, DataType, EagerContext, GraphFunction, Mode, Model, Result, Shape, Tape, Tensor,
    Variable, ops,
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
    let (eager, traced, called, taped) = (cx(), cx(), cx(), cx());
    let x = ctx.handle(&Tensor::from_slice(&[1.0_f32; 4096], &[64, 64])?)?;
    let (stepped, watched) = (x.clone(), x);
    Ok(vec![
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
                assert_eq!(function.results().len(), 1);
                Ok(())
            }),
        ),
        (
            "loads and drops",
            // A model's functions stay in its context.
            Box::new(move || Model::load(&EagerContext::new()?, &folder, &[]).map(drop)),
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
