//! Where steps happen: a session, or eager execution with a tape.

mod graph;

use std::path::Path;

use tfp_core::{Context, DataType, EagerContext, Error, Output, Result};
use tfp_core::{Session, Shape, Tensor};

use self::graph::GraphEngine;
use super::plan::{Plan, Trained};
use super::together::{Together, bring_together, moving};
use crate::context::any::{AnyContext, Mode};
use crate::context::tape::Tape;
use crate::context::value::AnyValue;
use crate::distribute::MultiWorker;
use crate::nn::criterion::mean_loss;
use crate::nn::layer::{Model, Pass, Port};
use crate::nn::optimizer::Rule;
use crate::ops;
use crate::saved_model::ModelWriter;
use crate::variable::{self, Variable};

/// A model, and what is done with its outputs.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub model: &'a Model,
    pub heads: &'a [Trained],
}

/// The tensors of a batch in the order of inputs and heads, and weights where the plan has them.
pub(super) struct Fed<'a> {
    pub x: Vec<&'a Tensor>,
    pub truth: Vec<Tensor>,
    pub weights: Vec<Tensor>,
}

impl Fed<'_> {
    /// The number of samples.
    fn samples(&self) -> f32 {
        let first = self.x.first().and_then(|x| x.dims().first());
        first.copied().unwrap_or(1) as f32
    }

    fn measured(&self, values: Vec<Tensor>) -> Measured {
        Measured {
            values,
            samples: self.samples(),
        }
    }
}

impl Together {
    fn measured(&self) -> Result<Measured> {
        Ok(Measured {
            values: tensors(&self.measured)?,
            samples: self.samples,
        })
    }
}

/// Where steps happen.
pub(super) enum Engine {
    /// In a graph.
    Graph(Box<GraphEngine>),
    /// Eagerly.
    Eager(EagerEngine),
}

pub(super) struct EagerEngine {
    eager: EagerContext,
    variables: Vec<Variable>,
    slots: Vec<Vec<Variable>>,
    // The workers of a training on several machines, and what a forward pass changes.
    workers: Option<(MultiWorker, Vec<Variable>)>,
}

/// What a batch gave.
pub(super) struct Measured {
    /// Losses, and the statistics of metrics.
    pub values: Vec<Tensor>,
    /// The samples that the losses are means of.
    pub samples: f32,
}

impl Engine {
    pub fn new<R: Rule>(job: Job<'_>, plan: &Plan<R>) -> Result<Self> {
        let cx = job.model.weights().context();
        match (cx, cx.eager()) {
            (AnyContext::Scope(scope), _) => {
                GraphEngine::new(job, plan, scope).map(|engine| Self::Graph(Box::new(engine)))
            }
            (_, Some(eager)) => {
                let variables = job.model.trainables();
                Ok(Self::Eager(EagerEngine {
                    slots: plan.optimizer.slots(&eager.any(), &variables)?,
                    eager: eager.clone(),
                    variables,
                    workers: None,
                }))
            }
            _ => Err(Error::argument(
                "a model is trained in a graph or in eager mode, not inside a function",
            )),
        }
    }

    pub fn train<R: Rule>(
        &self,
        job: Job<'_>,
        plan: &Plan<R>,
        fed: &Fed<'_>,
        numbers: &(Tensor, Tensor),
        index: u64,
    ) -> Result<Measured> {
        match self {
            Self::Graph(graph) => {
                let index = Tensor::scalar(index as i64)?;
                let [rate, step] = &graph.numbers;
                let more = [
                    (rate, &numbers.0),
                    (step, &numbers.1),
                    (&graph.index, &index),
                ];
                let values = graph.run_fed(&graph.train, job, fed, &more)?;
                Ok(fed.measured(values))
            }
            Self::Eager(eager) => eager.train(job, plan, fed, numbers, index),
        }
    }

    pub fn test(&self, job: Job<'_>, fed: &Fed<'_>) -> Result<Measured> {
        match self {
            Self::Graph(graph) => {
                let values = graph.run_fed(&graph.test, job, fed, &[])?;
                Ok(fed.measured(values))
            }
            Self::Eager(eager) => {
                let cx = eager.eager.any();
                let given = Given::eager(&cx, fed)?;
                let pass = Pass::inference(&cx);
                let measured = job.measured(&pass, &given)?;
                let Some((workers, _)) = &eager.workers else {
                    return Ok(fed.measured(tensors(&measured)?));
                };
                let (losses, samples) = (job.losses(), fed.samples());
                let all =
                    bring_together(workers, &eager.eager, &measured, losses, &[], &[], samples)?;
                all.measured()
            }
        }
    }

