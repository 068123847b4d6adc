//! The graph in which a model is trained.

use tfp_core::wire::Writer;
use tfp_core::{Config, DataType, Graph, Operation, Output, Result, Scope};
use tfp_core::{Session, SessionOptions, Shape, Tensor};

use super::job::{Fed, Given, Job, Numbers, batch_of, changed, loss_of};
use super::plan::Plan;
use crate::context::any::Mode;
use crate::context::value::AnyValue;
use crate::gradient::gradients;
use crate::nn::layer::Pass;
use crate::nn::loss::Fit;
use crate::nn::optimizer::Rule;
use crate::ops;
use crate::variable::{self, Variable};

/// A `ConfigProto` for TensorFlow's optimizer. It makes one pass (`ONE`): a second one finds nothing in a
/// step, and a model is ready later by it. It leaves graphs of less than `least` operations as they are.
fn optimized(least: u64) -> Vec<u8> {
    const GRAPH_OPTIONS: u32 = 10;
    const REWRITE_OPTIONS: u32 = 10;
    const META_OPTIMIZER_ITERATIONS: u32 = 12;
    const MIN_GRAPH_NODES: u32 = 17;
    let mut config = Writer::new();
    config.message(GRAPH_OPTIONS, |graph| {
        graph.message(REWRITE_OPTIONS, |rewrite| {
            rewrite.int(META_OPTIMIZER_ITERATIONS, 1);
            rewrite.int(MIN_GRAPH_NODES, least as i64);
        });
    });
    config.into_bytes()
}

/// Makes a session in which variables have their initial values. With `is_direct` TensorFlow's optimizer
/// leaves the graph as it is now alone: it finds nothing in assignments, and takes longer than they do.
fn begun(graph: &Graph, variables: &[&Variable], is_direct: bool) -> Result<Session> {
    let assignments = variable::assignments(graph, variables.iter().copied())?;
    let operations = graph.operations().count();
    let least = if is_direct { operations as u64 + 1 } else { 0 };
    let options = SessionOptions {
        config: Config::new().merge(&optimized(least)),
        ..SessionOptions::default()
    };
    let session = Session::with_options(graph, &options)?;
    assignments.run(&session)?;
    Ok(session)
}

pub(super) struct GraphEngine {
    pub(super) session: Session,
    pub(super) x: Vec<Output>,
    pub(super) truth: Vec<Output>,
    pub(super) weights: Vec<Output>,
    pub(super) numbers: Numbers<Output>,
    // The number of the step, which random numbers follow from.
    pub(super) index: Output,
    pub(super) train: Step,
    pub(super) test: Step,
    pub(super) predicted: Vec<Output>,
    pub(super) slots: Vec<Variable>,
}

/// What a run fetches and runs.
pub(super) struct Step {
    pub(super) fetches: Vec<Output>,
    pub(super) targets: Vec<Operation>,
}

