//! Reads data and weights that Python wrote, for a test in Python.
//!
//! `weights FOLDER`: reads files of every format, and writes what was in them as others.
//! `pipelines FOLDER`: writes the elements of pipelines over the files of a folder.
//! `readings FOLDER`: goes on with a reading that Python saved, and saves it for Python.
//! `damage FOLDER`: prints the error of each damaged file.

mod pipelines;

use std::path::Path;
use std::{env, process};

use tfp::data::{Compression, Csv, Dataset, RecordReader};
use tfp::nn::layer::{BatchNorm, Dense, Sequential};
use tfp::nn::{Model, Weights};
use tfp::weights::{self, Mapping, TensorFile};
use tfp::{Checkpoint, DataType, EagerContext, Error, Result, Tensor, TensorHandle, Variable, ops};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["weights", folder] => weights(Path::new(folder)),
        ["pipelines", folder] => pipelines::run(Path::new(folder)),
        ["readings", folder] => readings(Path::new(folder)),
        ["damage", folder] => damage(Path::new(folder)),
        _ => Err(Error::argument(
            "expected weights, pipelines, readings or damage, and a folder",
        )),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        process::exit(1);
    }
}

/// Writes the tensors of a file as another one.
fn rewrite(from: &Path, to: &Path) -> Result<()> {
    let file = TensorFile::open(from)?;
    let names: Vec<&str> = file.names().collect();
    let tensors = names
        .iter()
        .map(|name| file.read(name))
        .collect::<Result<Vec<Tensor>>>()?;
    let named: Vec<(&str, &Tensor)> = names.into_iter().zip(&tensors).collect();
    match to.extension().and_then(|end| end.to_str()) {
        Some("npz") => weights::write_npz(to, &named),
        _ => weights::write_safetensors(to, &named, &[("format", "tfp")]),
    }
}

fn model(cx: &EagerContext) -> Result<Model> {
    let weights = Weights::new(cx, 3);
    let layers = Sequential::new(
        &weights,
        &[3],
        &[&Dense::new(4), &BatchNorm::default(), &Dense::new(2)],
    )?;
    Ok(layers.into())
}

fn weights(folder: &Path) -> Result<()> {
    for name in [
        "plain.npz",
        "packed.npz",
        "model.safetensors",
        "sharded.safetensors.index.json",
    ] {
        let to = name.split('.').next().unwrap_or(name);
        rewrite(&folder.join(name), &folder.join(format!("{to}.again.npz")))?;
    }
    rewrite(
        &folder.join("types.safetensors"),
        &folder.join("types.again.safetensors"),
    )?;
    let cx = EagerContext::new()?;
    let model = model(&cx)?;

    // Keras 3's checkpoint: variables have names of their own.
    let file = TensorFile::open(folder.join("ck-1"))?;
    let names = Mapping::new()
        .prefix("sequential/")
        .ignore("adam/")
        .ignore("save_counter");
    let report = file.load(&model, &names)?;
    println!("checkpoint: {report}");
    weights::save(folder.join("checkpoint.again.npz"), &model, &Mapping::new())?;
    let by_path = file.read("model/_functional/_operations/1/_kernel")?;
    weights::write_npz(folder.join("by_path.again.npz"), &[("kernel", &by_path)])?;

    // PyTorch's names and its order of axes, in bfloat16.
    let torch = Mapping::new()
        .replace("batch_normalization/", "bn.")
        .replace("moving_mean", "running_mean")
        .replace("moving_variance", "running_var")
        .replace("gamma", "weight")
        .replace("beta", "bias")
        .replace("dense_1/kernel", "fc2.weight")
        .replace("dense/kernel", "fc1.weight")
        .replace("dense_1/", "fc2.")
        .replace("dense/", "fc1.")
        .permute("kernel", &[1, 0])
        .cast();
    let report = TensorFile::open(folder.join("torch.safetensors"))?.load(&model, &torch)?;
    println!("torch: {report}");
    weights::save(folder.join("torch.again.npz"), &model, &Mapping::new())?;
    weights::save(folder.join("torch.again.safetensors"), &model, &torch)?;
    weights::save(folder.join("model.again.h5"), &model, &Mapping::new())?;
    weights::save(folder.join("again"), &model, &Mapping::new())?;
    Ok(())
}

/// Prints two elements after those that Python read, saves, and prints the others.
fn readings(folder: &Path) -> Result<()> {
    let cx = EagerContext::new()?;
    let step = Variable::new(&cx, "step", 0_i64)?;
    let data = Dataset::range(&cx, 0, 30)?
        .map_with(|cx, n| Ok(vec![ops::add_v2(cx, &n[0], 1_i64)?]))?
        .shuffle(9, 7)?
        .batch(3, false)?
        .prefetch(2)?;
    let (mut elements, mut checkpoint) = (data.iter()?, Checkpoint::new());
    checkpoint.add("step", &step)?;
    elements.track(&mut checkpoint, "iterator")?;
    checkpoint.restore(folder.join("python-1"))?.complete()?;
    let print = |element: Result<Vec<TensorHandle>>| -> Result<()> {
        println!("{:?}", element?[0].to_tensor()?.as_slice::<i64>()?);
        Ok(())
    };
    elements.by_ref().take(2).try_for_each(print)?;
    step.assign_add(&cx, 2_i64)?;
    checkpoint.write(folder.join("rust"))?;
    elements.try_for_each(print)
}

/// The first error of a dataset.
fn first_error(data: Result<Dataset>) -> Error {
    let elements = data.and_then(|data| data.iter());
    let error = match elements {
        Ok(elements) => elements.filter_map(Result::err).next(),
        Err(error) => Some(error),
    };
    error.unwrap_or_else(|| Error::argument("no error"))
}

fn damage(folder: &Path) -> Result<()> {
    let cx = EagerContext::new()?;
    for name in [
        "bad.npz",
        "bad.safetensors",
        "cut.safetensors",
        "bad.h5",
        "none.npz",
        "text.txt",
    ] {
        let error = TensorFile::open(folder.join(name))
            .and_then(|file| file.names().try_for_each(|name| file.read(name).map(drop)));
        let text = error
            .err()
            .map_or("no error".to_owned(), |error| error.to_string());
        println!("{name}: {text}");
    }
    for name in ["crc.tfrecord", "cut.tfrecord", "none.tfrecord"] {
        let path = folder.join(name);
        let data = Dataset::records(&cx, &path, Compression::None);
        println!("{name}: {}", first_error(data));
    }
    let name = "head.tfrecord";
    let data = Dataset::records(&cx, &folder.join(name), Compression::None);
    let error = RecordReader::open(folder.join(name))
        .and_then(|mut all| all.try_for_each(|one| one.map(drop)));
    let error = error
        .err()
        .map_or("no error".to_owned(), |error| error.to_string());
    println!("{name}: {}, then {error}", first_error(data));
    let csv = Csv::new()
        .column(DataType::INT64)
        .column(DataType::FLOAT)
        .header(true);
    for name in ["columns.csv", "number.csv", "quote.csv"] {
        let path = folder.join(name);
        let data = Dataset::csv(&cx, &path, &csv, Compression::None);
        println!("{name}: {}", first_error(data));
    }
    let pattern = folder.join("cr*.tfrecord").display().to_string();
    let data = Dataset::files(&cx, &pattern)?.interleave(1, 1, |cx, path| {
        Dataset::records(cx, &path[0], Compression::None)
    });
    println!("interleaved: {}", first_error(data));
    Ok(())
}
