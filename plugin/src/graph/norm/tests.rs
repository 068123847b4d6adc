use super::*;
use crate::graph::fuse::fused_type;
use crate::graph::view::trial::{self, shown};
use tfp_bindings::proto::attr::AttrList;

fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
    let mut node = trial::node(name, op, inputs);
    if op == "Conv2D" {
        node.set_attr("padding", &Attr::String(b"SAME".to_vec()));
        node.set_attr("data_format", &Attr::String(b"NHWC".to_vec()));
        for list in ["strides", "dilations", "explicit_paddings"] {
            node.set_attr(list, &Attr::List(AttrList::default()));
        }
    }
    node
}

fn block() -> Vec<NodeDef> {
    vec![
        node("c", "Conv2D", &["image", "filter", "^first"]),
        node("m", "Mul", &["c", "scale"]),
        node("s", "AddV2", &["m", "shift"]),
        node("r", "Relu", &["s"]),
        node("out", "Identity", &["r"]),
    ]
}

fn rewritten(nodes: Vec<NodeDef>, side: i64, preserved: &[&str]) -> Vec<String> {
    let mut graph = GraphDef {
        nodes,
        other: Vec::new(),
    };
    let preserved = preserved.iter().map(|&name| name.to_owned()).collect();
    rewrite(&mut graph, "TFP", &preserved, &|input| match input {
        "c" | "x" | "m" | "wide" => Some(vec![-1, side, side, 8]),
        "filter" => Some(vec![3, 3, 4, 8]),
        "scale" | "shift" => Some(vec![8]),
        "row" => Some(vec![1, 1, 8]),
        "column" => Some(vec![8, 1]),
        _ => None,
    });
    graph.nodes.iter().map(shown).collect()
}

#[test]
fn a_norm_goes_into_the_weights_of_a_large_image() {
    assert_eq!(
        rewritten(block(), 20, &[]),
        [
            "r = TfpFusedConv2D(image c/tfp/Mul shift ^first)",
            "out = Identity(r)",
            "c/tfp/Mul = Mul(filter scale)",
        ]
    );
    let mut biased = block();
    biased[0].op = "TfpFusedConv2D".into();
    biased[0].inputs.insert(2, "bias".into());
    biased[0].set_attr("activation", &Attr::String(Vec::new()));
    assert_eq!(
        rewritten(biased, 20, &[])[0],
        "r = TfpFusedConv2D(image c/tfp/Mul c/tfp/AddV2 ^first)"
    );
}

/// A block of a model of mixed precision.
fn mixed() -> Vec<NodeDef> {
    let half = DataType::BFLOAT16;
    let cast = |name, input, types: [DataType; 2]| {
        let mut node = node(name, "Cast", &[input]);
        node.set_attr("SrcT", &Attr::Type(types[0]));
        node.set_attr("DstT", &Attr::Type(types[1]));
        node
    };
    let mut nodes = block();
    for place in [0, 3] {
        nodes[place].set_attr("T", &Attr::Type(half));
    }
    nodes[1].inputs[0] = "wide".into();
    nodes[3].inputs[0] = "narrow".into();
    nodes.insert(1, cast("wide", "c", [half, DataType::FLOAT]));
    nodes.insert(4, cast("narrow", "s", [DataType::FLOAT, half]));
    nodes
}

#[test]
fn casts_around_a_norm_go_with_it() {
    assert_eq!(
        rewritten(mixed(), 20, &[]),
        [
            "r = TfpFusedConv2D(image c/tfp/Mul shift ^first)",
            "out = Identity(r)",
            "c/tfp/Cast = Cast(filter)",
            "c/tfp/Mul = Mul(c/tfp/Cast scale)",
        ]
    );
    assert_eq!(
        rewritten(mixed(), 2, &[]),
        [
            "c = Conv2D(image filter ^first)",
            "r = TfpScaleShift(c scale shift)",
            "out = Identity(r)",
        ]
    );
    let mut graph = GraphDef {
        nodes: mixed(),
        other: Vec::new(),
    };
    rewrite(&mut graph, "TFP", &HashSet::new(), &|input| match input {
        "wide" => Some(vec![2, 2, 2, 8]),
        _ => Some(vec![8]),
    });
    let types = ["T", "U"].map(|name| fused_type(&graph.nodes[1], name).unwrap());
    assert_eq!(types, [DataType::BFLOAT16, DataType::FLOAT]);
    // The wide value has other users: only its product goes.
    let mut shared = mixed();
    shared.push(node("other", "Identity", &["wide"]));
    let found = rewritten(shared, 20, &[]);
    assert_eq!(found[1], "wide = Cast(c)");
    assert_eq!(found[2], "r = TfpScaleShift(c scale shift)");
}

