//! Gradients that SavedModels have for their own operations.

use std::path::{Path, PathBuf};

use tfp::{EagerContext, Model, Result, Tape, Tensor, TensorHandle, ops};

pub(crate) fn folder(name: &str) -> PathBuf {
    let file = std::env::var_os("GRADIENT_MODEL").expect("GRADIENT_MODEL names a model");
    let models = Path::new(&file).parent().and_then(Path::parent);
    models.expect("the folder of the models").join(name)
}

fn floats(handle: &TensorHandle) -> Result<Vec<f32>> {
    handle.to_tensor()?.to_vec()
}

/// The sum of the squares of a Keras model's results.
fn loss(cx: &EagerContext, model: &Model) -> Result<(Tape, TensorHandle)> {
    let tape = Tape::new(cx);
    let x = cx.handle(&Tensor::from_array([[1.0_f32, -2.0], [0.5, 3.0]])?)?;
    let y = model.function("serve")?.call(&tape, &[x])?.remove(0);
    let y = ops::square(&tape, &y)?;
    let y = ops::sum(&tape, &y, [0, 1], Default::default())?;
    Ok((tape, y))
}

#[test]
fn silu_of_keras_has_the_gradient_of_the_slope() -> Result<()> {
    let cx = EagerContext::new()?;
    // Names of gradients are those of a process of Python: two models may have the same.
    let models = [
        Model::load(&cx, folder("keras"), &["serve"])?,
        Model::load(&cx, folder("keras"), &["serve"])?,
    ];
    for model in &models {
        let variables: Vec<_> = model
            .variables()
            .map(|(_, variable)| variable.clone())
            .collect();
        // Each once, though Keras exports each twice.
        assert_eq!(variables.len(), 4);
        let (tape, y) = loss(&cx, model)?;
        let handles: Vec<TensorHandle> = variables
            .iter()
            .map(|variable| variable.handle().handle().cloned())
            .collect::<Result<_>>()?;
        let found = tape.gradients(&[&y], &handles.iter().collect::<Vec<_>>())?;
        for (variable, gradient) in variables.iter().zip(found) {
            let gradient = floats(&gradient.expect("every variable has one"))?;
            let value = variable.to_tensor()?;
            for (at, gradient) in gradient.iter().enumerate() {
                let side = |change: f32| -> Result<f32> {
                    let mut moved = value.deep_copy()?;
                    moved.as_mut_slice::<f32>()?[at] += change;
                    variable.set(&moved)?;
                    let (_, y) = loss(&cx, model)?;
                    Ok(floats(&y)?[0])
                };
                let slope = (side(1e-2)? - side(-1e-2)?) / 2e-2;
                assert!(
                    (gradient - slope).abs() <= 2e-2 * (1.0 + slope.abs()),
                    "{}: {gradient}, the slope is {slope}",
                    variable.name()
                );
            }
            variable.set(&value)?;
        }
    }
    Ok(())
}

#[test]
fn a_custom_gradient_of_python_is_used() -> Result<()> {
    let cx = EagerContext::new()?;
    let model = Model::load(&cx, folder("clipped"), &["serve"])?;
    let tape = Tape::new(&cx);
    let x = cx.handle(&Tensor::from_array([1.0_f32, -2.0])?)?;
    tape.watch(&x)?;
    let y = model.function("f")?.call(&tape, &[x.clone()])?.remove(0);
    assert_eq!(floats(&y)?, [3.0, -6.0]);
    // What Python says; the slope would be three.
    assert_eq!(floats(&tape.gradient(&y, &x)?)?, [0.15, -0.15]);
    Ok(())
}

#[test]
fn copies_of_variables_are_saved_with_their_values() -> Result<()> {
    let cx = EagerContext::new()?;
    let model = Model::load(&cx, folder("keras"), &["serve"])?;
    for (_, variable) in model.variables() {
        let mut value = variable.to_tensor()?;
        value.as_mut_slice::<f32>()?.fill(7.0);
        variable.set(&value)?;
    }
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let copy = root.join(format!("tfp_gradient_models_{}", std::process::id()));
    model.save(&copy)?;
    let reader = tfp::CheckpointReader::open(copy.join("variables/variables"))?;
    let names: Vec<&str> = reader
        .entries()
        .filter(|(_, dtype, _)| *dtype == tfp::DataType::FLOAT)
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(names.len(), 8);
    for value in reader.read_all(&names)? {
        assert!(value.as_slice::<f32>()?.iter().all(|value| *value == 7.0));
    }
    std::fs::remove_dir_all(&copy).expect("a folder");
    Ok(())
}
