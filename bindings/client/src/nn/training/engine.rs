//! Where steps happen: a session, or eager execution with a tape.

use std::path::Path;

use tfp_core::{Context, EagerContext, Operation, Output, Result, Session, Shape, Tensor};

use super::plan::Plan;
use crate::context::any::{AnyContext, Mode};
use crate::context::tape::Tape;
use crate::context::value::AnyValue;
use crate::gradient::gradients;
use crate::nn::layer::{Pass, Sequential};
use crate::nn::loss::Fit;
use crate::nn::optimizer::Rule;
use crate::ops;
use crate::saved_model::ModelWriter;
use crate::variable::{self, Variable};

/// Where steps happen.
pub(super) enum Engine {
    /// In a graph.
    Graph(Box<GraphEngine>),
    /// Eagerly.
    Eager(EagerEngine),
}

pub(super) struct GraphEngine {
    session: Session,
    x: Output,
    truth: Output,
    numbers: [Output; 2],
    // The number of the step, which random numbers follow from.
    index: Output,
    train: Step,
    test: Step,
    predicted: Output,
    slots: Vec<Variable>,
}

/// What a run fetches and runs.
struct Step {
    fetches: Vec<Output>,
    targets: Vec<Operation>,
}

pub(super) struct EagerEngine {
    eager: EagerContext,
    variables: Vec<Variable>,
    slots: Vec<Vec<Variable>>,
}

impl Engine {
    pub fn new<R: Rule>(model: &Sequential, plan: &Plan<R>) -> Result<Self> {
        let cx = model.weights().context();
        match (cx, cx.eager()) {
            (AnyContext::Scope(scope), _) => {
                GraphEngine::new(model, plan, scope).map(|engine| Self::Graph(Box::new(engine)))
            }
            (_, Some(eager)) => {
                let variables = model.weights().trainables();
                Ok(Self::Eager(EagerEngine {
                    slots: plan.optimizer.slots(&eager.any(), &variables)?,
                    eager: eager.clone(),
                    variables,
                }))
            }
            _ => Err(tfp_core::Error::argument(
                "a model is trained in a graph or in eager mode, not inside a function",
            )),
        }
    }

    pub fn train<R: Rule>(
        &self,
        model: &Sequential,
        plan: &Plan<R>,
        x: &Tensor,
        truth: &Tensor,
        numbers: &(Tensor, Tensor),
        index: u64,
    ) -> Result<Vec<Tensor>> {
        match self {
            Self::Graph(graph) => {
                let truth = &graph.fitted(truth)?;
                let [rate, step] = graph.numbers.clone();
                let (x_feed, truth_feed) = (graph.x.clone(), graph.truth.clone());
                let feeds = [x_feed, truth_feed, rate, step, graph.index.clone()];
                let index = &Tensor::scalar(index as i64)?;
                let values = [x, truth, &numbers.0, &numbers.1, index];
                graph.run(&graph.train, &feeds, &values)
            }
            Self::Eager(eager) => eager.train(model, plan, x, truth, numbers, index),
        }
    }

    pub fn test<R: Rule>(
        &self,
        model: &Sequential,
        plan: &Plan<R>,
        x: &Tensor,
        truth: &Tensor,
    ) -> Result<Vec<Tensor>> {
        match self {
            Self::Graph(graph) => {
                let truth = &graph.fitted(truth)?;
                let feeds = [graph.x.clone(), graph.truth.clone()];
                graph.run(&graph.test, &feeds, &[x, truth])
            }
            Self::Eager(eager) => {
                let cx = eager.eager.any();
                let (x, truth) = (cx.constant(x)?, cx.constant(truth)?);
                let pass = Pass::inference(&cx);
                let predicted = model.call(&pass, &x)?;
                let mask = pass.mask();
                let loss = total_loss(model, plan, &cx, [&truth, &predicted], mask.as_ref())?;
                measured(plan, &cx, loss, &truth, &predicted, mask.as_ref())?
                    .iter()
                    .map(|value| value.handle()?.to_tensor())
                    .collect()
            }
        }
    }

