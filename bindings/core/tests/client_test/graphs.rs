//! Graphs: what is added is what is there.

use tfp_core::*;

use crate::support::{add, refused};

fn floats(scope: &Scope, name: &str) -> Result<Output> {
    scope.placeholder(name, DataType::FLOAT, &Shape::from([2]))
}

#[test]
fn names_are_unique_and_scoped() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = floats(&scope, "x")?;
    assert_eq!(add(&scope, &x, &x)?.name(), "AddV2:0");
    assert_eq!(add(&scope.named("AddV2_1"), &x, &x)?.name(), "AddV2_1:0");
    assert_eq!(add(&scope, &x, &x)?.name(), "AddV2_2:0");
    assert_eq!(add(&scope, &x, &x)?.name(), "AddV2_3:0");
    let inner = scope.sub_scope("layer").sub_scope("dense");
    assert_eq!(add(&inner, &x, &x)?.name(), "layer/dense/AddV2:0");
    assert_eq!(
        add(&inner.named("sum"), &x, &x)?.name(),
        "layer/dense/sum:0"
    );
    assert_eq!(scope.sub_scope("layer").prefix(), "layer_1/");
    assert_eq!(scope.sub_scope("layer").prefix(), "layer_2/");
    refused(
        add(&scope.named("bad name"), &x, &x),
        &["AddV2", "bad name", "letter"],
    );
    refused(add(&scope.named("nul\0"), &x, &x), &["nul"]);
    refused(
        floats(&scope.sub_scope("white space"), "x"),
        &["Placeholder"],
    );
    assert_eq!(graph.operation("layer/dense/sum")?.op_type(), "AddV2");
    let names: Vec<String> = graph.operations().map(|op| op.name()).collect();
    assert_eq!(names[..2], ["x", "AddV2"]);
    Ok(())
}

#[test]
fn names_that_others_gave_are_seen() -> Result<()> {
    let body = Graph::new()?;
    for name in ["AddV2", "AddV2_2", "sum"] {
        floats(&body.scope(), name)?;
    }
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = floats(&scope, "x")?;
    graph.import(&body.to_graph_def()?, &ImportOptions::default())?;
    assert_eq!(add(&scope, &x, &x)?.name(), "AddV2_1:0");
    assert_eq!(add(&scope, &x, &x)?.name(), "AddV2_3:0");
    assert_eq!(add(&scope.named("sum"), &x, &x)?.name(), "sum_1:0");
    // Gradients are named by TensorFlow.
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = floats(&scope, "x")?;
    let y = OpBuilder::new("Mul")?.input(&x).input(&x).one(&scope)?;
    graph.add_gradients(Some("grad"), &[y], &[x.clone()], &[])?;
    let names: Vec<String> = graph.operations().map(|op| op.name()).collect();
    let theirs: Vec<&String> = names.iter().filter(|n| n.starts_with("grad")).collect();
    assert!(!theirs.is_empty());
    for name in theirs {
        let added = add(&scope.named(name), &x, &x)?.operation().name();
        assert!(
            added.starts_with(name) && !names.contains(&added),
            "{added}"
        );
    }
    Ok(())
}

#[test]
fn edges_are_seen_from_both_ends() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let (x, y) = (floats(&scope, "x")?, floats(&scope, "y")?);
    let sum = add(&scope.after(&[y.operation().clone()])?, &x, &x)?;
    let op = sum.operation();
    assert_eq!(op.inputs(), [x.clone(), x.clone()]);
    assert_eq!(op.input_count(), 2);
    let consumers = x.operation().consumers(0);
    assert_eq!(consumers, [(op.clone(), 0), (op.clone(), 1)]);
    assert_eq!(op.control_inputs(), [y.operation().clone()]);
    assert_eq!(y.operation().control_outputs(), [op.clone()]);
    assert!(x.operation().control_outputs().is_empty());
    assert!(op.consumers(7).is_empty());
    refused(op.output(1), &["output '1'", "AddV2"]);
    let split = OpBuilder::new("Split")?
        .input(0)
        .input(&x)
        .attr("num_split", 2)?
        .execute(&scope)?;
    let parts = split.all();
    let split = parts[0].operation();
    assert_eq!(split.output_list_length("output")?, 2);
    assert_eq!(split.input_list_length("value")?, 1);
    refused(split.output_list_length("nothing"), &["nothing"]);
    assert_eq!(split.outputs(), parts);
    Ok(())
}

