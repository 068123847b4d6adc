//! Shapes, axes, slices, padding, and values that pass through.

use tfp_core::{DataType, Error, ErrorKind, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::{elements_from, known_ints, reshape_like};

/// The gradient of the first input; the others have none.
pub(super) fn leading(c: &Backward<'_>, value: Result<AnyValue>) -> Result<InputGradients> {
    let mut found = vec![None; c.op.inputs().len()];
    if let Some(place) = found.first_mut() {
        *place = Some(value?.into());
    }
    Ok(found)
}

/// Gradients pass as they are, slices too.
fn pass(c: &Backward<'_>) -> Result<InputGradients> {
    Ok((0..c.op.inputs().len())
        .map(|index| c.raw_grad(index).cloned())
        .collect())
}

fn reshaped(c: &Backward<'_>) -> Result<InputGradients> {
    leading(c, reshape_like(c.cx, &c.grad(0)?, c.input(0)))
}

/// The gradients of pieces of one axis, of which `pieces` are the inputs with a gradient.
fn unconcat(
    c: &Backward<'_>,
    axis: &AnyValue,
    pieces: std::ops::Range<usize>,
) -> Result<InputGradients> {
    let grad = c.grad(0)?;
    let inputs = &c.op.inputs()[pieces.clone()];
    let mut found = vec![None; c.op.inputs().len()];
    if let [_] = inputs {
        found[pieces.start] = Some(grad.into());
        return Ok(found);
    }
    let shapes: Vec<AnyValue> = inputs
        .iter()
        .map(|x| c.cx.shape_of(x))
        .collect::<Result<_>>()?;
    // A negative axis is one that counts from the end.
    let axis = match axis.known()? {
        Some(tensor) => {
            let axis = known_ints(&tensor)?.first().copied().unwrap_or(0);
            let rank = inputs.iter().find_map(|x| x.shape().ok()?.rank());
            match rank {
                Some(rank) if axis < 0 => {
                    c.cx.constant_of(&tfp_core::Tensor::scalar((axis + rank as i64) as i32)?)?
                }
                _ => c.cx.constant_of(&tfp_core::Tensor::scalar(axis as i32)?)?,
            }
        }
        None => {
            let rank = c.cx.rank_of(&inputs[0])?;
            let axis = c.cx.cast(axis, DataType::INT32)?;
            floor_mod(c.cx, add_v2(c.cx, axis, &rank)?, &rank)?
        }
    };
    let offsets = concat_offset(c.cx, &axis, &shapes)?;
    for (index, (offset, shape)) in pieces.zip(offsets.iter().zip(&shapes)) {
        if c.needs(index) {
            found[index] = Some(slice(c.cx, &grad, offset, shape)?.into());
        }
    }
    Ok(found)
}

fn pack_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let count = c.op.inputs().len() as i64;
    let options = UnpackOptions {
        axis: Some(c.op.int("axis")?),
    };
    let parts = unpack(c.cx, &c.grad(0)?, count, options)?;
    Ok(parts.into_iter().map(|part| Some(part.into())).collect())
}

/// The gradients of all outputs, zeros where there is none.
fn all_grads(c: &Backward<'_>) -> Result<Vec<AnyValue>> {
    (0..c.op.outputs().len())
        .map(|index| c.grad(index))
        .collect()
}

fn unpack_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let options = PackOptions {
        axis: Some(c.op.int("axis")?),
    };
    one(pack(c.cx, &all_grads(c)?, options))
}

fn split_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let grads = all_grads(c)?;
    Ok(vec![
        None,
        Some(concat_v2(c.cx, &grads, c.input(0))?.into()),
    ])
}

fn split_v_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let grads = all_grads(c)?;
    Ok(vec![
        Some(concat_v2(c.cx, &grads, c.input(2))?.into()),
        None,
        None,
    ])
}

