//! Activations, losses, metrics, initializers and schedules.

use tfp::nn::optimizer::Schedule;
use tfp::nn::{Activation, Initializer, Loss, Meter, Metric};
use tfp::{DataType, Result};

use crate::goldens::Goldens;

pub const ACTIVATIONS: &[(&str, Activation)] = &[
    ("celu", Activation::Celu(0.7)),
    ("elu", Activation::Elu(1.0)),
    ("elu_half", Activation::Elu(0.5)),
    ("exponential", Activation::Exponential),
    ("gelu", Activation::Gelu),
    ("gelu_tanh", Activation::GeluTanh),
    ("hard_shrink", Activation::HardShrink(0.5)),
    ("hard_sigmoid", Activation::HardSigmoid),
    ("hard_sigmoid_slope", Activation::HardSigmoidSlope(0.2)),
    ("hard_silu", Activation::HardSilu),
    ("hard_tanh", Activation::HardTanh),
    ("leaky_relu", Activation::LeakyRelu(0.2)),
    ("linear", Activation::Linear),
    ("log_sigmoid", Activation::LogSigmoid),
    ("log_softmax", Activation::LogSoftmax),
    ("mish", Activation::Mish),
    ("relu", Activation::Relu),
    ("relu6", Activation::Relu6),
    ("selu", Activation::Selu),
    ("sigmoid", Activation::Sigmoid),
    ("silu", Activation::Silu),
    ("soft_shrink", Activation::SoftShrink(0.5)),
    ("softmax", Activation::Softmax),
    ("softplus", Activation::Softplus),
    ("softsign", Activation::Softsign),
    ("sparse_plus", Activation::SparsePlus),
    ("sparse_sigmoid", Activation::SparseSigmoid),
    ("squareplus", Activation::Squareplus(4.0)),
    ("tanh", Activation::Tanh),
    ("tanh_shrink", Activation::TanhShrink),
    ("threshold", Activation::Threshold(0.3, -0.25)),
];

#[test]
fn activations_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, activation) in ACTIVATIONS {
        let case = format!("activation/{name}");
        goldens.call(&case, &["x"], 2e-6, |cx, inputs| {
            activation.apply(cx, &inputs[0])
        })?;
    }
    Ok(())
}

pub const LOSSES: &[(&str, Loss)] = &[
    ("mean_squared_error", Loss::MeanSquaredError),
    ("mean_absolute_error", Loss::MeanAbsoluteError),
    (
        "mean_absolute_percentage_error",
        Loss::MeanAbsolutePercentageError,
    ),
    (
        "mean_squared_logarithmic_error",
        Loss::MeanSquaredLogarithmicError,
    ),
    ("cosine_similarity", Loss::CosineSimilarity),
    ("huber", Loss::Huber { delta: 0.8 }),
    ("log_cosh", Loss::LogCosh),
    ("log_cosh_zeros", Loss::LogCosh),
    ("mean_absolute_error_zeros", Loss::MeanAbsoluteError),
    ("hinge", Loss::Hinge),
    ("hinge_zeros", Loss::Hinge),
    ("squared_hinge", Loss::SquaredHinge),
    ("categorical_hinge", Loss::CategoricalHinge),
    ("kl_divergence", Loss::KlDivergence),
    ("poisson", Loss::Poisson),
    (
        "binary_crossentropy",
        Loss::BinaryCrossentropy {
            from_logits: false,
            label_smoothing: 0.1,
        },
    ),
    (
        "binary_crossentropy_logits",
        Loss::BinaryCrossentropy {
            from_logits: true,
            label_smoothing: 0.0,
        },
    ),
    (
        "binary_crossentropy_zeros",
        Loss::BinaryCrossentropy {
            from_logits: true,
            label_smoothing: 0.0,
        },
    ),
    (
        "binary_focal",
        Loss::BinaryFocalCrossentropy {
            alpha: Some(0.25),
            gamma: 2.0,
            from_logits: false,
        },
    ),
    (
        "binary_focal_logits",
        Loss::BinaryFocalCrossentropy {
            alpha: None,
            gamma: 2.0,
            from_logits: true,
        },
    ),
    (
        "binary_focal_zeros",
        Loss::BinaryFocalCrossentropy {
            alpha: None,
            gamma: 2.0,
            from_logits: true,
        },
    ),
    (
        "categorical_crossentropy",
        Loss::CategoricalCrossentropy {
            from_logits: false,
            label_smoothing: 0.0,
        },
    ),
    (
        "categorical_crossentropy_logits",
        Loss::CategoricalCrossentropy {
            from_logits: true,
            label_smoothing: 0.2,
        },
    ),
    (
        "categorical_focal",
        Loss::CategoricalFocalCrossentropy {
            alpha: 0.25,
            gamma: 2.0,
            from_logits: false,
        },
    ),
    (
        "sparse",
        Loss::SparseCategoricalCrossentropy { from_logits: false },
    ),
    (
        "sparse_logits",
        Loss::SparseCategoricalCrossentropy { from_logits: true },
    ),
    (
        "sparse_matrix",
        Loss::SparseCategoricalCrossentropy { from_logits: true },
    ),
    ("dice", Loss::Dice),
    (
        "tversky",
        Loss::Tversky {
            alpha: 0.3,
            beta: 0.6,
        },
    ),
];

