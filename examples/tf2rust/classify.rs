//! Reads a digit of 8 x 8 pixels from a picture of characters, with a model that Keras trained.

use mnist::{Error, Inputs, Mnist};

#[rustfmt::skip]
const DIGIT: [&str; 8] = [
    "  .##.  ",
    " .####. ",
    " ##..## ",
    " ##  ## ",
    " ##  ## ",
    " ##..## ",
    " .####. ",
    "  .##.  ",
];

fn main() -> Result<(), Error> {
    let pixels = DIGIT.iter().flat_map(|line| line.bytes());
    let image: Vec<f32> = pixels
        .map(|c| match c {
            b'#' => 1.0,
            b'.' => 0.5,
            _ => 0.0,
        })
        .collect();
    let model = Mnist::new()?;
    let outputs = model.predict(Inputs { image: &image })?;
    for line in DIGIT {
        println!("{line}");
    }
    let best = outputs
        .digit
        .iter()
        .zip(0..)
        .max_by(|a, b| a.0.total_cmp(b.0));
    if let Some((confidence, digit)) = best {
        println!("{digit}, {:.0} %", confidence * 100.0);
    }
    Ok(())
}
