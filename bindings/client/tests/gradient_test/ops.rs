//! One op at a time.

use tfp::wire::Writer;
use tfp::{
    AnyContext, AnyValue, Complex, Context, DataType, EagerContext, GradientOptions, Graph,
    ImportOptions, Mode, OpBuilder, Operation, Output, Result, Session, SessionOptions, Tape,
    Tensor, TensorHandle, ops,
};

use crate::fixture::{self, Attr, Case, Input};
use crate::support::{distance, values};

/// Calls the op of a case on inputs that are values of the context already.
fn call(case: &Case, cx: &AnyContext, flat: &[AnyValue]) -> Result<Vec<AnyValue>> {
    // Before the builder, which borrows them.
    let texts = case.attrs.iter().map(|(_, value)| match value {
        Attr::Texts(list) => list.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    });
    let texts: Vec<Vec<&str>> = texts.collect();
    let mut builder = OpBuilder::new(&case.op)?;
    let mut next = flat.iter();
    for input in &case.inputs {
        builder = match input {
            Input::One(_) => builder.input(next.next().expect("an input")),
            Input::List(list) => builder.list(next.by_ref().take(list.len()).collect::<Vec<_>>()),
        };
    }
    for ((name, value), texts) in case.attrs.iter().zip(&texts) {
        builder = match value {
            Attr::Int(value) => builder.attr(name, *value)?,
            Attr::Float(value) => builder.attr(name, *value)?,
            Attr::Bool(value) => builder.attr(name, *value)?,
            Attr::Text(value) => builder.attr(name, value.as_str())?,
            Attr::Texts(_) => builder.attr(name, texts.as_slice())?,
            Attr::Type(value) => builder.attr(name, *value)?,
            Attr::Ints(value) if name == "shape" => {
                let shape = tfp::Shape::new(value);
                return finish(builder.attr(name, &shape)?, cx);
            }
            Attr::Ints(value) => builder.attr(name, value.as_slice())?,
            Attr::Floats(value) => builder.attr(name, value.as_slice())?,
        };
    }
    finish(builder, cx)
}

fn finish(builder: OpBuilder<'_, AnyValue>, cx: &AnyContext) -> Result<Vec<AnyValue>> {
    Ok(builder.execute(cx)?.all())
}

fn is_watched(dtype: DataType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// What a case gave in one mode.
struct Found {
    grads: Vec<Option<Tensor>>,
    seconds: Vec<Option<Tensor>>,
}

fn handles(eager: &EagerContext, tensors: &[&Tensor]) -> Result<Vec<TensorHandle>> {
    tensors.iter().map(|tensor| eager.handle(tensor)).collect()
}

fn to_tensors(list: Vec<Option<TensorHandle>>) -> Result<Vec<Option<Tensor>>> {
    list.into_iter()
        .map(|handle| handle.map(|handle| handle.to_tensor()).transpose())
        .collect()
}

/// Returns the gradients that Python has too, each with its weight in the second order.
fn both<'c, V>(
    case: &'c Case,
    grads: &'c [Option<V>],
) -> impl Iterator<Item = (&'c V, &'c Tensor)> {
    let mut weights = case.weights.iter();
    let expected = case
        .grads
        .iter()
        .map(move |grad| grad.as_ref().and_then(|_| weights.next()));
    grads
        .iter()
        .zip(expected)
        .filter_map(|(grad, weight)| Some((grad.as_ref()?, weight?)))
}

fn on_tapes(eager: &EagerContext, case: &Case) -> Result<Found> {
    let flat = handles(eager, &case.flat())?;
    let watched: Vec<&TensorHandle> = flat.iter().filter(|x| is_watched(x.dtype())).collect();
    let outer = Tape::new(eager);
    let inner = Tape::new(&outer);
    for x in &watched {
        outer.watch(x)?;
        inner.watch(x)?;
    }
    let any: Vec<AnyValue> = flat.iter().map(AnyValue::from).collect();
    let outputs = call(case, &inner.any(), &any)?;
    let ys: Vec<&TensorHandle> = case
        .dys
        .iter()
        .map(|(index, _)| outputs[*index].handle())
        .collect::<Result<_>>()?;
    let dys: Vec<Option<TensorHandle>> = case
        .dys
        .iter()
        .map(|(_, dy)| eager.handle(dy).map(Some))
        .collect::<Result<_>>()?;
    let options = GradientOptions {
        grad_ys: &dys,
        ..Default::default()
    };
    let grads: Vec<Option<TensorHandle>> = inner
        .gradients_with(&ys, &watched, &options)?
        .into_iter()
        .map(|grad| grad.map(|grad| grad.dense(&outer)).transpose())
        .collect::<Result<_>>()?;
    let mut seconds = Vec::new();
    if case.python && case.second {
        let present: Vec<&TensorHandle> = both(case, &grads).map(|(grad, _)| grad).collect();
        let weights: Vec<Option<TensorHandle>> = both(case, &grads)
            .map(|(_, weight)| eager.handle(weight).map(Some))
            .collect::<Result<_>>()?;
        let options = GradientOptions {
            grad_ys: &weights,
            ..Default::default()
        };
        seconds = outer
            .gradients_with(&present, &watched, &options)?
            .into_iter()
            .map(|grad| grad.map(|grad| grad.dense(eager)).transpose())
            .collect::<Result<_>>()?;
    }
    Ok(Found {
        grads: to_tensors(grads)?,
        seconds: to_tensors(seconds)?,
    })
}

