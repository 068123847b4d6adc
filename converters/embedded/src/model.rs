//! Models and their tensors.

use core::marker::PhantomData;

use crate::{Call, Clock, Profiler, RUN};

/// A tensor that owns its elements, aligned as its model asks; `default()` is all zeros.
pub trait Tensor: Default {
    /// Type of the elements, as Rust stores them: float16 is the bits in a `u16`.
    type Element: Copy;
    /// The tensor's name in its model.
    const NAME: &'static str;
    /// Number of stored elements.
    const LEN: usize;

    /// The elements in row-major order, [`LEN`](Self::LEN) of them.
    fn elements(&self) -> &[Self::Element];

    /// The elements, to be written.
    fn elements_mut(&mut self) -> &mut [Self::Element];
}

/// A model that is ready to run: its weights, and the memory that it works in.
///
/// A model with one input has its type as [`Input`](Self::Input). With several inputs it is a tuple of
/// their types, in the model's order. The same holds for outputs.
pub trait Model {
    /// What a run reads.
    type Input;
    /// What a run writes.
    type Output;
    /// Why a run failed.
    type Error: core::error::Error;

    /// Runs the model once.
    ///
    /// # Errors
    /// What the model's crate says; the output is then unspecified.
    fn run(&mut self, input: &Self::Input, output: &mut Self::Output) -> Result<(), Self::Error>;

    /// Runs the model once, and tells how long it took.
    ///
    /// The last call that `profiler` gets is the whole run, [`RUN`]. A model that can tell its operators
    /// apart reports each of them before, in the order in which they ended.
    ///
    /// # Errors
    /// As of [`run`](Self::run). A run that failed may have told of operators, but not of the whole.
    fn run_profiled(
        &mut self,
        input: &Self::Input,
        output: &mut Self::Output,
        clock: &dyn Clock,
        profiler: &mut dyn Profiler,
    ) -> Result<(), Self::Error> {
        let start = clock.now();
        self.run(input, output)?;
        let ticks = clock.since(start);
        profiler.ended(Call {
            name: RUN,
            index: None,
            ticks,
        });
        Ok(())
    }
}

impl<M: Model + ?Sized> Model for &mut M {
    type Input = M::Input;
    type Output = M::Output;
    type Error = M::Error;

    fn run(&mut self, input: &Self::Input, output: &mut Self::Output) -> Result<(), Self::Error> {
        (**self).run(input, output)
    }

    fn run_profiled(
        &mut self,
        input: &Self::Input,
        output: &mut Self::Output,
        clock: &dyn Clock,
        profiler: &mut dyn Profiler,
    ) -> Result<(), Self::Error> {
        (**self).run_profiled(input, output, clock, profiler)
    }
}

/// A function as a model; see [`from_fn`].
#[derive(Clone, Copy, Debug)]
pub struct Function<F, I, O> {
    run: F,
    types: PhantomData<fn(&I, &mut O)>,
}

/// Makes a model of a function, such as of a vendor's or of a double in a test.
///
/// ```
/// use tfp_embedded::{Model, from_fn};
///
/// let mut double = from_fn(|input: &[i8; 2], output: &mut [i8; 2]| {
///     *output = input.map(|x| 2 * x);
///     Ok::<(), core::convert::Infallible>(())
/// });
/// let mut output = [0; 2];
/// double.run(&[3, 4], &mut output).unwrap();
/// assert_eq!(output, [6, 8]);
/// ```
pub const fn from_fn<F, I, O, E>(run: F) -> Function<F, I, O>
where
    F: FnMut(&I, &mut O) -> Result<(), E>,
    E: core::error::Error,
{
    Function {
        run,
        types: PhantomData,
    }
}

impl<F, I, O, E> Model for Function<F, I, O>
where
    F: FnMut(&I, &mut O) -> Result<(), E>,
    E: core::error::Error,
{
    type Input = I;
    type Output = O;
    type Error = E;

    fn run(&mut self, input: &I, output: &mut O) -> Result<(), E> {
        (self.run)(input, output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use core::fmt::Error;

    #[test]
    fn a_run_is_measured_and_told_once() {
        let time = Cell::new(100);
        let mut model = from_fn(|input: &u64, output: &mut u64| {
            time.set(time.get() + input);
            *output = 2 * input;
            Ok::<(), Error>(())
        });
        let mut calls = [None; 2];
        let mut told = 0;
        let mut profiler = |call: Call<'_>| {
            calls[told] = Some((call.name == RUN, call.index, call.ticks));
            told += 1;
        };
        let mut output = 0;
        let done = model.run_profiled(&7, &mut output, &|| time.get(), &mut profiler);
        assert_eq!((done, output), (Ok(()), 14));
        assert_eq!(calls, [Some((true, None, 7)), None]);
    }

    #[test]
    fn a_run_that_fails_is_not_told() {
        let mut model = from_fn(|_: &(), _: &mut ()| Err(Error));
        let mut profiler = |_: Call<'_>| panic!("told");
        let done = model.run_profiled(&(), &mut (), &|| 0, &mut profiler);
        assert_eq!(done, Err(Error));
    }

    #[test]
    fn a_model_may_be_chosen_at_run_time() {
        let mut model = from_fn(|input: &u8, output: &mut u8| {
            *output = !input;
            Ok::<(), Error>(())
        });
        let chosen: &mut dyn Model<Input = u8, Output = u8, Error = Error> = &mut model;
        fn twice<M: Model<Input = u8, Output = u8>>(mut model: M) -> u8 {
            let (mut once, mut twice) = (0, 0);
            assert!(model.run(&5, &mut once).is_ok());
            assert!(model.run(&once, &mut twice).is_ok());
            twice
        }
        assert_eq!(twice(chosen), 5);
    }
}
