//! Random numbers that a seed decides, as those of TensorFlow's stateless ops.

use crate::bytes::Pod;
use crate::error::{Error, Result};
use crate::kernels::base::adapt::Element;
use crate::kernels::ops::random::philox::distribution::{Distribution, Normal, Uniform};
use crate::kernels::ops::random::philox::{Philox, fill, key_counter};
use crate::memory::{Memory, Slot, Source};

/// Numbers of mean 0 and deviation 1, for a seed of two numbers.
///
/// # Errors
/// [`Error::Plan`] if a slot does not fit.
pub fn normal<'a, I: Element + Pod + Into<i64>>(
    m: &'a mut Memory<'_>,
    seed: impl Into<Source<'a, I>>,
    out: Slot<f32>,
) -> Result<()> {
    draw(m, Normal, seed.into(), out)
}

/// Numbers from 0 on and below 1, for a seed of two numbers.
///
/// # Errors
/// As [`normal`].
pub fn uniform<'a, I: Element + Pod + Into<i64>>(
    m: &'a mut Memory<'_>,
    seed: impl Into<Source<'a, I>>,
    out: Slot<f32>,
) -> Result<()> {
    draw(m, Uniform, seed.into(), out)
}

fn draw<'a, I: Element + Pod + Into<i64>>(
    m: &'a mut Memory<'_>,
    distribution: impl Distribution<Out = f32>,
    seed: Source<'a, I>,
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let [first, second] = *reader.read(seed)? else {
        return Err(Error::Plan {
            expected: "a seed of two numbers",
        });
    };
    let (key, counter) = key_counter([first.into() as u64, second.into() as u64]);
    let stream = Philox::from_key_counter(key, counter);
    fill(distribution, stream, out, reader.parallel);
    Ok(())
}