fn transpose_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let back = match c.input(1).known()? {
        Some(tensor) => {
            let perm = known_ints(&tensor)?;
            let mut back = vec![0; perm.len()];
            for (to, &from) in perm.iter().enumerate() {
                let from = if from < 0 {
                    from + perm.len() as i64
                } else {
                    from
                };
                if let Some(place) = usize::try_from(from)
                    .ok()
                    .and_then(|from| back.get_mut(from))
                {
                    *place = to as i64;
                }
            }
            c.cx.ints(&back)?
        }
        None => invert_permutation(c.cx, c.input(1))?,
    };
    let grad = match c.op.op_type() {
        "ConjugateTranspose" => conjugate_transpose(c.cx, &c.grad(0)?, back),
        _ => transpose(c.cx, &c.grad(0)?, back),
    };
    leading(c, grad)
}

fn slice_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, begin, grad) = (c.input(0), c.input(1), c.grad(0)?);
    let index_type = begin.dtype();
    let size = c.cx.cast(&c.cx.shape_of(x)?, index_type)?;
    let taken = c.cx.cast(&c.cx.shape_of(c.output(0))?, index_type)?;
    let after = sub(c.cx, sub(c.cx, size, &taken)?, begin)?;
    let paddings = pack(c.cx, [begin, &after], PackOptions { axis: Some(1) })?;
    leading(c, pad(c.cx, grad, paddings))
}

const MASKS: &[&str] = &[
    "begin_mask",
    "end_mask",
    "ellipsis_mask",
    "new_axis_mask",
    "shrink_axis_mask",
];

fn strided_slice_grad_of(c: &Backward<'_>) -> Result<InputGradients> {
    let size = c.cx.cast(&c.cx.shape_of(c.input(0))?, c.input(1).dtype())?;
    let inputs = [&size, c.input(1), c.input(2), c.input(3), &c.grad(0)?];
    leading(c, c.run1("StridedSliceGrad", &inputs, MASKS))
}

fn pad_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, paddings, grad) = (c.input(0), c.input(1), c.grad(0)?);
    let rank = c.cx.rank_of(x)?;
    let size = pack(
        c.cx,
        [&rank, &c.cx.constant_of(&tfp_core::Tensor::scalar(1_i32)?)?],
        PackOptions::default(),
    )?;
    let zeros = c.cx.cast(&c.cx.ints(&[0, 0])?, paddings.dtype())?;
    let size = c.cx.cast(&size, paddings.dtype())?;
    let before = reshape(c.cx, slice(c.cx, paddings, zeros, size)?, [-1])?;
    let taken = c.cx.cast(&c.cx.shape_of(x)?, paddings.dtype())?;
    let of_x = slice(c.cx, &grad, &before, taken)?;
    if c.op.inputs().len() < 3 {
        return leading(c, Ok(of_x));
    }
    // The value that fills has what is left of the sum.
    let of_fill = sub(c.cx, total(c, &grad)?, total(c, &of_x)?)?;
    Ok(vec![Some(of_x.into()), None, Some(of_fill.into())])
}

fn tile_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, multiples, grad) = (c.input(0), c.input(1), c.grad(0)?);
    let size = c.cx.cast(&c.cx.shape_of(x)?, multiples.dtype())?;
    // Each axis becomes two, of which the first is summed.
    let split = reshape(
        c.cx,
        pack(c.cx, [multiples, &size], PackOptions { axis: Some(1) })?,
        [-1],
    )?;
    let pairs = mul(c.cx, c.cx.rank_of(x)?, 2)?;
    let axes = range(c.cx, 0, pairs, 2)?;
    leading(
        c,
        sum(
            c.cx,
            reshape(c.cx, grad, split)?,
            axes,
            SumOptions::default(),
        ),
    )
}

fn broadcast_grad(c: &Backward<'_>) -> Result<InputGradients> {
    leading(
        c,
        crate::gradient::shapes::unbroadcast(c.cx, c.grad(0)?, c.input(0)),
    )
}

