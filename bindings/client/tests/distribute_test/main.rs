//! A task of a cluster, as `TF_CONFIG` says; without it, one process that does the same alone.
//!
//! `task train FOLDER EPOCHS`: trains and prints all losses; `DIE_AT=step` and `HANG_AT=step` end or stop it, and
//! `TRACED=1` traces its steps.
//! `task reduce`: the collective ops. `task mixed STEPS`: a loop that Python's worker makes, too.
//! `task bench STEPS`: seconds of steps, with `TRACED=1` of traced ones. `task server`: a server.
//! `task coordinate FOLDER`: the coordinator of asynchronous training, with `TRACED=1` of traced steps.

mod coordinate;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tfp::distribute::{ChiefOnly, ClusterOptions, MultiWorker, Reduction, Server, TfConfig};
use tfp::nn::layer::{BatchNorm, Dense, Dropout, Layer, Sequential};
use tfp::nn::optimizer::{Adam, Rule, Sgd};
use tfp::nn::training::{BackupAndRestore, Batches, Callback, Control, Logs, Plan, Trainer};
use tfp::nn::{Activation, Loss, Metric, Weights};
use tfp::{Context, EagerContext, Error, Result, Tape, Tensor, Variable, ops};

/// Samples, features and classes; the last batch of 16 has 6 samples.
const SIZES: (usize, usize, usize) = (70, 6, 3);

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // The reader may be gone.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Numbers between -1 and 1 (Numerical Recipes, 1992).
fn noise(count: usize, mut state: u32) -> Vec<f32> {
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

fn data(samples: usize) -> Result<Batches> {
    let (_, features, classes) = SIZES;
    let x = noise(samples * features, 1);
    let y: Vec<i64> = x
        .chunks(features)
        .map(|row| (row.iter().sum::<f32>().abs() * 2.0) as i64 % classes as i64)
        .collect();
    let x = Tensor::from_vec(x, &[samples as i64, features as i64])?;
    let y = Tensor::from_vec(y, &[samples as i64])?;
    Ok(Batches::new(x, y, 16)?.shuffled(5))
}

fn options() -> ClusterOptions {
    let seconds = |name: &str, default: u64| {
        let found = std::env::var(name).ok().and_then(|text| text.parse().ok());
        Duration::from_secs(found.unwrap_or(default))
    };
    ClusterOptions {
        register: seconds("REGISTER", 120),
        heartbeat: seconds("HEARTBEAT", 10),
        collective: seconds("COLLECTIVE", 60),
        ..ClusterOptions::default()
    }
}

/// Prints losses, and ends the process where it is told to.
struct Watch;

impl<R: Rule> Callback<R> for Watch {
    fn step(&mut self, _: usize, loss: f64, trainer: &Trainer<R>) -> Result<()> {
        say(&format!("step {} loss {loss:.9}", trainer.step()));
        let at = |name: &str| std::env::var(name).is_ok_and(|at| at == trainer.step().to_string());
        if at("DIE_AT") {
            std::process::abort();
        }
        if at("HANG_AT") {
            std::thread::sleep(Duration::from_secs(600));
        }
        Ok(())
    }

    fn end(&mut self, epoch: usize, logs: &Logs, _: &Trainer<R>) -> Result<Control> {
        let values: Vec<String> = logs
            .iter()
            .map(|(name, value)| format!("{name} {value:.9}"))
            .collect();
        say(&format!("epoch {epoch} {}", values.join(" ")));
        Ok(Control::Continue)
    }
}

fn train(folder: &Path, epochs: usize) -> Result<()> {
    let workers = TfConfig::from_env()?
        .map(|config| MultiWorker::connect(&config, &options()))
        .transpose()?;
    let context = match &workers {
        Some(workers) => workers.context().clone(),
        None => EagerContext::new()?,
    };
    // Each worker draws other values; all begin with the chief's.
    let seed = workers.as_ref().map_or(0, MultiWorker::rank) as u32;
    let (_, features, classes) = SIZES;
    let hidden = Dense::new(8).activation(Activation::Relu);
    let (last, norm, drop) = (
        Dense::new(classes as i64),
        BatchNorm::default(),
        Dropout { rate: 0.2 },
    );
    let layers: Vec<&dyn Layer> = match std::env::var_os("WITH_STATE") {
        Some(_) => vec![&hidden, &norm, &drop, &last],
        None => vec![&hidden, &last],
    };
    let model = Sequential::new(&Weights::new(&context, seed), &[features as i64], &layers)?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let plan = Plan::new(loss, Adam::default())
        .rate(0.01)
        .metric(Metric::SparseCategoricalAccuracy);
    let mut trainer = Trainer::new(model, plan)?;
    if std::env::var_os("TRACED").is_some() {
        trainer = trainer.traced();
    }
    let (data, held) = (data(SIZES.0)?, data(33)?);
    let backup = BackupAndRestore::new(folder).every(2).keep();
    let trainer = match &workers {
        None => {
            let mut trainer = trainer;
            trainer.fit(&data, epochs, Some(&held), &mut [&mut Watch])?;
            trainer
        }
        Some(workers) => {
            let mut trainer = trainer.across(workers)?;
            let (data, held) = (workers.shard(data)?, workers.shard(held)?);
            let mut backup = ChiefOnly::new(workers, backup);
            let started = Instant::now();
            let done = trainer.fit(&data, epochs, Some(&held), &mut [&mut backup, &mut Watch]);
            if let Err(error) = done {
                say(&format!(
                    "failed after {:.1} s",
                    started.elapsed().as_secs_f32()
                ));
                return Err(error);
            }
            trainer
        }
    };
    for (variable, value) in trainer.model().variables().iter().zip(trainer.values()?) {
        let sum: f32 = value.as_slice::<f32>()?.iter().map(|x| x.abs()).sum();
        say(&format!("variable {} {sum:.9}", variable.name()));
    }
    match workers {
        Some(workers) => workers.barrier(),
        None => Ok(()),
    }
}

fn need_config() -> Result<TfConfig> {
    TfConfig::from_env()?.ok_or_else(|| Error::argument("TF_CONFIG is not set"))
}

fn reduce() -> Result<()> {
    let workers = MultiWorker::connect(&need_config()?, &options())?;
    let cx = workers.context();
    let (rank, count) = (workers.rank() as f32, workers.count() as f32);
    let floats = cx.constant(&Tensor::from_array([rank, 2.0 * rank, -1.0])?)?;
    let numbers = cx.constant(&Tensor::from_vec(vec![rank as i64 + 1; 4], &[2, 2])?)?;
    let nothing = cx.constant(&Tensor::from_vec(Vec::<f32>::new(), &[0, 3])?)?;
    let double = cx.constant(&Tensor::scalar(f64::from(rank))?)?;
    let values = [floats, numbers, nothing, double];
    let sum = rank_sum(count);
    let expected = [
        (Reduction::Sum, sum, -count, sum + count),
        (
            Reduction::Mean,
            sum / count,
            -1.0,
            ((sum + count) / count).floor(),
        ),
        (Reduction::Min, 0.0, -1.0, 1.0),
        (Reduction::Max, count - 1.0, -1.0, count),
    ];
    for (reduction, first, last, number) in expected {
        say(&format!("{reduction:?}"));
        let found = workers.all_reduce(&values, reduction)?;
        let tensors = found.iter().map(|one| one.to_tensor());
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        assert_eq!(tensors[0].as_slice::<f32>()?, [first, 2.0 * first, last]);
        assert_eq!(tensors[1].as_slice::<i64>()?, [number as i64; 4]);
        assert_eq!(
            (tensors[1].dims(), tensors[2].dims()),
            (&[2, 2][..], &[0, 3][..])
        );
        assert_eq!(tensors[3].to_scalar::<f64>()?, f64::from(first));
    }
    say("broadcast");
    let sent = workers.broadcast(&values)?;
    assert_eq!(sent[0].to_tensor()?.as_slice::<f32>()?, [0.0, 0.0, -1.0]);
    assert_eq!(sent[1].to_tensor()?.as_slice::<i64>()?, [1; 4]);
    assert!(workers.any(workers.rank() == 1)? && !workers.any(false)?);
    let text = cx.constant(&Tensor::from_strings(&["a"], &[1])?)?;
    assert!(workers.all_reduce(&[text], Reduction::Sum).is_err());
    say("packs");
    // More than one pack.
    let large = vec![rank; 9 << 20];
    let large = cx.constant(&Tensor::from_vec(large, &[9 << 20])?)?;
    let found = workers.all_reduce(&[large.clone(), large], Reduction::Max)?;
    assert!(
        found[1]
            .to_tensor()?
            .as_slice::<f32>()?
            .iter()
            .all(|x| *x == count - 1.0)
    );
    workers.barrier()?;
    say("reduced");
    Ok(())
}

fn rank_sum(count: f32) -> f32 {
    count * (count - 1.0) / 2.0
}

/// Least squares by gradient descent; Python's worker makes the same calls of collective ops.
fn mixed(steps: usize) -> Result<()> {
    let workers = MultiWorker::connect(&need_config()?, &options())?;
    let cx = workers.context();
    let start = cx.constant(&Tensor::from_array([0.0_f32, 0.0])?)?;
    let start = workers.broadcast(&[start])?;
    let w = Variable::new(cx, "w", &start[0])?;
    let part = workers.rank() as f32;
    let x = cx.constant(&Tensor::from_vec(
        vec![1.0, part + 1.0, -part, 2.0_f32],
        &[2, 2],
    )?)?;
    let y = cx.constant(&Tensor::from_array([1.0_f32, part])?)?;
    for _ in 0..steps {
        let tape = Tape::new(cx);
        let value = w.read(&tape)?;
        let column = ops::expand_dims(&tape, &value, 1_i32)?;
        let found = ops::mat_mul(&tape, &x, &column, ops::MatMulOptions::default())?;
        let found = ops::reshape(&tape, &found, [-1_i32])?;
        let error = ops::square(&tape, ops::sub(&tape, &found, &y)?)?;
        let loss = ops::mean(&tape, &error, 0_i32, ops::MeanOptions::default())?;
        let gradient = tape.gradient(&loss, &w.handle_in(cx)?)?;
        let loss = workers.all_reduce(&[loss], Reduction::Mean)?;
        let gradient = workers.all_reduce(&[gradient], Reduction::Mean)?;
        w.assign_sub(cx, ops::mul(cx, &gradient[0], 0.1_f32)?)?;
        say(&format!(
            "loss {:.7}",
            loss[0].to_tensor()?.to_scalar::<f32>()?
        ));
    }
    Ok(())
}

/// Prints the seconds of each step of a network with 670,000 weights.
fn bench(steps: usize) -> Result<()> {
    let workers = MultiWorker::connect(&need_config()?, &options())?;
    let hidden = Dense::new(512).activation(Activation::Relu);
    let layers: [&dyn Layer; 3] = [&hidden, &hidden, &Dense::new(10)];
    let model = Sequential::new(&Weights::new(workers.context(), 1), &[784], &layers)?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let mut trainer = Trainer::new(model, Plan::new(loss, Sgd::default()))?.across(&workers)?;
    if std::env::var_os("TRACED").is_some() {
        trainer = trainer.traced();
    }
    let x = Tensor::from_vec(noise(64 * 784, 1), &[64, 784])?;
    let y = Tensor::from_vec((0..64_i64).map(|n| n % 10).collect(), &[64])?;
    for step in 0..steps + 5 {
        let start = Instant::now();
        trainer.train_on(&x, &y)?;
        if step >= 5 {
            say(&format!("second {:.6}", start.elapsed().as_secs_f64()));
        }
    }
    workers.barrier()
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        ["train", folder, epochs] => train(Path::new(folder), epochs.parse().expect("a number")),
        ["reduce"] => reduce(),
        ["mixed", steps] => mixed(steps.parse().expect("a number")),
        ["bench", steps] => bench(steps.parse().expect("a number")),
        ["server"] => Server::start(&need_config()?)?.join(),
        ["coordinate", folder] => coordinate::coordinate(Path::new(folder)),
        _ => Err(Error::argument(
            "train, reduce, mixed, bench, server or coordinate",
        )),
    }
}

fn main() {
    if let Err(error) = run() {
        say(&format!("error {error}"));
        say(&format!("kind {:?}", error.code()));
        std::process::exit(1);
    }
}
