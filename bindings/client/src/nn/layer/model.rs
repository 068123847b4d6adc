//! Models: any graph of layers between inputs and outputs that have names.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use tfp_core::{DataType, Error, ErrorKind, Result};

use super::depth::Nodes;
use super::described::{Arguments, Inside, KerasLayer, fresh_identity};
use super::node::{Call, Node};
use super::{Built, BuiltMany, Layer, MaskList, Pass, only};
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::variable::Variable;

/// A model of layers: a graph from inputs to outputs. A clone is the same model.
///
/// A model is a layer of other ones, too; its variables are then those of both.
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

struct Inner {
    weights: Weights,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    steps: Vec<Step>,
    // The steps in the order in which they are made.
    order: Vec<usize>,
    // How many values there are.
    values: usize,
    variables: Vec<Variable>,
    identity: u64,
    is_sequence: bool,
}

/// An input or an output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The element type of an input, when it is known.
    pub dtype: Option<DataType>,
    /// Its shape, without the batch; -1 stands for any size.
    pub shape: Vec<i64>,
    pub(crate) value: usize,
}

/// One call of a layer: the values that it takes, and the first of those that it gives.
pub(crate) struct Step {
    pub call: Arc<Call>,
    pub inputs: Vec<usize>,
    pub first: usize,
}

impl Step {
    fn parts(&self) -> (&Call, &[usize], usize) {
        (&self.call, &self.inputs, self.first)
    }
}

/// A value with its mask.
pub(crate) type Masked = (AnyValue, Option<AnyValue>);

impl Model {
    /// Makes a model of nodes. Inputs have their own names. Of layers that no output needs, none is in
    /// the model.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a node that isn't an input, for outputs that depend on an input that
    /// is not given, for names that are there twice, and for nodes of different weights.
    pub fn new(inputs: &[&Node], outputs: &[(&str, &Node)]) -> Result<Self> {
        Self::of_nodes(inputs, outputs, false)
    }

