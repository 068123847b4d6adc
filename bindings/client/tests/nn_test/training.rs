//! Training in both modes.

use tfp::nn::functional::{Padding, Pool, RnnOptions, conv_transpose};
use tfp::nn::layer::{
    BatchNorm, Bidirectional, Conv, Conv3d, ConvTranspose, Dense, DepthwiseConv2d, Dropout,
    Embedding, Flatten, GlobalPool, GroupNorm, Layer, LayerNorm, Merge, MultiHeadAttention, Pass,
    Pooling, Recurrent, Reshape, RnnKind, Sequential,
};
use tfp::nn::optimizer::{Adam, Clip, Sgd};
use tfp::nn::training::{Batches, EarlyStopping, Plan, Progress, SaveBest, Trainer};
use tfp::nn::{Activation, Loss, Metric, Regularizer, Weights};
use tfp::{Context, DataType, EagerContext, ErrorKind, Graph, Mode, Model, Result, Tensor};

use crate::goldens::Goldens;

const SPARSE: Loss = Loss::SparseCategoricalCrossentropy { from_logits: true };

const MODELS: &[&str] = &[
    "mlp",
    "cnn",
    "rnn",
    "masked",
    "sequences",
    "pooled",
    "penalized",
];

/// The models of `keras_goldens.py`: name, element type and shape of inputs, layers.
fn with_model<T>(
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
                &MultiHeadAttention {
                    heads: 2,
                    width: 3,
                    causal: false,
                },
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
                    layer: Recurrent {
                        kind: RnnKind::Lstm,
                        units: 4,
                        options: RnnOptions::default(),
                    },
                    merge: Merge::Concat,
                },
                &Dense::new(4),
            ],
        ),
    }
}

/// Ten steps from Keras' weights, compared with those of Keras.
fn ten_steps(goldens: &Goldens, name: &str, place: &impl Mode) -> Result<()> {
    let case = format!("training/{name}");
    with_model(name, |input, shape, layers| {
        let weights = Weights::new(place, 1);
        let model = Sequential::new(&weights, shape, layers)?;
        assert_eq!(model.output_shape().last(), Some(&4), "{name}");
        let mut rule = Adam::default();
        if name == "sequences" {
            rule.epsilon = 1e-5;
        }
        let mut plan = Plan::new(SPARSE, rule)
            .rate(0.01)
            .metric(Metric::SparseCategoricalAccuracy);
        plan.optimizer = plan.optimizer.clip(Clip::Norm(1.0));
        plan.input = input;
        let mut trainer = Trainer::new(model, plan)?;
        let variables = weights.variables();
        let before = (0..variables.len())
            .map(|index| goldens.get(&format!("{case}/before{index}"))?.to_tensor())
            .collect::<Result<Vec<_>>>()?;
        trainer.set_values(&before)?;

        let x = goldens.get_as(&format!("{case}/x"), input)?.to_tensor()?;
        let truth = goldens
            .get_as(&format!("{case}/truth"), DataType::INT64)?
            .to_tensor()?;
        let expected = goldens.get(&format!("{case}/losses"))?.to_tensor()?;
        for (step, expected) in expected.as_slice::<f32>()?.iter().enumerate() {
            let loss = trainer.train_on(&x, &truth)?;
            assert!(
                (loss - expected).abs() <= 1e-5,
                "{name}: the loss of step {step} is {loss}, Keras has {expected}"
            );
        }
        for (index, (variable, value)) in variables.iter().zip(trainer.values()?).enumerate() {
            let value = goldens.eager.handle(&value)?;
            goldens.check(&format!("{case}/after{index}"), &value, 5e-5)?;
            assert!(variable.name().contains('/'), "{}", variable.name());
        }
        let y = goldens.eager.handle(&trainer.predict(&x)?)?;
        goldens.check(&format!("{case}/y"), &y, 5e-5)?;
        // The mean of a masked loss is that of a batch.
        let batch = if ["masked", "pooled", "sequences"].contains(&name) {
            12
        } else {
            5
        };
        let logs = trainer.evaluate(&Batches::new(x, truth, batch)?)?;
        let expected = goldens.get(&format!("{case}/test"))?.to_tensor()?;
        for (name, expected) in ["loss", "sparse_categorical_accuracy"]
            .iter()
            .zip(expected.as_slice::<f32>()?)
        {
            let found = logs.get(name).unwrap_or(f64::NAN);
            assert!(
                (found - f64::from(*expected)).abs() < 1e-5,
                "{name}: {logs}"
            );
        }
        Ok(())
    })
}

