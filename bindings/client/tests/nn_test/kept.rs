//! Trainings that are saved and exported.

use tfp::nn::Weights;
use tfp::nn::layer::Sequential;
use tfp::nn::optimizer::{Adam, Sgd};
use tfp::nn::training::{Plan, Trainer};
use tfp::{DataType, EagerContext, ErrorKind, Graph, Mode, Model, Result};

use crate::goldens::Goldens;
use crate::models::{MODELS, SPARSE, small, with_model};

/// Returns an empty folder of a test.
pub fn scratch(name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let folder = root.join(format!("tfp_training_{}_{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A trainer of the model `cnn` with other first weights for each seed.
fn fresh(place: &impl Mode, seed: u32) -> Result<Trainer<Adam>> {
    with_model("cnn", |_, shape, layers| {
        let model = Sequential::new(&Weights::new(place, seed), shape, layers)?;
        Trainer::new(model, Plan::new(SPARSE, Adam::default()).rate(0.01))
    })
}

#[test]
fn a_training_goes_on_from_a_checkpoint_in_either_mode() -> Result<()> {
    let goldens = Goldens::open()?;
    let folder = scratch("checkpoint");
    let x = goldens.get("training/cnn/x")?.to_tensor()?;
    let truth = goldens
        .get_as("training/cnn/truth", DataType::INT64)?
        .to_tensor()?;
    let eager = EagerContext::new()?;
    for (name, mut first) in [
        ("graph", fresh(&Graph::new()?, 1)?),
        ("eager", fresh(&eager, 1)?),
    ] {
        for _ in 0..4 {
            first.train_on(&x, &truth)?;
        }
        let prefix = folder.join(name);
        first.save(&prefix)?;
        let expected = (0..4)
            .map(|_| first.train_on(&x, &truth))
            .collect::<Result<Vec<f32>>>()?;
        for mut second in [fresh(&Graph::new()?, 2)?, fresh(&eager, 2)?] {
            second.restore(&prefix)?;
            assert_eq!(second.step(), 4);
            for (step, expected) in expected.iter().enumerate() {
                let loss = second.train_on(&x, &truth)?;
                assert!(
                    (loss - expected).abs() <= 1e-5,
                    "from {name}: the loss of step {step} is {loss}, it was {expected}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_training_is_exported_from_either_mode() -> Result<()> {
    let goldens = Goldens::open()?;
    let (eager, folder) = (EagerContext::new()?, scratch("export"));
    for name in MODELS {
        for place in [Graph::new()?.any(), eager.any()] {
            let folder = folder.join(format!("{name}_{}", place.is_eager()));
            with_model(name, |input, shape, layers| {
                let x = goldens
                    .get_as(&format!("training/{name}/x"), input)?
                    .to_tensor()?;
                let model = Sequential::new(&Weights::new(&place, 5), shape, layers)?;
                let mut plan = Plan::new(SPARSE, Sgd::default());
                plan.input = input;
                let trainer = Trainer::new(model, plan)?;
                trainer.export(&folder)?;
                let expected = trainer.predict(&x)?;
                let model = Model::load(&eager, &folder, &["serve"])?;
                let names: Vec<&str> = model.variables().map(|(path, _)| path).collect();
                assert_eq!(names.len(), trainer.model().weights().variables().len());
                let signature = model.signature("serving_default")?;
                assert_eq!(
                    signature.inputs()[0].shape.dims().map(|dims| dims[0]),
                    Some(-1)
                );
                let found = signature.call_named(&eager, [("x", &x)])?;
                let (found, expected) = (found["y"].to_tensor()?, expected.as_slice::<f32>()?);
                for (found, expected) in found.as_slice::<f32>()?.iter().zip(expected) {
                    assert!(
                        (found - expected).abs() <= 1e-6,
                        "{name}: {found}, not {expected}"
                    );
                }
                Ok(())
            })?;
        }
    }
    let error = small(&eager)?.export("/proc/nothing/here").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
    Ok(())
}

#[test]
fn a_checkpoint_of_another_model_changes_nothing() -> Result<()> {
    let eager = EagerContext::new()?;
    let folder = scratch("other");
    small(&eager)?.save(folder.join("small"))?;
    let mut trainer = fresh(&eager, 1)?;
    let before = trainer.values()?;
    let error = trainer.restore(folder.join("small")).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("model/conv2d/kernel"), "{error}");
    let error = trainer.restore(folder.join("nothing")).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. }),
        "{error}"
    );
    assert_eq!(trainer.step(), 0);
    for (now, before) in trainer.values()?.iter().zip(&before) {
        assert_eq!(now.as_bytes()?, before.as_bytes()?);
    }
    Ok(())
}
