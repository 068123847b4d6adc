//! SavedModels that are damaged, of another version or put together wrongly are refused by name.

use std::fs;

use tfp::ops;
use tfp::wire::{Reader, Writer};
use tfp::{
    Code, Column, DataType, EagerContext, ErrorKind, Graph, GraphFunction, LookupTable, Model,
    ModelWriter, Result, Session, SessionModel, SessionOptions, Shape, Tape, Tensor, Variable,
    initialize, set_in,
};

use crate::scratch;

/// Writes a model with a variable and a signature.
pub(crate) fn write_model(ctx: &EagerContext, folder: &std::path::Path) -> Result<()> {
    let w = Variable::new(ctx, "w", [2.0_f32, 3.0])?;
    let mut writer = ModelWriter::new();
    writer.variable("layer/w", &w)?;
    let argument = ("x", DataType::FLOAT, Shape::from([-1, 2]));
    writer.signature("serving_default", &[argument], |func, arguments| {
        let y = ops::mul(func, &arguments["x"], w.read(func)?)?;
        Ok(vec![("y".to_owned(), y)])
    })?;
    writer.write(folder)
}

#[test]
fn calls_that_do_not_fit_are_refused() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("calls"));
    write_model(&ctx, &folder.join("m"))?;
    let model = Model::load(&ctx, folder.join("m"), &[])?;
    assert_eq!(model.signatures(), ["serving_default"]);
    let function = model.signature("serving_default")?;
    assert_eq!(
        (
            function.inputs()[0].name.as_str(),
            function.outputs()[0].name.as_str()
        ),
        ("x", "y")
    );
    let y = function.call_named(&ctx, [("x", [[1.0, 2.0]])])?;
    assert_eq!(y["y"].to_tensor()?.to_vec::<f32>()?, [2.0, 6.0]);
    let kind = |error: tfp::Error, text: &str| {
        assert!(error.to_string().contains(text), "{error}");
        error.kind().clone()
    };
    let error = function.call_named(&ctx, [("x", [[1.0_f32]])]).unwrap_err();
    assert!(matches!(
        kind(error, "'x' of signature 'serving_default'"),
        ErrorKind::Shape { .. }
    ));
    let error = function.call_named(&ctx, [("x", ["text"])]).unwrap_err();
    assert!(matches!(kind(error, "'x'"), ErrorKind::DType { .. }));
    let error = function.call_named(&ctx, [("z", 1.0_f32)]).unwrap_err();
    assert!(matches!(kind(error, "takes x"), ErrorKind::NotFound { .. }));
    let error = function.call_named(&ctx, [("x", 1.0_f32); 0]).unwrap_err();
    assert!(matches!(
        kind(error, "not given"),
        ErrorKind::Argument { .. }
    ));
    let twice = [("x", [[1.0, 2.0]]), ("x", [[3.0, 4.0]])];
    let error = function.call_named(&ctx, twice).unwrap_err();
    assert!(matches!(
        kind(error, "given twice"),
        ErrorKind::Argument { .. }
    ));
    let error = model.signature("predict").unwrap_err();
    assert!(matches!(
        kind(error, "serving_default"),
        ErrorKind::NotFound { .. }
    ));
    let error = Model::load(&ctx, folder.join("m"), &["train"]).unwrap_err();
    assert!(matches!(kind(error, "serve"), ErrorKind::NotFound { .. }));
    let error = model.save(folder.join("m")).unwrap_err();
    assert!(matches!(
        kind(error, "outside of that folder"),
        ErrorKind::Argument { .. }
    ));
    let error = model.save(folder.join("m/deep/copy")).unwrap_err();
    assert!(matches!(
        kind(error, "outside of that folder"),
        ErrorKind::Argument { .. }
    ));
    assert!(!folder.join("m/deep").exists());
    Ok(())
}

