//! Scopes: where and how operations are added to a graph.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

use tfp_sys::{TF_OperationDescription, TF_Output};

use crate::attr::set::set_in_graph;
use crate::attr::sharing::Sharing;
use crate::attr::{AttrValue, Bytes};
use crate::base::api::{Status, c_string};
use crate::base::error::{Error, Result};
use crate::base::names::NameBuf;
use crate::base::op::{ArgDesc, AttrDefault, AttrDesc, AttrKind, OpDesc, TypeOf};
use crate::base::place;
use crate::base::small_vec::SmallVec;
use crate::call::results::{Prepared, Results};
use crate::call::{Call, Context};
use crate::graph::operation::{Operation, Output, count_of};
use crate::graph::{Graph, in_place};
use crate::tensor::Tensor;
use tfp_wire::DataType;

/// A place in a graph to which operations are added: a name prefix, a device, control inputs.
///
/// Scopes are values: each method returns a changed copy and leaves the graph as it is.
#[derive(Clone, Debug)]
pub struct Scope {
    graph: Graph,
    settings: Arc<Settings>,
}

#[derive(Clone, Debug, Default)]
struct Settings {
    // Ends in a slash unless it is empty.
    prefix: String,
    name: Option<String>,
    device: Option<CString>,
    control_inputs: Vec<Operation>,
    colocate_with: Vec<Operation>,
    // Attributes that every op may have; their names start with an underscore.
    attrs: Vec<(CString, Vec<u8>)>,
}

impl Scope {
    pub(crate) fn root(graph: &Graph) -> Self {
        Self {
            graph: graph.clone(),
            settings: Arc::default(),
        }
    }

    fn with(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::clone(&self.settings);
        change(&mut settings);
        Self {
            graph: self.graph.clone(),
            settings: Arc::new(settings),
        }
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns a scope below this one. A number makes its name unique.
    #[must_use]
    pub fn sub_scope(&self, name: &str) -> Self {
        let unique = self
            .graph
            .unique_scope(&format!("{}{name}", self.settings.prefix));
        self.with(|settings| {
            settings.prefix = unique + "/";
            settings.name = None;
        })
    }

    /// Returns a scope that gives its operations a name, instead of their type of op. A number makes
    /// it unique.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        self.with(|settings| settings.name = Some(name.to_owned()))
    }

    /// Returns a scope that asks for a device, as `/device:CPU:0`; an empty name asks for none.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for what is not the name of a device.
    pub fn on_device(&self, device: &str) -> Result<Self> {
        let device = if device.is_empty() {
            None
        } else {
            place::check_name(device)?;
            Some(c_string(device)?)
        };
        Ok(self.with(|settings| settings.device = device))
    }

