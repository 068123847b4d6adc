//! A hundred steps of every optimizer.

use tfp::nn::layer::{Dense, Embedding, Flatten, Layer, Pass, Sequential};
use tfp::nn::optimizer::{
    Adadelta, Adagrad, Adam, Adamax, Change, Clip, Ftrl, Lion, Minimizer, MovingAverage, Nadam,
    Optimizer, RmsProp, Rule, Schedule, Sgd, State,
};
use tfp::nn::training::{Batches, Plan, Trainer};
use tfp::nn::{Loss, Weights};
use tfp::{
    AnyValue, Context, DataType, EagerContext, Graph, Mode, Result, Tape, Tensor, TensorHandle,
    Variable, ops,
};

use crate::goldens::{Goldens, near};

/// Runs a rule as a training loop does, and returns the variable after each step.
fn steps<R: Rule>(
    goldens: &Goldens,
    rule: R,
    schedule: &Schedule,
    decay: Option<f32>,
    clip: Clip,
) -> Result<TensorHandle> {
    let cx: &EagerContext = &goldens.eager;
    let mut variable = goldens.get("optimizer/start")?;
    let gradients = goldens.get("optimizer/gradients")?;
    let gradients = ops::unpack(cx, gradients, 100, ops::UnpackOptions::default())?;
    let mut slots = rule
        .slots()
        .iter()
        .map(|slot| {
            let shape: &[i64] = if slot.is_scalar { &[] } else { &[3, 4] };
            ops::fill(cx, shape, slot.initial)
        })
        .collect::<Result<Vec<_>>>()?;
    let mut values = Vec::new();
    for (index, gradient) in gradients.iter().enumerate() {
        let gradient = &clip.apply(cx, std::slice::from_ref(gradient))?[0];
        let rate = ops::fill(cx, &[0_i32; 0][..], schedule.rate(index as u64))?;
        let number = ops::fill(cx, &[0_i32; 0][..], index as f32 + 1.0)?;
        if let Some(decay) = decay {
            let share = ops::mul(cx, ops::mul(cx, &variable, &rate)?, decay)?;
            variable = ops::sub(cx, variable, share)?;
        }
        let coefficients = rule.coefficients(cx, &rate, &number)?;
        let state = State {
            variable: &variable,
            gradient,
            slots: &slots,
        };
        let update = rule.update(cx, &coefficients, state)?;
        variable = match update.variable {
            Change::Set(value) => value,
            Change::Subtract(step) => ops::sub(cx, variable, step)?,
        };
        slots = update.slots;
        values.push(variable.clone());
    }
    ops::pack(cx, &values, ops::PackOptions::default())
}

/// The rules of the test below.
pub const COMPARED: &[&str] = &[
    "Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Lion", "Nadam", "RmsProp", "Sgd",
];

/// Compares a rule's steps with those of Keras.
fn check<R: Rule + Copy>(goldens: &Goldens, name: &str, rule: R, rate: Option<f32>) -> Result<()> {
    let type_name = std::any::type_name::<R>();
    assert!(
        COMPARED.iter().any(|known| type_name.ends_with(known)),
        "{type_name}"
    );
    let schedule = rate.unwrap_or_else(|| rule.default_rate()).into();
    let values = steps(goldens, rule, &schedule, rule.default_decay(), Clip::None)?;
    goldens.check(&format!("optimizer/{name}/y"), &values, 2e-6)?;
    let values = applied(goldens, Optimizer::new(rule).rate(schedule.clone()))?;
    goldens.check(&format!("optimizer/{name}/y"), &values, 2e-6)?;
    let values = steps(goldens, rule, &schedule, Some(0.02), Clip::Norm(0.9))?;
    goldens.check(&format!("optimizer/{name}_options/y"), &values, 2e-6)?;
    let mut optimizer = Optimizer::new(rule).rate(schedule).clip(Clip::Norm(0.9));
    optimizer.decay = Some(0.02);
    let values = applied(goldens, optimizer)?;
    goldens.check(&format!("optimizer/{name}_options/y"), &values, 2e-6)
}

