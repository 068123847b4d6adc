//! Lookup tables, in graphs and in eager contexts.

use std::path::{Path, PathBuf};

use tfp_core::{
    Bytes, Context, DataType, Error, ErrorKind, IntoOperand, Operation, Output, Result, Scope,
    Session, Tensor,
};
use tfp_ops as ops;

use crate::context::any::{AnyContext, HOST, Mode};
use crate::context::value::AnyValue;

/// The column of a text file that is a key or value of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The whole line, as a string.
    Line,
    /// The number of the line, from 0, as `INT64`.
    LineNumber,
    /// The column with this number, from 0.
    Number(u32),
}

impl Column {
    fn index(self) -> i64 {
        match self {
            Self::Line => -2,
            Self::LineNumber => -1,
            Self::Number(number) => number.into(),
        }
    }
}

/// A table from keys to values.
///
/// In eager mode it exists as long as a clone of it does; in a graph each session has its own, which
/// [`Self::initialize`] fills. A clone is the same table. It is in host memory, and so are keys and
/// values.
#[derive(Clone, Debug)]
pub struct LookupTable {
    handle: AnyValue,
    name: String,
    keys: DataType,
    default: SharedTensor,
    is_mutable: bool,
    file: Option<std::sync::Arc<TextFile>>,
    initializer: Option<Operation>,
}

/// A tensor that clones share.
type SharedTensor = std::sync::Arc<Tensor>;

/// A text file with the keys and values of a table.
#[derive(Debug)]
pub(crate) struct TextFile {
    pub(crate) path: PathBuf,
    key: Column,
    value: Column,
    delimiter: String,
}

impl TextFile {
    /// Fills a table from the file, which is now at `path`.
    pub(crate) fn fill<'a>(
        &'a self,
        context: &AnyContext,
        handle: &'a AnyValue,
        path: impl IntoOperand<'a, AnyValue>,
    ) -> Result<Option<Operation>> {
        let options = ops::InitializeTableFromTextFileV2Options {
            delimiter: Some(Bytes::new(&self.delimiter)),
            ..Default::default()
        };
        let (key, value) = (self.key.index(), self.value.index());
        ops::initialize_table_from_text_file_v2(context, handle, path, key, value, options)
    }
}

/// What fills a table.
enum Source<'s> {
    Tensors(&'s Tensor, &'s Tensor),
    File(TextFile),
}

impl LookupTable {
    /// Makes a table of keys and their values, which stays as it is.
    ///
    /// `default` is a scalar, the value of keys that are not there.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when keys and values are of different number, [`ErrorKind::DType`] for a
    /// default of another type than the values, and what TensorFlow says.
    pub fn new<C: Mode>(
        context: &C,
        name: &str,
        keys: &Tensor,
        values: &Tensor,
        default: &Tensor,
    ) -> Result<Self> {
        if keys.dims() != values.dims() {
            return Err(Error::new(ErrorKind::Shape {
                what: format!("the values of table '{name}'"),
                expected: format!("shape {}, as the keys", keys.shape()),
                found: values.shape(),
            }));
        }
        if default.dtype() != values.dtype() {
            return Err(Error::new(ErrorKind::DType {
                what: format!("the default of table '{name}'"),
                expected: values.dtype(),
                found: default.dtype(),
            }));
        }
        Self::filled(
            context,
            name,
            keys.dtype(),
            default,
            Source::Tensors(keys, values),
        )
    }

    /// Makes a table of the lines of a text file.
    ///
    /// # Errors
    /// What TensorFlow says, such as for a missing file; in a graph that is when the table is
    /// initialized.
    pub fn from_file<C: Mode>(
        context: &C,
        name: &str,
        file: impl AsRef<Path>,
        (key, key_dtype): (Column, DataType),
        value: Column,
        delimiter: &str,
        default: &Tensor,
    ) -> Result<Self> {
        let source = Source::File(TextFile {
            path: file.as_ref().to_owned(),
            key,
            value,
            delimiter: delimiter.to_owned(),
        });
        Self::filled(context, name, key_dtype, default, source)
    }

