//! Runs a model that it knows by the traits of `tfp-embedded` alone, and prints what it costs.
//!
//! A feature of the package chooses the converter whose crate it is. Nothing else here names one.

#![no_std]
#![no_main]

mod board;
mod stack;

use core::fmt::Debug;

#[cfg(feature = "mlf2rust")]
use net_mlf::Runner;
#[cfg(all(feature = "tf2rust", not(feature = "mlf2rust")))]
use net_tf::Runner;
use semihosting::{println, process};
use tfp_embedded::{Call, Model, Tensor};

#[board::entry]
fn main() -> ! {
    board::start_counter();
    match Runner::take() {
        Some(mut model) => process::exit(i32::from(measure(&mut model).is_err())),
        None => process::exit(2),
    }
}

/// Runs the model, prints its outputs, the ticks of its calls and the bytes of its stack.
fn measure<M>(model: &mut M) -> Result<(), M::Error>
where
    M: Model,
    M::Input: Tensor<Element: Sample>,
    M::Output: Tensor<Element: Debug>,
{
    let (mut input, mut output) = (M::Input::default(), M::Output::default());
    for (number, element) in input.elements_mut().iter_mut().enumerate() {
        *element = Sample::new(number);
    }
    let stack = stack::Paint::new();
    model.run(&input, &mut output)?;
    println!("stack of a run: {} bytes", stack.used());
    println!("outputs: {:?}", output.elements());
    let tell = |call: Call<'_>| match call.index {
        Some(number) => println!("call {number}: {} ticks, {}", call.ticks, call.name),
        None => println!("run: {} ticks", call.ticks),
    };
    // Printing takes time, too: a run that tells nothing on its way measures the whole.
    let mut whole = |call: Call<'_>| {
        if call.index.is_none() {
            tell(call);
        }
    };
    model.run_profiled(&input, &mut output, &board::cycles, &mut whole)?;
    let mut each = |call: Call<'_>| {
        if call.index.is_some() {
            tell(call);
        }
    };
    model.run_profiled(&input, &mut output, &board::cycles, &mut each)
}

/// What a sensor would give: numbers that a test computes as well.
trait Sample {
    fn new(number: usize) -> Self;
}

impl Sample for f32 {
    /// From -1 to 1.
    fn new(number: usize) -> Self {
        (number * 37 % 101) as f32 / 50.0 - 1.0
    }
}

impl Sample for i8 {
    /// From -50 to 50.
    fn new(number: usize) -> Self {
        (number * 37 % 101) as i8 - 50
    }
}
