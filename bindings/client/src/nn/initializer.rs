//! Initializers: the first values of weights.

use std::fmt::Debug;

use tfp_core::{Context, DataType, Error, Result};
use tfp_ops as ops;

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;

/// The algorithm number of Philox among TensorFlow's random number generators.
const PHILOX: i32 = 1;

/// The standard deviation of a normal distribution that is cut off at two of its own.
const TRUNCATED_DEVIATION: f32 = 0.879_625_7;

/// Which of a weight's dimensions a variance is scaled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fans {
    /// The number of inputs of a unit.
    In,
    /// The number of outputs that an input feeds.
    Out,
    /// The mean of both.
    Average,
}

/// What a weight is before training. [`Initializer`] has those of Keras.
pub trait InitializerFunction: Debug + Send + Sync {
    /// Returns the initializer of Keras that it is, for its files.
    fn as_initializer(&self) -> Option<Initializer> {
        None
    }

    /// Computes a float32 value of a shape. No other weight of the model has the same seed.
    ///
    /// # Errors
    /// What TensorFlow says.
    fn first(&self, cx: &AnyContext, shape: &[i64], seed: u32) -> Result<AnyValue>;
}

impl InitializerFunction for Initializer {
    fn as_initializer(&self) -> Option<Initializer> {
        Some(*self)
    }

    fn first(&self, cx: &AnyContext, shape: &[i64], seed: u32) -> Result<AnyValue> {
        self.value(cx, shape, DataType::FLOAT, seed)
    }
}

/// What a weight is before training. Names and numbers are those of Keras 3: equal seeds give equal
/// weights.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Initializer {
    /// All elements zero.
    Zeros,
    /// All elements one.
    Ones,
    /// All elements equal.
    Constant(f32),
    /// Ones on the diagonal of a matrix, times a gain.
    Identity(f32),
    /// Normal with a mean and a standard deviation.
    RandomNormal(f32, f32),
    /// Normal with a mean and a standard deviation, drawn again beyond two of them.
    TruncatedNormal(f32, f32),
    /// Uniform between two bounds.
    RandomUniform(f32, f32),
    /// Truncated normal with a variance of `scale / fans`.
    ScaledNormal(f32, Fans),
    /// Uniform with a variance of `scale / fans`.
    ScaledUniform(f32, Fans),
    /// Orthonormal rows or columns, times a gain.
    Orthogonal(f32),
    /// A vector of four equal parts, of which the second is one: the bias of an LSTM that remembers at
    /// first (Jozefowicz et al., 2015).
    LstmBias,
}

impl Initializer {
    /// Glorot and Bengio's, uniform: what most layers use.
    pub const GLOROT_UNIFORM: Self = Self::ScaledUniform(1.0, Fans::Average);
    /// Glorot and Bengio's, normal.
    pub const GLOROT_NORMAL: Self = Self::ScaledNormal(1.0, Fans::Average);
    /// He et al.'s, uniform.
    pub const HE_UNIFORM: Self = Self::ScaledUniform(2.0, Fans::In);
    /// He et al.'s, normal.
    pub const HE_NORMAL: Self = Self::ScaledNormal(2.0, Fans::In);
    /// LeCun's, uniform.
    pub const LECUN_UNIFORM: Self = Self::ScaledUniform(1.0, Fans::In);
    /// LeCun's, normal.
    pub const LECUN_NORMAL: Self = Self::ScaledNormal(1.0, Fans::In);
    /// What embeddings use.
    pub const UNIFORM: Self = Self::RandomUniform(-0.05, 0.05);

