//! One interface for models in firmware: crates of tf2rust (`--profile no_std`), crates of mlf2rust,
//! and models of your own.
//!
//! Both converters write a `Runner` that implements [`Model`] when `--embedded_from` says where this
//! crate is. A program that is written for the trait takes either:
//!
//! ```
//! use tfp_embedded::{Model, Tensor};
//!
//! /// Puts samples into the model's input; returns the class of the greatest score.
//! fn classify<M>(model: &mut M, samples: &[f32]) -> Result<usize, M::Error>
//! where
//!     M: Model,
//!     M::Input: Tensor<Element = f32>,
//!     M::Output: Tensor<Element = f32>,
//! {
//!     let mut input = M::Input::default();
//!     let mut output = M::Output::default();
//!     for (to, &from) in input.elements_mut().iter_mut().zip(samples) {
//!         *to = from;
//!     }
//!     model.run(&input, &mut output)?;
//!     let scores = output.elements().iter().enumerate();
//!     Ok(scores.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(class, _)| class))
//! }
//! # let mut model = tfp_embedded::from_fn(|x: &In, y: &mut In| {
//! #     y.0 = x.0;
//! #     Ok::<(), core::fmt::Error>(())
//! # });
//! # #[derive(Default)]
//! # struct In([f32; 3]);
//! # impl Tensor for In {
//! #     type Element = f32;
//! #     const NAME: &'static str = "x";
//! #     const LEN: usize = 3;
//! #     fn elements(&self) -> &[f32] { &self.0 }
//! #     fn elements_mut(&mut self) -> &mut [f32] { &mut self.0 }
//! # }
//! # assert_eq!(classify(&mut model, &[0.5, 2.0, 1.0]), Ok(1));
//! ```
//!
//! There is no allocator, no `unsafe` and no dependency here.

#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod clock;
mod model;
mod profiler;

pub use clock::{Clock, Counter};
pub use model::{Function, Model, Tensor, from_fn};
pub use profiler::{Call, Profiler, RUN, Row, Totals};
