//! Models of all layers that Keras has, too.

use tfp::nn::functional::{ConvOptions, Padding, Pool};
use tfp::nn::layer::{
    ActivityPenalty, Add, AlphaDropout, AspectRatio, Attention, AugMix, AutoContrast, Average,
    BatchNorm, Bidirectional, CenterCrop, Clahe, Concatenate, Conv, Conv3d, Conv3dTranspose,
    ConvLstm, ConvTranspose, Cropping, CutMix, Dense, DepthwiseConv1d, DepthwiseConv2d, Dot,
    Dropout, EinsumDense, Embedding, Fill, Flatten, Flip, GaussianDropout, GaussianNoise,
    GlobalPool, GroupNorm, GroupedQueryAttention, Identity, Interpolation, Layer, LayerNorm,
    Masking, Maximum, MelSpectrogram, Merge, Minimum, MixUp, MultiHeadAttention, Multiply, Node,
    PRelu, Permute, Pooling, Pooling3d, RandAugment, RandomBrightness, RandomColorDegeneration,
    RandomColorJitter, RandomContrast, RandomCrop, RandomElasticTransform, RandomErasing,
    RandomFlip, RandomGaussianBlur, RandomGrayscale, RandomHue, RandomInvert, RandomPerspective,
    RandomPosterization, RandomRotation, RandomSaturation, RandomSharpness, RandomShear,
    RandomTranslation, RandomZoom, Recurrent, Relu, RepeatVector, Reshape, ResizeMethod, Resizing,
    RmsNorm, RnnKind, Scaling, Score, SeparableConv, Sequential, SharedLayer, Softmax,
    Solarization, SpatialDropout, SpectralNorm, Spectrum, SpectrumScale, StackedRnn,
    StftSpectrogram, Subtract, TimeDistributed, UnitNorm, UpSampling, Window, ZeroPadding,
};
use tfp::nn::{Activation, Constraint, Initializer, Model, Regularizer, Weights};
use tfp::{DataType, Result, Tensor};

type Make = fn(&Weights) -> Result<Model>;

/// The models by name.
pub const ALL: &[(&str, Make)] = &[
    ("dense", dense),
    ("image", image),
    ("steps", steps),
    ("volume", volume),
    ("words", words),
    ("masked", masked),
    ("recurrent", recurrent),
    ("states", states),
    ("attention", attention),
    ("grouped", grouped),
    ("merges", merges),
    ("two", two),
    ("shared", shared),
    ("nested", nested),
    ("even", even),
    ("signals", signals),
    ("spectral", spectral),
    ("deep", deep),
    ("frames", frames),
    ("frozen", frozen),
    ("images", images),
    ("categories", crate::categories::categories),
];

/// Numbers for a model's inputs.
pub fn inputs(model: &Model) -> Result<Vec<Tensor>> {
    let ports = model.inputs().iter();
    let inputs = ports.map(|port| {
        let mut dims = vec![3];
        dims.extend(
            port.shape
                .iter()
                .map(|&size| if size < 0 { 4 } else { size }),
        );
        let count = dims.iter().product::<i64>();
        match port.dtype {
            Some(DataType::INT32) => {
                let numbers = (0..count).map(|at| (at * 7 % 5) as i32).collect();
                Tensor::from_vec(numbers, &dims)
            }
            _ => {
                let numbers = (0..count).map(|at| (at as f32 * 1.3).sin()).collect();
                Tensor::from_vec(numbers, &dims)
            }
        }
    });
    inputs.collect()
}

fn sequence(weights: &Weights, input: &[i64], layers: &[&dyn Layer]) -> Result<Model> {
    Ok(Sequential::new(weights, input, layers)?.into())
}

