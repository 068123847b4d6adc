//! Random numbers with a state that is a variable.

use tfp_core::{DataType, Error, IntoOperand, Result, Tensor};
use tfp_ops as ops;

use crate::context::any::{HOST, Mode};
use crate::variable::{Variable, VariableOptions};

/// How random numbers are made of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RandomAlgorithm {
    /// Works on every device.
    #[default]
    Philox,
    /// Works where XLA compiles.
    ThreeFry,
}

impl RandomAlgorithm {
    /// Returns TensorFlow's number.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Philox => 1,
            Self::ThreeFry => 2,
        }
    }

    /// Returns how many integers a state has, of which the last one is the key.
    #[must_use]
    pub const fn state_size(self) -> usize {
        match self {
            Self::Philox => 3,
            Self::ThreeFry => 2,
        }
    }
}

/// A random generator: equal states give the numbers of `tf.random.Generator` in Python.
///
/// The state is a variable: in a graph it is initialized as any other, and each run goes on from
/// there. It is in host memory, whatever device computes the numbers. A checkpoint keeps it, at `_state_var` below the generator's path for Python.
#[derive(Clone, Debug)]
pub struct RandomGenerator {
    state: Variable,
    algorithm: RandomAlgorithm,
}

impl RandomGenerator {
    /// Makes a generator whose numbers follow from a seed.
    ///
    /// # Errors
    /// What [`Variable::new`] says.
    pub fn from_seed<C: Mode>(context: &C, seed: i64, algorithm: RandomAlgorithm) -> Result<Self> {
        // A negative number goes on with ones.
        let mut state = vec![if seed < 0 { -1 } else { 0 }; algorithm.state_size()];
        state[0] = seed;
        Self::from_state(context, &state, algorithm)
    }

    /// Makes a generator with a state.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a state of another size.
    pub fn from_state<C: Mode>(
        context: &C,
        state: &[i64],
        algorithm: RandomAlgorithm,
    ) -> Result<Self> {
        if state.len() != algorithm.state_size() {
            return Err(Error::argument(format!(
                "a state of {algorithm:?} has {} integers, {} are given",
                algorithm.state_size(),
                state.len()
            )));
        }
        let state = Tensor::from_slice(state, &[state.len() as i64])?;
        Self::with_state(context, &state, algorithm)
    }

