//! Models under each dtype policy, beside those of Keras.

use tfp::nn::functional::{Padding, Pool};
use tfp::nn::layer::{
    Add, AutoContrast, BatchNorm, CenterCrop, Conv, Dense, Embedding, Flatten, GlobalPool, Layer,
    LayerNorm, Model, MultiHeadAttention, Node, Pass, Pooling, RandomBrightness, Recurrent,
    Resizing, RnnKind, Scaling, Sequential,
};
use tfp::nn::optimizer::{Adam, LossScale, Minimizer, Optimizer, Rule, Sgd};
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Constraint, Loss, Policy, Regularizer, Weights};
use tfp::{AnyValue, Context, DataType, EagerContext, Graph, Mode, Result, Tape, Tensor, ops};

use crate::built;
use crate::goldens::Goldens;
use crate::models::SPARSE;

const POLICIES: [Policy; 6] = [
    Policy::Float32,
    Policy::Float64,
    Policy::Float16,
    Policy::BFloat16,
    Policy::MixedFloat16,
    Policy::MixedBFloat16,
];

/// The models of `keras_policies.py`.
fn model(name: &str, weights: &Weights) -> Result<Model> {
    let sequence = |shape: &[i64], layers: &[&dyn Layer]| {
        Sequential::new(weights, shape, layers).map(Model::from)
    };
    match name {
        "mlp" => sequence(
            &[6],
            &[
                &Dense::new(16).activation(Activation::Tanh),
                &LayerNorm::default(),
                &Dense::new(4),
            ],
        ),
        "cnn" => sequence(
            &[8, 8, 2],
            &[
                &Conv::new(6, 3)
                    .padding(Padding::Same)
                    .activation(Activation::Relu),
                &BatchNorm::default(),
                &Pooling::max(2),
                &Flatten,
                &Dense::new(4),
            ],
        ),
        "lstm" => sequence(
            &[5, 3],
            &[
                &Recurrent::new(RnnKind::Lstm, 5),
                &Dense::new(4).policy(Policy::Float32),
            ],
        ),
        _ => {
            let x = Node::input(weights, "x", &[6, 8])?;
            let attended = x.then(MultiHeadAttention::new(2, 4))?;
            let y = Node::join(Add, &[&x, &attended])?.then(LayerNorm::default())?;
            let hidden = y.then(Dense::new(16).activation(Activation::Gelu))?;
            let hidden = hidden.then(Dense::new(8))?;
            let y = Node::join(Add, &[&y, &hidden])?.then(LayerNorm::default())?;
            let y = y.then(GlobalPool(Pool::Average))?.then(Dense::new(4))?;
            Model::new(&[&x], &[("y", &y)])
        }
    }
}

/// A tensor as another type.
fn cast(eager: &EagerContext, tensor: &Tensor, dtype: DataType) -> Result<Tensor> {
    ops::cast(eager, tensor, dtype, ops::CastOptions::default())?.to_tensor()
}

/// The numbers of a tensor.
fn floats(eager: &EagerContext, tensor: &Tensor) -> Result<Vec<f32>> {
    cast(eager, tensor, DataType::FLOAT)?.to_vec()
}

/// The largest difference, as a share of the number where that is more than one.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let pairs = found.iter().zip(expected);
    let shares = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
    shares.fold(0.0, f32::max)
}

/// A training of a case, which begins with Keras' weights, and the batch.
fn begun<R: Rule>(
    goldens: &Goldens,
    case: &str,
    model: Model,
    plan: Plan<R>,
) -> Result<(Trainer<R>, Tensor, Tensor)> {
    let trainer = Trainer::new(model, plan)?;
    let variables = trainer.model().variables().to_vec();
    let before = variables.iter().enumerate().map(|(index, variable)| {
        let value = goldens.get(&format!("{case}/before{index}"))?.to_tensor()?;
        assert_eq!(value.shape(), *variable.shape(), "{case}: {variable:?}");
        cast(&goldens.eager, &value, variable.dtype())
    });
    trainer.set_values(&before.collect::<Result<Vec<_>>>()?)?;
    let x = goldens.get(&format!("{case}/x"))?.to_tensor()?;
    let truth = goldens.get_as(&format!("{case}/truth"), DataType::INT64)?;
    Ok((trainer, x, truth.to_tensor()?))
}

