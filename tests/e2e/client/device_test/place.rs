//! The device, and who ran what.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use tfp::nn::Weights;
use tfp::wire::Reader;
use tfp::{
    AnyContext, AnyValue, EagerContext, GradientOptions, Graph, LookupTable, Mode, Operation,
    Output, Result, RunOptions, Session, SessionOptions, Tape, Tensor, TensorHandle, Unconnected,
    Variable, gradients_with, initialize, load_pluggable_device, traced_nodes,
};

pub const DEVICE: &str = "/device:TFP:0";
pub const CPU: &str = "/device:CPU:0";

/// Ops that have no kernel on the device, or stay on the host by themselves: constants that nobody
/// placed, and what sessions add at their borders.
const ON_HOST: &[&str] = &[
    "Const",
    "NoOp",
    "_Arg",
    "_Retval",
    "_Recv",
    "_Send",
    "_HostRecv",
    "_HostSend",
];

/// Held during a traced run.
pub static TRACE: Mutex<()> = Mutex::new(());

/// Loads the plug-in, once per process.
pub fn load() {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        let library = std::env::var("TFP_LIBRARY").expect("TFP_LIBRARY names the plug-in");
        load_pluggable_device(library).expect("the plug-in");
    });
}

/// Returns an eager context that executes on a device.
pub fn eager(device: &str) -> Result<EagerContext> {
    load();
    EagerContext::new()?.on_device(device)
}

/// Whether a device's full name is that of a short one.
pub fn is_on(name: &str, device: &str) -> bool {
    name.ends_with(device.trim_start_matches('/'))
}

/// Checks that the functions of an eager context, by its serialized `RunMetadata`, ran on a device.
fn check_functions(metadata: &[u8], device: &str, what: &str) -> Result<()> {
    for graph in messages(metadata, 3)? {
        for node in messages(graph, 1)? {
            let (op, place) = (text(node, 2)?, text(node, 4)?);
            assert!(
                is_on(&place, device) || ON_HOST.contains(&op.as_str()),
                "{what}: {op} of a function on '{place}'"
            );
        }
    }
    Ok(())
}

/// Checks that the nodes of a run, by its serialized `RunMetadata`, ran on a device, but for those of
/// ops that belong to the host.
pub fn check_run(metadata: &[u8], device: &str, hosted: &[&str], what: &str) -> Result<()> {
    let (mut there, mut elsewhere) = (0, BTreeSet::new());
    for node in traced_nodes(metadata)? {
        // As `node = Op(input, input)`.
        let op = node.label.split_once(" = ").map_or("", |(_, call)| call);
        let op = op.split('(').next().unwrap_or_default();
        let name = &node.device;
        if is_on(name, device) {
            there += 1;
        } else if !op.is_empty()
            && !ON_HOST.contains(&op)
            && !hosted.contains(&op)
            && !name.contains("memcpy")
        {
            elsewhere.insert(format!("{op} on {name}"));
        }
    }
    assert!(there > 0, "{what}: no node ran on {device}");
    assert!(elsewhere.is_empty(), "{what}: {elsewhere:?}");
    Ok(())
}

fn messages(bytes: &[u8], number: u32) -> Result<Vec<&[u8]>> {
    let mut found = Vec::new();
    for field in Reader::new("RunMetadata", bytes) {
        let (at, field) = field?;
        if at == number {
            found.push(field.bytes()?);
        }
    }
    Ok(found)
}

fn text(bytes: &[u8], number: u32) -> Result<String> {
    let all = messages(bytes, number)?;
    Ok(String::from_utf8_lossy(all.first().copied().unwrap_or_default()).into_owned())
}

/// `RunOptions` for a trace of all nodes.
pub fn traced() -> RunOptions {
    RunOptions::new().trace(true)
}

/// What a piece of work is given: a place, and what a graph must run.
pub struct Work {
    pub cx: AnyContext,
    pub weights: Weights,
    pub variables: Vec<Variable>,
    pub tables: Vec<LookupTable>,
}

impl Work {
    /// Makes a variable, which a graph's run will find initialized.
    pub fn variable(&mut self, name: &str, value: &Tensor) -> Result<Variable> {
        let variable = Variable::new(&self.cx, name, value)?;
        self.variables.push(variable.clone());
        Ok(variable)
    }

    /// Makes everything that follows happen after an operation of a graph.
    pub fn then(&mut self, operation: Option<Operation>) -> Result<()> {
        if let (AnyContext::Scope(scope), Some(operation)) = (&self.cx, operation) {
            self.cx = scope.after(&[operation])?.any();
        }
        Ok(())
    }

    /// Returns a value, then its gradients by inputs, zero where it does not depend on one.
    pub fn slopes(
        &self,
        xs: &[AnyValue],
        forward: impl Fn(&AnyContext) -> Result<AnyValue>,
    ) -> Result<Vec<AnyValue>> {
        let mut values = Vec::new();
        match &self.cx {
            AnyContext::Eager(eager) => {
                let options = GradientOptions {
                    unconnected: Unconnected::Zeros,
                    ..GradientOptions::default()
                };
                let tape = Tape::new(eager);
                let handles: Vec<&TensorHandle> =
                    xs.iter().map(AnyValue::handle).collect::<Result<_>>()?;
                for x in &handles {
                    tape.watch(x)?;
                }
                values.push(forward(&tape.any())?);
                for found in tape.gradients_with(&[values[0].handle()?], &handles, &options)? {
                    values.extend(
                        found
                            .map(|found| found.dense(eager))
                            .transpose()?
                            .map(AnyValue::from),
                    );
                }
            }
            cx => {
                let options = GradientOptions {
                    unconnected: Unconnected::Zeros,
                    ..GradientOptions::default()
                };
                values.push(forward(cx)?);
                for found in gradients_with(cx, &values[..1], xs, &options)? {
                    values.extend(found.map(|found| found.dense(cx)).transpose()?);
                }
            }
        }
        assert_eq!(values.len(), xs.len() + 1, "a gradient per input");
        Ok(values)
    }
}

