//! Trains one network on several machines, as `TF_CONFIG` says; without that variable, alone. The chief
//! saves into a folder, from which a training that was ended goes on.
//!
//! `workers --local=N` starts N workers on this machine.

use std::process::{Command, ExitCode};

use tfp::distribute::{ChiefOnly, ClusterOptions, ClusterSpec, MultiWorker, TfConfig};
use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{BackupAndRestore, Batches, Plan, Trainer};
use tfp::nn::{Activation, Loss, Metric, Weights};
use tfp::{Error, Result, Tensor};

/// Whether points are inside of a circle.
fn points(count: usize) -> Result<Batches> {
    let coordinate = |n: usize| (n as f32 * 0.618_034).fract() * 2.0 - 1.0;
    let x: Vec<f32> = (0..count)
        .flat_map(|n| [coordinate(n), coordinate(n * n % 1009)])
        .collect();
    let inside = |xy: &[f32]| xy.iter().map(|x| x * x).sum::<f32>() < 0.6;
    let y: Vec<i64> = x.chunks(2).map(|xy| inside(xy).into()).collect();
    let x = Tensor::from_vec(x, &[count as i64, 2])?;
    let y = Tensor::from_vec(y, &[count as i64])?;
    Ok(Batches::new(x, y, 64)?.shuffled(1))
}

fn train(config: &TfConfig) -> Result<()> {
    let workers = MultiWorker::connect(config, &ClusterOptions::default())?;
    let model = Sequential::new(
        &Weights::new(workers.context(), 7),
        &[2],
        &[&Dense::new(16).activation(Activation::Tanh), &Dense::new(2)],
    )?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let plan = Plan::new(loss, Adam::default())
        .rate(0.01)
        .metric(Metric::SparseCategoricalAccuracy);
    let mut trainer = Trainer::new(model, plan)?.across(&workers)?;

    let data = workers.shard(points(1000)?)?;
    let folder = std::env::temp_dir().join("tfp_workers");
    let mut backup = ChiefOnly::new(&workers, BackupAndRestore::new(folder));
    let history = trainer.fit(&data, 20, None, &mut [&mut backup])?;
    if let Some(last) = history.last() {
        println!("worker {} of {}: {last}", workers.rank(), workers.count());
    }
    // The chief has the service by which the others meet: it stays until all are here.
    workers.barrier()
}

/// Starts workers at free ports of this machine.
fn start(count: usize) -> Result<ExitCode> {
    let failed = |error: std::io::Error| Error::argument(format!("a worker: {error}"));
    let free = || -> std::io::Result<String> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.local_addr().map(|address| address.to_string())
    };
    let addresses: std::io::Result<Vec<String>> = (0..count).map(|_| free()).collect();
    let list = format!("{:?}", addresses.map_err(failed)?);
    let program = std::env::current_exe().map_err(failed)?;
    let mut workers = Vec::new();
    for index in 0..count {
        let config = format!(
            r#"{{"cluster": {{"worker": {list}}}, "task": {{"type": "worker", "index": {index}}}}}"#
        );
        let worker = Command::new(&program).env("TF_CONFIG", config).spawn();
        workers.push(worker.map_err(failed)?);
    }
    let mut code = ExitCode::SUCCESS;
    for mut worker in workers {
        if !worker.wait().map_err(failed)?.success() {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn main() -> Result<ExitCode> {
    if let Some(argument) = std::env::args().nth(1) {
        let count = argument.strip_prefix("--local=").map(str::parse);
        return match count {
            Some(Ok(count)) if count > 0 => start(count),
            _ => Err(Error::argument(
                "expected --local=N, or TF_CONFIG and no argument",
            )),
        };
    }
    let config = match TfConfig::from_env()? {
        Some(config) => config,
        None => {
            let alone = ClusterSpec::new().job("worker", ["127.0.0.1:2222"]);
            TfConfig::new(alone, "worker", 0)?
        }
    };
    train(&config).map(|()| ExitCode::SUCCESS)
}