/// How far losses, weights and later predictions may be from Keras': a few units in the last place, which
/// ten steps make larger. Small moving variances do so for predictions.
///
/// On processors that compute in 16 bits, Keras' graph rounds a convolution, its bias and its activation
/// together, eager mode one after the other: `apart`.
fn tolerances(policy: Policy, apart: bool) -> [f32; 3] {
    match (policy.compute(), apart) {
        (DataType::HALF, false) => [1e-3, 1e-2, 1e-2],
        (DataType::BFLOAT16, false) => [6e-3, 3e-2, 1e-1],
        (DataType::HALF, true) => [4e-3, 4e-2, 4e-2],
        (DataType::BFLOAT16, true) => [3e-2, 1e-1, 4e-1],
        _ => [2e-5, 2e-4, 2e-4],
    }
}

/// Ten steps of a model: losses, predictions and weights.
fn ten_steps(
    goldens: &Goldens,
    name: &str,
    policy: Policy,
    place: &impl Mode,
    traced: bool,
    apart: bool,
) -> Result<()> {
    let case = format!("policy/{name}/{policy}");
    let eager = &goldens.eager;
    let weights = Weights::new(place, 1).policy(policy);
    let momentum = Sgd {
        momentum: 0.9,
        ..Sgd::default()
    };
    let plan = Plan::new(SPARSE, momentum).rate(0.05);
    let (mut trainer, x, truth) = begun(goldens, &case, model(name, &weights)?, plan)?;
    if traced {
        trainer = trainer.traced();
    }
    // The last layer of this model is float32.
    let (output, last) = match name {
        "lstm" => (DataType::FLOAT, DataType::FLOAT),
        _ => (policy.compute(), policy.variable()),
    };
    let variables = trainer.model().variables().to_vec();
    assert_eq!(variables[0].dtype(), policy.variable(), "{case}");
    assert_eq!(variables[variables.len() - 1].dtype(), last, "{case}");
    let scale = (policy == Policy::MixedFloat16).then_some(32_768.0);
    assert_eq!(trainer.loss_scale(), scale, "{case}");

    let [of_losses, most, later] = tolerances(policy, apart);
    let near = |what: &str, found: &Tensor, most: f32| -> Result<()> {
        let expected = goldens.get(&format!("{case}/{what}"))?.to_tensor()?;
        let distance = distance(&floats(eager, found)?, &expected.to_vec()?);
        println!("{case}/{what}: {distance:e}");
        assert!(distance <= most, "{case}/{what}: {distance} from Keras");
        Ok(())
    };
    let first = trainer.predict(&x)?;
    assert_eq!(first.dtype(), output, "{case}");
    near("first", &first, most)?;
    let losses = (0..10).map(|_| trainer.train_on(&x, &truth));
    let losses = Tensor::from_vec(losses.collect::<Result<Vec<f32>>>()?, &[10])?;
    near("losses", &losses, of_losses)?;
    near("y", &trainer.predict(&x)?, later)?;
    for (index, value) in trainer.values()?.iter().enumerate() {
        assert_eq!(value.dtype(), variables[index].dtype());
        near(&format!("after{index}"), value, most)?;
    }
    // The weights of a step that Keras skips are as they were.
    assert!(trainer.skipped() < 5, "{case}");
    Ok(())
}

