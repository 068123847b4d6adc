//! Functions of a `GraphDef`, under names that no other model has.

use std::cell::Cell;
use std::collections::BTreeSet;

use tfp_core::wire::{Reader, Value, Writer};
use tfp_core::{Error, Result};

use crate::variable::ANONYMOUS;

/// A function as it is, and the name that it had.
pub(super) struct Renamed {
    pub(super) name: String,
    pub(super) function_def: Vec<u8>,
}

/// Reads the functions of a `GraphDef` and adds a suffix to their names and to those of gradients,
/// wherever they stand.
pub(super) fn renamed_functions(
    graph_def: &[u8],
    gradients: &BTreeSet<&str>,
    suffix: &str,
) -> Result<Vec<Renamed>> {
    let mut bodies = Vec::new();
    for field in Reader::new("GraphDef", graph_def) {
        let (2, library) = field? else { continue };
        for field in Reader::new("FunctionDefLibrary", library.bytes()?) {
            if let (1, function) = field? {
                bodies.push(function.bytes()?);
            }
        }
    }
    let names: Vec<String> = bodies
        .iter()
        .map(|body| function_name(body))
        .collect::<Result<_>>()?;
    let rename = Rename {
        names: names.iter().map(String::as_str).collect(),
        gradients,
        suffix,
        depth: Cell::new(0),
    };
    names
        .iter()
        .zip(bodies)
        .map(|(name, body)| {
            Ok(Renamed {
                name: name.clone(),
                function_def: rename.function(body)?,
            })
        })
        .collect()
}

fn function_name(function_def: &[u8]) -> Result<String> {
    for field in Reader::new("FunctionDef", function_def) {
        let (1, signature) = field? else { continue };
        for field in Reader::new("OpDef", signature.bytes()?) {
            if let (1, name) = field? {
                return Ok(name.text()?.to_owned());
            }
        }
    }
    Ok(String::new())
}

/// Whether an attribute has a name.
fn is_named(attr_entry: &[u8], name: &[u8]) -> Result<bool> {
    for field in Reader::new("AttrEntry", attr_entry) {
        if let (1, key) = field? {
            return Ok(key.bytes()? == name);
        }
    }
    Ok(false)
}

/// How deeply functions may be nested in the attributes of functions.
const DEPTH: usize = 64;

struct Rename<'n> {
    names: BTreeSet<&'n str>,
    gradients: &'n BTreeSet<&'n str>,
    suffix: &'n str,
    /// How deeply the attribute that is being read is nested.
    depth: Cell<usize>,
}

type Part<'p> = &'p dyn Fn(u32, &[u8]) -> Result<Option<Vec<u8>>>;

/// Copies a message; `part` may replace its fields of bytes.
fn copy(message: &'static str, bytes: &[u8], part: Part<'_>) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    for field in Reader::new(message, bytes) {
        let (number, field) = field?;
        let changed = match field.value() {
            Value::Bytes(inner) => part(number, inner)?,
            _ => None,
        };
        match changed {
            Some(changed) => out.bytes(number, &changed),
            None => out.raw(field.raw()),
        }
    }
    Ok(out.into_bytes())
}

impl Rename<'_> {
    /// Returns the new name of a function of the model.
    fn name(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let name = std::str::from_utf8(bytes).ok()?;
        let known = self.names.contains(name);
        known.then(|| format!("{name}{}", self.suffix).into_bytes())
    }

    fn function(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        copy("FunctionDef", bytes, &|number, inner| match number {
            1 => copy("OpDef", inner, &|number, inner| {
                Ok((number == 1).then(|| self.name(inner)).flatten())
            })
            .map(Some),
            3 => self.node(inner).map(Some),
            5 => self.attr_entry(inner).map(Some),
            _ => Ok(None),
        })
    }

    fn node(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        copy("NodeDef", bytes, &|number, inner| match number {
            2 => Ok(self.name(inner)),
            5 if is_named(inner, b"shared_name")? => {
                let is_own = |name: &[u8]| !name.is_empty() && name != ANONYMOUS.as_bytes();
                self.suffixed(inner, &is_own).map(Some)
            }
            5 if is_named(inner, b"_gradient_op_type")? => {
                let is_own = |name: &[u8]| {
                    std::str::from_utf8(name).is_ok_and(|name| self.gradients.contains(name))
                };
                self.suffixed(inner, &is_own).map(Some)
            }
            5 => self.attr_entry(inner).map(Some),
            _ => Ok(None),
        })
    }

    /// Adds the suffix to a name that is the model's own: that of a resource, by which kernels find it,
    /// or of a gradient. That of another model is another one.
    fn suffixed(&self, bytes: &[u8], is_own: &dyn Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
        copy("AttrEntry", bytes, &|number, inner| match number {
            2 => copy("AttrValue", inner, &|number, name| {
                let is_own = number == 2 && is_own(name);
                Ok(is_own.then(|| [name, self.suffix.as_bytes()].concat()))
            })
            .map(Some),
            _ => Ok(None),
        })
    }

    fn attr_entry(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        copy("AttrEntry", bytes, &|number, inner| match number {
            2 => self.attr(inner).map(Some),
            _ => Ok(None),
        })
    }

    fn attr(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        copy("AttrValue", bytes, &|number, inner| match number {
            10 => self.name_and_attrs(inner).map(Some),
            1 => copy("ListValue", inner, &|number, inner| match number {
                9 => self.name_and_attrs(inner).map(Some),
                _ => Ok(None),
            })
            .map(Some),
            _ => Ok(None),
        })
    }

    fn name_and_attrs(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let depth = self.depth.get();
        if depth == DEPTH {
            return Err(Error::argument(
                "functions are nested too deeply in attributes",
            ));
        }
        self.depth.set(depth + 1);
        let copied = copy("NameAttrList", bytes, &|number, inner| match number {
            1 => Ok(self.name(inner)),
            2 => self.attr_entry(inner).map(Some),
            _ => Ok(None),
        });
        self.depth.set(depth);
        copied
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tfp_core::wire::Writer;

    use super::renamed_functions;

    /// A function whose attribute names a function whose attribute names a function ...
    fn nested(depth: usize) -> Vec<u8> {
        let mut attr = Vec::new();
        for _ in 0..depth {
            let mut value = Writer::new();
            value.message(10, |func| {
                func.bytes(1, b"f");
                func.message(2, |entry| {
                    entry.bytes(1, b"a");
                    entry.bytes(2, &attr);
                });
            });
            attr = value.into_bytes();
        }
        let mut graph = Writer::new();
        graph.message(2, |library| {
            library.message(1, |function| {
                function.message(1, |signature| signature.bytes(1, b"f"));
                function.message(5, |entry| {
                    entry.bytes(1, b"a");
                    entry.bytes(2, &attr);
                });
            });
        });
        graph.into_bytes()
    }

    #[test]
    fn functions_in_attributes_of_functions_have_a_largest_depth() {
        let found = renamed_functions(&nested(3), &BTreeSet::new(), "_2").expect("functions");
        let text = String::from_utf8_lossy(&found[0].function_def).into_owned();
        assert_eq!(text.matches("f_2").count(), 4);
        for depth in [65, 2000] {
            let error = renamed_functions(&nested(depth), &BTreeSet::new(), "_2").map(drop);
            assert!(error.is_err_and(|error| error.to_string().contains("too deeply")));
        }
    }
}
