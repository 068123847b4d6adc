//! Sessions: runs of every kind.

use std::thread;
use std::time::Duration;

use tfp_core::*;

use crate::support::{add, refused};

struct Sum {
    graph: Graph,
    x: Output,
    y: Output,
    sum: Output,
}

fn sum() -> Result<Sum> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([-1]))?;
    let y = scope.placeholder("y", DataType::FLOAT, &Shape::from([-1]))?;
    let sum = add(&scope.named("sum"), &x, &y)?;
    Ok(Sum { graph, x, y, sum })
}

fn tensor(values: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(values, &[values.len() as i64])
}

#[test]
fn runs_feed_and_fetch() -> Result<()> {
    let Sum { graph, x, y, sum } = sum()?;
    let session = Session::new(&graph)?;
    let (a, b) = (tensor(&[1.0, 2.0])?, tensor(&[10.0, 20.0])?);
    let values = session.eval(&[(&x, &a), (&y, &b)], &[&sum, &sum])?;
    assert_eq!(values[0].as_slice::<f32>()?, [11.0, 22.0]);
    assert_eq!(values[1].as_slice::<f32>()?, [11.0, 22.0]);
    // Operations that are added later belong to the same session.
    let more = add(&graph.scope(), &sum, 1.0)?;
    let callable = session.callable(&[x.clone(), y.clone()], &[more], &[])?;
    for _ in 0..3 {
        assert_eq!(
            callable.call(&[&a, &b])?[0].as_slice::<f32>()?,
            [12.0, 23.0]
        );
    }
    let fetched = session
        .run()
        .feed(&x, &a)
        .feed(&y, &b)
        .fetch(&sum)
        .options(&RunOptions::new().trace(true))
        .with_metadata()
        .go()?;
    let traced = traced_nodes(&fetched.metadata)?;
    let node = traced
        .iter()
        .find(|node| node.name == sum.operation().name());
    let node = node.unwrap_or_else(|| panic!("{traced:?}"));
    assert!(node.device.ends_with("CPU:0") && node.compute <= node.total);
    assert!(node.start.as_secs() > 1_700_000_000);
    assert_eq!(session.devices()?[0].kind, "CPU");
    Ok(())
}

#[test]
fn targets_run_for_their_effect() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let shape = Shape::scalar();
    let variable = OpBuilder::new("VarHandleOp")?
        .attr("dtype", DataType::FLOAT)?
        .attr("shape", &shape)?
        .attr("shared_name", "v")?
        .one(&scope)?;
    let assign = OpBuilder::new("AssignVariableOp")?
        .input(&variable)
        .input(4.5_f32)
        .execute(&scope)?
        .operation();
    let read = OpBuilder::new("ReadVariableOp")?
        .input(&variable)
        .attr("dtype", DataType::FLOAT)?
        .one(&scope)?;
    let session = Session::new(&graph)?;
    refused(session.eval(&[], &[&read]), &["FailedPrecondition"]);
    assert!(session.run().target(&assign).go()?.tensors.is_empty());
    assert_eq!(session.eval(&[], &[&read])?[0].to_scalar::<f32>()?, 4.5);
    let other = Session::new(&graph)?;
    refused(other.eval(&[], &[&read]), &["FailedPrecondition"]);
    Ok(())
}