    fn filled<C: Mode>(
        context: &C,
        name: &str,
        keys: DataType,
        default: &Tensor,
        source: Source<'_>,
    ) -> Result<Self> {
        let values = default.dtype();
        let any = host(context)?;
        let (handle, name) = match &any {
            AnyContext::Scope(scope) => {
                let name = unique(scope, name);
                let place = scope.graph().scope().named(&name);
                (resource(&place, &name, keys, default, false)?.into(), name)
            }
            any if any.is_eager() => (
                ops::anonymous_hash_table(any, keys, values)?,
                name.to_owned(),
            ),
            _ => return Err(in_function(name)),
        };
        let (initializer, file) = match source {
            Source::Tensors(keys, values) => {
                (ops::initialize_table_v2(&any, &handle, keys, values)?, None)
            }
            Source::File(file) => {
                let path = file.path.to_string_lossy().into_owned();
                let initializer = file.fill(&any, &handle, path)?;
                (initializer, Some(std::sync::Arc::new(file)))
            }
        };
        Ok(Self {
            handle,
            name,
            keys,
            default: std::sync::Arc::new(default.share()?),
            is_mutable: false,
            file,
            initializer,
        })
    }

    /// Makes an empty table that can be changed. `default` is the value of keys that are not there;
    /// its shape, at most of one dimension, is that of every value.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn mutable<C: Mode>(
        context: &C,
        name: &str,
        keys: DataType,
        default: &Tensor,
    ) -> Result<Self> {
        let values = default.dtype();
        let any = host(context)?;
        let shape = default.shape();
        let is_scalar = default.dims().is_empty();
        let (handle, name) = match &any {
            AnyContext::Scope(scope) => {
                let name = unique(scope, name);
                let place = scope.graph().scope().named(&name);
                (resource(&place, &name, keys, default, true)?.into(), name)
            }
            any if any.is_eager() => {
                let handle = if is_scalar {
                    ops::anonymous_mutable_hash_table(any, keys, values)?
                } else {
                    let options = ops::AnonymousMutableHashTableOfTensorsOptions {
                        value_shape: Some(&shape),
                    };
                    ops::anonymous_mutable_hash_table_of_tensors(any, keys, values, options)?
                };
                (handle, name.to_owned())
            }
            _ => return Err(in_function(name)),
        };
        Ok(Self {
            handle,
            name,
            keys,
            default: std::sync::Arc::new(default.share()?),
            is_mutable: true,
            file: None,
            initializer: None,
        })
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the element types of keys and values.
    #[must_use]
    pub fn dtypes(&self) -> (DataType, DataType) {
        (self.keys, self.default.dtype())
    }

    /// Returns the handle, of any mode.
    #[must_use]
    pub fn handle(&self) -> &AnyValue {
        &self.handle
    }

    /// Whether the table can be changed.
    pub(crate) fn is_mutable(&self) -> bool {
        self.is_mutable
    }

    /// Returns the file that fills the table.
    pub(crate) fn file(&self) -> Option<&TextFile> {
        self.file.as_deref()
    }

    /// Adds the table's operation, of a shared name, to another graph.
    pub(crate) fn resource_in(
        &self,
        place: &impl Context<Value = Output>,
        name: &str,
    ) -> Result<Output> {
        resource(place, name, self.keys, &self.default, self.is_mutable)
    }

    /// Returns the keys and values that the table has now: for a table of a graph, in a session.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`], and TensorFlow's status for a table that was not initialized.
    pub(crate) fn contents(&self, session: Option<&Session>) -> Result<(Tensor, Tensor)> {
        let Some(session) = session else {
            let eager = self.own(self.handle.handle())?.context();
            let (keys, values) = self.export(&eager)?;
            return Ok((keys.to_tensor()?, values.to_tensor()?));
        };
        if !self
            .own(self.handle.output())?
            .operation()
            .graph()
            .is_same(session.graph())
        {
            return Err(Error::new(ErrorKind::Foreign {
                what: format!("table '{}' is of another graph than the session", self.name),
            }));
        }
        let (keys, values) = self.export(&session.graph().scope())?;
        let mut found = self.own(session.eval(&[], &[&keys, &values]))?.into_iter();
        match (found.next(), found.next()) {
            (Some(keys), Some(values)) => Ok((keys, values)),
            _ => Err(Error::argument("a session returned no value")),
        }
    }

    /// Fills a table of a session's graph; a table that can be changed begins empty.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for another session, and what TensorFlow says.
    pub fn initialize(&self, session: &Session) -> Result<()> {
        self.own(self.handle.output())?;
        match &self.initializer {
            Some(operation) => self.own(session.run().target(operation).go().map(drop)),
            None => Ok(()),
        }
    }

    fn own<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.kind() {
            ErrorKind::Foreign { what } => Error::new(ErrorKind::Foreign {
                what: format!("table '{}' is used in another place: {what}", self.name),
            }),
            _ => error,
        })
    }

    fn handle_in<C: Mode>(&self, context: &C) -> Result<C::Value> {
        self.own(context.from_any(self.handle.clone()))
    }

    fn keys_for<'a, C: Mode>(
        &self,
        context: &C,
        keys: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Value> {
        let what = format!("keys of table '{}'", self.name);
        keys.into_operand().into_value(context, self.keys, &what)
    }

    /// Returns the values of keys.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] and [`ErrorKind::DType`], which name the table.
    pub fn find<'a, C: Mode>(
        &self,
        context: &C,
        keys: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Value> {
        let (handle, keys) = (self.handle_in(context)?, self.keys_for(context, keys)?);
        self.own(ops::lookup_table_find_v2(
            &*context.at_resource(),
            &handle,
            &keys,
            &*self.default,
        ))
    }

    /// Returns the number of keys.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`].
    pub fn size<C: Mode>(&self, context: &C) -> Result<C::Value> {
        let handle = self.handle_in(context)?;
        self.own(ops::lookup_table_size_v2(&*context.at_resource(), &handle))
    }

    /// Returns all keys, and their values in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`].
    pub fn export<C: Mode>(&self, context: &C) -> Result<(C::Value, C::Value)> {
        let (handle, (keys, values)) = (self.handle_in(context)?, self.dtypes());
        let place = &*context.at_resource();
        let all = self.own(ops::lookup_table_export_v2(place, &handle, keys, values))?;
        Ok((all.keys, all.values))
    }

    fn check_mutable(&self) -> Result<()> {
        match self.is_mutable {
            true => Ok(()),
            false => Err(Error::argument(format!(
                "table '{}' was made to stay as it is: LookupTable::mutable makes one that changes",
                self.name
            ))),
        }
    }

    /// Sets the values of keys.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a table that stays as it is, and as for [`Self::find`].
    pub fn insert<'a, C: Mode>(
        &self,
        context: &C,
        keys: impl IntoOperand<'a, C::Value>,
        values: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Operation> {
        self.check_mutable()?;
        let (handle, keys) = (self.handle_in(context)?, self.keys_for(context, keys)?);
        let what = format!("values of table '{}'", self.name);
        let values = values
            .into_operand()
            .into_value(context, self.default.dtype(), &what)?;
        let place = &*context.at_resource();
        self.own(ops::lookup_table_insert_v2(place, &handle, &keys, &values))
    }

    /// Removes keys; those that are not there are ignored.
    ///
    /// # Errors
    /// As for [`Self::insert`].
    pub fn remove<'a, C: Mode>(
        &self,
        context: &C,
        keys: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Operation> {
        self.check_mutable()?;
        let (handle, keys) = (self.handle_in(context)?, self.keys_for(context, keys)?);
        self.own(ops::lookup_table_remove_v2(
            &*context.at_resource(),
            &handle,
            &keys,
        ))
    }
}

