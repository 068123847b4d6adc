//! Layers: results and gradients.

use tfp::nn::functional::{ConvOptions, Padding, Pool};
use tfp::nn::layer::{
    BatchNorm, Bidirectional, Conv, ConvTranspose, Dense, DepthwiseConv2d, Dropout, Embedding,
    Flatten, GlobalPool, GroupNorm, Layer, LayerNorm, Merge, MultiHeadAttention, Pass, Pooling,
    Recurrent, Reshape, RmsNorm, RnnKind, Sequential,
};
use tfp::nn::{Activation, Initializer, Loss};
use tfp::{AnyValue, Context, DataType, Result, Tensor, ops};

use crate::place::{check, numbers};

/// Compares a layer's first weights, its results in training and out of it, and the gradients by its
/// input and by its weights, for 3 samples of a shape.
fn check_layer(what: &str, input: &Tensor, layer: &dyn Layer) -> Result<()> {
    check(what, 2e-5, |work| {
        let model = Sequential::new(&work.weights, &input.dims()[1..], &[layer])?;
        let cx = &work.cx;
        // A weight of the model's output, so that no direction is left out.
        let mut dims = vec![input.dims()[0]];
        dims.extend(model.output_shape());
        let share = cx.constant(&numbers(&dims)?)?;
        let x = ops::identity(cx, cx.constant(input)?)?;
        let mut xs: Vec<AnyValue> = Vec::new();
        if input.dtype() == DataType::FLOAT {
            xs.push(x.clone());
        }
        let trainables = work.weights.trainables();
        xs.extend(trainables.iter().map(|variable| variable.handle().clone()));
        let mut values = vec![model.call(&Pass::inference(cx), &x)?];
        for variable in &trainables {
            values.push(variable.read(cx)?);
        }
        values.extend(work.slopes(&xs, |cx| {
            let y = model.call(&Pass::training(cx), &x)?;
            let axes: Vec<i32> = (0..dims.len() as i32).collect();
            ops::sum(
                cx,
                ops::mul(cx, y, &share)?,
                axes,
                ops::SumOptions::default(),
            )
        })?);
        Ok(values)
    })
}

#[test]
fn dense_layers() -> Result<()> {
    let x = numbers(&[3, 6])?;
    check_layer("dense", &x, &Dense::new(5).activation(Activation::Relu))?;
    check_layer(
        "dense without bias",
        &x,
        &Dense {
            use_bias: false,
            ..Dense::new(5)
        },
    )?;
    check_layer("dense over steps", &numbers(&[3, 4, 6])?, &Dense::new(5))?;
    check_layer("dropout", &x, &Dropout { rate: 0.4 })?;
    check_layer("flatten", &numbers(&[3, 4, 6])?, &Flatten)?;
    check_layer("reshape", &x, &Reshape { shape: vec![2, 3] })?;
    let words = Tensor::from_slice(&[1_i64, 4, 0, 9, 9, 2], &[3, 2])?;
    check_layer("embedding", &words, &Embedding::new(10, 4))
}

#[test]
fn convolutions() -> Result<()> {
    let (image, steps) = (numbers(&[3, 8, 7, 4])?, numbers(&[3, 9, 4])?);
    let conv = Conv::new(6, 3);
    check_layer("conv2d", &image, &conv)?;
    check_layer(
        "conv2d same",
        &image,
        &conv.padding(Padding::Same).strides(2),
    )?;
    let options = ConvOptions {
        groups: 2,
        ..ConvOptions::default()
    };
    check_layer("conv2d of groups", &image, &Conv { options, ..conv })?;
    let options = ConvOptions {
        dilations: (2, 2),
        ..ConvOptions::default()
    };
    check_layer("conv2d dilated", &image, &Conv { options, ..conv })?;
    check_layer("conv1d", &steps, &conv)?;
    check_layer("conv1d causal", &steps, &conv.padding(Padding::Causal))?;
    let mut transposed = ConvTranspose::new(5, 3);
    check_layer("conv2d transposed", &image, &transposed)?;
    check_layer("conv1d transposed", &steps, &transposed)?;
    transposed.conv = transposed.conv.padding(Padding::Same).strides(2);
    check_layer("conv2d transposed same", &image, &transposed)?;
    check_layer("depthwise", &image, &DepthwiseConv2d::new(3))
}

