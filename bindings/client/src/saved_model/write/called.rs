//! The functions of a model as what describes them.

use tfp_core::wire::{Writer, shape_proto};

use crate::saved_model::structure::Structure;
use crate::saved_model::trace::Traced;

/// What a function gets after its arguments.
#[derive(Clone, Copy)]
pub(super) enum Captured {
    /// The number of a variable of the model.
    Variable(usize),
    /// The number of a constant.
    Constant(usize),
    /// The number of a table of the model.
    Table(usize),
    /// The number of a file beside the model.
    File(usize),
}

/// A function that is called in the graph, or only in eager mode.
pub(super) struct Called<'t> {
    pub(super) traced: &'t Traced,
    pub(super) placeholders: Vec<String>,
    pub(super) results: Vec<String>,
    pub(super) captures: Vec<Captured>,
    /// Whether its one result is returned as it is, not by its name.
    pub(super) is_plain: bool,
}

impl Called<'_> {
    /// Writes a `SignatureDef`.
    pub(super) fn write_signature(&self, out: &mut Writer) {
        let lists = [
            (1, &self.traced.inputs, &self.placeholders),
            (2, &self.traced.outputs, &self.results),
        ];
        for (number, specs, tensors) in lists {
            for (spec, tensor) in specs.iter().zip(tensors) {
                out.message(number, |entry| {
                    entry.bytes(1, spec.name.as_bytes());
                    entry.message(2, |info| {
                        info.bytes(1, tensor.as_bytes());
                        info.int(2, spec.dtype.number().into());
                        info.bytes(3, &shape_proto(&spec.shape));
                    });
                });
            }
        }
        out.bytes(3, b"tensorflow/serving/predict");
    }

    /// Writes a `SavedBareConcreteFunction`, whose arguments are given by name.
    pub(super) fn write_bare(&self, out: &mut Writer) {
        out.bytes(1, self.traced.function.name().as_bytes());
        for spec in &self.traced.inputs {
            out.bytes(2, spec.name.as_bytes());
        }
        // A single argument may be given without its name.
        out.int(3, (self.traced.inputs.len() == 1).into());
        out.message(4, |spec| {
            spec.message(1, |arguments| {
                arguments.message(54, |tuple| self.write_argument_spec(tuple));
            });
            spec.message(5, |none| none.bytes(1, &[]));
        });
    }

    /// Writes Python's `FullArgSpec` of a function that takes keywords alone.
    fn write_argument_spec(&self, tuple: &mut Writer) {
        tuple.bytes(1, b"FullArgSpec");
        write_pair(tuple, "args", |value| value.message(51, |_| {}));
        for key in ["varargs", "varkw", "defaults"] {
            write_pair(tuple, key, write_none);
        }
        write_pair(tuple, "kwonlyargs", |value| {
            value.message(51, |list| {
                for spec in &self.traced.inputs {
                    list.message(1, |item| item.bytes(13, spec.name.as_bytes()));
                }
            });
        });
        write_pair(tuple, "kwonlydefaults", write_none);
        write_pair(tuple, "annotations", |value| value.message(53, |_| {}));
    }

    /// Writes a `SavedConcreteFunction`.
    pub(super) fn write_concrete(&self, out: &mut Writer, ids: &[usize]) {
        for &id in ids {
            out.int(2, id as i64);
        }
        let arguments = Structure::Tuple(vec![
            Structure::Tuple(Vec::new()),
            Structure::of_specs(&self.traced.inputs),
        ]);
        out.message(3, |out| arguments.write(out));
        let results = match &self.traced.outputs[..] {
            [one] if self.is_plain => Structure::Tensor(one.clone()),
            all => Structure::of_specs(all),
        };
        out.message(4, |out| results.write(out));
    }
}

/// Writes a field of a `NamedTupleValue`.
fn write_pair(tuple: &mut Writer, key: &str, write: impl FnOnce(&mut Writer)) {
    tuple.message(2, |out| {
        out.bytes(1, key.as_bytes());
        out.message(2, write);
    });
}

/// Writes Python's `None`.
fn write_none(value: &mut Writer) {
    value.bytes(1, &[]);
}