type Job<'a> = &'a dyn Fn(&mut Work) -> Result<Vec<AnyValue>>;

fn at_once(device: &str, what: &str, job: Job<'_>) -> Result<Vec<Tensor>> {
    let eager = eager(device)?;
    let cx = eager.any();
    let mut work = Work {
        weights: Weights::new(&cx, 5),
        cx,
        variables: Vec::new(),
        tables: Vec::new(),
    };
    eager.start_recording();
    let values = job(&mut work);
    let metadata = eager.stop_recording()?;
    check_functions(&metadata, device, what)?;
    let values = values?;
    for value in &values {
        let place = value.handle()?.device()?;
        assert!(is_on(&place, device), "{what}: a result on '{place}'");
    }
    values
        .iter()
        .map(|value| value.handle()?.to_tensor())
        .collect()
}

fn in_a_graph(device: &str, hosted: &[&str], what: &str, job: Job<'_>) -> Result<Vec<Tensor>> {
    load();
    let graph = Graph::new()?;
    let cx = graph.scope().on_device(device)?.any();
    let mut work = Work {
        weights: Weights::new(&cx, 5),
        cx,
        variables: Vec::new(),
        tables: Vec::new(),
    };
    let values = job(&mut work)?;
    let fetches: Vec<&Output> = values.iter().map(AnyValue::output).collect::<Result<_>>()?;
    let session = Session::with_options(&graph, &SessionOptions::default())?;
    let variables = work.weights.variables();
    initialize(&session, variables.iter().chain(&work.variables))?;
    for table in &work.tables {
        table.initialize(&session)?;
    }
    // TensorFlow traces one run at a time.
    let _one = TRACE.lock().unwrap_or_else(PoisonError::into_inner);
    let options = traced();
    let mut run = session.run().options(&options).with_metadata();
    for fetch in fetches {
        run = run.fetch(fetch);
    }
    let fetched = run.go()?;
    if device == DEVICE {
        check_run(&fetched.metadata, device, hosted, what)?;
    }
    Ok(fetched.tensors)
}

/// Compares values: an error may be `tolerance` times the size of the value, or of one when it is
/// smaller; other types are equal.
pub fn compare(what: &str, found: &[Tensor], expected: &[Tensor], tolerance: f32) -> Result<()> {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(
            found.dims(),
            expected.dims(),
            "{what}: shape of value {index}"
        );
        assert_eq!(
            found.dtype(),
            expected.dtype(),
            "{what}: type of value {index}"
        );
        if found.dtype() != tfp::DataType::FLOAT {
            assert_eq!(
                found.as_bytes()?,
                expected.as_bytes()?,
                "{what}: value {index}"
            );
            continue;
        }
        let pairs = found
            .as_slice::<f32>()?
            .iter()
            .zip(expected.as_slice::<f32>()?);
        for (at, (found, expected)) in pairs.enumerate() {
            assert!(
                (found - expected).abs() <= tolerance * expected.abs().max(1.0),
                "{what}: element {at} of value {index} is {found}, on the CPU {expected}"
            );
        }
    }
    Ok(())
}

/// Does a piece of work at once and in a graph, on the device and on the CPU, and compares all four.
pub fn check(
    what: &str,
    tolerance: f32,
    job: impl Fn(&mut Work) -> Result<Vec<AnyValue>>,
) -> Result<()> {
    check_with_host(&[], what, tolerance, job)
}

/// Does the same for work with ops that belong to the host.
pub fn check_with_host(
    hosted: &[&str],
    what: &str,
    tolerance: f32,
    job: impl Fn(&mut Work) -> Result<Vec<AnyValue>>,
) -> Result<()> {
    let on = |mode: &str, device: &str| format!("{what} {mode} on {device}");
    let done = |name: &str, result: Result<Vec<Tensor>>| match result {
        Ok(values) => values,
        Err(error) => panic!("{name}: {error}"),
    };
    let name = on("at once", CPU);
    let expected = done(&name, at_once(CPU, &name, &job));
    assert!(!expected.is_empty(), "{what}");
    for device in [CPU, DEVICE] {
        let name = on("in a graph", device);
        let found = done(&name, in_a_graph(device, hosted, &name, &job));
        compare(&name, &found, &expected, tolerance)?;
    }
    let name = on("at once", DEVICE);
    let found = done(&name, at_once(DEVICE, &name, &job));
    compare(&name, &found, &expected, tolerance)
}

/// Returns numbers between -1 and 1 that look random.
pub fn numbers(shape: &[i64]) -> Result<Tensor> {
    let count: i64 = shape.iter().product();
    let values: Vec<f32> = (0..count)
        .map(|index| ((index * 37 + 11) % 101) as f32 / 50.5 - 1.0)
        .collect();
    Tensor::from_vec(values, shape)
}
