//! The kinds of saves, each with a way to find its value again.

use std::path::Path;

use tfp::data::{Compression, Dataset, RecordReader, RecordWriter};
use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Model as NetModel, Weights};
use tfp::weights::{self, Mapping, TensorFile};
use tfp::{
    Checkpoint, CheckpointReader, DataType, EagerContext, Mode, Model, ModelWriter, Result, Shape,
    Tensor, Variable, ops,
};

/// Elements of a variable: more than a stream of the C library holds back.
pub const COUNT: usize = 5000;

/// A kind of save: what it is called, and how a value is saved and found again.
pub struct Kind {
    pub name: &'static str,
    pub save: fn(&Path, f32) -> Result<()>,
    pub load: fn(&Path) -> Result<Vec<f32>>,
}

pub const KINDS: [Kind; 14] = [
    Kind {
        name: "checkpoint",
        save: |folder, value| checkpoint(value)?.write(folder.join("ck")),
        load: |folder| read_checkpoint(&folder.join("ck"), "a"),
    },
    Kind {
        name: "numbered",
        save: |folder, value| {
            let checkpoint = checkpoint(value)?;
            if let Ok(latest) = tfp::latest_checkpoint(folder) {
                // The count goes on, the values are the new ones.
                checkpoint.restore(latest)?;
                for (_, variable) in checkpoint.variables() {
                    variable.set(&tensor(value)?)?;
                }
            }
            checkpoint.save(folder.join("ck")).map(|_| ())
        },
        load: |folder| read_checkpoint(&tfp::latest_checkpoint(folder)?, "a"),
    },
    Kind {
        name: "trainer",
        save: |folder, value| trainer(value)?.save(folder.join("ck")),
        load: |folder| read_checkpoint(&folder.join("ck"), "model/dense/kernel"),
    },
    Kind {
        name: "export",
        save: |folder, value| trainer(value)?.export(folder.join("model")),
        load: |folder| read_model(&folder.join("model")),
    },
    Kind {
        name: "writer",
        save: |folder, value| write_model(&folder.join("model"), value),
        load: |folder| read_model(&folder.join("model")),
    },
    Kind {
        name: "model",
        save: |folder, value| {
            let source = folder.with_extension("source");
            let model = Model::load(&EagerContext::new()?, &source, &["serve"])?;
            for (_, variable) in model.variables() {
                variable.set(&tensor(value)?)?;
            }
            model.save(folder.join("model"))
        },
        load: |folder| read_model(&folder.join("model")),
    },
    Kind {
        name: "keras",
        save: |folder, value| net(value)?.save_keras(folder.join("net.keras")),
        load: |folder| values(&NetModel::from_keras(&fresh()?, folder.join("net.keras"))?),
    },
    Kind {
        name: "trained",
        save: |folder, value| trainer(value)?.save_keras(folder.join("net.keras")),
        load: |folder| values(&NetModel::from_keras(&fresh()?, folder.join("net.keras"))?),
    },
    Kind {
        name: "weights",
        save: |folder, value| net(value)?.save_weights(folder.join("net.weights.h5")),
        load: |folder| {
            let net = net(0.0)?;
            net.load_weights(folder.join("net.weights.h5"))?;
            values(&net)
        },
    },
    Kind {
        name: "safetensors",
        save: |folder, value| save_weights(&folder.join("net.safetensors"), value),
        load: |folder| read_file(&folder.join("net.safetensors")),
    },
    Kind {
        name: "npz",
        save: |folder, value| save_weights(&folder.join("net.npz"), value),
        load: |folder| read_file(&folder.join("net.npz")),
    },
    Kind {
        name: "records",
        save: |folder, value| {
            let mut writer = RecordWriter::create(folder.join("data.tfrecord"))?;
            // Values that lie in several records.
            for part in tensor(value)?.as_bytes()?.chunks(4000) {
                writer.write(part)?;
            }
            writer.finish().map(|_| ())
        },
        load: |folder| read_records(&folder.join("data.tfrecord")),
    },
    Kind {
        name: "dataset",
        save: |folder, value| {
            data(value)?.write_records(folder.join("data.tfrecord"), Compression::None)
        },
        load: |folder| read_records(&folder.join("data.tfrecord")),
    },
    Kind {
        name: "packed",
        save: |folder, value| {
            data(value)?.write_records(folder.join("data.tfrecord.gz"), Compression::Gzip)
        },
        load: |folder| {
            let (cx, path) = (EagerContext::new()?, folder.join("data.tfrecord.gz"));
            let mut values = Vec::new();
            for element in Dataset::records(&cx, &path, Compression::Gzip)?.iter()? {
                values.extend(numbers(element?[0].to_tensor()?.as_strings()?[0]));
            }
            Ok(values)
        },
    },
];

