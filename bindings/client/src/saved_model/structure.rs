//! The structures of arguments and results: tensors in lists, tuples and maps.

use std::collections::BTreeMap;
use std::fmt;

use tfp_core::wire::{Reader, Value, Writer, read_shape, shape_proto};
use tfp_core::{DataType, Result, Shape};

/// A value of Python that a function was traced with, as `training=True`.
#[derive(Clone, Debug, PartialEq)]
pub enum PythonValue {
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i64),
    /// A float.
    Float(f64),
    /// A str.
    Text(String),
}

impl fmt::Display for PythonValue {
    /// Writes the value as Python does, a text in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => write!(f, "'{value}'"),
        }
    }
}

impl From<bool> for PythonValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for PythonValue {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<i64> for PythonValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for PythonValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for PythonValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// A `StructuredValue`, as far as it tells tensors and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Structure {
    /// Something else, as `None` or a type.
    #[default]
    Nothing,
    /// A value without tensors.
    Value(PythonValue),
    /// A tensor.
    Tensor(Spec),
    /// Several tensors of which nothing is known but their number.
    Composite(usize),
    List(Vec<Structure>),
    Tuple(Vec<Structure>),
    /// Sorted by the keys, which is the order of the tensors too.
    Map(BTreeMap<String, Structure>),
}

/// What is known of an argument or result of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its name: that of the argument, or the key among the results.
    pub name: String,
    /// Its element type.
    pub dtype: DataType,
    /// What is known of its shape.
    pub shape: Shape,
}

impl Default for Spec {
    /// A tensor of which nothing is known.
    fn default() -> Self {
        Self {
            name: String::new(),
            dtype: DataType::from_number(0),
            shape: Shape::unknown(),
        }
    }
}

/// Tells the types of tensors, in their order, where they are not known.
pub(super) fn tell_types(specs: &mut [Spec], types: &[(String, DataType)]) {
    for (spec, (_, dtype)) in specs.iter_mut().zip(types) {
        if spec.dtype.number() == 0 {
            spec.dtype = *dtype;
        }
    }
}

/// Structures that are nested more deeply are damaged.
const DEPTH: usize = 64;
/// The most tensors of a structure; functions have thousands at most.
const MOST_TENSORS: usize = 1 << 16;