fn fill_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let grad = c.grad(0)?;
    let axes = range(c.cx, 0, c.cx.rank_of(&grad)?, 1)?;
    Ok(vec![
        None,
        Some(sum(c.cx, grad, axes, SumOptions::default())?.into()),
    ])
}

fn reverse_sequence_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let found = c.run1(
        "ReverseSequence",
        &[&c.grad(0)?, c.input(1)],
        &["seq_dim", "batch_dim"],
    );
    leading(c, found)
}

/// The op that undoes another one, with the same attributes.
fn undo(c: &Backward<'_>, op: &str, attrs: &[&str]) -> Result<InputGradients> {
    let grad = c.grad(0)?;
    let inputs: Vec<&AnyValue> = std::iter::once(&grad).chain(&c.op.inputs()[1..]).collect();
    leading(c, c.run1(op, &inputs, attrs))
}

fn roll_grad(c: &Backward<'_>) -> Result<InputGradients> {
    leading(
        c,
        roll(c.cx, &c.grad(0)?, neg(c.cx, c.input(1))?, c.input(2)),
    )
}

fn approximate_top_k_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let axis = c.op.int("reduction_dimension")?;
    let last = c.input(0).shape()?.rank().map(|rank| rank as i64 - 1);
    match axis == -1 || Some(axis) == last {
        true => top_k_grad(c),
        false => Err(Error::argument(format!(
            "ApproxTopK has a gradient along the last axis, and its axis is {axis}: transpose first"
        ))),
    }
}

fn top_k_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, grad, indices) = (c.input(0), c.grad(0)?, c.output(1));
    let size = c.cx.shape_of(x)?;
    let last = strided_slice(
        c.cx,
        &size,
        [-1],
        [0],
        [1],
        StridedSliceOptions {
            end_mask: Some(1),
            shrink_axis_mask: Some(1),
            ..Default::default()
        },
    )?;
    let picked = elements_from(c.cx, &c.cx.shape_of(indices)?, -1)?;
    let flat_rows = reshape(
        c.cx,
        c.cx.cast(indices, DataType::INT32)?,
        concat_v2(c.cx, (c.cx.ints(&[-1])?, &picked), 0)?,
    )?;
    let count = gather_v2(
        c.cx,
        shape(c.cx, &flat_rows, ShapeOptions::default())?,
        0,
        0,
        GatherV2Options::default(),
    )?;
    let starts = range(c.cx, 0, mul(c.cx, &count, &last)?, &last)?;
    let places = add_v2(c.cx, expand_dims(c.cx, starts, -1)?, flat_rows)?;
    let places = reshape(c.cx, places, [-1, 1])?;
    let total = prod(
        c.cx,
        &size,
        [0],
        ProdOptions {
            keep_dims: Some(true),
        },
    )?;
    let spread = scatter_nd(
        c.cx,
        places,
        reshape(c.cx, grad, [-1])?,
        total,
        ScatterNdOptions::default(),
    )?;
    leading(c, reshape(c.cx, spread, size))
}

fn prevented(c: &Backward<'_>) -> Result<InputGradients> {
    let message = c.op.text("message")?;
    Err(Error::new(ErrorKind::Input {
        op: "PreventGradient".to_owned(),
        input: "input".to_owned(),
        problem: format!("its gradient is forbidden: {message}"),
    }))
}

fn mirror_pad_grad(c: &Backward<'_>) -> Result<InputGradients> {
    leading(
        c,
        c.run1("MirrorPadGrad", &[&c.grad(0)?, c.input(1)], &["mode"]),
    )
}

fn quantized(c: &Backward<'_>) -> Result<InputGradients> {
    leading(c, c.grad(0))
}

/// The fourth version passes the gradient inside of its range only.
fn quantized_in_range(c: &Backward<'_>) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let inputs = [&g, c.input(0), c.input(1), c.input(2)];
    let found = c.run("QuantizeAndDequantizeV4Grad", &inputs, &["axis"])?;
    Ok(found.into_iter().map(|value| Some(value.into())).collect())
}