#[test]
fn attributes_of_every_kind_are_read_back() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let image = scope.placeholder("image", DataType::FLOAT, &Shape::from([1, 8, 8, 3]))?;
    let kernel = Tensor::zeros(DataType::FLOAT, &[3, 3, 3, 4])?;
    let conv = OpBuilder::new("Conv2D")?
        .input(&image)
        .input(&kernel)
        .attr("strides", &[1_i64, 2, 2, 1][..])?
        .attr("padding", "SAME")?
        .one(&scope)?;
    assert_eq!(conv.shape()?, Shape::from([1, 4, 4, 4]));
    let op = conv.operation();
    assert!(matches!(op.attr("strides")?, Attr::IntList(list) if list == [1, 2, 2, 1]));
    assert!(matches!(op.attr("padding")?, Attr::String(text) if text == b"SAME"));
    assert!(matches!(op.attr("T")?, Attr::Type(DataType::FLOAT)));
    assert!(matches!(op.attr("use_cudnn_on_gpu")?, Attr::Bool(true)));
    assert!(matches!(op.attr("explicit_paddings")?, Attr::IntList(list) if list.is_empty()));
    assert_eq!(
        op.attr_info("strides")?,
        AttrInfo {
            kind: AttrKind::IntList,
            list_len: Some(4)
        }
    );
    assert!(op.attr_names()?.contains(&"data_format".to_owned()));
    refused(op.attr("nothing"), &["Conv2D", "nothing"]);
    let placed = image.operation();
    assert!(matches!(placed.attr("shape")?, Attr::Shape(s) if s == Shape::from([1, 8, 8, 3])));
    let constant = op.inputs()[1].operation().clone();
    assert!(matches!(constant.attr("value")?, Attr::Tensor(t) if t.dims() == [3, 3, 3, 4]));
    let feature = OpBuilder::new("Batch")?
        .list([&image])
        .attr("num_batch_threads", 1)?
        .attr("max_batch_size", 2)?
        .attr("batch_timeout_micros", 1)?
        .attr("grad_timeout_micros", 1)?
        .attr("allowed_batch_sizes", &[2_i64][..])?
        .execute(&scope)?
        .all();
    assert!(
        matches!(feature[0].operation().attr("T")?, Attr::TypeList(l) if l == [DataType::FLOAT])
    );
    let shapes = [Shape::from([2, -1]), Shape::unknown(), Shape::scalar()];
    let types = [DataType::FLOAT, DataType::STRING, DataType::INT64];
    let queue = OpBuilder::new("FIFOQueueV2")?
        .attr("component_types", &types[..])?
        .attr("shapes", &shapes[..])?
        .one(&scope)?;
    assert!(matches!(queue.operation().attr("shapes")?, Attr::ShapeList(list) if list == shapes));
    let eps = OpBuilder::new("LRN")?
        .input(&image)
        .attr("bias", 1.5_f32)?
        .one(&scope)?;
    assert!(matches!(eps.operation().attr("bias")?, Attr::Float(1.5)));
    let buckets = OpBuilder::new("Bucketize")?
        .input(&image)
        .attr("boundaries", &[0.5_f32, 1.5][..])?
        .one(&scope)?;
    let read = buckets.operation().attr("boundaries")?;
    assert!(matches!(read, Attr::FloatList(list) if list == [0.5, 1.5]));
    let split = OpBuilder::new("Split")?
        .input(0)
        .input(&image)
        .attr("num_split", 1)?
        .execute(&scope)?;
    assert!(matches!(split.operation().attr("num_split")?, Attr::Int(1)));
    let names = ["first", "second"];
    for name in names {
        let body = Graph::new()?;
        let x = floats(&body.scope(), "x")?;
        let y = add(&body, &x, 1.0)?;
        graph.add_function(&body.to_function(name, &[x], &[y], &FunctionOptions::default())?)?;
    }
    let case = OpBuilder::new("Case")?
        .input(0)
        .list([&floats(&scope, "fed")?])
        .attr("Tout", &[DataType::FLOAT][..])?
        .attr("branches", &names.map(FuncRef::named)[..])?
        .execute(&scope)?;
    let Attr::FuncList(branches) = case.operation().attr("branches")? else {
        return Err(Error::argument("'branches' is no list of functions"));
    };
    assert_eq!(
        branches.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        names
    );
    Ok(())
}

