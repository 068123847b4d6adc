//! Neural networks: layers, losses, metrics, optimizers and training, with the names, defaults and
//! numbers of Keras 3.

mod activation;
mod criterion;
mod dataset;
pub mod functional;
mod initializer;
pub(crate) mod json;
mod keras;
pub mod layer;
mod loss;
mod metric;
pub mod optimizer;
mod regularizer;
pub mod training;
mod weights;

pub use activation::Activation;
pub use criterion::{LossFunction, Meter, MetricFunction};
pub use dataset::{Dataset, Elements};
pub use initializer::{Fans, Initializer};
pub use layer::Model;
pub use loss::Loss;
pub use metric::Metric;
pub use regularizer::Regularizer;
pub use weights::Weights;
