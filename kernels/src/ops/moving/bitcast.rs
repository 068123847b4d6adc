//! The same bytes as another type.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// The shape of `from` elements read as `to`: a larger type takes in the last axis, a smaller one
/// adds one.
///
/// # Errors
/// [`Error::Value`] if a larger type does not take in exactly the last axis, [`Error::Rank`] above
/// rank 8.
pub fn bitcast_shape(shape: &Shape, from: DType, to: DType) -> Result<Shape> {
    let (old, new) = (from.size(), to.size());
    if old == new {
        return Ok(*shape);
    }
    let mut out = *shape;
    if old > new {
        out.push(old / new)?;
        return Ok(out);
    }
    match shape.split_last() {
        Some((&last, rest)) if last == new / old => Shape::new(rest),
        _ => Err(Error::Value {
            argument: "input",
            expected: "a last axis that makes up one element of the new type",
        }),
    }
}

/// `Bitcast` of TensorFlow.
pub static BITCAST: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32, "type": F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64];
        ["T": F64, "type": F32 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64];
        ["T": F16, "type": F32 F64 BF16 I8 I16 I32 I64 U8 U16 U32 U64];
        ["T": BF16, "type": F32 F64 F16 I8 I16 I32 I64 U8 U16 U32 U64];
        ["T": I8, "type": F32 F64 F16 BF16 I16 I32 I64 U8 U16 U32 U64];
        ["T": I16, "type": F32 F64 F16 BF16 I8 I32 I64 U8 U16 U32 U64];
        ["T": I32, "type": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64];
        ["T": I64, "type": F32 F64 F16 BF16 I8 I16 I32 U8 U16 U32 U64];
        ["T": U8, "type": F32 F64 F16 BF16 I8 I16 I32 I64 U16 U32 U64];
        ["T": U16, "type": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U32 U64];
        ["T": U32, "type": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U64];
        ["T": U64, "type": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32];
    ),
    attrs: &[("type", AttrKind::Type)],
    outputs: |inputs, sink| {
        let (x, to) = (inputs.get(0, "input")?, inputs.attrs.dtype("type")?);
        sink(to, bitcast_shape(x.shape(), x.dtype(), to)?)
    },
    run: |call| {
        let x = call.inputs.get(0, "input")?.bytes();
        let out = call.output(0)?.bytes_mut();
        crate::base::adapt::check_count("output", out.len(), x.len())?;
        out.copy_from_slice(x);
        Ok(())
    },
    ..KernelDef::of("Bitcast")
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Attr, Tensor, run};

    #[test]
    fn axes_come_and_go() {
        let shape = Shape::new(&[3, 2]).unwrap();
        let cast = |from, to| bitcast_shape(&shape, from, to).map(|shape| shape.to_vec());
        assert_eq!(cast(DType::F32, DType::I32), Ok(vec![3, 2]));
        assert_eq!(cast(DType::F32, DType::U8), Ok(vec![3, 2, 4]));
        assert_eq!(cast(DType::F32, DType::F64), Ok(vec![3]));
        assert!(cast(DType::U8, DType::F64).is_err());
        let x = Tensor::f32(&[1], &[1.0]);
        let out = run(&BITCAST, &[("type", Attr::Type(DType::I32))], &[x], false).unwrap();
        assert_eq!(out[0], Tensor::i32(&[1], &[0x3F80_0000]));
    }
}