#[test]
fn steps_in_a_graph_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for name in MODELS {
        ten_steps(&goldens, name, &Graph::new()?)?;
    }
    Ok(())
}

#[test]
fn steps_in_eager_mode_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for name in MODELS {
        ten_steps(&goldens, name, &goldens.eager)?;
    }
    Ok(())
}

/// The exclusive or, many times.
fn exclusive_or(size: usize) -> Result<Batches> {
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

const BINARY: Loss = Loss::BinaryCrossentropy {
    from_logits: true,
    label_smoothing: 0.0,
};

fn small(place: &impl Mode) -> Result<Trainer<Adam>> {
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

#[test]
fn a_small_model_learns_the_exclusive_or_in_both_modes() -> Result<()> {
    for mut trainer in [small(&Graph::new()?)?, small(&EagerContext::new()?)?] {
        let data = exclusive_or(16)?.shuffled(5);
        let history = trainer.fit(&data, 60, Some(&exclusive_or(64)?), &mut [])?;
        assert_eq!(trainer.step(), 240);
        let last = &history[59];
        assert_eq!(last.get("val_binary_accuracy"), Some(1.0), "{last}");
        assert!(
            last.get("val_loss").is_some_and(|loss| loss < 0.1),
            "{last}"
        );
    }
    Ok(())
}

#[test]
fn a_training_ends_early_with_its_best_values() -> Result<()> {
    let mut trainer = small(&EagerContext::new()?)?;
    let data = exclusive_or(64)?;
    let mut saved = Vec::new();
    let mut best = SaveBest::new("val_loss", |epoch, trainer: &Trainer<Adam>| {
        saved.push((epoch, trainer.values()?));
        Ok(())
    });
    let mut stopping = EarlyStopping::new("val_loss", 2);
    let mut progress = Progress::default();
    let history = trainer.fit(
        &data,
        400,
        Some(&data),
        &mut [&mut best, &mut stopping, &mut progress],
    )?;
    let losses: Vec<f64> = history
        .iter()
        .filter_map(|logs| logs.get("val_loss"))
        .collect();
    assert_eq!(losses.len(), history.len());
    let (epoch, values) = saved.last().expect("the first epoch is the best so far");
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses[*epoch], least);
    if history.len() < 400 {
        assert_eq!(history.len(), epoch + 3, "two epochs of patience");
        for (now, best) in trainer.values()?.iter().zip(values) {
            assert_eq!(now.as_bytes()?, best.as_bytes()?);
        }
    }
    Ok(())
}

#[test]
fn masks_reach_what_they_are_for() -> Result<()> {
    let eager = EagerContext::new()?;
    let build = |layers: &[&dyn Layer]| Sequential::new(&Weights::new(&eager, 1), &[3], layers);
    let x = eager.constant(&Tensor::from_array([[3_i64, 0, 0]])?)?;
    let cx = eager.any();
    let embedding = Embedding::new(4, 2).mask_zero();
    let pass = Pass::inference(&cx);
    build(&[&embedding, &Dense::new(2)])?.call(&pass, &(&x).into())?;
    let mask = pass.mask().expect("a mask").handle()?.to_tensor()?;
    assert_eq!(mask.as_slice::<bool>()?, [true, false, false]);
    // What has no steps has no mask.
    let pass = Pass::inference(&cx);
    build(&[&embedding, &Flatten, &Dense::new(2)])?.call(&pass, &(&x).into())?;
    assert!(pass.mask().is_none());
    let model = build(&[&embedding, &BatchNorm::default()])?;
    let error = model.call(&Pass::training(&cx), &(&x).into());
    assert!(error.is_err_and(|error| error.to_string().contains("BatchNorm: some")));
    let plan = Plan::new(SPARSE, Sgd::default()).metric(Metric::TopK(1));
    let mut plan = plan;
    plan.input = DataType::INT64;
    let mut trainer = Trainer::new(build(&[&embedding])?, plan)?;
    let truth = Tensor::zeros(DataType::INT64, &[1, 3])?;
    let error = trainer.train_on(&Tensor::from_array([[3_i64, 0, 0]])?, &truth);
    assert!(error.is_err_and(|error| error.to_string().contains("'top_k_categorical_accuracy'")));
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error() -> Result<()> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 0);
    let image = Sequential::new(&weights, &[3], &[&Conv::new(4, 3)]);
    assert!(image.is_err_and(|error| error.to_string().contains("Conv takes")));
    let tiny = Sequential::new(&weights, &[2, 2, 1], &[&Conv::new(4, 3)]);
    assert!(tiny.is_err_and(|error| error.to_string().contains("at least one window")));
    let tinier = Sequential::new(&weights, &[3, 3, 1], &[&Conv::new(4, 5)]);
    assert!(tinier.is_err_and(|error| error.to_string().contains("at least one window")));
    let open = Sequential::new(&weights, &[-1, -1, 4], &[&Reshape { shape: vec![4] }]);
    assert!(open.is_err_and(|error| error.to_string().contains("Reshape takes")));
    let rate = Sequential::new(&weights, &[3], &[&Dropout { rate: 1.0 }]);
    assert!(rate.is_err_and(|error| error.to_string().contains("rate is 1")));
    let heavy = Regularizer::l2(f32::NAN);
    for (variable, rule, expected) in [
        ("kernels", Regularizer::l2(0.1), "['kernel', 'bias']"),
        ("kernel", heavy, "factors 0 and NaN"),
    ] {
        let layer = Dense::new(1).regularized(variable, rule);
        let error = Sequential::new(&weights, &[3], &[&layer]);
        assert!(error.is_err_and(|error| error.to_string().contains(expected)));
    }
    let truths = Batches::new(
        Tensor::zeros(DataType::FLOAT, &[3, 2])?,
        Tensor::zeros(DataType::FLOAT, &[2])?,
        1,
    );
    assert!(truths.is_err_and(|error| error.to_string().contains("as many truths")));

    let model = Sequential::new(&weights, &[2], &[&Dense::new(1)])?;
    let mut trainer = Trainer::new(model, Plan::new(Loss::MeanSquaredError, Sgd::default()))?;
    let x = Tensor::zeros(DataType::FLOAT, &[4, 3])?;
    let truth = Tensor::zeros(DataType::FLOAT, &[4, 1])?;
    let error = trainer.train_on(&x, &truth);
    assert!(error.is_err_and(|error| error.to_string().contains("shape [?,2], found shape [4,3]")));
    assert!(trainer.predict(&Tensor::scalar(1.0_f32)?).is_err());
    assert!(trainer.set_values(&[]).is_err());
    let none = |dims: &[i64]| Tensor::zeros(DataType::FLOAT, dims);
    let nothing = Batches::new(none(&[0, 2])?, none(&[0, 1])?, 2)?;
    let something = Batches::new(none(&[4, 2])?, none(&[4, 1])?, 2)?;
    for error in [
        trainer.evaluate(&nothing).err(),
        trainer.fit(&nothing, 1, None, &mut []).err(),
        trainer.fit(&something, 1, Some(&nothing), &mut []).err(),
    ] {
        assert!(error.is_some_and(|error| error.to_string().contains("no batch")));
    }
    let mut stopping = EarlyStopping::new("accuracy", 1);
    let data = Batches::new(Tensor::zeros(DataType::FLOAT, &[4, 2])?, truth, 2)?;
    let error = trainer.fit(&data, 1, None, &mut [&mut stopping]);
    assert!(error.is_err_and(|error| error.to_string().contains("there are loss")));
    Ok(())
}

