//! Descriptions of ops that TensorFlow has at run time, custom ones too, and calls by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::attr::AttrValue;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::op::{
    Allowed, ArgDesc, ArgKind, AttrDefault, AttrDesc, AttrKind, OpDesc, TypeOf, text,
};
use crate::call::operand::{IntoOperand, IntoOperands, Value};
use crate::call::results::Results;
use crate::call::{Call, Context};
use crate::graph::Graph;
use tfp_wire::{DataType, TypeSet};
use tfp_wire::{Field, Reader};

impl OpDesc {
    /// Returns the description of a type of op that TensorFlow has, also one of a loaded library.
    ///
    /// Descriptions live until the process ends; each is made once.
    ///
    /// # Errors
    /// TensorFlow's status when there is no such op.
    pub fn find(name: &str) -> Result<&'static Self> {
        static FOUND: Mutex<Option<HashMap<String, &'static OpDesc>>> = Mutex::new(None);
        static GRAPH: OnceLock<Result<Graph>> = OnceLock::new();
        let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desc) = known().as_ref().and_then(|found| found.get(name)) {
            return Ok(desc);
        }
        let graph = GRAPH
            .get_or_init(Graph::new)
            .as_ref()
            .map_err(Clone::clone)?;
        let definition = graph.op_def(name)?;
        // Read under the lock: of two threads that ask at once, only one keeps what it made for good.
        let mut known = known();
        match known.get_or_insert_default().entry(name.to_owned()) {
            Entry::Occupied(found) => Ok(*found.get()),
            Entry::Vacant(place) => Ok(*place.insert(Box::leak(Box::new(parse(&definition)?)))),
        }
    }
}

fn leak_name(bytes: &[u8]) -> Result<&'static CStr> {
    let name = CString::new(bytes)?;
    Ok(Box::leak(name.into_boxed_c_str()))
}

fn bad(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::Proto {
        message: "OpDef",
        problem: problem.into(),
    })
}

/// Reads an `OpDef`.
fn parse(bytes: &[u8]) -> Result<OpDesc> {
    let mut name = c"";
    let (mut inputs, mut outputs, mut attrs) = (Vec::new(), Vec::new(), Vec::new());
    for field in Reader::new("OpDef", bytes) {
        match field? {
            (1, field) => name = leak_name(field.bytes()?)?,
            (2, field) => inputs.push(field.bytes()?),
            (3, field) => outputs.push(field.bytes()?),
            (4, field) => attrs.push(parse_attr(field.bytes()?)?),
            _ => {}
        }
    }
    let args = |list: Vec<&[u8]>| -> Result<Vec<ArgDesc>> {
        list.into_iter()
            .map(|bytes| parse_arg(bytes, &attrs))
            .collect()
    };
    let (inputs, outputs) = (args(inputs)?, args(outputs)?);
    for input in &inputs {
        let mut infer = |index: u8| attrs[usize::from(index)].inferred = true;
        match input.kind {
            ArgKind::One(TypeOf::Attr(ty)) => infer(ty),
            ArgKind::One(TypeOf::Fixed(_)) => {}
            ArgKind::Many { count, ty } => {
                infer(count);
                if let TypeOf::Attr(ty) = ty {
                    infer(ty);
                }
            }
            ArgKind::Types(types) => infer(types),
        }
    }
    Ok(OpDesc {
        name,
        inputs: inputs.leak(),
        outputs: outputs.leak(),
        attrs: attrs.leak(),
    })
}

fn parse_arg(bytes: &[u8], attrs: &[AttrDesc]) -> Result<ArgDesc> {
    let index = |field: Field<'_>| -> Result<u8> {
        let name = field.bytes()?;
        let found = attrs.iter().position(|attr| attr.name.to_bytes() == name);
        found
            .and_then(|index| u8::try_from(index).ok())
            .ok_or_else(|| {
                bad(format!(
                    "an argument names no attribute: {:?}",
                    String::from_utf8_lossy(name)
                ))
            })
    };
    let mut name = c"";
    let (mut ty, mut count, mut types, mut is_ref) = (None, None, None, false);
    for field in Reader::new("OpDef.ArgDef", bytes) {
        match field? {
            (1, field) => name = leak_name(field.bytes()?)?,
            (3, field) if field.int()? != 0 => {
                ty = Some(TypeOf::Fixed(DataType::from_number(field.int()? as u32)));
            }
            (4, field) if !field.bytes()?.is_empty() => ty = Some(TypeOf::Attr(index(field)?)),
            (5, field) if !field.bytes()?.is_empty() => count = Some(index(field)?),
            (6, field) if !field.bytes()?.is_empty() => types = Some(index(field)?),
            (16, field) => is_ref = field.int()? != 0,
            _ => {}
        }
    }
    let kind = match (types, count, ty) {
        (Some(types), _, _) => ArgKind::Types(types),
        (None, Some(count), Some(ty)) => ArgKind::Many { count, ty },
        (None, None, Some(ty)) => ArgKind::One(ty),
        _ => return Err(bad(format!("argument '{}' has no type", text(name)))),
    };
    Ok(ArgDesc { name, kind, is_ref })
}

