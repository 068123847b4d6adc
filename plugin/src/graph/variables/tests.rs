use super::*;
use crate::graph::view::trial::shown;

const DEVICE: &str = "/job:localhost/replica:0/task:0/device:TFP:0";

fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
    NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|&i| i.to_owned()).collect(),
        device: DEVICE.into(),
        ..NodeDef::default()
    }
}

fn replaced(node: NodeDef) -> Vec<String> {
    replaced_with(node, true)
}

fn replaced_with(node: NodeDef, own_ops: bool) -> Vec<String> {
    replaced_as(node, own_ops, false)
}

fn replaced_as(node: NodeDef, own_ops: bool, one_node: bool) -> Vec<String> {
    let mut graph = GraphDef {
        nodes: vec![node],
        other: Vec::new(),
    };
    let means = Means { own_ops, one_node };
    replace(&mut graph, "TFP", means, &|input| known_shape(input));
    graph.nodes.iter().map(shown).collect()
}

/// Numbers have long names, the matrices of a step have short ones, and `?` is unknown.
fn known_shape(input: &str) -> Option<Vec<i64>> {
    match input {
        "?" => None,
        "lr" | "m" | "lr:0" => Some(vec![]),
        _ => Some(vec![4, 2]),
    }
}

fn gather(data_type: DataType) -> NodeDef {
    let mut gather = node("g", "ResourceGather", &["v", "i:1", "^before"]);
    gather.set_attr("dtype", &Attr::Type(data_type));
    gather.set_attr("Tindices", &Attr::Type(DataType::INT32));
    gather.set_attr("batch_dims", &Attr::Int(0));
    gather
}

#[test]
fn the_output_keeps_its_name_and_the_read_its_order() {
    assert_eq!(
        replaced(gather(DataType::FLOAT)),
        [
            "g/tfp/ReadVariableOp = ReadVariableOp(v ^before)",
            "g/tfp/Const = Const(^v)",
            "g = GatherV2(g/tfp/ReadVariableOp i:1 g/tfp/Const)",
        ]
    );
}

#[test]
fn the_last_assignment_keeps_the_name_and_waits_for_the_others() {
    let inputs = ["var:0", "a", "lr", "grad", "m", "^x"];
    let mut update = node("u", "ResourceApplyMomentum", &inputs);
    update.set_attr("T", &Attr::Type(DataType::FLOAT));
    update.set_attr("use_nesterov", &Attr::Bool(false));
    let lines = replaced(update);
    assert_eq!(
        lines.last().unwrap(),
        "u = AssignSubVariableOp(var:0 u/tfp/Mul_1 ^x ^u/tfp/AssignVariableOp)"
    );
    assert!(
        lines.contains(
            &"u/tfp/AssignVariableOp = AssignVariableOp(a u/tfp/AddV2 ^x ^u/tfp/ReadVariableOp)"
                .to_owned()
        )
    );
}

#[test]
fn a_change_waits_for_the_reads_of_its_variable() {
    let mut update = node("u", "ResourceApplyAdagrad", &["v", "a", "lr", "grad"]);
    update.set_attr("T", &Attr::Type(DataType::FLOAT));
    update.set_attr("update_slots", &Attr::Bool(true));
    let lines = replaced(update);
    let read = lines
        .iter()
        .position(|line| line.contains("ReadVariableOp(a)"));
    let name = lines[read.expect("a read")].split(' ').next().unwrap();
    let changes = |line: &&String| line.contains("AssignAddVariableOp(a ");
    let change = lines.iter().find(changes).expect("a change");
    assert!(change.ends_with(&format!(" ^{name})")), "{lines:?}");
}

#[test]
fn a_step_of_unknown_shapes_is_checked_before_it_changes_anything() {
    let mut update = node(
        "u",
        "ResourceApplyMomentum",
        &["v", "a", "lr", "?", "m", "^x"],
    );
    update.set_attr("T", &Attr::Type(DataType::FLOAT));
    update.set_attr("use_nesterov", &Attr::Bool(false));
    let lines = replaced(update.clone());
    let found: Vec<_> = lines
        .iter()
        .filter(|l| l.contains(" = TfpStepFits"))
        .collect();
    let expected = "u/tfp/TfpStepFits = TfpStepFits(u/tfp/VariableShape u/tfp/VariableShape_1 \
                    lr ? m)";
    assert_eq!(found, [expected]);
    assert_eq!(lines[0], "u/tfp/VariableShape = VariableShape(v ^x)");
    for change in lines.iter().filter(|line| line.contains(" = Assign")) {
        assert!(change.contains("^u/tfp/TfpStepFits"), "{change}");
    }
    assert_eq!(replaced_as(update, false, false).len(), 1);
}