/// A batch of which every step is masked has a loss of zero and changes nothing, as in Keras.
fn nothing_is_left(place: &impl Mode) -> Result<()> {
    let layers: [&dyn Layer; 3] = [
        &Embedding::new(4, 3).mask_zero(),
        &Recurrent::new(RnnKind::Gru, 2).sequences(),
        &Dense::new(1),
    ];
    let model = Sequential::new(&Weights::new(place, 5), &[3], &layers)?;
    let mut plan = Plan::new(Loss::MeanSquaredError, Sgd::default());
    plan.input = DataType::INT64;
    let mut trainer = Trainer::new(model, plan)?;
    let values = |trainer: &Trainer<Sgd>| -> Result<Vec<Vec<f32>>> {
        trainer.values()?.iter().map(Tensor::to_vec).collect()
    };
    let before = values(&trainer)?;
    let truth = Tensor::from_array([[[1.0_f32]; 3]; 2])?;
    let padding = Tensor::zeros(DataType::INT64, &[2, 3])?;
    assert_eq!(trainer.train_on(&padding, &truth)?, 0.0);
    assert_eq!(trainer.test_on(&padding, &truth)?, 0.0);
    assert_eq!(values(&trainer)?, before);
    let loss = trainer.train_on(&Tensor::from_array([[1_i64, 2, 0], [3, 0, 0]])?, &truth)?;
    assert!(loss > 0.0 && values(&trainer)? != before, "{loss}");
    Ok(())
}

