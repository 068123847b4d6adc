//! Layers with variables of their own: with Keras' weights they have Keras' values and gradients.

use tfp::nn::functional::{ConvOptions, Padding, Pool, conv_transpose};
use tfp::nn::layer::{
    BatchNorm, Bidirectional, Conv, Conv3d, ConvTranspose, Dense, DepthwiseConv2d, Embedding,
    Flatten, GlobalPool, GroupNorm, Layer, LayerNorm, Merge, MultiHeadAttention, Pass, Pooling,
    Recurrent, Reshape, RmsNorm, RnnKind, Sequential,
};
use tfp::nn::optimizer::Sgd;
use tfp::nn::training::{Plan, Trainer};
use tfp::nn::{Activation, Loss, Weights};
use tfp::{
    Context, DataType, EagerContext, GradientOptions, Graph, Mode, Result, Tape, Tensor,
    TensorHandle,
};

use crate::goldens::Goldens;

/// A case of Keras, the type of the layer, and the layer.
type Case = (&'static str, &'static str, Box<dyn Layer>);

fn case<L: Layer + 'static>(name: &'static str, layer: L) -> Case {
    (name, std::any::type_name::<L>(), Box::new(layer))
}

/// A layer in both directions.
fn both(kind: RnnKind, sequences: bool, merge: Merge) -> Bidirectional {
    let mut layer = Recurrent::new(kind, 3);
    layer.options.return_sequences = sequences;
    Bidirectional { layer, merge }
}

/// Keras' cases by name, as layers.
pub fn cases() -> Vec<Case> {
    let conv = Conv::new(6, 3);
    let same = conv.padding(Padding::Same);
    let dilated = ConvOptions {
        dilations: (2, 2),
        padding: Padding::Causal,
        ..ConvOptions::default()
    };
    let stepped = ConvOptions {
        strides: (2, 1),
        ..ConvOptions::default()
    };
    let grouped = ConvOptions {
        groups: 2,
        ..same.options
    };
    let mut transposed = ConvTranspose::new(5, 3);
    transposed.conv = transposed.conv.strides(2);
    let mut transposed_same = transposed;
    transposed_same.conv = transposed.conv.padding(Padding::Same);
    let pool = |kind, size, padding| Pooling {
        kind,
        size,
        strides: (2, 2),
        padding,
    };
    let mut backwards = Recurrent::new(RnnKind::Lstm, 5);
    backwards.options.go_backwards = true;
    vec![
        case(
            "conv3d",
            Conv3d {
                size: [2, 3, 2],
                strides: [1, 2, 1],
                ..Conv3d::new(3, 2)
            },
        ),
        case(
            "conv3d_same",
            Conv3d {
                padding: Padding::Same,
                use_bias: false,
                ..Conv3d::new(3, 2)
            },
        ),
        case("embedding", Embedding::new(12, 4)),
        case("flatten", Flatten),
        case("reshape", Reshape { shape: vec![7, 32] }),
        case("activation", Activation::Tanh),
        case("bidirectional", both(RnnKind::Gru, true, Merge::Concat)),
        case("bidirectional_sum", both(RnnKind::Lstm, false, Merge::Sum)),
        case(
            "bidirectional_mul",
            both(RnnKind::Simple, false, Merge::Mul),
        ),
        case(
            "bidirectional_average",
            both(RnnKind::Lstm, false, Merge::Average),
        ),
        case("dense", Dense::new(5)),
        case(
            "dense_3d",
            Dense {
                use_bias: false,
                ..Dense::new(5)
            },
        ),
        case("conv1d_same", same.strides(2)),
        case(
            "conv1d_causal",
            Conv {
                options: dilated,
                ..conv
            },
        ),
        case(
            "conv2d_valid",
            Conv {
                options: stepped,
                size: (3, 2),
                ..conv
            },
        ),
        case("conv2d_same", same),
        case(
            "conv2d_groups",
            Conv {
                options: grouped,
                ..conv
            },
        ),
        case(
            "depthwise",
            DepthwiseConv2d {
                multiplier: 2,
                options: same.options,
                ..DepthwiseConv2d::new(3)
            },
        ),
        case("conv2d_transpose", transposed_same),
        case("conv2d_transpose_valid", transposed),
        case("conv1d_transpose", transposed_same),
        case("max_pool2d", pool(Pool::Max, (2, 3), Padding::Same)),
        case("average_pool2d", pool(Pool::Average, (3, 3), Padding::Same)),
        case("max_pool1d", Pooling::max(2)),
        case("global_average2d", GlobalPool(Pool::Average)),
        case("batch_norm", BatchNorm::default()),
        case("layer_norm", LayerNorm::default()),
        case(
            "group_norm",
            GroupNorm {
                groups: 2,
                ..GroupNorm::default()
            },
        ),
        case("rms_norm", RmsNorm::default()),
        case("simple_rnn", Recurrent::new(RnnKind::Simple, 5)),
        case("lstm", Recurrent::new(RnnKind::Lstm, 5).sequences()),
        case("lstm_backwards", backwards),
        case("gru", Recurrent::new(RnnKind::Gru, 5)),
        case("attention", MultiHeadAttention::new(2, 3).causal()),
    ]
}