fn dense(weights: &Weights) -> Result<Model> {
    let penalty = Regularizer::l2(0.01);
    sequence(
        weights,
        &[5],
        &[
            &Dense::new(8).activation(Activation::Gelu),
            &Dense::new(6)
                .activation(Activation::LeakyRelu(0.3))
                .regularized("kernel", penalty)
                .regularized("bias", Regularizer::l1(0.02))
                .constrained("kernel", Constraint::max_norm(3.0))
                .constrained("bias", Constraint::NonNegative)
                .initialized("bias", Initializer::RandomUniform(0.0, 0.1)),
            &Dense {
                use_bias: false,
                kernel: Initializer::HE_NORMAL,
                ..Dense::new(6).activation(Activation::Elu(0.7))
            },
            &Activation::Softplus,
            &Activation::LeakyRelu(0.1),
            &Activation::Elu(1.5),
            &ActivityPenalty {
                layer: Identity,
                regularizer: penalty,
            },
            &ActivityPenalty {
                layer: Dense::new(4),
                regularizer: penalty,
            },
            &Dropout { rate: 0.1 },
            &GaussianDropout { rate: 0.2 },
            &GaussianNoise { deviation: 0.3 },
            &AlphaDropout { rate: 0.1 },
            &PRelu::default(),
            &Relu {
                max: Some(6.0),
                slope: 0.1,
                threshold: 0.0,
            },
            &RepeatVector(3),
            &EinsumDense {
                equation: "abc,cd->abd".to_owned(),
                output: vec![-1, 6],
                bias_axes: Some("d".to_owned()),
                activation: Activation::Tanh,
            },
            &TimeDistributed {
                layer: Dense::new(3).activation(Activation::Tanh),
            },
            &Softmax { axis: 1 },
            &Flatten,
            &UnitNorm::default(),
        ],
    )
}

fn image(weights: &Weights) -> Result<Model> {
    sequence(
        weights,
        &[10, 12, 4],
        &[
            &Scaling {
                scale: vec![0.5],
                offset: vec![1.0, 2.0, 3.0, 4.0],
            },
            &Conv {
                options: ConvOptions {
                    groups: 2,
                    padding: Padding::Same,
                    ..ConvOptions::default()
                },
                ..Conv::new(6, 3).activation(Activation::Relu)
            },
            &BatchNorm::default(),
            &DepthwiseConv2d::new(3),
            &SeparableConv::new(4, &[2, 3]),
            &ConvTranspose {
                conv: Conv::new(4, 2).strides(2),
            },
            &Pooling {
                kind: Pool::Average,
                size: (3, 2),
                strides: (2, 2),
                padding: Padding::Same,
            },
            &ZeroPadding {
                sides: vec![(1, 2), (0, 1)],
            },
            &Cropping {
                sides: vec![(1, 0), (0, 2)],
            },
            &UpSampling {
                sizes: vec![2, 1],
                interpolation: Interpolation::Bilinear,
            },
            &SpatialDropout { rate: 0.1 },
            &GroupNorm {
                groups: 2,
                axis: -1,
                epsilon: 1e-3,
                center: true,
                scale: true,
            },
            &Permute {
                order: vec![2, 1, 3],
            },
            &Pooling {
                kind: Pool::Max,
                size: (2, 2),
                strides: (1, 1),
                padding: Padding::Valid,
            },
            &GlobalPool(Pool::Average),
            &Reshape { shape: vec![2, 2] },
            &LayerNorm::default(),
        ],
    )
}

fn steps(weights: &Weights) -> Result<Model> {
    sequence(
        weights,
        &[12, 4],
        &[
            &Conv::new(6, 3).padding(Padding::Causal),
            &DepthwiseConv1d::new(2),
            &SeparableConv::new(4, &[3]),
            &ConvTranspose {
                conv: Conv::new(4, 2),
            },
            &Pooling {
                kind: Pool::Max,
                size: (2, 2),
                strides: (2, 2),
                padding: Padding::Valid,
            },
            &ZeroPadding {
                sides: vec![(1, 2)],
            },
            &Cropping {
                sides: vec![(1, 0)],
            },
            &UpSampling::new(&[2]),
            &RmsNorm::default(),
            &GlobalPool(Pool::Max),
        ],
    )
}