fn steps_of(name: &str) -> Result<()> {
    let goldens = Goldens::open()?;
    for policy in POLICIES {
        let apart = name == "cnn";
        ten_steps(&goldens, name, policy, &Graph::new()?, false, false)?;
        ten_steps(&goldens, name, policy, &goldens.eager, false, apart)?;
        ten_steps(&goldens, name, policy, &goldens.eager, true, false)?;
    }
    Ok(())
}

#[test]
fn steps_of_dense_layers_are_those_of_keras() -> Result<()> {
    steps_of("mlp")
}

#[test]
fn steps_of_convolutions_are_those_of_keras() -> Result<()> {
    steps_of("cnn")
}

#[test]
fn steps_of_recurrent_layers_are_those_of_keras() -> Result<()> {
    steps_of("lstm")
}

#[test]
fn steps_of_a_transformer_are_those_of_keras() -> Result<()> {
    steps_of("transformer")
}

/// Steps from a loss scale at which gradients are infinite: scales, counts, losses and weights.
fn overflow(
    goldens: &Goldens,
    name: &str,
    initial: f32,
    place: &impl Mode,
    traced: bool,
) -> Result<()> {
    let case = format!("policy/overflow/{name}");
    let weights = Weights::new(place, 1).policy(Policy::MixedFloat16);
    let rule = Adam {
        epsilon: 1e-4,
        ..Adam::default()
    };
    let plan = Plan::new(SPARSE, rule)
        .rate(0.01)
        .loss_scale(LossScale::Dynamic {
            initial,
            growth_steps: 3,
        });
    let (mut trainer, x, truth) = begun(goldens, &case, model("mlp", &weights)?, plan)?;
    if traced {
        trainer = trainer.traced();
    }
    let scales = goldens.get(&format!("{case}/scales"))?.to_tensor()?;
    let losses = goldens.get(&format!("{case}/losses"))?.to_tensor()?;
    let counts = goldens.get_as(&format!("{case}/iterations"), DataType::INT64)?;
    let counts = counts.to_tensor()?.to_vec::<i64>()?;
    let (scales, losses) = (scales.to_vec::<f32>()?, losses.to_vec::<f32>()?);
    assert!(scales[0] < initial, "the first step overflows");
    for (step, ((scale, loss), count)) in scales.iter().zip(&losses).zip(&counts).enumerate() {
        let before = trainer.values()?;
        let found = trainer.train_on(&x, &truth)?;
        assert!(
            (found - loss).abs() <= 5e-3,
            "{case}: step {step}: {found}, Keras has {loss}"
        );
        assert_eq!(trainer.loss_scale(), Some(*scale), "{case}: step {step}");
        let made = trainer.step() - trainer.skipped();
        assert_eq!(made, *count as u64, "{case}: step {step}");
        if step > 0 && counts[step] == counts[step - 1] {
            for (old, new) in before.iter().zip(trainer.values()?) {
                assert_eq!(old.to_vec::<f32>()?, new.to_vec::<f32>()?, "step {step}");
            }
        }
    }
    for (index, value) in trainer.values()?.iter().enumerate() {
        let value = goldens.eager.handle(value)?;
        goldens.check(&format!("{case}/after{index}"), &value, 2e-2)?;
    }
    Ok(())
}