    pub fn predict(&self, model: &Model, x: &[&Tensor]) -> Result<Vec<Tensor>> {
        match self {
            Self::Graph(graph) => {
                let fetches = graph.predicted.as_slice();
                graph.session.callable(&graph.x, fetches, &[])?.call(x)
            }
            Self::Eager(eager) => {
                let cx = eager.eager.any();
                let x = x
                    .iter()
                    .map(|x| cx.constant(x))
                    .collect::<Result<Vec<_>>>()?;
                tensors(&model.call(&Pass::inference(&cx), &x)?)
            }
        }
    }

    /// Writes a SavedModel of the inference, whose variables the writer has.
    pub fn export<R: Rule>(
        &self,
        model: &Model,
        plan: &Plan<R>,
        mut writer: ModelWriter,
        folder: &Path,
    ) -> Result<()> {
        let name = "serving_default";
        match self {
            Self::Graph(graph) => {
                let named = |ports: &'_ [Port], values: &'_ [Output]| -> Vec<(String, Output)> {
                    let names = ports.iter().map(|port| port.name.clone());
                    names.zip(values.iter().cloned()).collect()
                };
                let inputs = named(model.inputs(), &graph.x);
                let outputs = named(model.outputs(), &graph.predicted);
                writer.graph_signature(name, &borrowed(&inputs), &borrowed(&outputs))?;
                writer.write_from(&graph.session, folder)
            }
            Self::Eager(_) => {
                let inputs = model.inputs().iter().map(|port| {
                    let dtype = port.dtype.unwrap_or(plan.input);
                    (port.name.as_str(), dtype, batch_of(&port.shape))
                });
                let inputs: Vec<(&str, DataType, Shape)> = inputs.collect();
                writer.signature(name, &inputs, |func, arguments| {
                    let cx = func.any();
                    let x: Vec<AnyValue> = model
                        .inputs()
                        .iter()
                        .map(|port| (&arguments[port.name.as_str()]).into())
                        .collect();
                    let y = model.call(&Pass::inference(&cx), &x)?;
                    let names = model.outputs().iter().map(|port| port.name.clone());
                    names
                        .zip(y)
                        .map(|(name, y)| Ok((name, y.output()?.clone())))
                        .collect()
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

/// Pairs of names and values, as a signature takes them.
fn borrowed(pairs: &[(String, Output)]) -> Vec<(&str, &Output)> {
    pairs
        .iter()
        .map(|(name, output)| (&**name, output))
        .collect()
}

/// The values of eager mode, on the host.
fn tensors(values: &[AnyValue]) -> Result<Vec<Tensor>> {
    let tensor = |value: &AnyValue| value.handle()?.to_tensor();
    values.iter().map(tensor).collect()
}

/// Returns the shape of a batch of any size.
pub(super) fn batch_of(sample: &[i64]) -> Shape {
    let mut dims = vec![-1];
    dims.extend(sample);
    Shape::new(&dims)
}

/// The values of a batch, in the order of inputs and heads.
struct Given {
    x: Vec<AnyValue>,
    truth: Vec<AnyValue>,
    weights: Vec<AnyValue>,
}

impl Given {
    fn eager(cx: &AnyContext, fed: &Fed<'_>) -> Result<Self> {
        let all = |tensors: &[Tensor]| -> Result<Vec<AnyValue>> {
            tensors.iter().map(|tensor| cx.constant(tensor)).collect()
        };
        Ok(Self {
            x: fed
                .x
                .iter()
                .map(|x| cx.constant(x))
                .collect::<Result<_>>()?,
            truth: all(&fed.truth)?,
            weights: all(&fed.weights)?,
        })
    }

    fn graph(x: &[Output], truth: &[Output], weights: &[Output]) -> Self {
        let all = |outputs: &[Output]| outputs.iter().map(AnyValue::from).collect();
        Self {
            x: all(x),
            truth: all(truth),
            weights: all(weights),
        }
    }
}

impl Job<'_> {
    /// How many of the values that are measured are losses.
    fn losses(&self) -> usize {
        match self.heads.len() {
            1 => 1,
            heads => heads + 1,
        }
    }

    /// Computes the loss of a batch, the losses of the outputs where there are several, and the
    /// statistics of all metrics.
    fn measured(&self, pass: &Pass<'_>, given: &Given) -> Result<Vec<AnyValue>> {
        let cx = pass.context();
        let inputs = given.x.iter().map(|x| (x.clone(), None)).collect();
        let outputs = self.model.run(pass, inputs)?;
        let mut total: Option<AnyValue> = None;
        let (mut losses, mut statistics) = (Vec::new(), Vec::new());
        for (index, (trained, truth)) in self.heads.iter().zip(&given.truth).enumerate() {
            let head = &trained.head;
            let (predicted, mask) = outputs
                .get(trained.output)
                .ok_or_else(|| Error::argument("a model returned too few outputs"))?;
            let (mask, weights) = (mask.as_ref(), given.weights.get(index));
            let loss = mean_loss(&*head.loss, cx, [truth, predicted], mask, weights)?;
            let weighted = match head.weight {
                1.0 => loss.clone(),
                weight => ops::mul(cx, &loss, weight)?,
            };
            losses.push(loss);
            total = Some(match total {
                Some(total) => ops::add_v2(cx, total, weighted)?,
                None => weighted,
            });
            for metric in &head.metrics {
                statistics.push(metric.statistics(cx, truth, predicted, mask)?);
            }
        }
        let mut total = total.ok_or_else(|| Error::argument("a training without a loss"))?;
        for more in pass.take_losses() {
            total = ops::add_v2(cx, total, more)?;
        }
        if let Some(penalty) = self
            .model
            .weights()
            .penalty_of(cx, self.model.variables())?
        {
            total = ops::add_v2(cx, total, penalty)?;
        }
        let mut measured = vec![total];
        if losses.len() > 1 {
            measured.extend(losses);
        }
        measured.extend(statistics);
        Ok(measured)
    }
}

/// The loss of what was measured.
fn loss_of(measured: &[AnyValue]) -> Result<&AnyValue> {
    let first = measured.first();
    first.ok_or_else(|| Error::argument("a training without a loss"))
}

/// The variables that a step changes: those with a gradient.
fn changed(variables: &[Variable], gradients: &[Option<AnyValue>]) -> Vec<Variable> {
    let pairs = variables.iter().zip(gradients);
    let with = pairs.filter(|(_, gradient)| gradient.is_some());
    with.map(|(variable, _)| variable.clone()).collect()
}

impl EagerEngine {
    /// Whether the variables are in a context.
    pub fn is_in(&self, context: &EagerContext) -> bool {
        self.eager.is_same(context)
    }

    pub fn set_workers(&mut self, workers: &MultiWorker, model: &Model) {
        self.workers = Some((workers.clone(), moving(model)));
    }

    pub fn workers(&self) -> Option<&MultiWorker> {
        self.workers.as_ref().map(|(workers, _)| workers)
    }

    fn train<R: Rule>(
        &self,
        job: Job<'_>,
        plan: &Plan<R>,
        fed: &Fed<'_>,
        numbers: &(Tensor, Tensor),
        index: u64,
    ) -> Result<Measured> {
        let cx = self.eager.any();
        let given = Given::eager(&cx, fed)?;
        let tape = Tape::new(&self.eager);
        let taped = tape.any();
        let index = cx.constant(&Tensor::scalar(index as i64)?)?;
        let pass = Pass::training(&taped).at_step(index);
        let measured = job.measured(&pass, &given)?;
        let handles = self
            .variables
            .iter()
            .map(|variable| variable.handle().handle())
            .collect::<Result<Vec<_>>>()?;
        let found = tape.gradients(&[loss_of(&measured)?.handle()?], &handles)?;
        tape.close();
        let found: Vec<Option<AnyValue>> = found
            .into_iter()
            .map(|gradient| gradient.map(AnyValue::from))
            .collect();
        let together = match &self.workers {
            None => Together {
                measured,
                gradients: found,
                samples: fed.samples(),
            },
            Some((workers, moving)) => bring_together(
                workers,
                &self.eager,
                &measured,
                job.losses(),
                &found,
                moving,
                fed.samples(),
            )?,
        };
        let found = &together.gradients;
        let (rate, step) = (cx.constant(&numbers.0)?, cx.constant(&numbers.1)?);
        plan.optimizer
            .apply(&cx, &self.variables, found, &self.slots, &rate, &step)?;
        let changed = changed(&self.variables, found);
        job.model.weights().constrained(&cx, &changed)?;
        together.measured()
    }
}
