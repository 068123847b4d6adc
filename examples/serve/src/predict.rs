//! The bodies of `:predict`, by rows (`instances`) and by columns (`inputs`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::array::Array;
use crate::each_type;
use crate::failure::Failure;
use crate::json::{Json, write_text};
use crate::leaf::Leaf;
use crate::model::{Signature, Spec};

/// The signature of a request that names none.
const DEFAULT: &str = "serving_default";

/// A request that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The signature.
    pub signature: String,
    /// An array per input, in the order of the signature.
    pub arrays: Vec<Array>,
    /// The number of rows, if the request has rows and its answer is to have them.
    pub rows: Option<usize>,
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// What is not JSON, and what does not fit the signature.
    pub fn read(body: &[u8], all: &BTreeMap<String, Signature>) -> Result<Self, Failure> {
        let text = std::str::from_utf8(body)
            .map_err(|error| Failure::invalid(format!("the body is not UTF-8: {error}")))?;
        let json = Json::parse(text).map_err(|error| Failure::invalid(error.to_string()))?;
        let Json::Object(members) = &json else {
            let kind = json.kind();
            return Err(Failure::invalid(format!(
                "the body is {kind}, expected an object"
            )));
        };
        let known = ["signature_name", "instances", "inputs"];
        if let Some((name, _)) = members.iter().find(|(name, _)| !known.contains(&&**name)) {
            return Err(Failure::invalid(format!(
                "the body has a member '{name}'; it may have {}",
                known.join(", ")
            )));
        }
        let name = match json.get("signature_name") {
            None => DEFAULT,
            Some(Json::Text(name)) => name,
            Some(other) => {
                let kind = other.kind();
                return Err(Failure::invalid(format!(
                    "signature_name is {kind}, expected a string"
                )));
            }
        };
        let (name, signature) = signature_of(all, name)?;
        let reader = Reader {
            signature,
            most: text.len(),
        };
        let (arrays, rows) = match (json.get("instances"), json.get("inputs")) {
            (Some(instances), None) => reader.rows(instances)?,
            (None, Some(inputs)) => (reader.columns(inputs)?, None),
            _ => {
                return Err(Failure::invalid(
                    "expected one of 'instances' (by rows) and 'inputs' (by columns)",
                ));
            }
        };
        for (spec, array) in signature.inputs.iter().zip(&arrays) {
            spec.check(array)?;
        }
        Ok(Self {
            signature: name.to_owned(),
            arrays,
            rows,
        })
    }
}

/// The signature of a name, and that name; an empty one is `serving_default`.
///
/// # Errors
/// What there is instead.
pub(crate) fn signature_of<'a>(
    all: &'a BTreeMap<String, Signature>,
    name: &str,
) -> Result<(&'a str, &'a Signature), Failure> {
    let name = if name.is_empty() { DEFAULT } else { name };
    let found = all.get_key_value(name);
    let found = found.map(|(name, signature)| (name.as_str(), signature));
    found.ok_or_else(|| {
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        Failure::invalid(format!(
            "Serving signature name: \"{name}\" not found in signature def; there is {}",
            names.join(", ")
        ))
    })
}

struct Reader<'a> {
    signature: &'a Signature,
    /// More elements than the body can have.
    most: usize,
}