#[test]
fn devices_colocation_and_labels_are_attributes() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = floats(&scope, "x")?;
    let there = scope
        .on_device("/device:CPU:0")?
        .colocated_with(&[x.operation().clone()])?;
    let y = add(
        &there.with_kernel_label("special").with_xla_cluster("c1"),
        &x,
        &x,
    )?;
    let op = y.operation();
    assert_eq!(op.device(), "/device:CPU:0");
    assert!(matches!(op.attr("_class")?, Attr::StringList(list) if list == [b"loc:@x".to_vec()]));
    assert!(matches!(op.attr("_kernel")?, Attr::String(text) if text == b"special"));
    assert!(matches!(op.attr("_XlaCluster")?, Attr::String(text) if text == b"c1"));
    refused(scope.with_attr("T", "x"), &["underscore"]);
    Ok(())
}

#[test]
fn shapes_are_merged_and_constants_folded() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::unknown())?;
    assert_eq!(x.shape()?, Shape::unknown());
    graph.set_shape(&x, &Shape::from([-1, 3]))?;
    assert_eq!(x.shape()?, Shape::from([-1, 3]));
    refused(
        graph.set_shape(&x, &Shape::from([2, 4])),
        &["InvalidArgument"],
    );
    let two = scope.constant(&Tensor::scalar(2.0_f32)?)?;
    let four = add(&scope, &two, &two)?;
    let value = graph
        .try_evaluate(&four)?
        .ok_or_else(|| Error::argument("not constant"))?;
    assert_eq!(value.to_scalar::<f32>()?, 4.0);
    assert!(graph.try_evaluate(&x)?.is_none());
    Ok(())
}

#[test]
fn graph_defs_come_back_with_every_option() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = floats(&scope, "x")?;
    add(&scope.named("y"), &x, 1.0)?;
    let bytes = graph.to_graph_def()?;
    let other = Graph::new()?;
    let fed = floats(&other.scope(), "fed")?;
    let unused = floats(&other.scope(), "unused")?;
    let imported = other.import(
        &bytes,
        &ImportOptions {
            prefix: "in",
            default_device: "/device:CPU:0",
            input_map: &[("x", 0, fed.clone()), ("absent", 3, unused)],
            control_dependencies: &[fed.operation().clone()],
            return_outputs: &[("y", 0)],
            return_operations: &["y"],
            ..ImportOptions::default()
        },
    )?;
    let y = &imported.operations[0];
    assert_eq!(imported.outputs[0].operation(), y);
    assert_eq!(
        (y.name(), y.device()),
        ("in/y".to_owned(), "/device:CPU:0".to_owned())
    );
    assert_eq!(y.inputs()[0], fed);
    assert_eq!(imported.unused_mappings, [("absent".to_owned(), 3)]);
    let again = ImportOptions {
        prefix: "in",
        ..ImportOptions::default()
    };
    refused(other.import(&bytes, &again), &["'in/x'"]);
    let unique = ImportOptions {
        prefix: "in",
        uniquify_prefix: true,
        ..ImportOptions::default()
    };
    other.import(&bytes, &unique)?;
    other.operation("in_1/y")?;
    let plain = ImportOptions {
        uniquify_names: true,
        ..ImportOptions::default()
    };
    other.import(&bytes, &plain)?;
    other.import(&bytes, &plain)?;
    other.operation("y_1")?;
    refused(
        other.import(&bytes, &ImportOptions::default()),
        &["InvalidArgument"],
    );
    let foreign = ImportOptions {
        input_map: &[("x", 0, x)],
        ..ImportOptions::default()
    };
    refused(other.import(&bytes, &foreign), &["another graph"]);
    assert!(!other.versions()?.is_empty());
    assert!(!y.to_node_def()?.is_empty());
    Ok(())
}

