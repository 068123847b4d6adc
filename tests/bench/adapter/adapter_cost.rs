//! What the adapter between TensorFlow and the kernels costs per node.
//!
//! Runs a chain of `Relu` nodes on one-element tensors on the TFP device: with the kernel of
//! libtfp.so, and with one that is written against TensorFlow's C interface by hand
//! (`adapter_peer.cc`, which has a kernel label). The two alternate in one process on one thread;
//! times are those of whole nodes, TensorFlow's own work included.
//!
//! ```text
//! adapter_cost --plugin=libtfp.so --peer=libadapter_peer.so [--nodes=300] [--rounds=201]
//!              [--only=adapter|peer] [--json]
//! ```
//!
//! With `--only` one kernel runs alone, for a tool that counts instructions.

use std::process::ExitCode;
use std::time::Instant;

use tfp_core::{
    Config, Graph, OpBuilder, Operation, Result, Session, SessionOptions, Tensor,
    load_pluggable_device, version,
};

struct Arguments {
    plugin: String,
    peer: String,
    nodes: usize,
    rounds: usize,
    only: Option<String>,
    json: bool,
}

fn arguments() -> std::result::Result<Arguments, String> {
    let mut found = Arguments {
        plugin: String::new(),
        peer: String::new(),
        nodes: 300,
        rounds: 201,
        only: None,
        json: false,
    };
    for argument in std::env::args().skip(1) {
        let number = |text: &str| {
            let number = text.parse::<usize>().ok().filter(|&number| number > 0);
            number.ok_or_else(|| format!("{argument}: a positive number is expected"))
        };
        match argument.split_once('=') {
            Some(("--plugin", path)) => path.clone_into(&mut found.plugin),
            Some(("--peer", path)) => path.clone_into(&mut found.peer),
            Some(("--nodes", text)) => found.nodes = number(text)?,
            Some(("--rounds", text)) => found.rounds = number(text)?,
            Some(("--only", name @ ("adapter" | "peer"))) => found.only = Some(name.to_owned()),
            None if argument == "--json" => found.json = true,
            _ => return Err(format!("{argument}: no such argument")),
        }
    }
    if found.plugin.is_empty() || found.peer.is_empty() {
        return Err("--plugin and --peer are needed: the paths of the two libraries".to_owned());
    }
    Ok(found)
}

/// A session whose one target is the end of a chain of nodes.
struct Chain {
    name: &'static str,
    session: Session,
    end: Operation,
    /// Nanoseconds of a node, one per round.
    times: Vec<f64>,
}

impl Chain {
    fn new(name: &'static str, label: &str, nodes: usize) -> Result<Self> {
        let graph = Graph::new()?;
        let scope = graph.scope().on_device("/device:TFP:0")?;
        let one = Tensor::from_slice(&[1.0_f32], &[1])?;
        let mut node = tfp_core::Context::constant(&scope, &one)?;
        let scope = match label {
            "" => scope,
            _ => scope.with_kernel_label(label),
        };
        for _ in 0..nodes {
            node = OpBuilder::new("Relu")?.input(&node).one(&scope)?;
        }
        let end = node.operation().clone();
        let options = SessionOptions {
            config: Config::new().threads(1).parallel_ops(1).optimize(false),
            ..SessionOptions::default()
        };
        Ok(Self {
            name,
            session: Session::with_options(&graph, &options)?,
            end,
            times: Vec::new(),
        })
    }

    fn run(&mut self, nodes: usize) -> Result<()> {
        let start = Instant::now();
        self.session.run().target(&self.end).go()?;
        self.times
            .push(start.elapsed().as_nanos() as f64 / nodes as f64);
        Ok(())
    }
}

/// Least value and quartiles.
fn summary(times: &[f64]) -> [f64; 4] {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |quarter: usize| sorted[(sorted.len() - 1) * quarter / 4];
    [at(0), at(1), at(2), at(3)]
}

fn measure(arguments: &Arguments) -> Result<()> {
    const WARM_UP: usize = 5;
    load_pluggable_device(&arguments.plugin)?;
    load_pluggable_device(&arguments.peer)?;
    let mut chains = Vec::new();
    for (name, label) in [("adapter", ""), ("peer", "peer")] {
        if arguments.only.as_deref().is_none_or(|only| only == name) {
            chains.push(Chain::new(name, label, arguments.nodes)?);
        }
    }
    for round in 0..WARM_UP + arguments.rounds {
        // Who goes first alternates too.
        let count = chains.len();
        for position in 0..count {
            chains[(position + round) % count].run(arguments.nodes)?;
        }
    }
    let mut rows = Vec::new();
    for chain in &chains {
        rows.push((chain.name, summary(&chain.times[WARM_UP..])));
    }
    if let [adapter, peer] = &chains[..] {
        let pairs = adapter.times[WARM_UP..].iter().zip(&peer.times[WARM_UP..]);
        let ratios: Vec<f64> = pairs.map(|(a, b)| a / b).collect();
        rows.push(("ratio of pairs", summary(&ratios)));
        let ([a, ..], [b, ..]) = (rows[0].1, rows[1].1);
        rows.push(("ratio of the fastest", [a / b; 4]));
    }
    if arguments.json {
        let texts: Vec<String> = rows
            .iter()
            .map(|(name, row)| format!("\"{name}\": {row:?}"))
            .collect();
        println!(
            "{{\"tensorflow\": \"{}\", {}}}",
            version()?,
            texts.join(", ")
        );
        return Ok(());
    }
    println!(
        "| TensorFlow {}, ns per node | fastest | quartile | median | quartile |",
        version()?
    );
    println!("|---|---|---|---|---|");
    for (name, [low, first, median, third]) in rows {
        let digits = if name.starts_with("ratio") { 3 } else { 0 };
        println!(
            "| {name} | {low:.digits$} | {first:.digits$} | {median:.digits$} | {third:.digits$} |"
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("adapter_cost: {problem}");
            return ExitCode::from(2);
        }
    };
    match measure(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adapter_cost: {error}");
            ExitCode::FAILURE
        }
    }
}
