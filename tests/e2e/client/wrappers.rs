//! What the test of wrappers starts, once: reads what Python wrote into a folder, and writes models,
//! checkpoints and tensors for Python there.

use std::error::Error;
use std::path::Path;

use tfp::nn::layer::{BatchNorm, Dense, Layer, LayerNorm, Recurrent, Reshape, RnnKind, Sequential};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Loss, Weights};
use tfp::ops;
use tfp::{
    Checkpoint, CheckpointReader, Column, DataType, EagerContext, Graph, LookupTable, Mode, Model,
    ModelWriter, RaggedTensor, RandomAlgorithm, RandomGenerator, Session, SessionModel,
    SessionOptions, Shape, SparseTensor, Tape, Tensor, TensorHandle, Variable, initialize,
    write_tensors,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Results by name.
struct Found(Vec<(String, Tensor)>);

impl Found {
    fn add(&mut self, name: &str, handle: &TensorHandle) -> Outcome<()> {
        self.0.push((name.to_owned(), handle.to_tensor()?));
        Ok(())
    }
}

/// Calls a signature of a model with the inputs that Python left for it.
fn call_model(
    ctx: &EagerContext,
    model: &Model,
    signature: &str,
    name: &str,
    inputs: &CheckpointReader,
    found: &mut Found,
) -> Outcome<()> {
    let function = model.signature(signature)?;
    let mut arguments = Vec::new();
    for spec in function.inputs() {
        arguments.push((
            spec.name.clone(),
            inputs.read(&format!("{name}/{}", spec.name))?,
        ));
    }
    let pairs = arguments
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor));
    for (key, value) in function.call_named(ctx, pairs)? {
        found.add(&format!("{name}/{key}"), &value)?;
    }
    Ok(())
}

/// Loads models of Python, calls them, changes one and saves it.
fn models(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let inputs = CheckpointReader::open(work.join("inputs"))?;
    for name in ["module", "keras", "keras2"] {
        let model = Model::load(ctx, work.join(name), &["serve"])?;
        call_model(ctx, &model, "serving_default", name, &inputs, found)?;
        if name == "module" {
            // Called by its path, with arguments in their order.
            let x = ctx.handle(&inputs.read("module/x")?)?;
            let key = ctx.handle(&inputs.read("module/key")?)?;
            let results = model.function("both")?.call(ctx, &[x, key])?;
            found.add("module/by_path", &results[1])?;
            let rows: [&[f32]; 3] = [&[1.0, 2.0], &[], &[3.0]];
            let rows = RaggedTensor::from_rows(ctx, &rows)?;
            let parts = [rows.flat_values, rows.row_splits[0].clone()];
            let results = model.function("rows")?.call(ctx, &parts)?;
            found.add("module/rows", &results[0])?;
            found.add("module/splits", &results[1])?;
        }
        for (_, variable) in model.variables() {
            if variable.is_trainable() {
                let half = ops::mul(ctx, variable.read(ctx)?, 0.5_f32)?;
                variable.assign(ctx, ops::add_v2(ctx, half, 0.125_f32)?)?;
            }
        }
        let changed = format!("{name}_changed");
        model.save(work.join(&changed))?;
        let function = model.signature("serving_default")?;
        let mut arguments = Vec::new();
        for spec in function.inputs() {
            arguments.push(ctx.handle(&inputs.read(&format!("{name}/{}", spec.name))?)?);
        }
        let results = function.call(ctx, &arguments)?;
        for (spec, value) in function.outputs().iter().zip(results) {
            found.add(&format!("{changed}/{}", spec.name), &value)?;
        }
    }
    Ok(())
}

