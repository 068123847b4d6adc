//! Random numbers whose stream belongs to the node: each step continues where the last one ended.
//!
//! One row per op. Bit-equal to TensorFlow's CPU kernels for equal seeds. A node whose `seed` and
//! `seed2` are both 0 draws its stream from the node's entropy.

use crate::base::adapt::{Element, by_type, check_count, check_rank, unserved, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, State, Variants};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::scratch::{f32_bytes, f32s, first_output};
use crate::ops::random::philox::distribution::{
    Distribution, Normal, Uniform, UniformF64, UniformInt,
};
use crate::ops::random::philox::{Philox, fill, fill_truncated_normal, fill_uniform_half};

const FLOAT_ATTRS: &[(&str, AttrKind)] = &[
    ("seed", AttrKind::Int),
    ("seed2", AttrKind::Int),
    ("dtype", AttrKind::Type),
];

const INT_ATTRS: &[(&str, AttrKind)] = &[
    ("seed", AttrKind::Int),
    ("seed2", AttrKind::Int),
    ("Tout", AttrKind::Type),
];

/// The types of the kernels of 16-bit floats.
pub(crate) const NARROW: &[Variants] =
    variants!(["T": I32 I64, "dtype": F16 BF16] host &["shape"];);

/// `RandomStandardNormal` of TensorFlow.
pub static RANDOM_STANDARD_NORMAL: KernelDef = KernelDef {
    variants: variants!(["T": I32 I64, "dtype": F32] host &["shape"];),
    attrs: FLOAT_ATTRS,
    outputs: outputs_float,
    run: |call| run_fill(Normal, call),
    ..KernelDef::of("RandomStandardNormal")
};

/// `RandomUniform` of TensorFlow.
pub static RANDOM_UNIFORM: KernelDef = KernelDef {
    variants: variants!(["T": I32 I64, "dtype": F32 F64 F16 BF16] host &["shape"];),
    attrs: FLOAT_ATTRS,
    outputs: outputs_float,
    scratch: half_scratch,
    run: |call| match call.output(0)?.dtype() {
        DType::F32 => run_fill(Uniform, call),
        DType::F64 => run_fill(UniformF64, call),
        DType::F16 | DType::BF16 => run_uniform_half(reserve(call)?, call),
        found => Err(unserved("dtype", found)),
    },
    ..KernelDef::of("RandomUniform")
};

/// Bytes of scratch memory of [`run_uniform_half`]; other types need none.
pub(crate) fn half_scratch(inputs: &Inputs<'_>) -> Result<usize> {
    match Half::of(inputs.attrs.dtype("dtype")?) {
        Some(_) => f32_bytes(inputs.shape_value(0, "shape")?.elements()),
        None => Ok(0),
    }
}

/// Fills the output, of 16-bit floats, with uniform numbers.
pub(crate) fn run_uniform_half(stream: Philox, call: &mut Call<'_>) -> Result<()> {
    let parallel = call.parallel;
    let wide = f32s(call.scratch);
    let out = first_output(call.outputs)?.halves_mut("output")?;
    check_count("scratch", wide.len(), out.1.len())?;
    fill_uniform_half(stream, out, wide, parallel);
    Ok(())
}

/// `TruncatedNormal` of TensorFlow.
pub static TRUNCATED_NORMAL: KernelDef = KernelDef {
    variants: variants!(["T": I32 I64, "dtype": F32] host &["shape"];),
    attrs: FLOAT_ATTRS,
    outputs: outputs_float,
    run: |call| {
        let stream = reserve(call)?;
        let parallel = call.parallel;
        fill_truncated_normal(stream, call.output(0)?.f32_mut("output")?, parallel);
        Ok(())
    },
    ..KernelDef::of("TruncatedNormal")
};

/// `RandomUniformInt` of TensorFlow.
pub static RANDOM_UNIFORM_INT: KernelDef = KernelDef {
    variants: variants!(
        ["T": I32 I64, "Tout": I32 I64] host &["shape", "minval", "maxval"];
    ),
    attrs: INT_ATTRS,
    outputs: |inputs, sink| {
        for (index, argument) in [(1, "minval"), (2, "maxval")] {
            check_rank(&inputs.shape(index, argument)?, argument, 0, "0")?;
        }
        sink(inputs.attrs.dtype("Tout")?, inputs.shape_value(0, "shape")?)
    },
    run: |call| {
        if call.output(0)?.shape().elements() == 0 {
            return Ok(());
        }
        by_type!(call.output(0)?.dtype(), "Tout", T of [i32 i64] => {
            let (low, high) = bounds::<T>(&call.inputs, 1)?;
            run_fill(UniformInt::<T>::new(low, high).ok_or(EMPTY)?, call)
        })
    },
    ..KernelDef::of("RandomUniformInt")
};

/// The error for an empty range of integers.
pub(crate) const EMPTY: Error = Error::Value {
    argument: "minval",
    expected: "a value below maxval",
};