impl Structure {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let structure = Self::read_at(bytes, 0)?;
        match structure.count() {
            count if count <= MOST_TENSORS => Ok(structure),
            count => Err(tfp_core::Error::argument(format!(
                "the arguments of a function consist of {count} tensors"
            ))),
        }
    }

    /// Returns the number of tensors.
    fn count(&self) -> usize {
        let sum = |items: &mut dyn Iterator<Item = &Self>| {
            items.fold(0, |sum: usize, item| sum.saturating_add(item.count()))
        };
        match self {
            Self::Nothing | Self::Value(_) => 0,
            Self::Tensor(_) => 1,
            Self::Composite(count) => *count,
            Self::List(items) | Self::Tuple(items) => sum(&mut items.iter()),
            Self::Map(map) => sum(&mut map.values()),
        }
    }

    fn read_at(bytes: &[u8], depth: usize) -> Result<Self> {
        let mut structure = Self::Nothing;
        if depth > DEPTH {
            return Err(tfp_core::Error::argument(
                "the arguments of a function are nested too deeply",
            ));
        }
        for field in Reader::new("StructuredValue", bytes) {
            let (number, value) = field?;
            let inner = || value.bytes();
            structure = match number {
                11 => match value.value() {
                    Value::Fixed64(bits) => Self::Value(f64::from_bits(bits).into()),
                    _ => Self::Nothing,
                },
                12 => Self::Value(unzigzag(value.int()?).into()),
                13 => Self::Value(value.text()?.into()),
                14 => Self::Value((value.int()? != 0).into()),
                33 | 35 => Self::Tensor(read_spec(inner()?)?),
                34 => Self::Composite(read_components(inner()?)?),
                51 => Self::List(read_list(inner()?, depth)?),
                52 => Self::Tuple(read_list(inner()?, depth)?),
                53 => {
                    let mut map = BTreeMap::new();
                    for field in Reader::new("DictValue", inner()?) {
                        if let (1, entry) = field? {
                            let (key, value) = read_pair(entry.bytes()?, depth)?;
                            map.insert(key, value);
                        }
                    }
                    Self::Map(map)
                }
                54 => {
                    let mut list = Vec::new();
                    for field in Reader::new("NamedTupleValue", inner()?) {
                        if let (2, pair) = field? {
                            list.push(read_pair(pair.bytes()?, depth)?.1);
                        }
                    }
                    Self::Tuple(list)
                }
                _ => Self::Nothing,
            };
        }
        Ok(structure)
    }

    /// Returns the tensors in the order in which a function takes or returns them, named by the key
    /// of the map that they are in, else by their own name, else by their number.
    pub(super) fn flatten(&self) -> Vec<Spec> {
        let mut list = Vec::new();
        self.flatten_into(None, &mut list);
        for (at, spec) in list.iter_mut().enumerate() {
            if spec.name.is_empty() {
                spec.name = at.to_string();
            }
        }
        list
    }

    fn flatten_into(&self, key: Option<&str>, list: &mut Vec<Spec>) {
        match self {
            Self::Nothing | Self::Value(_) => {}
            Self::Tensor(spec) => list.push(Spec {
                name: key.unwrap_or(&spec.name).to_owned(),
                ..spec.clone()
            }),
            Self::Composite(count) => {
                for _ in 0..*count {
                    list.push(Spec::default());
                }
            }
            Self::List(items) | Self::Tuple(items) => {
                items.iter().for_each(|item| item.flatten_into(None, list));
            }
            Self::Map(map) => {
                for (key, value) in map {
                    value.flatten_into(Some(key), list);
                }
            }
        }
    }

    /// Makes the map of some tensors.
    pub(super) fn of_specs(specs: &[Spec]) -> Self {
        Self::Map(
            specs
                .iter()
                .map(|spec| (spec.name.clone(), Self::Tensor(spec.clone())))
                .collect(),
        )
    }

    pub(super) fn write(&self, out: &mut Writer) {
        match self {
            Self::Nothing | Self::Composite(_) => out.bytes(1, &[]),
            Self::Value(PythonValue::Float(value)) => out.double(11, *value),
            Self::Value(PythonValue::Int(value)) => out.int(12, zigzag(*value)),
            Self::Value(PythonValue::Text(value)) => out.bytes(13, value.as_bytes()),
            Self::Value(PythonValue::Bool(value)) => out.int(14, i64::from(*value)),
            Self::Tensor(spec) => out.message(33, |out| {
                out.bytes(1, spec.name.as_bytes());
                out.bytes(2, &shape_proto(&spec.shape));
                out.int(3, spec.dtype.number().into());
            }),
            Self::List(items) => out.message(51, |out| {
                items
                    .iter()
                    .for_each(|item| out.message(1, |out| item.write(out)));
            }),
            Self::Tuple(items) => out.message(52, |out| {
                items
                    .iter()
                    .for_each(|item| out.message(1, |out| item.write(out)));
            }),
            Self::Map(map) => out.message(53, |out| {
                for (key, value) in map {
                    out.message(1, |entry| {
                        entry.bytes(1, key.as_bytes());
                        entry.message(2, |out| value.write(out));
                    });
                }
            }),
        }
    }
}

/// An integer as it stands in a field of type `sint64`.
const fn zigzag(value: i64) -> i64 {
    (value << 1) ^ (value >> 63)
}

/// The integer of a field of type `sint64`.
const fn unzigzag(bits: i64) -> i64 {
    (bits.cast_unsigned() >> 1).cast_signed() ^ -(bits & 1)
}

/// The parameters of a function of Python: their names in order, and the values of those that may be
/// left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parameters {
    pub(super) names: Vec<String>,
    pub(super) defaults: BTreeMap<String, PythonValue>,
}

