//! What the tests start: runs graphs and models of files on tensors of files, and makes a graph.
//!
//! A folder of tensors has a file `manifest` with a line per tensor, `NAME DTYPE DIMS` (`-` for a
//! scalar), and a file per line, named by its number: plain elements, or strings each after its length
//! as a little-endian `u64`.

use std::error::Error;
use std::fs;
use std::path::Path;

use tfp_core::{
    Context, DataType, EagerContext, Graph, ImportOptions, Output, SavedModel, Session,
    SessionOptions, Shape, Tensor,
};
use tfp_ops::{add_v2, concat_v2, mat_mul, relu, softmax, split, tanh};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn read_tensors(folder: &Path) -> Outcome<Vec<(String, Tensor)>> {
    let manifest = fs::read_to_string(folder.join("manifest"))?;
    let read = |(number, line): (usize, &str)| -> Outcome<(String, Tensor)> {
        let [name, dtype, dims] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("bad line in the manifest: {line}").into());
        };
        let dtype = DataType::from_name(dtype).ok_or("unknown dtype")?;
        let dims: Vec<i64> = match dims {
            "-" => Vec::new(),
            dims => dims.split(',').map(str::parse).collect::<Result<_, _>>()?,
        };
        let bytes = fs::read(folder.join(number.to_string()))?;
        if dtype != DataType::STRING {
            return Ok((name.to_owned(), Tensor::from_bytes(dtype, &bytes, &dims)?));
        }
        let (mut strings, mut rest) = (Vec::new(), &bytes[..]);
        while let Some((length, tail)) = rest.split_first_chunk::<8>() {
            let (string, tail) = tail.split_at(usize::try_from(u64::from_le_bytes(*length))?);
            strings.push(string);
            rest = tail;
        }
        Ok((name.to_owned(), Tensor::from_strings(&strings, &dims)?))
    };
    manifest.lines().enumerate().map(read).collect()
}

fn write_tensors(folder: &Path, tensors: &[(String, Tensor)]) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let mut manifest = String::new();
    for (number, (name, tensor)) in tensors.iter().enumerate() {
        let dims: Vec<String> = tensor.dims().iter().map(i64::to_string).collect();
        let dims = if dims.is_empty() {
            "-".to_owned()
        } else {
            dims.join(",")
        };
        manifest += &format!("{name} {} {dims}\n", tensor.dtype());
        let bytes = if tensor.dtype() == DataType::STRING {
            let strings = tensor.as_strings()?;
            strings
                .iter()
                .flat_map(|s| [&(s.len() as u64).to_le_bytes()[..], s].concat())
                .collect()
        } else {
            tensor.as_bytes()?.to_vec()
        };
        fs::write(folder.join(number.to_string()), bytes)?;
    }
    Ok(fs::write(folder.join("manifest"), manifest)?)
}

/// Runs a `GraphDef` in a session.
fn run_graph(file: &str, feeds: &Path, out: &Path, fetches: &[String]) -> Outcome<()> {
    let graph = Graph::new()?;
    graph.import(&fs::read(file)?, &ImportOptions::default())?;
    let feeds = read_tensors(feeds)?;
    let inputs: Vec<Output> = feeds
        .iter()
        .map(|(name, _)| graph.output(name))
        .collect::<Result<_, _>>()?;
    let outputs: Vec<Output> = fetches
        .iter()
        .map(|name| graph.output(name))
        .collect::<Result<_, _>>()?;
    let pairs: Vec<_> = inputs
        .iter()
        .zip(feeds.iter().map(|(_, tensor)| tensor))
        .collect();
    let values = Session::new(&graph)?.eval(&pairs, &outputs.iter().collect::<Vec<_>>())?;
    let named: Vec<_> = fetches.iter().cloned().zip(values).collect();
    write_tensors(out, &named)
}

/// Calls a signature of a SavedModel.
fn run_model(folder: &str, feeds: &Path, out: &Path, signature: &str) -> Outcome<()> {
    let model = SavedModel::load(folder, &["serve"], &SessionOptions::default())?;
    let feeds = read_tensors(feeds)?;
    let pairs: Vec<_> = feeds
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    let values: Vec<_> = model.call(signature, &pairs)?.into_iter().collect();
    write_tensors(out, &values)
}

/// A small network over most of what a call can have: lists, literals, attributes.
fn network<C: Context>(ctx: &C, x: &C::Value) -> tfp_core::Result<Vec<C::Value>> {
    let weights = [
        [0.5_f32, -1.0, 2.0, 0.25],
        [1.5, 0.0, -0.5, 1.0],
        [-1.0, 1.0, 1.0, 3.0],
    ];
    let hidden = add_v2(
        ctx,
        mat_mul(ctx, x, weights, Default::default())?,
        [0.1, 0.2, 0.3, 0.4],
    )?;
    let hidden = relu(ctx, hidden)?;
    let mut parts = split(ctx, 1, &hidden, 2)?;
    let (right, left) = (parts.pop(), parts.pop());
    let (Some(left), Some(right)) = (left, right) else {
        return Err(tfp_core::Error::argument("split returned too few parts"));
    };
    let joined = concat_v2(ctx, (tanh(ctx, &left)?, &right), 1)?;
    Ok(vec![softmax(ctx, &joined)?, joined])
}

/// Makes a graph, runs it here in both modes, and writes it for Python.
fn make_graph(file: &str, feeds: &Path, out: &Path) -> Outcome<()> {
    let graph = Graph::new()?;
    let scope = graph.scope();
    let x = scope.placeholder("x", DataType::FLOAT, &Shape::from([-1, 3]))?;
    let outputs = network(&scope.sub_scope("net"), &x)?;
    fs::write(file, graph.to_graph_def()?)?;
    let (_, input) = read_tensors(feeds)?.into_iter().next().ok_or("no feed")?;
    let fetches: Vec<&Output> = outputs.iter().collect();
    let values = Session::new(&graph)?.eval(&[(&x, &input)], &fetches)?;
    let eager = EagerContext::new()?;
    let executed = network(&eager, &eager.handle(&input)?)?;
    let mut named: Vec<(String, Tensor)> = outputs.iter().map(Output::name).zip(values).collect();
    for (number, handle) in executed.iter().enumerate() {
        named.push((format!("eager{number}"), handle.to_tensor()?));
    }
    write_tensors(out, &named)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [what, file, feeds, out, rest @ ..] => {
            let (feeds, out) = (Path::new(feeds), Path::new(out));
            match (what.as_str(), rest) {
                ("graph", fetches) => run_graph(file, feeds, out, fetches),
                ("model", [signature]) => run_model(file, feeds, out, signature),
                ("make", []) => make_graph(file, feeds, out),
                _ => Err("unknown command".into()),
            }
        }
        _ => Err("usage: runner graph|model|make FILE FEEDS OUT [FETCH...|SIGNATURE]".into()),
    }
}
