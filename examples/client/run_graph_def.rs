//! Runs a graph that Python made: a `GraphDef` file, the names of a fed and of a fetched tensor, and
//! numbers for the fed one.
//!
//! `run_graph_def graph.pb x:0 y:0 1.5 2.5`

use std::error::Error;
use std::process::ExitCode;

use tfp_core::{Graph, ImportOptions, Session, Tensor};

const USAGE: &str = "usage: run_graph_def GRAPH.pb FEED FETCH NUMBER...
Feeds the numbers, as a vector of float32, and prints the fetched tensor.";

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [file, feed, fetch, numbers @ ..] = arguments else {
        return Err(USAGE.into());
    };
    let graph = Graph::new()?;
    graph.import(&std::fs::read(file)?, &ImportOptions::default())?;
    let (feed, fetch) = (graph.output(feed)?, graph.output(fetch)?);

    let numbers: Vec<f32> = numbers
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let dims = [numbers.len() as i64];
    let values =
        Session::new(&graph)?.eval(&[(&feed, &Tensor::from_vec(numbers, &dims)?)], &[&fetch])?;
    println!("{:?}", values[0].as_slice::<f32>()?);
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run_graph_def: {error}");
            ExitCode::FAILURE
        }
    }
}