fn volume(weights: &Weights) -> Result<Model> {
    let conv = |filters| Conv3d {
        filters,
        size: [2, 2, 1],
        strides: [1, 1, 1],
        padding: Padding::Same,
        activation: Activation::Tanh,
        use_bias: true,
    };
    sequence(
        weights,
        &[5, 6, 5, 2],
        &[
            &conv(3),
            &Conv3dTranspose { conv: conv(2) },
            &Pooling3d {
                kind: Pool::Max,
                size: [2, 2, 2],
                strides: [2, 2, 2],
                padding: Padding::Valid,
            },
            &ConvLstm::new(2, &[2, 2]),
            &Flatten,
        ],
    )
}

fn words(weights: &Weights) -> Result<Model> {
    let x = Node::typed_input(weights, "words", DataType::INT32, &[-1])?;
    let table = x.then(Embedding::new(20, 4).mask_zero())?;
    let mut lstm = Recurrent::new(RnnKind::Lstm, 3);
    lstm.options.return_sequences = true;
    let y = table.then(lstm)?.then(GlobalPool(Pool::Average))?;
    Model::new(&[&x], &[("y", &y)])
}

/// A mask on one of two paths of equal length: Keras' order of layers depends on it.
fn masked(weights: &Weights) -> Result<Model> {
    let x = Node::input(weights, "x", &[6, 4])?;
    let one = x.then(Dense::new(3))?.then(Relu {
        threshold: 0.3,
        ..Relu::default()
    })?;
    let one = one
        .then(Masking { value: 0.0 })?
        .then(Recurrent::new(RnnKind::Gru, 3))?;
    let other = x.then(Dense::new(3))?.then(Dense::new(3))?;
    let other = other.then(Dense::new(3))?.then(Dense::new(3))?;
    let other = other.then(GlobalPool(Pool::Average))?;
    let y = Node::join(Add, &[&one, &other])?;
    Model::new(&[&x], &[("y", &y)])
}

fn recurrent(weights: &Weights) -> Result<Model> {
    let many = |kind, units| {
        let mut layer = Recurrent::new(kind, units);
        layer.options.return_sequences = true;
        layer
    };
    let mut back = many(RnnKind::Simple, 4);
    back.options.go_backwards = true;
    sequence(
        weights,
        &[6, 4],
        &[
            &back,
            &many(RnnKind::Gru, 3),
            &Recurrent {
                reset_after: false,
                use_bias: false,
                gate: Activation::HardSigmoid,
                ..many(RnnKind::Gru, 3)
            },
            &Bidirectional {
                layer: many(RnnKind::Lstm, 2),
                merge: Merge::Concat,
            },
            &StackedRnn {
                cells: vec![
                    Recurrent::new(RnnKind::Lstm, 3),
                    Recurrent::new(RnnKind::Gru, 2),
                    Recurrent::new(RnnKind::Lstm, 4),
                ],
                options: many(RnnKind::Lstm, 1).options,
            },
            &Recurrent::new(RnnKind::Lstm, 3),
        ],
    )
}

fn states(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[5, 3])?;
    let b = Node::input(weights, "b", &[4, 2])?;
    let encoder = Recurrent {
        return_state: true,
        ..Recurrent::new(RnnKind::Lstm, 4)
    };
    let encoded = Node::outputs(Some("encoder"), encoder, &[&a])?;
    let decoder = Recurrent::new(RnnKind::Lstm, 4);
    let y = Node::join_named("decoder", decoder, &[&b, &encoded[1], &encoded[2]])?;
    Model::new(&[&a, &b], &[("decoder", &y), ("state", &encoded[2])])
}