#[test]
fn a_batch_that_is_all_padding_changes_nothing() -> Result<()> {
    nothing_is_left(&Graph::new()?.scope())?;
    nothing_is_left(&EagerContext::new()?)
}

/// Sizes that no layer can have are errors that name the layer, and no panic where they overflow.
#[test]
fn sizes_that_no_layer_can_have_are_refused() -> Result<()> {
    let eager = EagerContext::new()?;
    let conv = |change: fn(&mut Conv)| {
        let mut conv = Conv::new(2, 3);
        change(&mut conv);
        conv
    };
    let mut depthwise = DepthwiseConv2d::new(3);
    depthwise.multiplier = i64::MAX;
    let mut transposed = ConvTranspose::new(2, 3);
    transposed.conv.options.strides = (i64::MAX, 1);
    let (mut causal, mut grouped) = (ConvTranspose::new(2, 3), ConvTranspose::new(2, 3));
    causal.conv.options.padding = Padding::Causal;
    grouped.conv.options.groups = 2;
    let mut pooled = Pooling::max(2);
    pooled.padding = Padding::Causal;
    let heads = MultiHeadAttention {
        heads: 0,
        width: 2,
        causal: false,
    };
    let groups = GroupNorm {
        groups: 3,
        epsilon: 1e-3,
    };
    let far = Reshape {
        shape: vec![i64::MAX, 2],
    };
    let cases: &[(&[i64], &dyn Layer, &str)] = &[
        (&[3], &Dense::new(0), "Dense: units [0]"),
        (&[3], &Embedding::new(0, 2), "Embedding: 0 rows"),
        (&[3], &Embedding::new(2, -1), "Embedding: width [-1]"),
        (&[1 << 30, 1 << 30, 1 << 30], &Flatten, "Flatten takes"),
        (&[i64::MAX, 2], &Flatten, "sizes up to"),
        (&[2], &far, "Reshape takes"),
        (&[9, 9, 2], &Conv::new(0, 3), "Conv: filters [0]"),
        (&[9, 9, 2], &Conv::new(2, 0), "Conv: size [0, 0]"),
        (&[9, 9, 2], &Conv::new(2, i64::MAX), "Conv: size"),
        (
            &[9, 9, 2],
            &Conv::new(2, 3).strides(0),
            "Conv: strides [0, 0]",
        ),
        (
            &[9, 9, 2],
            &Conv::new(2, 3).strides(i64::MAX),
            "Conv: strides",
        ),
        (
            &[9, 9, 2],
            &conv(|c| c.options.dilations.1 = i64::MAX),
            "Conv: dilations",
        ),
        (&[9, 9, 2], &conv(|c| c.options.groups = 0), "0 groups"),
        (
            &[9, 9, 3],
            &conv(|c| c.options.groups = 2),
            "2 groups don't divide 3 channels",
        ),
        (&[9, 9, 2], &depthwise, "DepthwiseConv2d: multiplier"),
        (&[9, 9, 2], &transposed, "ConvTranspose: strides"),
        (&[9, 2], &causal, "ConvTranspose: causal padding"),
        (&[9, 2], &grouped, "ConvTranspose: 2 groups, expected 1"),
        (&[9, 9, 2], &causal.conv, "Conv: causal padding"),
        (&[9, 2], &pooled, "Pooling: causal padding"),
        (&[9, 9, 9, 1], &Conv3d::new(2, i64::MAX), "Conv3d: size"),
        (&[9, 9, 1], &Pooling::max(0), "Pooling: size [0, 0]"),
        (&[4, 4, 1], &Pooling::max(9), "at least one window"),
        (
            &[4, 3],
            &Recurrent::new(RnnKind::Lstm, i64::MAX),
            "Recurrent: units",
        ),
        (
            &[4, 3],
            &heads,
            "MultiHeadAttention: heads and width [0, 2]",
        ),
        (&[4, 4], &groups, "GroupNorm: 3 groups don't divide 4"),
    ];
    for (input, layer, said) in cases {
        let weights = Weights::new(&eager, 0);
        let model = Sequential::new(&weights, input, &[&Activation::Relu, *layer]);
        let error = match model {
            Ok(_) => panic!("{said}: a layer was built on {input:?}"),
            Err(error) => error.to_string(),
        };
        assert!(
            error.starts_with("layer ") && error.contains(said),
            "{error}"
        );
        assert!(
            weights.variables().is_empty(),
            "{said}: a variable was made"
        );
    }
    Ok(())
}