    /// Makes a model, which Keras' files call a sequence if it is one.
    pub(crate) fn of_nodes(
        inputs: &[&Node],
        outputs: &[(&str, &Node)],
        is_sequence: bool,
    ) -> Result<Self> {
        let Some((_, first)) = outputs.first() else {
            return Err(Error::argument("a model without an output"));
        };
        let weights = first.weights().clone();
        let mut numbers: HashMap<*const Call, usize> = HashMap::new();
        let mut values = 0;
        let mut ports = Vec::new();
        for node in inputs {
            let call = node.origin();
            if call.forward.is_some() {
                return Err(Error::argument(format!(
                    "'{}' is the output of a layer and can't be an input of a model",
                    node.name()
                )));
            }
            ports.push(Port {
                name: node.name().to_owned(),
                dtype: call.dtype,
                shape: node.shape().to_vec(),
                value: values,
            });
            numbers.insert(Arc::as_ptr(call), values);
            values += 1;
        }
        check_names("inputs", ports.iter().map(|port| port.name.as_str()))?;
        check_names("outputs", outputs.iter().map(|&(name, _)| name))?;

        let mut steps = Vec::new();
        // Without recursion, since a model may be deep: a call is done when its parents are.
        let mut open: Vec<Arc<Call>> = Vec::new();
        for &(name, node) in outputs {
            if !node.weights().is_same(&weights) {
                return Err(Error::argument(format!(
                    "the output '{name}' is of other weights than the first one"
                )));
            }
            open.push(node.origin().clone());
            while let Some(call) = open.last().cloned() {
                if numbers.contains_key(&Arc::as_ptr(&call)) {
                    open.pop();
                    continue;
                }
                if call.forward.is_none() {
                    return Err(Error::argument(format!(
                        "the output '{name}' depends on the input '{}', which is not among the model's \
                         inputs",
                        call.name
                    )));
                }
                let before = open.len();
                for parent in call.parents.iter().rev() {
                    if !numbers.contains_key(&Arc::as_ptr(parent.origin())) {
                        open.push(parent.origin().clone());
                    }
                }
                if open.len() > before {
                    continue;
                }
                open.pop();
                let inputs = call.parents.iter().map(|node| place(&numbers, node));
                let inputs = inputs.collect::<Result<Vec<_>>>()?;
                numbers.insert(Arc::as_ptr(&call), values);
                let first = values;
                values += call.outputs.len();
                steps.push(Step {
                    call,
                    inputs,
                    first,
                });
            }
        }
        let outputs = outputs.iter().map(|&(name, node)| {
            Ok(Port {
                name: name.to_owned(),
                dtype: None,
                shape: node.shape().to_vec(),
                value: place(&numbers, node)?,
            })
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let used: BTreeSet<&str> = steps
            .iter()
            .flat_map(|step| &step.call.variables)
            .map(Variable::name)
            .collect();
        let mut variables = weights.variables();
        variables.retain(|variable| used.contains(variable.name()));
        let nodes = Nodes::of(ports.len(), steps.iter().map(Step::parts));
        let order = order_of(&nodes, &steps, ports.len(), &outputs);
        Ok(Self {
            inner: Arc::new(Inner {
                weights,
                inputs: ports,
                outputs,
                steps,
                order,
                values,
                variables,
                identity: fresh_identity(),
                is_sequence,
            }),
        })
    }

    /// Returns where the variables are.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.inner.weights
    }

    /// Returns the variables of the model's layers, in the order in which they were made.
    #[must_use]
    pub fn variables(&self) -> &[Variable] {
        &self.inner.variables
    }

    /// Returns the variables that training changes.
    #[must_use]
    pub fn trainables(&self) -> Vec<Variable> {
        self.inner.weights.trained(self.inner.variables.clone())
    }

    /// Returns the inputs, in their order.
    #[must_use]
    pub fn inputs(&self) -> &[Port] {
        &self.inner.inputs
    }

    /// Returns the outputs, in their order.
    #[must_use]
    pub fn outputs(&self) -> &[Port] {
        &self.inner.outputs
    }

    /// Makes training leave what is below a path as it is: a layer, or a variable. Batch normalization
    /// there uses its moving mean and variance, and regularizers count nothing, as in Keras. It must be
    /// done before a [`Trainer`](crate::nn::training::Trainer) is made.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] with the names of the layers when there is no variable below the path.
    pub fn freeze(&mut self, path: &str) -> Result<()> {
        self.check_path(path)?;
        self.inner.weights.set_frozen(path, true);
        Ok(())
    }

    /// Lets training change what is below a path again.
    ///
    /// # Errors
    /// As for [`Self::freeze`].
    pub fn unfreeze(&mut self, path: &str) -> Result<()> {
        self.check_path(path)?;
        self.inner.weights.set_frozen(path, false);
        Ok(())
    }

    fn check_path(&self, path: &str) -> Result<()> {
        let mut names = self.inner.variables.iter().map(Variable::name);
        if names.any(|name| crate::nn::weights::is_below(name, path)) {
            return Ok(());
        }
        let mut layers: Vec<&str> = self.steps().iter().map(|step| &*step.call.name).collect();
        layers.dedup();
        Err(Error::argument(format!(
            "no variable is below '{path}'; the model's layers are {}",
            layers.join(", ")
        )))
    }

    /// Whether it was made as a sequence of layers.
    pub(crate) fn is_sequence(&self) -> bool {
        self.inner.is_sequence
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.inner.steps
    }

    /// Returns which values each input and step takes, and which layer it is of.
    pub(crate) fn nodes(&self) -> Nodes {
        Nodes::of(
            self.inner.inputs.len(),
            self.steps().iter().map(Step::parts),
        )
    }

    /// Computes the outputs of inputs, (batch, ...) each, both in their order.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for another number of inputs, and what TensorFlow says.
    pub fn call(&self, pass: &Pass<'_>, inputs: &[AnyValue]) -> Result<Vec<AnyValue>> {
        let unmasked = inputs.iter().map(|input| (input.clone(), None)).collect();
        let outputs = self.run(pass, unmasked)?;
        Ok(outputs.into_iter().map(|(value, _)| value).collect())
    }

    /// Computes the outputs and their masks.
    pub(crate) fn run(&self, pass: &Pass<'_>, inputs: Vec<Masked>) -> Result<Vec<Masked>> {
        let inner = &*self.inner;
        if inputs.len() != inner.inputs.len() {
            return Err(Error::argument(format!(
                "{} inputs for a model that has {}",
                inputs.len(),
                inner.inputs.len()
            )));
        }
        let mut values: Vec<Option<Masked>> = inputs.into_iter().map(Some).collect();
        values.resize(inner.values, None);
        let at = |values: &[Option<Masked>], index: usize| {
            let value = values.get(index).cloned().flatten();
            value.ok_or_else(|| Error::argument("a layer's output was not computed"))
        };
        for step in inner.order.iter().map(|&index| &inner.steps[index]) {
            let Some(forward) = &step.call.forward else {
                continue;
            };
            let (given, masks): (Vec<AnyValue>, MaskList) = step
                .inputs
                .iter()
                .map(|&input| at(&values, input))
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .unzip();
            pass.enter(masks);
            let found = forward(pass, &given).map_err(|error| at_layer(&step.call.name, error))?;
            let masks = pass.leave(found.len());
            if found.len() != step.call.outputs.len() {
                return Err(Error::argument(format!(
                    "layer {} returned {} values, expected {}",
                    step.call.name,
                    found.len(),
                    step.call.outputs.len()
                )));
            }
            for (offset, value) in found.into_iter().zip(masks).enumerate() {
                values[step.first + offset] = Some(value);
            }
        }
        inner
            .outputs
            .iter()
            .map(|port| at(&values, port.value))
            .collect()
    }

    /// The model as a layer that was built.
    pub(super) fn built(&self) -> Result<BuiltMany> {
        let outputs = self.outputs().iter().map(|port| port.shape.clone());
        let model = self.clone();
        BuiltMany::new(outputs.collect(), move |pass, inputs| {
            let masked = inputs
                .iter()
                .enumerate()
                .map(|(index, input)| (input.clone(), pass.mask_of(index)));
            let (values, masks) = model.run(pass, masked.collect())?.into_iter().unzip();
            pass.pass_masks(masks);
            Ok(values)
        })
    }
}

/// Says which layer an error is about.
fn at_layer(name: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Argument { message } => Error::argument(format!("layer {name}: {message}")),
        _ => error,
    }
}