fn attention(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[5, 4])?;
    let b = Node::input(weights, "b", &[6, 4])?;
    let alone = a.then(MultiHeadAttention::new(2, 3).causal())?;
    let both = Node::join(
        MultiHeadAttention {
            value_width: Some(5),
            output: Some(4),
            ..MultiHeadAttention::new(2, 3)
        },
        &[&alone, &b, &b],
    )?;
    let score = |score, use_scale, causal| Attention {
        score,
        use_scale,
        causal,
        dropout: 0.0,
    };
    let dot = Node::join(score(Score::Dot, true, false), &[&both, &b])?;
    let concat = Node::join(score(Score::Concat, false, true), &[&dot, &b, &b])?;
    let additive = Node::join(score(Score::Additive, true, false), &[&concat, &a])?;
    Model::new(&[&a, &b], &[("y", &additive)])
}

fn grouped(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[5, 4])?;
    let layer = GroupedQueryAttention {
        width: 3,
        query_heads: 4,
        key_heads: 2,
        causal: true,
        use_bias: true,
    };
    let y = Node::join(layer, &[&a, &a])?;
    Model::new(&[&a], &[("y", &y)])
}

fn merges(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[3, 4])?;
    let b = Node::input(weights, "b", &[3, 4])?;
    let (x, y) = (a.then(Dense::new(4))?, b.then(Dense::new(4))?);
    let sum = Node::join(Add, &[&x, &y, &a])?;
    let product = Node::join(Multiply, &[&sum, &y])?;
    let mean = Node::join(Average, &[&product, &x])?;
    let most = Node::join(Maximum, &[&mean, &y])?;
    let least = Node::join(Minimum, &[&most, &sum])?;
    let rest = Node::join(Subtract, &[&least, &x])?;
    let dot = Node::join(Dot::new(2), &[&rest, &y])?;
    let all = Node::join(Concatenate::default(), &[&dot, &rest])?;
    Model::new(&[&a, &b], &[("y", &all)])
}

fn two(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[4])?;
    let b = Node::input(weights, "b", &[3])?;
    let x = Node::join(Concatenate::default(), &[&a, &b])?;
    let hidden = x.then(Dense::new(6).activation(Activation::Relu))?;
    let age = hidden.then_named("years", Dense::new(1))?;
    let class = hidden
        .then(Dense::new(5))?
        .then_named("kind", Dense::new(3))?;
    Model::new(&[&a, &b], &[("class", &class), ("age", &age)])
}

fn shared(weights: &Weights) -> Result<Model> {
    let a = Node::input(weights, "a", &[4])?;
    let b = Node::input(weights, "b", &[4])?;
    let layer = SharedLayer::new(Dense::new(4).activation(Activation::Tanh));
    let (x, y) = (a.then_named("encoder", &layer)?, b.then(&layer)?);
    let z = x.then(Dense::new(4))?.then(&layer)?;
    let sum = Node::join(Add, &[&x, &y, &z])?;
    Model::new(&[&a, &b], &[("sum", &sum)])
}

fn nested(weights: &Weights) -> Result<Model> {
    let inner_x = Node::input(weights, "inner_x", &[4])?;
    let inner_y = inner_x.then(Dense::new(5))?.then(BatchNorm::default())?;
    let skip = inner_x.then(Dense::new(5))?;
    let inner_y = Node::join(Add, &[&inner_y, &skip])?;
    let inner = Model::new(&[&inner_x], &[("inner_y", &inner_y), ("skip", &skip)])?;
    let chain: Model = Sequential::new(weights, &[5], &[&Dense::new(4), &Dense::new(4)])?.into();
    let x = Node::input(weights, "x", &[4])?;
    let first = Node::outputs(Some("body"), &inner, &[&x])?;
    let again = first[0].then_named("chain", &chain)?;
    let second = Node::outputs(Some("body"), &inner, &[&again])?;
    Model::new(&[&x], &[("y", &second[0]), ("z", &first[1])])
}