#[test]
fn a_step_of_shapes_that_do_not_fit_is_checked() {
    for (alpha, delta, checks) in [("lr", "g", 0), ("g", "g", 1), ("lr", "m", 1)] {
        let mut step = node("s", "ResourceApplyGradientDescent", &["v", alpha, delta]);
        step.set_attr("T", &Attr::Type(DataType::FLOAT));
        let lines = replaced(step);
        let found = lines.iter().filter(|l| l.contains("= TfpStepFits"));
        assert_eq!(found.count(), checks, "{alpha} {delta}");
    }
}

#[test]
fn variables_have_the_shapes_that_they_are_declared_with() {
    let mut made = node("v", "VarHandleOp", &[]);
    made.set_attr("shape", &Attr::Shape(Some(vec![3, -1])));
    let mut given = node("a", "_Arg", &[]);
    let shapes = vec![Some(vec![2])];
    given.set_attr(
        "_handle_shapes",
        &Attr::List(AttrList {
            shapes,
            ..AttrList::default()
        }),
    );
    let graph = GraphDef {
        nodes: vec![made, given, node("x", "Relu", &["a"])],
        other: Vec::new(),
    };
    let found = variable_shapes(&graph);
    assert_eq!(found.len(), 2);
    assert_eq!((&found["v"], &found["a"]), (&vec![3, -1], &vec![2]));
}

#[test]
fn slices_of_booleans_are_assigned_as_several_nodes() {
    let inputs = ["v", "begin", "end", "strides", "value"];
    let mut assign = node("s", "ResourceStridedSliceAssign", &inputs);
    for (name, data_type) in [("T", DataType::BOOL), ("Index", DataType::INT32)] {
        assign.set_attr(name, &Attr::Type(data_type));
    }
    for name in [
        "begin_mask",
        "end_mask",
        "ellipsis_mask",
        "new_axis_mask",
        "shrink_axis_mask",
    ] {
        assign.set_attr(name, &Attr::Int(0));
    }
    assert!(replaced_as(assign.clone(), true, true).len() > 1);
    assign.set_attr("T", &Attr::Type(DataType::FLOAT));
    assert_eq!(replaced_as(assign, true, true).len(), 1);
}

#[test]
fn a_sum_is_one_step_as_several_nodes_and_a_lock_is_not() {
    let mut scatter = gather(DataType::FLOAT);
    scatter.op = "ResourceScatterAdd".into();
    scatter.inputs.insert(2, "u".into());
    let lines = replaced_as(scatter, true, true);
    assert_eq!(
        lines.last().unwrap(),
        "g = AssignAddVariableOp(v g/tfp/TfpScatter ^before ^g/tfp/ReadVariableOp)"
    );
    let mut step = node("s", "ResourceApplyGradientDescent", &["v", "lr", "g"]);
    step.set_attr("T", &Attr::Type(DataType::FLOAT));
    assert_eq!(replaced_as(step.clone(), true, true).len(), 2);
    step.set_attr("use_locking", &Attr::Bool(true));
    assert_eq!(replaced_as(step.clone(), true, true).len(), 1);
    assert_eq!(replaced_as(step, true, false).len(), 2);
}

#[test]
fn what_has_no_kernel_stays() {
    let strings = replaced(gather(DataType::STRING));
    assert_eq!(strings, ["g = ResourceGather(v i:1 ^before)"]);
    let mut scatter = gather(DataType::FLOAT);
    scatter.op = "ResourceScatterMax".into();
    scatter.inputs.insert(2, "u".into());
    assert_eq!(replaced_with(scatter.clone(), true).len(), 3);
    assert_eq!(replaced_as(scatter.clone(), true, true).len(), 1);
    assert_eq!(replaced_with(scatter, false).len(), 1);
    let mut elsewhere = gather(DataType::FLOAT);
    elsewhere.device = "/device:CPU:0".into();
    assert_eq!(replaced(elsewhere).len(), 1);
    assert_eq!(replaced(node("g", "ResourceGather", &["v"])).len(), 1);
}
