//! Gradients are what Python's are and what numeric differences say, in graphs and on tapes.

#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "lists of one value are written as lists"
)]

mod api;
mod calls;
mod fixture;
mod large;
mod lists;
mod missing;
mod models;
mod nested;
mod ops;
mod residual;
mod saved_layers;
mod support;
mod swish;
mod variants;
