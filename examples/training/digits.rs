//! Learns handwritten digits with a convolutional network, in graph or eager mode.
//!
//! `digits DIGITS.csv [graph|eager] [EPOCHS]`: each line of the file has 64 grey values from 0 to 16,
//! row by row, and the digit. Every fifth line is kept for validation. Prints the share of validation
//! digits that are recognized.

use std::error::Error;
use std::process::ExitCode;

use tfp::nn::functional::Padding;
use tfp::nn::layer::{BatchNorm, Conv, Dense, Dropout, Flatten, Pooling, Sequential};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Batches, Plan, Progress, Trainer};
use tfp::nn::{Activation, Loss, Metric, Weights};
use tfp::{AnyContext, EagerContext, Graph, Mode, Tensor};

const USAGE: &str = "usage: digits DIGITS.csv [graph|eager] [EPOCHS]
Each line has 64 grey values from 0 to 16 and the digit, separated by commas.";

/// Images and digits of the lines that are chosen by their number.
fn read(text: &str, chosen: impl Fn(usize) -> bool) -> Result<Batches, Box<dyn Error>> {
    let (mut images, mut digits) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(index, _)| chosen(*index)) {
        let numbers: Vec<f32> = line
            .split(',')
            .map(|number| number.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|error| format!("line {}: {error}", index + 1))?;
        let [image @ .., digit] = &numbers[..] else {
            continue;
        };
        if image.len() != 64 {
            return Err(format!(
                "line {} has {} numbers, expected 65",
                index + 1,
                numbers.len()
            )
            .into());
        }
        images.extend(image.iter().map(|grey| grey / 16.0));
        digits.push(*digit as i64);
    }
    let count = digits.len() as i64;
    let x = Tensor::from_vec(images, &[count, 8, 8, 1])?;
    Ok(Batches::new(x, Tensor::from_vec(digits, &[count])?, 32)?)
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let (file, mode, epochs) = match arguments {
        [file] => (file, "graph", "8"),
        [file, mode] => (file, mode.as_str(), "8"),
        [file, mode, epochs] => (file, mode.as_str(), epochs.as_str()),
        _ => return Err(USAGE.into()),
    };
    let epochs: usize = epochs.parse()?;
    let place: AnyContext = match mode {
        "graph" => Graph::new()?.any(),
        "eager" => EagerContext::new()?.any(),
        other => return Err(format!("no mode {other:?}\n{USAGE}").into()),
    };
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let data = read(&text, |index| index % 5 != 0)?.shuffled(1);
    let validation = read(&text, |index| index % 5 == 0)?;

    let model = Sequential::new(
        &Weights::new(&place, 7),
        &[8, 8, 1],
        &[
            &Conv::new(16, 3)
                .padding(Padding::Same)
                .activation(Activation::Relu),
            &BatchNorm {
                momentum: 0.9,
                ..BatchNorm::default()
            },
            &Pooling::max(2),
            &Conv::new(32, 3)
                .padding(Padding::Same)
                .activation(Activation::Relu),
            &Pooling::max(2),
            &Flatten,
            &Dropout { rate: 0.2 },
            &Dense::new(10),
        ],
    )?;
    let loss = Loss::SparseCategoricalCrossentropy { from_logits: true };
    let plan = Plan::new(loss, Adam::default())
        .rate(0.003)
        .metric(Metric::SparseCategoricalAccuracy);
    let mut trainer = Trainer::new(model, plan)?;
    let mut progress = Progress::default();
    trainer.fit(&data, epochs, Some(&validation), &mut [&mut progress])?;
    let logs = trainer.evaluate(&validation)?;
    let share = logs.get("sparse_categorical_accuracy").unwrap_or(0.0);
    println!(
        "{:.1} % of {} digits recognized",
        100.0 * share,
        validation.samples()
    );
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
            eprintln!("digits: {error}");
            ExitCode::FAILURE
        }
    }
}
