//! Everything that the client does also works on the plug-in's device, with the CPU's results.
//!
//! Placement is hard: neither the sessions nor the eager contexts here let TensorFlow choose another
//! device for an op than the one that is asked for.

#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "lists of one value are written as lists"
)]

mod layers;
mod models;
mod modes;
mod place;
mod training;