/// Calls the bodies of a function that Python traced several times.
fn bodies(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let model = Model::load(ctx, work.join("bodies"), &["serve"])?;
    let function = model.function("__call__")?;
    let pair = ctx.handle(&Tensor::from_array([1.0_f32, 2.0])?)?;
    let square = [ctx.handle(&Tensor::from_vec(vec![1.0_f32; 9], &[3, 3])?)?];
    let flag = ctx.handle(&Tensor::scalar(true)?)?;
    let trained = function.clone().with("training", true)?;
    let calls = [
        ("usual", function.clone(), vec![&pair]),
        ("trained", trained.clone(), vec![&pair]),
        (
            "square",
            trained.clone().with("mode", "b")?,
            vec![&square[0]],
        ),
        ("four", function.clone().with("k", 4)?, vec![&pair]),
        ("flag", function.clone(), vec![&pair, &flag]),
    ];
    for (name, function, arguments) in calls {
        let arguments: Vec<TensorHandle> = arguments.into_iter().cloned().collect();
        found.add(
            &format!("bodies/{name}"),
            &function.call(ctx, &arguments)?[0],
        )?;
    }
    let named = trained.call_named(ctx, [("x", [1.0_f32, 2.0])])?;
    let named = named.values().next().ok_or("no result")?;
    found.add("bodies/named", named)?;
    let errors = [
        function.call(ctx, &square).map(drop),
        trained.call(ctx, &square).map(drop),
        function.with("mode", "c").map(drop),
    ];
    for (at, error) in errors.into_iter().enumerate() {
        let text = error.err().ok_or("a call that does not fit")?.to_string();
        let name = format!("bodies/error{at}");
        found.0.push((name, Tensor::from_string(text)?));
    }
    Ok(())
}

/// Restores a checkpoint of Python, and writes another one.
fn checkpoints(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let w = Variable::new(ctx, "w", [[0.0_f32; 3]; 2])?;
    let step = Variable::new(ctx, "step", 0_i64)?;
    let generator = RandomGenerator::from_seed(ctx, 0, RandomAlgorithm::Philox)?;
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("model/layer/w", &w)?;
    checkpoint.add("step", &step)?;
    checkpoint.add("random/_state_var", generator.state())?;
    let latest = tfp::latest_checkpoint(work.join("checkpoints"))?;
    checkpoint.restore(&latest)?.complete()?;
    found.0.push(("checkpoint/w".to_owned(), w.to_tensor()?));
    found
        .0
        .push(("checkpoint/step".to_owned(), step.to_tensor()?));
    found.add(
        "checkpoint/random",
        &generator.normal(ctx, &[3], DataType::FLOAT)?,
    )?;
    w.assign_add(ctx, [[1.0; 3]; 2])?;
    step.assign_add(ctx, 1)?;
    checkpoint.save(work.join("checkpoints/rust"))?;
    let named = (w.to_tensor()?, step.to_tensor()?);
    write_tensors(
        work.join("by_name"),
        &[("layer/w", &named.0), ("step", &named.1)],
    )?;
    Ok(())
}

/// A layer and a constant, in any mode.
fn dense<C: Mode>(ctx: &C, x: &C::Value, w: &Variable, b: &Variable) -> tfp::Result<C::Value> {
    let product = ops::mat_mul(ctx, x, w.read(ctx)?, Default::default())?;
    ops::tanh(ctx, ops::add_v2(ctx, product, b.read(ctx)?)?)
}

