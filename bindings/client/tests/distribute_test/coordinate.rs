//! The coordinator of asynchronous training: a line, whose slope and offset are on parameter servers.
//!
//! After each round of items it saves into its folder, and it begins at the round that follows the last save.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use tfp::distribute::ParameterServer;
use tfp::{
    Checkpoint, Code, Context, DataType, EagerContext, GraphFunction, Mode, Result, Shape, Tape,
    Tensor, Variable, gradients, latest_checkpoint, ops,
};

use super::{need_config, noise, options, say};

const ROUNDS: i64 = 10;
/// Items of a round: each is a step, by many messages or by few.
const ITEMS: i64 = 5;
const TRACED_ITEMS: i64 = 40;
/// Samples of an item.
const SAMPLES: usize = 8;

/// The line, and how a worker makes a step.
struct Line {
    slope: Variable,
    offset: Variable,
    /// With it a step is one message to a worker, without it one for each op.
    step: Option<GraphFunction>,
}

impl Line {
    fn new(servers: &ParameterServer) -> Result<Self> {
        let slope = servers.variable("slope", 0.0_f32)?;
        let offset = servers.variable("offset", 0.0_f32)?;
        for variable in [&slope, &offset] {
            say(&format!("on {}", variable.handle().handle()?.device()?));
        }
        let mut line = Self {
            slope,
            offset,
            step: None,
        };
        if std::env::var_os("TRACED").is_some() {
            let samples = (DataType::FLOAT, Shape::new(&[SAMPLES as i64]));
            let arguments = [samples.clone(), samples];
            let step = GraphFunction::trace(servers.context(), "step", &arguments, |cx, args| {
                let loss = line.loss(cx, &args[0], &args[1])?;
                let handles = [line.slope.handle().clone(), line.offset.handle().clone()];
                let found = gradients(cx, std::slice::from_ref(&loss), &handles)?;
                line.change(cx, &found)?;
                Ok(vec![loss])
            })?;
            line.step = Some(step);
        }
        Ok(line)
    }

    /// The mean of the squared errors.
    fn loss<C: Mode>(&self, cx: &C, x: &C::Value, y: &C::Value) -> Result<C::Value> {
        let line = ops::mul(cx, x, self.slope.read(cx)?)?;
        let line = ops::add_v2(cx, line, self.offset.read(cx)?)?;
        let error = ops::square(cx, ops::sub(cx, line, y)?)?;
        ops::mean(cx, &error, 0_i32, ops::MeanOptions::default())
    }

    fn change<C: Mode>(&self, cx: &C, found: &[Option<C::Value>]) -> Result<()> {
        for (variable, gradient) in [&self.slope, &self.offset].into_iter().zip(found) {
            let gradient = gradient.as_ref().expect("the loss depends on both");
            variable.assign_sub(cx, ops::mul(cx, gradient, 0.3_f32)?)?;
        }
        Ok(())
    }

    /// Makes the step of an item on a worker, and returns the device of its loss.
    fn train(&self, cx: &EagerContext, item: i64) -> Result<String> {
        let x = noise(SAMPLES, item as u32 + 1);
        let y: Vec<f32> = x.iter().map(|x| 3.0 * x - 1.0).collect();
        let x = cx.constant(&Tensor::from_slice(&x, &[SAMPLES as i64])?)?;
        let y = cx.constant(&Tensor::from_slice(&y, &[SAMPLES as i64])?)?;
        if let Some(step) = &self.step {
            return step.call(cx, &[x, y])?[0].device();
        }
        let tape = Tape::new(cx);
        let loss = self.loss(&tape, &x, &y)?;
        let handles = [self.slope.handle_in(cx)?, self.offset.handle_in(cx)?];
        let found = tape.gradients(&[&loss], &[&handles[0], &handles[1]])?;
        self.change(cx, &found)?;
        loss.device()
    }
}

/// Names of devices of other tasks are completed, or refused at once with those that there are.
fn check_names(cx: &EagerContext) -> Result<()> {
    for (name, task) in [
        ("/job:ps/task:0", "/job:ps/replica:0/task:0"),
        (
            "/job:worker/task:1/device:CPU:0",
            "/job:worker/replica:0/task:1",
        ),
        ("/job:chief/device:CPU:0", "/job:chief/replica:0/task:0"),
    ] {
        let expected = format!("{task}/device:CPU:0");
        let sum = ops::add_v2(&cx.on_device(name)?, 1.0_f32, 2.0_f32)?;
        assert_eq!(sum.device()?, expected);
        assert_eq!(sum.to_tensor()?.to_scalar::<f32>()?, 3.0);
        let copy = cx.constant(&Tensor::scalar(1.0_f32)?)?.copy_to(name)?;
        assert_eq!(copy.device()?, expected);
    }
    for (name, problem) in [
        ("/job:nonsense/task:0/device:CPU:0", "names none of"),
        ("/job:worker/task:2/device:CPU:0", "names none of"),
        ("/job:worker/device:CPU:0", "names several devices"),
    ] {
        let error = cx.on_device(name).expect_err(name).to_string();
        assert!(error.contains(problem), "{error}");
        assert!(
            error.contains("/job:worker/replica:0/task:1/device:CPU:0"),
            "{error}"
        );
    }
    Ok(())
}

pub fn coordinate(folder: &Path) -> Result<()> {
    let servers = ParameterServer::connect(&need_config()?, &options())?;
    check_names(servers.context())?;
    let line = Line::new(&servers)?;
    let done = Variable::new(servers.context(), "done", 0_i64)?;
    let mut kept = Checkpoint::new();
    for variable in [&line.slope, &line.offset, &done] {
        kept.add(variable.name(), variable)?;
    }
    match latest_checkpoint(folder) {
        Ok(prefix) => drop(kept.restore(prefix)?.complete()?),
        Err(error) if error.code() == Code::NotFound => {}
        Err(error) => return Err(error),
    }
    let first = done.to_tensor()?.to_scalar::<i64>()?;
    say(&format!("begins at round {first}"));
    let items = match line.step {
        Some(_) => TRACED_ITEMS,
        None => ITEMS,
    };
    let used = Mutex::new(BTreeSet::new());
    for round in first..ROUNDS {
        let begun = Instant::now();
        let trained = servers.for_each(round * items..(round + 1) * items, |cx, item| {
            let device = line.train(cx, *item)?;
            used.lock().unwrap().insert(device);
            Ok(())
        });
        if let Err(error) = trained {
            say(&format!(
                "failed in round {round} after {:.1} s",
                begun.elapsed().as_secs_f32()
            ));
            return Err(error);
        }
        done.assign(servers.context(), round + 1)?;
        kept.save(folder.join("line"))
            .map_err(|error| servers.named(error))?;
        let seconds = begun.elapsed().as_secs_f32();
        say(&format!("saved round {round} after {seconds:.1} s"));
    }
    for device in used.into_inner().unwrap() {
        say(&format!("used {device}"));
    }
    for variable in [&line.slope, &line.offset] {
        let value = variable.to_tensor()?.to_scalar::<f32>()?;
        say(&format!("{} {value:.6}", variable.name()));
    }
    Ok(())
}