/// The same steps in a loop by hand.
fn overflow_by_hand(goldens: &Goldens, name: &str, initial: f32) -> Result<()> {
    let (case, eager) = (format!("policy/overflow/{name}"), &goldens.eager);
    let weights = Weights::new(eager, 1).policy(Policy::MixedFloat16);
    let model = model("mlp", &weights)?;
    for (index, variable) in weights.variables().iter().enumerate() {
        let before = goldens.get(&format!("{case}/before{index}"))?;
        variable.assign(eager, before)?;
    }
    let rule = Adam {
        epsilon: 1e-4,
        ..Adam::default()
    };
    let scale = LossScale::Dynamic {
        initial,
        growth_steps: 3,
    };
    let optimizer = Optimizer::new(rule).rate(0.01);
    let mut minimizer = Minimizer::new(optimizer, &weights.trainables())?.loss_scale(scale)?;
    let scales = goldens.get(&format!("{case}/scales"))?.to_tensor()?;
    let counts = goldens.get_as(&format!("{case}/iterations"), DataType::INT64)?;
    let counts = counts.to_tensor()?.to_vec::<i64>()?;
    let x = AnyValue::from(goldens.get(&format!("{case}/x"))?);
    let truth = goldens.get_as(&format!("{case}/truth"), DataType::INT64)?;
    let truth = AnyValue::from(truth);
    for (step, (scale, count)) in scales.to_vec::<f32>()?.iter().zip(&counts).enumerate() {
        let tape = Tape::new(eager);
        let cx = tape.any();
        let y = model.call(&Pass::training(&cx), std::slice::from_ref(&x))?;
        let y = ops::cast(&cx, &y[0], DataType::FLOAT, ops::CastOptions::default())?;
        let loss = SPARSE.mean(&cx, &truth, &y, None)?;
        minimizer.minimize(&tape, loss.handle()?)?;
        assert_eq!(minimizer.scale(), Some(*scale), "{case}: step {step}");
        let made = minimizer.step() - minimizer.skipped();
        assert_eq!(made, *count as u64, "{case}: step {step}");
    }
    assert!(minimizer.skipped() > 0, "{case}");
    for (index, variable) in weights.variables().iter().enumerate() {
        let value = variable.read(eager)?;
        goldens.check(&format!("{case}/after{index}"), &value, 2e-2)?;
    }
    Ok(())
}

#[test]
fn steps_with_infinite_gradients_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, initial) in [("high", 2.0_f32.powi(40)), ("low", 2.0_f32.powi(22))] {
        overflow(&goldens, name, initial, &Graph::new()?, false)?;
        overflow(&goldens, name, initial, &goldens.eager, false)?;
        overflow(&goldens, name, initial, &goldens.eager, true)?;
        overflow_by_hand(&goldens, name, initial)?;
    }
    Ok(())
}

/// What a layer computes of an input, the loss of a step beside zeros, and the weights after it. It begins
/// with given weights, or with its own.
fn computed(
    layer: &dyn Layer,
    policy: Policy,
    x: &Tensor,
    first: Option<&[Tensor]>,
) -> Result<(Tensor, f32, Vec<Tensor>, Vec<Tensor>)> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 3).policy(policy);
    let model = Sequential::new(&weights, &x.dims()[1..], &[layer])?;
    let mut plan = Plan::new(Loss::MeanSquaredError, Sgd::default());
    plan.input = x.dtype();
    let mut trainer = Trainer::new(model, plan)?;
    if let Some(first) = first {
        let variables = trainer.model().variables().iter().zip(first);
        let values = variables.map(|(one, value)| cast(&eager, value, one.dtype()));
        let values = values.collect::<Result<Vec<_>>>()?;
        trainer.set_values(&values)?;
    }
    let before = trainer.values()?;
    let y = trainer.predict(x)?;
    let loss = trainer.train_on(x, &Tensor::zeros(DataType::FLOAT, y.dims())?)?;
    assert_eq!(trainer.skipped(), 0, "{policy}");
    Ok((y, loss, before, trainer.values()?))
}