/// Writes models that are made here, of closures and of a graph.
fn new_models(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let x = CheckpointReader::open(work.join("inputs"))?.read("keras/keras_tensor")?;
    let kernel = [[0.5_f32, -1.0], [0.25, 2.0], [1.0, -0.5]];
    let w = Variable::new(ctx, "dense/kernel", kernel)?;
    let b = Variable::new(ctx, "dense/bias", [0.25_f32, -0.25])?;
    let calls = Variable::new(ctx, "calls", 0_i64)?;
    let scale = ctx.handle(&Tensor::scalar(3.0_f32)?)?;
    let mut writer = ModelWriter::new();
    writer.variable("dense/kernel", &w)?;
    writer.variable("dense/bias", &b)?;
    writer.variable("_calls", &calls)?;
    let argument = ("x", DataType::FLOAT, Shape::from([-1, 3]));
    writer.signature(
        "serving_default",
        std::slice::from_ref(&argument),
        |func, arguments| {
            let y = dense(func, &arguments["x"], &w, &b)?;
            let scale = func.from_any((&scale).into())?;
            let scaled = ops::mul(func, &y, &scale)?;
            calls.assign_add(func, 1_i64)?;
            Ok(vec![("y".to_owned(), y), ("scaled".to_owned(), scaled)])
        },
    )?;
    writer.signature("calls", &[], |func, _| {
        Ok(vec![("count".to_owned(), calls.read(func)?)])
    })?;
    // A branch is a function that the signature's function calls.
    let arguments = [
        ("flag", DataType::BOOL, Shape::scalar()),
        ("x", DataType::FLOAT, Shape::from([2])),
    ];
    writer.signature("branch", &arguments, |func, arguments| {
        let x = func.to_any(&arguments["x"]);
        let then = |cx: &tfp::AnyContext| Ok(vec![ops::mul(cx, &x, b.read(cx)?)?]);
        let otherwise = |cx: &tfp::AnyContext| Ok(vec![ops::neg(cx, &x)?]);
        let chosen = tfp::cond(func, &arguments["flag"], then, otherwise)?;
        Ok(vec![("chosen".to_owned(), chosen[0].clone())])
    })?;
    writer.write(work.join("rust_model"))?;
    found.add("rust_model/y", &dense(ctx, &ctx.handle(&x)?, &w, &b)?)?;

    // What was written is loaded here too: in an eager context, and into a session.
    let model = Model::load(ctx, work.join("rust_model"), &["serve"])?;
    let again = model
        .signature("serving_default")?
        .call_named(ctx, [("x", &x)])?;
    found.add("rust_model/again", &again["y"])?;
    let count = model.signature("calls")?.call(ctx, &[])?;
    found.add("rust_model/count", &count[0])?;
    let branch = model.signature("branch")?;
    let flag = ctx.handle(&Tensor::scalar(true)?)?;
    let two = ctx.handle(&Tensor::from_array([2.0_f32, 4.0])?)?;
    found.add("rust_model/branch", &branch.call(ctx, &[flag, two])?[0])?;
    let session = tfp::SavedModel::load(work.join("rust_model"), &["serve"], &Default::default())?;
    let values = session.call("serving_default", &[("x", &x)])?;
    found
        .0
        .push(("rust_model/session".to_owned(), values["scaled"].share()?));

    let graph = Graph::new()?;
    let scope = graph.scope();
    let fed = scope.placeholder("fed", DataType::FLOAT, &Shape::from([-1, 3]))?;
    let w = Variable::new(&scope.sub_scope("dense"), "kernel", kernel)?;
    let b = Variable::new(&scope.sub_scope("dense"), "bias", [0.5_f32, 0.5])?;
    let y = dense(&scope, &fed, &w, &b)?;
    let session = Session::new(&graph)?;
    initialize(&session, [&w, &b])?;
    let mut writer = ModelWriter::new();
    writer.variable("kernel", &w)?;
    writer.variable("bias", &b)?;
    writer.graph_signature("serving_default", &[("x", &fed)], &[("y", &y)])?;
    writer.write_from(&session, work.join("rust_graph_model"))?;
    let values = session.eval(&[(&fed, &x)], &[&y])?;
    found
        .0
        .push(("rust_graph_model/y".to_owned(), values[0].share()?));
    Ok(())
}

/// The tables of a model: of tensors, of a file, and two that change.
struct Tables {
    words: LookupTable,
    lines: LookupTable,
    counts: LookupTable,
    pairs: LookupTable,
}