#[test]
fn a_model_that_is_unloaded_leaves_its_context() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("unloaded"));
    write_model(&ctx, &folder)?;
    let model = Model::load(&ctx, &folder, &[])?;
    let other = Model::load(&ctx, &folder, &[])?;
    let function = model.signature("serving_default")?;
    let x = [ctx.handle(&Tensor::from_array([[1.0_f32, 2.0]])?)?];
    let argument = [(DataType::FLOAT, Shape::from([-1, 2]))];
    let traced = GraphFunction::trace(&ctx, "outer", &argument, |cx, x| function.call(cx, x))?;
    for outcome in [function.call(&ctx, &x), traced.call(&ctx, &x)] {
        assert_eq!(outcome?[0].to_tensor()?.to_vec::<f32>()?, [2.0, 6.0]);
    }
    model.unload()?;
    // What was called before may still be there.
    let outcomes = [
        function.call(&ctx, &x),
        traced.call(&ctx, &x),
        function.call(&Tape::new(&ctx), &x),
    ];
    for found in outcomes.into_iter().flatten() {
        assert_eq!(found[0].to_tensor()?.to_vec::<f32>()?, [2.0, 6.0]);
    }
    for has_call in [true, false] {
        let model = Model::load(&ctx, &folder, &[])?;
        let function = model.signature("serving_default")?;
        if has_call {
            for function in [&function, &other.signature("serving_default")?] {
                let found = function.call(&ctx, &x)?;
                assert_eq!(found[0].to_tensor()?.to_vec::<f32>()?, [2.0, 6.0]);
            }
        }
        model.unload()?;
        if !has_call {
            let error = function.call(&ctx, &x).expect_err("it is gone");
            assert_eq!(error.code(), Code::NotFound, "{error}");
        }
    }
    Ok(())
}

#[test]
fn a_model_is_replaced_as_a_whole() -> Result<()> {
    let (ctx, root) = (EagerContext::new()?, scratch("half"));
    let folder = root.join("model");
    write_model(&ctx, &folder)?;
    write_model(&ctx, &folder)?;
    assert!(Model::load(&ctx, &folder, &[]).is_ok());
    // Whatever is in a model's place, and nothing of somebody else's.
    fs::remove_dir_all(folder.join("variables")).expect("a folder");
    fs::write(folder.join("variables"), b"in the way").expect("written");
    fs::create_dir(folder.join("mine")).expect("a folder");
    fs::write(folder.join("mine").join("notes"), b"kept").expect("written");
    std::os::unix::fs::symlink(&folder, root.join("link")).expect("a link");
    write_model(&ctx, &root.join("link"))?;
    assert!(Model::load(&ctx, &folder, &[]).is_ok());
    assert_eq!(fs::read(folder.join("mine/notes")).expect("kept"), b"kept");
    let error = write_model(&ctx, &folder.join("mine/notes/model")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
    let mut names: Vec<_> = fs::read_dir(&root)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["link", "model"]);
    Ok(())
}

#[test]
fn a_copy_of_a_model_has_no_files_from_elsewhere() -> Result<()> {
    let (ctx, root) = (EagerContext::new()?, scratch("links"));
    let (folder, copy) = (root.join("model"), root.join("copy"));
    write_model(&ctx, &folder)?;
    fs::write(folder.join("own"), b"own").expect("written");
    std::os::unix::fs::symlink("own", folder.join("inside")).expect("a link");
    let model = Model::load(&ctx, &folder, &[])?;
    model.save(&copy)?;
    assert_eq!(fs::read(copy.join("inside")).expect("a file"), b"own");
    for target in ["/etc/passwd", ".", "nowhere", "inside_out"] {
        let link = folder.join("inside_out");
        std::os::unix::fs::symlink(target, &link).expect("a link");
        let error = model.save(&copy).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
        assert!(error.to_string().contains("inside_out"), "{error}");
        assert!(!copy.join("inside_out").exists());
        fs::remove_file(&link).expect("a link");
    }
    Ok(())
}

/// Leaves out a field, which is found by the numbers of the messages that it is in.
fn without(bytes: &[u8], path: &[u32]) -> Vec<u8> {
    let mut out = Writer::new();
    for field in Reader::new("message", bytes) {
        match (field.expect("a field"), path) {
            ((number, _), [last]) if number == *last => {}
            ((number, field), [first, rest @ ..]) if number == *first => {
                out.bytes(number, &without(field.bytes().expect("a message"), rest));
            }
            ((_, field), _) => out.raw(field.raw()),
        }
    }
    out.into_bytes()
}

#[test]
fn functions_that_return_more_than_the_model_says() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("returns"));
    write_model(&ctx, &folder)?;
    let file = folder.join("saved_model.pb");
    let whole = fs::read(&file).expect("a model");
    // SavedConcreteFunction has arguments at 3 and results at 4.
    for (number, says) in [(3, "takes"), (4, "returns")] {
        fs::write(&file, without(&whole, &[2, 7, 2, 2, number])).expect("written");
        let model = Model::load(&ctx, &folder, &["serve"])?;
        let error = model
            .signatures()
            .iter()
            .find_map(|name| model.signature(name).err())
            .expect("an error");
        assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    Ok(())
}

