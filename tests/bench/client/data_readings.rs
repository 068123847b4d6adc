//! Readings of pipelines, for `data_vs_python.py`: it gets `PIPELINE FILE`, reads all elements, and answers
//! with the nanoseconds and the sum of a tensor of each batch.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use tfp::data::{Compression, Dataset, ExampleSpec, Parallel, image};
use tfp::{DataType, EagerContext, Result, ops};

const BATCH: i64 = 32;

/// Images of records: decoded, resized, scaled and batched.
fn images(cx: &EagerContext, file: &str) -> Result<Dataset> {
    let spec = ExampleSpec::new()
        .fixed("image", DataType::STRING, &[])
        .fixed("label", DataType::INT64, &[]);
    Dataset::records(cx, &[file], Compression::None)?
        .parallel_map(Parallel::auto(), |cx, record| {
            let fields = spec.parse(cx, &record[0])?;
            let pixels = image::decode(cx, &fields[0], 3)?;
            let pixels = image::resize(cx, &pixels, [64, 64], image::Method::Bilinear)?;
            Ok(vec![ops::div(cx, &pixels, 255.0_f32)?, fields[1].clone()])
        })?
        .batch(BATCH, true)?
        .prefetch(2)
}

/// Numbers one by one: what an element costs.
fn numbers(cx: &EagerContext, file: &str) -> Result<Dataset> {
    let count = file.parse().unwrap_or(0);
    Dataset::range(cx, 0, count)?
        .map_with(|cx, n| Ok(vec![ops::add_v2(cx, &n[0], 1_i64)?]))?
        .shuffle(1000, 7)
}

fn main() -> Result<(), Box<dyn Error>> {
    let cx = EagerContext::new()?;
    let mut made = HashMap::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (pipeline, file) = line
            .split_once(' ')
            .ok_or("expected a pipeline and a file")?;
        if !made.contains_key(&line) {
            let data = match pipeline {
                "images" => images(&cx, file)?,
                "numbers" => numbers(&cx, file)?,
                other => return Err(format!("no pipeline {other:?}").into()),
            };
            made.insert(line.clone(), data);
        }
        let Some(data) = made.get(&line) else {
            continue;
        };
        let (begun, mut sum) = (Instant::now(), 0);
        for element in data.iter()? {
            let last = element?.pop().ok_or("an element without tensors")?;
            sum += last.to_tensor()?.as_slice::<i64>()?.iter().sum::<i64>();
        }
        println!("{} {sum}", begun.elapsed().as_nanos());
        io::stdout().flush()?;
    }
    Ok(())
}