impl Tables {
    fn new(ctx: &impl Mode, file: &Path, first: i64) -> tfp::Result<Self> {
        let keys = Tensor::from_strings(&["a", "b"], &[2])?;
        let values = Tensor::from_array([first, first + 1])?;
        let none = Tensor::scalar(-1_i64)?;
        let (line, number) = ((Column::Line, DataType::STRING), Column::LineNumber);
        let pair = Tensor::from_array([-1.0_f32, -2.0])?;
        Ok(Self {
            words: LookupTable::new(ctx, "words", &keys, &values, &none)?,
            lines: LookupTable::from_file(ctx, "lines", file, line, number, "\t", &none)?,
            counts: LookupTable::mutable(ctx, "counts", DataType::STRING, &none)?,
            pairs: LookupTable::mutable(ctx, "pairs", DataType::STRING, &pair)?,
        })
    }

    fn add_to(&self, writer: &mut ModelWriter) -> tfp::Result<()> {
        writer.table("words", &self.words)?;
        writer.table("files/lines", &self.lines)?;
        writer.table("counts", &self.counts)?;
        writer.table("pairs", &self.pairs)
    }

    fn find<C: Mode>(&self, ctx: &C, key: &C::Value) -> tfp::Result<Vec<(String, C::Value)>> {
        Ok(vec![
            ("word".to_owned(), self.words.find(ctx, key)?),
            ("line".to_owned(), self.lines.find(ctx, key)?),
            ("count".to_owned(), self.counts.find(ctx, key)?),
            ("pair".to_owned(), self.pairs.find(ctx, key)?),
        ])
    }
}

/// Writes models with tables, of closures and of a graph, and finds keys in them.
fn table_models(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let arguments = &[("key", DataType::STRING, Shape::from([-1]))];
    let key = CheckpointReader::open(work.join("inputs"))?.read("module/key")?;
    let file = work.join("words.txt");
    std::fs::write(&file, "x\ny\nb\n")?;
    for (name, first) in [("rust_tables", 10), ("rust_tables_other", 50)] {
        let tables = Tables::new(ctx, &file, first)?;
        tables.counts.insert(ctx, ["b", "c"], [first + 2, 3])?;
        tables.pairs.insert(ctx, ["b"], [[1.5_f32, 2.5]])?;
        let mut writer = ModelWriter::new();
        tables.add_to(&mut writer)?;
        writer.signature("serving_default", arguments, |func, given| {
            tables.find(func, &given["key"])
        })?;
        // A signature that changes a table.
        writer.signature("add", arguments, |func, given| {
            let key = &given["key"];
            let shape = ops::shape(func, key, Default::default())?;
            let ones = ops::fill(func, &shape, 1_i64)?;
            tables.counts.insert(func, key, &ones)?;
            Ok(vec![("size".to_owned(), tables.counts.size(func)?)])
        })?;
        writer.write(work.join(name))?;
    }
    let graph = Graph::new()?;
    let scope = graph.scope();
    let fed = scope.placeholder("key", DataType::STRING, &Shape::from([-1]))?;
    let tables = Tables::new(&scope, &file, 70)?;
    let results = tables.find(&scope, &fed)?;
    let insert = tables.counts.insert(&scope, ["b"], [4_i64])?;
    let session = Session::new(&graph)?;
    for table in [&tables.words, &tables.lines] {
        table.initialize(&session)?;
    }
    session.run().target(&insert).go()?;
    let mut writer = ModelWriter::new();
    tables.add_to(&mut writer)?;
    let results: Vec<(&str, &tfp::Output)> = results.iter().map(|(k, v)| (k.as_str(), v)).collect();
    writer.graph_signature("serving_default", &[("key", &fed)], &results)?;
    writer.write_from(&session, work.join("rust_graph_tables"))?;
    // The models have the file themselves.
    std::fs::remove_file(&file)?;
    let names = ["rust_tables", "rust_tables_other", "rust_graph_tables"];
    let models = names
        .iter()
        .map(|name| Model::load(ctx, work.join(name), &["serve"]))
        .collect::<tfp::Result<Vec<_>>>()?;
    for (name, model) in names.iter().zip(models) {
        let results = model
            .signature("serving_default")?
            .call_named(ctx, [("key", &key)])?;
        for (result, value) in results {
            found.add(&format!("{name}/{result}"), &value)?;
        }
        let session = tfp::SavedModel::load(work.join(name), &["serve"], &Default::default())?;
        for (result, value) in session.call("serving_default", &[("key", &key)])? {
            found.0.push((format!("{name}/session_{result}"), value));
        }
    }
    Ok(())
}

