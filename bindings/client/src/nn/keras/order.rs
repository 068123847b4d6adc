//! The order in which Keras has the layers of a model: it numbers layers of a class and lists
//! variables by it.

use super::names::numbered;
use crate::nn::layer::Model;
use crate::variable::Variable;

/// The inputs and layers of a model in Keras' order.
pub(super) struct Graph {
    pub operations: Vec<Operation>,
    /// What each value comes from: the number of the operation, of its call, and of the output.
    pub origins: Vec<(usize, usize, usize)>,
    /// Whether the outputs have the names of their layers; otherwise they have names of their own.
    pub outputs_by_layer: bool,
    is_sequence: bool,
}

/// An input, by its number, or a layer, by the steps that call it.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Input(usize),
    Layer(Vec<usize>),
}

impl Operation {
    /// The name, with the path of the models around it.
    pub fn name<'m>(&self, model: &'m Model) -> &'m str {
        match self {
            Self::Input(index) => &model.inputs()[*index].name,
            Self::Layer(steps) => {
                let call = &model.steps()[steps[0]].call;
                let keras = call.keras.as_ref().and_then(|one| one.as_ref().ok());
                let own = keras.and_then(|one| one.name.as_deref());
                own.unwrap_or(&call.name)
            }
        }
    }

    pub fn kind<'m>(&self, model: &'m Model) -> &'m str {
        match self {
            Self::Input(_) => "Input",
            Self::Layer(steps) => &model.steps()[steps[0]].call.kind,
        }
    }

    pub fn variables<'m>(&self, model: &'m Model) -> &'m [Variable] {
        match self {
            Self::Input(_) => &[],
            Self::Layer(steps) => &model.steps()[steps[0]].call.variables,
        }
    }
}

impl Graph {
    pub fn of(model: &Model) -> Self {
        let inputs = model.inputs().len();
        let nodes = model.nodes();
        let count = nodes.operation.iter().max().map_or(0, |last| last + 1);
        let mut operations: Vec<Operation> = (0..inputs).map(Operation::Input).collect();
        operations.resize(count, Operation::Layer(Vec::new()));
        let mut call_numbers = vec![0; inputs];
        for (index, &at) in nodes.operation.iter().skip(inputs).enumerate() {
            if let Operation::Layer(steps) = &mut operations[at] {
                call_numbers.push(steps.len());
                steps.push(index);
            }
        }
        // The call and the output of each value.
        let mut values: Vec<(usize, usize)> = (0..inputs).map(|input| (input, 0)).collect();
        for (index, step) in model.steps().iter().enumerate() {
            for output in 0..step.call.outputs.len() {
                let value = step.first + output;
                if values.len() <= value {
                    values.resize(value + 1, (inputs + index, 0));
                }
                values[value] = (inputs + index, output);
            }
        }
        let mut outputs: Vec<(&str, usize)> = model
            .outputs()
            .iter()
            .map(|port| (port.name.as_str(), values[port.value].0))
            .collect();
        let mut names = Vec::new();
        let outputs_by_layer = outputs.iter().all(|(name, node)| {
            let own = operations[nodes.operation[*node]].name(model);
            *name == numbered(own.rsplit('/').next().unwrap_or(own), &mut names)
        });
        if !outputs_by_layer && outputs.len() > 1 {
            outputs.sort_unstable();
        }
        let outputs: Vec<usize> = outputs.into_iter().map(|(_, node)| node).collect();
        let order = nodes.depths(&outputs).operations();
        let mut place = vec![0; operations.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let origins = values
            .iter()
            .map(|&(node, output)| (place[nodes.operation[node]], call_numbers[node], output));
        let is_chain = nodes.parents.iter().enumerate().all(|(node, parents)| {
            let expected = node.checked_sub(1).into_iter().collect::<Vec<usize>>();
            *parents == expected
        });
        let one_each = model
            .steps()
            .iter()
            .all(|step| step.call.outputs.len() == 1);
        let once = operations.len() == nodes.parents.len();
        Self {
            origins: origins.collect(),
            outputs_by_layer,
            is_sequence: model.is_sequence() && is_chain && one_each && once,
            operations: order.iter().map(|&old| operations[old].clone()).collect(),
        }
    }

    /// Whether it is a chain of layers that was made as one.
    pub fn is_sequence(&self) -> bool {
        self.is_sequence
    }
}