#[test]
fn functions_are_made_called_and_exported() -> Result<()> {
    let body = Graph::new()?;
    let scope = body.scope();
    let (a, b) = (floats(&scope, "a")?, floats(&scope, "b")?);
    let sum = add(&scope, &a, &b)?;
    let options = FunctionOptions {
        output_names: &["total"],
        ..FunctionOptions::default()
    };
    let function = body.to_function("my_sum", &[a, b], &[sum.clone()], &options)?;
    assert_eq!(function.name(), "my_sum");
    let call = |func: FuncRef<'_>, ctx: &Scope, x: &Output| -> Result<Output> {
        let types = [DataType::FLOAT];
        Ok(OpBuilder::new("PartitionedCall")?
            .list([x, x])
            .attr("Tout", &types[..])?
            .attr("f", func)?
            .execute(ctx)?
            .all()
            .remove(0))
    };
    let graph = Graph::new()?;
    let x = floats(&graph.scope(), "x")?;
    let by_value = call((&function).into(), &graph.scope(), &x)?;
    let by_name = call("my_sum".into(), &graph.scope(), &x)?;
    let session = Session::new(&graph)?;
    let values = session.eval(
        &[(&x, &Tensor::from_array([1.0_f32, 2.0])?)],
        &[&by_value, &by_name],
    )?;
    for value in values {
        assert_eq!(value.as_slice::<f32>()?, [2.0, 4.0]);
    }
    let read = by_value.operation().attr("f")?;
    assert!(matches!(read, Attr::Func(func) if func.name == "my_sum"));
    assert_eq!(graph.functions()?.len(), 1);
    let copy = Function::from_function_def(&function.to_function_def()?)?;
    let copy = copy.with_attr("note", &AttrValue::from("hello"))?;
    assert!(!copy.attr("note")?.is_empty());
    refused(function.attr("note"), &["note"]);
    refused(
        Function::from_function_def(b"no function"),
        &["not a valid FunctionDef"],
    );
    refused(
        body.to_function("f", &[x], &[sum], &options),
        &["another graph"],
    );
    // The library travels with the graph.
    let other = Graph::new()?;
    other.import(&graph.to_graph_def()?, &ImportOptions::default())?;
    assert_eq!(other.functions()?[0].name(), "my_sum");
    Ok(())
}

#[test]
fn gradients_of_the_library_are_added() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let (x, z) = (floats(&scope, "x")?, floats(&scope, "z")?);
    let y = OpBuilder::new("Mul")?.input(&x).input(&x).one(&scope)?;
    let gradients = graph.add_gradients(Some("grad"), &[y.clone()], &[x.clone()], &[])?;
    refused(
        graph.add_gradients(None, &[y.clone()], &[z.clone()], &[]),
        &["'z'", "unreachable"],
    );
    let gradient = gradients[0]
        .as_ref()
        .ok_or_else(|| Error::argument("no gradient"))?;
    let session = Session::new(&graph)?;
    let value = session.eval(&[(&x, &Tensor::from_array([3.0_f32, 4.0])?)], &[gradient])?;
    assert_eq!(value[0].as_slice::<f32>()?, [6.0, 8.0]);
    let twice = graph.add_gradients(None, &[y.clone()], &[x.clone()], &[x.clone(), z]);
    refused(twice, &["2 gradients", "1 outputs"]);
    let rounded = OpBuilder::new("BitwiseAnd")?
        .input(&scope.placeholder("i", DataType::INT32, &Shape::scalar())?)
        .input(1)
        .one(&scope)?;
    let input = graph.output("i")?;
    refused(
        graph.add_gradients(None, &[rounded], &[input], &[]),
        &["BitwiseAnd"],
    );
    Ok(())
}

