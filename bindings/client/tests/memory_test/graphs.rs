//! What TensorFlow throws where there is no memory for a part of a graph.
//!
//! Graphs and contexts are made before memory is taken: TensorFlow starts a thread for each, and ends the
//! process where it can't.

use tfp::wire::Writer;
use tfp::{Code, Context, DataType, EagerContext, Graph, ImportOptions, Result, Session, Tensor};

use super::{LARGE, check, is_limited, taken};

/// A serialized `NodeDef`: a constant of so many bytes.
fn constant(bytes: usize) -> Vec<u8> {
    let mut node = Writer::new();
    node.bytes(1, b"large");
    node.bytes(2, b"Const");
    let attr = |node: &mut Writer, name: &[u8], write: &dyn Fn(&mut Writer)| {
        node.message(5, |entry| {
            entry.bytes(1, name);
            entry.message(2, |value| write(value));
        });
    };
    attr(&mut node, b"dtype", &|value| value.int(6, 4));
    attr(&mut node, b"value", &|value| {
        value.message(8, |tensor| {
            tensor.int(1, 4);
            tensor.message(2, |shape| {
                shape.message(2, |dim| dim.int(1, bytes as i64));
            });
            tensor.bytes(4, &vec![7; bytes]);
        });
    });
    node.into_bytes()
}

/// A serialized `FunctionDef`: it returns a constant of so many bytes.
fn function(name: &str, bytes: usize) -> Vec<u8> {
    let mut function = Writer::new();
    function.message(1, |signature| {
        signature.bytes(1, name.as_bytes());
        signature.message(3, |output| {
            output.bytes(1, b"y");
            output.int(3, 4);
        });
    });
    function.bytes(3, &constant(bytes));
    function.message(4, |entry| {
        entry.bytes(1, b"y");
        entry.bytes(2, b"large:output:0");
    });
    function.into_bytes()
}

/// Checks that something has no memory while it is taken, and that it succeeds with another object.
fn check_both<T, R>(objects: &[T; 2], make: impl Fn(&T) -> Result<R>) {
    let held = taken();
    let error = make(&objects[0]).map(drop).expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    drop(held);
    let made = make(&objects[1]).map(drop);
    assert!(made.is_ok(), "{made:?}");
}

#[test]
fn a_graph_that_is_imported() -> Result<()> {
    if !is_limited("graphs::a_graph_that_is_imported") {
        return Ok(());
    }
    let mut graph_def = Writer::new();
    graph_def.bytes(1, &constant(LARGE));
    let graph_def = graph_def.into_bytes();
    let graphs = [Graph::new()?, Graph::new()?];
    check_both(&graphs, |graph| {
        graph.import(&graph_def, &ImportOptions::default())
    });
    Ok(())
}

#[test]
fn a_constant_of_a_graph() -> Result<()> {
    if !is_limited("graphs::a_constant_of_a_graph") {
        return Ok(());
    }
    let tensor = Tensor::zeros(DataType::FLOAT, &[LARGE as i64 / 4])?;
    check_both(&[Graph::new()?, Graph::new()?], |graph| {
        graph.constant(&tensor)
    });
    Ok(())
}

#[test]
fn a_graph_that_is_written() -> Result<()> {
    if !is_limited("graphs::a_graph_that_is_written") {
        return Ok(());
    }
    let graph = Graph::new()?;
    let numbers = Tensor::from_slice(&vec![1.5_f32; LARGE / 4], &[LARGE as i64 / 4])?;
    graph.constant(&numbers)?;
    assert!(!graph.is_broken());
    let held = taken();
    let error = graph.to_graph_def().map(drop).expect_err("no memory");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    drop(held);
    assert!(graph.is_broken());
    // TensorFlow has left it locked: nothing waits for it, and its end does not either.
    let broken = |done: Result<()>| {
        let error = done.expect_err("a broken graph");
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    };
    broken(graph.to_graph_def().map(drop));
    broken(graph.constant(&numbers).map(drop));
    broken(graph.operation("Const").map(drop));
    broken(graph.functions().map(drop));
    broken(Session::new(&graph).map(drop));
    assert!(graph.operations().next().is_none());
    Ok(())
}

#[test]
fn a_function_of_an_eager_context() -> Result<()> {
    if !is_limited("graphs::a_function_of_an_eager_context") {
        return Ok(());
    }
    let contexts = [EagerContext::new()?, EagerContext::new()?];
    contexts[0].add_function_def(&function("small", 8))?;
    let large = function("large_function", LARGE);
    check_both(&contexts, |context| context.add_function_def(&large));
    assert!(contexts[0].is_broken() && !contexts[1].is_broken());
    Ok(())
}

#[test]
fn strings_that_are_copied() -> Result<()> {
    if !is_limited("graphs::strings_that_are_copied") {
        return Ok(());
    }
    // TensorFlow's libraries take addresses, too.
    tfp::version()?;
    let one = vec![b'a'; LARGE];
    check(|| Tensor::from_string(&one));
    drop(one);
    let many = vec![[b'a'; 64]; LARGE / 64];
    check(|| Tensor::from_strings(&many, &[many.len() as i64]));
    Ok(())
}