    /// Returns the device that is asked for.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        let device = self.settings.device.as_ref()?;
        device.to_str().ok()
    }

    /// Returns a scope whose operations run after these, and after those of this scope.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for an operation of another graph.
    pub fn after(&self, operations: &[Operation]) -> Result<Self> {
        operations
            .iter()
            .try_for_each(|operation| self.graph.check_operation(operation))?;
        Ok(self.with(|settings| settings.control_inputs.extend_from_slice(operations)))
    }

    /// Returns a scope without control inputs.
    #[must_use]
    pub fn after_nothing(&self) -> Self {
        self.with(|settings| settings.control_inputs.clear())
    }

    /// Returns a scope whose operations run on the device of these.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for an operation of another graph.
    pub fn colocated_with(&self, operations: &[Operation]) -> Result<Self> {
        operations
            .iter()
            .try_for_each(|operation| self.graph.check_operation(operation))?;
        Ok(self.with(|settings| settings.colocate_with.extend_from_slice(operations)))
    }

    /// Returns a scope that gives its operations a string attribute, whose name starts with an underscore.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for another name.
    pub fn with_attr(&self, name: &str, value: impl AsRef<[u8]>) -> Result<Self> {
        if !name.starts_with('_') {
            return Err(Error::argument(format!(
                "the attribute of a scope is {name:?}; only names with a leading underscore fit any op"
            )));
        }
        Ok(self.with_hidden_attr(c_string(name)?, value.as_ref()))
    }

    fn with_hidden_attr(&self, name: CString, value: &[u8]) -> Self {
        self.with(|settings| settings.attrs.push((name, value.to_vec())))
    }

    /// Returns a scope whose operations use the kernels with a label.
    #[must_use]
    pub fn with_kernel_label(&self, label: &str) -> Self {
        self.with_hidden_attr(c"_kernel".to_owned(), label.as_bytes())
    }

    /// Returns a scope whose operations are compiled together by XLA.
    #[must_use]
    pub fn with_xla_cluster(&self, cluster: &str) -> Self {
        self.with_hidden_attr(c"_XlaCluster".to_owned(), cluster.as_bytes())
    }

    /// Returns the name prefix, which ends in a slash unless it is empty.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.settings.prefix
    }

    fn add(
        &self,
        call: &Prepared<'_, Output>,
        attrs: &[AttrValue<'_>],
        desc: &'static OpDesc,
    ) -> Result<Operation> {
        for value in call.values() {
            self.graph.check_own(value)?;
        }
        for attr in attrs {
            attr.functions(&mut |function| self.graph.add_function(function))?;
        }
        let graph = &*self.graph.inner;
        if desc.outputs.iter().any(|output| output.is_ref) {
            graph.shares(Sharing::Results);
        }
        let api = graph.api;
        let status = Status::new(api)?;
        let mut name = NameBuf::new();
        name.extend_from_slice(self.settings.prefix.as_bytes());
        let base = self
            .settings
            .name
            .as_deref()
            .map_or(desc.name.to_bytes(), str::as_bytes);
        name.extend_from_slice(base);
        if !is_valid_name(&name) {
            return Err(Error::argument(format!(
                "{:?} can't name an operation of type {}: expected a letter, digit or '.', then \
                 letters, digits and any of _ . / \\ > -",
                String::from_utf8_lossy(&name),
                desc.name_str()
            )));
        }
        let mut names = graph.lock();
        // SAFETY: the graph is alive; both names are C strings. The description is used by this thread
        // alone until it is finished. Then it is whole, or made invalid.
        let (described, operation) = graph.fence.call(|| unsafe {
            names.unique(&mut name, |name| graph.has(name));
            let (c, name) = (&api.c_api, name.as_ptr().cast());
            let description = c.TF_NewOperation(graph.as_ptr(), desc.name.as_ptr(), name);
            let described = self.describe(description, call, attrs, desc, &status);
            if described.is_err() {
                // An attribute that no op has makes the next function refuse the operation.
                c.TF_SetAttrInt(description, c"tfp.abandoned".as_ptr(), 1);
            }
            (
                described,
                c.TF_FinishOperation(description, status.as_ptr()),
            )
        })?;
        drop(names);
        described?;
        status.check()?;
        match NonNull::new(operation) {
            // SAFETY: the operation was just added to the graph.
            Some(raw) => Ok(unsafe { Operation::from_borrowed_ptr(&self.graph.inner, raw) }),
            None => Err(Error::internal("TF_FinishOperation returned null")),
        }
    }

    /// Adds everything to a new description. What a function throws passes this.
    ///
    /// # Safety
    /// `description` is an operation of this graph that is being made by this thread.
    unsafe fn describe(
        &self,
        description: *mut TF_OperationDescription,
        call: &Prepared<'_, Output>,
        attrs: &[AttrValue<'_>],
        desc: &'static OpDesc,
        status: &Status,
    ) -> Result<()> {
        let api = self.graph.inner.api;
        let c = &api.c_api;
        let settings = &*self.settings;
        // SAFETY: the description is being made; all operations are of its graph, and names and
        // values are alive.
        unsafe {
            for (is_list, operands) in call.inputs() {
                let mut values = operands.iter().filter_map(|operand| operand.value());
                if !is_list {
                    if let Some(value) = values.next() {
                        c.TF_AddInput(description, value.raw());
                    }
                    continue;
                }
                let list: SmallVec<TF_Output, 8> = values.map(Output::raw).collect();
                c.TF_AddInputList(description, list.as_ptr(), count_of(&list)?);
            }
            for ((_, attr), value) in desc.given_attrs().zip(attrs) {
                set_in_graph(api, status, description, attr.name, value)?;
            }
            if let Some(device) = &settings.device {
                c.TF_SetDevice(description, device.as_ptr());
            }
            for operation in &settings.control_inputs {
                c.TF_AddControlInput(description, operation.as_ptr());
            }
            for operation in &settings.colocate_with {
                c.TF_ColocateWith(description, operation.as_ptr());
            }
            for (name, value) in &settings.attrs {
                let value = AttrValue::String(Bytes(value));
                set_in_graph(api, status, description, name, &value)?;
            }
        }
        Ok(())
    }
}

/// Whether Python, and everything that parses names, would take this one.
fn is_valid_name(name: &[u8]) -> bool {
    const fn is_first(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || byte == b'.'
    }
    static VALID: [bool; 256] = {
        let mut valid = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            valid[byte] =
                is_first(byte as u8) || matches!(byte as u8, b'_' | b'/' | b'\\' | b'>' | b'-');
            byte += 1;
        }
        valid
    };
    name.first().is_some_and(|&first| is_first(first))
        && name.iter().all(|&byte| VALID[usize::from(byte)])
}