#[test]
fn placeholders_of_attributes_get_values_from_the_caller() -> Result<()> {
    let body = Graph::new()?;
    let scope = body.scope();
    let x = floats(&scope, "x")?;
    let y = OpBuilder::new("LeakyRelu")?
        .input(&x)
        .attr("alpha", AttrValue::Placeholder("slope"))?
        .one(&scope)?;
    let op = y.operation();
    assert!(matches!(op.attr("alpha")?, Attr::Placeholder(name) if name == "slope"));
    let float = AttrInfo {
        kind: AttrKind::Float,
        list_len: None,
    };
    assert_eq!(op.attr_info("alpha")?, float);
    let function = body.to_function("leaky", &[x], &[y], &FunctionOptions::default())?;
    let types = [DataType::FLOAT];
    // The same function with two values, in a graph and at once.
    let data = Tensor::from_array([-8.0_f32, 3.0])?;
    let graph = Graph::new()?;
    let scope = graph.scope();
    let fed = floats(&scope, "fed")?;
    let session = Session::new(&graph)?;
    let eager = EagerContext::new()?;
    let handle = eager.handle(&data)?;
    for slope in [0.5_f32, 0.125] {
        let attrs = [("slope", slope.into())];
        let func = FuncRef::from(&function).with_attrs(&attrs);
        let call = OpBuilder::new("PartitionedCall")?
            .list([&fed])
            .attr("Tout", &types[..])?
            .attr("f", func)?;
        let called = call.execute(&scope)?.all().remove(0);
        let found = session.eval(&[(&fed, &data)], &[&called])?;
        assert_eq!(found[0].as_slice::<f32>()?, [-8.0 * slope, 3.0]);
        let call = OpBuilder::new("PartitionedCall")?
            .list([&handle])
            .attr("Tout", &types[..])?
            .attr("f", func)?;
        let called = call.execute(&eager)?.all().remove(0).to_tensor()?;
        assert_eq!(called.as_slice::<f32>()?, [-8.0 * slope, 3.0]);
    }
    // Without a value, or of another kind.
    let wrong = [("slope", AttrValue::Int(1))];
    for func in [
        FuncRef::from(&function),
        FuncRef::from(&function).with_attrs(&wrong),
    ] {
        let call = OpBuilder::new("PartitionedCall")?
            .list([&handle])
            .attr("Tout", &types[..])?
            .attr("f", func)?;
        refused(call.execute(&eager), &["slope"]);
    }
    // Only a graph can become a function; outputs need types and numbers.
    let at_once = OpBuilder::new("LeakyRelu")?
        .input(&handle)
        .attr("alpha", AttrValue::Placeholder("slope"))?;
    let error = refused(at_once.one(&eager), &["LeakyRelu", "alpha", "slope"]);
    assert!(matches!(error.kind(), ErrorKind::Attribute { .. }));
    let split = OpBuilder::new("Split")?
        .input(0)
        .input(&fed)
        .attr("num_split", AttrValue::Placeholder("n"))?;
    refused(split.execute(&scope), &["num_split", "'output'"]);
    let cast = OpBuilder::new("Cast")?
        .input(&fed)
        .attr("DstT", AttrValue::Placeholder("T"))?;
    refused(cast.one(&scope), &["Cast", "DstT", "'y'"]);
    let nul = OpBuilder::new("LeakyRelu")?
        .input(&fed)
        .attr("alpha", AttrValue::Placeholder("a\0b"))?;
    refused(nul.one(&scope), &["NUL"]);
    Ok(())
}

#[test]
fn shapes_have_tensorflows_serialized_form() -> Result<()> {
    let graph = Graph::new()?;
    let shapes = [Shape::unknown(), Shape::scalar(), Shape::from([2, -1, 300])];
    for shape in &shapes {
        let x = graph.scope().placeholder("x", DataType::FLOAT, shape)?;
        let mut expected = vec![0x3a, shape.to_proto().len() as u8];
        expected.extend(shape.to_proto());
        assert_eq!(x.operation().attr_proto("shape")?, expected);
        assert_eq!(Shape::from_proto(&shape.to_proto())?, *shape);
    }
    refused(Shape::from_proto(&[0x12, 9, 1]), &["TensorShapeProto", "9"]);
    Ok(())
}

/// The body of a loop that doubles its second variable.
fn doubling(scope: &Scope, variables: &[Output]) -> Result<Vec<Output>> {
    let [number, x] = variables else {
        return Err(tfp_core::Error::argument("two variables"));
    };
    let one = scope.constant(&Tensor::scalar(1_i32)?)?;
    let next = OpBuilder::new("AddN")?.list([number, &one]).one(scope)?;
    let x = OpBuilder::new("AddN")?.list([x, x]).one(scope)?;
    Ok(vec![next, x])
}

fn below(limit: i32) -> impl FnOnce(&Scope, &[Output]) -> Result<Output> {
    move |scope, variables| {
        let less = OpBuilder::new("Less")?.input(&variables[0]).input(limit);
        less.one(scope)
    }
}