#[test]
fn damaged_models_name_the_file() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("models"));
    write_model(&ctx, &folder)?;
    let file = folder.join("saved_model.pb");
    let whole = fs::read(&file).expect("a model");
    let refused = |bytes: &[u8], text: &str| {
        fs::write(&file, bytes).expect("written");
        for error in [
            Model::load(&ctx, &folder, &["serve"])
                .map(drop)
                .unwrap_err(),
            SessionModel::load(&folder, &["serve"], &SessionOptions::default())
                .map(drop)
                .unwrap_err(),
        ] {
            assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
            let message = error.to_string();
            assert!(
                message.contains("saved_model.pb") && message.contains(text),
                "{message}"
            );
        }
    };
    let mut future = whole.clone();
    future[1] = 2;
    refused(&future, "version 2");
    refused(&whole[..whole.len() / 2], "byte");
    refused(b"", "version 0");
    refused(b"no model at all", "");
    // A part of a graph, an object, and a graph that only a later TensorFlow reads.
    let mut later = Writer::new();
    later.int(1, 1);
    later.message(2, |meta| {
        meta.message(1, |info| info.bytes(4, b"serve"));
        meta.message(2, |graph| {
            graph.message(4, |versions| {
                versions.int(1, 999_999);
                versions.int(2, 999_999);
            });
        });
        meta.message(7, |objects| objects.bytes(1, &[]));
    });
    fs::write(&file, later.into_bytes()).expect("written");
    let error = Model::load(&ctx, &folder, &["serve"])
        .map(drop)
        .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
    assert!(error.to_string().contains("999999"), "{error}");
    // Whatever a byte becomes, the answer is a model or an error.
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x15;
        fs::write(&file, &damaged).expect("written");
        let _ = Model::load(&ctx, &folder, &["serve"]);
    }
    fs::write(&file, &whole).expect("written");
    fs::remove_file(folder.join("variables/variables.index")).expect("removed");
    let error = Model::load(&ctx, &folder, &["serve"])
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("variables.index"), "{error}");
    fs::remove_file(&file).expect("removed");
    let error = Model::load(&ctx, &folder, &["serve"])
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("saved_model.pb"), "{error}");
    let error = Model::load(&ctx, folder.join("nothing"), &["serve"])
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. }),
        "{error}"
    );
    Ok(())
}

#[test]
fn a_session_changes_a_model_and_writes_it_back() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("session"));
    write_model(&ctx, &folder.join("m"))?;
    let loaded = SessionModel::load(folder.join("m"), &["serve"], &SessionOptions::default())?;
    let paths: Vec<&str> = loaded.variables().map(|(path, _)| path).collect();
    assert_eq!(paths, ["layer/w"]);
    for (_, variable) in loaded.variables() {
        assert!(variable.is_trainable());
        set_in(
            &loaded.model.session,
            &[(variable, &Tensor::from_array([10.0_f32, 20.0])?)],
        )?;
    }
    loaded.save(folder.join("changed"))?;
    let x = Tensor::from_array([[1.0_f32, 1.0]])?;
    let here = loaded.model.call("serving_default", &[("x", &x)])?;
    assert_eq!(here["y"].to_vec::<f32>()?, [10.0, 20.0]);
    let model = Model::load(&ctx, folder.join("changed"), &["serve"])?;
    let y = model
        .signature("serving_default")?
        .call_named(&ctx, [("x", &x)])?;
    assert_eq!(y["y"].to_tensor()?.to_vec::<f32>()?, [10.0, 20.0]);
    Ok(())
}

