//! Random numbers that depend on their inputs alone.
//!
//! One row per op. Bit-equal to TensorFlow's CPU kernels. Of the algorithms, Philox (1) and the
//! automatic choice (3), which is Philox, are served.

use crate::base::adapt::{Element, by_type, check_rank, check_shape, unserved, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::ops::random::philox::distribution::{
    Distribution, FullInt, Normal, Uniform, UniformF64, UniformInt,
};
use crate::ops::random::philox::{Philox, fill, fill_truncated_normal, key_counter};
use crate::ops::random::stateful::{EMPTY, bounds, half_scratch, run_uniform_half};

/// The number of the algorithm Philox.
const ALGORITHM: i32 = 1;
/// The number of the automatic choice.
const AUTOMATIC: i32 = 3;

const DTYPE: &[(&str, AttrKind)] = &[("dtype", AttrKind::Type)];
const HOST: &[&str] = &["shape", "alg"];
/// Key and counter stay on the device, where the ops that draw numbers look for them: in host
/// memory, as TensorFlow's own kernels leave them, each would be copied before every draw.
const SEED: &[&str] = &["seed"];

/// `StatelessRandomUniformV2` of TensorFlow.
pub static STATELESS_RANDOM_UNIFORM_V2: KernelDef = KernelDef {
    variants: variants!(["dtype": F32 F64 F16 BF16, "Tshape": I32 I64] host HOST;),
    attrs: DTYPE,
    outputs,
    scratch: half_scratch,
    run: |call| match call.output(0)?.dtype() {
        DType::F32 => run(Uniform, call),
        DType::F64 => run(UniformF64, call),
        DType::F16 | DType::BF16 => {
            if call.is_empty() {
                return Ok(());
            }
            run_uniform_half(stream(&call.inputs)?, call)
        }
        found => Err(unserved("dtype", found)),
    },
    ..KernelDef::of("StatelessRandomUniformV2")
};

/// `StatelessRandomNormalV2` of TensorFlow.
pub static STATELESS_RANDOM_NORMAL_V2: KernelDef = KernelDef {
    variants: variants!(["dtype": F32, "Tshape": I32 I64] host HOST;),
    attrs: DTYPE,
    outputs,
    run: |call| run(Normal, call),
    ..KernelDef::of("StatelessRandomNormalV2")
};

/// `StatelessTruncatedNormalV2` of TensorFlow.
pub static STATELESS_TRUNCATED_NORMAL_V2: KernelDef = KernelDef {
    variants: variants!(["dtype": F32, "Tshape": I32 I64] host HOST;),
    attrs: DTYPE,
    outputs,
    run: |call| {
        if call.output(0)?.shape().elements() == 0 {
            return Ok(());
        }
        let stream = stream(&call.inputs)?;
        let parallel = call.parallel;
        fill_truncated_normal(stream, call.output(0)?.f32_mut("output")?, parallel);
        Ok(())
    },
    ..KernelDef::of("StatelessTruncatedNormalV2")
};

/// `StatelessRandomUniformIntV2` of TensorFlow.
pub static STATELESS_RANDOM_UNIFORM_INT_V2: KernelDef = KernelDef {
    variants: variants!(
        ["dtype": I32 I64, "Tshape": I32 I64] host &["shape", "alg", "minval", "maxval"];
    ),
    attrs: DTYPE,
    outputs,
    run: |call| {
        if call.output(0)?.shape().elements() == 0 {
            return Ok(());
        }
        by_type!(call.output(0)?.dtype(), "dtype", T of [i32 i64] => {
            let (low, high) = bounds::<T>(&call.inputs, 4)?;
            run(UniformInt::<T>::new(low, high).ok_or(EMPTY)?, call)
        })
    },
    ..KernelDef::of("StatelessRandomUniformIntV2")
};

/// `StatelessRandomUniformFullIntV2` of TensorFlow.
pub static STATELESS_RANDOM_UNIFORM_FULL_INT_V2: KernelDef = KernelDef {
    variants: variants!(["dtype": I32 I64 U32 U64, "Tshape": I32 I64] host HOST;),
    attrs: DTYPE,
    outputs,
    run: |call| {
        by_type!(
            call.output(0)?.dtype(),
            "dtype",
            T of [i32 i64 u32 u64] => run(FullInt::<T>::new(), call)
        )
    },
    ..KernelDef::of("StatelessRandomUniformFullIntV2")
};

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    check_rank(&inputs.shape(3, "alg")?, "alg", 0, "0")?;
    sink(
        inputs.attrs.dtype("dtype")?,
        inputs.shape_value(0, "shape")?,
    )
}

fn run<D: Distribution>(distribution: D, call: &mut Call<'_>) -> Result<()> {
    if call.output(0)?.shape().elements() == 0 {
        return Ok(());
    }
    let stream = stream(&call.inputs)?;
    let parallel = call.parallel;
    let out = D::Out::view_mut(call.output(0)?, "output")?;
    fill(distribution, stream, out, parallel);
    Ok(())
}