/// Every layer with variables works in every type, and computes nearly what it does in float32.
#[test]
fn layers_compute_the_same_under_each_policy() -> Result<()> {
    let goldens = Goldens::open()?;
    let eager = &goldens.eager;
    for (name, _, layer) in built::cases() {
        // TensorFlow's CPU has the gradient of a convolution with gaps in float32 alone.
        if name == "conv1d_causal" {
            continue;
        }
        let x = goldens.read(&format!("layer/{name}/x"))?.to_tensor()?;
        let (expected, loss, first, after) = computed(&*layer, Policy::Float32, &x, None)?;
        let expected = floats(eager, &expected)?;
        let size = expected
            .iter()
            .fold(1.0_f32, |most, one| most.max(one.abs()));
        for policy in POLICIES {
            let found = computed(&*layer, policy, &x, Some(&first));
            let (y, found_loss, _, found_after) = found
                .map_err(|error| tfp::Error::argument(format!("{name} under {policy}: {error}")))?;
            let most = match policy.compute() {
                DataType::HALF => 1e-2,
                DataType::BFLOAT16 => 6e-2,
                _ => 1e-5,
            };
            let away = distance(&floats(eager, &y)?, &expected);
            assert!(away <= most * size, "{name} under {policy}: {away}");
            let away = (found_loss - loss).abs() / loss.max(1.0);
            assert!(
                away <= most * size,
                "{name} under {policy}: loss {found_loss}, {loss}"
            );
            for (found, expected) in found_after.iter().zip(&after) {
                let away = distance(&floats(eager, found)?, &floats(eager, expected)?);
                assert!(away <= most, "{name} under {policy}: weights {away}");
            }
        }
    }
    Ok(())
}

