//! Models of your own: a struct of layers, and how they are called.

use std::collections::BTreeSet;
use std::sync::Arc;

use tfp_core::{Error, Result};

use super::node::{Node, snake_case};
use super::parts::Parts;
use super::{Built, BuiltMany, Layer, Model, one_input, only};
use crate::nn::Weights;

/// How a model of your own calls the layers in its fields.
///
/// `#[derive(Model)]` makes the struct a [`Layer`], for a [`Sequential`](super::Sequential), a [`Node`], or
/// a field of another model. [`Self::model`] makes a model of it alone. Like each layer the struct is a
/// description, and each use of it has variables of its own.
///
/// A field gives the variables of its layer their names, such as `hidden/kernel`, `blocks/0/kernel` for a
/// `Vec` or an array, and `block/hidden/kernel` for a model in a model. [`Layer::on`] calls a field. One that
/// is called twice has its variables once.
///
/// ```
/// use tfp::nn::layer::{Composed, Dense, Dropout, Layer, Node};
/// use tfp::nn::{Activation, Model, Weights};
/// use tfp::{EagerContext, Result};
///
/// #[derive(Model)]
/// struct Classifier {
///     hidden: Vec<Dense>,
///     dropout: Option<Dropout>,
///     class: Dense,
///     #[model(skip)]
///     is_deep: bool,
/// }
///
/// impl Composed for Classifier {
///     fn call(&self, x: &Node) -> Result<Node> {
///         let mut x = x.clone();
///         for layer in &self.hidden {
///             x = layer.on(&x)?.then(Activation::Relu)?;
///         }
///         if let Some(dropout) = &self.dropout {
///             x = dropout.on(&x)?;
///         }
///         self.class.on(&x)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// # if tfp::api().is_err() { return Ok(()); }
/// let net = Classifier {
///     hidden: vec![Dense::new(16), Dense::new(16)],
///     dropout: None,
///     class: Dense::new(3),
///     is_deep: true,
/// };
/// let weights = Weights::new(&EagerContext::new()?, 7);
/// let model = net.model(&[&Node::input(&weights, "x", &[8])?])?;
/// let names: Vec<&str> = model.variables().iter().map(|one| one.name()).collect();
/// assert_eq!(names[..3], ["hidden/0/kernel", "hidden/0/bias", "hidden/1/kernel"]);
/// assert_eq!(names[4..], ["class/kernel", "class/bias"]);
/// # Ok(())
/// # }
/// ```
///
/// The compiler refuses a struct with parameters, a tuple, one without a layer, and a field that is not a
/// layer:
///
/// ```compile_fail
/// use tfp::nn::{Model, layer::{Composed, Layer}};
///
/// #[derive(Model)]
/// struct Any<L: Layer> {
///     layer: L,
/// }
/// # impl<L: Layer> Composed for Any<L> {}
/// ```
///
/// ```compile_fail
/// use tfp::nn::{Model, layer::{Composed, Dense}};
///
/// #[derive(Model)]
/// struct Pair(Dense, Dense);
/// # impl Composed for Pair {}
/// ```
///
/// ```compile_fail
/// use tfp::nn::{Model, layer::Composed};
///
/// #[derive(Model)]
/// struct Empty {}
/// # impl Composed for Empty {}
/// ```
///
/// ```compile_fail
/// use tfp::nn::{Model, layer::{Composed, Dense}};
///
/// #[derive(Model)]
/// struct Wide {
///     layer: Dense,
///     size: usize,
/// }
/// # impl Composed for Wide {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it calls its layers",
    note = "implement `tfp::nn::layer::Composed` for it"
)]
pub trait Composed: Layer + Fields {
    /// Calls the layers with one input and returns the output.
    ///
    /// # Errors
    /// What the calls say.
    fn call(&self, x: &Node) -> Result<Node> {
        Err(Error::argument(format!(
            "{} is called with the one input '{}', for which it has to implement Composed::call",
            self.kind(),
            x.name()
        )))
    }

    /// Calls the layers with any number of inputs and returns the outputs. By default there is one of
    /// each.
    ///
    /// # Errors
    /// What the calls say.
    fn call_many(&self, inputs: &[Node]) -> Result<Vec<Node>> {
        match inputs {
            [x] => Ok(vec![self.call(x)?]),
            _ => Err(one_input(&self.kind(), inputs.len())),
        }
    }

