//! What goes into a session and comes out of it: checks of feeds, against shapes that a thread
//! remembers, and copies where operations write to memory that tensors share.

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::ManuallyDrop;

use tfp_sys::{TF_Output, TF_Tensor};

use crate::attr::sharing::Sharing;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::graph::Graph;
use crate::graph::operation::Output;
use crate::tensor::Tensor;

/// How many outputs a thread remembers; a power of two.
const PLACES: usize = 32;

/// What TensorFlow said about the shape of an output.
struct Memory {
    // Shapes of a graph hold as long as it is of this epoch, which no other graph has or had.
    epoch: u64,
    operation: usize,
    index: c_int,
    shape: Shape,
}

thread_local! {
    static FED: RefCell<[Memory; PLACES]> = const {
        // No graph has epoch zero.
        RefCell::new([const {
            Memory { epoch: 0, operation: 0, index: 0, shape: Shape::unknown() }
        }; PLACES])
    };
}

/// Checks that each tensor can be fed for its output of a graph.
///
/// To ask TensorFlow for a shape takes longer than all else that a small run does besides, so a
/// thread remembers the last ones.
///
/// # Errors
/// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign), [`ErrorKind::DType`](crate::ErrorKind::DType)
/// or [`ErrorKind::Shape`](crate::ErrorKind::Shape).
#[inline]
pub(super) fn check_feeds(graph: &Graph, feeds: &[(&Output, &Tensor)]) -> Result<()> {
    FED.try_with(|fed| {
        let mut fed = fed.try_borrow_mut().ok();
        for &(output, tensor) in feeds {
            graph.check_own(output)?;
            match &mut fed {
                Some(fed) => check_feed(output, remembered(fed, graph, output)?, tensor)?,
                None => check_feed(output, &graph.shape(output)?, tensor)?,
            }
        }
        Ok(())
    })
    // The thread ends, and has forgotten all.
    .unwrap_or_else(|_| {
        feeds
            .iter()
            .try_for_each(|(output, tensor)| check_feed(output, &graph.shape(output)?, tensor))
    })
}

/// Returns the shape of an output, from the memory when it is there.
#[inline]
fn remembered<'m>(
    fed: &'m mut [Memory; PLACES],
    graph: &Graph,
    output: &Output,
) -> Result<&'m Shape> {
    let TF_Output { oper, index } = output.raw();
    // Read before TensorFlow is asked: an answer that is overtaken belongs to an old epoch.
    let epoch = graph.inner.epoch();
    let operation = oper.addr();
    // An output has two places, so that two of a run seldom take turns in one.
    let first = ((operation >> 4) ^ (operation >> 9) ^ output.index()) % PLACES;
    let second = first ^ 1;
    let is_it = |memory: &Memory| {
        memory.operation == operation && memory.index == index && memory.epoch == epoch
    };
    if is_it(&fed[first]) {
        return Ok(&fed[first].shape);
    }
    if !is_it(&fed[second]) {
        let shape = graph.shape(output)?;
        fed.swap(first, second);
        fed[first] = Memory {
            epoch,
            operation,
            index,
            shape,
        };
        return Ok(&fed[first].shape);
    }
    Ok(&fed[second].shape)
}

/// Checks that a tensor can be fed for an output of a shape.
#[inline]
pub(super) fn check_feed(output: &Output, shape: &Shape, tensor: &Tensor) -> Result<()> {
    if tensor.dtype() == output.dtype().base() && shape.admits(tensor.dims()) {
        Ok(())
    } else {
        Err(misfit(output, shape, tensor))
    }
}

/// Copies of all that is fed.
pub(super) struct FedCopies {
    raw: Vec<*mut TF_Tensor>,
    // The owners of those pointers.
    _tensors: Vec<Tensor>,
}

impl FedCopies {
    /// Copies tensors where operations may write to what is fed; `None` otherwise.
    ///
    /// # Safety
    /// The tensors are alive.
    #[inline]
    pub(super) unsafe fn where_needed(
        graph: &Graph,
        values: &[*mut TF_Tensor],
    ) -> Result<Option<Self>> {
        if graph.inner.sharing() < Sharing::Operands {
            return Ok(None);
        }
        // SAFETY: by this function's contract.
        unsafe { Self::new(graph, values) }.map(Some)
    }

    /// # Safety
    /// The tensors are alive.
    #[cold]
    unsafe fn new(graph: &Graph, values: &[*mut TF_Tensor]) -> Result<Self> {
        let copy = |&raw: &*mut TF_Tensor| {
            // SAFETY: the tensor is alive and stays its owner's, for it is not dropped here.
            let tensor = unsafe { Tensor::from_owned_ptr(raw, graph.inner.api) };
            ManuallyDrop::new(tensor?).deep_copy()
        };
        let tensors = values.iter().map(copy).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            raw: tensors.iter().map(Tensor::as_ptr).collect(),
            _tensors: tensors,
        })
    }

    /// Returns the pointers to the copies, in the order of the tensors.
    pub(super) fn as_ptrs(&self) -> &[*mut TF_Tensor] {
        &self.raw
    }
}

/// Takes a tensor that a session returned: as a copy, where operations may write to it later.
///
/// # Safety
/// `raw` is null or a tensor that nothing else deletes.
#[inline]
pub(super) unsafe fn fetched(graph: &Graph, raw: *mut TF_Tensor) -> Result<Tensor> {
    // SAFETY: by this function's contract.
    let tensor = unsafe { Tensor::from_owned_ptr(raw, graph.inner.api)? };
    if graph.inner.sharing() == Sharing::Nothing || tensor.is_alone() {
        return Ok(tensor);
    }
    tensor.deep_copy()
}

#[cold]
fn misfit(output: &Output, shape: &Shape, tensor: &Tensor) -> Error {
    let what = format!("the feed of '{}'", output.name());
    let dtype = output.dtype().base();
    if tensor.dtype() != dtype {
        return Error::dtype(what, dtype, tensor.dtype());
    }
    Error::shape(what, format!("shape {shape}"), tensor.shape())
}
