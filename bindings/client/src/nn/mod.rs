//! Neural networks: layers, losses, metrics, optimizers and training, with the names, defaults and
//! numbers of Keras 3.

mod activation;
mod constraint;
mod criterion;
mod dataset;
pub mod functional;
mod initializer;
mod keras;
pub mod layer;
mod loss;
mod metric;
pub mod optimizer;
mod policy;
mod regularizer;
pub mod training;
mod weights;

#[doc(inline)]
pub use crate::data::{Dataset, Elements};
pub use activation::Activation;
pub use constraint::{Constraint, ConstraintFunction};
pub use criterion::{LossFunction, Meter, MetricFunction};
pub use initializer::{Fans, Initializer, InitializerFunction};
pub use layer::Model;
pub use loss::Loss;
pub use metric::Metric;
pub use policy::Policy;
pub use regularizer::{Regularizer, RegularizerFunction};
pub use weights::Weights;