    /// Computes the values of a weight.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a shape that the initializer can't
    /// fill, and what TensorFlow says.
    pub fn value<C: Context + ?Sized>(
        self,
        cx: &C,
        shape: &[i64],
        dtype: DataType,
        seed: u32,
    ) -> Result<C::Value> {
        if let Some(bad) = shape.iter().find(|&&size| size < 0) {
            return Err(Error::argument(format!(
                "a weight of shape {shape:?}: {bad} is not a size"
            )));
        }
        let count = |count: i64, &size: &i64| count.checked_mul(size.max(1));
        if shape.iter().try_fold(1, count).is_none() {
            return Err(Error::argument(format!(
                "a weight of shape {shape:?}: its elements are more than 63 bits can count"
            )));
        }
        let random = Random {
            cx,
            shape,
            dtype,
            seed,
        };
        match self {
            Self::Zeros => random.filled(0.0),
            Self::Ones => random.filled(1.0),
            Self::Constant(value) => random.filled(value),
            Self::Identity(gain) => {
                let &[rows, columns] = shape else {
                    return Err(wrong("Identity", "a matrix", shape));
                };
                let numbers: Vec<i32> = (0..rows as i32).collect();
                let options = ops::OneHotOptions::default();
                let one = ops::cast(cx, gain, dtype, ops::CastOptions::default())?;
                let zero = ops::cast(cx, 0.0_f32, dtype, ops::CastOptions::default())?;
                ops::one_hot(cx, numbers, columns as i32, one, zero, options)
            }
            Self::RandomNormal(mean, deviation) => {
                scaled(cx, random.normal(shape)?, deviation, mean)
            }
            Self::TruncatedNormal(mean, deviation) => {
                scaled(cx, random.truncated()?, deviation, mean)
            }
            Self::RandomUniform(low, high) => scaled(cx, random.uniform()?, high - low, low),
            Self::ScaledNormal(scale, fans) => {
                let deviation = (scale / fans.of(shape)).sqrt() / TRUNCATED_DEVIATION;
                scaled(cx, random.truncated()?, deviation, 0.0)
            }
            Self::ScaledUniform(scale, fans) => {
                let limit = (3.0 * scale / fans.of(shape)).sqrt();
                scaled(cx, random.uniform()?, 2.0 * limit, -limit)
            }
            Self::LstmBias => {
                let &[size] = shape else {
                    return Err(wrong("LstmBias", "a vector", shape));
                };
                if size % 4 != 0 {
                    return Err(wrong("LstmBias", "four equal parts", shape));
                }
                let part = size / 4;
                let values: Vec<f32> = (0..size)
                    .map(|index| f32::from(u8::from(index / part.max(1) == 1)))
                    .collect();
                ops::cast(cx, values, dtype, ops::CastOptions::default())
            }
            Self::Orthogonal(gain) => {
                let [rows @ .., columns] = shape else {
                    return Err(wrong("Orthogonal", "two dimensions or more", shape));
                };
                if rows.is_empty() {
                    return Err(wrong("Orthogonal", "two dimensions or more", shape));
                }
                let rows: i64 = rows.iter().product();
                let (tall, wide) = (rows.max(*columns), rows.min(*columns));
                let parts = ops::qr(cx, random.normal(&[tall, wide])?, ops::QrOptions::default())?;
                // Makes the decomposition unique, and so the result uniform.
                let signs = ops::sign(cx, ops::matrix_diag_part(cx, parts.r)?)?;
                let mut q = ops::mul(cx, parts.q, signs)?;
                if rows < *columns {
                    q = ops::transpose(cx, q, [1, 0])?;
                }
                ops::mul(cx, ops::reshape(cx, q, shape)?, gain)
            }
        }
    }
}

impl Fans {
    /// The number, at least one.
    fn of(self, shape: &[i64]) -> f32 {
        let (inputs, outputs) = match shape {
            [] => (1, 1),
            [size] => (*size, *size),
            [field @ .., inputs, outputs] => {
                let field: i64 = field.iter().product();
                (field * inputs, field * outputs)
            }
        };
        let (inputs, outputs) = (inputs as f32, outputs as f32);
        match self {
            Self::In => inputs,
            Self::Out => outputs,
            Self::Average => (inputs + outputs) / 2.0,
        }
        .max(1.0)
    }
}

/// Random numbers of one weight.
struct Random<'a, C: ?Sized> {
    cx: &'a C,
    shape: &'a [i64],
    dtype: DataType,
    seed: u32,
}

impl<C: Context + ?Sized> Random<'_, C> {
    fn filled(&self, value: f32) -> Result<C::Value> {
        let value = ops::cast(self.cx, value, self.dtype, ops::CastOptions::default())?;
        ops::fill(self.cx, self.shape, value)
    }

    /// The state that Keras makes of an integer seed.
    fn state(&self) -> Result<ops::StatelessRandomGetKeyCounterOutput<C::Value>> {
        ops::stateless_random_get_key_counter(self.cx, [self.seed as i32, 0])
    }

    fn uniform(&self) -> Result<C::Value> {
        let state = self.state()?;
        let options = ops::StatelessRandomUniformV2Options {
            dtype: Some(self.dtype),
        };
        let (key, counter) = (state.key, state.counter);
        ops::stateless_random_uniform_v2(self.cx, self.shape, key, counter, PHILOX, options)
    }

    fn normal(&self, shape: &[i64]) -> Result<C::Value> {
        let state = self.state()?;
        let options = ops::StatelessRandomNormalV2Options {
            dtype: Some(self.dtype),
        };
        let (key, counter) = (state.key, state.counter);
        ops::stateless_random_normal_v2(self.cx, shape, key, counter, PHILOX, options)
    }

    fn truncated(&self) -> Result<C::Value> {
        let state = self.state()?;
        let options = ops::StatelessTruncatedNormalV2Options {
            dtype: Some(self.dtype),
        };
        let (key, counter) = (state.key, state.counter);
        ops::stateless_truncated_normal_v2(self.cx, self.shape, key, counter, PHILOX, options)
    }
}

/// `x * scale + offset`
fn scaled<C: Context + ?Sized>(cx: &C, x: C::Value, scale: f32, offset: f32) -> Result<C::Value> {
    let x = ops::mul(cx, x, scale)?;
    if offset == 0.0 {
        return Ok(x);
    }
    ops::add_v2(cx, x, offset)
}

fn wrong(initializer: &str, expected: &str, shape: &[i64]) -> Error {
    Error::argument(format!(
        "{initializer} fills {expected}, found the shape {shape:?}"
    ))
}
