//! Calls of the sizes that models have, to be timed.

use tfp_kernels::base::dtype::DType;

use super::kernel;
use super::product::attributes;
use crate::run::Case;
use crate::tensor::{Attr, Random, Table, Tensor};

fn ints(values: &[usize]) -> Tensor {
    let values = values
        .iter()
        .map(|&value| i32::try_from(value).unwrap_or(0));
    Tensor::i32(&[values.len()], &values.collect::<Vec<_>>())
}

/// A call with attributes; `host` are the inputs in the host's memory.
fn call(op: &str, inputs: Vec<Tensor>, host: &[usize], attrs: Vec<(&'static str, Attr)>) -> Case {
    let mut case = Case::new(kernel(op), inputs);
    case.host = host.to_vec();
    case.attrs = Table(attrs);
    case
}

fn images(random: &mut Random, batch: usize, out: &mut Vec<Case>) {
    let image = [batch, 112, 112, 64];
    let attrs = |is_largest: bool| {
        let mut attrs = vec![
            ("ksize", Attr::Ints(vec![1, 3, 3, 1])),
            ("strides", Attr::Ints(vec![1, 2, 2, 1])),
            ("padding", Attr::Text("SAME")),
            ("data_format", Attr::Text("NHWC")),
        ];
        if is_largest {
            attrs.push(("explicit_paddings", Attr::Ints(vec![])));
        }
        attrs
    };
    let (x, y) = (
        random.tensor(&image, 1.0),
        random.tensor(&[batch, 56, 56, 64], 1.0),
    );
    out.push(call("MaxPool", vec![x.clone()], &[], attrs(true)));
    let inputs = vec![x.clone(), y.clone(), y.clone()];
    out.push(call("MaxPoolGrad", inputs, &[], attrs(true)));
    out.push(call("AvgPool", vec![x], &[], attrs(false)));
    let inputs = vec![ints(&image), y];
    out.push(call("AvgPoolGrad", inputs, &[0], attrs(false)));

    let dims = [batch, 56, 56, 256];
    let (x, slope) = (random.tensor(&dims, 1.0), random.tensor(&dims, 1.0));
    let numbers = || Tensor::f32(&[256], &[1.0; 256]);
    let attrs = || {
        vec![
            ("epsilon", Attr::Float(1e-3)),
            ("data_format", Attr::Text("NHWC")),
            ("is_training", Attr::Bool(true)),
            ("exponential_avg_factor", Attr::Float(1.0)),
        ]
    };
    let mut inputs = vec![x.clone()];
    inputs.resize_with(5, numbers);
    out.push(call("FusedBatchNormV3", inputs, &[], attrs()));
    let mut inputs = vec![slope, x.clone()];
    inputs.resize_with(5, numbers);
    out.push(call("FusedBatchNormGradV3", inputs, &[], attrs()));
    for axes in [&[0, 1, 2][..], &[1, 2]] {
        let inputs = vec![x.clone(), Tensor::i32(&[axes.len()], axes)];
        let attrs = vec![("keep_dims", Attr::Bool(false))];
        out.push(call("Mean", inputs, &[1], attrs));
    }

    let (image, filter) = ([batch, 56, 56, 144], [3, 3, 144, 1]);
    let attrs = attributes([1, 1], "SAME").0;
    let (x, w) = (random.tensor(&image, 1.0), random.tensor(&filter, 1.0));
    let inputs = vec![x.clone(), w.clone()];
    out.push(call("DepthwiseConv2dNative", inputs, &[], attrs.clone()));
    let inputs = vec![ints(&image), w, x.clone()];
    let op = "DepthwiseConv2dNativeBackpropInput";
    out.push(call(op, inputs, &[0], attrs.clone()));
    let inputs = vec![x.clone(), ints(&filter), x];
    let op = "DepthwiseConv2dNativeBackpropFilter";
    out.push(call(op, inputs, &[1], attrs));
}

fn rows(random: &mut Random, batch: usize, out: &mut Vec<Case>) {
    let x = random.tensor(&[batch, 128, 8, 64], 1.0);
    let inputs = vec![x, ints(&[0, 2, 1, 3])];
    out.push(call("Transpose", inputs, &[1], Vec::new()));
    let x = random.tensor(&[batch, 8, 128, 128], 1.0);
    out.push(call("Softmax", vec![x.clone()], &[], Vec::new()));
    let bytes: Vec<u8> = (0..batch << 17).map(|at| u8::from(at % 10 != 0)).collect();
    let kept = Tensor::new(DType::Bool, &x.dims, &bytes);
    let inputs = vec![kept, x.clone(), Tensor::f32(&[], &[0.0])];
    out.push(call("SelectV2", inputs, &[], Vec::new()));
    let inputs = vec![x, Tensor::f32(&[], &[0.1])];
    out.push(call("GreaterEqual", inputs, &[], Vec::new()));
    let word = |values: &[u64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Tensor::new(DType::U64, &[values.len()], &bytes)
    };
    let shape = ints(&[batch, 8, 128, 128]);
    let inputs = vec![shape, word(&[1]), word(&[2, 3]), Tensor::i32(&[], &[1])];
    let attrs = vec![("dtype", Attr::Type(DType::F32))];
    out.push(call("StatelessRandomUniformV2", inputs, &[0, 3], attrs));

    let words = 8000;
    let ids: Vec<i32> = (0..batch << 7)
        .map(|_| random.between(0, words - 1) as i32)
        .collect();
    let ids = Tensor::i32(&[ids.len()], &ids);
    let table = random.tensor(&[words, 512], 1.0);
    let inputs = vec![table, ids.clone(), Tensor::i32(&[], &[0])];
    out.push(call(
        "GatherV2",
        inputs,
        &[2],
        vec![("batch_dims", Attr::Int(0))],
    ));
    let data = random.tensor(&[batch << 7, 512], 1.0);
    let inputs = vec![data.clone(), ids.clone(), Tensor::i32(&[], &[8000])];
    out.push(call("UnsortedSegmentSum", inputs, &[2], Vec::new()));
    let inputs = vec![data.clone(), data, Tensor::i32(&[], &[1])];
    out.push(call("ConcatV2", inputs, &[2], Vec::new()));
    let x = random.tensor(&[batch, words], 1.0);
    let labels: Vec<i32> = ids
        .numbers()
        .iter()
        .take(batch)
        .map(|&id| id as i32)
        .collect();
    let inputs = vec![x, Tensor::i32(&[batch], &labels)];
    let op = "SparseSoftmaxCrossEntropyWithLogits";
    out.push(call(op, inputs, &[], Vec::new()));
}

/// Calls besides element-wise ops, matmuls and convolutions, for this many images or texts.
#[must_use]
pub fn calls(random: &mut Random, batch: usize) -> Vec<Case> {
    let mut out = Vec::new();
    images(random, batch, &mut out);
    rows(random, batch, &mut out);
    out
}