/// The stream that the inputs 1 to 3 name: key, counter and algorithm.
fn stream(inputs: &Inputs<'_>) -> Result<Philox> {
    let (key, counter) = (inputs.get(1, "key")?, inputs.get(2, "counter")?);
    check_shape("key", key.shape(), &Shape::new(&[1])?)?;
    let key = key.u64("key")?.first().copied().unwrap_or(0);
    let words = counter.u64("counter")?;
    let (1, [low, high, ..]) = (counter.shape().rank(), words) else {
        return Err(Error::Length {
            argument: "counter",
            found: words.len(),
            expected: 2,
        });
    };
    match inputs.get(3, "alg")?.i32("alg")? {
        [ALGORITHM | AUTOMATIC] => Ok(Philox::from_key_counter(key, [*low, *high])),
        _ => Err(Error::Value {
            argument: "alg",
            expected: "1 (Philox) or 3 (automatic)",
        }),
    }
}

fn seed(inputs: &Inputs<'_>) -> Result<[u64; 2]> {
    let seed = inputs.get(0, "seed")?;
    check_shape("seed", seed.shape(), &Shape::new(&[2])?)?;
    match *inputs.ints(0, "seed")? {
        [low, high] => Ok([low as u64, high as u64]),
        _ => Err(Error::Length {
            argument: "seed",
            found: seed.shape().elements(),
            expected: 2,
        }),
    }
}

/// `StatelessRandomGetKeyCounter` of TensorFlow.
pub static STATELESS_RANDOM_GET_KEY_COUNTER: KernelDef = KernelDef {
    variants: variants!(["Tseed": I32 I64] host SEED;),
    outputs: |inputs, sink| {
        seed(inputs)?;
        sink(DType::U64, Shape::new(&[1])?)?;
        sink(DType::U64, Shape::new(&[2])?)
    },
    run: |call| {
        let (key, counter) = key_counter(seed(&call.inputs)?);
        call.output(0)?.u64_mut("key")?.fill(key);
        call.output(1)?
            .u64_mut("counter")?
            .copy_from_slice(&counter);
        Ok(())
    },
    ..KernelDef::of("StatelessRandomGetKeyCounter")
};

/// `StatelessRandomGetKeyCounterAlg` of TensorFlow.
pub static STATELESS_RANDOM_GET_KEY_COUNTER_ALG: KernelDef = KernelDef {
    variants: variants!(["Tseed": I32 I64] host &["seed", "alg"];),
    outputs: |inputs, sink| {
        seed(inputs)?;
        sink(DType::U64, Shape::new(&[1])?)?;
        sink(DType::U64, Shape::new(&[2])?)?;
        sink(DType::I32, Shape::SCALAR)
    },
    run: |call| {
        let (key, counter) = key_counter(seed(&call.inputs)?);
        call.output(0)?.u64_mut("key")?.fill(key);
        call.output(1)?
            .u64_mut("counter")?
            .copy_from_slice(&counter);
        call.output(2)?.i32_mut("alg")?.fill(ALGORITHM);
        Ok(())
    },
    ..KernelDef::of("StatelessRandomGetKeyCounterAlg")
};

/// `StatelessRandomGetAlg` of TensorFlow.
pub static STATELESS_RANDOM_GET_ALG: KernelDef = KernelDef {
    variants: variants!([] host &["alg"];),
    outputs: |_, sink| sink(DType::I32, Shape::SCALAR),
    run: |call| {
        call.output(0)?.i32_mut("alg")?.fill(ALGORITHM);
        Ok(())
    },
    ..KernelDef::of("StatelessRandomGetAlg")
};

#[cfg(test)]
mod tests {
    use super::*;

    /// What TensorFlow 2.21 gives on a CPU for the seed `[7, -3]`.
    #[test]
    fn bits_are_those_of_tensorflow() {
        let (key, counter) = key_counter([7, (-3_i64) as u64]);
        assert_eq!(
            (key, counter),
            (13_399_541_416_664_089_238, [0, 2_845_039_061_138_926_877])
        );
        let stream = Philox::from_key_counter(key, counter);
        let serial = &crate::base::parallel::Serial;
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let mut out = [0.0; 5];
        fill(Uniform, stream, &mut out, serial);
        assert_eq!(
            bits(&out),
            [
                0x3ede_896c,
                0x3d85_af60,
                0x3f3f_6390,
                0x3e18_55a0,
                0x3f16_fc3e
            ]
        );
        fill(Normal, stream, &mut out, serial);
        assert_eq!(
            bits(&out),
            [
                0x3f03_c5d9,
                0x3f97_8884,
                0x3f1d_11c8,
                0x3ee7_fbc6,
                0x3f6e_7706
            ]
        );
        fill_truncated_normal(stream, &mut out, serial);
        assert_eq!(
            bits(&out),
            [
                0x3f03_c5d9,
                0x3f97_8884,
                0x3f1d_11c8,
                0x3ee7_fbc6,
                0x3f81_96c4
            ]
        );
        let mut out = [0; 5];
        fill(
            UniformInt::<i32>::new(-100, 77).unwrap(),
            stream,
            &mut out,
            serial,
        );
        assert_eq!(out, [-48, -22, 5, 64, -22]);
    }
}