/// The steps in Keras' order, in which a layer that is called several times changes its state.
fn order_of(nodes: &Nodes, steps: &[Step], inputs: usize, outputs: &[Port]) -> Vec<usize> {
    let made_by = |port: &Port| {
        let step = steps.iter().position(|step| {
            (step.first..step.first + step.call.outputs.len()).contains(&port.value)
        });
        step.map_or(port.value, |step| inputs + step)
    };
    let outputs: Vec<usize> = outputs.iter().map(made_by).collect();
    let calls = nodes.depths(&outputs).calls().into_iter();
    calls.filter_map(|call| call.checked_sub(inputs)).collect()
}

/// The number of a node's value.
fn place(numbers: &HashMap<*const Call, usize>, node: &Node) -> Result<usize> {
    let first = numbers.get(&Arc::as_ptr(node.origin()));
    let first = first.ok_or_else(|| Error::argument("a node that no step computes"))?;
    Ok(first + node.index())
}

fn check_names<'n>(what: &str, names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::argument(format!(
                "two {what} of a model are called '{name}'"
            )));
        }
    }
    Ok(())
}

impl Layer for Model {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let call = match self.inputs().len() {
            1 => Arguments::Each,
            _ => Arguments::List,
        };
        Ok(KerasLayer {
            identity: Some(self.inner.identity),
            model: Some(Inside(Arc::new(self.clone()))),
            ..KerasLayer::new("Functional").call(call)
        })
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        only(self.build_many(weights, &[input])?)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        if !self.weights().is_same(weights) {
            return Err(Error::argument(
                "the variables of the model that is called are in other weights; make both models with \
                 the same",
            ));
        }
        let ports = self.inputs();
        let fits = |port: &Port, shape: &[i64]| {
            let mut sizes = port.shape.iter().zip(shape);
            port.shape.len() == shape.len()
                && sizes.all(|(&wanted, &found)| wanted < 0 || found < 0 || wanted == found)
        };
        let fit = ports.len() == inputs.len()
            && ports
                .iter()
                .zip(inputs)
                .all(|(port, shape)| fits(port, shape));
        if !fit {
            let wanted: Vec<&[i64]> = ports.iter().map(|port| &*port.shape).collect();
            return Err(Error::argument(format!(
                "the model takes inputs of shapes {wanted:?} per sample, found {inputs:?}"
            )));
        }
        weights.ask(self.variables());
        self.built()
    }

    fn kind(&self) -> String {
        "Model".to_owned()
    }

    // Its layers do.
    fn casts(&self) -> bool {
        false
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("inputs", &self.inner.inputs)
            .field("outputs", &self.inner.outputs)
            .field("layers", &self.inner.steps.len())
            .finish_non_exhaustive()
    }
}