pub(super) static RULES: Rules = &[
    ("Identity", pass),
    ("IdentityN", pass),
    ("RefIdentity", pass),
    ("Snapshot", pass),
    ("DebugIdentityV2", pass),
    ("DebugGradientIdentity", pass),
    ("PlaceholderWithDefault", pass),
    ("PreventGradient", prevented),
    ("Print", |c| leading(c, c.grad(0))),
    ("Reshape", reshaped),
    ("ExpandDims", reshaped),
    ("Squeeze", reshaped),
    ("EnsureShape", |c| leading(c, c.grad(0))),
    ("Concat", |c| {
        unconcat(c, c.input(0), 1..c.op.inputs().len())
    }),
    ("ConcatV2", |c| {
        let last = c.op.inputs().len() - 1;
        unconcat(c, c.input(last), 0..last)
    }),
    ("Pack", pack_grad),
    ("Unpack", unpack_grad),
    ("Split", split_grad),
    ("SplitV", split_v_grad),
    ("Transpose", transpose_grad),
    ("ConjugateTranspose", transpose_grad),
    ("Slice", slice_grad),
    ("StridedSlice", strided_slice_grad_of),
    ("StridedSliceGrad", |c| {
        let inputs = [&c.grad(0)?, c.input(1), c.input(2), c.input(3)];
        let grad = c.run1("StridedSlice", &inputs, MASKS)?;
        Ok(vec![None, None, None, None, Some(grad.into())])
    }),
    ("Pad", pad_grad),
    ("PadV2", pad_grad),
    ("MirrorPad", mirror_pad_grad),
    ("MirrorPadGrad", |c| {
        leading(
            c,
            c.run1("MirrorPad", &[&c.grad(0)?, c.input(1)], &["mode"]),
        )
    }),
    ("Tile", tile_grad),
    ("BroadcastTo", broadcast_grad),
    ("Fill", fill_grad),
    ("Reverse", |c| {
        leading(c, reverse(c.cx, &c.grad(0)?, c.input(1)))
    }),
    ("ReverseV2", |c| {
        leading(c, reverse_v2(c.cx, &c.grad(0)?, c.input(1)))
    }),
    ("ReverseSequence", reverse_sequence_grad),
    ("Roll", roll_grad),
    ("TopK", top_k_grad),
    ("TopKV2", top_k_grad),
    ("ApproxTopK", approximate_top_k_grad),
    ("DepthToSpace", |c| {
        undo(c, "SpaceToDepth", &["block_size", "data_format"])
    }),
    ("SpaceToDepth", |c| {
        undo(c, "DepthToSpace", &["block_size", "data_format"])
    }),
    ("SpaceToBatch", |c| undo(c, "BatchToSpace", &["block_size"])),
    ("BatchToSpace", |c| undo(c, "SpaceToBatch", &["block_size"])),
    ("SpaceToBatchND", |c| undo(c, "BatchToSpaceND", &[])),
    ("BatchToSpaceND", |c| undo(c, "SpaceToBatchND", &[])),
    ("QuantizeAndDequantize", quantized),
    ("QuantizeAndDequantizeV2", quantized),
    ("QuantizeAndDequantizeV3", quantized),
    ("QuantizeAndDequantizeV4", quantized_in_range),
    ("FakeQuantWithMinMaxArgs", |c| {
        let attrs = ["min", "max", "num_bits", "narrow_range"];
        one(c.run1(
            "FakeQuantWithMinMaxArgsGradient",
            &[&c.grad(0)?, c.input(0)],
            &attrs,
        ))
    }),
    ("FakeQuantWithMinMaxVars", |c| {
        fake_quant(c, "FakeQuantWithMinMaxVarsGradient")
    }),
    ("FakeQuantWithMinMaxVarsPerChannel", |c| {
        fake_quant(c, "FakeQuantWithMinMaxVarsPerChannelGradient")
    }),
    ("DiagPart", |c| one(diag(c.cx, &c.grad(0)?))),
    ("Diag", |c| one(diag_part(c.cx, &c.grad(0)?))),
    ("MatrixBandPart", |c| {
        leading(
            c,
            matrix_band_part(c.cx, &c.grad(0)?, c.input(1), c.input(2)),
        )
    }),
    ("MatrixDiag", |c| one(matrix_diag_part(c.cx, &c.grad(0)?))),
    ("MatrixDiagV2", |c| diag_grad(c, "MatrixDiagPartV2", &[])),
    ("MatrixDiagV3", |c| {
        diag_grad(c, "MatrixDiagPartV3", &["align"])
    }),
    ("MatrixDiagPart", |c| {
        one(matrix_set_diag(
            c.cx,
            zeros_like(c.cx, c.input(0))?,
            &c.grad(0)?,
        ))
    }),
    ("MatrixDiagPartV2", |c| {
        let zeros = zeros_like(c.cx, c.input(0))?;
        leading(
            c,
            c.cx.op1("MatrixSetDiagV2", &[&zeros, &c.grad(0)?, c.input(1)]),
        )
    }),
    ("MatrixDiagPartV3", |c| {
        let zeros = zeros_like(c.cx, c.input(0))?;
        leading(
            c,
            c.run1(
                "MatrixSetDiagV3",
                &[&zeros, &c.grad(0)?, c.input(1)],
                &["align"],
            ),
        )
    }),
    ("MatrixSetDiag", |c| {
        let grad = c.grad(0)?;
        let part = matrix_diag_part(c.cx, &grad)?;
        let rest = matrix_set_diag(c.cx, &grad, zeros_like(c.cx, &part)?)?;
        Ok(vec![Some(rest.into()), Some(part.into())])
    }),
    ("MatrixSetDiagV2", |c| set_diag(c, "V2", &[])),
    ("MatrixSetDiagV3", |c| set_diag(c, "V3", &["align"])),
];