#[test]
fn a_norm_without_both_casts_stays_in_float32() {
    let apart = "s = TfpScaleShift(wide scale shift)";
    assert_eq!(rewritten(mixed(), 20, &["s"])[2], apart);
    let changes: [fn(&mut Vec<NodeDef>); 4] = [
        |nodes| nodes[4].set_attr("DstT", &Attr::Type(DataType::HALF)),
        |nodes| nodes[4].set_attr("Truncate", &Attr::Bool(true)),
        |nodes| nodes[4].device = "/device:CPU:0".into(),
        |nodes| nodes.push(node("other", "Identity", &["s"])),
    ];
    for change in changes {
        let mut nodes = mixed();
        change(&mut nodes);
        assert_eq!(rewritten(nodes, 20, &[])[2], apart);
    }
}

#[test]
fn a_norm_of_16_bit_floats_is_folded_in_float32() {
    let mut half = block();
    for node in &mut half[..4] {
        node.set_attr("T", &Attr::Type(DataType::HALF));
    }
    let found = rewritten(half, 20, &[]);
    assert_eq!(
        found[0],
        "r = TfpFusedConv2D(image c/tfp/Mul c/tfp/Cast_2 ^first)"
    );
    assert_eq!(found[5], "c/tfp/Mul = Mul(c/tfp/Cast c/tfp/Cast_1)");
}

#[test]
fn a_norm_of_a_small_or_shared_image_is_one_op() {
    let expected = "r = TfpScaleShift(c scale shift)";
    assert_eq!(rewritten(block(), 2, &[])[1], expected);
    assert_eq!(rewritten(block(), 20, &["c"])[1], expected);
    let mut shared = block();
    shared.push(node("other", "Identity", &["c"]));
    assert_eq!(rewritten(shared, 20, &[])[1], expected);
    let swapped = vec![
        node("m", "Mul", &["scale", "x"]),
        node("s", "AddV2", &["shift", "m"]),
    ];
    assert_eq!(
        rewritten(swapped, 20, &[]),
        ["s = TfpScaleShift(x scale shift)"]
    );
}

#[test]
fn a_shift_after_a_residual_comes_first() {
    let nodes = |sum: &str| {
        vec![
            node("c", "Conv2D", &["image", "filter"]),
            node("m", "Mul", &["c", "scale"]),
            node("n", sum, &["x", "m", "^first"]),
            node("s", "AddV2", &["n", "shift", "^second"]),
        ]
    };
    for sum in ["AddN", "AddV2"] {
        assert_eq!(
            rewritten(nodes(sum), 20, &[])[..2],
            [
                "n = TfpFusedConv2D(image c/tfp/Mul shift ^first)".to_owned(),
                format!("s = {sum}(n x ^second)"),
            ]
        );
        assert!(rewritten(nodes(sum), 20, &["n"]).contains(&format!("n = {sum}(x m ^first)")));
    }
    let mut column = nodes("AddN");
    column[3].inputs[1] = "column".into();
    assert_eq!(rewritten(column, 20, &[])[2], "n = AddN(x m ^first)");
}

#[test]
fn what_is_seen_or_not_by_channel_stays() {
    assert_eq!(rewritten(block(), 20, &["m"]).len(), 5);
    assert_eq!(
        rewritten(block(), 20, &["s"])[..2],
        [
            "s = TfpFusedConv2D(image c/tfp/Mul shift ^first)",
            "r = Relu(s)"
        ]
    );
    let mut row = block();
    row[1].inputs[1] = "row".into();
    assert_eq!(rewritten(row, 20, &[]).len(), 3);
    let mut column = block();
    column[1].inputs[1] = "column".into();
    assert_eq!(rewritten(column, 20, &[]).len(), 5);
    let mut unknown = block();
    unknown[2].inputs[1] = "unknown".into();
    assert_eq!(rewritten(unknown, 20, &[]).len(), 5);
    let mut double = block();
    double[2].set_attr("T", &Attr::Type(DataType::DOUBLE));
    assert_eq!(rewritten(double, 20, &[]).len(), 5);
}
