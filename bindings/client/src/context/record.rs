//! An op that was added or executed, as gradient functions see it.

use std::fmt;
use std::sync::Arc;

use tfp_core::{
    Attr, AttrValue, Bytes, DataType, Error, ErrorKind, FuncRef, Function, OpDesc, Operation,
    Prepared, Result, Shape, Slot, Tensor, Value,
};

use crate::context::any::AnyContext;
use crate::context::kept::{self, Kept};
use crate::context::op_info::OpInfo;
use crate::context::slices::Gradient;
use crate::context::value::AnyValue;

/// Takes the context of the gradients, the op, the gradients of its outputs, and of which inputs one
/// is wanted; returns those of the inputs.
type DynRule = dyn Fn(
        &AnyContext,
        &OpRecord,
        &[Option<Gradient<AnyValue>>],
        &[bool],
    ) -> Result<Vec<Option<Gradient<AnyValue>>>>
    + Send
    + Sync;

/// A gradient function of the user, or of one recorded op.
#[derive(Clone)]
pub(crate) struct SharedRule(pub(crate) Arc<DynRule>);

impl fmt::Debug for SharedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a custom gradient")
    }
}

/// An op with its inputs, outputs and attributes, in a graph or on a tape.
#[derive(Debug)]
pub struct OpRecord {
    pub(crate) op_type: String,
    pub(crate) inputs: Vec<AnyValue>,
    pub(crate) outputs: Vec<AnyValue>,
    pub(crate) attrs: Attrs,
    // The rule of a custom gradient.
    pub(crate) custom: Option<SharedRule>,
}

/// Where the attributes are.
#[derive(Debug)]
pub(crate) enum Attrs {
    Operation(Operation),
    Values(Vec<(&'static str, Attr)>, Brought),
}

/// The functions that a call names.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    functions: Vec<Function>,
    // For the gradient, which calls them once more.
    #[allow(dead_code, reason = "what it holds stays in the library")]
    kept: Vec<Arc<Kept>>,
}

/// Returns an attribute value as an owned one; `None` for one that was left out.
pub(crate) fn owned_attr(
    value: &AttrValue<'_>,
    functions: &mut Vec<Function>,
) -> Result<Option<Attr>> {
    let mut func = |func: &FuncRef<'_>| -> Result<tfp_core::FuncAttr> {
        functions.extend(func.function().cloned());
        let attrs = func
            .attrs()
            .iter()
            .map(|(name, value)| Ok(((*name).to_owned(), tfp_core::wire::attr_proto(value)?)))
            .collect::<Result<_>>()?;
        Ok(tfp_core::FuncAttr {
            name: func.name().to_owned(),
            attrs,
        })
    };
    Ok(Some(match value {
        AttrValue::Default => return Ok(None),
        AttrValue::Int(value) => Attr::Int(*value),
        AttrValue::Float(value) => Attr::Float(*value),
        AttrValue::Bool(value) => Attr::Bool(*value),
        AttrValue::String(value) => Attr::String(value.0.to_vec()),
        AttrValue::Type(value) => Attr::Type(*value),
        AttrValue::Shape(value) => Attr::Shape((*value).clone()),
        AttrValue::Tensor(value) => Attr::Tensor(value.share()?),
        AttrValue::Func(value) => Attr::Func(func(value)?),
        AttrValue::IntList(value) => Attr::IntList(value.to_vec()),
        AttrValue::FloatList(value) => Attr::FloatList(value.to_vec()),
        AttrValue::BoolList(value) => Attr::BoolList(value.to_vec()),
        AttrValue::TextList(value) => {
            Attr::StringList(value.iter().map(|text| text.as_bytes().to_vec()).collect())
        }
        AttrValue::StringList(value) => {
            Attr::StringList(value.iter().map(|bytes| bytes.0.to_vec()).collect())
        }
        AttrValue::TypeList(value) => Attr::TypeList(value.to_vec()),
        AttrValue::ShapeList(value) => Attr::ShapeList(value.to_vec()),
        AttrValue::TensorList(value) => {
            Attr::TensorList(value.iter().map(Tensor::share).collect::<Result<_>>()?)
        }
        AttrValue::FuncList(value) => {
            Attr::FuncList(value.iter().map(func).collect::<Result<_>>()?)
        }
        other => {
            return Err(Error::argument(format!(
                "an attribute of a kind that can't be recorded: {other:?}"
            )));
        }
    }))
}

