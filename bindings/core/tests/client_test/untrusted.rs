//! Graphs and functions for which TensorFlow would end the process, or never come back, are refused.

use tfp_core::wire::{Writer, shape_proto};
use tfp_core::*;

use crate::support::refused;

/// An attribute of a node.
fn attr(node: &mut Writer, name: &str, value: impl FnOnce(&mut Writer)) {
    node.message(5, |entry| {
        entry.bytes(1, name.as_bytes());
        entry.message(2, value);
    });
}

fn types(node: &mut Writer, name: &str) {
    attr(node, name, |value| value.message(1, |list| list.int(6, 1)));
}

/// A function of a float that calls others, one after the other.
fn function(name: &str, called: &[&str]) -> Vec<u8> {
    let mut out = Writer::new();
    out.message(1, |signature| {
        signature.bytes(1, name.as_bytes());
        for (number, name) in [(2, &b"x"[..]), (3, b"y")] {
            signature.message(number, |argument| {
                argument.bytes(1, name);
                argument.int(3, 1);
            });
        }
    });
    let mut last = "x".to_owned();
    for callee in called {
        out.message(3, |node| {
            node.bytes(1, callee.as_bytes());
            node.bytes(2, b"StatefulPartitionedCall");
            node.bytes(3, last.as_bytes());
            attr(node, "f", |value| {
                value.message(10, |f| f.bytes(1, callee.as_bytes()))
            });
            types(node, "Tin");
            types(node, "Tout");
        });
        last = format!("{callee}:output:0");
    }
    out.message(4, |entry| {
        entry.bytes(1, b"y");
        entry.bytes(2, last.as_bytes());
    });
    out.into_bytes()
}

fn graph(functions: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Writer::new();
    out.message(2, |library| {
        functions
            .iter()
            .for_each(|function| library.bytes(1, function))
    });
    out.into_bytes()
}

#[test]
fn functions_that_call_each_other_in_a_circle() -> Result<()> {
    let circle = [
        function("one", &["two"]),
        function("two", &["leaf", "three"]),
        function("leaf", &[]),
        function("three", &["one"]),
    ];
    let says = ["in a circle"];
    refused(
        Graph::new()?.import(&graph(&circle), &ImportOptions::default()),
        &says,
    );
    refused(check_graph_def(&graph(&[function("own", &["own"])])), &says);
    // Without the one that closes it, it is none.
    check_graph_def(&graph(&circle[..3]))?;
    let ctx = EagerContext::new()?;
    for function in &circle[..3] {
        ctx.add_function_def(function)?;
    }
    refused(ctx.add_function_def(&circle[3]), &says);
    refused(ctx.add_function_def(&function("own", &["own"])), &says);
    ctx.add_function_def(&function("three", &["leaf"]))?;
    let values = OpBuilder::new("PartitionedCall")?
        .list([1.5_f32])
        .attr("Tout", &[DataType::FLOAT][..])?
        .attr("f", FuncRef::from("one"))?
        .execute(&ctx)?
        .list()?;
    assert_eq!(values[0].to_tensor()?.to_scalar::<f32>()?, 1.5);
    Ok(())
}

#[test]
fn many_functions_are_checked_in_a_moment() -> Result<()> {
    let names: Vec<String> = (0..20_000).map(|at| format!("f{at}")).collect();
    let functions: Vec<Vec<u8>> = (0..names.len())
        .map(|at| match names.get(at + 1) {
            Some(next) => function(&names[at], &[next, next]),
            None => function(&names[at], &[]),
        })
        .collect();
    check_graph_def(&graph(&functions))
}

#[test]
fn operations_of_functions_without_an_attribute() -> Result<()> {
    let whole = function("f", &["g"]);
    let found = whole
        .windows(4)
        .position(|bytes| bytes == b"Tout")
        .expect("an attribute");
    let mut damaged = whole.clone();
    damaged[found] = b'S';
    let says = ["operation 'g' of function 'f'", "'Tout'"];
    refused(Function::from_function_def(&damaged), &says);
    refused(EagerContext::new()?.add_function_def(&damaged), &says);
    let import = Graph::new()?.import(&graph(&[damaged]), &ImportOptions::default());
    refused(import, &says);
    Function::from_function_def(&whole).map(drop)
}

/// A graph with one constant, whose elements are one number that is repeated.
fn constant(dtype: DataType, dims: &[i64]) -> Vec<u8> {
    let mut out = Writer::new();
    out.message(1, |node| {
        node.bytes(1, b"c");
        node.bytes(2, b"Const");
        attr(node, "dtype", |value| value.int(6, dtype.number().into()));
        attr(node, "value", |value| {
            value.message(8, |tensor| {
                tensor.int(1, dtype.number().into());
                tensor.bytes(2, &shape_proto(&Shape::new(dims)));
                tensor.int(7, 0);
            });
        });
    });
    out.into_bytes()
}

#[test]
fn constants_of_impossible_sizes() -> Result<()> {
    let import = |bytes: &[u8]| Graph::new()?.import(bytes, &ImportOptions::default());
    for (dtype, dims) in [
        (DataType::INT32, &[i64::MAX][..]),
        (DataType::INT64, &[1 << 25]),
        (DataType::FLOAT, &[1 << 20, 1 << 20]),
        (DataType::FLOAT, &[i64::MAX, i64::MAX]),
        (DataType::INT32, &[-1]),
    ] {
        let says = ["attribute 'value' of operation 'c' of the graph"];
        refused(import(&constant(dtype, dims)), &says);
    }
    import(&constant(DataType::INT32, &[1 << 20]))?;
    import(&constant(DataType::INT32, &[1 << 12, 1 << 12])).map(drop)
}
