//! Bytes and names from anywhere: errors, never undefined behaviour.

use tfp_core::*;

use crate::support::{add, refused};

/// A graph with constants, lists, attributes of several kinds and a function.
fn sample() -> Result<Vec<u8>> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([-1, 4]))?;
    let y = add(&scope, &x, [1.0, 2.0, 3.0, 4.0])?;
    let z = OpBuilder::new("ConcatV2")?
        .list([&x, &y])
        .input(1)
        .one(&scope)?;
    let body = Graph::new()?;
    let a = body
        .scope()
        .placeholder("a", DataType::FLOAT, &Shape::unknown())?;
    let b = add(&body, &a, 1.0)?;
    let function = body.to_function("f", &[a], &[b], &FunctionOptions::default())?;
    let types = [DataType::FLOAT];
    OpBuilder::new("PartitionedCall")?
        .list([&z])
        .attr("Tout", &types[..])?
        .attr("f", FuncRef::from(&function))?
        .execute(&scope)?;
    OpBuilder::new("Const")?
        .attr("value", &Tensor::from_strings(&["a", "bc"], &[2])?)?
        .attr("dtype", DataType::STRING)?
        .one(&scope)?;
    graph.to_graph_def()
}

/// Reads everything of a graph that can be read.
fn walk(graph: &Graph) {
    for operation in graph.operations() {
        for output in operation.outputs() {
            let _ = output.shape();
            let _ = graph.try_evaluate(&output);
        }
        let _ = (
            operation.inputs(),
            operation.control_inputs(),
            operation.control_outputs(),
        );
        let _ = (
            operation.consumers(0),
            operation.device(),
            operation.to_node_def(),
        );
        for name in operation.attr_names().unwrap_or_default() {
            if let Ok(Attr::Tensor(tensor)) = operation.attr(&name) {
                let _ = tensor.as_slice::<f32>().map(<[f32]>::len);
                let _ = tensor.as_strings();
            }
        }
    }
    let _ = graph.functions();
    let _ = graph.to_graph_def();
}

/// A fixed sequence of numbers: the test is the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn mutated_graph_defs_give_errors_or_graphs() -> Result<()> {
    let bytes = sample()?;
    let whole = Graph::new()?;
    whole.import(&bytes, &ImportOptions::default())?;
    walk(&whole);
    let rounds = std::env::var("TFP_FUZZ_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(300);
    let mut random = Random(1);
    let mut refusals = 0;
    for _ in 0..rounds {
        let mut mutated = bytes.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(mutated.len());
            match random.below(4) {
                0 => mutated[at] = random.below(256) as u8,
                1 => mutated[at] ^= 1 << random.below(8),
                2 => mutated.truncate(at.max(1)),
                _ => drop(mutated.splice(at..at, [random.below(256) as u8; 2])),
            }
        }
        let graph = Graph::new()?;
        match graph.import(&mutated, &ImportOptions::default()) {
            Ok(_) => walk(&graph),
            Err(_) => {
                refusals += 1;
                assert_eq!(
                    graph.operations().count(),
                    0,
                    "a failed import leaves nothing behind"
                );
            }
        }
    }
    assert!(refusals > rounds / 4, "{refusals} of {rounds} were refused");
    Ok(())
}

#[test]
fn cut_graph_defs_give_errors_or_graphs() -> Result<()> {
    let bytes = sample()?;
    for length in (0..bytes.len()).step_by(7) {
        let graph = Graph::new()?;
        if graph
            .import(&bytes[..length], &ImportOptions::default())
            .is_ok()
        {
            walk(&graph);
        }
    }
    Ok(())
}