/// What lies `dilation` apart in the kernel does so in the output, too.
#[test]
fn transposed_convolutions_may_have_gaps() -> Result<()> {
    let eager = EagerContext::new()?;
    for (stride, dilation) in [(1, 2), (2, 1), (3, 1), (1, 3)] {
        let mut layer = ConvTranspose::new(1, 2);
        layer.conv.use_bias = false;
        layer.conv.options.strides = (stride, 1);
        layer.conv.options.dilations = (dilation, 1);
        layer.conv.options.padding = Padding::Valid;
        let model = Sequential::new(&Weights::new(&eager, 0), &[3, 1], &[&layer])?;
        let kernel = eager.constant(&Tensor::from_array([[[3.0_f32]], [[10.0]]])?)?;
        let x = eager.constant(&Tensor::from_array([[[1.0_f32], [2.0], [5.0]]])?)?;
        let y = conv_transpose(&eager, &x, &kernel, None, &layer.conv.options)?.to_tensor()?;
        let (stride, dilation) = (stride as usize, dilation as usize);
        let mut expected = vec![0.0; 2 * stride + dilation.max(stride - 1) + 1];
        for (i, x) in [1.0, 2.0, 5.0].into_iter().enumerate() {
            expected[i * stride] += 3.0 * x;
            expected[i * stride + dilation] += 10.0 * x;
        }
        assert_eq!(model.output_shape(), [expected.len() as i64, 1]);
        assert_eq!(y.as_slice::<f32>()?, expected, "{stride} {dilation}");
    }
    Ok(())
}

/// A model of one input and one output that computes `2 x`, with a loss and a metric.
fn doubling(place: &impl Mode, loss: Loss, metric: Metric) -> Result<Trainer<Sgd>> {
    let model = Sequential::new(&Weights::new(place, 0), &[1], &[&Dense::new(1)])?;
    let trainer = Trainer::new(model, Plan::new(loss, Sgd::default()).metric(metric))?;
    trainer.set_values(&[
        Tensor::from_array([[2.0_f32]])?,
        Tensor::zeros(DataType::FLOAT, &[1])?,
    ])?;
    Ok(trainer)
}