#[test]
fn layers_with_variables_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, _, layer) in cases() {
        let case = format!("layer/{name}");
        let x = goldens.read(&format!("{case}/x"))?;
        let is_real = x.dtype() == DataType::FLOAT;
        let dims = x.shape()?.dims().expect("a known shape").to_vec();
        let weights = Weights::new(&goldens.eager, 1);
        let model = Sequential::new(&weights, &dims[1..], &[&*layer])?;
        let variables = weights.trainables();
        for (index, variable) in variables.iter().enumerate() {
            // A value of another shape would be refused.
            variable.set(&goldens.get(&format!("{case}/w{index}"))?.to_tensor()?)?;
        }
        let tape = Tape::new(&goldens.eager);
        if is_real {
            tape.watch(&x)?;
        }
        let y = model.call(&Pass::training(&tape.any()), &(&x).into())?;
        assert_eq!(
            &y.shape()?.dims().expect("a shape")[1..],
            model.output_shape(),
            "{name}"
        );
        goldens.check(&format!("{case}/y"), y.handle()?, 1e-5)?;

        let given = Some(goldens.get(&format!("{case}/weights"))?);
        let options = GradientOptions {
            grad_ys: std::slice::from_ref(&given),
            ..GradientOptions::default()
        };
        let mut sources: Vec<(String, &TensorHandle)> = Vec::new();
        if is_real {
            sources.push(("d_x".to_owned(), &x));
        }
        for (index, variable) in variables.iter().enumerate() {
            sources.push((format!("d_w{index}"), variable.handle().handle()?));
        }
        let list: Vec<&TensorHandle> = sources.iter().map(|(_, source)| *source).collect();
        let found = tape.gradients_with(&[y.handle()?], &list, &options)?;
        for ((source, _), gradient) in sources.iter().zip(found) {
            let gradient = gradient.unwrap_or_else(|| panic!("{name} has no gradient {source}"));
            let gradient = gradient.dense(&goldens.eager)?;
            goldens.check(&format!("{case}/{source}"), &gradient, 4e-5)?;
        }
    }
    Ok(())
}

/// Ten steps of training from Keras' weights towards a case's random numbers.
fn ten_steps(goldens: &Goldens, name: &str, layer: &dyn Layer, place: &impl Mode) -> Result<bool> {
    let case = format!("layer/{name}");
    let read = |what: &str| goldens.read(&format!("{case}/{what}"))?.to_tensor();
    let (x, truth) = (read("x")?, read("weights")?);
    let weights = Weights::new(place, 1);
    let model = Sequential::new(&weights, &x.dims()[1..], &[layer])?;
    let trainables = weights.trainables();
    if trainables.is_empty() {
        return Ok(false);
    }
    let sgd = Sgd {
        momentum: 0.9,
        nesterov: false,
    };
    let mut plan = Plan::new(Loss::MeanSquaredError, sgd).rate(0.05);
    plan.input = x.dtype();
    let mut trainer = Trainer::new(model, plan)?;
    let mut values = trainer.values()?;
    let mut number = 0;
    for (variable, value) in weights.variables().iter().zip(&mut values) {
        if variable.is_trainable() {
            *value = read(&format!("w{number}"))?;
            number += 1;
        }
    }
    trainer.set_values(&values)?;
    for _ in 0..10 {
        trainer.train_on(&x, &truth)?;
    }
    // Keras lists what trains first, and so do the layers.
    for (index, value) in trainer.values()?.iter().enumerate() {
        let value = goldens.eager.handle(value)?;
        goldens.check(&format!("{case}/after{index}"), &value, 2e-5)?;
    }
    Ok(true)
}

#[test]
fn ten_steps_of_each_layer_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    let mut count = 0;
    for (name, _, layer) in cases() {
        let in_graph = ten_steps(&goldens, name, &*layer, &Graph::new()?)?;
        let at_once = ten_steps(&goldens, name, &*layer, &goldens.eager)?;
        assert_eq!(in_graph, at_once);
        count += usize::from(at_once);
    }
    assert!(count >= 25, "{count} layers were trained");
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
