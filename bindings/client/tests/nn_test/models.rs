//! The models that are trained.

use tfp::nn::functional::{Padding, Pool};
use tfp::nn::layer::{
    BatchNorm, Bidirectional, Conv, Dense, Dropout, Embedding, Flatten, GlobalPool, Layer,
    LayerNorm, Merge, MultiHeadAttention, Pooling, Recurrent, RnnKind, Sequential,
};
use tfp::nn::optimizer::Adam;
use tfp::nn::training::{Batches, Plan, Trainer};
use tfp::nn::{Activation, Constraint, Loss, Metric, Regularizer, Weights};
use tfp::{DataType, Mode, Result, Tensor};

pub const SPARSE: Loss = Loss::SparseCategoricalCrossentropy { from_logits: true };

pub const MODELS: &[&str] = &[
    "mlp",
    "cnn",
    "rnn",
    "masked",
    "sequences",
    "pooled",
    "penalized",
    "constrained",
];

/// The models of `keras_goldens.py`: name, element type and shape of inputs, layers.
pub fn with_model<T>(
    name: &str,
    run: impl FnOnce(DataType, &[i64], &[&dyn Layer]) -> Result<T>,
) -> Result<T> {
    match name {
        "mlp" => run(
            DataType::FLOAT,
            &[6],
            &[
                &Dense::new(16).activation(Activation::Tanh),
                &LayerNorm::default(),
                &Dense::new(4),
            ],
        ),
        "penalized" => run(
            DataType::FLOAT,
            &[6],
            &[
                &Dense::new(16)
                    .activation(Activation::Tanh)
                    .regularized("kernel", Regularizer::l1(0.003)),
                &Dense::new(4)
                    .regularized(
                        "kernel",
                        Regularizer {
                            l1: 0.001,
                            l2: 0.02,
                        },
                    )
                    .regularized("bias", Regularizer::l2(0.05)),
            ],
        ),
        "constrained" => run(
            DataType::FLOAT,
            &[6],
            &[
                &Dense::new(16)
                    .activation(Activation::Tanh)
                    .constrained("kernel", Constraint::max_norm(0.7))
                    .constrained("bias", Constraint::NonNegative),
                &Dense::new(8).constrained("kernel", Constraint::UnitNorm { axes: vec![0, 1] }),
                &Dense::new(4).constrained(
                    "kernel",
                    Constraint::MinMaxNorm {
                        min: 0.3,
                        max: 0.9,
                        rate: 0.5,
                        axes: vec![1],
                    },
                ),
            ],
        ),
        "cnn" => run(
            DataType::FLOAT,
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
        "masked" => run(
            DataType::INT64,
            &[5],
            &[
                &Embedding::new(64, 6).mask_zero(),
                &Recurrent::new(RnnKind::Lstm, 5).sequences(),
                &Recurrent::new(RnnKind::Gru, 4),
                &Dense::new(4),
            ],
        ),
        "sequences" => run(
            DataType::INT64,
            &[5],
            &[
                &Embedding::new(64, 6).mask_zero(),
                &Bidirectional {
                    layer: Recurrent::new(RnnKind::Lstm, 3).sequences(),
                    merge: Merge::Concat,
                },
                &LayerNorm::default(),
                &MultiHeadAttention::new(2, 3),
                &Dense::new(4),
            ],
        ),
        "pooled" => run(
            DataType::INT64,
            &[5],
            &[
                &Embedding::new(64, 6).mask_zero(),
                &GlobalPool(Pool::Average),
                &Dense::new(4),
            ],
        ),
        _ => run(
            DataType::INT64,
            &[5],
            &[
                &Embedding::new(64, 6),
                &Bidirectional {
                    layer: Recurrent::new(RnnKind::Lstm, 4),
                    merge: Merge::Concat,
                },
                &Dense::new(4),
            ],
        ),
    }
}

/// The exclusive or, many times.
pub fn exclusive_or(size: usize) -> Result<Batches> {
    let (mut x, mut truth) = (Vec::new(), Vec::new());
    for index in 0..64 {
        let (a, b) = ((index & 1) as f32, (index >> 1 & 1) as f32);
        x.extend([a, b]);
        truth.push((a - b).abs());
    }
    Batches::new(
        Tensor::from_vec(x, &[64, 2])?,
        Tensor::from_vec(truth, &[64, 1])?,
        size,
    )
}

pub const BINARY: Loss = Loss::BinaryCrossentropy {
    from_logits: true,
    label_smoothing: 0.0,
};

pub fn small(place: &impl Mode) -> Result<Trainer<Adam>> {
    let model = Sequential::new(
        &Weights::new(place, 3),
        &[2],
        &[
            &Dense::new(16).activation(Activation::Tanh),
            &Dropout { rate: 0.1 },
            &Dense::new(1),
        ],
    )?;
    let plan = Plan::new(BINARY, Adam::default())
        .rate(0.05)
        .metric(Metric::BinaryAccuracy(0.0));
    Trainer::new(model, plan)
}