/// The sum of all elements.
fn total(c: &Backward<'_>, value: &AnyValue) -> Result<AnyValue> {
    let axes = range(c.cx, 0, c.cx.rank_of(value)?, 1)?;
    sum(c.cx, value, axes, SumOptions::default())
}

fn diag_grad(c: &Backward<'_>, part: &str, attrs: &[&str]) -> Result<InputGradients> {
    let grad = c.grad(0)?;
    let zero = c.cx.scalar_like(&grad, 0.0)?;
    let of_diagonal = c.run1(part, &[&grad, c.input(1), &zero], attrs)?;
    // What fills the rest has what is left of the sum.
    let of_fill = match c.needs(4) {
        true => Some(sub(c.cx, total(c, &grad)?, total(c, &of_diagonal)?)?.into()),
        false => None,
    };
    let of_diagonal = reshape_like(c.cx, &of_diagonal, c.input(0))?;
    Ok(vec![Some(of_diagonal.into()), None, None, None, of_fill])
}

fn set_diag(c: &Backward<'_>, version: &str, attrs: &[&str]) -> Result<InputGradients> {
    let (grad, k) = (c.grad(0)?, c.input(2));
    let zero = c.cx.scalar_like(&grad, 0.0)?;
    let part = c.run1(
        &format!("MatrixDiagPart{version}"),
        &[&grad, k, &zero],
        attrs,
    )?;
    let zeros = zeros_like(c.cx, c.input(1))?;
    let rest = c.run1(
        &format!("MatrixSetDiag{version}"),
        &[&grad, &zeros, k],
        attrs,
    )?;
    let part = reshape_like(c.cx, &part, c.input(1))?;
    Ok(vec![Some(rest.into()), Some(part.into()), None])
}

fn fake_quant(c: &Backward<'_>, op: &str) -> Result<InputGradients> {
    let inputs = [&c.grad(0)?, c.input(0), c.input(1), c.input(2)];
    let grads = c.run(op, &inputs, &["num_bits", "narrow_range"])?;
    Ok(grads.into_iter().map(|grad| Some(grad.into())).collect())
}