fn tensor(value: f32) -> Result<Tensor> {
    Tensor::from_slice(&[value; COUNT], &[1, COUNT as i64])
}

fn checkpoint(value: f32) -> Result<Checkpoint> {
    let cx = EagerContext::new()?;
    let mut checkpoint = Checkpoint::new();
    for name in ["a", "b"] {
        checkpoint.add(name, &Variable::new(&cx, name, &tensor(value)?)?)?;
    }
    Ok(checkpoint)
}

fn read_checkpoint(prefix: &Path, path: &str) -> Result<Vec<f32>> {
    let reader = CheckpointReader::open(prefix)?;
    let floats = reader
        .entries()
        .filter(|(_, dtype, shape)| *dtype == DataType::FLOAT && shape.rank() == Some(2));
    let names: Vec<&str> = floats
        .map(|(name, ..)| name)
        .filter(|name| !name.contains("optimizer"))
        .collect();
    assert!(names.iter().any(|name| name.starts_with(path)), "{names:?}");
    let mut values = Vec::new();
    for tensor in reader.read_all(&names)? {
        values.extend(tensor.to_vec::<f32>()?);
    }
    Ok(values)
}

fn fresh() -> Result<Weights> {
    Ok(Weights::new(&EagerContext::new()?, 1))
}

fn net(value: f32) -> Result<NetModel> {
    let layer = Dense {
        use_bias: false,
        ..Dense::new(COUNT as i64)
    };
    let weights = fresh()?;
    let net = NetModel::from(Sequential::new(&weights, &[1], &[&layer])?);
    for variable in net.variables() {
        variable.set(&tensor(value)?)?;
    }
    Ok(net)
}

/// The values of a network's variables.
fn values(net: &NetModel) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    for variable in net.variables() {
        values.extend(variable.to_tensor()?.to_vec::<f32>()?);
    }
    Ok(values)
}

fn trainer(value: f32) -> Result<Trainer<Adam>> {
    let plan = Plan::new(Loss::MeanSquaredError, Adam::default());
    Trainer::new(net(value)?, plan)
}

fn save_weights(path: &Path, value: f32) -> Result<()> {
    weights::save(path, &net(value)?, &Mapping::new())
}

fn read_file(path: &Path) -> Result<Vec<f32>> {
    let file = TensorFile::open(path)?;
    let mut values = Vec::new();
    for name in file.names() {
        values.extend(file.read(name)?.to_vec::<f32>()?);
    }
    Ok(values)
}

/// Values that lie in several records.
fn data(value: f32) -> Result<Dataset> {
    let value = tensor(value)?;
    let parts: Vec<&[u8]> = value.as_bytes()?.chunks(4000).collect();
    let parts = Tensor::from_strings(&parts, &[parts.len() as i64])?;
    Dataset::rows(&EagerContext::new()?, &[parts])
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

fn read_records(path: &Path) -> Result<Vec<f32>> {
    let mut values = Vec::new();
    for record in RecordReader::open(path)? {
        values.extend(numbers(&record?));
    }
    Ok(values)
}

pub fn write_model(folder: &Path, value: f32) -> Result<()> {
    let cx = EagerContext::new()?;
    let mut writer = ModelWriter::new();
    let variable = Variable::new(&cx, "v", &tensor(value)?)?;
    writer.variable("v", &variable)?;
    let shape = Shape::from([1, COUNT as i64]);
    writer.signature(
        "serving_default",
        &[("x", DataType::FLOAT, shape)],
        |func, arguments| {
            let any = func.any();
            let read = variable.read(&any)?;
            let x = tfp::AnyValue::from(&arguments["x"]);
            let sum = ops::add_v2(&any, &read, &x)?;
            Ok(vec![("y".to_owned(), sum.output()?.clone())])
        },
    )?;
    writer.write(folder)
}

fn read_model(folder: &Path) -> Result<Vec<f32>> {
    let model = Model::load(&EagerContext::new()?, folder, &["serve"])?;
    let mut values = Vec::new();
    for (_, variable) in model.variables() {
        values.extend(variable.to_tensor()?.to_vec::<f32>()?);
    }
    Ok(values)
}
