//! Reads what Python's gradients are.

use tfp::{Complex, DataType, Result, Tensor};

/// An attribute of a case.
#[derive(Debug)]
pub enum Attr {
    Int(i64),
    Float(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Type(DataType),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
}

/// An input of a case: one tensor, or a list.
pub enum Input {
    One(Tensor),
    List(Vec<Tensor>),
}

/// A call of an op, and what its gradients are.
#[derive(Default)]
pub struct Case {
    pub name: String,
    pub op: String,
    pub numeric: bool,
    pub python: bool,
    pub second: bool,
    /// Whether only graphs have the op.
    pub graph: bool,
    /// The version of graphs that have the op.
    pub producer: Option<i64>,
    /// The inputs of which the slope is compared; all without a list.
    pub slopes: Option<Vec<usize>>,
    /// Whether matrices stay symmetric.
    pub symmetric: bool,
    /// Values of the outputs, for an op without a kernel.
    pub fed: Vec<Tensor>,
    pub attrs: Vec<(String, Attr)>,
    pub inputs: Vec<Input>,
    /// Output gradients by the output's number.
    pub dys: Vec<(usize, Tensor)>,
    pub grads: Vec<Option<Tensor>>,
    pub weights: Vec<Tensor>,
    pub seconds: Vec<Option<Tensor>>,
}

impl Case {
    /// Returns the inputs, those of lists one by one.
    pub fn flat(&self) -> Vec<&Tensor> {
        self.inputs
            .iter()
            .flat_map(|input| match input {
                Input::One(tensor) => std::slice::from_ref(tensor),
                Input::List(list) => list,
            })
            .collect()
    }
}

fn numbers<T: std::str::FromStr>(fields: &[&str]) -> Vec<T> {
    fields
        .iter()
        .map(|field| field.parse().ok().expect("a number"))
        .collect()
}

fn dtype(name: &str) -> DataType {
    match name {
        "f4" => DataType::FLOAT,
        "f8" => DataType::DOUBLE,
        "c8" => DataType::COMPLEX64,
        "c16" => DataType::COMPLEX128,
        "i4" => DataType::INT32,
        "i8" => DataType::INT64,
        "u8" => DataType::UINT64,
        "b1" => DataType::BOOL,
        other => panic!("the fixture has a tensor of type {other}"),
    }
}

fn tensor(fields: &[&str]) -> Result<Tensor> {
    let dims: Vec<i64> = match fields[1] {
        "-" => Vec::new(),
        dims => dims
            .split(',')
            .map(|dim| dim.parse().expect("a size"))
            .collect(),
    };
    let values: Vec<f64> = numbers(&fields[2..]);
    let pairs = |values: &[f64]| -> Vec<Complex<f64>> {
        values
            .chunks(2)
            .map(|pair| Complex {
                re: pair[0],
                im: pair[1],
            })
            .collect()
    };
    match dtype(fields[0]) {
        DataType::FLOAT => {
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            Tensor::from_slice(&values, &dims)
        }
        DataType::INT32 => {
            let values: Vec<i32> = values.iter().map(|&value| value as i32).collect();
            Tensor::from_slice(&values, &dims)
        }
        DataType::INT64 => {
            let values: Vec<i64> = values.iter().map(|&value| value as i64).collect();
            Tensor::from_slice(&values, &dims)
        }
        DataType::UINT64 => {
            let values: Vec<u64> = values.iter().map(|&value| value as u64).collect();
            Tensor::from_slice(&values, &dims)
        }
        DataType::BOOL => {
            let values: Vec<bool> = values.iter().map(|&value| value != 0.0).collect();
            Tensor::from_slice(&values, &dims)
        }
        DataType::COMPLEX128 => Tensor::from_slice(&pairs(&values), &dims),
        _ => Tensor::from_slice(&values, &dims),
    }
}

fn attr(fields: &[&str]) -> Attr {
    match fields[0] {
        "int" => Attr::Int(numbers(&fields[1..])[0]),
        "float" => Attr::Float(numbers(&fields[1..])[0]),
        "bool" => Attr::Bool(fields[1] == "1"),
        "text" => Attr::Text(fields[1..].join(" ")),
        "texts" => Attr::Texts(fields[1..].iter().map(ToString::to_string).collect()),
        "type" => Attr::Type(dtype(fields[1])),
        "ints" => Attr::Ints(numbers(&fields[1..])),
        "floats" => Attr::Floats(numbers(&fields[1..])),
        other => panic!("the fixture has an attribute of kind {other}"),
    }
}

/// Reads the file that the environment names.
fn text() -> String {
    let path = std::env::var("GRADIENT_CASES").expect("GRADIENT_CASES names the fixture");
    std::fs::read_to_string(&path).expect("the fixture can be read")
}

/// Returns what Python's gradients of a program are.
pub fn program(name: &str) -> Vec<f64> {
    let begin = format!("program {} ", name.replace(' ', "_"));
    let text = text();
    let line = text.lines().find_map(|line| line.strip_prefix(&begin));
    let line = line.unwrap_or_else(|| panic!("the fixture has no program '{name}'"));
    numbers(&line.split(' ').collect::<Vec<_>>())
}

/// Returns the ops of which Python has a gradient.
pub fn registered() -> Vec<String> {
    let text = text();
    let ops = text
        .lines()
        .filter_map(|line| line.strip_prefix("registered "));
    ops.map(str::to_owned).collect()
}

/// Reads the cases.
pub fn read() -> Result<Vec<Case>> {
    let text = text();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').filter(|field| !field.is_empty()).collect();
        if ["program", "registered"].contains(&fields[0]) {
            continue;
        }
        if fields[0] == "case" {
            let is = |at: usize| fields[at] == "1";
            cases.push(Case {
                name: fields[1].to_owned(),
                op: fields[2].to_owned(),
                numeric: is(3),
                python: is(4),
                second: is(5),
                graph: is(6),
                ..Case::default()
            });
            continue;
        }
        let case = cases.last_mut().expect("a case begins the file");
        let optional = |fields: &[&str]| -> Result<Option<Tensor>> {
            match fields[1] {
                "none" => Ok(None),
                _ => tensor(&fields[1..]).map(Some),
            }
        };
        match fields[0] {
            "attr" => case.attrs.push((fields[1].to_owned(), attr(&fields[2..]))),
            "input" => case.inputs.push(Input::One(tensor(&fields[1..])?)),
            "producer" => case.producer = numbers(&fields[1..2]).pop(),
            "slopes" => case.slopes = Some(numbers(&fields[1..])),
            "symmetric" => case.symmetric = true,
            "fed" => case.fed.push(tensor(&fields[1..])?),
            "list" => case.inputs.push(Input::List(Vec::new())),
            "item" => match case.inputs.last_mut() {
                Some(Input::List(list)) => list.push(tensor(&fields[1..])?),
                _ => panic!("an item outside of a list"),
            },
            "dy" => case
                .dys
                .push((numbers(&fields[1..2])[0], tensor(&fields[2..])?)),
            "grad" => case.grads.push(optional(&fields)?),
            "weight" => case.weights.push(tensor(&fields[1..])?),
            "second" => case.seconds.push(optional(&fields)?),
            other => panic!("a line of the fixture begins with {other}"),
        }
    }
    Ok(cases)
}
