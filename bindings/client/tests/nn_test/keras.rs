//! Models of Keras: read from its files they predict and train as in Python.

use std::collections::BTreeSet;
use std::env;

use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Model, Weights};
use tfp::{CheckpointReader, DataType, EagerContext, Error, Graph, Mode, Result, Tensor, ops};

/// The layers that its cases compare with Keras, and the names of the cases.
pub const COMPARED: &[(&str, &str)] = &[
    ("AdaptivePooling", "AdaptiveMaxPooling2D"),
    ("Attention", "Attention"),
    ("CategoryEncoding", "binned"),
    ("Concatenate", "Concatenate"),
    ("Conv3dTranspose", "Conv3DTranspose"),
    ("ConvLstm", "ConvLSTM2D"),
    ("Cropping", "shaped"),
    ("DepthwiseConv1d", "DepthwiseConv1D"),
    ("Discretization", "binned"),
    ("Dot", "Dot"),
    ("EinsumDense", "EinsumDense"),
    ("GroupedQueryAttention", "GroupedQueryAttention"),
    ("HashedCrossing", "crossed"),
    ("Hashing", "hashed"),
    ("Identity", "plain"),
    ("IntegerLookup", "listed"),
    ("Masking", "masked"),
    ("MelSpectrogram", "MelSpectrogram"),
    ("Model", "shared"),
    ("Normalization", "measured"),
    ("PRelu", "activated"),
    ("Permute", "shaped"),
    ("Pooling3d", "AveragePooling3D"),
    ("Relu", "activated"),
    ("RepeatVector", "RepeatVector"),
    ("Reversed", "reversible"),
    ("ReversibleEmbedding", "reversible"),
    ("Scaling", "plain"),
    ("SeparableConv", "SeparableConv2D"),
    ("Softmax", "activated"),
    ("SpectralNorm", "SpectralNormalization"),
    ("StackedRnn", "cells"),
    ("StftSpectrogram", "STFTSpectrogram"),
    ("UnitNorm", "normalization"),
    ("UpSampling", "bilinear"),
    ("ZeroPadding", "shaped"),
    ("AutoContrast", "image_colored"),
    ("CenterCrop", "image_resized"),
    ("Clahe", "image_colored"),
    ("RandomBrightness", "image_colored"),
    ("RandomColorDegeneration", "image_colored"),
    ("RandomColorJitter", "image_colored"),
    ("RandomContrast", "image_colored"),
    ("RandomErasing", "image_colored"),
    ("RandomGaussianBlur", "image_colored"),
    ("RandomGrayscale", "image_colored"),
    ("RandomHue", "image_colored"),
    ("RandomInvert", "image_colored"),
    ("RandomPerspective", "image_moved"),
    ("RandomPosterization", "image_colored"),
    ("RandomRotation", "image_moved"),
    ("RandomSaturation", "image_colored"),
    ("RandomSharpness", "image_colored"),
    ("RandomTranslation", "image_moved"),
    ("RandomZoom", "image_moved"),
    ("Resizing", "image_resized"),
    ("Solarization", "image_colored"),
];

/// The cases of `keras_models.py`.
struct Cases {
    prefix: String,
    reader: CheckpointReader,
    eager: EagerContext,
}

impl Cases {
    fn open() -> Result<Self> {
        let index = env::var("KERAS_MODELS")
            .map_err(|error| Error::argument(format!("KERAS_MODELS: {error}")))?;
        let prefix = index.strip_suffix(".index").unwrap_or(&index).to_owned();
        Ok(Self {
            reader: CheckpointReader::open(&prefix)?,
            eager: EagerContext::new()?,
            prefix,
        })
    }

    /// The names of the cases.
    fn names(&self) -> BTreeSet<String> {
        let entries = self.reader.entries();
        entries
            .filter_map(|(name, ..)| Some(name.split_once('/')?.0.to_owned()))
            .collect()
    }