/// Two scalars, `minval` and `maxval`, from input `index` on.
pub(crate) fn bounds<T: Element>(inputs: &Inputs<'_>, index: usize) -> Result<(T, T)> {
    let scalar = |index, argument| {
        let tensor = inputs.get(index, argument)?;
        check_rank(tensor.shape(), argument, 0, "0")?;
        let values = T::view(&tensor, argument)?;
        values.first().copied().ok_or(Error::Length {
            argument,
            found: 0,
            expected: 1,
        })
    };
    Ok((scalar(index, "minval")?, scalar(index + 1, "maxval")?))
}

fn outputs_float(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    sink(
        inputs.attrs.dtype("dtype")?,
        inputs.shape_value(0, "shape")?,
    )
}

fn run_fill<D: Distribution>(distribution: D, call: &mut Call<'_>) -> Result<()> {
    let stream = reserve(call)?;
    let parallel = call.parallel;
    let out = D::Out::view_mut(call.output(0)?, "output")?;
    fill(distribution, stream, out, parallel);
    Ok(())
}

/// Takes from the node's stream what this step's output may use: 256 blocks per number.
fn reserve(call: &mut Call<'_>) -> Result<Philox> {
    let blocks = (call.output(0)?.shape().elements() as u64).wrapping_mul(256);
    let attrs = call.inputs.attrs;
    let (seed, seed2) = (attrs.int("seed")? as u64, attrs.int("seed2")? as u64);
    let stream = if seed == 0 && seed2 == 0 {
        Philox::from_seeds(call.state.entropy[0], call.state.entropy[1])
    } else {
        Philox::from_seeds(seed, seed2)
    };
    Ok(stream.skip(u128::from(advance(call.state, blocks)?)))
}

/// Takes blocks from a node's stream; returns how many were taken before.
#[cfg(target_has_atomic = "64")]
fn advance(state: &State, blocks: u64) -> Result<u64> {
    use core::sync::atomic::Ordering;
    Ok(state.counter.fetch_add(blocks, Ordering::Relaxed))
}

/// Fails: a stream can't be shared.
#[cfg(not(target_has_atomic = "64"))]
fn advance(_: &State, _: u64) -> Result<u64> {
    Err(Error::Value {
        argument: "state",
        expected: "a processor with atomic numbers of 64 bits",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Attr, Tensor, run};

    fn bits(def: &KernelDef) -> Vec<u32> {
        let attrs = [
            ("seed", Attr::Int(12)),
            ("seed2", Attr::Int(34)),
            ("dtype", Attr::Type(DType::F32)),
        ];
        let out = run(def, &attrs, &[Tensor::i32(&[1], &[6])], false).unwrap();
        out[0].to_f32().iter().map(|x| x.to_bits()).collect()
    }

    /// What TensorFlow 2.21 gives on a CPU for `seed=12, seed2=34`.
    #[test]
    fn bits_are_those_of_tensorflow() {
        assert_eq!(
            bits(&RANDOM_STANDARD_NORMAL),
            [
                0xbe15_1c5b,
                0x3f35_f78f,
                0xbf14_8cd2,
                0x4012_11f6,
                0xbeb8_f937,
                0x3dcf_b4e3
            ]
        );
        assert_eq!(
            bits(&RANDOM_UNIFORM),
            [
                0x3f44_c0dc,
                0x3f77_c466,
                0x3d7f_eae0,
                0x3f75_db28,
                0x3f6e_98ba,
                0x3f4b_2698
            ]
        );
        assert_eq!(
            bits(&TRUNCATED_NORMAL),
            [
                0xbe15_1c5b,
                0x3f35_f78f,
                0xbf14_8cd2,
                0xbeb8_f937,
                0x3f8d_cc5f,
                0xbf92_2340
            ]
        );
        let attrs = [
            ("seed", Attr::Int(12)),
            ("seed2", Attr::Int(34)),
            ("Tout", Attr::Type(DType::I64)),
        ];
        let mut inputs = [
            Tensor::i32(&[1], &[5]),
            Tensor::i64(&[], &[-10]),
            Tensor::i64(&[], &[1000]),
        ];
        let out = run(&RANDOM_UNIFORM_INT, &attrs, &inputs, false).unwrap();
        assert_eq!(out[0].to_i64(), [556, 539, 897, 578, 708]);
        inputs.swap(1, 2);
        assert!(run(&RANDOM_UNIFORM_INT, &attrs, &inputs, false).is_err());
    }

    /// The second step's first number with the same seeds: 6 * 256 blocks further on.
    #[test]
    fn steps_continue_the_stream() {
        let mut out = [0.0];
        let stream = Philox::from_seeds(12, 34).skip(6 * 256);
        fill(Normal, stream, &mut out, &crate::base::parallel::Serial);
        assert_eq!(out[0].to_bits(), 0x3e6b_cdcd);
    }
}
