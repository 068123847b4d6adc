//! Every call of TensorFlow that can throw is fenced: the sources tell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Functions that stand outside of every fence, and why they may. A name may end in a star.
const NEVER_THROW: &[(&str, &str)] = &[
    ("TFE_CancellationManagerIs*", "it reads a number"),
    (
        "TFE_CancellationManagerStartCancel",
        "it has no result to tell of an exception",
    ),
    (
        "TFE_ContextClearCaches",
        "it has no result to tell of an exception",
    ),
    ("TFE_ContextEnableRunMetadata", "it sets a number"),
    (
        "TFE_ContextSetExecutorForThread",
        "it has no result to tell of an exception",
    ),
    (
        "TFE_ContextSetThreadLocalDevicePlacementPolicy",
        "it has no result to tell of an exception",
    ),
    (
        "TFE_Delete*",
        "C++ ends the process where the end of an object throws",
    ),
    (
        "TFE_ExecutorClearError",
        "it has no result to tell of an exception",
    ),
    ("TFE_ExecutorIsAsync", "it reads a number"),
    ("TFE_TensorHandleDataType", "it reads a number"),
    ("TF_AbortWhile", "it deletes"),
    (
        "TF_Delete*",
        "C++ ends the process where the end of an object throws",
    ),
    ("TF_DeviceListCount", "it reads a number"),
    ("TF_Dim", "it reads a number"),
    ("TF_ForEachPayload", "an error is being told"),
    ("TF_FunctionName", "it lends a text"),
    ("TF_GetCode", "it reads a number"),
    ("TF_GetOpList", "it lends bytes"),
    ("TF_GraphNextOperation", "it reads a pointer"),
    ("TF_ImportGraphDefResults*", "it lends lists"),
    ("TF_Message", "it lends a text"),
    ("TF_NumDims", "it reads a number"),
    ("TF_OperationAllInputs", "it fills a list of the caller"),
    ("TF_OperationDevice", "it lends a text"),
    ("TF_OperationGetAttrNameLength", "it reads a number"),
    ("TF_OperationGetControl*", "it fills a list of the caller"),
    ("TF_OperationGetNumAttrs", "it reads a number"),
    ("TF_OperationName", "it lends a text"),
    ("TF_OperationNum*", "it reads a number"),
    ("TF_OperationOpType", "it lends a text"),
    (
        "TF_OperationOutputConsumers",
        "it fills a list of the caller",
    ),
    ("TF_OperationOutputNumConsumers", "it reads a number"),
    ("TF_OperationOutputType", "it reads a number"),
    ("TF_ServerTarget", "it lends a text"),
    ("TF_SetStatus", "an error is being told"),
    (
        "TF_StringCopy",
        "it is C: without memory it ends the process, and the caller looks for memory first",
    ),
    ("TF_StringDealloc", "it deletes"),
    ("TF_StringGet*", "it reads a field"),
    ("TF_TensorByteSize", "it reads a number"),
    ("TF_TensorData", "it lends memory"),
    ("TF_TensorMaybeMove", "it compares a count"),
    ("TF_TensorType", "it reads a number"),
    ("TF_Version", "it lends a text"),
];

/// Functions of ours whose caller has the fence around all that they call.
const FENCED_BY_CALLERS: &[(&str, &str)] = &[
    ("attr/set.rs", "set_in_eager"),
    ("attr/set.rs", "set_in_graph"),
    ("eager/context.rs", "run"),
    ("eager/pool.rs", "reset"),
    ("eager/pool.rs", "take"),
    ("graph.rs", "op_def"),
    ("graph.rs", "to_graph_def"),
    ("graph.rs", "versions"),
    ("graph/inner.rs", "has"),
    ("graph/scope.rs", "describe"),
    ("host.rs", "run"),
];

/// A call: the file, the function of ours, the function of TensorFlow.
type Place = (String, String, String);

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("the folder of the sources");
    for entry in entries.map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if !entry.to_string_lossy().ends_with("_test.rs") {
            found.push(entry);
        }
    }
}

/// The name that begins a text.
fn word(text: &str) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

fn is_fence(code: &str) -> bool {
    let code = code.strip_prefix("fence").unwrap_or_default();
    code.starts_with("d(") || code.trim_start().starts_with(".call(")
}

/// Returns the calls that no `fenced(...)` or `fence.call(...)` is around.
fn unfenced(file: &str, text: &str) -> Vec<Place> {
    let code = text.lines().map(|line| {
        let is_comment = line.trim_start().starts_with("//");
        if is_comment { "" } else { line }
    });
    let code = code.collect::<Vec<_>>().join("\n");
    let (mut depth, mut fence, mut function, mut found) = (0, None, "", Vec::new());
    for (at, c) in code.char_indices() {
        let rest = &code[at..];
        match c {
            '(' => depth += 1,
            ')' => {
                depth -= 1;
                fence = fence.filter(|&outside| outside < depth);
            }
            'f' if fence.is_none() && is_fence(rest) => fence = Some(depth),
            'f' if rest.starts_with("fn ") && fence.is_none() => function = word(&rest[3..]),
            '.' if fence.is_none() => {
                let name = word(&rest[1..]);
                let is_call = rest[1 + name.len()..].starts_with('(');
                if is_call && (name.starts_with("TF_") || name.starts_with("TFE_")) {
                    found.push((file.to_owned(), function.to_owned(), name.to_owned()));
                }
            }
            _ => {}
        }
    }
    found
}

fn is_named(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[test]
fn calls_that_can_throw_are_fenced() {
    let root = ["bindings/core/src", "src"].map(PathBuf::from);
    let root = root.into_iter().find(|folder| folder.is_dir());
    let root = root.expect("the sources");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 40, "{files:?}");
    let (mut calls, mut used) = (Vec::new(), BTreeSet::<&(&str, &str)>::new());
    for file in &files {
        let name = file.strip_prefix(&root).expect("a file of the folder");
        let text = fs::read_to_string(file).expect("a source");
        calls.extend(unfenced(&name.to_string_lossy(), &text));
    }
    calls.retain(|(file, function, name)| {
        let by_caller = FENCED_BY_CALLERS
            .iter()
            .find(|row| **row == (file, function));
        let by_name = NEVER_THROW.iter().find(|(row, _)| is_named(name, row));
        used.extend(by_name);
        used.extend(by_caller.filter(|_| by_name.is_none()));
        by_name.is_none() && by_caller.is_none()
    });
    assert!(calls.is_empty(), "no fence around {calls:#?}");
    let rows = NEVER_THROW.iter().chain(FENCED_BY_CALLERS);
    let unused: Vec<_> = rows.filter(|row| !used.contains(row)).collect();
    assert!(unused.is_empty(), "nothing needs {unused:#?}");
}

#[test]
fn calls_outside_of_fences_are_found() {
    let text = "fn a() {\n    fenced(|| unsafe { api.TF_One(x(1)) })?;\n    api.TF_Two();\n}\n\
                // api.TF_Three()\nfn b() { let f = api.TF_Four; fence\n.call(|| api.TF_Six()).map(|()| d.TFE_Five()) }\n";
    let found = unfenced("f.rs", text);
    let names: Vec<_> = found.iter().map(|(_, f, name)| (&**f, &**name)).collect();
    assert_eq!(names, [("a", "TF_Two"), ("b", "TFE_Five")]);
}
