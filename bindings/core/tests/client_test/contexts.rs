//! One definition in both modes.

use tfp_core::*;

use crate::support::{add, refused};

#[test]
fn eager_calls_execute() -> Result<()> {
    let ctx = EagerContext::new()?;
    let x = ctx.handle(&Tensor::from_array([1.0_f32, 2.0, 3.0])?)?;
    let y = add(&ctx, add(&ctx, &x, 1.0)?, &x)?;
    assert_eq!(y.to_tensor()?.as_slice::<f32>()?, [3.0, 5.0, 7.0]);
    assert_eq!(y.shape()?, Shape::from([3]));
    let parts = OpBuilder::new("Split")?
        .input(0)
        .input(&Tensor::from_array([[1_i64, 2], [3, 4]])?)
        .attr("num_split", 2)?
        .execute(&ctx)?
        .list()?;
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[1].to_tensor()?.as_slice::<i64>()?, [3, 4]);
    let joined = OpBuilder::new("ConcatV2")?
        .list((&parts[0], [[9]], &parts[1]))
        .input(0)
        .one(&ctx);
    refused(joined, &["ConcatV2", "Dimension 1"]);
    let joined = OpBuilder::new("ConcatV2")?
        .list((&parts[0], [[9, 10]], &parts[1]))
        .input(0)
        .one(&ctx)?;
    assert_eq!(joined.to_tensor()?.as_slice::<i64>()?, [1, 2, 9, 10, 3, 4]);
    OpBuilder::new("NoOp")?.execute(&ctx)?.operation();
    Ok(())
}

#[test]
fn graph_calls_add_operations() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([-1, 2]))?;
    let y = add(&scope, &x, [[1.0, 2.0]])?;
    assert_eq!(y.shape()?, Shape::from([-1, 2]));
    assert_eq!(y.name(), "AddV2:0");
    let z = add(&scope.named("sum"), &y, &y)?;
    assert_eq!(z.name(), "sum:0");
    let op = OpBuilder::new("NoOp")?
        .execute(&scope.after(&[z.operation().clone()])?)?
        .operation();
    assert_eq!(op.control_inputs(), [z.operation().clone()]);
    Ok(())
}

#[test]
fn names_of_devices_are_those_that_tensorflow_reads() -> Result<()> {
    let names = [
        "/device:CPU:0",
        "/cpu:0",
        "/CPU:0",
        "/device:CPU",
        "/device:CPU:*",
        "/device:*:0",
        "/job:localhost",
        "/job:localhost/replica:0/task:0/device:CPU:0",
        "/replica:0/task:*",
        "nonsense",
        "/nonsense",
        "CPU:0",
        "cpu",
        "/device:",
        "/device:CPU:x",
        "/device:CPU:-1",
        "/job:",
        "/task:one",
        "/device:CPU:0 ",
        "/device:CPU:0/",
        "//",
        "/",
        "a\0b",
    ];
    let missing = ["/job:nonsense", "/device:CPU:7", "/device:cpu:0", "/task:1"];
    for name in names.into_iter().chain(missing) {
        let is_missing = missing.contains(&name);
        let graph = Graph::new()?;
        // TensorFlow's own view: an operation with the name is placed when it runs.
        let runs = || -> Result<()> {
            let sum = add(&graph.scope(), 1.0_f32, 2.0)?;
            let placed = Graph::new()?;
            let options = ImportOptions {
                default_device: name,
                ..ImportOptions::default()
            };
            placed.import(&graph.to_graph_def()?, &options)?;
            let sum = placed.output(&sum.operation().name())?;
            Session::new(&placed)?.eval(&[], &[&sum]).map(drop)
        };
        let runs = runs().is_ok();
        let scope = graph.scope().on_device(name);
        let eager = EagerContext::new()?.on_device(name);
        // A graph may run where there are other devices.
        let expected = (runs || is_missing, runs);
        assert_eq!((scope.is_ok(), eager.is_ok()), expected, "{name:?}");
        for error in [scope.err(), eager.err()].into_iter().flatten() {
            assert!(
                matches!(error.kind(), ErrorKind::Argument { .. }),
                "{error}"
            );
        }
    }
    Ok(())
}

/// What needs no other process; `//bindings/client:distribute_test` has clusters.
#[test]
fn what_is_not_a_cluster_is_refused() -> Result<()> {
    let ctx = EagerContext::new()?;
    let second = std::time::Duration::from_secs(1);
    // A length that the bytes don't have, and a protocol that nobody knows.
    for bytes in [&b"\x0a\x7f"[..], b"\x2a\x04none"] {
        for error in [
            Server::new(bytes).map(drop).unwrap_err(),
            ctx.enable_collective_ops(bytes).unwrap_err(),
            ctx.connect(bytes, second, 0).unwrap_err(),
        ] {
            assert!(
                matches!(error.kind(), ErrorKind::Status { .. }),
                "{error:#?}"
            );
        }
    }
    for task in ["/job:worker/replica:0/task:1", "worker", "a\0b"] {
        assert!(ctx.check_peer(task, second).is_err(), "{task:?}");
    }
    assert!(ctx.abort_collective_ops(Code::Aborted, "a\0b").is_err());
    // The context still computes.
    let sum = add(&ctx, 1.0_f32, 2.0)?;
    assert_eq!(sum.to_tensor()?.to_scalar::<f32>()?, 3.0);
    Ok(())
}
