//! Where steps happen: a session, or eager execution with a tape.

use std::path::Path;

use tfp_core::{Context, DataType, EagerContext, Error, Output, Result};
use tfp_core::{Session, Shape, Tensor};

use super::graph::GraphEngine;
use super::job::{Fed, Given, Job, Measured, Numbers, batch_of, tensors};
use super::plan::Plan;
use super::stepped::{Stepped, batch_values};
use super::together::{Together, bring_together, moving};
use super::traced::{Traced, Traces};
use crate::context::any::{AnyContext, Mode};
use crate::context::tape::Tape;
use crate::context::value::AnyValue;
use crate::distribute::MultiWorker;
use crate::nn::layer::{Model, Pass, Port};
use crate::nn::optimizer::Rule;
use crate::saved_model::ModelWriter;
use crate::variable::{self, Variable};

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
    // The functions of steps, where these are traced.
    traces: Option<Traces>,
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
                    traces: None,
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
        numbers: &Numbers<Tensor>,
        index: u64,
    ) -> Result<Measured> {
        match self {
            Self::Graph(graph) => {
                let index = Tensor::scalar(index as i64)?;
                let mut more: Vec<_> = graph.numbers.iter().zip(numbers).collect();
                more.push((&graph.index, &index));
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
                let pass = Pass::inference(&cx).first_order();
                let measured = job.measured(&pass, &given)?;
                let Some((workers, _)) = eager.others() else {
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
                tensors(&model.call(&Pass::inference(&cx).first_order(), &x)?)
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
                    let y = model.call(&Pass::inference(&cx).first_order(), &x)?;
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

    /// The workers where there is more than this one, and what a forward pass changes.
    fn others(&self) -> Option<(&MultiWorker, &[Variable])> {
        let (workers, moving) = self.workers.as_ref()?;
        (workers.count() > 1).then_some((workers, moving))
    }

    fn train<R: Rule>(
        &self,
        job: Job<'_>,
        plan: &Plan<R>,
        fed: &Fed<'_>,
        numbers: &Numbers<Tensor>,
        index: u64,
    ) -> Result<Measured> {
        let cx = self.eager.any();
        let given = Given::eager(&cx, fed)?;
        let index = cx.constant(&Tensor::scalar(index as i64)?)?;
        let traced = match &self.traces {
            Some(traces) => Some(traces.of(&self.stepped(job, plan), &given)?),
            None => None,
        };
        let [rate, step, scale] = numbers.each_ref().map(|one| cx.constant(one));
        let numbers = [rate?, step?, scale?];
        let scale = &numbers[2];
        let halves = match traced.as_deref() {
            Some(Traced::Alone(alone)) => {
                let measured = alone.run(&cx, batch_values(given, index), &numbers)?;
                return Ok(fed.measured(tensors(&measured)?));
            }
            Some(Traced::Whole(whole)) => {
                let batch = batch_values(given, index);
                return whole.run(&cx, batch, fed.samples(), &numbers)?.measured();
            }
            Some(Traced::Halves(halves)) => Some(halves),
            None => None,
        };
        let (measured, found) = match halves {
            Some(halves) => halves.measure(&cx, batch_values(given, index), scale)?,
            None => self.taped(job, &given, index, scale)?,
        };
        let mut together = match self.others() {
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
        let found = std::mem::take(&mut together.gradients);
        let finite = match halves {
            Some(halves) => halves.apply(&cx, &found, &numbers)?,
            None => self.stepped(job, plan).change(&cx, found, &numbers)?,
        };
        together.measured.extend(finite);
        together.measured()
    }

    /// What is measured of a batch in the step of a number, and the gradients, by a tape.
    fn taped(
        &self,
        job: Job<'_>,
        given: &Given,
        index: AnyValue,
        scale: &AnyValue,
    ) -> Result<(Vec<AnyValue>, Vec<Option<AnyValue>>)> {
        let tape = Tape::new(&self.eager);
        let taped = tape.any();
        let pass = Pass::training(&taped).first_order().at_step(index);
        let measured = job.measured(&pass, given)?;
        let handles = self
            .variables
            .iter()
            .map(|variable| variable.handle().handle())
            .collect::<Result<Vec<_>>>()?;
        let target = job.target(&taped, &measured, scale)?;
        let found = tape.gradients(&[target.handle()?], &handles)?;
        tape.close();
        let found = found.into_iter();
        let found = found.map(|gradient| gradient.map(AnyValue::from));
        Ok((measured, found.collect()))
    }

    fn stepped<'a, R>(&'a self, job: Job<'a>, plan: &'a Plan<R>) -> Stepped<'a, R> {
        Stepped {
            eager: &self.eager,
            job,
            plan,
            variables: &self.variables,
            slots: &self.slots,
            workers: self.others(),
        }
    }

    /// Makes further steps by functions that are traced once.
    pub fn trace(&mut self) {
        self.traces = Some(Traces::default());
    }
}