impl GraphEngine {
    pub(super) fn new<R: Rule>(job: Job<'_>, plan: &Plan<R>, scope: &Scope) -> Result<Self> {
        let io = scope.sub_scope("training");
        let inputs = job.model.inputs().iter().map(|port| {
            let dtype = port.dtype.unwrap_or(plan.input);
            io.placeholder(&identifier(&port.name), dtype, &batch_of(&port.shape))
        });
        let x = inputs.collect::<Result<Vec<_>>>()?;
        let truths = job.heads.iter().map(|trained| {
            let name = identifier(&format!("{}truth", trained.prefix));
            io.placeholder(&name, trained.head.truth, &Shape::unknown())
        });
        let truth = truths.collect::<Result<Vec<_>>>()?;
        let mut weights = Vec::new();
        if plan.weighted {
            for trained in job.heads {
                let name = identifier(&format!("{}weights", trained.prefix));
                weights.push(io.placeholder(&name, DataType::FLOAT, &Shape::new(&[-1]))?);
            }
        }
        let scalar = Shape::scalar();
        let numbers = [
            io.placeholder("rate", DataType::FLOAT, &scalar)?,
            io.placeholder("step", DataType::FLOAT, &scalar)?,
            io.placeholder("scale", DataType::FLOAT, &scalar)?,
        ];
        let index = io.placeholder("index", DataType::INT64, &scalar)?;

        let cx = scope.any();
        let variables = job.model.trainables();
        let slots = plan.optimizer.slots(&cx, &variables)?;
        // TensorFlow prepares all of a graph for the first run of a session: that run is made while the graph
        // has nothing but variables.
        let all: Vec<&Variable> = job.model.variables().iter().collect();
        let all: Vec<&Variable> = all.into_iter().chain(slots.iter().flatten()).collect();
        let mut session = begun(scope.graph(), &all, true)?;

        let given = Given::graph(&x, &truth, &weights);
        let pass = Pass::training(&cx)
            .first_order()
            .at_step(AnyValue::from(&index));
        let mut train = job.measured(&pass, &given)?;
        let mut targets = pass.into_updates();
        let loss = loss_of(&train)?.clone();
        let handles: Vec<AnyValue> = variables.iter().map(|v| v.handle().clone()).collect();
        let [rate, step, scale] = numbers.each_ref().map(AnyValue::from);
        let target = job.target(&cx, &train, &scale)?;
        let found = gradients(&cx, std::slice::from_ref(&target), &handles)?;
        let (found, finite) = job.unscaled(&cx, found, &scale)?;

        // Nothing changes before everything that the loss needs was read.
        let after = scope.after(&[loss.output()?.operation().clone()])?.any();
        let (optimizer, both) = (&plan.optimizer, [&rate, &step]);
        let finite = finite.as_ref();
        let updates = optimizer.apply_where(&after, &variables, &found, &slots, both, finite)?;
        let kept = job.model.weights();
        if !kept.is_free() {
            let done = scope.after(&updates)?.any();
            let changed = changed(&variables, &found);
            targets.extend(kept.constrained(&done, &changed, finite)?);
        }
        targets.extend(updates);
        train.extend(finite.cloned());

        let pass = Pass::inference(&cx).first_order();
        let (test, predicted) = job.predicted(&pass, &given)?;
        // A model without layers returns its input, which can't be fed and fetched.
        let predicted = predicted
            .iter()
            .map(|value| Ok(ops::identity(&cx, value)?.output()?.clone()))
            .collect::<Result<Vec<Output>>>()?;

        // The limit holds for functions, too, such as the bodies of loops.
        if !scope.graph().functions()?.is_empty() {
            session = begun(scope.graph(), &all, false)?;
        }
        let outputs = |values: Vec<AnyValue>| -> Result<Vec<Output>> {
            values.iter().map(|value| value.output().cloned()).collect()
        };
        Ok(Self {
            session,
            x,
            truth,
            weights,
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
    fn fitted(&self, output: usize, truth: &Tensor) -> Result<Tensor> {
        let dims = truth.dims();
        let Some(predicted) = self.predicted.get(output) else {
            return truth.share();
        };
        match Fit::of(&truth.shape(), &predicted.shape()?) {
            Fit::AsItIs => truth.share(),
            Fit::Expanded => truth.reshaped(&[dims, &[1]].concat()),
            Fit::Squeezed => truth.reshaped(&dims[..dims.len() - 1]),
        }
    }

    pub(super) fn run_fed(
        &self,
        step: &Step,
        job: Job<'_>,
        fed: &Fed<'_>,
        more: &[(&Output, &Tensor)],
    ) -> Result<Vec<Tensor>> {
        let truth = job.heads.iter().zip(&fed.truth);
        let truth = truth.map(|(trained, truth)| self.fitted(trained.output, truth));
        let truth = truth.collect::<Result<Vec<_>>>()?;
        let mut feeds = [&*self.x, &self.truth, &self.weights].concat();
        feeds.extend(more.iter().map(|(output, _)| (*output).clone()));
        let mut values = fed.x.clone();
        values.extend(truth.iter().chain(&fed.weights));
        values.extend(more.iter().map(|(_, value)| *value));
        self.session
            .callable(&feeds, &step.fetches, &step.targets)?
            .call(&values)
    }
}

/// A name as that of an operation: TensorFlow allows letters, digits and some signs.
fn identifier(name: &str) -> String {
    let valid = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
    let name: String = name
        .chars()
        .map(|letter| if valid(letter) { letter } else { '_' })
        .collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() || first == '.' => name,
        _ => format!("x{name}"),
    }
}

#[cfg(test)]
mod tests {
    use tfp_core::{RunOptions, traced_nodes};

    use super::*;

    /// The names of the operations that a run executes.
    fn executed(session: &Session, target: &Operation, x: &[(&Output, &Tensor)]) -> Vec<String> {
        let options = RunOptions::new().trace(true);
        let mut run = session.run().target(target);
        for (output, value) in x {
            run = run.feed(output, value);
        }
        let found = run.options(&options).with_metadata().go().expect("a run");
        let nodes = traced_nodes(&found.metadata).expect("nodes");
        nodes.into_iter().map(|node| node.name).collect()
    }

    /// Three operations of which TensorFlow's optimizer makes one; the first has a name.
    fn product(scope: &Scope, name: &str, x: &Output, weight: &Output) -> Result<Output> {
        let options = ops::MatMulOptions::default();
        let product = ops::mat_mul(&scope.named(name), x, weight, options)?;
        let options = ops::BiasAddOptions::default();
        let sum = ops::bias_add(scope, product, [1.0_f32, 1.0], options)?;
        ops::relu(scope, sum)
    }

    #[test]
    fn a_new_session_optimizes_what_comes_after_its_first_values() -> Result<()> {
        for is_direct in [true, false] {
            let graph = Graph::new()?;
            let scope = graph.scope();
            let options = ops::RandomUniformOptions::default();
            let drawn = ops::random_uniform(&scope, [2, 2], DataType::FLOAT, options)?;
            let weight = Variable::new(&scope, "w", product(&scope, "first", &drawn, &drawn)?)?;
            let session = begun(&graph, &[&weight], is_direct)?;
            let initializer = weight.initializer().expect("an initializer");
            let names = executed(&session, initializer, &[]);
            assert_eq!(names.contains(&"first".to_owned()), is_direct, "{names:?}");

            let x = scope.placeholder("x", DataType::FLOAT, &Shape::new(&[-1, 2]))?;
            let y = product(&scope, "later", &x, &weight.read(&scope)?)?;
            let given = Tensor::from_array([[1.0_f32, 2.0]])?;
            let names = executed(&session, y.operation(), &[(&x, &given)]);
            assert!(names.contains(&y.operation().name()), "{names:?}");
            assert!(!names.contains(&"later".to_owned()), "{names:?}");
        }
        Ok(())
    }
}
