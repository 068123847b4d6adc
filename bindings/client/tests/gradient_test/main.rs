//! Gradients are what Python's are and what numeric differences say, in graphs and on tapes.

mod api;
mod calls;
mod fixture;
mod large;
mod ops;
mod support;