#[test]
fn losses_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, loss) in LOSSES {
        let dtype = if name.starts_with("sparse") {
            DataType::INT32
        } else {
            DataType::FLOAT
        };
        let truth = goldens.get_as(&format!("loss/{name}/truth"), dtype)?;
        // Percentages are hundreds of times larger than the numbers that they come from.
        let case = format!("loss/{name}");
        goldens.call(&case, &["x"], 5e-6, |cx, inputs| {
            loss.mean(cx, &truth, &inputs[0], None)
        })?;
    }
    Ok(())
}

#[test]
fn weights_multiply_losses() -> Result<()> {
    let goldens = Goldens::open()?;
    let cx = &goldens.eager;
    let truth = goldens.get("loss/mean_squared_error/truth")?;
    let x = goldens.get("loss/mean_squared_error/x")?;
    let twos = tfp::ops::fill(cx, [4, 3], 2.0_f32)?;
    let once = Loss::MeanSquaredError.mean(cx, &truth, &x, None)?;
    let twice = Loss::MeanSquaredError.mean(cx, &truth, &x, Some(&twos))?;
    let (once, twice) = (
        once.to_tensor()?.to_scalar::<f32>()?,
        twice.to_tensor()?.to_scalar::<f32>()?,
    );
    assert!(
        (twice - 2.0 * once).abs() < 1e-6,
        "{twice} is not twice {once}"
    );
    Ok(())
}

pub const METRICS: &[(&str, Metric, DataType, DataType)] = &[
    (
        "mean_squared_error",
        Metric::Mean(Loss::MeanSquaredError),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "root_mean_squared_error",
        Metric::RootMeanSquaredError,
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "accuracy",
        Metric::Accuracy,
        DataType::INT64,
        DataType::INT64,
    ),
    (
        "binary_accuracy",
        Metric::BinaryAccuracy(0.4),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "categorical_accuracy",
        Metric::CategoricalAccuracy,
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "sparse_categorical_accuracy",
        Metric::SparseCategoricalAccuracy,
        DataType::INT64,
        DataType::FLOAT,
    ),
    ("top_k", Metric::TopK(2), DataType::FLOAT, DataType::FLOAT),
    (
        "sparse_top_k",
        Metric::SparseTopK(2),
        DataType::INT64,
        DataType::FLOAT,
    ),
    (
        "cosine_similarity",
        Metric::CosineSimilarity,
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "true_positives",
        Metric::TruePositives(0.4),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "false_positives",
        Metric::FalsePositives(0.4),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "false_negatives",
        Metric::FalseNegatives(0.4),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "true_negatives",
        Metric::TrueNegatives(0.4),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "precision",
        Metric::Precision(0.5),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    (
        "recall",
        Metric::Recall(0.5),
        DataType::FLOAT,
        DataType::FLOAT,
    ),
    ("f1", Metric::F1(0.5), DataType::FLOAT, DataType::FLOAT),
    ("auc", Metric::Auc, DataType::FLOAT, DataType::FLOAT),
    (
        "mean_iou",
        Metric::MeanIou(4),
        DataType::INT64,
        DataType::INT64,
    ),
    ("r2", Metric::R2, DataType::FLOAT, DataType::FLOAT),
];

#[test]
fn metrics_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for &(name, metric, truth, predicted) in METRICS {
        let mut meter = Meter::new(metric);
        for batch in 0..3 {
            let truth = goldens.get_as(&format!("metric/{name}/truth{batch}"), truth)?;
            let said = goldens.get_as(&format!("metric/{name}/predicted{batch}"), predicted)?;
            let statistics = metric.statistics(&goldens.eager, &truth, &said)?;
            meter.add(statistics.to_tensor()?.as_slice::<f32>()?)?;
        }
        let expected = goldens.get(&format!("metric/{name}/y"))?.to_tensor()?;
        let expected = f64::from(expected.to_scalar::<f32>()?);
        let found = meter.result();
        assert!(
            (found - expected).abs() < 2e-6,
            "{name}: {found}, Keras has {expected}"
        );
        meter.reset();
        assert_eq!(meter.result(), 0.0, "{name}");
    }
    Ok(())
}