/// `Const`, which the core needs for literals.
pub(crate) static CONST: OpDesc = OpDesc {
    name: c"Const",
    inputs: &[],
    outputs: &[ArgDesc::one(c"output", TypeOf::Attr(1))],
    attrs: &[
        AttrDesc::new(c"value", AttrKind::Tensor),
        AttrDesc::new(c"dtype", AttrKind::Type),
    ],
};

/// `Placeholder`, which every graph needs.
static PLACEHOLDER: OpDesc = OpDesc {
    name: c"Placeholder",
    inputs: &[],
    outputs: &[ArgDesc::one(c"output", TypeOf::Attr(0))],
    attrs: &[
        AttrDesc::new(c"dtype", AttrKind::Type),
        AttrDesc::new(c"shape", AttrKind::Shape).default(AttrDefault::Other),
    ],
};

impl Scope {
    /// Adds a placeholder: a tensor that each run is fed with.
    ///
    /// # Errors
    /// What TensorFlow says, as about a name.
    pub fn placeholder(&self, name: &str, dtype: DataType, shape: &crate::Shape) -> Result<Output> {
        self.named(name)
            .execute(&mut Call::new(&PLACEHOLDER), &[dtype.into(), shape.into()])?
            .one()
    }
}

impl Context for Scope {
    type Value = Output;
    type Operation = Operation;

    fn constant(&self, tensor: &Tensor) -> Result<Output> {
        // A literal is not what the scope's name, device or attributes are for; it stays on the host
        // unless the graph moves it.
        let plain = Self {
            graph: self.graph.clone(),
            settings: Arc::new(Settings {
                prefix: self.settings.prefix.clone(),
                ..Settings::default()
            }),
        };
        plain
            .execute(
                &mut Call::new(&CONST),
                &[tensor.into(), tensor.dtype().into()],
            )?
            .one()
    }

    fn execute(
        &self,
        call: &mut Call<'_, Output>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Output, Operation>> {
        let desc = call.desc();
        if in_place::writes(desc.name.to_bytes()) {
            // The name is the call's own.
            let unnamed = self.with(|settings| settings.name = None);
            in_place::copy_written(call, &unnamed, attrs)?;
        }
        let prepared = call.prepare(self, attrs)?;
        let operation = self
            .add(&prepared, attrs, desc)
            .map_err(|e| e.in_op(desc.name_str()))?;
        let count = operation.output_count();
        let values = (0..count as i32)
            .map(|index| operation.known_output(index))
            .collect();
        prepared.results(values, operation)
    }
}

impl Graph {
    /// Returns the outermost scope, with which operations are added.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::root(self)
    }
}

impl Context for Graph {
    type Value = Output;
    type Operation = Operation;

    fn constant(&self, tensor: &Tensor) -> Result<Output> {
        self.scope().constant(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, Output>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Output, Operation>> {
        self.scope().execute(call, attrs)
    }
}
