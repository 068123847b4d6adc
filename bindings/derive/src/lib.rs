//! The macro `derive(Model)`, which the crate `tfp` has as `tfp::nn::Model`.
#![deny(missing_docs)]

mod emit;
mod parse;

use proc_macro::TokenStream;

/// Makes a struct of layers a layer: its fields give weights their names.
///
/// The struct has named fields and neither lifetimes nor type parameters. A field is a layer, or an
/// `Option`, a `Vec` or an array of them. `#[model(skip)]` leaves a field out, such as a size. The trait
/// `Composed` says how the layers are called, and what the names are.
#[proc_macro_derive(Model, attributes(model))]
pub fn derive_model(input: TokenStream) -> TokenStream {
    match parse::model(input) {
        Ok(model) => emit::implementations(&model),
        Err(refusal) => emit::refusal(&refusal),
    }
}