pub const INITIALIZERS: &[(&str, Initializer)] = &[
    ("zeros", Initializer::Zeros),
    ("ones", Initializer::Ones),
    ("constant", Initializer::Constant(0.3)),
    ("identity", Initializer::Identity(1.5)),
    ("random_normal", Initializer::RandomNormal(0.1, 0.2)),
    ("truncated_normal", Initializer::TruncatedNormal(0.1, 0.2)),
    ("random_uniform", Initializer::RandomUniform(-0.3, 0.4)),
    ("glorot_uniform", Initializer::GLOROT_UNIFORM),
    ("glorot_normal", Initializer::GLOROT_NORMAL),
    ("he_uniform", Initializer::HE_UNIFORM),
    ("he_normal", Initializer::HE_NORMAL),
    ("lecun_uniform", Initializer::LECUN_UNIFORM),
    ("lecun_normal", Initializer::LECUN_NORMAL),
    ("orthogonal", Initializer::Orthogonal(1.1)),
];

#[test]
fn weights_that_no_memory_holds_are_refused() -> Result<()> {
    let eager = tfp::EagerContext::new()?;
    for &(name, initializer) in INITIALIZERS {
        for shape in [[i64::MAX, i64::MAX, 2], [0, i64::MAX, i64::MAX]] {
            let weight = initializer.value(&eager, &shape, DataType::FLOAT, 1);
            let error = weight.map_err(|error| error.to_string());
            assert!(
                error.is_err_and(|error| error.contains("63 bits")),
                "{name}"
            );
        }
    }
    Ok(())
}

#[test]
fn initializers_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, initializer) in INITIALIZERS {
        let shape: &[i64] = if *name == "identity" {
            &[4, 6]
        } else {
            &[3, 2, 4, 6]
        };
        let value = initializer.value(&goldens.eager, shape, DataType::FLOAT, 1337)?;
        goldens.check(&format!("initializer/{name}/y"), &value, 1e-6)?;
    }
    let shape = Initializer::Identity(1.0).value(&goldens.eager, &[3], DataType::FLOAT, 0);
    assert!(shape.is_err_and(|error| error.to_string().contains("Identity")));
    Ok(())
}

pub fn schedules() -> Vec<(&'static str, Schedule)> {
    let cosine = |initial, alpha, warmup| Schedule::CosineDecay {
        initial,
        steps: 25,
        alpha,
        warmup,
    };
    vec![
        (
            "exponential",
            Schedule::ExponentialDecay {
                initial: 0.1,
                steps: 7,
                rate: 0.8,
                staircase: false,
            },
        ),
        (
            "exponential_stairs",
            Schedule::ExponentialDecay {
                initial: 0.1,
                steps: 7,
                rate: 0.8,
                staircase: true,
            },
        ),
        (
            "inverse_time",
            Schedule::InverseTimeDecay {
                initial: 0.1,
                steps: 5,
                rate: 0.4,
                staircase: false,
            },
        ),
        (
            "polynomial",
            Schedule::PolynomialDecay {
                initial: 0.1,
                steps: 20,
                end: 0.01,
                power: 2.0,
                cycle: false,
            },
        ),
        (
            "polynomial_cycle",
            Schedule::PolynomialDecay {
                initial: 0.1,
                steps: 9,
                end: 0.01,
                power: 1.0,
                cycle: true,
            },
        ),
        (
            "piecewise",
            Schedule::PiecewiseConstant {
                boundaries: vec![5, 17],
                values: vec![0.1, 0.05, 0.01],
            },
        ),
        ("cosine", cosine(0.1, 0.1, None)),
        ("cosine_warmup", cosine(0.02, 0.1, Some((0.3, 6)))),
        (
            "cosine_restarts",
            Schedule::CosineDecayRestarts {
                initial: 0.1,
                steps: 5,
                t_mul: 2.0,
                m_mul: 0.7,
                alpha: 0.05,
            },
        ),
        (
            "cosine_restarts_even",
            Schedule::CosineDecayRestarts {
                initial: 0.1,
                steps: 7,
                t_mul: 1.0,
                m_mul: 1.0,
                alpha: 0.0,
            },
        ),
    ]
}

#[test]
fn schedules_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, schedule) in schedules() {
        let expected = goldens.get(&format!("schedule/{name}/y"))?.to_tensor()?;
        for (step, expected) in expected.as_slice::<f32>()?.iter().enumerate() {
            let found = schedule.rate(step as u64);
            assert!(
                (found - expected).abs() <= 1e-6,
                "{name}: the rate of step {step} is {found}, Keras has {expected}"
            );
        }
    }
    Ok(())
}