/// Layers of images give the type in which layers compute, and Keras' numbers within a few roundings of
/// values up to 255.
#[test]
fn layers_of_images_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    let layers: [(&str, Box<dyn Layer>); 5] = [
        ("resizing", Box::new(Resizing::new(5, 4))),
        (
            "crop",
            Box::new(CenterCrop {
                height: 4,
                width: 5,
            }),
        ),
        (
            "rescaling",
            Box::new(Scaling {
                scale: vec![0.5],
                offset: vec![3.0],
            }),
        ),
        (
            "brightness",
            Box::new(RandomBrightness {
                factor: (0.2, 0.2),
                ..RandomBrightness::new(0.0)
            }),
        ),
        ("contrast", Box::new(AutoContrast::default())),
    ];
    let cx = goldens.eager.any();
    for policy in POLICIES {
        let x = AnyValue::from(goldens.get(&format!("policy/image/{policy}/x"))?);
        let most = match policy.compute() {
            DataType::HALF => 0.4,
            DataType::BFLOAT16 => 3.0,
            _ => 1e-3,
        };
        for (name, layer) in &layers {
            let weights = Weights::new(&goldens.eager, 1).policy(policy);
            let model = Sequential::new(&weights, &[7, 8, 3], &[&**layer])?;
            for pass in [Pass::training(&cx), Pass::inference(&cx)] {
                let y = model.call(&pass, &x)?;
                assert_eq!(y.dtype(), policy.compute(), "{name} under {policy}");
                if !pass.is_training() {
                    continue;
                }
                let found = floats(&goldens.eager, &y.handle()?.to_tensor()?)?;
                let expected = goldens.get(&format!("policy/image/{policy}/{name}"))?;
                let expected = expected.to_tensor()?.to_vec::<f32>()?;
                assert_eq!(found.len(), expected.len(), "{name} under {policy}");
                for (found, expected) in found.iter().zip(&expected) {
                    let is_near = (found - expected).abs() <= most;
                    assert!(
                        is_near,
                        "{name} under {policy}: {found}, Keras has {expected}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// A batch of numbers and classes.
fn batch() -> Result<(Tensor, Tensor)> {
    let x: Vec<f32> = (0..24).map(|i| (i * 7 % 11) as f32 / 5.0 - 1.0).collect();
    let x = Tensor::from_vec(x, &[4, 6])?;
    Ok((x, Tensor::from_array([0_i64, 3, 1, 2])?))
}

/// What a step that is skipped leaves as it is: slots, averages, and what a constraint would change.
#[test]
fn a_skipped_step_changes_nothing() -> Result<()> {
    let (x, truth) = batch()?;
    let steps = |place: &dyn Fn() -> Result<Weights>, traced: bool| -> Result<()> {
        let weights = place()?.policy(Policy::MixedFloat16);
        let layer = Dense::new(4)
            .regularized("kernel", Regularizer::l2(0.1))
            .constrained("kernel", Constraint::max_norm(0.01));
        let model = Sequential::new(&weights, &[6], &[&layer])?;
        let mut plan = Plan::new(SPARSE, Adam::default()).loss_scale(LossScale::Dynamic {
            initial: 2.0_f32.powi(60),
            growth_steps: 2,
        });
        plan.optimizer = plan.optimizer.average(Default::default());
        plan.optimizer.decay = Some(0.1);
        let mut trainer = Trainer::new(model, plan)?;
        if traced {
            trainer = trainer.traced();
        }
        let before = trainer.values()?;
        for _ in 0..3 {
            trainer.train_on(&x, &truth)?;
        }
        assert_eq!((trainer.step(), trainer.skipped()), (3, 3));
        assert_eq!(trainer.loss_scale(), Some(2.0_f32.powi(57)));
        for (old, new) in before.iter().zip(trainer.values()?) {
            assert_eq!(old.to_vec::<f32>()?, new.to_vec::<f32>()?);
        }
        let folder = std::env::temp_dir().join(format!("skipped-{}", std::process::id()));
        let path = folder.with_extension(if traced { "traced" } else { "plain" });
        trainer.save(&path)?;
        let saved = tfp::CheckpointReader::open(path.to_str().unwrap_or_default())?;
        let names = saved.entries().map(|(name, ..)| name);
        let slots: Vec<&str> = names
            .filter(|name| name.starts_with("optimizer/"))
            .collect();
        assert_eq!(slots.len(), 6);
        for name in slots {
            let slot = saved.read(name)?.to_vec::<f32>()?;
            assert!(slot.iter().all(|&one| one == 0.0), "{name}: {slot:?}");
        }
        Ok(())
    };
    steps(&|| Ok(Weights::new(&Graph::new()?, 3)), false)?;
    steps(&|| Ok(Weights::new(&EagerContext::new()?, 3)), false)?;
    steps(&|| Ok(Weights::new(&EagerContext::new()?, 3)), true)
}

/// A training that was saved after a skipped step goes on as if it had not been interrupted.
#[test]
fn the_scale_is_saved_and_restored() -> Result<()> {
    let (x, truth) = batch()?;
    let eager = EagerContext::new()?;
    let begin = || {
        let weights = Weights::new(&eager, 3).policy(Policy::MixedFloat16);
        let model = Sequential::new(&weights, &[6], &[&Dense::new(4)])?;
        let plan = Plan::new(SPARSE, Adam::default()).loss_scale(LossScale::Dynamic {
            initial: 2.0_f32.powi(20),
            growth_steps: 4,
        });
        Trainer::new(model, plan)
    };
    let mut whole = begin()?;
    for _ in 0..7 {
        whole.train_on(&x, &truth)?;
    }
    assert!(whole.skipped() > 0 && whole.skipped() < 7);
    let path = std::env::temp_dir().join(format!("scale-{}", std::process::id()));
    whole.save(&path)?;
    let mut resumed = begin()?;
    resumed.restore(&path)?;
    assert_eq!(resumed.loss_scale(), whole.loss_scale());
    assert_eq!(resumed.skipped(), whole.skipped());
    for _ in 0..9 {
        let expected = whole.train_on(&x, &truth)?;
        assert_eq!(resumed.train_on(&x, &truth)?.to_bits(), expected.to_bits());
        assert_eq!(resumed.loss_scale(), whole.loss_scale());
    }
    Ok(())
}

/// Every optimizer's state has the type of the variables, which change.
#[test]
fn optimizers_train_variables_of_every_type() -> Result<()> {
    use tfp::nn::optimizer::{Adadelta, Adagrad, Adamax, Ftrl, Lion, Nadam, RmsProp};
    fn check<R: Rule>(rule: impl Fn() -> R) -> Result<()> {
        at(0.05, rule)
    }
    fn at<R: Rule>(rate: f32, rule: impl Fn() -> R) -> Result<()> {
        let (x, truth) = batch()?;
        let eager = EagerContext::new()?;
        for policy in POLICIES {
            let weights = Weights::new(&eager, 3).policy(policy);
            let model = Sequential::new(&weights, &[6], &[&Dense::new(4)])?;
            let mut plan = Plan::new(SPARSE, rule());
            plan.optimizer = Optimizer::new(rule()).rate(rate);
            let mut trainer = Trainer::new(model, plan)?;
            let before = trainer.train_on(&x, &truth)?;
            for _ in 0..4 {
                trainer.train_on(&x, &truth)?;
            }
            let after = trainer.test_on(&x, &truth)?;
            let name = std::any::type_name::<R>();
            assert!(after < before, "{name} {policy}: {before}, then {after}");
            assert_eq!(trainer.values()?[0].dtype(), policy.variable());
        }
        Ok(())
    }
    check(Sgd::default)?;
    check(|| Sgd {
        momentum: 0.5,
        nesterov: true,
    })?;
    check(Adam::default)?;
    check(Adam::w)?;
    check(Adamax::default)?;
    check(Nadam::default)?;
    check(Adagrad::default)?;
    // Its first steps are a thousandth of its rate: at 0.05, bfloat16 rounds them away.
    at(20.0, Adadelta::default)?;
    check(RmsProp::default)?;
    check(Ftrl::default)?;
    check(Lion::default)
}

/// The policy of a layer holds for what is inside of it, and not beyond.
#[test]
fn a_layer_has_its_own_policy() -> Result<()> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 3).policy(Policy::MixedBFloat16);
    let words = Embedding::new(9, 6).policy(Policy::Float64);
    let layers: [&dyn Layer; 3] = [&words, &Dense::new(3), &LayerNorm::default()];
    let model = Sequential::new(&weights, &[2], &layers)?;
    let types: Vec<DataType> = weights.variables().iter().map(|one| one.dtype()).collect();
    assert_eq!(types[0], DataType::DOUBLE);
    assert_eq!(types[1..], [DataType::FLOAT; 4]);
    let any = eager.any();
    let x = any.constant(&Tensor::from_array([[1_i64, 8]])?)?;
    let y = model.call(&Pass::inference(&any), &x)?;
    assert_eq!(y.dtype(), DataType::BFLOAT16);
    // A loss is float32 in any case, and none needs a scale here.
    let mut plan = Plan::new(Loss::MeanSquaredError, Sgd::default());
    plan.input = DataType::INT64;
    let mut trainer = Trainer::new(model, plan)?;
    assert_eq!(trainer.loss_scale(), None);
    let x = Tensor::from_array([[1_i64, 8]])?;
    let truth = Tensor::from_array([[[0.0_f32, 1.0, 2.0], [1.0, 0.0, 2.0]]])?;
    let before = trainer.train_on(&x, &truth)?;
    assert!(trainer.test_on(&x, &truth)? < before);
    Ok(())
}

/// A plan may scale the loss of any model, or of none.
#[test]
fn a_scale_does_not_change_finite_steps() -> Result<()> {
    let (x, truth) = batch()?;
    let losses = |scale: LossScale| -> Result<Vec<u32>> {
        let weights = Weights::new(&EagerContext::new()?, 3);
        let model = Sequential::new(&weights, &[6], &[&Dense::new(4)])?;
        let plan = Plan::new(SPARSE, Sgd::default()).loss_scale(scale);
        let mut trainer = Trainer::new(model, plan)?;
        let losses = (0..4).map(|_| trainer.train_on(&x, &truth).map(f32::to_bits));
        losses.collect()
    };
    assert_eq!(losses(LossScale::KERAS)?, losses(LossScale::None)?);
    assert_eq!(losses(LossScale::Auto)?, losses(LossScale::None)?);
    Ok(())
}