impl Parameters {
    /// Reads a `FunctionSpec`.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let (mut found, mut is_method) = (Self::default(), false);
        for field in Reader::new("FunctionSpec", bytes) {
            match field? {
                (1, value) => found = Self::read_full(value.bytes()?)?,
                (2, value) => is_method = value.int()? != 0,
                _ => {}
            }
        }
        // The object of a method is not among the arguments of its bodies.
        if is_method && found.names.first().is_some_and(|name| name == "self") {
            found.names.remove(0);
        }
        Ok(found)
    }

    /// Reads a `StructuredValue` that is a `FullArgSpec` of Python.
    fn read_full(bytes: &[u8]) -> Result<Self> {
        let mut parts = BTreeMap::new();
        for field in Reader::new("StructuredValue", bytes) {
            let (54, value) = field? else { continue };
            for field in Reader::new("NamedTupleValue", value.bytes()?) {
                if let (2, pair) = field? {
                    let (key, value) = read_pair(pair.bytes()?, 0)?;
                    parts.insert(key, value);
                }
            }
        }
        let items = |name: &str| match parts.get(name) {
            Some(Structure::List(items) | Structure::Tuple(items)) => items.as_slice(),
            _ => &[],
        };
        let names = items("args").iter().map(|name| match name {
            Structure::Value(PythonValue::Text(name)) => name.clone(),
            _ => String::new(),
        });
        let names: Vec<String> = names.collect();
        let mut defaults = BTreeMap::new();
        // They are those of the last parameters.
        for (name, value) in names.iter().rev().zip(items("defaults").iter().rev()) {
            if let Structure::Value(value) = value {
                defaults.insert(name.clone(), value.clone());
            }
        }
        if let Some(Structure::Map(more)) = parts.get("kwonlydefaults") {
            for (name, value) in more {
                if let Structure::Value(value) = value {
                    defaults.insert(name.clone(), value.clone());
                }
            }
        }
        Ok(Self { names, defaults })
    }

    /// Returns the values that a body was traced with, by parameter; `inputs` is what it takes: a tuple
    /// of arguments by place, and a map of those by name.
    pub(super) fn values(&self, inputs: &Structure) -> BTreeMap<String, PythonValue> {
        let Structure::Tuple(both) = inputs else {
            return BTreeMap::new();
        };
        let places = both.iter().flat_map(|part| match part {
            Structure::Tuple(items) | Structure::List(items) => items.as_slice(),
            _ => &[],
        });
        let placed = self.names.iter().cloned().zip(places);
        let named = both.iter().filter_map(|part| match part {
            Structure::Map(map) => Some(map.iter().map(|(name, value)| (name.clone(), value))),
            _ => None,
        });
        let all = placed.chain(named.flatten());
        all.filter_map(|(name, value)| match value {
            Structure::Value(value) => Some((name, value.clone())),
            _ => None,
        })
        .collect()
    }
}