/// A model computes each step of a sequence.
fn frames(weights: &Weights) -> Result<Model> {
    let frame = Node::input(weights, "frame", &[4, 4, 2])?;
    let seen = frame
        .then(Flatten)?
        .then(Dense::new(3).activation(Activation::Tanh))?;
    let eye = Model::new(&[&frame], &[("seen", &seen)])?;
    sequence(
        weights,
        &[3, 4, 4, 2],
        &[
            &TimeDistributed { layer: eye },
            &Recurrent::new(RnnKind::Gru, 2),
        ],
    )
}

/// Branches of other lengths than those of the first output: the order is Keras'.
fn deep(weights: &Weights) -> Result<Model> {
    let x = Node::input(weights, "x", &[4])?;
    let a = x.then(Dense::new(3))?;
    let b = x
        .then(Dense::new(4))?
        .then(Dense::new(5))?
        .then(Dense::new(3))?;
    let c = a.then(Dense::new(3))?;
    let d = Node::join(Add, &[&c, &b])?;
    let e = Node::join(Concatenate::default(), &[&d, &a])?.then_named("e", Dense::new(2))?;
    let f = b.then_named("f", Dense::new(2))?;
    Model::new(&[&x], &[("f", &f), ("e", &e)])
}

/// A model of two outputs with a frozen layer and states.
pub fn trained(weights: &Weights) -> Result<Model> {
    let x = Node::input(weights, "x", &[4])?;
    let a = x.then(Dense::new(3))?;
    // The gradient of a bias before the normalization would be rounding alone, which Adamax amplifies.
    let plain = Dense {
        use_bias: false,
        ..Dense::new(4)
    };
    let b = x.then(plain)?.then(BatchNorm::default())?;
    let b = b.then_named("fixed", Dense::new(5))?.then(Dense::new(3))?;
    let d = Node::join(Add, &[&a.then(Dense::new(3))?, &b])?;
    let e = Node::join(Concatenate::default(), &[&d, &a])?.then_named("e", Dense::new(2))?;
    let f = b.then_named("f", Dense::new(2))?;
    let mut model = Model::new(&[&x], &[("f", &f), ("e", &e)])?;
    model.freeze("fixed")?;
    Ok(model)
}

fn frozen(weights: &Weights) -> Result<Model> {
    let x = Node::input(weights, "x", &[4])?;
    let y = x
        .then_named("body", Dense::new(3))?
        .then_named("norm", BatchNorm::default())?;
    let plain = BatchNorm {
        center: false,
        scale: false,
        ..BatchNorm::default()
    };
    let y = y
        .then_named("plain", plain)?
        .then_named("head", Dense::new(2))?;
    let mut model = Model::new(&[&x], &[("y", &y)])?;
    model.freeze("body")?;
    model.freeze("norm")?;
    model.freeze("plain")?;
    Ok(model)
}

/// Whatever finds frequencies.
fn signals(weights: &Weights) -> Result<Model> {
    let x = Node::input(weights, "x", &[24, 2])?;
    let stft = StftSpectrogram {
        mode: Spectrum::Both,
        step: 3,
        window: Some(Window::Hamming),
        periodic: true,
        scale: Some(SpectrumScale::Spectrum),
        padding: Padding::Same,
        expand: true,
        ..StftSpectrogram::new(6)
    };
    let first = x.then(stft)?.then(Flatten)?;
    let real = StftSpectrogram {
        mode: Spectrum::Real,
        window: None,
        scale: None,
        ..StftSpectrogram::new(8)
    };
    let second = x.then(real)?.then(Flatten)?;
    let third = x.then(StftSpectrogram::new(5))?.then(Flatten)?;
    let mel = MelSpectrogram {
        fft: 16,
        step: 4,
        frame: 13,
        rate: 1000,
        bands: 3,
        frequencies: (50.0, 400.0),
        ..MelSpectrogram::default()
    };
    let fourth = x.then(Flatten)?.then(mel)?.then(Flatten)?;
    let parts = [&first, &second, &third, &fourth];
    let all = Node::join(Concatenate::default(), &parts)?;
    let power = MelSpectrogram {
        decibels: None,
        window: None,
        frame: 16,
        ..mel
    };
    let power = x.then(Flatten)?.then(power)?.then(Flatten)?;
    let all = Node::join(Concatenate::default(), &[&all, &power])?;
    Model::new(&[&x], &[("y", &all)])
}