    fn with_state<'a, C: Mode>(
        context: &C,
        state: impl IntoOperand<'a, C::Value>,
        algorithm: RandomAlgorithm,
    ) -> Result<Self> {
        let options = VariableOptions {
            trainable: false,
            ..VariableOptions::default()
        };
        // The ops on it have kernels for the host everywhere, and for few devices.
        let host = context.any().on_device(HOST)?;
        let state = context.to_any(&state.into_operand().into_own_value(context)?);
        Ok(Self {
            state: Variable::with_options(&host, "StateVar", &state, &options)?,
            algorithm,
        })
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> &Variable {
        &self.state
    }

    /// Returns the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> RandomAlgorithm {
        self.algorithm
    }

    /// Sets the state to that of a seed.
    ///
    /// # Errors
    /// As for [`Variable::assign`].
    pub fn reset_from_seed<C: Mode>(&self, context: &C, seed: i64) -> Result<C::Operation> {
        let mut state = vec![if seed < 0 { -1 } else { 0 }; self.algorithm.state_size()];
        state[0] = seed;
        self.state.assign(context, state)
    }

    /// Goes on as if so many numbers had been taken, and returns the state before.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign), and TensorFlow's status for an algorithm
    /// that the device does not have.
    pub fn skip<C: Mode>(&self, context: &C, count: u64) -> Result<C::Value> {
        let handle = self.state.handle_in(context)?;
        ops::rng_read_and_skip(
            &*context.at_resource(),
            &handle,
            self.algorithm.number(),
            count,
        )
    }

    /// Returns the key and the counter for so many numbers.
    fn key_and_counter<C: Mode>(&self, context: &C, shape: &[i64]) -> Result<(C::Value, C::Value)> {
        let count = shape
            .iter()
            .try_fold(1_u64, |count, &dim| count.checked_mul(dim.try_into().ok()?));
        let Some(count) = count else {
            return Err(Error::argument(format!(
                "random numbers of shape {shape:?} were asked for: expected no negative dimension \
                 and less than 2^64 numbers"
            )));
        };
        let state = self.skip(context, count)?;
        let counters = (self.algorithm.state_size() - 1) as i64;
        let counter = ops::slice(context, &state, [0_i64], [counters])?;
        let key = ops::slice(context, &state, [counters], [1_i64])?;
        Ok((
            ops::bitcast(context, &key, DataType::UINT64)?,
            ops::bitcast(context, &counter, DataType::UINT64)?,
        ))
    }

    /// Returns numbers of the standard normal distribution.
    ///
    /// # Errors
    /// As for [`Self::skip`], and [`ErrorKind::Attribute`](tfp_core::ErrorKind::Attribute) for a type
    /// that is not floating-point.
    pub fn normal<C: Mode>(&self, context: &C, shape: &[i64], dtype: DataType) -> Result<C::Value> {
        let (key, counter) = self.key_and_counter(context, shape)?;
        let options = ops::StatelessRandomNormalV2Options { dtype: Some(dtype) };
        let algorithm = self.algorithm.number();
        ops::stateless_random_normal_v2(context, shape, &key, &counter, algorithm, options)
    }

    /// Returns numbers of the standard normal distribution, without those above 2 in magnitude.
    ///
    /// # Errors
    /// As for [`Self::normal`].
    pub fn truncated_normal<C: Mode>(
        &self,
        context: &C,
        shape: &[i64],
        dtype: DataType,
    ) -> Result<C::Value> {
        let (key, counter) = self.key_and_counter(context, shape)?;
        let options = ops::StatelessTruncatedNormalV2Options { dtype: Some(dtype) };
        let algorithm = self.algorithm.number();
        ops::stateless_truncated_normal_v2(context, shape, &key, &counter, algorithm, options)
    }

    /// Returns numbers from 0 inclusive to 1 exclusive.
    ///
    /// # Errors
    /// As for [`Self::normal`].
    pub fn uniform<C: Mode>(
        &self,
        context: &C,
        shape: &[i64],
        dtype: DataType,
    ) -> Result<C::Value> {
        let (key, counter) = self.key_and_counter(context, shape)?;
        let options = ops::StatelessRandomUniformV2Options { dtype: Some(dtype) };
        let algorithm = self.algorithm.number();
        ops::stateless_random_uniform_v2(context, shape, &key, &counter, algorithm, options)
    }

    /// Returns integers from `low` inclusive to `high` exclusive, of the type that both have.
    ///
    /// # Errors
    /// As for [`Self::skip`], and [`ErrorKind::Attribute`](tfp_core::ErrorKind::Attribute) for a type
    /// of which there are no random integers.
    pub fn uniform_int<'a, C: Mode>(
        &self,
        context: &C,
        shape: &'a [i64],
        low: impl IntoOperand<'a, C::Value>,
        high: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Value> {
        let (key, counter) = self.key_and_counter(context, shape)?;
        let algorithm = self.algorithm.number();
        ops::stateless_random_uniform_int_v2(context, shape, key, counter, algorithm, low, high)
    }

    /// Returns integers of the whole range of a type.
    ///
    /// # Errors
    /// As for [`Self::uniform_int`].
    pub fn uniform_full_int<C: Mode>(
        &self,
        context: &C,
        shape: &[i64],
        dtype: DataType,
    ) -> Result<C::Value> {
        let (key, counter) = self.key_and_counter(context, shape)?;
        let options = ops::StatelessRandomUniformFullIntV2Options { dtype: Some(dtype) };
        let algorithm = self.algorithm.number();
        ops::stateless_random_uniform_full_int_v2(
            context, shape, &key, &counter, algorithm, options,
        )
    }

    /// Returns how many of `counts` trials succeed, each with probability `probs`.
    ///
    /// # Errors
    /// As for [`Self::skip`].
    pub fn binomial<'a, C: Mode>(
        &self,
        context: &C,
        shape: &[i64],
        counts: impl IntoOperand<'a, C::Value>,
        probs: impl IntoOperand<'a, C::Value>,
        dtype: DataType,
    ) -> Result<C::Value> {
        let handle = self.state.handle_in(context)?;
        // The kernel takes a shape of `INT32` alone, and ends the process for another one.
        let shape = shape
            .iter()
            .map(|&dim| i32::try_from(dim).ok().filter(|&dim| dim >= 0));
        let Some(shape) = shape.collect::<Option<Vec<i32>>>() else {
            return Err(Error::argument(
                "random numbers of a shape with a negative or too large dimension were asked for",
            ));
        };
        let options = ops::StatefulRandomBinomialOptions { dtype: Some(dtype) };
        let algorithm = i64::from(self.algorithm.number());
        let place = &*context.at_resource();
        ops::stateful_random_binomial(place, handle, algorithm, shape, counts, probs, options)
    }

    /// Makes generators whose numbers are independent of each other's and of this one's.
    ///
    /// # Errors
    /// As for [`Self::skip`].
    pub fn split<C: Mode>(&self, context: &C, count: usize) -> Result<Vec<Self>> {
        let keys = self.uniform_full_int(context, &[count as i64], DataType::INT64)?;
        let zeros = vec![0_i64; self.algorithm.state_size() - 1];
        (0..count as i64)
            .map(|at| {
                let key = ops::slice(context, &keys, [at], [1_i64])?;
                let zeros = Tensor::from_slice(&zeros, &[zeros.len() as i64])?;
                let zeros = context.constant(&zeros)?;
                let state = ops::concat_v2(context, [&zeros, &key], 0)?;
                Self::with_state(context, state, self.algorithm)
            })
            .collect()
    }
}
