//! SavedModels and checkpoints.

use std::path::PathBuf;
use std::sync::PoisonError;

use tfp::{
    Checkpoint, DataType, Model, ModelWriter, Result, SessionModel, SessionOptions, Shape, Tape,
    Tensor, Variable, ops,
};

use crate::place::{CPU, DEVICE, TRACE, check_run, compare, eager, is_on, numbers, traced};

fn scratch(name: &str) -> PathBuf {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let folder = root.join(format!("tfp_device_{}_{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes, on the device, a model of two layers.
fn write_model(folder: &std::path::Path) -> Result<()> {
    let ctx = eager(DEVICE)?;
    let (w, v) = (
        Variable::new(&ctx, "w", &numbers(&[4, 3])?)?,
        Variable::new(&ctx, "v", &numbers(&[3, 2])?)?,
    );
    assert!(is_on(&w.read(&ctx)?.device()?, DEVICE));
    let mut writer = ModelWriter::new();
    writer.variable("first/w", &w)?;
    writer.variable("second/v", &v)?;
    let argument = ("x", DataType::FLOAT, Shape::from([-1, 4]));
    writer.signature("serving_default", &[argument], |func, arguments| {
        let y = ops::mat_mul(func, &arguments["x"], w.read(func)?, Default::default())?;
        let y = ops::mat_mul(func, ops::tanh(func, y)?, v.read(func)?, Default::default())?;
        Ok(vec![("y".to_owned(), ops::softmax(func, y)?)])
    })?;
    writer.write(folder)
}

/// Loads a model, makes a step by its gradients, saves it, and returns results before and after.
fn fine_tune(folder: &std::path::Path, out: &std::path::Path, device: &str) -> Result<Vec<Tensor>> {
    let ctx = eager(device)?;
    let model = Model::load(&ctx, folder, &["serve"])?;
    let signature = model.signature("serving_default")?;
    let x = ctx.handle(&numbers(&[5, 4])?)?;
    let mut values = Vec::new();
    for _ in 0..2 {
        let tape = Tape::new(&ctx);
        let y = signature.call(&tape, &[x.clone()])?.remove(0);
        assert!(is_on(&y.device()?, device));
        let flat = ops::reshape(&tape, ops::square(&tape, &y)?, [-1])?;
        let loss = ops::sum(&tape, flat, [0], Default::default())?;
        values.extend([y.to_tensor()?, loss.to_tensor()?]);
        for (_, variable) in model.variables() {
            let gradient = tape.gradient(&loss, &variable.handle_in(&ctx)?)?;
            variable.assign_sub(&ctx, ops::mul(&ctx, &gradient, 0.5)?)?;
            values.push(gradient.to_tensor()?);
        }
    }
    model.save(out)?;
    for (_, variable) in model.variables() {
        values.push(variable.to_tensor()?);
    }
    Ok(values)
}

#[test]
fn a_model_is_written_loaded_trained_and_saved() -> Result<()> {
    let folder = scratch("model");
    write_model(&folder.join("m"))?;
    let expected = fine_tune(&folder.join("m"), &folder.join("cpu"), CPU)?;
    let found = fine_tune(&folder.join("m"), &folder.join("tfp"), DEVICE)?;
    compare("fine-tuning", &found, &expected, 2e-5)?;
    // What both saved gives the same in a session, which chooses the device by itself.
    let x = numbers(&[5, 4])?;
    let mut results = Vec::new();
    for name in ["cpu", "tfp"] {
        let loaded = SessionModel::load(folder.join(name), &["serve"], &SessionOptions::default())?;
        let signature = loaded.model.signature("serving_default")?;
        let input = loaded.model.output(&signature.inputs["x"])?;
        let output = loaded.model.output(&signature.outputs["y"])?;
        let _one = TRACE.lock().unwrap_or_else(PoisonError::into_inner);
        let options = traced();
        let run = loaded.model.session.run().options(&options).with_metadata();
        let fetched = run.feed(&input, &x).fetch(&output).go()?;
        check_run(&fetched.metadata, DEVICE, &[], "a session of a model")?;
        results.push(fetched.tensors);
    }
    compare("a session of a model", &results[1], &results[0], 2e-5)?;
    Ok(())
}

#[test]
fn checkpoints_cross_devices() -> Result<()> {
    let folder = scratch("checkpoint");
    let (there, here) = (eager(DEVICE)?, eager(CPU)?);
    let value = numbers(&[3, 4])?;
    let written = Variable::new(&there, "w", &value)?;
    written.assign_add(&there, &value)?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("model/w", &written)?;
    checkpoint.write(folder.join("ck"))?;
    for ctx in [&here, &there] {
        let read = Variable::new(ctx, "w", &Tensor::zeros(DataType::FLOAT, &[3, 4])?)?;
        let mut checkpoint = Checkpoint::new();
        checkpoint.add("model/w", &read)?;
        checkpoint.restore(folder.join("ck"))?.complete()?;
        compare(
            "checkpoint",
            &[read.to_tensor()?],
            &[written.to_tensor()?],
            0.0,
        )?;
        let twice = ops::mul(ctx, read.read(ctx)?, 0.5)?;
        compare("after it", &[twice.to_tensor()?], &[value.share()?], 0.0)?;
    }
    Ok(())
}
