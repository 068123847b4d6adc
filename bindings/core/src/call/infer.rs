//! Attributes from operands: inference, checks, and constants of the right type.

use crate::attr::AttrValue;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::op::{ArgDesc, ArgKind, AttrDefault, AttrDesc, AttrKind, OpDesc, TypeOf, text};
use crate::base::small_vec::SmallVec;
use crate::call::lengths::Lengths;
use crate::call::operand::{Literal, Operand, Value};
use crate::call::slot::{Slot, Slots, SmallVecTypes, allowed_types, bad_attr};
use crate::tensor::Tensor;
use tfp_wire::DataType;

#[cold]
fn bad_input(desc: &OpDesc, input: &ArgDesc, problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::Input {
        op: desc.name_str().to_owned(),
        input: text(input.name).to_owned(),
        problem: problem.into(),
    })
}

/// Names the cause of an error after the input that it is about.
fn at_input(desc: &'static OpDesc, input: &'static ArgDesc) -> impl Fn(Error) -> Error {
    move |error| match error.kind() {
        ErrorKind::Load { .. } | ErrorKind::Status { .. } => error,
        _ => bad_input(desc, input, error.to_string()),
    }
}

/// Returns the type of an operand whose type is certain; `None` for a literal.
fn strong_type<V: Value>(operand: &Operand<'_, V>) -> Option<DataType> {
    match operand {
        Operand::Value(value) => Some(value.dtype().base()),
        Operand::Owned(value) => Some(value.dtype().base()),
        Operand::Tensor(tensor) => Some(tensor.dtype()),
        Operand::Literal(_) => None,
    }
}