    pub fn predict(&self, model: &Sequential, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Graph(graph) => {
                let step = Step {
                    fetches: vec![graph.predicted.clone()],
                    targets: Vec::new(),
                };
                let mut values = graph.run(&step, std::slice::from_ref(&graph.x), &[x])?;
                values
                    .pop()
                    .ok_or_else(|| tfp_core::Error::argument("a session returned no value"))
            }
            Self::Eager(eager) => {
                let cx = eager.eager.any();
                let y = model.call(&Pass::inference(&cx), &cx.constant(x)?)?;
                y.handle()?.to_tensor()
            }
        }
    }

    /// Writes a SavedModel of the inference, whose variables the writer has.
    pub fn export<R: Rule>(
        &self,
        model: &Sequential,
        plan: &Plan<R>,
        mut writer: ModelWriter,
        folder: &Path,
    ) -> Result<()> {
        let name = "serving_default";
        match self {
            Self::Graph(graph) => {
                writer.graph_signature(name, &[("x", &graph.x)], &[("y", &graph.predicted)])?;
                writer.write_from(&graph.session, folder)
            }
            Self::Eager(_) => {
                let argument = ("x", plan.input, batch_of(model.input_shape()));
                writer.signature(name, &[argument], |func, arguments| {
                    let cx = func.any();
                    let y = model.call(&Pass::inference(&cx), &(&arguments["x"]).into())?;
                    Ok(vec![("y".to_owned(), y.output()?.clone())])
                })?;
                writer.write(folder)
            }
        }
    }

    /// Returns the session; none in eager mode.
    pub fn session(&self) -> Option<&Session> {
        match self {
            Self::Graph(graph) => Some(&graph.session),
            Self::Eager(_) => None,
        }
    }

    /// Returns what the optimizer keeps for all variables.
    pub fn slots(&self) -> Vec<&Variable> {
        match self {
            Self::Graph(graph) => graph.slots.iter().collect(),
            Self::Eager(eager) => eager.slots.iter().flatten().collect(),
        }
    }

    pub fn values(&self, variables: &[Variable]) -> Result<Vec<Tensor>> {
        match self {
            Self::Graph(graph) => variable::values_in(&graph.session, variables),
            Self::Eager(_) => variables.iter().map(Variable::to_tensor).collect(),
        }
    }

    pub fn set_values(&self, variables: &[Variable], values: &[Tensor]) -> Result<()> {
        match self {
            Self::Graph(graph) => {
                let pairs: Vec<_> = variables.iter().zip(values).collect();
                variable::set_in(&graph.session, &pairs)
            }
            Self::Eager(eager) => {
                for (variable, value) in variables.iter().zip(values) {
                    variable.assign(&eager.eager, value)?;
                }
                Ok(())
            }
        }
    }
}

/// Returns the shape of a batch of any size.
pub(super) fn batch_of(sample: &[i64]) -> Shape {
    let mut dims = vec![-1];
    dims.extend(sample);
    Shape::new(&dims)
}

/// The loss and the metrics' statistics.
fn measured<R: Rule>(
    plan: &Plan<R>,
    cx: &AnyContext,
    loss: AnyValue,
    truth: &AnyValue,
    predicted: &AnyValue,
    mask: Option<&AnyValue>,
) -> Result<Vec<AnyValue>> {
    let mut values = vec![loss];
    for metric in &plan.metrics {
        values.push(metric.masked_statistics(cx, truth, predicted, mask)?);
    }
    Ok(values)
}

/// The mean loss over the samples for which a mask is true, and the penalties of the weights.
fn total_loss<R: Rule>(
    model: &Sequential,
    plan: &Plan<R>,
    cx: &AnyContext,
    [truth, predicted]: [&AnyValue; 2],
    mask: Option<&AnyValue>,
) -> Result<AnyValue> {
    let loss = masked_loss(plan, cx, truth, predicted, mask)?;
    match model.weights().penalty(cx)? {
        Some(penalty) => ops::add_v2(cx, loss, penalty),
        None => Ok(loss),
    }
}

/// The mean loss over the samples for which a mask is true.
fn masked_loss<R: Rule>(
    plan: &Plan<R>,
    cx: &AnyContext,
    truth: &AnyValue,
    predicted: &AnyValue,
    mask: Option<&AnyValue>,
) -> Result<AnyValue> {
    let Some(mask) = mask else {
        return plan.loss.mean(cx, truth, predicted, None);
    };
    let mask = ops::cast(cx, mask, predicted.dtype(), Default::default())?;
    let share = ops::mean(cx, ops::reshape(cx, &mask, [-1])?, 0, Default::default())?;
    // Where nothing is left the loss is zero, and so are its gradients.
    let weights = ops::div_no_nan(cx, mask, share)?;
    plan.loss.mean(cx, truth, predicted, Some(&weights))
}

