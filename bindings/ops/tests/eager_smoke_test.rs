//! Every op can be called in eager mode: TensorFlow executes it, or refuses it for a reason of its
//! own.
//!
//! The operands only fit the op's definition; a few shapes and values are tried until the op runs.
//! What must not happen is a refusal before TensorFlow sees the call (but for ops on reference
//! variables, which only graphs have), or one because an attribute or operand has the wrong kind.
//! The ops run in a process of their own, so that one that ends or blocks it is found by its name.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tfp_core::{
    AttrValue, Call, Code, Context, DataType, EagerContext, Error, ErrorKind, FunctionOptions,
    Graph, Result, Results, Shape, Tensor, TensorHandle,
};
use tfp_ops::{
    VarHandleOpOptions, assign_variable_op, empty_tensor_list, identity, range_dataset,
    var_handle_op,
};
use tfp_ops_smoke::{Smoke, calls};

/// What TensorFlow says when a call does not fit the definition of its op.
const MALFORMED: &[&str] = &[
    "NodeDef",
    "expected list",
    "expected single",
    "had value with type",
    "missing attr",
    "not found in Op",
    "Can't find attr",
    "does not have attr",
    "Value for attr",
];

/// Ops that TensorFlow lets end or block the process when they are called with some of the operands:
/// the ranks that are tried (with none the op is not executed), and why.
const DEADLY: &[(&str, &[usize], &str)] = &[
    ("Abort", &[], "it ends the process, which is its purpose"),
    ("AvgPool3DGrad", &[], "a CHECK in its kernel fails"),
    ("AvgPoolGrad", &[], "a CHECK in its kernel fails"),
    (
        "CollectiveGatherV2",
        &[1, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "CollectiveReduceScatterV2",
        &[1, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "CombinedNonMaxSuppression",
        &[1, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    ("Conv2D", &[4, 5], "a CHECK in its kernel fails"),
    (
        "Conv2DBackpropFilter",
        &[0, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "Conv2DBackpropInput",
        &[0, 1, 2, 3],
        "a CHECK in its kernel fails",
    ),
    ("Conv3D", &[4, 5], "a CHECK in its kernel fails"),
    (
        "Conv3DBackpropFilterV2",
        &[0, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "Conv3DBackpropInputV2",
        &[0, 1, 2, 3],
        "a CHECK in its kernel fails",
    ),
    (
        "DepthwiseConv2dNative",
        &[4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "DepthwiseConv2dNativeBackpropFilter",
        &[0, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "DepthwiseConv2dNativeBackpropInput",
        &[0, 1, 2, 3],
        "a CHECK in its kernel fails",
    ),
    ("DistributedSave", &[], "it waits for a server"),
    ("DumpTensor", &[], "its kernel gets SIGSEGV"),
    (
        "FakeQuantWithMinMaxVarsPerChannel",
        &[1, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        &[1, 2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    ("FusedPadConv2D", &[4, 5], "a CHECK in its kernel fails"),
    (
        "LSTMBlockCell",
        &[2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "LSTMBlockCellGrad",
        &[2, 3, 4, 5],
        "a CHECK in its kernel fails",
    ),
    (
        "MapPeek",
        &[1, 2, 3, 4, 5],
        "it waits for an element that nobody puts",
    ),
    (
        "MapUnstage",
        &[1, 2, 3, 4, 5],
        "it waits for an element that nobody puts",
    ),
    (
        "MapUnstageNoKey",
        &[],
        "it waits for an element that nobody puts",
    ),
    (
        "OrderedMapPeek",
        &[1, 2, 3, 4, 5],
        "it waits for an element that nobody puts",
    ),
    (
        "OrderedMapUnstage",
        &[1, 2, 3, 4, 5],
        "it waits for an element that nobody puts",
    ),
    (
        "OrderedMapUnstageNoKey",
        &[],
        "it waits for an element that nobody puts",
    ),
    (
        "RaggedTensorToVariantGradient",
        &[1],
        "a CHECK in its kernel fails",
    ),
    ("RecordInput", &[], "it reads records without end"),
    ("RpcCheckStatus", &[], "its kernel gets SIGSEGV"),
    ("RpcGetValue", &[], "its kernel gets SIGSEGV"),
    (
        "StagePeek",
        &[1, 2, 3, 4, 5],
        "it waits for an element that nobody puts",
    ),
    ("StatelessWhile", &[], "the condition never ends the loop"),
    ("Unbatch", &[0, 2, 3, 4, 5], "a CHECK in its kernel fails"),
    ("Unstage", &[], "it waits for an element that nobody puts"),
    ("While", &[], "the condition never ends the loop"),
    (
        "XlaDynamicSlice",
        &[1, 2, 3, 4, 5],
        "its kernel gets SIGSEGV",
    ),
    ("XlaLaunchV2", &[], "its kernel gets SIGSEGV"),
    ("XlaReplicaId", &[], "its kernel gets SIGSEGV"),
];

/// Ops whose own definition and kernel disagree in TensorFlow, so that it refuses every call.
const BROKEN: &[(&str, &str)] = &[
    (
        "TileGrad",
        "its kernel asks for an attribute that the op does not have",
    ),
    (
        "TopK",
        "its kernel asks for an attribute that the op does not have",
    ),
    (
        "XlaIf",
        "its kernel asks for an attribute that the op does not have",
    ),
];

/// How long one op may take with all its operands.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ranks and values of the operands that are tried, in order.
const TRIALS: &[(usize, u8)] = &[
    (0, 1),
    (1, 1),
    (2, 1),
    (4, 1),
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 1),
    (5, 1),
];

/// An eager context with operands of some rank and value.
struct Eager {
    context: EagerContext,
    rank: usize,
    value: u8,
    variables: Cell<usize>,
}

impl Context for Eager {
    type Value = TensorHandle;
    type Operation = ();

    fn constant(&self, tensor: &Tensor) -> Result<TensorHandle> {
        self.context.constant(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, TensorHandle>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<TensorHandle, ()>> {
        self.context.execute(call, attrs)
    }
}

impl Smoke for Eager {
    fn value(&self, dtype: DataType) -> Result<TensorHandle> {
        let (cx, dims) = (&self.context, &[1; 8][..self.rank]);
        match dtype {
            DataType::RESOURCE => {
                let name = format!("variable_{}", self.variables.get());
                self.variables.set(self.variables.get() + 1);
                let options = VarHandleOpOptions {
                    shared_name: Some(name.as_str().into()),
                    ..VarHandleOpOptions::default()
                };
                let shape = Shape::new(dims);
                let variable = var_handle_op(cx, DataType::FLOAT, &shape, options)?;
                let value = self.value(DataType::FLOAT)?;
                assign_variable_op(cx, &variable, &value, Default::default())?;
                Ok(variable)
            }
            DataType::VARIANT if self.value == 0 => {
                let (types, shapes) = ([DataType::INT64], [Shape::scalar()]);
                range_dataset(cx, 0, 3, 1, &types, &shapes, Default::default())
            }
            DataType::VARIANT => empty_tensor_list(cx, -1, -1, DataType::FLOAT),
            DataType::STRING => cx.handle(&Tensor::from_strings(&["a"], &[1])?.reshaped(dims)?),
            _ => {
                let mut bytes = vec![0; dtype.size().unwrap_or(1)];
                match (dtype, self.value) {
                    (DataType::FLOAT, 1) => bytes.copy_from_slice(&1.0_f32.to_ne_bytes()),
                    (DataType::DOUBLE, 1) => bytes.copy_from_slice(&1.0_f64.to_ne_bytes()),
                    (_, value) => bytes[0] = value,
                }
                cx.handle(&Tensor::from_bytes(dtype, &bytes, dims)?)
            }
        }
    }
}

/// Adds the function that the calls name.
fn add_function(context: &EagerContext) -> Result<()> {
    let body = Graph::new()?;
    let x = body
        .scope()
        .placeholder("x", DataType::FLOAT, &Shape::unknown())?;
    let y = identity(&body, &x)?;
    let function = body.to_function("smoke", &[x], &[y], &FunctionOptions::default())?;
    context.add_function(&function)
}

/// Whether an error is TensorFlow's own, or that of an op which only graphs have.
fn is_own(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Status { code, message, .. } => {
            let known = !(*code == Code::NotFound && message.contains("not registered"));
            known && !MALFORMED.iter().any(|text| message.contains(text))
        }
        ErrorKind::GraphOnly { .. } => true,
        _ => false,
    }
}

/// Returns the ranks of operands that are tried on an op.
fn ranks(op: &str) -> &'static [usize] {
    match DEADLY.iter().find(|(name, ..)| *name == op) {
        Some((_, ranks, _)) => ranks,
        None => &[0, 1, 2, 3, 4, 5],
    }
}

/// Calls ops and prints what happens, a line before each and one after.
#[test]
#[ignore = "run by every_op_can_be_called, in a process of its own"]
fn child() {
    let after = std::env::var("SMOKE_AFTER").unwrap_or_default();
    let context = EagerContext::new().expect("a context");
    add_function(&context).expect("a function");
    let mut cx = Eager {
        context,
        rank: 0,
        value: 0,
        variables: Cell::new(0),
    };
    let mut out = std::io::stdout();
    let only = std::env::var("SMOKE_ONLY").ok();
    for (op, call) in calls::<Eager>() {
        let ranks = ranks(op);
        let others = only.as_ref().is_some_and(|only| only != op);
        if op <= after.as_str() || ranks.is_empty() || others {
            continue;
        }
        writeln!(out, "\nbegin {op}")
            .and_then(|()| out.flush())
            .expect("a pipe");
        let mut first = None;
        let mut wrong = None;
        let mut ran = false;
        for &(rank, value) in TRIALS.iter().filter(|(rank, _)| ranks.contains(rank)) {
            (cx.rank, cx.value) = (rank, value);
            match call(&cx) {
                Ok(()) => {
                    ran = true;
                    break;
                }
                Err(error) => {
                    if !is_own(&error) && !BROKEN.iter().any(|(name, _)| *name == op) {
                        wrong.get_or_insert_with(|| error.to_string());
                    }
                    let stop = matches!(error.kind(), ErrorKind::GraphOnly { .. });
                    first.get_or_insert(error);
                    if stop {
                        break;
                    }
                }
            }
        }
        let line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        match (wrong, first) {
            (Some(wrong), _) => writeln!(out, "\nwrong {op} {}", line(&wrong)),
            (None, _) if ran => writeln!(out, "\nran {op} "),
            (None, Some(error)) if matches!(error.kind(), ErrorKind::GraphOnly { .. }) => {
                writeln!(out, "\nreference {op} ")
            }
            (None, error) => {
                let text = error.map(|error| error.to_string()).unwrap_or_default();
                writeln!(out, "\nrefused {op} {}", line(&text))
            }
        }
        .expect("a pipe");
    }
    writeln!(out, "\nend  ")
        .and_then(|()| out.flush())
        .expect("a pipe");
}

/// Runs the ops after one in a process; returns the op at which it ended, if it did not finish.
fn sweep(after: &str, found: &mut BTreeMap<String, (String, String)>) -> Option<(String, String)> {
    let program = std::env::current_exe().expect("this program");
    let mut process = Command::new(program)
        .args([
            "--exact",
            "child",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("SMOKE_AFTER", after)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let output = process.stdout.take().expect("its output");
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(|line| line.ok()) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut current = String::new();
    let mut ended = false;
    let mut blocked = false;
    while !ended {
        let line = match lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                blocked = true;
                break;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        };
        let mut words = line.splitn(3, ' ');
        let (kind, op) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        match (kind, words.next()) {
            ("begin", None) => op.clone_into(&mut current),
            ("end", Some(_)) => ended = true,
            ("ran" | "refused" | "reference" | "wrong", Some(text)) => {
                found.insert(op.to_owned(), (kind.to_owned(), text.to_owned()));
            }
            _ => {}
        }
    }
    if blocked {
        process.kill().expect("an end of the process");
    }
    let status = process.wait().expect("its status");
    drop(lines);
    reader.join().expect("a reader");
    if ended {
        return None;
    }
    let how = if blocked {
        "it blocks".to_owned()
    } else {
        format!("it ends the process: {status}")
    };
    Some((current, how))
}

#[test]
fn every_op_can_be_called() {
    let mut found = BTreeMap::new();
    let mut deadly = Vec::new();
    let mut after = String::new();
    while let Some((op, how)) = sweep(&after, &mut found) {
        assert!(op > after, "the process ends before its first op: {how}");
        after.clone_from(&op);
        deadly.push(format!("(\"{op}\", \"{how}\"),"));
    }
    let of_kind = |kind: &str| -> Vec<String> {
        let rows = found.iter().filter(|(_, (found, _))| found == kind);
        rows.map(|(op, (_, text))| format!("{op}: {text}"))
            .collect()
    };
    let refused = of_kind("refused");
    println!("{}", refused.join("\n"));
    let not_executed = DEADLY.iter().filter(|(_, ranks, _)| ranks.is_empty());
    let not_executed: Vec<_> = not_executed.map(|(op, _, why)| (op, why)).collect();
    for (op, why) in &not_executed {
        println!("{op}: not executed: {why}");
    }
    let (ran, references, wrong) = (of_kind("ran"), of_kind("reference"), of_kind("wrong"));
    println!(
        "{} ops: {} executed, {} refused by a rule of their own, {} refused because only graphs \
         have references, {} not executed",
        found.len() + not_executed.len(),
        ran.len(),
        refused.len(),
        references.len(),
        not_executed.len()
    );
    assert!(deadly.is_empty(), "{}", deadly.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(found.len() + not_executed.len(), tfp_ops::OP_COUNT);
    // The others want operands of several shapes, files, devices or servers.
    assert!(ran.len() * 3 > found.len(), "only {} ops ran", ran.len());
}