/// Pairs each input with the range of its operands.
fn ranges<'d>(
    desc: &'static OpDesc,
    lengths: &'d [u32],
) -> impl Iterator<Item = (&'static ArgDesc, std::ops::Range<usize>)> + 'd {
    let mut next = 0;
    desc.inputs
        .iter()
        .zip(lengths)
        .map(move |(input, &length)| {
            let first = next;
            next += length as usize;
            (input, first..next)
        })
}

/// Determines the attributes that operands determine. `all` loses what it had; it is too long to be moved.
pub(crate) fn infer<V: Value>(
    desc: &'static OpDesc,
    operands: &[Operand<'_, V>],
    lengths: &[u32],
    all: &mut Slots,
) -> Result<()> {
    if lengths.len() != desc.inputs.len() {
        return Err(Error::argument(format!(
            "{} takes {} inputs, {} are given",
            desc.name_str(),
            desc.inputs.len(),
            lengths.len()
        )));
    }
    all.truncate(0);
    all.extend(desc.attrs.iter().map(|_| Slot::Unset));
    let slots = &mut **all;
    let mut literals = false;
    let mut rest = operands;
    for (input, &length) in desc.inputs.iter().zip(lengths) {
        let group;
        (group, rest) = rest.split_at(length as usize);
        match input.kind {
            ArgKind::One(ty) => {
                let [operand] = group else {
                    return Err(bad_input(desc, input, "one tensor is expected, not a list"));
                };
                match strong_type(operand) {
                    Some(dtype) => take_type(desc, input, ty, dtype, slots)?,
                    None => literals = true,
                }
            }
            ArgKind::Many { count, ty } => {
                let length = group.len() as i64;
                match slots[usize::from(count)] {
                    Slot::Int(other) if other != length => {
                        return Err(bad_input(
                            desc,
                            input,
                            format!(
                                "{length} tensors are given; '{}' is {other} by an earlier input",
                                text(desc.attrs[usize::from(count)].name)
                            ),
                        ));
                    }
                    _ => slots[usize::from(count)] = Slot::Int(length),
                }
                for operand in group {
                    match strong_type(operand) {
                        Some(dtype) => take_type(desc, input, ty, dtype, slots)?,
                        None => literals = true,
                    }
                }
            }
            // Literals of such a list have types of their own.
            ArgKind::Types(attr) => type_list(desc, input, attr, group, slots)?,
        }
    }
    if literals {
        weak_types(desc, operands, lengths, slots)?;
    }
    Ok(())
}

/// Takes the type of a value or tensor for the attribute that names it, or checks it.
#[inline]
fn take_type(
    desc: &'static OpDesc,
    input: &'static ArgDesc,
    ty: TypeOf,
    dtype: DataType,
    slots: &mut [Slot],
) -> Result<()> {
    let expected = match ty {
        TypeOf::Fixed(expected) => expected.base(),
        TypeOf::Attr(attr) => match &mut slots[usize::from(attr)] {
            Slot::Type(earlier) => *earlier,
            slot => {
                *slot = Slot::Type(dtype);
                return Ok(());
            }
        },
    };
    if dtype == expected {
        return Ok(());
    }
    Err(wrong_type(desc, input, ty, expected, dtype))
}

#[cold]
fn wrong_type(
    desc: &'static OpDesc,
    input: &'static ArgDesc,
    ty: TypeOf,
    expected: DataType,
    found: DataType,
) -> Error {
    let problem = match ty {
        TypeOf::Fixed(expected) => format!("expected {expected}, found {found}"),
        TypeOf::Attr(attr) => format!(
            "expected {expected}, as '{}' is by an earlier operand, found {found}",
            text(desc.attrs[usize::from(attr)].name)
        ),
    };
    bad_input(desc, input, problem)
}

/// Takes the types of a list; where an earlier list has the same attribute, checks them.
fn type_list<V: Value>(
    desc: &'static OpDesc,
    input: &'static ArgDesc,
    attr: u8,
    group: &[Operand<'_, V>],
    slots: &mut [Slot],
) -> Result<()> {
    let slot = &mut slots[usize::from(attr)];
    if let Slot::Types(earlier) = slot {
        if earlier.len() != group.len() {
            let (found, expected) = (group.len(), earlier.len());
            return Err(bad_input(
                desc,
                input,
                format!("{found} tensors are given, expected {expected} by an earlier input"),
            ));
        }
        for (index, (operand, &expected)) in group.iter().zip(earlier.iter()).enumerate() {
            if let Some(found) = strong_type(operand)
                && found != expected
            {
                return Err(bad_input(
                    desc,
                    input,
                    format!("element {index}: expected {expected}, found {found}"),
                ));
            }
        }
        return Ok(());
    }
    let types: Result<SmallVecTypes> = group
        .iter()
        .map(|operand| match operand {
            Operand::Literal(literal) => literal.dtype(),
            other => Ok(strong_type(other).unwrap_or(DataType::from_number(0))),
        })
        .collect();
    *slot = Slot::Types(types.map_err(at_input(desc, input))?);
    Ok(())
}

/// Chooses the type of each attribute that only literals determine.
fn weak_types<V: Value>(
    desc: &'static OpDesc,
    operands: &[Operand<'_, V>],
    lengths: &[u32],
    slots: &mut [Slot],
) -> Result<()> {
    for (index, attr) in desc.attrs.iter().enumerate() {
        if attr.kind != AttrKind::Type || !attr.inferred || slots[index] != Slot::Unset {
            continue;
        }
        let of_attr = |input: &ArgDesc| {
            let (ArgKind::One(ty) | ArgKind::Many { ty, .. }) = input.kind else {
                return false;
            };
            matches!(ty, TypeOf::Attr(attr) if usize::from(attr) == index)
        };
        let literals: SmallVec<&Literal<'_>, 4> = ranges(desc, lengths)
            .filter(|(input, _)| of_attr(input))
            .flat_map(|(_, range)| &operands[range])
            .filter_map(|operand| match operand {
                Operand::Literal(literal) => Some(literal),
                _ => None,
            })
            .collect();
        if !literals.is_empty() {
            slots[index] = Slot::Type(weak_type(desc, attr, &literals)?);
        }
    }
    Ok(())
}

fn weak_type(desc: &OpDesc, attr: &AttrDesc, literals: &[&Literal<'_>]) -> Result<DataType> {
    let allowed = allowed_types(attr);
    let all_fit = |dtype: DataType| -> Result<bool> {
        for literal in literals {
            if !literal.fits(dtype)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    for literal in literals {
        let own = literal.dtype()?;
        if allowed.contains(own) && all_fit(own)? {
            return Ok(own);
        }
    }
    let default = match attr.default {
        AttrDefault::Type(dtype) => Some(dtype),
        _ => None,
    };
    // Of the allowed types the first in TensorFlow's order: float32 before float64, int32 before int64.
    for dtype in default.into_iter().chain(DataType::ALL.iter().copied()) {
        if allowed.contains(dtype) && all_fit(dtype)? {
            return Ok(dtype);
        }
    }
    let types: Result<Vec<String>> = literals
        .iter()
        .map(|literal| Ok(literal.dtype()?.to_string()))
        .collect();
    Err(bad_attr(
        desc,
        attr,
        format!(
            "no type of {allowed} holds the literals, which are {}",
            types?.join(", ")
        ),
    ))
}

/// Replaces tensors and literals by values, which `constant` makes.
pub(crate) fn make_constants<V>(
    desc: &'static OpDesc,
    operands: &mut [Operand<'_, V>],
    lengths: &[u32],
    slots: &Slots,
    constant: impl Fn(&Tensor) -> Result<V>,
) -> Result<()> {
    for (input, range) in ranges(desc, lengths) {
        for (position, operand) in operands[range].iter_mut().enumerate() {
            let made = match operand {
                Operand::Tensor(tensor) => constant(tensor)?,
                Operand::Literal(literal) => {
                    let dtype = target_type(desc, input, position, slots)?;
                    let fits = literal.fits(dtype).map_err(at_input(desc, input))?;
                    if !fits {
                        let own = literal.dtype()?;
                        return Err(bad_input(
                            desc,
                            input,
                            format!("a literal of {own} with values that {dtype} does not hold"),
                        ));
                    }
                    match literal.as_tensor(dtype) {
                        Some(tensor) => constant(tensor)?,
                        None => {
                            let tensor = literal.to_tensor(dtype).map_err(at_input(desc, input))?;
                            constant(&tensor)?
                        }
                    }
                }
                Operand::Value(_) | Operand::Owned(_) => continue,
            };
            *operand = Operand::Owned(made);
        }
    }
    Ok(())
}

fn target_type(
    desc: &'static OpDesc,
    input: &'static ArgDesc,
    position: usize,
    slots: &Slots,
) -> Result<DataType> {
    let found = match input.kind {
        ArgKind::One(TypeOf::Fixed(dtype))
        | ArgKind::Many {
            ty: TypeOf::Fixed(dtype),
            ..
        } => Some(dtype.base()),
        ArgKind::One(TypeOf::Attr(attr))
        | ArgKind::Many {
            ty: TypeOf::Attr(attr),
            ..
        } => match slots[usize::from(attr)] {
            Slot::Type(dtype) => Some(dtype),
            _ => None,
        },
        ArgKind::Types(attr) => match &slots[usize::from(attr)] {
            Slot::Types(types) => types.get(position).copied(),
            _ => None,
        },
    };
    found.ok_or_else(|| bad_input(desc, input, "nothing determines the type of this literal"))
}

/// Returns the number of tensors of each output.
#[inline]
pub(crate) fn output_lengths(
    desc: &'static OpDesc,
    slots: &Slots,
    attrs: &[AttrValue<'_>],
) -> Result<Lengths> {
    let mut lengths = Lengths::new();
    for output in desc.outputs {
        lengths.push(match output.kind {
            ArgKind::One(_) => 1,
            ArgKind::Many { count: attr, .. } | ArgKind::Types(attr) => {
                list_length(desc, output, usize::from(attr), slots, attrs)?
            }
        });
    }
    Ok(lengths)
}

/// Returns the number of tensors of an output that an attribute determines.
fn list_length(
    desc: &'static OpDesc,
    output: &ArgDesc,
    attr: usize,
    slots: &Slots,
    attrs: &[AttrValue<'_>],
) -> Result<u32> {
    let length =
        attr_length(desc, attr, slots, attrs).and_then(|length| u32::try_from(length).ok());
    length.ok_or_else(|| {
        bad_attr(
            desc,
            &desc.attrs[attr],
            format!(
                "the length of output '{}' does not follow from it",
                text(output.name)
            ),
        )
    })
}

/// Returns the number of tensors that an attribute stands for.
fn attr_length(
    desc: &'static OpDesc,
    index: usize,
    slots: &Slots,
    attrs: &[AttrValue<'_>],
) -> Option<i64> {
    match &slots[index] {
        Slot::Int(length) => return Some(*length),
        Slot::Types(types) => return Some(types.len() as i64),
        Slot::Type(_) | Slot::Unset => {}
    }
    let position = desc.given_attrs().position(|(attr, _)| attr == index);
    match position.and_then(|position| attrs.get(position)) {
        Some(AttrValue::Int(length)) => Some(*length),
        Some(AttrValue::TypeList(types)) => Some(types.len() as i64),
        Some(AttrValue::Placeholder(_)) => None,
        _ => match desc.attrs[index].default {
            AttrDefault::Int(length) => Some(length),
            AttrDefault::Types(types) => Some(types.len() as i64),
            _ => None,
        },
    }
}