#[test]
fn loops_of_tensorflow_1_run_and_have_gradients() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let zero = scope.constant(&Tensor::scalar(0_i32)?)?;
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([-1]))?;
    let inputs = [zero, x.clone()];
    let last = graph.add_while("loop", &inputs, below(5), doubling)?;
    // A loop in which a variable stays as it is, of the same name.
    let again = graph.add_while(
        "loop",
        &[last[0].clone(), last[1].clone()],
        below(6),
        |scope, v| {
            let next = OpBuilder::new("AddV2")?.input(&v[0]).input(1).one(scope)?;
            Ok(vec![next, v[1].clone()])
        },
    )?;
    let types: Vec<String> = graph.operations().map(|op| op.op_type()).collect();
    for op in [
        "Enter",
        "Merge",
        "Switch",
        "NextIteration",
        "Exit",
        "LoopCond",
    ] {
        assert!(types.iter().any(|found| found == op), "{op}");
    }
    assert!(!types[2..].contains(&"Placeholder".to_owned()));
    let one = std::slice::from_ref(&x);
    let error = graph.add_gradients(None, &last[1..], one, &[]);
    refused(error, &["loop 'loop'", "no `y` depends on"]);
    let error = graph.add_gradients(None, &last, one, &[]);
    refused(error, &["loop 'loop'", "no `x` leads to"]);
    let inside = graph.operation("loop/Switch_1")?.output(0)?;
    let error = graph.add_gradients(None, &last, &[inside], &[]);
    refused(error, &["'loop/Switch_1:0'", "a part of loop 'loop'"]);
    let gradients = graph.add_gradients(None, &last, &inputs, &[])?;
    let gradient = gradients[1].as_ref().expect("a gradient");
    let session = Session::new(&graph)?;
    let value = Tensor::from_array([1.5_f32, -2.0])?;
    let fetches = [&last[1], &again[0], &again[1], gradient];
    let out = session.eval(&[(&x, &value)], &fetches)?;
    assert_eq!(out[0].as_slice::<f32>()?, [48.0, -64.0]);
    assert_eq!(out[1].to_scalar::<i32>()?, 6);
    assert_eq!(out[2].as_slice::<f32>()?, [48.0, -64.0]);
    assert_eq!(out[3].as_slice::<f32>()?, [32.0, 32.0]);
    Ok(())
}

#[test]
fn loops_of_tensorflow_1_that_do_not_fit_leave_the_graph_usable() -> Result<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let zero = scope.constant(&Tensor::scalar(0_i32)?)?;
    let x = scope.constant(&Tensor::from_array([1.0_f32])?)?;
    let inputs = [zero.clone(), x.clone()];
    let before = graph.operations().count();
    refused(
        graph.add_while("l", &[], below(5), doubling),
        &["'l'", "no variable"],
    );
    let error = graph.add_while("l", &inputs, |_, v| Ok(v[0].clone()), doubling);
    refused(error, &["condition", "'l'", "bool", "int32"]);
    let swapped = |scope: &Scope, v: &[Output]| {
        let mut results = doubling(scope, v)?;
        results.swap(0, 1);
        Ok(results)
    };
    refused(
        graph.add_while("l", &inputs, below(5), swapped),
        &["value 0", "body"],
    );
    let fewer = |_: &Scope, v: &[Output]| Ok(vec![v[0].clone()]);
    refused(
        graph.add_while("l", &inputs, below(5), fewer),
        &["1 values", "expected 2"],
    );
    let outside = |_: &Scope, v: &[Output]| Ok(vec![v[0].clone(), x.clone()]);
    let error = refused(graph.add_while("l", &inputs, below(5), outside), &["graph"]);
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }));
    let other = Graph::new()?.scope().constant(&Tensor::scalar(0_i32)?)?;
    let error = refused(
        graph.add_while("l", &[other], below(5), doubling),
        &["graph"],
    );
    assert!(matches!(error.kind(), ErrorKind::Foreign { .. }));
    let panicking = std::panic::AssertUnwindSafe(|| {
        graph.add_while("l", &inputs, below(5), |_, _| panic!("by a closure"))
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(graph.operations().count(), before);
    let last = graph.add_while("l", &inputs, below(3), doubling)?;
    let out = Session::new(&graph)?.eval(&[], &[&last[1]])?;
    assert_eq!(out[0].as_slice::<f32>()?, [8.0]);
    Ok(())
}