/// A case in a graph.
struct InGraph<'c> {
    graph: Graph,
    /// What is fed, and what stands for it where gradients are asked for.
    feeds: Vec<(Output, &'c Tensor)>,
    xs: Vec<AnyValue>,
    /// What gives references their values, from what is fed.
    before: Vec<Operation>,
    outputs: Vec<AnyValue>,
}

impl<'c> InGraph<'c> {
    fn new(case: &'c Case) -> Result<Self> {
        let graph = Graph::new()?;
        if let Some(producer) = case.producer {
            let mut versions = Writer::new();
            versions.message(4, |versions| versions.int(1, producer));
            graph.import(&versions.into_bytes(), &ImportOptions::default())?;
        }
        let any = graph.any();
        // Floating-point inputs are fed, the others are constants.
        let (mut feeds, mut xs, mut before) = (Vec::new(), Vec::new(), Vec::new());
        let mut flat: Vec<AnyValue> = Vec::new();
        for tensor in case.flat() {
            let (scope, dtype, shape) = (graph.scope(), tensor.dtype(), tensor.shape());
            if !is_watched(dtype) {
                flat.push(graph.constant(tensor)?.into());
                continue;
            }
            let input = scope.placeholder("x", dtype, &shape)?;
            let mut x = input.clone();
            if case.op.starts_with("Ref") {
                x = ops::variable_v2(&scope, &shape, dtype, Default::default())?;
                let assign = ops::assign(&scope, &x, &input, Default::default())?;
                before.push(assign.operation().clone());
            }
            feeds.push((input, tensor));
            flat.push(x.clone().into());
            xs.push(x.into());
        }
        let outputs = call(case, &any, &flat)?;
        Ok(Self {
            graph,
            feeds,
            xs,
            before,
            outputs,
        })
    }

    /// Runs with inputs in the place of those of the case.
    fn run(&self, case: &Case, inputs: &[&Tensor], fetches: &[AnyValue]) -> Result<Vec<Tensor>> {
        // An op without a kernel is not placed where nothing needs it.
        let mut config = Writer::new();
        config.message(10, |graph_options| graph_options.int(6, 1));
        let options = SessionOptions {
            config: config.into_bytes().into(),
            ..SessionOptions::default()
        };
        let session = Session::with_options(&self.graph, &options)?;
        let watched = inputs.iter().filter(|input| is_watched(input.dtype()));
        let mut feeds: Vec<(&Output, &Tensor)> = self
            .feeds
            .iter()
            .zip(watched)
            .map(|((input, _), tensor)| (input, *tensor))
            .collect();
        for operation in &self.before {
            let mut run = session.run().target(operation);
            for (input, tensor) in &feeds {
                run = run.feed(input, tensor);
            }
            run.go()?;
        }
        for (output, tensor) in self.outputs.iter().zip(&case.fed) {
            feeds.push((output.output()?, tensor));
        }
        let fetches: Vec<&Output> = fetches
            .iter()
            .map(AnyValue::output)
            .collect::<Result<_>>()?;
        session.eval(&feeds, &fetches)
    }
}