#[test]
fn poolings_and_norms() -> Result<()> {
    let (image, steps) = (numbers(&[3, 8, 7, 4])?, numbers(&[3, 9, 4])?);
    check_layer("max pooling", &image, &Pooling::max(2))?;
    check_layer("average pooling", &image, &Pooling::average(2))?;
    check_layer("max pooling of steps", &steps, &Pooling::max(2))?;
    for kind in [Pool::Max, Pool::Average] {
        check_layer("global pooling", &image, &GlobalPool(kind))?;
    }
    check_layer("batch norm", &image, &BatchNorm::default())?;
    check_layer("batch norm of steps", &steps, &BatchNorm::default())?;
    check_layer("layer norm", &steps, &LayerNorm::default())?;
    check_layer("rms norm", &steps, &RmsNorm::default())?;
    let groups = GroupNorm {
        groups: 2,
        ..GroupNorm::default()
    };
    check_layer("group norm", &image, &groups)
}

#[test]
fn recurrent_layers_and_attention() -> Result<()> {
    let steps = numbers(&[3, 5, 4])?;
    for kind in [RnnKind::Simple, RnnKind::Lstm, RnnKind::Gru] {
        check_layer(&format!("{kind:?}"), &steps, &Recurrent::new(kind, 4))?;
    }
    let both = Bidirectional {
        layer: Recurrent::new(RnnKind::Lstm, 3).sequences(),
        merge: Merge::Concat,
    };
    check_layer("bidirectional", &steps, &both)?;
    let attention = MultiHeadAttention::new(2, 3).causal();
    check_layer("attention", &steps, &attention)
}

#[test]
fn activations() -> Result<()> {
    use Activation as A;
    let x = numbers(&[3, 7])?;
    for activation in [
        A::Elu(1.0),
        A::Exponential,
        A::HardSigmoid,
        A::LeakyRelu(0.2),
        A::LogSoftmax,
        A::Mish,
        A::Relu,
        A::Relu6,
        A::Selu,
        A::Sigmoid,
        A::Silu,
        A::Softmax,
        A::Softplus,
        A::Softsign,
        A::Tanh,
    ] {
        check_layer(&format!("{activation:?}"), &x, &activation)?;
    }
    Ok(())
}

#[test]
fn initializers() -> Result<()> {
    let list = [
        Initializer::RandomNormal(0.1, 0.2),
        Initializer::TruncatedNormal(0.1, 0.2),
        Initializer::RandomUniform(-0.3, 0.4),
        Initializer::GLOROT_UNIFORM,
        Initializer::HE_NORMAL,
        Initializer::Identity(1.5),
        Initializer::LstmBias,
    ];
    for initializer in list {
        let shape: &[i64] = if initializer == Initializer::LstmBias {
            &[8]
        } else {
            &[4, 6]
        };
        check(&format!("{initializer:?}"), 2e-5, |work| {
            Ok(vec![initializer.value(
                &work.cx,
                shape,
                DataType::FLOAT,
                7,
            )?])
        })?;
    }
    Ok(())
}

#[test]
fn losses() -> Result<()> {
    let (truth, x) = (numbers(&[4, 5])?, numbers(&[4, 5, 1])?);
    let classes = Tensor::from_array([1_i64, 0, 4, 2])?;
    let list = [
        Loss::MeanSquaredError,
        Loss::MeanAbsoluteError,
        Loss::CosineSimilarity,
        Loss::Huber { delta: 0.8 },
        Loss::LogCosh,
        Loss::Hinge,
        Loss::BinaryCrossentropy {
            from_logits: true,
            label_smoothing: 0.1,
        },
        Loss::CategoricalCrossentropy {
            from_logits: true,
            label_smoothing: 0.1,
        },
        Loss::SparseCategoricalCrossentropy { from_logits: true },
    ];
    for loss in list {
        let is_sparse = matches!(loss, Loss::SparseCategoricalCrossentropy { .. });
        let truth = if is_sparse { &classes } else { &truth };
        check(loss.name(), 2e-5, |work| {
            let truth = ops::identity(&work.cx, work.cx.constant(truth)?)?;
            let x = ops::reshape(&work.cx, work.cx.constant(&x)?, [4, 5])?;
            work.slopes(&[x.clone()], |cx| loss.mean(cx, &truth, &x, None))
        })?;
    }
    Ok(())
}