fn parse_attr(bytes: &[u8]) -> Result<AttrDesc> {
    let mut attr = AttrDesc::new(c"", AttrKind::Int);
    let (mut default, mut allowed, mut minimum) = (None, None, None);
    let mut has_minimum = false;
    for field in Reader::new("OpDef.AttrDef", bytes) {
        match field? {
            (1, field) => attr.name = leak_name(field.bytes()?)?,
            (2, field) => attr.kind = attr_kind(field.text()?)?,
            (3, field) => default = Some(field.bytes()?),
            (5, field) => has_minimum = field.int()? != 0,
            (6, field) => minimum = Some(field.int()?),
            (7, field) => allowed = Some(field.bytes()?),
            _ => {}
        }
    }
    if has_minimum {
        attr.minimum = minimum.unwrap_or(0);
    }
    if let Some(bytes) = default {
        attr.default = parse_default(attr.kind, bytes)?;
    }
    if let Some(bytes) = allowed {
        attr.allowed = parse_allowed(bytes)?;
    }
    Ok(attr)
}

fn attr_kind(name: &str) -> Result<AttrKind> {
    Ok(match name {
        "int" => AttrKind::Int,
        "float" => AttrKind::Float,
        "bool" => AttrKind::Bool,
        "string" => AttrKind::String,
        "type" => AttrKind::Type,
        "shape" => AttrKind::Shape,
        "tensor" => AttrKind::Tensor,
        "func" => AttrKind::Func,
        "list(int)" => AttrKind::IntList,
        "list(float)" => AttrKind::FloatList,
        "list(bool)" => AttrKind::BoolList,
        "list(string)" => AttrKind::StringList,
        "list(type)" => AttrKind::TypeList,
        "list(shape)" => AttrKind::ShapeList,
        "list(tensor)" => AttrKind::TensorList,
        "list(func)" => AttrKind::FuncList,
        _ => return Err(bad(format!("an attribute has the unknown kind {name:?}"))),
    })
}

fn parse_default(kind: AttrKind, bytes: &[u8]) -> Result<AttrDefault> {
    let mut types = Vec::new();
    let mut single = 0;
    for field in Reader::new("AttrValue", bytes) {
        match field? {
            (3 | 6, field) => single = field.int()?,
            (1, list) => {
                for field in Reader::new("AttrValue.ListValue", list.bytes()?) {
                    if let (6, field) = field? {
                        field.ints(&mut types)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(match kind {
        AttrKind::Int => AttrDefault::Int(single),
        AttrKind::Type => AttrDefault::Type(DataType::from_number(single as u32)),
        AttrKind::TypeList => {
            let types: Vec<_> = types
                .into_iter()
                .map(|number| DataType::from_number(number as u32))
                .collect();
            AttrDefault::Types(types.leak())
        }
        _ => AttrDefault::Other,
    })
}

fn parse_allowed(bytes: &[u8]) -> Result<Allowed> {
    let (mut types, mut strings) = (Vec::new(), Vec::new());
    for field in Reader::new("AttrValue", bytes) {
        if let (1, list) = field? {
            for field in Reader::new("AttrValue.ListValue", list.bytes()?) {
                match field? {
                    (6, field) => field.ints(&mut types)?,
                    (2, field) => strings.push(&*field.text()?.to_owned().leak()),
                    _ => {}
                }
            }
        }
    }
    if !strings.is_empty() {
        return Ok(Allowed::Strings(strings.leak()));
    }
    if types.iter().any(|&number| !(0..64).contains(&number)) {
        return Err(bad(
            "an attribute allows a type whose number is not that of a base type",
        ));
    }
    let types: Vec<_> = types
        .into_iter()
        .map(|number| DataType::from_number(number as u32))
        .collect();
    Ok(if types.is_empty() {
        Allowed::Any
    } else {
        Allowed::Types(TypeSet::of(&types))
    })
}

/// A call of an op by its name, for ops that have no generated function.
pub struct OpBuilder<'a, V> {
    call: Call<'a, V>,
    attrs: Vec<AttrValue<'a>>,
}

impl<'a, V: Value> OpBuilder<'a, V> {
    /// Begins a call of a type of op.
    ///
    /// # Errors
    /// TensorFlow's status when there is no such op.
    pub fn new(op_type: &str) -> Result<Self> {
        let desc = OpDesc::find(op_type)?;
        let attrs = desc.given_attrs().map(|_| AttrValue::Default).collect();
        Ok(Self {
            call: Call::new(desc),
            attrs,
        })
    }

    /// Appends the operand of a single input.
    #[must_use]
    pub fn input(mut self, operand: impl IntoOperand<'a, V>) -> Self {
        self.call.input(operand);
        self
    }

    /// Appends the operands of a list input.
    #[must_use]
    pub fn list(mut self, operands: impl IntoOperands<'a, V>) -> Self {
        self.call.list(operands);
        self
    }

    /// Gives an attribute.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for one that the op does not have, or that inputs determine.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue<'a>>) -> Result<Self> {
        let desc = self.call.desc();
        let given = || desc.given_attrs().map(|(_, attr)| text(attr.name));
        match given().position(|attr| attr == name) {
            Some(position) => self.attrs[position] = value.into(),
            None => {
                let names: Vec<_> = given().collect();
                return Err(Error::not_found(
                    "attribute",
                    name,
                    format!(
                        "{}, which can be given: {}",
                        desc.name_str(),
                        names.join(", ")
                    ),
                ));
            }
        }
        Ok(self)
    }

    /// Adds or executes the op.
    ///
    /// # Errors
    /// As for [`Context::execute`].
    pub fn execute<C: Context<Value = V> + ?Sized>(
        mut self,
        context: &C,
    ) -> Result<Results<V, C::Operation>> {
        context.execute(&mut self.call, &self.attrs)
    }

    /// Adds or executes the op, whose only or first output is a single tensor.
    ///
    /// # Errors
    /// As for [`Context::execute`].
    pub fn one<C: Context<Value = V> + ?Sized>(self, context: &C) -> Result<V> {
        self.execute(context)?.one()
    }
}