impl EagerEngine {
    fn train<R: Rule>(
        &self,
        model: &Sequential,
        plan: &Plan<R>,
        x: &Tensor,
        truth: &Tensor,
        numbers: &(Tensor, Tensor),
        index: u64,
    ) -> Result<Vec<Tensor>> {
        let cx = self.eager.any();
        let tape = Tape::new(&self.eager);
        let taped = tape.any();
        let (x, truth) = (cx.constant(x)?, cx.constant(truth)?);
        let index = cx.constant(&Tensor::scalar(index as i64)?)?;
        let pass = Pass::training(&taped).at_step(index);
        let predicted = model.call(&pass, &x)?;
        let mask = pass.mask();
        let loss = total_loss(model, plan, &taped, [&truth, &predicted], mask.as_ref())?;
        let handles = self
            .variables
            .iter()
            .map(|variable| variable.handle().handle())
            .collect::<Result<Vec<_>>>()?;
        let found = tape.gradients(&[loss.handle()?], &handles)?;
        tape.close();
        let found: Vec<Option<AnyValue>> = found
            .into_iter()
            .map(|gradient| gradient.map(AnyValue::from))
            .collect();
        let (rate, step) = (cx.constant(&numbers.0)?, cx.constant(&numbers.1)?);
        plan.optimizer
            .apply(&cx, &self.variables, &found, &self.slots, &rate, &step)?;
        measured(plan, &cx, loss, &truth, &predicted, mask.as_ref())?
            .iter()
            .map(|value| value.handle()?.to_tensor())
            .collect()
    }
}

impl GraphEngine {
    fn new<R: Rule>(model: &Sequential, plan: &Plan<R>, scope: &tfp_core::Scope) -> Result<Self> {
        let io = scope.sub_scope("training");
        let x = io.placeholder("x", plan.input, &batch_of(model.input_shape()))?;
        let truth = io.placeholder("truth", plan.truth, &Shape::unknown())?;
        let scalar = Shape::scalar();
        let numbers = [
            io.placeholder("rate", tfp_core::DataType::FLOAT, &scalar)?,
            io.placeholder("step", tfp_core::DataType::FLOAT, &scalar)?,
        ];
        let index = io.placeholder("index", tfp_core::DataType::INT64, &scalar)?;

        let cx = scope.any();
        let (x_value, truth_value) = (AnyValue::from(&x), AnyValue::from(&truth));
        let pass = Pass::training(&cx).at_step(AnyValue::from(&index));
        let predicted = model.call(&pass, &x_value)?;
        let mask = pass.mask();
        let mut targets = pass.into_updates();
        let loss = total_loss(model, plan, &cx, [&truth_value, &predicted], mask.as_ref())?;
        let variables = model.weights().trainables();
        let handles: Vec<AnyValue> = variables.iter().map(|v| v.handle().clone()).collect();
        let found = gradients(&cx, std::slice::from_ref(&loss), &handles)?;
        let mask = mask.as_ref();
        let train = measured(plan, &cx, loss.clone(), &truth_value, &predicted, mask)?;

        // Nothing changes before everything that the loss needs was read.
        let after = scope.after(&[loss.output()?.operation().clone()])?.any();
        let slots = plan.optimizer.slots(&cx, &variables)?;
        let (rate, step) = (AnyValue::from(&numbers[0]), AnyValue::from(&numbers[1]));
        targets.extend(
            plan.optimizer
                .apply(&after, &variables, &found, &slots, &rate, &step)?,
        );

        let pass = Pass::inference(&cx);
        let predicted = model.call(&pass, &x_value)?;
        let mask = pass.mask();
        let mask = mask.as_ref();
        let loss = total_loss(model, plan, &cx, [&truth_value, &predicted], mask)?;
        let test = measured(plan, &cx, loss, &truth_value, &predicted, mask)?;
        // A model without layers returns its input, which can't be fed and fetched.
        let predicted = ops::identity(&cx, predicted)?.output()?.clone();

        let session = Session::new(scope.graph())?;
        let all = model.weights().variables();
        variable::initialize(&session, all.iter().chain(slots.iter().flatten()))?;
        let outputs = |values: Vec<AnyValue>| -> Result<Vec<Output>> {
            values.iter().map(|value| value.output().cloned()).collect()
        };
        Ok(Self {
            session,
            x,
            truth,
            numbers,
            index,
            train: Step {
                fetches: outputs(train)?,
                targets,
            },
            test: Step {
                fetches: outputs(test)?,
                targets: Vec::new(),
            },
            predicted,
            slots: slots.into_iter().flatten().collect(),
        })
    }

    /// Brings truths to the rank of predictions, as losses do where they know the rank.
    fn fitted(&self, truth: &Tensor) -> Result<Tensor> {
        let dims = truth.dims();
        match Fit::of(&truth.shape(), &self.predicted.shape()?) {
            Fit::AsItIs => truth.share(),
            Fit::Expanded => truth.reshaped(&[dims, &[1]].concat()),
            Fit::Squeezed => truth.reshaped(&dims[..dims.len() - 1]),
        }
    }

    fn run(&self, step: &Step, feeds: &[Output], values: &[&Tensor]) -> Result<Vec<Tensor>> {
        self.session
            .callable(feeds, &step.fetches, &step.targets)?
            .call(values)
    }
}