/// Kernels that are divided by their norm.
fn spectral(weights: &Weights) -> Result<Model> {
    sequence(
        weights,
        &[6, 6, 2],
        &[
            &SpectralNorm::new(Conv::new(3, 2)),
            &SpectralNorm {
                layer: ConvTranspose {
                    conv: Conv::new(4, 2),
                },
                iterations: 3,
            },
            &SpectralNorm::new(DepthwiseConv2d::new(2)),
            &Flatten,
            &SpectralNorm::new(Dense {
                use_bias: false,
                ..Dense::new(3)
            }),
        ],
    )
}

/// First, because a pixel that is rounded otherwise would be another one.
fn even(weights: &Weights) -> Result<Model> {
    let clahe = Clahe {
        limit: 2.0,
        parts: (2, 3),
        values: (-1.0, 1.0),
    };
    sequence(weights, &[10, 12, 3], &[&clahe, &Conv::new(2, 3)])
}

/// Whatever changes images.
fn images(weights: &Weights) -> Result<Model> {
    let resizing = Resizing {
        method: ResizeMethod::Lanczos3,
        aspect_ratio: AspectRatio::Padded(0.5),
        antialias: true,
        ..Resizing::new(14, 9)
    };
    let cropped = Resizing {
        aspect_ratio: AspectRatio::Cropped,
        ..Resizing::new(9, 9)
    };
    sequence(
        weights,
        &[10, 12, 3],
        &[
            &resizing,
            &cropped,
            &CenterCrop {
                height: 7,
                width: 8,
            },
            &RandomCrop {
                height: 7,
                width: 8,
            },
            &RandomFlip {
                mode: Flip::Horizontal,
            },
            &RandomRotation {
                fill: Fill::Constant(0.5),
                interpolation: Interpolation::Nearest,
                ..RandomRotation::new(0.2)
            },
            &RandomTranslation::new(0.1, 0.2),
            &RandomZoom {
                width: Some((-0.25, 0.5)),
                fill: Fill::Wrap,
                ..RandomZoom::new(0.1)
            },
            &MixUp::default(),
            &CutMix::new(0.5),
            &RandAugment {
                count: 1,
                factor: (0.25, 0.5),
                ..RandAugment::default()
            },
            &AugMix {
                chains: 2,
                all: false,
                interpolation: Interpolation::Nearest,
                ..AugMix::default()
            },
            &RandomBrightness::new(0.1),
            &RandomContrast {
                factor: (0.25, 0.5),
                values: (-1.0, 1.0),
            },
            &RandomShear::new(0.25, 0.5),
            &RandomPerspective::new(0.5, 0.25),
            &RandomColorDegeneration::new(0.5),
            &RandomColorJitter {
                hue: Some((0.25, 0.5)),
                ..RandomColorJitter::default()
            },
            &RandomErasing {
                fill: Some(vec![0.5, 1.0, 2.0]),
                ..RandomErasing::new(0.5)
            },
            &RandomErasing::new(0.25),
            &RandomElasticTransform {
                fill: Fill::Nearest,
                ..RandomElasticTransform::new(0.5, 0.75)
            },
            &RandomGaussianBlur::new(0.5),
            &RandomGrayscale { factor: 0.5 },
            &RandomHue::new(0.25),
            &RandomInvert::new(0.25),
            &RandomPosterization::new(4),
            &RandomSaturation::new(0.5),
            &RandomSharpness::new(0.5),
            &Solarization::new(0.25, 0.5),
            &AutoContrast {
                values: (-1.0, 1.0),
            },
            &Conv::new(2, 3),
        ],
    )
}
