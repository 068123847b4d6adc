//! Values of a model that is described: what layers are called with before there is data.

use std::fmt;
use std::sync::Arc;

use tfp_core::{DataType, Error, ErrorKind, Result};

use super::described::KerasLayer;
use super::parts::{Called, Parts};
use super::policy::casting;
use super::{BuiltMany, ForwardMany, LARGEST, Layer};
use crate::nn::{Policy, Weights};
use crate::variable::Variable;

/// A value of a model: an input, or an output of a layer. It knows its shape, and no numbers.
///
/// A layer that is called with nodes makes its variables and returns nodes, so shapes that don't fit
/// are errors there. [`Model::new`](super::Model::new) makes a model of inputs and outputs.
#[derive(Clone)]
pub struct Node {
    call: Arc<Call>,
    output: usize,
}

/// An input, or one call of a layer.
pub(crate) struct Call {
    /// The name of the input or of the layer.
    pub name: String,
    /// The kind of layer.
    pub kind: String,
    /// What it is called with; nothing for an input.
    pub parents: Vec<Node>,
    /// The shapes of its outputs, without the batch.
    pub outputs: Vec<Vec<i64>>,
    /// The function; none for an input.
    pub forward: Option<ForwardMany>,
    /// The variables it uses.
    pub variables: Vec<Variable>,
    /// The element type of an input, when it is known.
    pub dtype: Option<DataType>,
    /// What Keras' files say of the layer, or why they can't; nothing for an input.
    pub keras: Option<Result<KerasLayer>>,
    weights: Weights,
    /// The fields of the struct that is built.
    parts: Option<Arc<Parts>>,
}

impl Drop for Call {
    // A long chain of calls would need as many stack frames.
    fn drop(&mut self) {
        let mut nodes = std::mem::take(&mut self.parents);
        while let Some(node) = nodes.pop() {
            if let Some(mut call) = Arc::into_inner(node.call) {
                nodes.append(&mut call.parents);
            }
        }
    }
}

impl Node {
    /// An input of float32 numbers, whose shape is without the batch; -1 stands for any size.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a size below -1.
    pub fn input(weights: &Weights, name: &str, shape: &[i64]) -> Result<Self> {
        Self::typed_input(weights, name, DataType::FLOAT, shape)
    }

    /// An input of another type, as int64 for numbers of words.
    ///
    /// # Errors
    /// As for [`Self::input`].
    pub fn typed_input(
        weights: &Weights,
        name: &str,
        dtype: DataType,
        shape: &[i64],
    ) -> Result<Self> {
        Self::any_input(weights, name, Some(dtype), shape)
    }

    pub(super) fn any_input(
        weights: &Weights,
        name: &str,
        dtype: Option<DataType>,
        shape: &[i64],
    ) -> Result<Self> {
        if shape.iter().any(|&size| size < -1) {
            return Err(Error::argument(format!(
                "input '{name}': a shape of {shape:?} per sample, expected sizes, or -1 for any"
            )));
        }
        Ok(Self::first(Call {
            name: name.to_owned(),
            kind: "Input".to_owned(),
            parents: Vec::new(),
            outputs: vec![shape.to_vec()],
            forward: None,
            variables: Vec::new(),
            dtype,
            keras: None,
            weights: weights.clone(),
            parts: None,
        }))
    }

    /// Returns an input like this one, from which the layers of a struct are known when they are called.
    pub(super) fn within(&self, parts: &Arc<Parts>) -> Result<Self> {
        let call = &self.call;
        if call.forward.is_some() {
            return Err(Error::argument(format!(
                "'{}' is the output of a layer and can't be an input of a model",
                call.name
            )));
        }
        Ok(Self::first(Call {
            name: call.name.clone(),
            kind: call.kind.clone(),
            parents: Vec::new(),
            outputs: call.outputs.clone(),
            forward: None,
            variables: Vec::new(),
            dtype: call.dtype,
            keras: None,
            weights: call.weights.clone(),
            parts: Some(parts.clone()),
        }))
    }

    fn first(call: Call) -> Self {
        Self {
            call: Arc::new(call),
            output: 0,
        }
    }

    /// Calls a layer with this node.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] with the layer's name for a shape that it does not take, and what
    /// TensorFlow says.
    pub fn then(&self, layer: impl Layer) -> Result<Self> {
        Self::join(layer, &[self])
    }

    /// Calls a layer that has a name, which the paths of its variables begin with.
    ///
    /// # Errors
    /// As for [`Self::then`].
    pub fn then_named(&self, name: &str, layer: impl Layer) -> Result<Self> {
        Self::join_named(name, layer, &[self])
    }

    /// Calls a layer with several nodes, as [`Add`](super::Add) or
    /// [`Concatenate`](super::Concatenate), and returns its first output.
    ///
    /// # Errors
    /// As for [`Self::then`], and [`ErrorKind::Argument`] for nodes of different weights.
    pub fn join(layer: impl Layer, nodes: &[&Self]) -> Result<Self> {
        Self::only(Self::call(None, &layer, nodes)?)
    }

    /// Calls a layer that has a name with several nodes, and returns its first output.
    ///
    /// # Errors
    /// As for [`Self::join`].
    pub fn join_named(name: &str, layer: impl Layer, nodes: &[&Self]) -> Result<Self> {
        Self::only(Self::call(Some(name), &layer, nodes)?)
    }

    /// Calls a layer with several nodes and returns all its outputs.
    ///
    /// # Errors
    /// As for [`Self::join`].
    pub fn outputs(name: Option<&str>, layer: impl Layer, nodes: &[&Self]) -> Result<Vec<Self>> {
        Self::call(name, &layer, nodes)
    }