/// Steps of an optimizer on a variable, by ops in place where the rule has one.
fn applied<R: Rule>(goldens: &Goldens, optimizer: Optimizer<R>) -> Result<TensorHandle> {
    let cx: &EagerContext = &goldens.eager;
    let variable = Variable::new(cx, "v", &goldens.get("optimizer/start")?)?;
    let gradients = goldens.get("optimizer/gradients")?;
    let gradients = ops::unpack(cx, gradients, 100, ops::UnpackOptions::default())?;
    let mut minimizer = Minimizer::new(optimizer, std::slice::from_ref(&variable))?;
    let mut values = Vec::new();
    for gradient in gradients {
        minimizer.apply(&[Some(gradient)])?;
        // The next step leaves what was read as it is.
        values.push(variable.read(cx)?);
    }
    ops::pack(cx, &values, ops::PackOptions::default())
}

#[test]
fn optimizers_are_those_of_keras() -> Result<()> {
    let goldens = &Goldens::open()?;
    let momentum = Sgd {
        momentum: 0.9,
        nesterov: false,
    };
    let nesterov = Sgd {
        nesterov: true,
        ..momentum
    };
    check(goldens, "sgd", Sgd::default(), None)?;
    check(goldens, "sgd_momentum", momentum, None)?;
    check(goldens, "sgd_nesterov", nesterov, None)?;
    check(goldens, "adam", Adam::default(), None)?;
    let amsgrad = Adam {
        amsgrad: true,
        ..Adam::default()
    };
    check(goldens, "adam_amsgrad", amsgrad, Some(0.01))?;
    check(goldens, "adamw", Adam::w(), Some(0.01))?;
    check(goldens, "adagrad", Adagrad::default(), Some(0.1))?;
    check(goldens, "adadelta", Adadelta::default(), Some(1.0))?;
    check(goldens, "rmsprop", RmsProp::default(), None)?;
    let centered = RmsProp {
        momentum: 0.5,
        centered: true,
        ..RmsProp::default()
    };
    check(goldens, "rmsprop_centered", centered, None)?;
    check(goldens, "adamax", Adamax::default(), Some(0.01))?;
    check(goldens, "nadam", Nadam::default(), Some(0.01))?;
    let ftrl = Ftrl {
        l1: 0.01,
        l2: 0.02,
        l2_shrinkage: 0.03,
        beta: 0.1,
        ..Ftrl::default()
    };
    check(goldens, "ftrl", ftrl, Some(0.1))?;
    let values = steps(
        goldens,
        Lion::default(),
        &0.001.into(),
        Some(0.01),
        Clip::None,
    )?;
    goldens.check("optimizer/lion/y", &values, 2e-6)
}

#[test]
fn clipping_is_that_of_keras() -> Result<()> {
    let goldens = &Goldens::open()?;
    for (name, clip) in [
        ("clip_value", Clip::Value(0.4)),
        ("clip_norm", Clip::Norm(0.9)),
        ("clip_global", Clip::GlobalNorm(1.1)),
    ] {
        let values = steps(goldens, Sgd::default(), &0.01.into(), None, clip)?;
        goldens.check(&format!("optimizer/{name}/y"), &values, 2e-6)?;
    }
    Ok(())
}

#[test]
fn a_schedule_is_asked_at_every_step() -> Result<()> {
    let goldens = &Goldens::open()?;
    let cosine = Schedule::CosineDecay {
        initial: 0.05,
        steps: 6,
        alpha: 0.0,
        warmup: Some((0.2, 3)),
    };
    let values = steps(goldens, Sgd::default(), &cosine, None, Clip::None)?;
    goldens.check("optimizer/cosine/y", &values, 2e-6)
}

#[test]
fn a_rule_says_which_values_it_misses() -> Result<()> {
    let goldens = &Goldens::open()?;
    let cx = &goldens.eager;
    let variable = goldens.get("optimizer/start")?;
    let state = State {
        variable: &variable,
        gradient: &variable,
        slots: &[],
    };
    let error = Adam::default().update(cx, std::slice::from_ref(&variable), state);
    assert!(error.is_err_and(|error| error.to_string().contains("0 slots, expected 2")));
    Ok(())
}