    fn file(&self, name: &str) -> Result<Vec<u8>> {
        let prefix = self.prefix.as_str();
        let found = ops::restore_v2(&self.eager, prefix, [name], [""], &[DataType::STRING])?;
        let tensor = found[0].to_tensor()?;
        Ok(tensor.as_strings()?[0].to_vec())
    }

    /// The tensors whose names are numbered.
    fn several(&self, name: &str) -> Result<Vec<Tensor>> {
        let mut found = Vec::new();
        for index in 0.. {
            let name = format!("{name}{index}");
            if self.reader.entry(&name).is_none() {
                break;
            }
            found.push(self.reader.read(&name)?);
        }
        Ok(found)
    }
}

/// The largest difference, where one is the size of the value or of one when it is smaller.
pub fn distance(found: &Tensor, expected: &Tensor) -> Result<f32> {
    assert_eq!(found.dims(), expected.dims());
    let pairs = found
        .as_slice::<f32>()?
        .iter()
        .zip(expected.as_slice::<f32>()?);
    let each = pairs.map(|(found, expected)| (found - expected).abs() / expected.abs().max(1.0));
    Ok(each.fold(0.0, |most, one| {
        if most.is_nan() || one <= most {
            most
        } else {
            one
        }
    }))
}

fn compare(cases: &Cases, name: &str, place: &impl Mode) -> Result<()> {
    let model = Model::from_keras_bytes(
        &Weights::new(place, 1),
        &cases.file(&format!("{name}/file"))?,
    )?;
    let loss = Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(0.05);
    let mut trainer = Trainer::new(model, loss)?;
    let (x, truth) = (
        cases.several(&format!("{name}/x"))?,
        cases.several(&format!("{name}/truth"))?,
    );
    let expected = cases.several(&format!("{name}/y"))?;
    let found = trainer.predict_all(&x)?;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let most = distance(found, expected)?;
        if most.is_nan() || most > 2e-5 {
            return Err(Error::argument(format!(
                "an output is {most} away from Keras'"
            )));
        }
    }
    let loss = trainer.train_on(&x, &truth)?;
    let expected = cases
        .reader
        .read(&format!("{name}/loss"))?
        .to_scalar::<f32>()?;
    let away = (loss - expected).abs() / expected.abs().max(1.0);
    if away.is_nan() || away > 2e-5 {
        return Err(Error::argument(format!(
            "the loss is {loss}, Keras has {expected}"
        )));
    }
    let after = cases.file(&format!("{name}/after"))?;
    let after = Model::from_keras_bytes(&Weights::new(&cases.eager, 1), &after)?;
    for (found, variable) in trainer.values()?.iter().zip(after.variables()) {
        let most = distance(found, &variable.to_tensor()?)?;
        if most.is_nan() || most > 5e-5 {
            return Err(Error::argument(format!(
                "after a step {} is {most} away from Keras'",
                variable.name()
            )));
        }
    }
    Ok(())
}