fn read_pair(bytes: &[u8], depth: usize) -> Result<(String, Structure)> {
    let (mut key, mut value) = (String::new(), Structure::Nothing);
    for field in Reader::new("PairValue", bytes) {
        match field? {
            (1, field) => key = field.text()?.to_owned(),
            (2, field) => value = Structure::read_at(field.bytes()?, depth + 1)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn read_list(bytes: &[u8], depth: usize) -> Result<Vec<Structure>> {
    let mut list = Vec::new();
    for field in Reader::new("ListValue", bytes) {
        if let (1, item) = field? {
            list.push(Structure::read_at(item.bytes()?, depth + 1)?);
        }
    }
    Ok(list)
}

fn read_spec(bytes: &[u8]) -> Result<Spec> {
    let mut spec = Spec::default();
    for field in Reader::new("TensorSpecProto", bytes) {
        match field? {
            (1, name) => spec.name = name.text()?.to_owned(),
            (2, shape) => spec.shape = read_shape(shape.bytes()?)?,
            (3, dtype) => {
                spec.dtype = DataType::from_number(u32::try_from(dtype.int()?).unwrap_or(0));
            }
            _ => {}
        }
    }
    Ok(spec)
}

/// Reads of how many tensors a `TypeSpecProto` tells.
fn read_components(bytes: &[u8]) -> Result<usize> {
    let mut count = 0;
    for field in Reader::new("TypeSpecProto", bytes) {
        if let (4, value) = field? {
            count = value.int()?;
        }
    }
    match usize::try_from(count) {
        Ok(count) if count < 1 << 16 => Ok(count),
        _ => Err(tfp_core::Error::argument(format!(
            "an argument of a function consists of {count} tensors"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use tfp_core::wire::Writer;
    use tfp_core::{DataType, Shape};

    use super::{Parameters, PythonValue, Spec, Structure};

    #[test]
    fn structures_are_read_as_they_were_written() {
        let spec = |name: &str| Spec {
            name: name.to_owned(),
            dtype: DataType::FLOAT,
            shape: Shape::from([-1, 2]),
        };
        let structure = Structure::Tuple(vec![
            Structure::List(vec![Structure::Tensor(spec("first")), Structure::Nothing]),
            Structure::of_specs(&[spec("z"), spec("a")]),
        ]);
        let mut out = Writer::new();
        structure.write(&mut out);
        let read = Structure::read(&out.into_bytes()).expect("a structure");
        assert_eq!(read, structure);
        let names: Vec<String> = read.flatten().into_iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["first", "a", "z"]);
    }

    #[test]
    fn values_of_python_are_no_tensors() {
        let values = [
            (PythonValue::Bool(true), "True"),
            (PythonValue::Bool(false), "False"),
            (PythonValue::Int(i64::MIN), "-9223372036854775808"),
            (PythonValue::Int(3), "3"),
            (PythonValue::Float(2.0), "2.0"),
            (PythonValue::from("b"), "'b'"),
        ];
        for (value, text) in values {
            assert_eq!(value.to_string(), text);
            let structure = Structure::Value(value);
            let mut out = Writer::new();
            structure.write(&mut out);
            let read = Structure::read(&out.into_bytes()).expect("a structure");
            assert_eq!((&read, read.flatten().len()), (&structure, 0));
        }
        let mut out = Writer::new();
        out.int(12, 5);
        let read = Structure::read(&out.into_bytes()).expect("a structure");
        assert_eq!(read, Structure::Value(PythonValue::Int(-3)));
        let mut out = Writer::new();
        out.int(51, 1);
        let error = Structure::read(&out.into_bytes()).expect_err("a list that is a number");
        assert!(error.to_string().contains("expected bytes"), "{error}");
    }

    /// `def f(self, x, training=False, mode="a", *, k=3)`.
    fn parameters() -> Parameters {
        let text = |text: &str| Structure::Value(text.into());
        let parts = [
            (
                "args",
                Structure::List(["self", "x", "training", "mode"].map(text).into()),
            ),
            (
                "defaults",
                Structure::Tuple(vec![Structure::Value(false.into()), text("a")]),
            ),
            (
                "kwonlydefaults",
                Structure::Map([("k".to_owned(), Structure::Value(3.into()))].into()),
            ),
        ];
        let mut out = Writer::new();
        out.message(1, |spec| {
            spec.message(54, |tuple| {
                for (key, value) in parts {
                    tuple.message(2, |pair| {
                        pair.bytes(1, key.as_bytes());
                        pair.message(2, |out| value.write(out));
                    });
                }
            });
        });
        out.int(2, 1);
        Parameters::read(&out.into_bytes()).expect("parameters")
    }

    #[test]
    fn parameters_have_names_and_defaults() {
        let found = parameters();
        assert_eq!(found.names, ["x", "training", "mode"]);
        let defaults: Vec<String> = found
            .defaults
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(defaults, ["k=3", "mode='a'", "training=False"]);
    }

    #[test]
    fn values_of_a_body_have_the_names_of_parameters() {
        let inputs = Structure::Tuple(vec![
            Structure::Tuple(vec![
                Structure::Tensor(Spec::default()),
                Structure::Value(true.into()),
                Structure::Nothing,
            ]),
            Structure::Map([("k".to_owned(), Structure::Value(4.into()))].into()),
        ]);
        let found = parameters().values(&inputs);
        let expected = [("k", PythonValue::Int(4)), ("training", true.into())];
        assert!(
            found
                .iter()
                .map(|(name, value)| (&**name, value.clone()))
                .eq(expected)
        );
        assert!(parameters().values(&Structure::Nothing).is_empty());
    }

    #[test]
    fn structures_of_too_many_tensors_are_refused() {
        let mut list = Writer::new();
        for _ in 0..100 {
            list.message(1, |item| {
                item.message(34, |components| components.int(4, 60_000));
            });
        }
        let mut value = Writer::new();
        value.bytes(51, &list.into_bytes());
        let error = Structure::read(&value.into_bytes()).expect_err("too many");
        assert!(error.to_string().contains("6000000 tensors"), "{error}");
    }

    #[test]
    fn structures_without_an_end_are_refused() {
        let mut bytes = Vec::new();
        for _ in 0..200 {
            let mut list = Writer::new();
            list.bytes(1, &bytes);
            let mut value = Writer::new();
            value.bytes(51, &list.into_bytes());
            bytes = value.into_bytes();
        }
        assert!(Structure::read(&bytes).is_err());
    }
}