/// Writes the models of trainings in both modes, and what they compute.
fn exports(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let x = CheckpointReader::open(work.join("inputs"))?.read("keras/keras_tensor")?;
    let truth = Tensor::zeros(DataType::FLOAT, &[4, 2])?;
    let places = [
        ("export_graph", Graph::new()?.any()),
        ("export_eager", ctx.any()),
    ];
    for (name, place) in places {
        let layers: [&dyn Layer; 6] = [
            &Dense::new(6).activation(Activation::Tanh),
            &BatchNorm::default(),
            &Reshape { shape: vec![2, 3] },
            &Recurrent::new(RnnKind::Lstm, 4),
            &LayerNorm::default(),
            &Dense::new(2),
        ];
        let model = Sequential::new(&Weights::new(&place, 9), &[3], &layers)?;
        let plan = Plan::new(Loss::MeanSquaredError, Sgd::default());
        let mut trainer = Trainer::new(model, plan)?;
        trainer.train_on(&x, &truth)?;
        trainer.export(work.join(name))?;
        found.0.push((format!("{name}/y"), trainer.predict(&x)?));
    }
    Ok(())
}

/// Takes random numbers of every kind.
fn random(ctx: &EagerContext, found: &mut Found) -> Outcome<()> {
    for seed in [1234, -5] {
        let generator = RandomGenerator::from_seed(ctx, seed, RandomAlgorithm::Philox)?;
        let name = |kind: &str| format!("random/{seed}/{kind}");
        found.add(
            &name("normal"),
            &generator.normal(ctx, &[2, 3], DataType::FLOAT)?,
        )?;
        found.add(
            &name("uniform"),
            &generator.uniform(ctx, &[3], DataType::DOUBLE)?,
        )?;
        found.add(
            &name("int"),
            &generator.uniform_int(ctx, &[4], 0_i32, 10_i32)?,
        )?;
        found.add(
            &name("full"),
            &generator.uniform_full_int(ctx, &[2], DataType::UINT64)?,
        )?;
        let truncated = generator.truncated_normal(ctx, &[4], DataType::FLOAT)?;
        found.add(&name("truncated"), &truncated)?;
        let binomial = generator.binomial(
            ctx,
            &[2],
            [10.0_f32, 20.0],
            [0.5_f32, 0.25],
            DataType::INT32,
        )?;
        found.add(&name("binomial"), &binomial)?;
        for (at, part) in generator.split(ctx, 2)?.iter().enumerate() {
            found.add(
                &name(&format!("split{at}")),
                &part.normal(ctx, &[2], DataType::FLOAT)?,
            )?;
        }
        found
            .0
            .push((name("state"), generator.state().to_tensor()?));
    }
    Ok(())
}

