//! Tensors of one value.

use crate::base::adapt::{by_width, check_rank, shape_of, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::frame::map::outputs_like_first;

/// Sets every element to `value`.
pub fn fill<T: Copy + Send + Sync>(value: T, out: &mut [T], parallel: &dyn Parallel) {
    let chunk = chunk_len(parallel, out.len(), 64, 1);
    for_each_chunk(parallel, out, chunk, &|_, out| out.fill(value));
}

/// `Fill` of TensorFlow.
pub static FILL: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "index_type": I32 I64]
            host &["dims"];
    ),
    outputs: |inputs, sink| {
        // A number is a shape of one axis.
        let dims = inputs.ints_of_any_rank(0, "dims")?;
        if inputs.shape(0, "dims")?.rank() > 1 {
            inputs.ints(0, "dims")?;
        }
        let value = inputs.get(1, "value")?;
        // A vector of one element is a number, too.
        if value.shape().rank() > 1 {
            check_rank(value.shape(), "value", 0, "0")?;
        }
        sink(value.dtype(), shape_of("dims", &dims)?)
    },
    run: |call| by_width!(call.inputs.get(1, "value")?.dtype(), run(call)),
    ..KernelDef::of("Fill")
};

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let value = call.inputs.get(1, "value")?;
    let [value] = *units::<N>(value.bytes()) else {
        return Err(Error::Rank {
            argument: "value",
            found: value.shape().rank(),
            expected: "0",
        });
    };
    let parallel = call.parallel;
    fill(value, units_mut(call.output(0)?.bytes_mut()), parallel);
    Ok(())
}

/// `ZerosLike` of TensorFlow.
pub static ZEROS_LIKE: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool];),
    forward: &[(0, 0)],
    outputs: outputs_like_first,
    run: |call| {
        let parallel = call.parallel;
        fill(0, call.output(0)?.bytes_mut(), parallel);
        Ok(())
    },
    ..KernelDef::of("ZerosLike")
};

/// `OnesLike` of TensorFlow.
pub static ONES_LIKE: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool];),
    forward: &[(0, 0)],
    outputs: outputs_like_first,
    run: |call| {
        let parallel = call.parallel;
        let output = call.output(0)?;
        let dtype = output.dtype();
        let out = output.bytes_mut();
        match dtype {
            DType::F32 => fill(1.0_f32.to_ne_bytes(), units_mut(out), parallel),
            DType::F64 => fill(1.0_f64.to_ne_bytes(), units_mut(out), parallel),
            DType::F16 => fill(0x3C00_u16.to_ne_bytes(), units_mut(out), parallel),
            DType::BF16 => fill(0x3F80_u16.to_ne_bytes(), units_mut(out), parallel),
            DType::I16 | DType::U16 => fill(1_u16.to_ne_bytes(), units_mut(out), parallel),
            DType::I32 | DType::U32 => fill(1_u32.to_ne_bytes(), units_mut(out), parallel),
            DType::I64 | DType::U64 => fill(1_u64.to_ne_bytes(), units_mut(out), parallel),
            DType::I8 | DType::U8 | DType::Bool => fill(1, out, parallel),
        }
        Ok(())
    },
    ..KernelDef::of("OnesLike")
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Tensor, run};

    #[test]
    fn one_value_everywhere() {
        let out = run(
            &FILL,
            &[],
            &[Tensor::i32(&[2], &[2, 2]), Tensor::f32(&[], &[7.0])],
            false,
        );
        assert_eq!(out.unwrap()[0], Tensor::f32(&[2, 2], &[7.0; 4]));
        let negative = [Tensor::i32(&[1], &[-2]), Tensor::f32(&[], &[7.0])];
        assert!(run(&FILL, &[], &negative, false).is_err());
        let x = Tensor::f32(&[3], &[1.0, 2.0, 3.0]);
        for forward in [false, true] {
            let zeros = run(&ZEROS_LIKE, &[], std::slice::from_ref(&x), forward).unwrap();
            assert_eq!(zeros[0].to_f32(), [0.0; 3]);
            let ones = run(&ONES_LIKE, &[], std::slice::from_ref(&x), forward).unwrap();
            assert_eq!(ones[0].to_f32(), [1.0; 3]);
        }
    }
}
