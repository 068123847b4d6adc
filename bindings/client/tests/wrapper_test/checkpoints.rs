//! Checkpoints give back what was written, in both modes, and refuse what does not fit.

use tfp::{
    Checkpoint, CheckpointReader, Code, EagerContext, ErrorKind, Graph, Result, Session, Tensor,
    Variable, initialize, latest_checkpoint, write_tensors,
};

use crate::scratch;

#[test]
fn one_mode_reads_what_the_other_wrote() -> Result<()> {
    let folder = scratch("modes");
    let ctx = EagerContext::new()?;
    let (w, s) = (
        Variable::new(&ctx, "w", [[1.0_f32, 2.0]])?,
        Variable::new(&ctx, "s", 7_i64)?,
    );
    let mut eager = Checkpoint::new();
    eager.add("model/dense/w", &w)?;
    eager.add("step", &s)?;
    assert!(eager.add("step", &s).is_err() && eager.add("a//b", &s).is_err());
    assert_eq!(eager.save(folder.join("ck"))?, folder.join("ck-1"));
    assert_eq!(eager.save(folder.join("ck"))?, folder.join("ck-2"));
    assert_eq!(latest_checkpoint(&folder)?, folder.join("ck-2"));

    let graph = Graph::new()?;
    let v = Variable::new(&graph.scope(), "v", [[0.0_f32, 0.0]])?;
    let other = Variable::new(&graph.scope(), "other", 1.5_f64)?;
    let session = Session::new(&graph)?;
    initialize(&session, [&v, &other])?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("model/dense/w", &v)?;
    checkpoint.add("other", &other)?;
    let restored = checkpoint.restore_into(&session, folder.join("ck-2"))?;
    assert_eq!(v.value_in(&session)?.to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(
        (&restored.unused[..], &restored.missing[..]),
        (&["step".to_owned()][..], &["other".to_owned()][..])
    );
    let error = restored.complete().unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. }) && error.to_string().contains("'other'"),
        "{error}"
    );
    let absent = checkpoint.restore_into(&session, folder.join("ck-9"));
    let error = absent.unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(error.to_string().contains("ck-9.index"), "{error}");
    let error = latest_checkpoint(folder.join("none")).unwrap_err();
    assert_eq!(error.code(), Code::NotFound, "{error}");
    // The count of saves goes on.
    assert_eq!(
        checkpoint.save_from(&session, folder.join("ck"))?,
        folder.join("ck-3")
    );
    w.assign(&ctx, [[9.0, 9.0]])?;
    eager.restore(folder.join("ck-3"))?;
    assert_eq!(w.to_tensor()?.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn tensors_by_name() -> Result<()> {
    let prefix = scratch("names").join("v1");
    let (a, b) = (
        Tensor::from_array([[1_i32, 2], [3, 4]])?,
        Tensor::from_strings(&["x", "yz"], &[2])?,
    );
    write_tensors(&prefix, &[("layer/a", &a), ("b", &b)])?;
    let reader = CheckpointReader::open(&prefix)?;
    let names: Vec<_> = reader.entries().map(|(name, ..)| name).collect();
    assert_eq!(names, ["b", "layer/a"]);
    assert_eq!(reader.read("layer/a")?.to_vec::<i32>()?, [1, 2, 3, 4]);
    assert_eq!(reader.read("b")?.as_strings()?, [&b"x"[..], b"yz"]);
    assert!(matches!(
        reader.read("c").unwrap_err().kind(),
        ErrorKind::NotFound { .. }
    ));
    let error = Checkpoint::new().restore(&prefix).unwrap_err();
    assert!(error.to_string().contains("no objects"), "{error}");
    Ok(())
}

#[test]
fn damaged_and_unfit_checkpoints_are_refused() -> Result<()> {
    let folder = scratch("damaged");
    let ctx = EagerContext::new()?;
    let w = Variable::new(&ctx, "weights", [1.0_f32, 2.0])?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("w", &w)?;
    checkpoint.write(folder.join("ck"))?;
    let mut small = Checkpoint::new();
    small.add("w", &Variable::new(&ctx, "small", [1.0_f32])?)?;
    let error = small.restore(folder.join("ck")).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Shape { .. }) && error.to_string().contains("'small'"),
        "{error}"
    );
    let mut wide = Checkpoint::new();
    wide.add("w", &Variable::new(&ctx, "wide", [1.0_f64, 2.0])?)?;
    assert!(matches!(
        wide.restore(folder.join("ck")).unwrap_err().kind(),
        ErrorKind::DType { .. }
    ));
    let error = checkpoint.restore(folder.join("nothing")).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. })
            && error.to_string().contains("nothing.index"),
        "{error}"
    );
    let index = folder.join("ck.index");
    let whole = std::fs::read(&index).expect("an index");
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&index, &damaged).expect("written");
        if let Err(error) = CheckpointReader::open(folder.join("ck")) {
            assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
        }
        std::fs::write(&index, &whole[..at]).expect("written");
        assert!(CheckpointReader::open(folder.join("ck")).is_err());
    }
    assert_eq!(w.to_tensor()?.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn a_count_of_saves_that_is_no_count_changes_nothing() -> Result<()> {
    let folder = scratch("count");
    let ctx = EagerContext::new()?;
    let (w, other) = (
        Variable::new(&ctx, "w", 1.0_f32)?,
        Variable::new(&ctx, "other", 2.0_f32)?,
    );
    let mut written = Checkpoint::new();
    written.add("w", &other)?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("w", &w)?;
    let mut bad = Checkpoint::new();
    bad.add("w", &other)?;
    bad.add("save_counter", &Variable::new(&ctx, "count", 1.0_f32)?)?;
    bad.write(folder.join("bad"))?;
    let error = checkpoint.restore(folder.join("bad")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DType { .. }), "{error}");
    assert_eq!(w.to_tensor()?.to_scalar::<f32>()?, 1.0);

    let mut last = Checkpoint::new();
    last.add("w", &other)?;
    last.add("save_counter", &Variable::new(&ctx, "count", i64::MAX)?)?;
    last.write(folder.join("last"))?;
    checkpoint.restore(folder.join("last"))?;
    assert_eq!(w.to_tensor()?.to_scalar::<f32>()?, 2.0);
    let error = checkpoint.save(folder.join("next")).unwrap_err();
    assert!(error.to_string().contains("too often"), "{error}");
    Ok(())
}

