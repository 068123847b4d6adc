//! Weights of files into variables: what matches, and what does not.

use tfp::nn::Weights;
use tfp::nn::layer::{Dense, Sequential};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Loss, Model};
use tfp::weights::{self, InSession, Mapping, NamedVariables, TensorFile};
use tfp::{
    Checkpoint, DataType, EagerContext, ErrorKind, Graph, Mode, Result, Session, Tensor, Variable,
    initialize,
};

use crate::scratch;

fn model(cx: &impl Mode, seed: u32) -> Result<Model> {
    let layers: [&dyn tfp::nn::layer::Layer; 2] = [&Dense::new(3), &Dense::new(2)];
    Ok(Sequential::new(&Weights::new(cx, seed), &[4], &layers)?.into())
}

fn values(of: &impl NamedVariables) -> Result<Vec<Vec<f32>>> {
    let (_, variables): (Vec<_>, Vec<_>) = of.named_variables().into_iter().unzip();
    of.values_of(&variables)?
        .iter()
        .map(|one| one.to_vec::<f32>())
        .collect()
}

#[test]
fn every_format_brings_the_values_back() -> Result<()> {
    let folder = scratch("formats");
    let cx = EagerContext::new()?;
    let saved = model(&cx, 1)?;
    for name in ["w.safetensors", "w.npz", "w.h5", "w"] {
        let path = folder.join(name);
        let names = Mapping::new().prefix("net/").permute("kernel", &[1, 0]);
        weights::save(&path, &saved, &names)?;
        let other = model(&cx, 2)?;
        assert_ne!(values(&other)?, values(&saved)?);
        let report = TensorFile::open(&path)?.load(&other, &names.strict())?;
        assert!(
            report.is_complete() && report.loaded.len() == 4,
            "{name}: {report}"
        );
        assert_eq!(values(&other)?, values(&saved)?, "{name}");
        // Without the names nothing matches, and nothing changes.
        let third = model(&cx, 3)?;
        let before = values(&third)?;
        let report = TensorFile::open(&path)?.load(&third, &Mapping::new())?;
        assert_eq!(
            (report.missing.len(), report.unexpected.len()),
            (4, 4),
            "{report}"
        );
        assert_eq!(values(&third)?, before);
    }
    assert_eq!(TensorFile::open(folder.join("w.npz"))?.names().count(), 4);
    Ok(())
}

#[test]
fn trainers_checkpoints_and_lists_have_variables() -> Result<()> {
    let folder = scratch("holders");
    let path = folder.join("w.safetensors");
    let cx = EagerContext::new()?;
    let saved = model(&cx, 1)?;
    weights::save(&path, &saved, &Mapping::new())?;
    let file = TensorFile::open(&path)?;
    let expected = values(&saved)?;

    let plan = || Plan::new(Loss::MeanSquaredError, Sgd::default());
    for trainer in [
        Trainer::new(model(&Graph::new()?, 5)?, plan())?,
        Trainer::new(model(&cx, 5)?, plan())?,
    ] {
        assert!(file.load(&trainer, &Mapping::new())?.is_complete());
        assert_eq!(values(&trainer)?, expected);
        let again = folder.join("again.safetensors");
        weights::save(&again, &trainer, &Mapping::new())?;
        let bytes = |path| std::fs::read(path).expect("bytes");
        assert_eq!(bytes(&again), bytes(&path));
    }
    let graph = Graph::new()?;
    let in_graph = model(&graph, 6)?;
    let session = Session::new(&graph)?;
    initialize(&session, in_graph.variables())?;
    let held = InSession::new(&session, &in_graph);
    assert!(file.load(&held, &Mapping::new())?.is_complete());
    assert_eq!(values(&held)?, expected);
    assert!(file.load(&in_graph, &Mapping::new()).is_err());

    let kernel = Variable::new(&cx, "k", &Tensor::zeros(DataType::FLOAT, &[4, 3])?)?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("dense/kernel", &kernel)?;
    assert_eq!(
        file.load(&checkpoint, &Mapping::new())?.loaded,
        ["dense/kernel"]
    );
    assert_eq!(kernel.to_tensor()?.to_vec::<f32>()?, expected[0]);
    let list = [(
        "dense_1/bias".to_owned(),
        Variable::new(&cx, "b", [1.0_f32; 2])?,
    )];
    assert_eq!(
        file.load(&list[..], &Mapping::new())?.loaded,
        ["dense_1/bias"]
    );
    let twice = [list[0].clone(), list[0].clone()];
    assert!(file.load(&twice[..], &Mapping::new()).is_err());
    assert!(weights::save(&path, &twice[..], &Mapping::new()).is_err());
    Ok(())
}

#[test]
fn what_does_not_fit_is_reported_and_keeps_its_value() -> Result<()> {
    let path = scratch("mismatch").join("w.safetensors");
    let cx = EagerContext::new()?;
    let tensors = [
        Tensor::from_array([1.0_f32, 2.0])?,
        Tensor::from_array([3_i64, 4])?,
    ];
    weights::write_safetensors(&path, &[("a", &tensors[0]), ("b", &tensors[1])], &[])?;
    let file = TensorFile::open(&path)?;
    let list = vec![
        Variable::new(&cx, "a", [0.0_f32; 3])?,
        Variable::new(&cx, "b", [0.0_f32; 2])?,
    ];
    let report = file.load(&list, &Mapping::new())?;
    let found: Vec<String> = report.mismatched.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "'a' is float32 of shape [3], and 'a' in the file float32 of shape [2]",
            "'b' is float32 of shape [2], and 'b' in the file int64 of shape [2]",
        ]
    );
    let strict = file.load(&list, &Mapping::new().cast().strict());
    let error = strict.expect_err("a mismatch");
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error:#?}");
    assert_eq!(list[1].to_tensor()?.as_slice::<f32>()?, [0.0, 0.0]);
    file.load(&list, &Mapping::new().cast())?;
    assert_eq!(list[1].to_tensor()?.as_slice::<f32>()?, [3.0, 4.0]);
    assert_eq!(file.entry("b"), Some((DataType::INT64, &[2][..])));
    let missing = file.read("c").expect_err("no tensor").to_string();
    assert!(
        missing.contains("'c'") && missing.contains("a, b"),
        "{missing}"
    );
    Ok(())
}

#[test]
fn no_change_of_a_byte_panics() -> Result<()> {
    let folder = scratch("fuzz");
    let tensors = [
        Tensor::from_array([1.0_f32, 2.0])?,
        Tensor::from_array([true])?,
    ];
    let named = [("a", &tensors[0]), ("b", &tensors[1])];
    weights::write_safetensors(folder.join("w.safetensors"), &named, &[])?;
    weights::write_npz(folder.join("w.npz"), &named)?;
    for name in ["w.safetensors", "w.npz"] {
        let whole = std::fs::read(folder.join(name)).expect("bytes");
        let path = folder.join(format!("damaged_{name}"));
        let read = |bytes: &[u8]| -> Result<()> {
            std::fs::write(&path, bytes).expect("written");
            let file = TensorFile::open(&path)?;
            file.names().try_for_each(|name| file.read(name).map(drop))
        };
        read(&whole)?;
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                if let Err(error) = read(&damaged) {
                    assert!(
                        matches!(error.kind(), ErrorKind::File { .. }),
                        "{at}: {error:#?}"
                    );
                }
            }
            let error = read(&whole[..at]).expect_err("a part of a file");
            assert!(error.to_string().contains("damaged_w"), "{at}: {error}");
        }
    }
    Ok(())
}