impl Reader<'_> {
    fn rows(&self, instances: &Json<'_>) -> Result<(Vec<Array>, Option<usize>), Failure> {
        let Json::List(instances) = instances else {
            let kind = instances.kind();
            return Err(Failure::invalid(format!(
                "instances is {kind}, expected a list"
            )));
        };
        if instances.is_empty() {
            return Err(Failure::invalid("instances is empty"));
        }
        let inputs = &self.signature.inputs;
        let column = |at: usize| -> Result<Vec<&Json<'_>>, Failure> {
            let value = |(row, instance)| match self.named(instance) {
                Some(members) => self
                    .member(members, &inputs[at].name)
                    .map_err(|error| Failure::invalid(format!("instance {row}: {error}"))),
                None if inputs.len() == 1 => Ok(instance),
                None => Err(Failure::invalid(format!(
                    "instance {row} is {}, expected an object with {}",
                    instance.kind(),
                    self.names()
                ))),
            };
            instances.iter().enumerate().map(value).collect()
        };
        let array = |(at, spec)| self.array(spec, &column(at)?, true);
        let arrays: Result<_, _> = inputs.iter().enumerate().map(array).collect();
        Ok((arrays?, Some(instances.len())))
    }

    fn columns(&self, inputs: &Json<'_>) -> Result<Vec<Array>, Failure> {
        let value = |spec: &Spec| match self.named(inputs) {
            Some(members) => self.member(members, &spec.name),
            None if self.signature.inputs.len() == 1 => Ok(inputs),
            None => Err(Failure::invalid(format!(
                "inputs is {}, expected an object with {}",
                inputs.kind(),
                self.names()
            ))),
        };
        let array = |spec| self.array(spec, &[value(spec)?], false);
        self.signature.inputs.iter().map(array).collect()
    }

    /// The members of an object that names inputs; `None` for a value, such as bytes in base64.
    fn named<'v, 't>(&self, value: &'v Json<'t>) -> Option<&'v [(Cow<'t, str>, Json<'t>)]> {
        match value {
            Json::Object(members) => {
                let is_input = |name| self.signature.inputs.iter().any(|spec| spec.name == name);
                let is_bytes = members.len() == 1 && members[0].0 == "b64" && !is_input("b64");
                (!is_bytes).then_some(members)
            }
            _ => None,
        }
    }

    fn member<'v, 't>(
        &self,
        members: &'v [(Cow<'t, str>, Json<'t>)],
        name: &str,
    ) -> Result<&'v Json<'t>, Failure> {
        let inputs = &self.signature.inputs;
        let is_unknown = |member: &str| inputs.iter().all(|spec| spec.name != member);
        if let Some((member, _)) = members.iter().find(|(member, _)| is_unknown(member)) {
            let names = self.names();
            return Err(Failure::invalid(format!(
                "there is not an input '{member}', the inputs are {names}"
            )));
        }
        let mut found = members.iter().filter(|(member, _)| member == name);
        found
            .next_back()
            .map(|(_, value)| value)
            .ok_or_else(|| Failure::invalid(format!("input '{name}' is not given")))
    }

    fn names(&self) -> String {
        let names = self.signature.inputs.iter().map(|spec| spec.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    }

    /// Reads an array: of rows, or of a value.
    fn array(&self, spec: &Spec, values: &[&Json<'_>], rows: bool) -> Result<Array, Failure> {
        let mut inner = Vec::new();
        let mut first = values.first().copied();
        while let Some(Json::List(items)) = first {
            inner.push(items.len());
            first = items.first();
        }
        let in_spec = |problem: String| {
            let name = &spec.name;
            Failure::invalid(format!("input '{name}': {problem}"))
        };
        let mut dims = inner.clone();
        if rows {
            dims.insert(0, values.len());
        }
        let mut sizes = dims.iter();
        let count = sizes.try_fold(1_usize, |count, &size| count.checked_mul(size));
        // A shape that the first lists promise, and the others don't keep.
        let count = count.filter(|&count| count <= self.most);
        let count = count.ok_or_else(|| in_spec("the lists have different lengths".into()))?;
        let mut data = spec.element()?.room(count);
        let dtype = data.dtype().name();
        for value in values {
            each_type!(&mut data, list => fill(list, value, &inner, dtype)).map_err(in_spec)?;
        }
        Array::new(dims, data).map_err(|error| in_spec(error.message))
    }
}

fn fill<L: Leaf>(
    list: &mut Vec<L>,
    value: &Json<'_>,
    dims: &[usize],
    dtype: &str,
) -> Result<(), String> {
    let Some((&size, inner)) = dims.split_first() else {
        list.push(L::read(value).ok_or_else(|| match value {
            Json::Number(text) => format!("expected a value of {dtype}, found {text}"),
            Json::List(_) => "the lists have different depths".to_owned(),
            other => format!("expected a value of {dtype}, found {}", other.kind()),
        })?);
        return Ok(());
    };
    match value {
        Json::List(items) if items.len() == size => {
            let mut items = items.iter();
            items.try_for_each(|item| fill(list, item, inner, dtype))
        }
        Json::List(items) => Err(format!("a list of {} beside a list of {size}", items.len())),
        _ => Err("the lists have different depths".to_owned()),
    }
}

/// Writes an answer: by rows where the request had rows.
///
/// # Errors
/// For results without as many rows as the request.
pub fn answer(outputs: &[Spec], arrays: &[Array], rows: Option<usize>) -> Result<String, Failure> {
    let elements: usize = arrays.iter().map(|array| array.data.len()).sum();
    let mut to = String::with_capacity(64 + 16 * elements);
    let named = |to: &mut String, write: &dyn Fn(&mut String, &Spec, &Array)| {
        if let ([spec], [array]) = (outputs, arrays) {
            return write(to, spec, array);
        }
        to.push('{');
        for (at, (spec, array)) in outputs.iter().zip(arrays).enumerate() {
            to.push_str(if at > 0 { ", " } else { "" });
            write_text(to, &spec.name);
            to.push_str(": ");
            write(to, spec, array);
        }
        to.push('}');
    };
    let Some(rows) = rows else {
        to.push_str("{\"outputs\": ");
        named(&mut to, &|to, spec, array| {
            value(to, spec, array, &array.dims, 0);
        });
        to.push_str("}\n");
        return Ok(to);
    };
    for (spec, array) in outputs.iter().zip(arrays) {
        if array.rows() != Some(rows) {
            return Err(Failure::invalid(format!(
                "output '{}' has the shape {:?} for {rows} instances: send 'inputs' in place of \
                 'instances'",
                spec.name, array.dims
            )));
        }
    }
    to.push_str("{\"predictions\": [");
    for row in 0..rows {
        to.push_str(if row > 0 { ", " } else { "" });
        named(&mut to, &|to, spec, array| {
            let inner = &array.dims[1..];
            value(
                to,
                spec,
                array,
                inner,
                row * inner.iter().product::<usize>(),
            );
        });
    }
    to.push_str("]}\n");
    Ok(to)
}

/// Writes the elements from a place on, as lists of these sizes.
fn value(to: &mut String, spec: &Spec, array: &Array, dims: &[usize], from: usize) {
    // TensorFlow Serving tells bytes from texts by the name.
    let binary = spec.name.ends_with("_bytes");
    let count: usize = dims.iter().product();
    each_type!(&array.data, list => nested(to, &list[from..from + count], dims, binary));
}

fn nested<L: Leaf>(to: &mut String, list: &[L], dims: &[usize], binary: bool) {
    let Some((&size, inner)) = dims.split_first() else {
        return list.iter().for_each(|element| element.write(to, binary));
    };
    to.push('[');
    let step: usize = inner.iter().product();
    for at in 0..size {
        to.push_str(if at > 0 { ", " } else { "" });
        nested(to, &list[at * step..(at + 1) * step], inner, binary);
    }
    to.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Data;
    use crate::failure::Status;

    fn spec(name: &str, dtype: &str, dims: &[i64]) -> Spec {
        Spec {
            name: name.into(),
            tensor: format!("{name}:0"),
            dtype: dtype.into(),
            dims: Some(dims.to_vec()),
        }
    }

    fn signatures() -> BTreeMap<String, Signature> {
        let one = Signature {
            inputs: vec![spec("x", "DT_FLOAT", &[-1, 2])],
            ..Signature::default()
        };
        let two = Signature {
            inputs: vec![spec("a", "DT_INT64", &[-1]), spec("b", "DT_STRING", &[-1])],
            ..Signature::default()
        };
        let odd = Signature {
            inputs: vec![spec("c", "DT_COMPLEX64", &[-1])],
            ..Signature::default()
        };
        let all = [("serving_default", one), ("two", two), ("odd", odd)];
        all.map(|(name, signature)| (name.into(), signature)).into()
    }

    fn read(body: &str) -> Result<Request, Failure> {
        Request::read(body.as_bytes(), &signatures())
    }

    fn floats(dims: &[usize], values: &[f32]) -> Array {
        Array::new(dims.to_vec(), Data::F32(values.to_vec())).unwrap()
    }

    #[test]
    fn rows_and_columns_are_the_same_arrays() {
        let expected = floats(&[2, 2], &[1.0, 2.5, -3.0, 0.1]);
        for (body, rows) in [
            (r#"{"instances": [[1, 2.5], [-3, 0.1]]}"#, Some(2)),
            (
                r#"{"instances": [{"x": [1, 2.5]}, {"x": [-3, 0.1]}]}"#,
                Some(2),
            ),
            (r#"{"inputs": [[1, 2.5], [-3, 0.1]]}"#, None),
            (r#"{"inputs": {"x": [[1, 2.5], [-3, 0.1]]}}"#, None),
        ] {
            let request = read(body).unwrap();
            assert_eq!(request.arrays, std::slice::from_ref(&expected), "{body}");
            assert_eq!(request.rows, rows, "{body}");
        }
    }

    #[test]
    fn integers_keep_their_bits_and_bytes_are_base64() {
        let body = r#"{"signature_name": "two", "instances": [
            {"a": 9007199254740993, "b": "text"}, {"a": -1, "b": {"b64": "/wA="}}]}"#;
        let arrays = read(body).unwrap().arrays;
        assert_eq!(arrays[0].data, Data::I64(vec![9_007_199_254_740_993, -1]));
        let bytes = vec![b"text".to_vec(), vec![0xFF, 0]];
        assert_eq!(arrays[1].data, Data::Bytes(bytes));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (body, part) in [
            ("[]", "a list, expected an object"),
            ("{", "JSON is not valid at byte 1"),
            ("{}", "one of 'instances'"),
            (r#"{"instances": [], "inputs": []}"#, "one of 'instances'"),
            (r#"{"instances": []}"#, "empty"),
            (r#"{"instances": 3}"#, "a number, expected a list"),
            (
                r#"{"instances": [[1, 2, 3]]}"#,
                "[-1, 2], found DT_FLOAT of the shape [1, 3]",
            ),
            (
                r#"{"instances": [[1, 2], [3]]}"#,
                "a list of 1 beside a list of 2",
            ),
            (r#"{"instances": [[1, 2], 3]}"#, "different depths"),
            (r#"{"instances": [[1, [2]]]}"#, "different depths"),
            (r#"{"instances": [[1, "a"]]}"#, "DT_FLOAT, found a string"),
            (r#"{"instances": [[1, 1e39]]}"#, "DT_FLOAT, found 1e39"),
            (
                r#"{"instances": [{"y": [1, 2]}]}"#,
                "instance 0: there is not an input 'y'",
            ),
            (r#"{"inputs": {}}"#, "input 'x' is not given"),
            (r#"{"inputs": 1, "more": 1}"#, "a member 'more'"),
            (
                r#"{"signature_name": "no", "inputs": 1}"#,
                "there is odd, serving_default, two",
            ),
            (
                r#"{"signature_name": 1, "inputs": 1}"#,
                "a number, expected a string",
            ),
            (
                r#"{"signature_name": "two", "inputs": [1]}"#,
                "expected an object with a, b",
            ),
            (
                r#"{"signature_name": "two", "inputs": {"a": [1.5], "b": ["x"]}}"#,
                "found 1.5",
            ),
            (
                r#"{"signature_name": "two", "inputs": {"a": [1], "b": [{"b64": "?"}]}}"#,
                "'b'",
            ),
        ] {
            let failure = read(body).unwrap_err();
            assert_eq!(failure.status, Status::Invalid, "{body}");
            assert!(failure.message.contains(part), "{body}: {failure}");
        }
        assert!(Request::read(b"{\"inputs\": \"\xff\"}", &signatures()).is_err());
    }

    #[test]
    fn a_promise_of_many_elements_takes_no_memory() {
        let wide = format!("[{}]", vec!["0"; 1000].join(","));
        let body = format!("{{\"instances\": [{wide}{}]}}", ",[]".repeat(100_000));
        assert!(
            read(&body)
                .unwrap_err()
                .message
                .contains("different lengths")
        );
    }

    #[test]
    fn a_type_without_a_form_is_not_served() {
        let failure = read(r#"{"signature_name": "odd", "inputs": [1]}"#).unwrap_err();
        assert_eq!(failure.status, Status::Unimplemented);
    }

    #[test]
    fn answers_have_rows_or_columns() {
        let y = spec("y", "DT_FLOAT", &[-1, 2]);
        let s = spec("s_bytes", "DT_STRING", &[-1]);
        let arrays = [
            floats(&[2, 2], &[0.1, 1e20, f32::NAN, f32::NEG_INFINITY]),
            Array::new(vec![2], Data::Bytes(vec![b"a".to_vec(), vec![0xFF]])).unwrap(),
        ];
        assert_eq!(
            answer(std::slice::from_ref(&y), &arrays[..1], Some(2)).unwrap(),
            "{\"predictions\": [[0.1, 1e20], [NaN, -Infinity]]}\n"
        );
        assert_eq!(
            answer(&[y.clone(), s.clone()], &arrays, Some(2)).unwrap(),
            "{\"predictions\": [{\"y\": [0.1, 1e20], \"s_bytes\": {\"b64\": \"YQ==\"}}, \
             {\"y\": [NaN, -Infinity], \"s_bytes\": {\"b64\": \"/w==\"}}]}\n"
        );
        assert_eq!(
            answer(&[y.clone(), s], &arrays, None).unwrap(),
            "{\"outputs\": {\"y\": [[0.1, 1e20], [NaN, -Infinity]], \
             \"s_bytes\": [{\"b64\": \"YQ==\"}, {\"b64\": \"/w==\"}]}}\n"
        );
        let error = answer(&[y], &arrays[..1], Some(3)).unwrap_err();
        assert!(error.message.contains("3 instances"), "{error}");
    }
}