/// A row that is looked up several times has one gradient, the sum: an embedding learns as the product
/// with one-hot rows does, also where squares are kept.
#[test]
fn rows_that_are_used_twice_have_one_gradient() -> Result<()> {
    let codes = [[0_i64, 2, 2], [2, 1, 0]];
    let hot = codes.map(|row| row.map(|code| [0, 1, 2].map(|at| f32::from(at == code))));
    let truth = Tensor::from_array([[1.0_f32], [-1.0]])?;
    let losses = |first: &dyn Layer, dtype: DataType, x: &Tensor| -> Result<Vec<f32>> {
        let weights = Weights::new(&EagerContext::new()?, 3);
        let layers = [first, &Flatten, &Dense::new(1)];
        let model = Sequential::new(&weights, &x.dims()[1..], &layers)?;
        let mut plan = Plan::new(Loss::MeanSquaredError, Adam::default()).rate(0.1);
        plan.input = dtype;
        let mut trainer = Trainer::new(model, plan)?;
        let ramp = |len: usize| (0..len).map(|at| at as f32 / 4.0 - 0.5).collect::<Vec<_>>();
        let start = [(6, vec![3, 2]), (6, vec![6, 1]), (1, vec![1])];
        let start = start.map(|(len, dims)| Tensor::from_vec(ramp(len), &dims));
        trainer.set_values(&start.into_iter().collect::<Result<Vec<_>>>()?)?;
        (0..8).map(|_| trainer.train_on(x, &truth)).collect()
    };
    let codes = Tensor::from_array(codes)?;
    let looked_up = losses(&Embedding::new(3, 2), DataType::INT64, &codes)?;
    let product = Dense {
        use_bias: false,
        ..Dense::new(2)
    };
    let multiplied = losses(&product, DataType::FLOAT, &Tensor::from_array(hot)?)?;
    for (a, b) in looked_up.iter().zip(&multiplied) {
        assert!((a - b).abs() < 1e-5, "{looked_up:?} is not {multiplied:?}");
    }
    Ok(())
}

/// Adam over variables of every floating-point type at once, in both modes, against float64.
#[test]
fn variables_of_every_type_change() -> Result<()> {
    let start = [0.5_f64, -0.25, 2.0];
    let slope = [0.1_f64, -0.2, 0.3];
    let (rate, steps) = (0.01_f32, 5);
    let mut expected = start;
    let (mut m, mut v) = ([0.0; 3], [0.0; 3]);
    let (beta_1, beta_2) = (f64::from(0.9_f32), f64::from(0.999_f32));
    for step in 1..=steps {
        let scale = (1.0 - beta_2.powi(step)).sqrt() / (1.0 - beta_1.powi(step));
        for at in 0..3 {
            m[at] += (slope[at] - m[at]) * f64::from(1.0 - 0.9_f32);
            v[at] += (slope[at] * slope[at] - v[at]) * f64::from(1.0 - 0.999_f32);
            expected[at] -= f64::from(rate) * scale * m[at] / (v[at].sqrt() + f64::from(1e-7_f32));
        }
    }
    let types = [
        (DataType::DOUBLE, 1e-12),
        (DataType::FLOAT, 1e-6),
        (DataType::HALF, 1e-2),
        (DataType::BFLOAT16, 5e-2),
    ];
    let eager = EagerContext::new()?;
    let any = eager.any();
    for decay in [None, Some(0.0)] {
        let mut optimizer = Optimizer::new(Adam::default()).rate(rate);
        optimizer.decay = decay;
        let mut variables = Vec::new();
        let mut gradients = Vec::new();
        for (dtype, _) in types {
            let options = ops::CastOptions::default();
            let value = ops::cast(&any, &start[..], dtype, options)?;
            variables.push(Variable::new(&eager, &format!("{dtype}"), value.handle()?)?);
            gradients.push(Some(ops::cast(&any, &slope[..], dtype, options)?));
        }
        let slots = optimizer.slots(&any, &variables)?;
        for step in 1..=steps {
            let rate = any.constant(&Tensor::scalar(rate)?)?;
            let step = any.constant(&Tensor::scalar(step as f32)?)?;
            optimizer.apply(&any, &variables, &gradients, &slots, &rate, &step)?;
        }
        for (variable, (dtype, tolerance)) in variables.iter().zip(types) {
            let value = variable.read(&any)?;
            let value = ops::cast(&any, value, DataType::DOUBLE, ops::CastOptions::default())?;
            let value = value.handle()?.to_tensor()?.to_vec::<f64>()?;
            for (value, expected) in value.iter().zip(expected) {
                assert!(
                    (value - expected).abs() <= tolerance,
                    "{dtype}: {value}, {expected}"
                );
            }
        }
    }
    Ok(())
}

