//! Data and weights: records are written and read, a model trains on them, and its weights go to another
//! program's format and back.

use std::error::Error;
use std::path::Path;

use tfp::data::{Buckets, Compression, Csv, Dataset, Example, ExampleSpec, Parallel, RecordWriter};
use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Weights};
use tfp::weights::{self, Mapping, TensorFile};
use tfp::{DataType, EagerContext, Shape, Tensor, ops};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tfp_pipeline_{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let done = write_records(&folder)
        .and_then(|()| train(&folder))
        .and_then(|()| other_sources(&folder));
    std::fs::remove_dir_all(&folder)?;
    done
}

fn write_records(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut writer = RecordWriter::create(folder.join("train.tfrecord"))?;
    for index in 0..256_u16 {
        let x = [
            f32::from(index % 16) / 8.0 - 1.0,
            f32::from(index / 16) / 8.0 - 1.0,
        ];
        let y = 2.0 * x[0] - x[1] + 0.5;
        let example = Example::new().floats("x", x).floats("y", [y]);
        writer.write(example.to_bytes())?;
    }
    println!("written: {} records", writer.finish()?);
    Ok(())
}

fn train(folder: &Path) -> Result<(), Box<dyn Error>> {
    let cx = EagerContext::new()?;
    let spec =
        ExampleSpec::new()
            .fixed("x", DataType::FLOAT, &[2])
            .fixed("y", DataType::FLOAT, &[1]);
    let records = Dataset::records(&cx, &folder.join("train.tfrecord"), Compression::None)?;
    let data = records
        .shuffle(256, 7)?
        .batch(32, true)?
        .parallel_map(Parallel::auto(), |cx, batch| spec.parse(cx, &batch[0]))?
        .prefetch(2)?;

    let model = Sequential::new(&Weights::new(&cx, 1), &[2], &[&Dense::new(1)])?;
    let plan = Plan::new(Loss::MeanSquaredError, Adam::default()).rate(0.05);
    let mut trainer = Trainer::new(model, plan)?;
    trainer.fit(&data, 60, None, &mut [])?;

    let names = Mapping::new()
        .replace("dense/kernel", "fc.weight")
        .replace("dense/bias", "fc.bias")
        .permute("kernel", &[1, 0]);
    let path = folder.join("model.safetensors");
    weights::save(&path, &trainer, &names)?;

    let other = Weights::new(&cx, 2);
    Sequential::new(&other, &[2], &[&Dense::new(1)])?;
    let report = TensorFile::open(&path)?.load(&other, &names)?;
    println!("loaded: {report}");
    let kernel = other.variables()[0].to_tensor()?;
    println!("kernel: {:.1?}", kernel.as_slice::<f32>()?);
    Ok(())
}

fn other_sources(folder: &Path) -> Result<(), Box<dyn Error>> {
    let cx = EagerContext::new()?;
    let path = folder.join("cities.csv");
    std::fs::write(&path, "city,height\nUlm,478\nRome,\n")?;
    let columns = Csv::new()
        .column(DataType::STRING)
        .column_or(Tensor::scalar(0.0_f32)?)
        .header(true);
    for city in Dataset::csv(&cx, &path, &columns, Compression::None)?.iter()? {
        let city = city?;
        let name = city[0].to_tensor()?;
        let name = String::from_utf8_lossy(name.as_strings()?[0]).into_owned();
        println!("csv: {name} {}", city[1].to_tensor()?.to_scalar::<f32>()?);
    }

    let words = Dataset::range(&cx, 1, 5)?.map_with(|cx, length| {
        let word = ops::range(cx, 0_i64, &length[0], 1_i64)?;
        Ok(vec![word])
    })?;
    let buckets = Buckets::new(&[3], &[2, 2])?;
    let batches = words.bucket_by_length(&buckets, |cx, word| {
        let options = ops::SizeOptions {
            out_type: Some(DataType::INT64),
        };
        ops::size(cx, &word[0], options)
    })?;
    for batch in batches.iter()? {
        println!("bucketed: {}", batch?[0].to_tensor()?.shape());
    }

    let signature = [(DataType::FLOAT, Shape::new(&[-1]))];
    let lines = Dataset::from_generator(&cx, &signature, || {
        (1..4_u8).map(|n| Ok(vec![Tensor::from_vec(vec![f32::from(n); 2], &[2])?]))
    })?;
    for line in lines.batch(2, false)?.iter()? {
        let line = line?[0].to_tensor()?;
        println!("from Rust: {:?}", line.as_slice::<f32>()?);
    }
    Ok(())
}