#[test]
fn models_of_keras_predict_and_train_as_there() -> Result<()> {
    let cases = Cases::open()?;
    let names = cases.names();
    assert!(names.len() >= 100, "{}", names.len());
    for (layer, case) in COMPARED {
        let is_there = names.iter().any(|name| name.ends_with(&format!("_{case}")));
        assert!(is_there, "no case {case} for {layer}");
    }
    let mut wrong = Vec::new();
    for (index, name) in names.iter().enumerate() {
        // Both modes, in turn: those of equal layers are in both.
        let found = match index % 2 {
            0 => compare(&cases, name, &cases.eager),
            _ => compare(&cases, name, &Graph::new()?),
        };
        if let Err(error) = found {
            wrong.push(format!("{name}: {error}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        names.len(),
        wrong.join("\n")
    );
    Ok(())
}

/// A small model of Keras' files, and a function that changes its configuration.
fn changed(cases: &Cases, change: impl Fn(&str) -> String) -> Result<Error> {
    let name = cases
        .names()
        .into_iter()
        .find(|name| name.ends_with("_RepeatVector"));
    let bytes = cases.file(&format!("{}/file", name.expect("a case")))?;
    let from = find(&bytes, b"{\"module\"").expect("a configuration");
    let to = from + find(&bytes[from..], b"PK\x03\x04").expect("the next member");
    let text = String::from_utf8_lossy(&bytes[from..to]).into_owned();
    let mut new = change(&text);
    assert!(new != text && new.len() <= text.len(), "{new}");
    // The length in the directory stays.
    new.push_str(&" ".repeat(text.len() - new.len()));
    let bytes = [&bytes[..from], new.as_bytes(), &bytes[to..]].concat();
    let weights = Weights::new(&cases.eager, 1);
    Ok(Model::from_keras_bytes(&weights, &bytes).expect_err("a model that can't be read"))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[test]
fn what_is_not_known_is_listed_and_circles_are_errors() -> Result<()> {
    let cases = Cases::open()?;
    let unknown = changed(&cases, |text| {
        text.replace("\"Dense\"", "\"Dance\"")
            .replace("\"RepeatVector\"", "\"Repeated\"")
    })?;
    let unknown = unknown.to_string();
    assert!(
        unknown.contains("2 of its layers can't be read"),
        "{unknown}"
    );
    assert!(
        unknown.contains("(Dance)") && unknown.contains("(Repeated)"),
        "{unknown}"
    );
    let circle = changed(&cases, |text| {
        let at = text.find("\"keras_history\": [\"").expect("a call") + 19;
        let end = at + text[at..].find('"').expect("its end");
        // The dense layer is called with what it gives.
        format!("{}{}{}", &text[..at], "dense", &text[end..]).replace(", \"trainable\": true", "")
    })?;
    assert!(circle.to_string().contains("circle"), "{circle}");
    Ok(())
}

/// Reads a sound file cut short, which is an error, and with other bytes: whatever they are, there is a
/// model or an error.
pub fn damage(eager: &EagerContext, bytes: &[u8], times: usize) {
    let read = |bytes: &[u8]| Model::from_keras_bytes(&Weights::new(eager, 1), bytes);
    assert!(read(bytes).is_ok());
    for length in (0..bytes.len()).step_by(997) {
        assert!(read(&bytes[..length]).is_err(), "{length} bytes");
    }
    let mut state = 1_u64;
    for _ in 0..times {
        let mut bytes = bytes.to_vec();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        let _ = read(&bytes);
    }
}

#[test]
fn damaged_files_are_errors() -> Result<()> {
    let cases = Cases::open()?;
    let name = cases
        .names()
        .into_iter()
        .find(|name| name.ends_with("_Dense"));
    let bytes = cases.file(&format!("{}/file", name.expect("a case")))?;
    damage(&cases.eager, &bytes, 400);
    let missing = Model::from_keras(&Weights::new(&cases.eager, 1), "/nothing/model.keras");
    assert!(missing.is_err_and(|error| error.to_string().contains("/nothing/model.keras")));
    Ok(())
}

/// Two models of the same names with the same weights: what is frozen in one is so there only.
#[test]
fn layers_that_keras_does_not_train_are_frozen() -> Result<()> {
    let cases = Cases::open()?;
    let name = cases
        .names()
        .into_iter()
        .find(|name| name.ends_with("_shared"));
    let bytes = cases.file(&format!("{}/file", name.expect("a case")))?;
    let weights = Weights::new(&cases.eager, 1);
    let first = Model::from_keras_bytes(&weights, &bytes)?;
    let second = Model::from_keras_bytes(&weights, &bytes)?;
    let counts = |model: &Model| (model.variables().len(), model.trainables().len());
    // A dense layer of two variables, and the two states of a batch normalization.
    assert_eq!(counts(&first), (16, 12));
    assert_eq!(counts(&second), (16, 12));
    assert_eq!(weights.variables().len(), 32);
    Ok(())
}
