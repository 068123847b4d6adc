//! Says how long each layer of a model takes.

use mnist::{Error, Inputs, Mnist};

fn main() -> Result<(), Error> {
    let image = [0.5; 64];
    let model = Mnist::new()?;
    let inputs = Inputs { image: &image };
    // The first call takes memory, which the ones after it use again.
    model.predict(inputs)?;
    let (_, times) = model.predict_profiled(inputs)?;
    let all: u64 = times.iter().map(|time| time.nanoseconds).sum();
    println!("| layer | ns | % |");
    println!("|---|---:|---:|");
    for time in times {
        let percent = 100.0 * time.nanoseconds as f64 / all.max(1) as f64;
        println!("| {} | {} | {percent:.0} |", time.layer, time.nanoseconds);
    }
    Ok(())
}