#[test]
fn models_that_are_put_together_wrongly() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("wrong"));
    let w = Variable::new(&ctx, "forgotten", 2.0_f32)?;
    let mut writer = ModelWriter::new();
    writer.signature("s", &[], |func, _| {
        Ok(vec![("y".to_owned(), w.read(func)?)])
    })?;
    let error = writer.write(&folder).unwrap_err();
    assert!(error.to_string().contains("'s' uses a variable"), "{error}");
    assert!(!folder.join("saved_model.pb").exists());
    writer.variable("w", &w)?;
    assert!(writer.variable("w", &w).is_err() && writer.variable("a//b", &w).is_err());
    assert!(writer.signature("s", &[], |_, _| Ok(Vec::new())).is_err());
    writer.write(&folder)?;

    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::scalar())?;
    let hidden = scope.placeholder("hidden", DataType::FLOAT, &Shape::scalar())?;
    let v = Variable::new(&scope, "v", 1.0_f32)?;
    let y = ops::add_v2(&scope, ops::mul(&scope, &x, v.read(&scope)?)?, &hidden)?;
    let mut writer = ModelWriter::new();
    let error = writer
        .graph_signature("s", &[("x", &x)], &[("y", &y)])
        .unwrap_err();
    assert!(error.to_string().contains("'hidden'"), "{error}");
    writer.graph_signature("s", &[("x", &x), ("h", &hidden)], &[("y", &y)])?;
    let session = Session::new(&graph)?;
    initialize(&session, [&v])?;
    let error = writer.write_from(&session, folder.join("g")).unwrap_err();
    assert!(error.to_string().contains("'v'"), "{error}");
    writer.variable("v", &v)?;
    let error = writer.write(folder.join("g")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }), "{error}");
    writer.write_from(&session, folder.join("g"))?;
    let model = Model::load(&ctx, folder.join("g"), &["serve"])?;
    let result = model
        .signature("s")?
        .call_named(&ctx, [("x", 3.0_f32), ("h", 0.5)])?;
    assert_eq!(result["y"].to_tensor()?.to_scalar::<f32>()?, 3.5);
    Ok(())
}

#[test]
fn tables_that_do_not_belong_to_a_model() -> Result<()> {
    let (ctx, folder) = (EagerContext::new()?, scratch("tables"));
    let (keys, values) = (
        Tensor::from_strings(&["a"], &[1])?,
        Tensor::from_array([1_i64])?,
    );
    let none = Tensor::scalar(-1_i64)?;
    let argument = ("key", DataType::STRING, Shape::from([-1]));
    let table = LookupTable::new(&ctx, "forgotten", &keys, &values, &none)?;
    let mut writer = ModelWriter::new();
    writer.signature("s", &[argument], |func, arguments| {
        let found = table.find(func, &arguments["key"])?;
        Ok(vec![("id".to_owned(), found)])
    })?;
    let error = writer.write(&folder).unwrap_err();
    assert!(
        error.to_string().contains("'s' uses a variable or table"),
        "{error}"
    );
    writer.table("words", &table)?;
    let error = writer.table("words", &table).unwrap_err();
    assert!(error.to_string().contains("'words'"), "{error}");
    assert!(
        writer
            .variable("words", &Variable::new(&ctx, "w", 1.0_f32)?)
            .is_err()
    );
    writer.write(&folder)?;

    // A table of a graph is written from a session of that graph, in which it was filled.
    let (graph, other) = (Graph::new()?, Graph::new()?);
    let table = LookupTable::new(&graph.scope(), "late", &keys, &values, &none)?;
    let mut writer = ModelWriter::new();
    writer.table("late", &table)?;
    let is_foreign = |error: tfp::Error| {
        assert!(matches!(error.kind(), ErrorKind::Foreign { .. }), "{error}");
        assert!(error.to_string().contains("'late'"), "{error}");
    };
    is_foreign(writer.write(folder.join("g")).unwrap_err());
    let error = writer.write_from(&Session::new(&other)?, folder.join("g"));
    is_foreign(error.unwrap_err());
    let session = Session::new(&graph)?;
    assert!(writer.write_from(&session, folder.join("g")).is_err());
    table.initialize(&session)?;
    writer.write_from(&session, folder.join("g"))?;

    // The file of a table must be there when the model is written.
    let lines = folder.join("lines.txt");
    fs::write(&lines, "a\nb\n").expect("a file");
    let key = (Column::Line, DataType::STRING);
    let table = LookupTable::from_file(&ctx, "t", &lines, key, Column::LineNumber, "\t", &none)?;
    fs::remove_file(&lines).expect("the file");
    let mut writer = ModelWriter::new();
    writer.table("t", &table)?;
    let error = writer.write(folder.join("f")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
    assert!(error.to_string().contains("lines.txt"), "{error}");
    assert!(!folder.join("f").join("saved_model.pb").exists());
    Ok(())
}