/// Computes with sparse and ragged tensors, and looks up keys.
fn structures(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let dense = ctx.handle(&Tensor::from_array([
        [0.0_f32, 1.5, 0.0, -2.0],
        [0.0, 0.0, 0.0, 0.0],
        [3.0, 0.0, 0.5, 0.0],
    ])?)?;
    let sparse = SparseTensor::from_dense(ctx, &dense)?;
    let other = ctx.handle(&Tensor::from_array([
        [1.0_f32, 2.0],
        [3.0, 4.0],
        [5.0, 6.0],
        [7.0, 8.0],
    ])?)?;
    found.add("sparse/indices", &sparse.indices)?;
    found.add("sparse/dense", &sparse.to_dense(ctx, 9.0)?)?;
    found.add("sparse/mat_mul", &sparse.mat_mul(ctx, &other)?)?;
    found.add("sparse/sum", &sparse.reduce_sum(ctx, &[1])?)?;
    found.add("sparse/softmax", &sparse.softmax(ctx)?.values)?;
    let transposed = sparse.transpose(ctx, &[1, 0])?;
    found.add("sparse/transposed", &transposed.to_dense(ctx, 0.0)?)?;
    let doubled = sparse.add(ctx, &sparse)?;
    let doubled = SparseTensor::concat(ctx, &[doubled, sparse.clone()], 0)?;
    found.add(
        "sparse/concat",
        &doubled.slice(ctx, &[1, 0], &[4, 3])?.to_dense(ctx, 0.0)?,
    )?;
    found.add("sparse/reshaped", &sparse.reshape(ctx, &[2, 6])?.indices)?;
    let (filled, empty) = sparse.fill_empty_rows(ctx, 7.0)?;
    found.add("sparse/filled", &filled.values)?;
    found.add("sparse/empty", &empty)?;
    found.add("sparse/product", &sparse.mul_dense(ctx, &dense)?.values)?;
    found.add("sparse/added", &sparse.add_dense(ctx, &dense)?)?;

    let rows: [&[f32]; 4] = [&[1.0, 2.0, 3.0], &[], &[4.0], &[5.0, 6.0]];
    let ragged = RaggedTensor::from_rows(ctx, &rows)?;
    found.add("ragged/dense", &ragged.to_dense(ctx, -1.0)?)?;
    found.add("ragged/lengths", &ragged.row_lengths(ctx)?)?;
    found.add("ragged/ids", &ragged.value_row_ids(ctx)?)?;
    found.add("ragged/sums", &ragged.row_sums(ctx)?)?;
    let squares = ragged.map(ctx, |ctx, values| ops::square(ctx, values))?;
    found.add(
        "ragged/gathered",
        &squares.gather(ctx, [3, 0])?.to_dense(ctx, 0.0)?,
    )?;
    found.add("ragged/sparse", &ragged.to_sparse(ctx)?.indices)?;

    let keys = Tensor::from_strings(&["emerson", "lake", "palmer"], &[3])?;
    let values = Tensor::from_array([0_i64, 1, 2])?;
    let none = Tensor::scalar(-1_i64)?;
    let table = LookupTable::new(ctx, "table", &keys, &values, &none)?;
    found.add(
        "table/found",
        &table.find(ctx, ["lake", "nobody", "palmer"])?,
    )?;
    let file = work.join("vocabulary.txt");
    let key = (Column::Line, DataType::STRING);
    let lines = LookupTable::from_file(ctx, "lines", &file, key, Column::LineNumber, "\t", &none)?;
    found.add("table/lines", &lines.find(ctx, ["b", "c", "z"])?)?;
    Ok(())
}

/// Computes the gradient of a loaded model's variables.
fn gradients(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let x = CheckpointReader::open(work.join("inputs"))?.read("keras/keras_tensor")?;
    let model = Model::load(ctx, work.join("keras"), &["serve"])?;
    let tape = Tape::new(ctx);
    let results = model
        .signature("serving_default")?
        .call_named(&tape, [("keras_tensor", &x)])?;
    let loss = ops::sum(
        &tape,
        ops::square(&tape, &results["output_0"])?,
        [0, 1],
        Default::default(),
    )?;
    let handles = tape.watched_variables();
    let handles: Vec<&TensorHandle> = handles.iter().collect();
    for (gradient, handle) in tape.gradients(&[&loss], &handles)?.iter().zip(handles) {
        let named = model.variables().find(|(_, variable)| {
            variable
                .handle()
                .handle()
                .is_ok_and(|own| own.id() == handle.id())
        });
        // The tape watches also what training does not change: the running means of a norm.
        if let (Some(gradient), Some((_, variable))) = (gradient, named)
            && variable.is_trainable()
        {
            found.add(&format!("gradient/{}", variable.name()), gradient)?;
        }
    }
    Ok(())
}