    fn only(nodes: Vec<Self>) -> Result<Self> {
        let first = nodes.into_iter().next();
        first.ok_or_else(|| Error::argument("the layer has no output"))
    }

    pub(super) fn call(
        name: Option<&str>,
        layer: &dyn Layer,
        nodes: &[&Self],
    ) -> Result<Vec<Self>> {
        let Some(first) = nodes.first() else {
            return Err(Error::argument(format!(
                "{} is called without a node",
                layer.kind()
            )));
        };
        let weights = &first.call.weights;
        let shapes: Vec<&[i64]> = nodes.iter().map(|node| node.shape()).collect();
        let parts = nodes.iter().find_map(|node| node.call.parts.clone());
        let part = parts
            .as_ref()
            .and_then(|parts| parts.call(&layer.address()));
        let name = name.or(part.as_ref().and_then(Called::name));
        let shown = name.map_or_else(|| layer.kind(), |name| format!("{name} ({})", layer.kind()));
        if nodes.iter().any(|node| !node.call.weights.is_same(weights)) {
            return Err(Error::argument(format!(
                "layer {shown}: its inputs are of models with different weights; make all of them with \
                 the same"
            )));
        }
        let Built {
            built,
            name,
            variables,
        } = build(weights, name, part.as_ref(), layer, &shapes).map_err(|error| {
            match error.kind() {
                ErrorKind::Argument { message } => Error::argument(format!(
                    "layer {shown}, called with {}: {message}",
                    names(nodes)
                )),
                _ => error,
            }
        })?;
        let call = Arc::new(Call {
            name,
            kind: layer.kind(),
            parents: nodes.iter().map(|&node| node.clone()).collect(),
            outputs: built.outputs,
            forward: Some(built.forward),
            variables,
            dtype: None,
            keras: Some(described(layer.keras(&shapes), part.as_ref(), weights)),
            weights: weights.clone(),
            parts,
        });
        Ok((0..call.outputs.len())
            .map(|output| Self {
                call: call.clone(),
                output,
            })
            .collect())
    }

    /// Returns the name of the input or of the layer whose output this is.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.call.name
    }

    /// Returns the shape, without the batch; -1 stands for any size.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        self.call
            .outputs
            .get(self.output)
            .map_or(&[], Vec::as_slice)
    }

    /// Returns where its variables are.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.call.weights
    }

    pub(crate) fn origin(&self) -> &Arc<Call> {
        &self.call
    }

    /// Which of the call's outputs it is.
    pub(super) fn index(&self) -> usize {
        self.output
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({} {:?})", self.name(), self.shape())
    }
}

/// The names of nodes, for messages.
fn names(nodes: &[&Node]) -> String {
    let names: Vec<String> = nodes
        .iter()
        .map(|node| format!("'{}'", node.name()))
        .collect();
    names.join(", ")
}

/// A layer that was built, with its name.
struct Built {
    built: BuiltMany,
    name: String,
    variables: Vec<Variable>,
}

fn build(
    weights: &Weights,
    name: Option<&str>,
    part: Option<&Called>,
    layer: &dyn Layer,
    shapes: &[&[i64]],
) -> Result<Built> {
    if let Some(shape) = shapes
        .iter()
        .find(|shape| shape.iter().any(|&size| size > LARGEST))
    {
        return Err(Error::argument(format!(
            "an input of shape {shape:?} per sample, expected sizes up to {LARGEST}"
        )));
    }
    let place = match name {
        Some(name) => &weights.named(name),
        None => weights,
    };
    let place = match part {
        Some(part) if !part.is_sizeless => match part.is_first {
            true => &place.also_noting(&part.taken),
            false => &place.taking(&part.taken),
        },
        _ => place,
    };
    let (asked, named) = (weights.asked(), weights.names());
    let built = layer.build_many(place, shapes)?;
    let built = match layer.casts() {
        true => casting(built, place.layer_policy())?,
        false => built,
    };
    let taken = weights.name_since(named);
    let name = match (taken, name) {
        (Some(taken), _) => taken,
        (None, Some(name)) => weights.unique(name),
        (None, None) => weights.unique(&snake_case(&layer.kind())),
    };
    let variables = weights.asked_since(asked);
    if let Some(part) = part
        && part.is_sizeless
        && !variables.is_empty()
    {
        return Err(Error::argument(format!(
            "the field '{}' has variables and a type without a size, so that others of the type can't be \
             told from it; make it a Box",
            part.path
        )));
    }
    Ok(Built {
        built,
        name,
        variables,
    })
}

/// What Keras' files say of a call: those of one field are calls of one layer.
fn described(
    keras: Result<KerasLayer>,
    part: Option<&Called>,
    weights: &Weights,
) -> Result<KerasLayer> {
    let mut keras = keras?;
    // A file says it of its layers, and a model's layers say it themselves.
    let policy = weights.layer_policy();
    let is_usual = policy == Policy::default();
    let is_model = keras.model.is_some() && keras.around.is_none();
    if !is_usual && keras.outer.is_none() && !is_model {
        keras = keras.with_policy(policy);
    }
    let identity = part.filter(|part| !part.is_sizeless);
    Ok(KerasLayer {
        identity: keras.identity.or(identity.map(|part| part.identity)),
        ..keras
    })
}

/// `GlobalPool` to `global_pool`.
pub(super) fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before = 'A';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !before.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        before = letter;
    }
    snake
}