/// Truths of shape `(batch)` and `(batch, 1)` must not be compared with each prediction of the batch.
fn truths_fit(place: &impl Mode) -> Result<()> {
    let x = Tensor::from_array([[1.0_f32], [2.0], [4.0]])?;
    let truth = Tensor::from_array([3.0_f32, 4.0, 6.0])?;
    // Errors of 1, 0 and 2.
    let cases = [
        (
            Loss::MeanSquaredError,
            Metric::RootMeanSquaredError,
            5.0,
            5.0_f64.sqrt(),
        ),
        (
            Loss::MeanAbsoluteError,
            Metric::Mean(Loss::MeanSquaredError),
            3.0,
            5.0,
        ),
        (Loss::MeanAbsoluteError, Metric::Accuracy, 3.0, 1.0),
    ];
    for (loss, metric, sum, measure) in cases {
        let mut values = Vec::new();
        for dims in [&[3, 1][..], &[3], &[3, 1, 1]] {
            let mut trainer = doubling(place, loss, metric)?;
            let truth = truth.reshaped(dims)?;
            let data = Batches::new(x.share()?, truth.share()?, 3)?;
            let logs = trainer.evaluate(&data)?;
            let found = logs.get("loss").unwrap_or(f64::NAN) * 3.0;
            assert!((found - sum).abs() < 1e-6, "{loss:?} of {dims:?}: {found}");
            let mut found = logs.get(metric.name()).unwrap_or(f64::NAN);
            found *= if metric == Metric::RootMeanSquaredError {
                3.0_f64.sqrt()
            } else {
                3.0
            };
            assert!(
                (found - measure).abs() < 1e-6,
                "{metric:?} of {dims:?}: {found}"
            );
            trainer.train_on(&x, &truth)?;
            values.push(trainer.values()?[0].to_scalar::<f32>()?);
        }
        assert!(
            values
                .iter()
                .all(|value| *value == values[0] && *value != 2.0),
            "{values:?}"
        );
    }

    // Class numbers with and without a last dimension.
    let model = Sequential::new(&Weights::new(place, 0), &[3], &[&Activation::Linear])?;
    let plan = Plan::new(SPARSE, Sgd::default()).metric(Metric::SparseTopK(2));
    let mut trainer = Trainer::new(model, plan.metric(Metric::SparseCategoricalAccuracy))?;
    let x = Tensor::from_array([[9.0_f32, 0.0, 1.0], [0.0, 9.0, 1.0], [0.0, 1.0, 9.0]])?;
    for dims in [&[3][..], &[3, 1]] {
        let truth = Tensor::from_slice(&[0_i64, 0, 1], dims)?;
        let logs = trainer.evaluate(&Batches::new(x.share()?, truth, 3)?)?;
        let found = logs.get("sparse_categorical_accuracy").unwrap_or(f64::NAN);
        assert!((found - 1.0 / 3.0).abs() < 1e-6, "{dims:?}: {found}");
        let found = logs
            .get("sparse_top_k_categorical_accuracy")
            .unwrap_or(f64::NAN);
        assert!((found - 2.0 / 3.0).abs() < 1e-6, "{dims:?}: {found}");
    }
    Ok(())
}

#[test]
fn truths_with_and_without_a_last_dimension_are_the_same_in_a_graph() -> Result<()> {
    truths_fit(&Graph::new()?.scope())
}

#[test]
fn truths_with_and_without_a_last_dimension_are_the_same_in_eager_mode() -> Result<()> {
    truths_fit(&EagerContext::new()?)
}

