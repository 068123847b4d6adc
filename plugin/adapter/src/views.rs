//! TensorFlow's tensors and types as the kernels see them, and kernels' errors as TensorFlow's.

use tfp_bindings::{Code, DataType, Error, Layout, Result, Tensor, TensorMut};
use tfp_kernels::base::def::{Spec, TensorMut as KernelMut, TensorRef};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::shape::{MAX_RANK, Shape};

use crate::dtype;

pub(crate) fn data_type(dtype: DType) -> Result<DataType> {
    dtype::to_tensorflow(dtype)
        .ok_or_else(|| Error::internal(format!("{dtype} has no TensorFlow type")))
}

pub(crate) fn layout(spec: &Spec) -> Result<Layout> {
    Layout::new(data_type(spec.dtype())?, spec.shape())
}

#[inline(always)]
pub(crate) fn writable<'a>(tensor: &'a mut TensorMut<'_>, spec: &'a Spec) -> Result<KernelMut<'a>> {
    KernelMut::new(spec, tensor.bytes_mut()?).map_err(refused)
}

#[inline]
pub(crate) fn read_spec(tensor: &Tensor) -> Result<Spec> {
    let data_type = tensor.data_type();
    let dtype = dtype::from_tensorflow(data_type)
        .ok_or_else(|| Error::invalid(format!("no kernel computes {data_type}")))?;
    let mut shape = Shape::SCALAR;
    for dim in tensor.dims() {
        shape.push(dim).map_err(refused)?;
    }
    Spec::new(dtype, shape).map_err(refused)
}

/// The inputs as the kernels see them; one that is gone has been forwarded.
#[inline(always)]
pub(crate) fn view_all<'a>(
    inputs: &'a [Option<Tensor>],
    specs: &'a [Spec],
    refs: &mut [TensorRef<'a>],
) -> Result<()> {
    for ((slot, input), spec) in refs.iter_mut().zip(inputs).zip(specs) {
        *slot = match input {
            Some(tensor) => TensorRef::new(spec, tensor.bytes()?).map_err(refused)?,
            None => TensorRef::forwarded(spec),
        };
    }
    Ok(())
}

/// A kernel's error. [`Code::Unimplemented`] says that there are more axes than kernels serve; the
/// outputs are not made yet then.
#[cold]
pub(crate) fn refused(error: tfp_kernels::base::error::Error) -> Error {
    let code = match error {
        tfp_kernels::base::error::Error::Rank { found, .. } if found > MAX_RANK => {
            Code::Unimplemented
        }
        _ => Code::InvalidArgument,
    };
    Error::new(code, error.to_string())
}
