use super::*;
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::shape::MAX_RANK;
use tfp_kernels::ops::elementwise::expression::{operation, step_of};

use crate::graph::view::attr;
use crate::graph::view::trial::{node, shown};

/// The step of Adam: `m * alpha / (sqrt(v) + epsilon)`, where `alpha` is `lr * rate`.
fn adam() -> Vec<NodeDef> {
    vec![
        node("alpha", "Mul", &["lr", "rate"]),
        node("root", "Sqrt", &["v", "^first"]),
        node("below", "AddV2", &["root", "epsilon"]),
        node("above", "Mul", &["m", "alpha"]),
        node("step", "RealDiv", &["above", "below", "^second"]),
        node("update", "AssignSubVariableOp", &["var", "step"]),
    ]
}

fn rewritten(nodes: Vec<NodeDef>, preserved: &[&str]) -> Vec<String> {
    let mut graph = GraphDef {
        nodes,
        other: Vec::new(),
    };
    let preserved = preserved.iter().map(|&name| name.to_owned()).collect();
    rewrite(&mut graph, "TFP", &preserved, &|input| match input {
        "lr" | "rate" | "alpha" | "epsilon" => Some(vec![]),
        "row" | "row_sum" => Some(vec![8]),
        "column" => Some(vec![-2, 1]),
        "unknown" => Some(vec![-1, 8]),
        "update" | "var" => None,
        "deep" | "deeper" => Some(vec![2; MAX_RANK + 1]),
        _ => Some(vec![-2, 8]),
    });
    let show = |n: &NodeDef| {
        let steps = match attr(n, "program") {
            Some(Attr::List(list)) => format!(" in {}", list.ints.len() / 3),
            _ => String::new(),
        };
        format!("{}{steps}", shown(n))
    };
    graph.nodes.iter().map(show).collect()
}

#[test]
fn a_step_of_an_optimizer_becomes_one_node() {
    assert_eq!(
        rewritten(adam(), &[]),
        [
            "step = TfpExpression(m epsilon lr rate v ^first ^second) in 5",
            "update = AssignSubVariableOp(var step)",
        ]
    );
}

/// `cast(tanh(cast(x) * row))`, of which `x` and the result are bfloat16.
fn mixed() -> Vec<NodeDef> {
    let cast = |name: &str, input: &str, types: [DataType; 2]| {
        let mut node = node(name, "Cast", &[input]);
        node.attrs.clear();
        node.set_attr("SrcT", &Attr::Type(types[0]));
        node.set_attr("DstT", &Attr::Type(types[1]));
        node
    };
    let (wide, half) = (DataType::FLOAT, DataType::BFLOAT16);
    let mut end = node("end", "Relu", &["narrow"]);
    end.set_attr("T", &Attr::Type(half));
    vec![
        cast("wide", "x", [half, wide]),
        node("product", "Mul", &["wide", "row"]),
        node("root", "Tanh", &["product"]),
        cast("narrow", "root", [wide, half]),
        end,
    ]
}

#[test]
fn casts_between_floats_take_part() {
    // A cast to float32 is no step: the value is what it was.
    assert_eq!(rewritten(mixed(), &[]), ["end = TfpExpression(row x) in 4"]);
    let mut graph = GraphDef {
        nodes: mixed(),
        other: Vec::new(),
    };
    rewrite(&mut graph, "TFP", &HashSet::new(), &|_| Some(vec![2, 8]));
    let made = &graph.nodes[0];
    assert_eq!(attr(made, "T"), Some(Attr::Type(DataType::BFLOAT16)));
    let types = AttrList {
        types: vec![DataType::FLOAT, DataType::BFLOAT16],
        ..AttrList::default()
    };
    assert_eq!(attr(made, "Tin"), Some(Attr::List(types)));
    let Some(Attr::List(program)) = attr(made, "program") else {
        panic!("no program");
    };
    let number = |op: &str, dtype| step_of(operation(op).unwrap().0, dtype).unwrap();
    let steps: Vec<i64> = program.ints.iter().copied().step_by(3).collect();
    assert_eq!(
        steps,
        [
            number("Mul", DType::F32),
            number("Tanh", DType::F32),
            number("Cast", DType::BF16),
            number("Relu", DType::BF16),
        ]
    );
    // As the last one, and seen by others, it is a step.
    assert_eq!(
        rewritten(mixed(), &["narrow"]),
        ["narrow = TfpExpression(row x) in 3", "end = Relu(narrow)"]
    );
    let mut twice = mixed();
    twice.truncate(4);
    twice[3].set_attr("DstT", &Attr::Type(DataType::FLOAT));
    assert_eq!(
        rewritten(twice, &[])[0],
        "narrow = TfpExpression(row x) in 3"
    );
    let mut cut = mixed();
    cut[3].set_attr("Truncate", &Attr::Bool(true));
    assert_eq!(rewritten(cut, &[]).len(), 3);
    let mut whole = mixed();
    whole[0].set_attr("SrcT", &Attr::Type(DataType::INT32));
    assert!(rewritten(whole, &[]).contains(&"wide = Cast(x)".to_owned()));
}

