//! Reading variables, and lists of tensors.

use tfp_core::{DataType, Result};
use tfp_ops::*;

use super::array::leading;
use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::elements_from;

/// The type of the elements of the list whose gradient is asked for.
fn element_type(c: &Backward<'_>) -> Result<DataType> {
    c.op.dtype("element_dtype")
}

/// The gradient of an output that is a list; a list of zeros where there is none.
fn list_grad(c: &Backward<'_>, output: usize) -> Result<AnyValue> {
    c.grad(output)
}

fn push_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let element = c.input(1);
    let shape = c.cx.shape_of(element)?;
    let popped = tensor_list_pop_back(c.cx, list_grad(c, 0)?, shape, element_type(c)?)?;
    Ok(vec![
        Some(popped.output_handle.into()),
        Some(popped.tensor.into()),
    ])
}

fn pop_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let list = match c.grad_or_none(0)? {
        Some(list) => list,
        None => zeros_like(c.cx, c.output(0))?,
    };
    let element = c.grad(1)?;
    Ok(vec![
        Some(tensor_list_push_back(c.cx, list, element)?.into()),
        None,
    ])
}

fn set_item_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (index, item, grad) = (c.input(1), c.input(2), list_grad(c, 0)?);
    let zeros = zeros_like(c.cx, item)?;
    let rest = tensor_list_set_item(
        c.cx,
        &grad,
        index,
        zeros,
        TensorListSetItemOptions::default(),
    )?;
    let shape = c.cx.shape_of(item)?;
    let element = tensor_list_get_item(c.cx, &grad, index, shape, element_type(c)?)?;
    Ok(vec![Some(rest.into()), None, Some(element.into())])
}

fn get_item_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (list, index) = (c.input(0), c.input(1));
    let empty = zeros_like(c.cx, list)?;
    let grad = tensor_list_set_item(
        c.cx,
        empty,
        index,
        &c.grad(0)?,
        TensorListSetItemOptions::default(),
    );
    leading(c, grad)
}

fn stack_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let element_shape = tensor_list_element_shape(c.cx, c.input(0), DataType::INT32)?;
    leading(c, tensor_list_from_tensor(c.cx, &c.grad(0)?, element_shape))
}

fn from_tensor_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let size = c.cx.shape_of(x)?;
    let inner = elements_from(c.cx, &size, 1)?;
    let stacked = tensor_list_stack(
        c.cx,
        list_grad(c, 0)?,
        inner,
        element_type(c)?,
        TensorListStackOptions::default(),
    );
    leading(c, stacked)
}

fn resize_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let length = tensor_list_length(c.cx, c.input(0))?;
    leading(c, tensor_list_resize(c.cx, list_grad(c, 0)?, length))
}

fn gather_list_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (list, indices) = (c.input(0), c.input(1));
    let element_shape = tensor_list_element_shape(c.cx, list, DataType::INT32)?;
    let length = tensor_list_length(c.cx, list)?;
    leading(
        c,
        tensor_list_scatter_v2(c.cx, &c.grad(0)?, indices, element_shape, length),
    )
}

fn scatter_list_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let size = c.cx.shape_of(x)?;
    let inner = elements_from(c.cx, &size, 1)?;
    leading(
        c,
        tensor_list_gather(c.cx, list_grad(c, 0)?, c.input(1), inner, element_type(c)?),
    )
}

fn scatter_into_list_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, indices) = (c.input(1), c.input(2));
    let inner = elements_from(c.cx, &c.cx.shape_of(x)?, 1)?;
    let grad = list_grad(c, 0)?;
    let of_x = tensor_list_gather(c.cx, &grad, indices, inner, x.dtype())?;
    // What the elements replaced has no part in the result.
    let nothing = zeros_like(c.cx, x)?;
    let of_list = tensor_list_scatter_into_existing_list(c.cx, grad, nothing, indices)?;
    Ok(vec![Some(of_list.into()), Some(of_x.into()), None])
}

fn concat_list_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let element_shape = tensor_list_element_shape(c.cx, c.input(0), DataType::INT32)?;
    leading(
        c,
        tensor_list_split(c.cx, &c.grad(0)?, element_shape, c.output(1)),
    )
}

fn split_list_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let size = c.cx.shape_of(x)?;
    let inner = elements_from(c.cx, &size, 1)?;
    let element_shape = concat_v2(c.cx, (c.cx.ints(&[-1])?, inner), 0)?;
    let joined = tensor_list_concat_v2(
        c.cx,
        list_grad(c, 0)?,
        element_shape,
        c.input(2),
        element_type(c)?,
    )?;
    leading(c, Ok(joined.tensor))
}

pub(super) static RULES: Rules = &[
    ("ReadVariableOp", |c| Ok(vec![c.raw_grad(0).cloned()])),
    ("TensorListPushBack", push_grad),
    ("TensorListPopBack", pop_grad),
    ("TensorListSetItem", set_item_grad),
    ("TensorListGetItem", get_item_grad),
    ("TensorListStack", stack_grad),
    ("TensorListFromTensor", from_tensor_grad),
    ("TensorListResize", resize_grad),
    ("TensorListGather", gather_list_grad),
    ("TensorListScatter", scatter_list_grad),
    ("TensorListScatterV2", scatter_list_grad),
    ("TensorListScatterIntoExistingList", scatter_into_list_grad),
    ("TensorListConcat", concat_list_grad),
    ("TensorListConcatV2", concat_list_grad),
    ("TensorListSplit", split_list_grad),
];