fn in_a_graph(case: &Case) -> Result<Found> {
    let built = InGraph::new(case)?;
    let any = built.graph.any();
    let ys: Vec<AnyValue> = case
        .dys
        .iter()
        .map(|(index, _)| built.outputs[*index].clone())
        .collect();
    let xs = &built.xs;
    let dys: Vec<Option<AnyValue>> = case
        .dys
        .iter()
        .map(|(_, dy)| any.constant(dy).map(Some))
        .collect::<Result<_>>()?;
    let options = GradientOptions {
        grad_ys: &dys,
        ..Default::default()
    };
    let dense = |grads: Vec<Option<tfp::Gradient<AnyValue>>>| -> Result<Vec<Option<AnyValue>>> {
        grads
            .into_iter()
            .map(|grad| grad.map(|grad| grad.dense(&any)).transpose())
            .collect()
    };
    let grads = dense(tfp::gradients_with(&any, &ys, xs, &options)?)?;
    let mut seconds = Vec::new();
    if case.python && case.second {
        let present: Vec<AnyValue> = both(case, &grads).map(|(grad, _)| grad.clone()).collect();
        let weights: Vec<Option<AnyValue>> = both(case, &grads)
            .map(|(_, weight)| any.constant(weight).map(Some))
            .collect::<Result<_>>()?;
        let options = GradientOptions {
            grad_ys: &weights,
            ..Default::default()
        };
        seconds = dense(tfp::gradients_with(&any, &present, xs, &options)?)?;
    }
    let wanted: Vec<AnyValue> = grads.iter().chain(&seconds).flatten().cloned().collect();
    let mut fetched = built.run(case, &case.flat(), &wanted)?.into_iter();
    let mut take = |list: &[Option<AnyValue>]| -> Vec<Option<Tensor>> {
        list.iter()
            .map(|value| value.as_ref().and_then(|_| fetched.next()))
            .collect()
    };
    let grads = take(&grads);
    let seconds = take(&seconds);
    Ok(Found { grads, seconds })
}

/// Compares with a list of expected gradients; a missing one is a zero one.
fn compare(
    case: &Case,
    what: &str,
    found: &[Option<Tensor>],
    expected: &[Option<Tensor>],
    tolerance: f64,
    problems: &mut Vec<String>,
) -> Result<()> {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let zero = |tensor: &Tensor| -> Result<Vec<f64>> { Ok(vec![0.0; values(tensor)?.len()]) };
        let (found, expected) = match (found, expected) {
            (None, None) => continue,
            (Some(found), Some(expected)) => {
                if found.dims() != expected.dims() || found.dtype() != expected.dtype() {
                    problems.push(format!(
                        "{} {what} {index}: {:?} {}, expected {:?} {}",
                        case.name,
                        found.dims(),
                        found.dtype(),
                        expected.dims(),
                        expected.dtype()
                    ));
                    continue;
                }
                (values(found)?, values(expected)?)
            }
            // Python leaves out some that exist: the slope judges them.
            (Some(_), None) => continue,
            (None, Some(expected)) => (zero(expected)?, values(expected)?),
        };
        let distance = distance(&found, &expected);
        if distance.is_nan() || distance > tolerance {
            problems.push(format!(
                "{} {what} {index}: {distance:.2e} away: {:?}, expected {:?}",
                case.name,
                &found[..found.len().min(6)],
                &expected[..expected.len().min(6)]
            ));
        }
    }
    Ok(())
}

/// The sum over outputs of output times its given gradient.
fn weighted(case: &Case, eager: &EagerContext, inputs: &[Tensor]) -> Result<f64> {
    let outputs: Vec<Tensor> = if case.graph {
        let built = InGraph::new(case)?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let seeded: Vec<AnyValue> = case
            .dys
            .iter()
            .map(|(index, _)| built.outputs[*index].clone())
            .collect();
        built.run(case, &inputs, &seeded)?
    } else {
        let flat: Vec<AnyValue> = inputs
            .iter()
            .map(|tensor| eager.handle(tensor).map(Into::into))
            .collect::<Result<_>>()?;
        let outputs = call(case, &eager.any(), &flat)?;
        let seeded = case.dys.iter().map(|(index, _)| &outputs[*index]);
        seeded
            .map(|output| output.handle()?.to_tensor())
            .collect::<Result<_>>()?
    };
    let mut total = 0.0;
    for (output, (_, dy)) in outputs.iter().zip(&case.dys) {
        total += values(output)?
            .iter()
            .zip(values(dy)?)
            .map(|(y, dy)| y * dy)
            .sum::<f64>();
    }
    Ok(total)
}

fn moved(tensor: &Tensor, by: &[f64], step: f64) -> Result<Tensor> {
    let moved: Vec<f64> = values(tensor)?
        .iter()
        .zip(by)
        .map(|(x, v)| x + step * v)
        .collect();
    match tensor.dtype() {
        DataType::FLOAT => {
            let narrow: Vec<f32> = moved.iter().map(|&v| v as f32).collect();
            Tensor::from_slice(&narrow, tensor.dims())
        }
        DataType::COMPLEX128 => {
            let pair = |pair: &[f64]| Complex {
                re: pair[0],
                im: pair[1],
            };
            let pairs: Vec<Complex<f64>> = moved.chunks(2).map(pair).collect();
            Tensor::from_slice(&pairs, tensor.dims())
        }
        _ => Tensor::from_slice(&moved, tensor.dims()),
    }
}

