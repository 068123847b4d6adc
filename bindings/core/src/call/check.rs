//! Checks of attributes against the op's description, before TensorFlow sees them.

use crate::attr::AttrValue;
use crate::base::error::{Error, Result};
use crate::base::op::{Allowed, ArgKind, AttrDefault, AttrDesc, AttrKind, OpDesc, TypeOf, text};
use crate::base::shape::{MAX_RANK, Shape};
use crate::call::slot::{Slot, Slots, allowed_types, bad_attr};
use tfp_wire::{DataType, TypeSet};

/// Checks inferred and given attributes against the op's description.
pub(crate) fn check_attrs(
    desc: &'static OpDesc,
    slots: &Slots,
    attrs: &[AttrValue<'_>],
) -> Result<()> {
    let mut given = attrs.iter();
    for (attr, slot) in desc.attrs.iter().zip(slots.iter()) {
        if attr.inferred {
            check_inferred(desc, attr, slot)?;
            continue;
        }
        let Some(value) = given.next() else {
            return Err(wrong_count(desc, attrs.len()));
        };
        check_given(desc, attr, value)?;
    }
    if given.next().is_some() {
        return Err(wrong_count(desc, attrs.len()));
    }
    Ok(())
}

#[cold]
fn wrong_count(desc: &'static OpDesc, found: usize) -> Error {
    Error::argument(format!(
        "{} takes {} attributes, {found} values are given",
        desc.name_str(),
        desc.given_attrs().count()
    ))
}

fn check_inferred(desc: &'static OpDesc, attr: &'static AttrDesc, slot: &Slot) -> Result<()> {
    let allowed = allowed_types(attr);
    match slot {
        Slot::Unset if attr.default == AttrDefault::Required => Err(bad_attr(
            desc,
            attr,
            "nothing determines it: every list that would is empty",
        )),
        Slot::Unset => Ok(()),
        Slot::Int(length) => check_minimum(desc, attr, *length, "tensors are given"),
        Slot::Type(dtype) if allowed.contains(*dtype) => Ok(()),
        Slot::Type(dtype) => Err(bad_type(desc, attr, *dtype, allowed)),
        Slot::Types(types) => {
            check_minimum(desc, attr, types.len() as i64, "tensors are given")?;
            match types.iter().find(|&&dtype| !allowed.contains(dtype)) {
                Some(dtype) => Err(bad_type(desc, attr, *dtype, allowed)),
                None => Ok(()),
            }
        }
    }
}

#[cold]
fn bad_type(desc: &OpDesc, attr: &AttrDesc, dtype: DataType, allowed: TypeSet) -> Error {
    bad_attr(
        desc,
        attr,
        format!("{dtype} is not allowed; allowed are {allowed}"),
    )
}

fn check_minimum(desc: &OpDesc, attr: &AttrDesc, value: i64, what: &str) -> Result<()> {
    if value >= attr.minimum {
        return Ok(());
    }
    Err(bad_attr(
        desc,
        attr,
        format!("{value} {what}, the minimum is {}", attr.minimum),
    ))
}

fn check_given(desc: &OpDesc, attr: &AttrDesc, value: &AttrValue<'_>) -> Result<()> {
    let allowed = allowed_types(attr);
    let length = |length: usize| check_minimum(desc, attr, length as i64, "elements are given");
    match (attr.kind, value) {
        (_, AttrValue::Default) => {
            if attr.default == AttrDefault::Required {
                return Err(bad_attr(desc, attr, "a value is required"));
            }
            Ok(())
        }
        (_, AttrValue::Placeholder(_)) => check_placeholder(desc, attr),
        (AttrKind::Int, AttrValue::Int(value)) => check_minimum(desc, attr, *value, "is given"),
        (AttrKind::Float, AttrValue::Float(_))
        | (AttrKind::Bool, AttrValue::Bool(_))
        | (AttrKind::Tensor, AttrValue::Tensor(_))
        | (AttrKind::Func, AttrValue::Func(_)) => Ok(()),
        (AttrKind::String, AttrValue::String(bytes)) => check_string(desc, attr, bytes.0),
        (AttrKind::Type, AttrValue::Type(dtype)) => {
            if !allowed.contains(*dtype) {
                return Err(bad_type(desc, attr, *dtype, allowed));
            }
            Ok(())
        }
        (AttrKind::IntList, AttrValue::IntList(list)) => length(list.len()),
        (AttrKind::FloatList, AttrValue::FloatList(list)) => length(list.len()),
        (AttrKind::BoolList, AttrValue::BoolList(list)) => length(list.len()),
        (AttrKind::Shape, AttrValue::Shape(shape)) => check_shape(desc, attr, shape),
        (AttrKind::ShapeList, AttrValue::ShapeList(list)) => {
            length(list.len())?;
            list.iter()
                .try_for_each(|shape| check_shape(desc, attr, shape))
        }
        (AttrKind::TensorList, AttrValue::TensorList(list)) => length(list.len()),
        (AttrKind::FuncList, AttrValue::FuncList(list)) => length(list.len()),
        (AttrKind::StringList, AttrValue::TextList(list)) => {
            length(list.len())?;
            list.iter()
                .try_for_each(|text| check_string(desc, attr, text.as_bytes()))
        }
        (AttrKind::StringList, AttrValue::StringList(list)) => {
            length(list.len())?;
            list.iter()
                .try_for_each(|bytes| check_string(desc, attr, bytes.0))
        }
        (AttrKind::TypeList, AttrValue::TypeList(list)) => {
            length(list.len())?;
            match list.iter().find(|&&dtype| !allowed.contains(dtype)) {
                Some(dtype) => Err(bad_type(desc, attr, *dtype, allowed)),
                None => Ok(()),
            }
        }
        (kind, other) => Err(bad_attr(
            desc,
            attr,
            format!("expected a value of kind {kind:?}, found {other:?}"),
        )),
    }
}

/// Refuses a value that is not known yet where types or numbers of outputs follow from it. What it may
/// be is checked where the function is called.
#[cold]
fn check_placeholder(desc: &OpDesc, attr: &AttrDesc) -> Result<()> {
    let is_it = |index: u8| std::ptr::eq(&raw const desc.attrs[usize::from(index)], attr);
    let has_it = |ty: TypeOf| matches!(ty, TypeOf::Attr(index) if is_it(index));
    let mut outputs = desc.outputs.iter();
    let dependent = outputs.find(|output| match output.kind {
        ArgKind::One(ty) => has_it(ty),
        ArgKind::Many { count, ty } => is_it(count) || has_it(ty),
        ArgKind::Types(index) => is_it(index),
    });
    match dependent {
        None => Ok(()),
        Some(output) => Err(bad_attr(
            desc,
            attr,
            format!(
                "a placeholder is given, but output '{}' follows from it",
                text(output.name)
            ),
        )),
    }
}

fn check_shape(desc: &OpDesc, attr: &AttrDesc, shape: &Shape) -> Result<()> {
    if shape.can_be_held() {
        return Ok(());
    }
    let problem = match shape.rank() {
        Some(rank) if rank > MAX_RANK => format!("{rank} dimensions; TensorFlow allows {MAX_RANK}"),
        _ => format!("shape {shape} has more elements than fit 63 bits"),
    };
    Err(bad_attr(desc, attr, problem))
}

fn check_string(desc: &OpDesc, attr: &AttrDesc, value: &[u8]) -> Result<()> {
    let Allowed::Strings(allowed) = attr.allowed else {
        return Ok(());
    };
    if allowed.iter().any(|text| text.as_bytes() == value) {
        return Ok(());
    }
    Err(bad_attr(
        desc,
        attr,
        format!(
            "{:?} is not allowed; allowed are {}",
            String::from_utf8_lossy(value),
            allowed.join(", ")
        ),
    ))
}
