//! Neural networks against Keras, which wrote what it computes into a checkpoint.

mod built;
mod categories;
mod complete;
mod composed;
mod composed_calls;
mod datasets;
mod derivatives;
mod functional;
mod functions;
mod goldens;
mod images;
mod kept;
mod keras;
mod keras_2;
mod layers;
mod mixed;
mod models;
mod optimizers;
mod own;
mod policies;
mod refused;
mod resumed;
mod training;
mod truths;