/// Loads a model of TensorFlow 1, calls it, makes a step of training, and saves it.
fn old_model(ctx: &EagerContext, work: &Path, found: &mut Found) -> Outcome<()> {
    let folder = work.join("old");
    let refused = Model::load(ctx, &folder, &["serve"]).map(drop);
    let message = refused
        .err()
        .ok_or("an eager context loads it")?
        .to_string();
    if !message.contains("TensorFlow 1") {
        return Err(message.into());
    }
    let loaded = SessionModel::load(&folder, &["serve"], &SessionOptions::default())?;
    let inputs = CheckpointReader::open(work.join("inputs"))?;
    let (x, key) = (inputs.read("module/x")?, inputs.read("module/key")?);
    let arguments = [("x", &x), ("key", &key)];
    for (name, value) in loaded.model.call("serving_default", &arguments)? {
        found.0.push((format!("old/{name}"), value));
    }
    let names = |list: Vec<&str>| list.join(",");
    let lists = [
        (
            "old/variables",
            names(loaded.variables().map(|(name, _)| name).collect()),
        ),
        (
            "old/references",
            names(loaded.references().map(|(name, _)| name).collect()),
        ),
    ];
    for (name, list) in lists {
        found.0.push((name.to_owned(), Tensor::from_string(&list)?));
    }

    let (session, graph) = (&loaded.model.session, loaded.model.session.graph());
    let signature = loaded.model.signature("serving_default")?;
    let fed = loaded.model.output(&signature.inputs["x"])?;
    let y = loaded.model.output(&signature.outputs["y"])?;
    let scope = graph.scope().sub_scope("training");
    let (_, bias) = loaded.variables().next().ok_or("no variable")?;
    let (_, kernel) = loaded.references().next().ok_or("no reference")?;
    let read = graph.output("w/read:0")?;
    let loss = ops::sum(&scope, ops::square(&scope, &y)?, [0, 1], Default::default())?;
    let sources = [bias.handle_in(&scope)?, read];
    let slopes = tfp::gradients(&scope, &[loss], &sources)?;
    let [Some(by_bias), Some(by_kernel)] = &slopes[..] else {
        return Err("the loss depends on no variable".into());
    };
    let steps = [
        bias.assign_sub(&scope, ops::mul(&scope, by_bias, 0.1_f32)?)?,
        ops::assign_sub(
            &scope,
            kernel,
            ops::mul(&scope, by_kernel, 0.1_f32)?,
            Default::default(),
        )?
        .operation()
        .clone(),
    ];
    let mut run = session.run().feed(&fed, &x);
    for step in &steps {
        run = run.target(step);
    }
    run.go()?;
    loaded.save(work.join("old_changed"))?;
    Ok(())
}

fn main() -> Outcome<()> {
    let work = std::env::args_os().nth(1).ok_or("usage: wrappers FOLDER")?;
    let work = Path::new(&work);
    let ctx = EagerContext::new()?;
    let mut found = Found(Vec::new());
    models(&ctx, work, &mut found)?;
    bodies(&ctx, work, &mut found)?;
    checkpoints(&ctx, work, &mut found)?;
    new_models(&ctx, work, &mut found)?;
    table_models(&ctx, work, &mut found)?;
    exports(&ctx, work, &mut found)?;
    random(&ctx, &mut found)?;
    structures(&ctx, work, &mut found)?;
    gradients(&ctx, work, &mut found)?;
    old_model(&ctx, work, &mut found)?;
    let list: Vec<(&str, &Tensor)> = found
        .0
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    write_tensors(work.join("found"), &list)?;
    Ok(())
}