    /// Makes a model, whose variables have the names of the fields. Its inputs have the names, types and
    /// shapes of the nodes. A single output is called `y`, and several ones as the layers that they are of.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a node that is not an input, and for a
    /// field that is not called; and what the calls say.
    fn model(&self, inputs: &[&Node]) -> Result<Model> {
        compose(self, |parts| {
            let inputs = inputs.iter().map(|input| input.within(parts));
            inputs.collect()
        })
    }

    #[doc(hidden)]
    fn built(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        only(self.built_many(weights, &[input])?)
    }

    #[doc(hidden)]
    fn built_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let place = weights.layer(&snake_case(&self.kind()));
        let model = compose(self, |parts| {
            let inputs = inputs.iter().enumerate().map(|(index, shape)| {
                Node::any_input(&place, &format!("x{index}"), None, shape)?.within(parts)
            });
            inputs.collect()
        })?;
        model.built()
    }
}

/// The layers in the fields of a struct, which `#[derive(Model)]` lists.
pub trait Fields {
    /// Visits each layer with its path, such as `hidden` or `blocks/0`.
    fn each_layer(&self, visit: &mut dyn FnMut(&str, &dyn Layer));
}

/// A type that a field can have: a layer, or an `Option`, a `Vec` or an array of such types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a layer",
    note = "`#[model(skip)]` leaves the field out of the model"
)]
pub trait Field {
    /// Visits each layer with its path, which begins with the given one.
    fn each_layer_at(&self, path: &str, visit: &mut dyn FnMut(&str, &dyn Layer));
}

impl<L: Layer> Field for L {
    fn each_layer_at(&self, path: &str, visit: &mut dyn FnMut(&str, &dyn Layer)) {
        visit(path, self);
    }
}

impl<F: Field> Field for Option<F> {
    fn each_layer_at(&self, path: &str, visit: &mut dyn FnMut(&str, &dyn Layer)) {
        if let Some(field) = self {
            field.each_layer_at(path, visit);
        }
    }
}

impl<F: Field> Field for Vec<F> {
    fn each_layer_at(&self, path: &str, visit: &mut dyn FnMut(&str, &dyn Layer)) {
        listed(self, path, visit);
    }
}

impl<F: Field, const COUNT: usize> Field for [F; COUNT] {
    fn each_layer_at(&self, path: &str, visit: &mut dyn FnMut(&str, &dyn Layer)) {
        listed(self, path, visit);
    }
}

fn listed<F: Field>(fields: &[F], path: &str, visit: &mut dyn FnMut(&str, &dyn Layer)) {
    for (index, field) in fields.iter().enumerate() {
        field.each_layer_at(&format!("{path}/{index}"), visit);
    }
}

/// Calls a struct's layers with inputs, which know the parts that they are given.
fn compose<M: Composed + ?Sized>(
    layers: &M,
    inputs: impl FnOnce(&Arc<Parts>) -> Result<Vec<Node>>,
) -> Result<Model> {
    let mut fields = Vec::new();
    layers.each_layer(&mut |path, layer| fields.push((path.to_owned(), layer.address())));
    let parts = Arc::new(Parts::new(fields));
    let inputs = inputs(&parts)?;
    let called = layers.call_many(&inputs);
    // An address means nothing once the struct is gone, also not in a node that is kept.
    let left = parts.close();
    let outputs = called?;
    if !left.is_empty() {
        return Err(Error::argument(format!(
            "{} does not call its layers {}; call them as `{}.on(&x)`, or leave the fields out by \
             `#[model(skip)]`",
            layers.kind(),
            left.join(", "),
            expression(&left[0]),
        )));
    }
    let names = output_names(&outputs);
    let named = names.iter().map(String::as_str).zip(&outputs);
    let named: Vec<(&str, &Node)> = named.collect();
    Model::new(&inputs.iter().collect::<Vec<_>>(), &named)
}

/// A layer of a struct as Rust names it: `self.blocks[0]` of `blocks/0`.
fn expression(path: &str) -> String {
    let mut parts = path.split('/');
    let mut expression = format!("self.{}", parts.next().unwrap_or_default());
    for index in parts {
        expression += &format!("[{index}]");
    }
    expression
}

/// The names of outputs: those of the layers, which a number makes unique.
fn output_names(outputs: &[Node]) -> Vec<String> {
    if let [_] = outputs {
        return vec!["y".to_owned()];
    }
    let mut seen = BTreeSet::new();
    let names = outputs.iter().map(|output| {
        let mut name = output.name().to_owned();
        let mut number = 0;
        while !seen.insert(name.clone()) {
            number += 1;
            name = format!("{}_{number}", output.name());
        }
        name
    });
    names.collect()
}
