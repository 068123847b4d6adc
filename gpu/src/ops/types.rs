//! Elements of another type, and indices as rows with one element that differs.

use tfp_kernels::base::dtype::DType;

use crate::request::Request;
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, numbers, spread};

/// The shader's number of a type of elements.
pub fn code(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F32 => Some(0),
        DType::I32 => Some(1),
        DType::I64 => Some(2),
        DType::Bool | DType::U8 => Some(3),
        _ => None,
    }
}

/// `Cast` between float32, int32, int64 and bytes.
pub fn cast(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let elements = output.elements();
    // A byte that is a number is a target of nobody's.
    let known = output.dtype != DType::U8 && input.dtype != output.dtype;
    if !known || elements >= 1 << 30 {
        return None;
    }
    let dispatch = Dispatch {
        shader: Shader::Cast,
        constants: vec![code(input.dtype)?, code(output.dtype)?],
        words: numbers(&[elements])?,
        buffers: vec![input.region(), output.region()],
        groups: spread(elements.div_ceil(1024))?,
    };
    Some(Plan::one(dispatch, elements as u64))
}

/// `OneHot` with elements of 4 bytes.
pub fn one_hot(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [indices, _, on, off] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let step = match indices.dtype {
        DType::I32 => 1,
        DType::I64 => 2,
        _ => return None,
    };
    let axis = request.attrs.int("axis").ok()?;
    let axis = usize::try_from(axis).unwrap_or(indices.shape.len());
    let (&depth, inner) = (
        output.shape.get(axis)?,
        indices.shape.get(axis..)?.iter().product::<usize>(),
    );
    let elements = output.elements();
    let numbers_of_one = on.elements() == 1 && off.elements() == 1;
    if output.dtype.size() != 4 || !numbers_of_one || elements >= 1 << 30 {
        return None;
    }
    let buffers = [indices, on, off, output].map(|each| each.region());
    let dispatch = Dispatch {
        shader: Shader::OneHot,
        constants: Vec::new(),
        words: numbers(&[elements, depth, inner, step])?,
        buffers: buffers.to_vec(),
        groups: spread(elements.div_ceil(256))?,
    };
    Some(Plan::one(dispatch, elements as u64))
}
