//! Training on several machines, over TensorFlow's own servers and collective ops.
//!
//! - A [`ClusterSpec`] names the tasks of a cluster and their addresses; a [`TfConfig`] is a cluster and the
//!   task that this process is, as the variable `TF_CONFIG` has it.
//! - A [`MultiWorker`] is a task of data-parallel training: [`Trainer::across`] makes a trainer one of all
//!   workers, a [`Shard`] gives it its part of each batch, and [`ChiefOnly`] lets the chief alone write files. [`MultiWorker::all_reduce`] serves loops of
//!   your own.
//! - A [`ParameterServer`] is the coordinator of asynchronous training: variables are on servers, and
//!   workers that run a [`Server`] compute.
//!
//! [`Trainer::across`]: crate::nn::training::Trainer::across

mod chief;
mod cluster;
mod config;
mod meeting;
mod packs;
mod parameter;
mod queue;
mod server;
mod shard;
mod workers;

pub use chief::ChiefOnly;
pub use cluster::ClusterSpec;
pub use config::TfConfig;
pub(crate) use packs::Packs;
pub use parameter::ParameterServer;
pub use server::Server;
pub use shard::Shard;
pub use workers::{ClusterOptions, MultiWorker, Reduction};
