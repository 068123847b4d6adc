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
//! - What TensorFlow throws, as where there is no memory, is an [`Error`], too. The graph or context on which it was
//!   called may be locked for good, and gives [`Code::FailedPrecondition`] from then on. So on Linux, in programs that
//!   unwind (`panic = "unwind"`, the default); elsewhere the process ends.
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

mod attr;
mod base;
mod call;
mod eager;
mod graph;
mod host;
mod session;
mod tensor;

pub use attr::function::Function;
pub use attr::{AttrValue, Bytes, FuncRef};
pub use base::api::api;
pub use base::config::Config;
pub use base::device::Device;
pub use base::error::{Code, Error, ErrorKind, Result};
pub use base::library::{all_ops, kernels, load_op_library, load_pluggable_device, version};
pub use base::op;
pub use base::op::{Allowed, ArgDesc, ArgKind, AttrDefault, AttrDesc, AttrKind, OpDesc, TypeOf};
pub use base::shape::Shape;
pub use base::small_vec::SmallVec;
pub use call::operand::{IntoOperand, IntoOperands, Literal, Operand, Operands, Value};
pub use call::results::{Prepared, Results};
pub use call::slot::{Slot, Slots};
pub use call::{Call, Context};
pub use eager::{
    Cancellation, EagerContext, EagerOptions, Executor, PlacementPolicy, TensorHandle,
    WeakEagerContext,
};
pub use graph::Graph;
pub use graph::attr::{Attr, AttrInfo, FuncAttr};
pub use graph::function::FunctionOptions;
pub use graph::import::{ImportOptions, Imported};
pub use graph::operation::{Operation, Output};
pub use graph::registry::OpBuilder;
pub use graph::scope::Scope;
pub use graph::untrusted::check_graph_def;
pub use host::HostFunction;
pub use session::{
    Callable, Fetched, PartialRun, Run, RunOptions, SavedModel, Server, Session, SessionOptions,
    Signature, TensorInfo, TracedNode, traced_nodes,
};
pub use tensor::Tensor;
pub use tensor::element::{
    BFloat16, Complex, Element, Float4E2M1Fn, Float8E4M3B11FnUz, Float8E4M3Fn, Float8E4M3FnUz,
    Float8E5M2, Float8E5M2FnUz, Half, Int2, Int4, Nested, QInt8, QInt16, QInt32, QUInt8, QUInt16,
    UInt2, UInt4,
};
pub use tensor::memory::{ALIGNMENT, Buffer};
#[doc(inline)]
pub use tfp_wire::{DataType, TypeSet};

/// The wire format of protocol buffers: fields, and the messages that attributes consist of.
pub mod wire {
    pub use crate::attr::proto::{attr_proto, func_proto, read_shape, shape_proto};
    #[doc(inline)]
    pub use tfp_wire::{Field, Reader, Value, Writer, push_varint, take_varint};
}