#[test]
fn tensors_in_parts_are_read() -> Result<()> {
    let folder = scratch("parts");
    let ctx = EagerContext::new()?;
    let (one, two) = (vec![1.0_f32; 6], vec![2.0_f32; 6]);
    let (one, two) = (
        Tensor::from_vec(one, &[2, 3])?,
        Tensor::from_vec(two, &[2, 3])?,
    );
    let prefix = folder.join("ck");
    tfp::ops::save_v2(
        &ctx,
        prefix.to_str().expect("a path"),
        &["w", "w"][..],
        &["4 3 0,2:0,3", "4 3 2,2:0,3"][..],
        vec![&one, &two],
    )?;
    let reader = CheckpointReader::open(&prefix)?;
    let found = reader.read("w")?.to_vec::<f32>()?;
    assert_eq!(found, [[1.0; 6], [2.0; 6]].concat());
    Ok(())
}

/// Tensors are larger than the files say: TensorFlow would make room for them first.
#[test]
fn a_tensor_that_is_not_in_the_files_is_refused() -> Result<()> {
    let folder = scratch("cut");
    let ctx = EagerContext::new()?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("w", &Variable::new(&ctx, "w", vec![1.0_f32; 100])?)?;
    checkpoint.write(folder.join("ck"))?;
    let reader = CheckpointReader::open(folder.join("ck"))?;
    let names: Vec<String> = reader
        .entries()
        .map(|(name, _, _)| name.to_owned())
        .collect();
    let name = names.iter().find(|name| name.starts_with('w'));
    let name = name.expect("a variable");
    assert_eq!(reader.read(name)?.to_vec::<f32>()?.len(), 100);
    let data = folder.join("ck.data-00000-of-00001");
    std::fs::write(&data, [0; 399]).expect("written");
    let error = reader.read(name).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::File { .. }) && error.to_string().contains("400 bytes"),
        "{error}"
    );
    Ok(())
}