/// Variables whose moving averages are kept, in both modes: after each step, and the averages.
#[test]
fn averages_are_those_of_keras() -> Result<()> {
    let goldens = &Goldens::open()?;
    let often = MovingAverage {
        momentum: 0.8,
        every: Some(7),
    };
    let mut every = Optimizer::new(Sgd::default()).rate(0.05).average(often);
    every.decay = Some(0.02);
    average(goldens, "average_every", every)?;
    let last = MovingAverage {
        momentum: 0.9,
        ..MovingAverage::default()
    };
    let adam = Optimizer::new(Adam::default()).rate(0.05).average(last);
    average(goldens, "average", adam)
}

fn average<R: Rule>(goldens: &Goldens, name: &str, optimizer: Optimizer<R>) -> Result<()> {
    let cx = &goldens.eager;
    let start = goldens.get("optimizer/start")?;
    let variable = Variable::new(cx, "v", &start)?;
    let idle = Variable::new(cx, "idle", &start)?;
    let gradients = goldens.get("optimizer/gradients")?;
    let gradients = ops::unpack(cx, gradients, 100, ops::UnpackOptions::default())?;
    let both = [variable.clone(), idle];
    let mut minimizer = Minimizer::new(optimizer, &both)?;
    let mut values = Vec::new();
    for gradient in gradients {
        minimizer.apply(&[Some(gradient), None])?;
        values.push(variable.read(cx)?);
    }
    let values = ops::pack(cx, &values, ops::PackOptions::default())?;
    // Steps of up to 0.05 add up what is rounded.
    goldens.check(&format!("optimizer/{name}/y"), &values, 2e-5)?;
    let slots = minimizer.slots();
    let averages: Vec<&Variable> = slots.iter().filter_map(|one| one.last()).collect();
    let last = averages[0].read(cx)?;
    goldens.check(&format!("optimizer/{name}/last"), &last, 2e-5)?;
    // What has no gradient keeps its value.
    goldens.check("optimizer/start", &averages[1].read(cx)?, 0.0)
}

/// With a momentum of zero the averages are the variables, and with one those after the first step.
#[test]
fn a_training_ends_with_the_averages() -> Result<()> {
    type Place<'a> = &'a dyn Fn() -> Result<Weights>;
    let run = |place: Place<'_>, samples: usize, epochs: usize, momentum: Option<f32>| {
        let layers: [&dyn Layer; 1] = [&Dense::new(1)];
        let model = Sequential::new(&place()?, &[3], &layers)?;
        let mut plan = Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(0.1);
        if let Some(momentum) = momentum {
            let every = None;
            plan.optimizer = plan.optimizer.average(MovingAverage { momentum, every });
        }
        let (x, y) = ([1.0_f32, -2.0, 0.5, 0.0, 1.0, 3.0], [0.5_f32, -1.0]);
        let x = Tensor::from_slice(&x[..3 * samples], &[samples as i64, 3])?;
        let y = Tensor::from_slice(&y[..samples], &[samples as i64, 1])?;
        let mut trainer = Trainer::new(model, plan)?;
        trainer.fit(&Batches::new(x, y, 1)?, epochs, None, &mut [])?;
        trainer.values()
    };
    let eager = || Ok(Weights::new(&EagerContext::new()?, 4));
    let graph = || Ok(Weights::new(&Graph::new()?, 4));
    let (last, first) = (run(&eager, 2, 3, None)?, run(&eager, 1, 1, None)?);
    for place in [&eager as Place<'_>, &graph] {
        near(&run(place, 2, 3, Some(0.0))?, &last, 1e-6)?;
        near(&run(place, 2, 3, Some(1.0))?, &first, 1e-6)?;
    }
    Ok(())
}