#[test]
fn partial_runs_keep_what_was_computed() -> Result<()> {
    let Sum { graph, x, y, sum } = sum()?;
    let scope = graph.scope();
    let first = add(&scope.named("first"), &x, 1.0)?;
    let second = OpBuilder::new("Mul")?.input(&first).input(&y).one(&scope)?;
    let session = Session::new(&graph)?;
    let run = session.partial_run(
        &[x.clone(), y.clone()],
        &[first.clone(), second.clone()],
        &[],
    )?;
    let (a, b) = (tensor(&[1.0])?, tensor(&[5.0])?);
    let out = run.step(&[(&x, &a)], &[&first], &[])?;
    assert_eq!(out[0].as_slice::<f32>()?, [2.0]);
    let again = run.step(&[(&x, &a)], &[], &[]);
    refused(again, &["x"]);
    refused(run.step(&[(&y, &b)], &[&sum], &[]), &["sum"]);
    let out = run.step(&[(&y, &b)], &[&second], &[])?;
    assert_eq!(out[0].as_slice::<f32>()?, [10.0]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let Sum { graph, x, y, sum } = sum()?;
    let session = Session::new(&graph)?;
    let a = tensor(&[1.0])?;
    let doubles = Tensor::from_array([1.0_f64])?;
    let error = refused(
        session.eval(&[(&x, &doubles)], &[&sum]),
        &["'x:0'", "float32", "float64"],
    );
    assert!(matches!(error.kind(), ErrorKind::DType { .. }));
    let matrix = Tensor::from_array([[1.0_f32]])?;
    let error = refused(
        session.eval(&[(&x, &matrix)], &[&sum]),
        &["'x:0'", "[?]", "[1,1]"],
    );
    assert!(matches!(error.kind(), ErrorKind::Shape { .. }));
    let missing = refused(session.eval(&[(&x, &a)], &[&sum]), &["feed", "y"]);
    assert_eq!(missing.code(), Code::InvalidArgument);
    let callable = session.callable(&[x.clone(), y.clone()], &[sum.clone()], &[])?;
    refused(callable.call(&[&a]), &["1 tensors for 2 feeds"]);
    refused(callable.call(&[&a, &doubles]), &["'y:0'"]);
    refused(callable.call(&[&a, &matrix]), &["'y:0'"]);
    refused(
        callable
            .call(&[&a, &tensor(&[1.0, 2.0, 3.0])?])
            .map(|_| ())
            .and_then(|()| callable.call(&[&tensor(&[1.0, 2.0])?, &tensor(&[1.0, 2.0, 3.0])?])),
        &["Incompatible shapes"],
    );
    let foreign = crate::sessions::sum()?;
    refused(
        session.eval(&[(&foreign.x, &a)], &[&sum]),
        &["'x'", "another graph"],
    );
    refused(session.eval(&[], &[&foreign.sum]), &["another graph"]);
    refused(
        session.run().target(foreign.sum.operation()).go(),
        &["another graph"],
    );
    let twice = session.eval(&[(&x, &a), (&x, &a), (&y, &a)], &[&sum]);
    refused(twice, &["x"]);
    let config = SessionOptions {
        config: b"\xff\xff".to_vec().into(),
        ..SessionOptions::default()
    };
    refused(Session::with_options(&graph, &config), &["InvalidArgument"]);
    let target = SessionOptions {
        target: "nowhere://x".to_owned(),
        ..SessionOptions::default()
    };
    refused(Session::with_options(&graph, &target), &["NotFound"]);
    session.close()?;
    let closed = refused(session.eval(&[(&x, &a), (&y, &a)], &[&sum]), &["closed"]);
    assert_eq!(closed.code(), Code::Cancelled);
    Ok(())
}

/// A placeholder, and an output that depends on it, as one can't fetch what is fed.
fn fed(scope: &Scope, shape: &Shape) -> Result<(Output, Output)> {
    let x = scope.placeholder("x", DataType::FLOAT, shape)?;
    let y = OpBuilder::new("Identity")?.input(&x).one(scope)?;
    Ok((x, y))
}

#[test]
fn feeds_are_checked_against_what_is_known_now() -> Result<()> {
    let (one, two) = (tensor(&[1.0])?, tensor(&[1.0, 2.0])?);
    // Graphs that come and go, at the same addresses, with other shapes.
    for round in 0..40 {
        let graph = Graph::new()?;
        let scope = graph.scope();
        let wanted = if round % 2 == 0 { &one } else { &two };
        let other = if round % 2 == 0 { &two } else { &one };
        let (x, y) = fed(&scope, &Shape::unknown())?;
        let session = Session::new(&graph)?;
        session.eval(&[(&x, &one)], &[&y])?;
        session.eval(&[(&x, &two)], &[&y])?;
        graph.set_shape(&x, &Shape::from([-1]))?;
        session.eval(&[(&x, other)], &[&y])?;
        graph.set_shape(&x, &wanted.shape())?;
        session.eval(&[(&x, wanted)], &[&y])?;
        let error = refused(session.eval(&[(&x, other)], &[&y]), &["'x:0'"]);
        assert!(matches!(error.kind(), ErrorKind::Shape { .. }));
    }
    // More outputs than a thread remembers, each of another shape, in several orders.
    let graph = Graph::new()?;
    let scope = graph.scope();
    let pairs: Vec<((Output, Output), Tensor)> = (0..100)
        .map(|size| {
            let shape = Shape::from([size]);
            let value = Tensor::zeros(DataType::FLOAT, &[size])?;
            Ok((fed(&scope, &shape)?, value))
        })
        .collect::<Result<_>>()?;
    let session = Session::new(&graph)?;
    for step in [1, 7, 33] {
        for group in 0..10 {
            let member = |position: usize| &pairs[(group * 10 + position * step) % 100];
            let feeds: Vec<(&Output, &Tensor)> =
                (0..10).map(|p| (&member(p).0.0, &member(p).1)).collect();
            let fetches: Vec<&Output> = (0..10).map(|p| &member(p).0.1).collect();
            session.eval(&feeds, &fetches)?;
            for wrong in 0..10 {
                let mut feeds = feeds.clone();
                feeds[wrong].1 = &member(wrong + 1).1;
                let error = refused(session.eval(&feeds, &fetches), &["feed"]);
                assert!(matches!(error.kind(), ErrorKind::Shape { .. }));
            }
        }
    }
    Ok(())
}

#[test]
fn a_shape_set_by_another_thread_counts() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let two = tensor(&[1.0, 2.0])?;
    for _ in 0..50 {
        let (x, y) = fed(&scope, &Shape::unknown())?;
        let session = Session::new(&graph)?;
        session.eval(&[(&x, &two)], &[&y])?;
        std::thread::scope(|threads| {
            let runs = threads.spawn(|| {
                while session.eval(&[(&x, &two)], &[&y]).is_ok() {}
                session.eval(&[(&x, &two)], &[&y])
            });
            let set = graph.set_shape(&x, &Shape::from([3]));
            let after = session.eval(&[(&x, &two)], &[&y]);
            for found in [after, runs.join().unwrap_or_else(|_| Ok(Vec::new()))] {
                let error = refused(found, &["[3]", "[2]"]);
                assert!(matches!(error.kind(), ErrorKind::Shape { .. }));
            }
            set
        })?;
    }
    Ok(())
}

