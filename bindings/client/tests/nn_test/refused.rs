//! What no layer and no training takes.

use tfp::nn::functional::{Padding, Pool};
use tfp::nn::layer::{
    AdaptivePooling, CategoryEncoding, Conv, Conv3d, ConvTranspose, Dense, DepthwiseConv2d,
    Discretization, Dropout, Embedding, Encoding, Flatten, GroupNorm, Layer, Measured,
    MultiHeadAttention, Normalization, Pooling, Recurrent, Reshape, RnnKind, Sequential,
    SharedDropout,
};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Batches, EarlyStopping, Plan, Trainer};
use tfp::nn::{Activation, Constraint, Loss, Regularizer, Weights};
use tfp::{DataType, EagerContext, Result, Tensor};

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
    let mixed = Discretization {
        boundaries: vec![1.0, 0.0],
        encoding: Encoding::OneHot,
    };
    let many = |count| Measured {
        mean: vec![0.0; count],
        variance: vec![1.0; count],
    };
    let measured = |measured| Normalization {
        measured: Some(measured),
        ..Normalization::default()
    };
    let uneven = Measured {
        mean: vec![0.0; 3],
        variance: vec![1.0],
    };
    let none = CategoryEncoding {
        count: 0,
        encoding: Encoding::Count,
    };
    let axes = Normalization {
        axes: vec![2],
        ..Normalization::default()
    };
    let draws = SharedDropout {
        rate: 0.5,
        draws: vec![None, Some(2)],
    };
    let pooled = AdaptivePooling {
        kind: Pool::Max,
        sizes: vec![2, 2],
    };
    let layers: [(&dyn Layer, &str); 7] = [
        (&mixed, "not in ascending order"),
        (&measured(many(2)), "2 means or variances"),
        (&measured(uneven), "3 means and 1 variances"),
        (&none, "0 categories"),
        (&axes, "Normalization takes a known dimension 2"),
        (&draws, "SharedDropout takes"),
        (&pooled, "AdaptivePooling takes"),
    ];
    for (layer, expected) in layers {
        let error = Sequential::new(&weights, &[3], &[layer]);
        assert!(error.is_err_and(|error| error.to_string().contains(expected)));
    }
    assert!(Normalization::measure(&Tensor::zeros(DataType::FLOAT, &[0, 2])?).is_err());
    assert!(Normalization::measure(&Tensor::zeros(DataType::INT32, &[4, 2])?).is_err());
    let data = Tensor::from_vec(vec![1.0_f32, 5.0, 3.0, 5.0], &[2, 2])?;
    let expected = Measured {
        mean: vec![2.0, 5.0],
        variance: vec![1.0, 0.0],
    };
    assert_eq!(Normalization::measure(&data)?.measured, Some(expected));
    let heavy = Regularizer::l2(f32::NAN);
    for (variable, rule, expected) in [
        ("kernels", Regularizer::l2(0.1), "['kernel', 'bias']"),
        ("kernel", heavy, "factors 0 and NaN"),
    ] {
        let layer = Dense::new(1).regularized(variable, rule);
        let error = Sequential::new(&weights, &[3], &[&layer]);
        assert!(error.is_err_and(|error| error.to_string().contains(expected)));
    }
    for (variable, rule, expected) in [
        (
            "kernels",
            Constraint::NonNegative,
            "a constraint of 'kernels'",
        ),
        (
            "kernel",
            Constraint::max_norm(f32::NAN),
            "expected finite norms",
        ),
        (
            "kernel",
            Constraint::max_norm(-1.0),
            "expected finite norms",
        ),
    ] {
        let layer = Dense::new(1).constrained(variable, rule);
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
    let wide = Tensor::zeros(DataType::DOUBLE, &[4, 2])?;
    let narrow = Tensor::zeros(DataType::FLOAT, &[4, 2])?;
    let whole = Tensor::zeros(DataType::INT32, &[4, 1])?;
    for (error, expected) in [
        (
            trainer.train_on(&wide, &truth).err(),
            "the inputs of a batch: expected float32",
        ),
        (
            trainer.predict(&wide).err(),
            "the inputs of a batch: expected float32",
        ),
        (
            trainer.test_on(&narrow, &whole).err(),
            "the truths of a batch: expected float32",
        ),
    ] {
        assert!(error.is_some_and(|error| error.to_string().contains(expected)));
    }
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
    let heads = MultiHeadAttention::new(0, 2);
    let windows = |kind, count: i64| AdaptivePooling {
        kind,
        sizes: vec![count, 2],
    };
    let groups = GroupNorm {
        groups: 3,
        ..GroupNorm::default()
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
            &[9, 9, 1],
            &windows(Pool::Max, i64::MAX),
            "AdaptivePooling: sizes",
        ),
        (
            &[9, 9, 1],
            &windows(Pool::Average, 1 << 17),
            "AdaptivePooling: sizes",
        ),
        (
            &[9, -1, 1],
            &windows(Pool::Max, 2),
            "AdaptivePooling: known sizes",
        ),
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