/// A loop by hand makes the steps of a trainer.
#[test]
fn a_minimizer_keeps_its_own_slots() -> Result<()> {
    let eager = EagerContext::new()?;
    let layers: [&dyn Layer; 2] = [&Dense::new(4), &Dense::new(1)];
    let make = |weights: &Weights| Sequential::new(weights, &[3], &layers);
    let x = Tensor::from_array([[1.0_f32, -2.0, 0.5], [0.0, 1.0, 3.0]])?;
    let truth = Tensor::from_array([[0.5_f32], [-1.0]])?;
    let plan = Plan::new(Loss::MeanSquaredError, Adam::default()).rate(0.1);
    let optimizer = plan.optimizer.clone();
    let mut trainer = Trainer::new(make(&Weights::new(&eager, 4))?, plan)?;
    let weights = Weights::new(&eager, 4);
    let model = make(&weights)?;
    let mut minimizer = Minimizer::new(optimizer, &weights.trainables())?;
    for _ in 0..5 {
        let expected = trainer.train_on(&x, &truth)?;
        let tape = Tape::new(&eager);
        let cx = tape.any();
        let input = AnyValue::from(eager.handle(&x)?);
        let y = model.call(&Pass::training(&cx), &input)?;
        let loss = Loss::MeanSquaredError.mean(&cx, &eager.handle(&truth)?.into(), &y, None)?;
        minimizer.minimize(&tape, loss.handle()?)?;
        assert_eq!(loss.handle()?.to_tensor()?.to_scalar::<f32>()?, expected);
    }
    assert_eq!(minimizer.step(), 5);
    assert_eq!(minimizer.slots().len(), 4);
    for (found, expected) in weights.variables().iter().zip(trainer.values()?) {
        assert_eq!(found.to_tensor()?.as_bytes()?, expected.as_bytes()?);
    }
    // What the tape did not see changes nothing.
    let tape = Tape::new(&eager);
    let other = tape.any();
    let loss = ops::square(&other, &AnyValue::from(eager.handle(&truth)?))?;
    let error = minimizer.minimize(&tape, loss.handle()?).unwrap_err();
    assert!(
        error.to_string().contains("none of the optimizer's"),
        "{error}"
    );
    let graph = Weights::new(&Graph::new()?, 1);
    make(&graph)?;
    let refused = Minimizer::new(Optimizer::new(Sgd::default()), &graph.trainables());
    assert!(refused.is_err_and(|error| error.to_string().contains("in a graph")));
    Ok(())
}

#[test]
fn a_schedule_may_be_a_function() -> Result<()> {
    let eager = EagerContext::new()?;
    let decay = Schedule::ExponentialDecay {
        initial: 0.2,
        steps: 2,
        rate: 0.5,
        staircase: true,
    };
    let own = Schedule::function(|step| 0.2 * 0.5_f32.powi((step / 2) as i32));
    assert_eq!(own, own.clone());
    assert_ne!(own, Schedule::function(|_| 0.2));
    let losses = |schedule: &Schedule| -> Result<Vec<f32>> {
        let layers: [&dyn Layer; 1] = [&Dense::new(1)];
        let model = Sequential::new(&Weights::new(&eager, 4), &[2], &layers)?;
        let plan = Plan::new(Loss::MeanSquaredError, Sgd::default()).rate(schedule.clone());
        let mut trainer = Trainer::new(model, plan)?;
        let (x, truth) = (
            Tensor::from_array([[1.0_f32, -2.0]])?,
            Tensor::from_array([[3.0_f32]])?,
        );
        (0..6).map(|_| trainer.train_on(&x, &truth)).collect()
    };
    assert_eq!(losses(&own)?, losses(&decay)?);
    Ok(())
}
