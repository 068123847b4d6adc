//! TensorFlow from Rust: tensors, graphs, sessions and eager execution, in safe types over the C API.
//!
//! TensorFlow is found and opened when it is first needed, in an installed Python package or the
//! folder that `TF_LIBRARY_PATH` names; nothing is linked.
//!
//! - A [`Tensor`] is an array in host memory. [`Buffer`]s and aligned vectors become tensors without a copy.
//! - A [`Graph`] holds [`Operation`]s, which a [`Scope`] adds; a [`Session`] runs it, and a [`Callable`]
//!   repeats a run. A [`SavedModel`] is a graph with a session and signatures.
//! - An [`EagerContext`] executes eagerly; its values are [`TensorHandle`]s.
//! - Ops are called through a [`Context`], which a scope and an eager context both are: a function
//!   over `C: Context` serves both modes. Generated functions are in the crate `tfp_ops`; an
//!   [`OpBuilder`] calls any op by its name, also one of a library that was loaded at run time.
//! - What a call takes as a tensor is any [`IntoOperand`]: a value, a tensor, or plain Rust data; with
//!   the feature `ndarray` also an array or view of that crate.
//! - An [`Error`] says what was wrong before TensorFlow saw it, or holds TensorFlow's status.
//!
//! ```no_run
//! use tfp_core::{EagerContext, OpBuilder, Result, Tensor};
//!
//! fn main() -> Result<()> {
//!     let ctx = EagerContext::new()?;
//!     let x = ctx.handle(&Tensor::from_array([1.0_f32, 2.0])?)?;
//!     let y = OpBuilder::new("AddV2")?.input(&x).input(1.0).one(&ctx)?;
//!     assert_eq!(y.to_tensor()?.as_slice::<f32>()?, [2.0, 3.0]);
//!     Ok(())
//! }
//! ```
//!
//! Everything may be shared between threads. What TensorFlow leaves unguarded, this crate guards.
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]

mod api;
mod attr;
mod attr_reader;
mod buffer;
mod call;
mod check;
mod context;
mod device;
mod dtype;
mod eager;
mod element;
mod error;
mod function;
mod graph;
mod graph_def;
mod import;
mod in_place;
mod infer;
mod library;
mod literal;
mod memory;
mod names;
#[cfg(feature = "ndarray")]
mod ndarray;
pub mod op;
mod operand;
mod operation;
mod registry;
mod scope;
mod session;
mod set_attr;
mod shape;
mod small_vec;
mod tensor;
mod untrusted;
mod while_loop;
pub mod wire;

pub use api::api;
pub use attr::{AttrValue, Bytes, FuncRef};
pub use attr_reader::{Attr, AttrInfo, FuncAttr};
pub use call::{Call, Prepared, Results};
pub use context::Context;
pub use device::Device;
pub use dtype::{DataType, TypeSet};
pub use eager::{EagerContext, EagerOptions, Executor, PlacementPolicy, TensorHandle};
pub use element::{
    BFloat16, Complex, Element, Float4E2M1Fn, Float8E4M3B11FnUz, Float8E4M3Fn, Float8E4M3FnUz,
    Float8E5M2, Float8E5M2FnUz, Half, Int2, Int4, Nested, QInt8, QInt16, QInt32, QUInt8, QUInt16,
    UInt2, UInt4,
};
pub use error::{Code, Error, ErrorKind, Result};
pub use function::{Function, FunctionOptions};
pub use graph::Graph;
pub use import::{ImportOptions, Imported};
pub use infer::{Slot, Slots};
pub use library::{all_ops, kernels, load_op_library, load_pluggable_device, version};
pub use memory::{ALIGNMENT, Buffer};
pub use op::{Allowed, ArgDesc, ArgKind, AttrDefault, AttrDesc, AttrKind, OpDesc, TypeOf};
pub use operand::{IntoOperand, IntoOperands, Literal, Operand, Operands, Value};
pub use operation::{Operation, Output};
pub use registry::OpBuilder;
pub use scope::Scope;
pub use session::{
    Callable, Fetched, PartialRun, Run, SavedModel, Session, SessionOptions, Signature, TensorInfo,
};
pub use shape::Shape;
pub use small_vec::SmallVec;
pub use tensor::Tensor;
pub use untrusted::check_graph_def;

#[cfg(test)]
mod call_test;
#[cfg(test)]
mod dtype_test;
#[cfg(test)]
mod status_test;
#[cfg(test)]
mod wire_test;