#[test]
fn what_others_see_stays() {
    let found = rewritten(adam(), &["below"]);
    assert!(found.contains(&"below = TfpExpression(epsilon v ^first) in 2".to_owned()));
    assert!(found.contains(&"step = TfpExpression(below m lr rate ^second) in 3".to_owned()));
    let mut twice = adam();
    twice.push(node("other", "Identity", &["alpha"]));
    assert!(rewritten(twice, &[]).contains(&"alpha = Mul(lr rate)".to_owned()));
    let mut waited = adam();
    waited.push(node("other", "NoOp", &["^root"]));
    assert!(rewritten(waited, &[]).contains(&"root = Sqrt(v ^first)".to_owned()));
    // Both of its users are inside: a value may be used twice.
    let mut square = adam();
    square.push(node("square", "Mul", &["step", "step"]));
    square[5].inputs[1] = "square".into();
    assert_eq!(rewritten(square, &[]).len(), 2);
}

#[test]
fn rows_take_part_and_other_shapes_do_not() {
    let chain = |operand: &str| {
        vec![
            node("row_sum", "AddV2", &["row", "row"]),
            node("a", "Mul", &["x", "row_sum"]),
            node("b", "Sub", &["a", operand]),
        ]
    };
    assert_eq!(
        rewritten(chain("row"), &[]),
        ["b = TfpExpression(row x) in 3"]
    );
    for operand in ["column", "unknown", "var"] {
        let found = rewritten(chain(operand), &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a = TfpExpression(x row) in 2"));
    }
}

#[test]
fn more_axes_than_the_kernels_serve_stay_apart() {
    let nodes = vec![
        node("deep", "Relu", &["x"]),
        node("deeper", "Relu", &["deep"]),
    ];
    assert_eq!(rewritten(nodes, &[]).len(), 2);
}

#[test]
fn what_differs_in_type_or_device_stays() {
    let mut other = adam();
    other
        .iter_mut()
        .for_each(|n| n.device = "/device:CPU:0".into());
    assert_eq!(rewritten(other, &[]).len(), 6);
    let mut other = adam();
    other[1].device = "/device:TFP:1".into();
    assert!(rewritten(other, &[]).contains(&"root = Sqrt(v ^first)".to_owned()));
    let mut other = adam();
    other[3].set_attr("T", &Attr::Type(DataType::DOUBLE));
    assert_eq!(rewritten(other, &[]).len(), 4);
}

#[test]
fn what_is_assigned_to_variables_comes_out_too() {
    let mut step = adam();
    step.push(node("set", ASSIGN, &["slot", "root", "^start"]));
    step.push(node("set_2", ASSIGN, &["slot_2", "above"]));
    let end = "end = NoOp(^set ^update)".to_owned();
    step.push(node("end", "NoOp", &["^set", "^update"]));
    assert_eq!(
        rewritten(step.clone(), &[]),
        [
            "step = TfpExpression(m epsilon lr rate v ^first ^second) in 5",
            "update = AssignSubVariableOp(var step)",
            "set = AssignVariableOp(slot step:2 ^start)",
            "set_2 = AssignVariableOp(slot_2 step:1)",
            &end,
        ]
    );
    // What comes after an assignment may be needed before the value that is assigned.
    step[4].inputs.push("^set".into());
    let found = rewritten(step.clone(), &[]);
    assert!(
        found.contains(&"root = Sqrt(v ^first)".to_owned()),
        "{found:?}"
    );
    step[4].inputs.pop();
    step[8] = node("end", "Neg", &["x", "^set"]);
    let found = rewritten(step, &[]);
    assert!(
        found.contains(&"root = Sqrt(v ^first)".to_owned()),
        "{found:?}"
    );
    // A value that is used elsewhere stays, too.
    let mut step = adam();
    step.push(node("shape", "Shape", &["root"]));
    assert!(rewritten(step, &[]).contains(&"root = Sqrt(v ^first)".to_owned()));
}

#[test]
fn long_chains_are_cut_where_the_kernel_ends() {
    let mut nodes = vec![node("n0", "Neg", &["x"])];
    for i in 1..60 {
        nodes.push(node(&format!("n{i}"), "Neg", &[&format!("n{}", i - 1)]));
    }
    assert_eq!(rewritten(nodes, &[]).len(), 3);
}