/// Adds the operation of a table to a graph.
fn resource(
    place: &impl Context<Value = Output>,
    name: &str,
    keys: DataType,
    default: &Tensor,
    is_mutable: bool,
) -> Result<Output> {
    let (values, shape) = (default.dtype(), default.shape());
    let shared_name = Some(Bytes::new(name));
    if !is_mutable {
        let options = ops::HashTableV2Options {
            shared_name,
            ..Default::default()
        };
        return ops::hash_table_v2(place, keys, values, options);
    }
    if default.dims().is_empty() {
        let options = ops::MutableHashTableV2Options {
            shared_name,
            ..Default::default()
        };
        return ops::mutable_hash_table_v2(place, keys, values, options);
    }
    let options = ops::MutableHashTableOfTensorsV2Options {
        shared_name,
        value_shape: Some(&shape),
        ..Default::default()
    };
    ops::mutable_hash_table_of_tensors_v2(place, keys, values, options)
}

/// Returns where tables are made: on the host, and in a graph before everything else.
fn host<C: Mode>(context: &C) -> Result<AnyContext> {
    Ok(match context.any().on_device(HOST)? {
        AnyContext::Scope(scope) => AnyContext::Scope(scope.after_nothing()),
        any => any,
    })
}

#[cold]
fn in_function(name: &str) -> Error {
    Error::argument(format!(
        "table '{name}' can't be made inside a function: make it before, and use it there"
    ))
}

/// Returns a name that no operation of the graph has.
fn unique(scope: &Scope, name: &str) -> String {
    let base = format!("{}{name}", scope.prefix());
    let mut unique = base.clone();
    let mut number = 0;
    while scope.graph().operation(&unique).is_ok() {
        number += 1;
        unique = format!("{base}_{number}");
    }
    unique
}