#[test]
fn names_and_ops_that_do_not_exist_are_named() -> Result<()> {
    let graph = Graph::new()?;
    refused(graph.operation("nothing"), &["nothing", "empty"]);
    let x = graph
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::unknown())?;
    refused(graph.operation("nothing"), &["nothing", "which has x"]);
    refused(graph.output("x:1"), &["output '1'", "which has 1"]);
    refused(graph.output("x:y"), &["x:y"]);
    refused(graph.operation("a\0b"), &["NUL"]);
    refused(OpBuilder::<Output>::new("NoSuchOp"), &["NoSuchOp"]);
    let builder = OpBuilder::<Output>::new("Cast")?.input(&x);
    refused(
        builder.attr("SrcT", DataType::FLOAT),
        &["'SrcT'", "Cast", "DstT, Truncate"],
    );
    refused(
        OpBuilder::new("Cast")?.input(&x).one(&graph),
        &["Cast", "DstT", "required"],
    );
    refused(
        OpBuilder::new("AddV2")?.input(&x).one(&graph),
        &["AddV2 takes 2 inputs, 1"],
    );
    let other = Graph::new()?;
    let y = other
        .scope()
        .placeholder("y", DataType::FLOAT, &Shape::unknown())?;
    refused(add(&graph, &x, &y), &["'y'", "another graph"]);
    refused(
        graph.scope().after(&[y.operation().clone()]),
        &["another graph"],
    );
    refused(
        graph.scope().colocated_with(&[y.operation().clone()]),
        &["another graph"],
    );
    refused(graph.shape(&y), &["another graph"]);
    let huge = OpBuilder::new("Split")?
        .input(0)
        .input(&x)
        .attr("num_split", i64::MAX)?;
    refused(huge.execute(&graph), &["Split"]);
    refused(
        load_op_library("/no/such/library.so"),
        &["/no/such/library.so"],
    );
    refused(
        load_pluggable_device("/no/such/library.so"),
        &["/no/such/library.so"],
    );
    // A file that is no library.
    let text = std::env::temp_dir().join(format!("tfp_core_{}.txt", std::process::id()));
    std::fs::write(&text, "no library").map_err(|error| Error::argument(error.to_string()))?;
    let loaded = load_op_library(&text);
    std::fs::remove_file(&text).map_err(|error| Error::argument(error.to_string()))?;
    refused(loaded, &["NotFound"]);
    Ok(())
}

fn queue<C: Context>(context: &C, shape: &Shape) -> Result<C::Value> {
    let (types, shapes) = ([DataType::FLOAT], [shape.clone()]);
    OpBuilder::new("FIFOQueueV2")?
        .attr("component_types", &types[..])?
        .attr("shapes", &shapes[..])?
        .one(context)
}

#[test]
fn shapes_that_tensorflow_cannot_hold_are_refused() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let eager = EagerContext::new()?;
    let cases = [
        (Shape::from([i64::MAX, i64::MAX]), "63 bits"),
        (Shape::from([i64::MAX, 2, -1]), "63 bits"),
        (Shape::new(&[1; 255]), "255 dimensions"),
    ];
    for (shape, said) in cases {
        let placeholder = scope.placeholder("x", DataType::FLOAT, &shape);
        refused(placeholder, &["Placeholder", "'shape'", said]);
        refused(queue(&graph, &shape), &["FIFOQueueV2", "'shapes'", said]);
        refused(queue(&eager, &shape), &["FIFOQueueV2", "'shapes'", said]);
    }
    for shape in [
        Shape::new(&[1; 254]),
        Shape::from([0, i64::MAX, i64::MAX]),
        Shape::from([-1, i64::MAX, i64::MAX]),
    ] {
        let x = scope.placeholder("x", DataType::FLOAT, &shape)?;
        assert_eq!(x.shape()?, shape);
        queue(&graph, &shape)?;
    }
    Ok(())
}

#[test]
fn the_library_says_what_it_has() -> Result<()> {
    assert!(version()?.starts_with("2."));
    assert!(all_ops()?.len() > 100_000);
    assert!(kernels(Some("AddV2"))?.len() < kernels(None)?.len());
    Ok(())
}