/// Makes square matrices symmetric.
fn symmetric(values: &[f64], size: usize) -> Vec<f64> {
    let at = |index: usize| {
        let (matrix, cell) = (index / (size * size), index % (size * size));
        let mirrored = matrix * size * size + cell % size * size + cell / size;
        (values[index] + values[mirrored]) / 2.0
    };
    (0..values.len()).map(at).collect()
}

/// Compares the gradient along a direction with the slope.
fn check_slope(
    case: &Case,
    eager: &EagerContext,
    grads: &[Option<Tensor>],
    problems: &mut Vec<String>,
) -> Result<()> {
    let flat = case.flat();
    let mut grads = grads.iter();
    for (index, tensor) in flat.iter().enumerate() {
        if !is_watched(tensor.dtype()) {
            continue;
        }
        let grad = grads.next().expect("a gradient per input");
        let is_meant = case
            .slopes
            .as_ref()
            .is_none_or(|list| list.contains(&index));
        if !is_meant || tensor.is_empty() {
            continue;
        }
        let mut direction: Vec<f64> = (0..values(tensor)?.len())
            .map(|i| ((i * 7 + index * 3 + 1) % 11) as f64 / 11.0 - 0.45)
            .collect();
        if case.symmetric {
            let size = tensor.dims().last().map_or(0, |&size| size as usize);
            direction = symmetric(&direction, size);
        }
        let (step, tolerance) = match tensor.dtype() {
            DataType::DOUBLE | DataType::COMPLEX128 => (1e-5, 1e-6),
            _ => (4e-3, 2e-2),
        };
        let at = |step: f64| -> Result<f64> {
            let inputs: Vec<Tensor> = flat
                .iter()
                .enumerate()
                .map(|(other, x)| match other == index {
                    true => moved(x, &direction, step),
                    false => x.share(),
                })
                .collect::<Result<_>>()?;
            weighted(case, eager, &inputs)
        };
        let slope = (at(step)? - at(-step)?) / (2.0 * step);
        let along: f64 = match grad {
            Some(grad) => values(grad)?
                .iter()
                .zip(&direction)
                .map(|(g, v)| g * v)
                .sum(),
            None => 0.0,
        };
        let distance = (slope - along).abs() / slope.abs().max(along.abs()).max(1.0);
        if distance.is_nan() || distance > tolerance {
            problems.push(format!(
                "{} input {index}: slope {slope}, by the gradient {along}",
                case.name
            ));
        }
    }
    Ok(())
}

/// How far from Python's value a gradient may be, relative to values above one.
fn tolerance(case: &Case) -> f64 {
    match case.flat().iter().any(|x| x.dtype() == DataType::FLOAT) {
        true => 2e-5,
        false => 1e-9,
    }
}

fn check(eager: &EagerContext, case: &Case, problems: &mut Vec<String>) {
    let modes: &[&str] = if case.graph {
        &["graph"]
    } else {
        &["tape", "graph"]
    };
    for &mode in modes {
        let found = match mode {
            "tape" => on_tapes(eager, case),
            _ => in_a_graph(case),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                problems.push(format!("{} on a {mode}: {error}", case.name));
                continue;
            }
        };
        let mut compared = || -> Result<()> {
            if case.python {
                let (what, tolerance) = (format!("{mode} gradient"), tolerance(case));
                compare(case, &what, &found.grads, &case.grads, tolerance, problems)?;
                let what = format!("{mode} second");
                // Float sums differ in their order.
                let tolerance = tolerance * 20.0;
                compare(
                    case,
                    &what,
                    &found.seconds,
                    &case.seconds,
                    tolerance,
                    problems,
                )?;
            }
            if case.numeric && mode == modes[0] {
                check_slope(case, eager, &found.grads, problems)?;
            }
            Ok(())
        };
        if let Err(error) = compared() {
            problems.push(format!("{} in a {mode}: {error}", case.name));
        }
    }
}

#[test]
fn gradients_are_pythons_and_the_slopes() -> Result<()> {
    let only = std::env::var("ONLY").ok();
    let cases = fixture::read()?;
    let mut problems = Vec::new();
    let eager = EagerContext::new()?;
    let mut count = 0;
    for case in &cases {
        if only
            .as_ref()
            .is_some_and(|only| !case.name.starts_with(only.as_str()))
        {
            continue;
        }
        count += 1;
        check(&eager, case, &mut problems);
    }
    println!("{count} cases of {} ops", {
        let mut ops: Vec<&str> = cases.iter().map(|case| case.op.as_str()).collect();
        ops.sort_unstable();
        ops.dedup();
        ops.len()
    });
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
    Ok(())
}
