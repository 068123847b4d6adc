//! Ops that write to memory which others may read, and what keeps tensors from it.
//!
//! TensorFlow's kernels write to an operand's memory only where nobody else has it, with two
//! exceptions: the ops of [`writes`], and those on reference variables of TensorFlow 1. Without care
//! either would change a [`Tensor`](crate::Tensor) while its elements are borrowed.
//!
//! - A call of such an op gets a copy of the operand that it writes to.
//! - A graph that has such ops by another way, as by an import, is [`Sharing::Operands`]: its sessions
//!   feed copies, and return copies of what they share.
//! - A graph with reference variables is [`Sharing::Results`]: its sessions return copies of what they
//!   share.
//! - A function with either can't be called eagerly, except with the copy in its body.

use crate::attr::AttrValue;
use crate::attr::sharing::Sharing;
use crate::base::error::{Error, Result};
use crate::base::op::{ArgDesc, AttrDesc, AttrKind, OpDesc, TypeOf};
use crate::call::operand::{Operand, Value};
use crate::call::{Call, Context};
use crate::graph::def::{Body, GraphDef, Node};

/// Returns a copy of a tensor in memory of its own.
static DEEP_COPY: OpDesc = OpDesc {
    name: c"DeepCopy",
    inputs: &[ArgDesc::one(c"x", TypeOf::Attr(0))],
    outputs: &[ArgDesc::one(c"y", TypeOf::Attr(0))],
    attrs: &[AttrDesc::new(c"T", AttrKind::Type).inferred()],
};

/// Whether a type of op writes to its first operand, whoever else has it.
#[inline]
pub(crate) fn writes(op: &[u8]) -> bool {
    matches!(op.first(), Some(b'I' | b'_'))
        && matches!(
            op,
            b"InplaceUpdate" | b"InplaceAdd" | b"InplaceSub" | b"_ParallelConcatUpdate"
        )
}

/// Whether a type of op returns a reference to memory that other ops change.
fn refers(op: &[u8]) -> bool {
    matches!(op, b"Variable" | b"VariableV2" | b"TemporaryVariable")
}

/// Replaces the operand that a call writes to by a copy.
pub(crate) fn copy_written<V, C>(
    call: &mut Call<'_, V>,
    context: &C,
    attrs: &[AttrValue<'_>],
) -> Result<()>
where
    V: Value,
    C: Context<Value = V> + ?Sized,
{
    // Literals become values first.
    call.prepare(context, attrs)?;
    let Some(written) = call.operands().first().and_then(Operand::value).cloned() else {
        return Ok(());
    };
    let mut copy = Call::new(&DEEP_COPY);
    copy.input(written);
    let copy = context.execute(&mut copy, &[])?.one()?;
    call.replace_first(copy);
    Ok(())
}

/// Returns what a body writes to, and the first operation that does.
pub(crate) fn sharing<'d>(body: &Body<'d>) -> (Sharing, Option<&'d [u8]>) {
    let mut found = (Sharing::Nothing, None);
    for node in &body.nodes {
        let sharing = if refers(node.op) {
            Sharing::Results
        } else if writes(node.op) && !has_own_copy(body, node) {
            Sharing::Operands
        } else {
            continue;
        };
        if sharing > found.0 {
            found = (sharing, Some(node.name));
        }
    }
    found
}

/// Whether an operation writes to a copy that nothing else has.
fn has_own_copy(body: &Body<'_>, node: &Node<'_>) -> bool {
    let Some(input) = node.inputs.first() else {
        return false;
    };
    let source = source(input);
    let is_copy = |node: &Node<'_>| node.name == source && node.op == b"DeepCopy";
    let inputs = || body.nodes.iter().flat_map(|node| &node.inputs);
    body.nodes.iter().any(is_copy)
        && inputs()
            .filter(|input| self::source(input) == source)
            .count()
            == 1
        && body
            .results
            .iter()
            .all(|result| self::source(result) != source)
}

/// The operation that an input comes from.
fn source(input: &[u8]) -> &[u8] {
    input.split(|&byte| byte == b':').next().unwrap_or(input)
}

/// Refuses a function that can't be called eagerly, where tensors share memory with handles.
pub(crate) fn check_function(name: &[u8], body: &Body<'_>) -> Result<()> {
    let (Sharing::Results | Sharing::Operands, Some(operation)) = sharing(body) else {
        return Ok(());
    };
    Err(Error::argument(format!(
        "function '{}' can't be called eagerly: its operation '{}' writes to memory that tensors \
         share; call it in a session, or use TensorScatterUpdate or a resource variable in it",
        String::from_utf8_lossy(name),
        String::from_utf8_lossy(operation),
    )))
}

impl GraphDef<'_> {
    /// Returns what the operations of the graph and its functions may write to.
    pub(crate) fn sharing(&self) -> Sharing {
        let functions = self.functions.iter().map(|function| &function.body);
        functions
            .chain([&self.body])
            .map(|body| self::sharing(body).0)
            .max()
            .unwrap_or_default()
    }
}