/// Calls `f` with an owned attribute as a call borrows it.
pub(crate) fn with_borrowed<R>(attr: &Attr, f: impl FnOnce(AttrValue<'_>) -> R) -> R {
    match attr {
        Attr::Int(value) => f(AttrValue::Int(*value)),
        Attr::Float(value) => f(AttrValue::Float(*value)),
        Attr::Bool(value) => f(AttrValue::Bool(*value)),
        Attr::String(value) => f(AttrValue::String(Bytes(value))),
        Attr::Type(value) => f(AttrValue::Type(*value)),
        Attr::Shape(value) => f(AttrValue::Shape(value)),
        Attr::Tensor(value) => f(AttrValue::Tensor(value)),
        Attr::Func(value) => f(AttrValue::Func(FuncRef::named(&value.name))),
        Attr::IntList(value) => f(AttrValue::IntList(value)),
        Attr::FloatList(value) => f(AttrValue::FloatList(value)),
        Attr::BoolList(value) => f(AttrValue::BoolList(value)),
        Attr::StringList(value) => {
            let list: Vec<_> = value.iter().map(|bytes| Bytes(bytes)).collect();
            f(AttrValue::StringList(&list))
        }
        Attr::TypeList(value) => f(AttrValue::TypeList(value)),
        Attr::ShapeList(value) => f(AttrValue::ShapeList(value)),
        Attr::TensorList(value) => f(AttrValue::TensorList(value)),
        Attr::FuncList(value) => {
            let list: Vec<_> = value
                .iter()
                .map(|func| FuncRef::named(&func.name))
                .collect();
            f(AttrValue::FuncList(&list))
        }
        _ => f(AttrValue::Default),
    }
}

impl OpRecord {
    /// Records an operation of a graph.
    pub(crate) fn of_operation(operation: &Operation, inputs: Vec<AnyValue>) -> Self {
        Self {
            op_type: operation.op_type(),
            inputs,
            outputs: operation.outputs().into_iter().map(Into::into).collect(),
            attrs: Attrs::Operation(operation.clone()),
            custom: None,
        }
    }

    /// Returns the attributes of a call.
    pub(crate) fn attrs_of_call<V: Value>(
        desc: &'static OpDesc,
        call: &Prepared<'_, V>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Attrs> {
        let mut functions = Vec::new();
        let mut values = Vec::new();
        let mut given = attrs.iter();
        for (attr, slot) in desc.attrs.iter().zip(call.inferred().iter()) {
            let value = if attr.inferred {
                match slot {
                    Slot::Unset => None,
                    Slot::Int(value) => Some(Attr::Int(*value)),
                    Slot::Type(dtype) => Some(Attr::Type(*dtype)),
                    Slot::Types(types) => Some(Attr::TypeList(types.clone())),
                }
            } else {
                match given.next() {
                    Some(value) => owned_attr(value, &mut functions)?,
                    None => None,
                }
            };
            let name = attr.name.to_str().unwrap_or("?");
            values.extend(value.map(|value| (name, value)));
        }
        let kept = kept::of_attrs(attrs);
        Ok(Attrs::Values(values, Brought { functions, kept }))
    }

    /// Returns the type of op, as `Conv2D`.
    #[must_use]
    pub fn op_type(&self) -> &str {
        &self.op_type
    }

    /// Returns the inputs, those of lists one by one.
    #[must_use]
    pub fn inputs(&self) -> &[AnyValue] {
        &self.inputs
    }

    /// Returns the outputs, those of lists one by one.
    #[must_use]
    pub fn outputs(&self) -> &[AnyValue] {
        &self.outputs
    }

    /// Returns the operation of a graph; `None` for an op on a tape.
    #[must_use]
    pub fn operation(&self) -> Option<&Operation> {
        match &self.attrs {
            Attrs::Operation(operation) => Some(operation),
            Attrs::Values(..) => None,
        }
    }

    /// Returns the functions that the call brought with it.
    pub(crate) fn functions(&self) -> &[Function] {
        match &self.attrs {
            Attrs::Operation(_) => &[],
            Attrs::Values(_, brought) => &brought.functions,
        }
    }

    /// Returns a name for messages.
    pub(crate) fn place(&self) -> String {
        match self.operation() {
            Some(operation) => format!("operation '{}'", operation.name()),
            None => "a tape".to_owned(),
        }
    }

    /// Returns an attribute, with its default where it was left out.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for an attribute that the op does not have.
    pub fn attr(&self, name: &str) -> Result<Attr> {
        match &self.attrs {
            Attrs::Operation(operation) => return operation.attr(name),
            Attrs::Values(values, _) => {
                if let Some((_, attr)) = values.iter().find(|(key, _)| *key == name) {
                    return with_borrowed(attr, |value| owned_attr(&value, &mut Vec::new()))?
                        .ok_or_else(|| self.no_attr(name));
                }
            }
        }
        OpInfo::find(&self.op_type)?
            .default(name)?
            .ok_or_else(|| self.no_attr(name))
    }

    #[cold]
    fn no_attr(&self, name: &str) -> Error {
        Error::new(ErrorKind::NotFound {
            what: "attribute",
            name: name.to_owned(),
            place: self.op_type.clone(),
        })
    }

    #[cold]
    fn wrong_kind(&self, name: &str, expected: &str, found: &Attr) -> Error {
        Error::new(ErrorKind::Attribute {
            op: self.op_type.clone(),
            attr: name.to_owned(),
            problem: format!("expected {expected}, found {found:?}"),
        })
    }

    /// Returns an integer attribute.
    ///
    /// # Errors
    /// As for [`Self::attr`], and [`ErrorKind::Attribute`] for one of another kind.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.attr(name)? {
            Attr::Int(value) => Ok(value),
            other => Err(self.wrong_kind(name, "an integer", &other)),
        }
    }

    /// Returns a float attribute.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn float(&self, name: &str) -> Result<f32> {
        match self.attr(name)? {
            Attr::Float(value) => Ok(value),
            other => Err(self.wrong_kind(name, "a float", &other)),
        }
    }

    /// Returns a truth value.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.attr(name)? {
            Attr::Bool(value) => Ok(value),
            other => Err(self.wrong_kind(name, "a truth value", &other)),
        }
    }

    /// Returns a string attribute as text.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn text(&self, name: &str) -> Result<String> {
        match self.attr(name)? {
            Attr::String(value) => Ok(String::from_utf8_lossy(&value).into_owned()),
            other => Err(self.wrong_kind(name, "a string", &other)),
        }
    }

    /// Returns a list of integers.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        match self.attr(name)? {
            Attr::IntList(value) => Ok(value),
            other => Err(self.wrong_kind(name, "a list of integers", &other)),
        }
    }

    /// Returns a type attribute.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn dtype(&self, name: &str) -> Result<DataType> {
        match self.attr(name)? {
            Attr::Type(value) => Ok(value),
            other => Err(self.wrong_kind(name, "a type", &other)),
        }
    }

    /// Returns a shape attribute.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn shape(&self, name: &str) -> Result<Shape> {
        match self.attr(name)? {
            Attr::Shape(value) => Ok(value),
            other => Err(self.wrong_kind(name, "a shape", &other)),
        }
    }

    /// Returns the name of the function that is an attribute's value.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn function(&self, name: &str) -> Result<String> {
        match self.attr(name)? {
            Attr::Func(value) => Ok(value.name),
            other => Err(self.wrong_kind(name, "a function", &other)),
        }
    }

    /// Returns the names of the functions that are an attribute's value.
    ///
    /// # Errors
    /// As for [`Self::int`].
    pub fn function_list(&self, name: &str) -> Result<Vec<String>> {
        match self.attr(name)? {
            Attr::FuncList(value) => Ok(value.into_iter().map(|func| func.name).collect()),
            other => Err(self.wrong_kind(name, "a list of functions", &other)),
        }
    }
}
