//! Layers with variables of their own: with Keras' weights they have Keras' values and gradients.

use tfp::nn::Weights;
use tfp::nn::functional::{ConvOptions, Padding, Pool};
use tfp::nn::layer::{
    BatchNorm, Conv, ConvTranspose, Dense, DepthwiseConv2d, GlobalPool, GroupNorm, Layer,
    LayerNorm, MultiHeadAttention, Pass, Pooling, Recurrent, RmsNorm, RnnKind, Sequential,
};
use tfp::{GradientOptions, Mode, Result, Tape, TensorHandle};

use crate::goldens::Goldens;

/// Keras' cases by name, as layers.
fn cases() -> Vec<(&'static str, Box<dyn Layer>)> {
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
        ("dense", Box::new(Dense::new(5))),
        (
            "dense_3d",
            Box::new(Dense {
                use_bias: false,
                ..Dense::new(5)
            }),
        ),
        ("conv1d_same", Box::new(same.strides(2))),
        (
            "conv1d_causal",
            Box::new(Conv {
                options: dilated,
                ..conv
            }),
        ),
        (
            "conv2d_valid",
            Box::new(Conv {
                options: stepped,
                size: (3, 2),
                ..conv
            }),
        ),
        ("conv2d_same", Box::new(same)),
        (
            "conv2d_groups",
            Box::new(Conv {
                options: grouped,
                ..conv
            }),
        ),
        (
            "depthwise",
            Box::new(DepthwiseConv2d {
                multiplier: 2,
                options: same.options,
                ..DepthwiseConv2d::new(3)
            }),
        ),
        ("conv2d_transpose", Box::new(transposed_same)),
        ("conv2d_transpose_valid", Box::new(transposed)),
        ("conv1d_transpose", Box::new(transposed_same)),
        (
            "max_pool2d",
            Box::new(pool(Pool::Max, (2, 3), Padding::Same)),
        ),
        (
            "average_pool2d",
            Box::new(pool(Pool::Average, (3, 3), Padding::Same)),
        ),
        ("max_pool1d", Box::new(Pooling::max(2))),
        ("global_average2d", Box::new(GlobalPool(Pool::Average))),
        ("batch_norm", Box::new(BatchNorm::default())),
        ("layer_norm", Box::new(LayerNorm::default())),
        (
            "group_norm",
            Box::new(GroupNorm {
                groups: 2,
                epsilon: 1e-3,
            }),
        ),
        ("rms_norm", Box::new(RmsNorm::default())),
        ("simple_rnn", Box::new(Recurrent::new(RnnKind::Simple, 5))),
        (
            "lstm",
            Box::new(Recurrent::new(RnnKind::Lstm, 5).sequences()),
        ),
        ("lstm_backwards", Box::new(backwards)),
        ("gru", Box::new(Recurrent::new(RnnKind::Gru, 5))),
        (
            "attention",
            Box::new(MultiHeadAttention {
                heads: 2,
                width: 3,
                causal: true,
            }),
        ),
    ]
}

#[test]
fn layers_with_variables_are_those_of_keras() -> Result<()> {
    let goldens = Goldens::open()?;
    for (name, layer) in cases() {
        let case = format!("layer/{name}");
        let x = goldens.get(&format!("{case}/x"))?;
        let dims = x.shape()?.dims().expect("a known shape").to_vec();
        let weights = Weights::new(&goldens.eager, 1);
        let model = Sequential::new(&weights, &dims[1..], &[&*layer])?;
        let variables = weights.trainables();
        for (index, variable) in variables.iter().enumerate() {
            // A value of another shape would be refused.
            variable.set(&goldens.get(&format!("{case}/w{index}"))?.to_tensor()?)?;
        }
        let tape = Tape::new(&goldens.eager);
        tape.watch(&x)?;
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
        let mut sources: Vec<(String, &TensorHandle)> = vec![("d_x".to_owned(), &x)];
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