#[test]
fn a_graph_lives_as_long_as_anything_of_it() -> Result<()> {
    let Sum { graph, x, y, sum } = sum()?;
    let session = Session::new(&graph)?;
    drop(graph);
    let a = tensor(&[1.0])?;
    assert_eq!(
        session.eval(&[(&x, &a), (&y, &a)], &[&sum])?[0].as_slice::<f32>()?,
        [2.0]
    );
    drop(session);
    assert_eq!(sum.name(), "sum:0");
    assert_eq!(sum.operation().inputs()[0], x);
    Ok(())
}

#[test]
fn damaged_saved_models_are_refused() -> Result<()> {
    let options = SessionOptions::default();
    refused(
        SavedModel::load("/no/such/folder", &["serve"], &options),
        &["/no/such/folder"],
    );
    let folder = std::env::temp_dir().join(format!("tfp_core_{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| Error::argument(error.to_string()))?;
    refused(
        SavedModel::load(&folder, &["serve"], &options),
        &["NotFound"],
    );
    std::fs::write(folder.join("saved_model.pb"), b"\x08\x01\xff\xff no model")
        .map_err(|error| Error::argument(error.to_string()))?;
    let damaged = SavedModel::load(&folder, &["serve"], &options);
    std::fs::remove_dir_all(&folder).map_err(|error| Error::argument(error.to_string()))?;
    refused(damaged, &["SavedModel", "tfp_core_"]);
    Ok(())
}

/// A graph that waits: it takes an element from a queue that has none.
fn waiting(graph: &Graph) -> Result<Operation> {
    let scope = graph.scope();
    let queue = OpBuilder::new("FIFOQueueV2")?
        .attr("component_types", [DataType::FLOAT].as_slice())?
        .one(&scope)?;
    let taken = OpBuilder::new("QueueDequeueV2")?
        .input(&queue)
        .attr("component_types", [DataType::FLOAT].as_slice())?
        .one(&scope)?;
    Ok(taken.operation().clone())
}

#[test]
fn a_run_that_waits_ends_by_its_deadline_or_when_the_session_is_closed() -> Result<()> {
    let graph = Graph::new()?;
    let wait = waiting(&graph)?;
    let session = Session::new(&graph)?;
    let limit = RunOptions::new().timeout(Duration::from_millis(20));
    let late = refused(session.run().target(&wait).options(&limit).go(), &[]);
    assert_eq!(late.code(), Code::DeadlineExceeded);

    let config = Config::new().operation_timeout(Duration::from_millis(20));
    let options = SessionOptions {
        config,
        ..SessionOptions::default()
    };
    let limited = Session::with_options(&graph, &options)?;
    let late = refused(limited.run().target(&wait).go(), &[]);
    assert_eq!(late.code(), Code::DeadlineExceeded);

    thread::scope(|scope| {
        let run = scope.spawn(|| session.run().target(&wait).go());
        thread::sleep(Duration::from_millis(50));
        session.close()?;
        let ended = run.join().expect("the run does not panic");
        assert_eq!(refused(ended, &[]).code(), Code::Cancelled);
        Ok(())
    })
}

#[test]
fn settings_reach_sessions_and_contexts() -> Result<()> {
    let config = Config::new()
        .device_count("CPU", 3)
        .threads(1)
        .parallel_ops(1)
        .optimize(false);
    let graph = Graph::new()?;
    let options = SessionOptions {
        config: config.clone(),
        ..SessionOptions::default()
    };
    assert_eq!(Session::with_options(&graph, &options)?.devices()?.len(), 3);
    let options = EagerOptions {
        config: config.merge(&[]),
        ..EagerOptions::default()
    };
    assert_eq!(EagerContext::with_options(&options)?.devices()?.len(), 3);
    Ok(())
}
