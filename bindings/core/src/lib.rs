//! TensorFlow from Rust: tensors, graphs, sessions and eager execution, in safe types over the C API.
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
mod import;
mod infer;
mod library;
mod literal;
mod memory;
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
mod wire;

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

#[cfg(test)]
mod call_test;
#[cfg(test)]
mod dtype_test;