/// Returns an empty folder of a test.
fn scratch(name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, Into::into);
    let folder = root.join(format!("tfp_training_{}_{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A trainer of the model `cnn` with other first weights for each seed.
fn fresh(place: &impl Mode, seed: u32) -> Result<Trainer<Adam>> {
    with_model("cnn", |_, shape, layers| {
        let model = Sequential::new(&Weights::new(place, seed), shape, layers)?;
        Trainer::new(model, Plan::new(SPARSE, Adam::default()).rate(0.01))
    })
}

#[test]
fn a_training_goes_on_from_a_checkpoint_in_either_mode() -> Result<()> {
    let goldens = Goldens::open()?;
    let folder = scratch("checkpoint");
    let x = goldens.get("training/cnn/x")?.to_tensor()?;
    let truth = goldens
        .get_as("training/cnn/truth", DataType::INT64)?
        .to_tensor()?;
    let eager = EagerContext::new()?;
    for (name, mut first) in [
        ("graph", fresh(&Graph::new()?, 1)?),
        ("eager", fresh(&eager, 1)?),
    ] {
        for _ in 0..4 {
            first.train_on(&x, &truth)?;
        }
        let prefix = folder.join(name);
        first.save(&prefix)?;
        let expected = (0..4)
            .map(|_| first.train_on(&x, &truth))
            .collect::<Result<Vec<f32>>>()?;
        for mut second in [fresh(&Graph::new()?, 2)?, fresh(&eager, 2)?] {
            second.restore(&prefix)?;
            assert_eq!(second.step(), 4);
            for (step, expected) in expected.iter().enumerate() {
                let loss = second.train_on(&x, &truth)?;
                assert!(
                    (loss - expected).abs() <= 1e-5,
                    "from {name}: the loss of step {step} is {loss}, it was {expected}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_training_is_exported_from_either_mode() -> Result<()> {
    let goldens = Goldens::open()?;
    let (eager, folder) = (EagerContext::new()?, scratch("export"));
    for name in MODELS {
        for place in [Graph::new()?.any(), eager.any()] {
            let folder = folder.join(format!("{name}_{}", place.is_eager()));
            with_model(name, |input, shape, layers| {
                let x = goldens
                    .get_as(&format!("training/{name}/x"), input)?
                    .to_tensor()?;
                let model = Sequential::new(&Weights::new(&place, 5), shape, layers)?;
                let mut plan = Plan::new(SPARSE, Sgd::default());
                plan.input = input;
                let trainer = Trainer::new(model, plan)?;
                trainer.export(&folder)?;
                let expected = trainer.predict(&x)?;
                let model = Model::load(&eager, &folder, &["serve"])?;
                let names: Vec<&str> = model.variables().map(|(path, _)| path).collect();
                assert_eq!(names.len(), trainer.model().weights().variables().len());
                let signature = model.signature("serving_default")?;
                assert_eq!(
                    signature.inputs()[0].shape.dims().map(|dims| dims[0]),
                    Some(-1)
                );
                let found = signature.call_named(&eager, [("x", &x)])?;
                let (found, expected) = (found["y"].to_tensor()?, expected.as_slice::<f32>()?);
                for (found, expected) in found.as_slice::<f32>()?.iter().zip(expected) {
                    assert!(
                        (found - expected).abs() <= 1e-6,
                        "{name}: {found}, not {expected}"
                    );
                }
                Ok(())
            })?;
        }
    }
    let error = small(&eager)?.export("/proc/nothing/here").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
    Ok(())
}

#[test]
fn a_checkpoint_of_another_model_changes_nothing() -> Result<()> {
    let eager = EagerContext::new()?;
    let folder = scratch("other");
    small(&eager)?.save(folder.join("small"))?;
    let mut trainer = fresh(&eager, 1)?;
    let before = trainer.values()?;
    let error = trainer.restore(folder.join("small")).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotFound { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("model/conv2d/kernel"), "{error}");
    let error = trainer.restore(folder.join("nothing")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error}");
    assert_eq!(trainer.step(), 0);
    for (now, before) in trainer.values()?.iter().zip(&before) {
        assert_eq!(now.as_bytes()?, before.as_bytes()?);
    }
    Ok(())
}

#[test]
fn without_patience_the_first_epoch_that_is_no_better_is_the_last() -> Result<()> {
    let mut trainer = small(&EagerContext::new()?)?;
    let data = exclusive_or(64)?;
    let mut stopping = EarlyStopping::new("val_loss", 0);
    let history = trainer.fit(&data, 400, Some(&data), &mut [&mut stopping])?;
    let losses: Vec<f64> = history
        .iter()
        .filter_map(|logs| logs.get("val_loss"))
        .collect();
    let fell: Vec<bool> = losses.windows(2).map(|pair| pair[1] < pair[0]).collect();
    let (last, before) = fell.split_last().expect("two epochs");
    assert!(before.iter().all(|&fell| fell), "{losses:?}");
    assert_eq!(*last, losses.len() == 400, "{losses:?}");
    Ok(())
}
