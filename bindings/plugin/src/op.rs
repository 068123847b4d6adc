//! Definition of new ops.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;

use tfp_sys as sys;

use crate::api::{Api, api};
use crate::barrier::report;
use crate::data_type::DataType;
use crate::error::{Code, Error, Result};
use crate::kernel::c_name;
use crate::opdefs;
use crate::proto::attr::PartialShape;
use crate::status::{Status, with_status};

/// An op to be defined. The specifications are those of TensorFlow's `REGISTER_OP`, such as
/// `x: T` for an argument and `T: {float, int32}` for an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpDefinition {
    name: String,
    attrs: Vec<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
    stateful: bool,
    commutative: bool,
    aggregate: bool,
}

/// Says the shapes of an op's outputs while a graph is built.
pub trait ShapeFunction: 'static {
    /// Sets the shapes of all outputs.
    ///
    /// # Errors
    /// If the inputs' shapes do not fit the op; the node is then refused.
    fn infer(context: &mut ShapeContext<'_>) -> Result<()>;
}

/// Nothing is known about the outputs' shapes.
#[derive(Clone, Copy, Debug)]
pub struct UnknownShapes;

impl ShapeFunction for UnknownShapes {
    fn infer(context: &mut ShapeContext<'_>) -> Result<()> {
        context.set_outputs_unknown()
    }
}

/// The first output has the shape of the first input.
#[derive(Clone, Copy, Debug)]
pub struct SameShape;

impl ShapeFunction for SameShape {
    fn infer(context: &mut ShapeContext<'_>) -> Result<()> {
        let shape = context.input(0)?;
        context.set_output(0, &shape)
    }
}

impl OpDefinition {
    /// An op of this name without arguments and attributes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn attr(mut self, specification: &str) -> Self {
        self.attrs.push(specification.to_owned());
        self
    }

    /// Adds an input.
    #[must_use]
    pub fn input(mut self, specification: &str) -> Self {
        self.inputs.push(specification.to_owned());
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output(mut self, specification: &str) -> Self {
        self.outputs.push(specification.to_owned());
        self
    }

    /// Two calls with the same inputs may differ: calls are never merged or removed.
    #[must_use]
    pub fn stateful(mut self) -> Self {
        self.stateful = true;
        self
    }

    /// The two inputs may be exchanged.
    #[must_use]
    pub fn commutative(mut self) -> Self {
        self.commutative = true;
        self
    }

    /// The op adds up any number of inputs.
    #[must_use]
    pub fn aggregate(mut self) -> Self {
        self.aggregate = true;
        self
    }

    /// Defines the op for the whole process.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if this TensorFlow has an op of this name, or what TensorFlow
    /// finds wrong with a specification.
    pub fn register<S: ShapeFunction>(&self) -> Result<()> {
        let api = api()?;
        if opdefs::available()? && opdefs::find(&self.name)?.is_some() {
            return Err(Error::new(
                Code::AlreadyExists,
                format!("op {} exists", self.name),
            ));
        }
        let name = c_name(&self.name)?;
        let names = |list: &[String]| list.iter().map(|s| c_name(s)).collect::<Result<Vec<_>>>();
        let (attrs, inputs, outputs) = (
            names(&self.attrs)?,
            names(&self.inputs)?,
            names(&self.outputs)?,
        );
        // SAFETY: all names are C strings that the callees copy; the builder is live until the
        // last call, which takes it over.
        with_status(|status| unsafe {
            let ops = &api.ops;
            let builder = ops.TF_NewOpDefinitionBuilder(name.as_ptr());
            for attr in &attrs {
                ops.TF_OpDefinitionBuilderAddAttr(builder, attr.as_ptr());
            }
            for input in &inputs {
                ops.TF_OpDefinitionBuilderAddInput(builder, input.as_ptr());
            }
            for output in &outputs {
                ops.TF_OpDefinitionBuilderAddOutput(builder, output.as_ptr());
            }
            // These set their flag whatever the argument says: an op that is not commutative would
            // become one, and graph optimizers would exchange its inputs.
            if self.stateful {
                ops.TF_OpDefinitionBuilderSetIsStateful(builder, true);
            }
            if self.commutative {
                ops.TF_OpDefinitionBuilderSetIsCommutative(builder, true);
            }
            if self.aggregate {
                ops.TF_OpDefinitionBuilderSetIsAggregate(builder, true);
            }
            ops.TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, Some(infer::<S>));
            ops.TF_RegisterOpDefinition(builder, status.as_ptr());
            status.take()
        })
    }
}

unsafe extern "C" fn infer<S: ShapeFunction>(
    raw: *mut sys::TF_ShapeInferenceContext,
    status: *mut sys::TF_Status,
) {
    let body = || {
        let raw = NonNull::new(raw).ok_or_else(|| Error::internal("the context is null"))?;
        with_status(|status| {
            S::infer(&mut ShapeContext {
                raw,
                status,
                api: status.api(),
            })
        })
    };
    // SAFETY: TensorFlow passes a live status.
    unsafe { report(status, body) };
}

/// The inputs' shapes and the place for the outputs'.
pub struct ShapeContext<'a> {
    raw: NonNull<sys::TF_ShapeInferenceContext>,
    status: &'a Status,
    api: &'static Api,
}

/// A shape of a [`ShapeContext`]. It may be known in part.
pub struct ShapeHandle<'a> {
    raw: NonNull<sys::TF_ShapeHandle>,
    api: &'static Api,
    context: PhantomData<&'a sys::TF_ShapeInferenceContext>,
}

impl Drop for ShapeHandle<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is owned and not used again.
        unsafe { self.api.ops.TF_DeleteShapeHandle(self.raw.as_ptr()) }
    }
}

impl<'a> ShapeContext<'a> {
    fn own(&self, raw: *mut sys::TF_ShapeHandle) -> Result<ShapeHandle<'a>> {
        Ok(ShapeHandle {
            raw: NonNull::new(raw).ok_or_else(|| Error::internal("TensorFlow gave no shape"))?,
            api: self.api,
            context: PhantomData,
        })
    }

    fn new_handle(&self) -> Result<ShapeHandle<'a>> {
        // SAFETY: the function takes nothing and returns a new handle.
        self.own(unsafe { self.api.ops.TF_NewShapeHandle() })
    }

    /// Number of inputs.
    #[must_use]
    pub fn inputs(&self) -> usize {
        // SAFETY: the context is live.
        let count = unsafe {
            self.api
                .ops
                .TF_ShapeInferenceContextNumInputs(self.raw.as_ptr())
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Shape of input `index`.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn input(&self, index: usize) -> Result<ShapeHandle<'a>> {
        let handle = self.new_handle()?;
        // SAFETY: context, handle and status are live; the callee checks the index.
        unsafe {
            self.api.ops.TF_ShapeInferenceContextGetInput(
                self.raw.as_ptr(),
                number(index)?,
                handle.raw.as_ptr(),
                self.status.as_ptr(),
            );
        }
        self.status.take().map(|()| handle)
    }

    /// Sets the shape of output `index`.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn set_output(&mut self, index: usize, shape: &ShapeHandle<'a>) -> Result<()> {
        // SAFETY: context, handle and status are live; the callee checks the index.
        unsafe {
            self.api.ops.TF_ShapeInferenceContextSetOutput(
                self.raw.as_ptr(),
                number(index)?,
                shape.raw.as_ptr(),
                self.status.as_ptr(),
            );
        }
        self.status.take()
    }

    /// Sets the shapes of all outputs to unknown.
    ///
    /// # Errors
    /// If TensorFlow refuses.
    pub fn set_outputs_unknown(&mut self) -> Result<()> {
        // SAFETY: context and status are live.
        unsafe {
            self.api
                .ops
                .TF_ShapeInferenceContextSetUnknownShape(self.raw.as_ptr(), self.status.as_ptr());
        }
        self.status.take()
    }

    /// The shape of a scalar.
    ///
    /// # Errors
    /// If TensorFlow gives none.
    pub fn scalar(&self) -> Result<ShapeHandle<'a>> {
        // SAFETY: the context is live; the callee returns a new handle.
        self.own(unsafe {
            self.api
                .ops
                .TF_ShapeInferenceContextScalar(self.raw.as_ptr())
        })
    }

    /// The shape of a vector of `length` elements.
    ///
    /// # Errors
    /// If TensorFlow gives none.
    pub fn vector(&self, length: usize) -> Result<ShapeHandle<'a>> {
        // SAFETY: the context is live; the callee returns a new handle.
        self.own(unsafe {
            self.api
                .ops
                .TF_ShapeInferenceContextVectorFromSize(self.raw.as_ptr(), length)
        })
    }

    /// The shape if it has or may have this rank.
    ///
    /// # Errors
    /// If it has another one.
    pub fn with_rank(&self, shape: &ShapeHandle<'a>, rank: usize) -> Result<ShapeHandle<'a>> {
        let result = self.new_handle()?;
        // SAFETY: context, handles and status are live.
        unsafe {
            self.api.ops.TF_ShapeInferenceContextWithRank(
                self.raw.as_ptr(),
                shape.raw.as_ptr(),
                i64::from(number(rank)?),
                result.raw.as_ptr(),
                self.status.as_ptr(),
            );
        }
        self.status.take().map(|()| result)
    }

    /// The dimensions from `start` to `end`; negative ones count from the end.
    ///
    /// # Errors
    /// If they lie outside.
    pub fn subshape(
        &self,
        shape: &ShapeHandle<'a>,
        start: i64,
        end: i64,
    ) -> Result<ShapeHandle<'a>> {
        let result = self.new_handle()?;
        // SAFETY: context, handles and status are live.
        unsafe {
            self.api.ops.TF_ShapeInferenceContextSubshape(
                self.raw.as_ptr(),
                shape.raw.as_ptr(),
                start,
                end,
                result.raw.as_ptr(),
                self.status.as_ptr(),
            );
        }
        self.status.take().map(|()| result)
    }

    /// The dimensions of `first`, then those of `second`.
    ///
    /// # Errors
    /// If TensorFlow refuses.
    pub fn concatenate(
        &self,
        first: &ShapeHandle<'a>,
        second: &ShapeHandle<'a>,
    ) -> Result<ShapeHandle<'a>> {
        let result = self.new_handle()?;
        // SAFETY: context, handles and status are live.
        unsafe {
            self.api.ops.TF_ShapeInferenceContextConcatenateShapes(
                self.raw.as_ptr(),
                first.raw.as_ptr(),
                second.raw.as_ptr(),
                result.raw.as_ptr(),
                self.status.as_ptr(),
            );
        }
        self.status.take().map(|()| result)
    }

    /// A type attribute of the node.
    ///
    /// # Errors
    /// If there is no such attribute.
    pub fn attr_type(&self, name: &str) -> Result<DataType> {
        let name = c_name(name)?;
        let mut value = DataType::from_number(0).raw();
        // SAFETY: context and status are live, the name is a C string.
        unsafe {
            self.api.ops.TF_ShapeInferenceContext_GetAttrType(
                self.raw.as_ptr(),
                name.as_ptr(),
                &mut value,
                self.status.as_ptr(),
            );
        }
        self.status.take().map(|()| DataType::from_raw(value))
    }

    /// What is known of a shape: `None` for an unknown rank, -1 for an unknown dimension.
    ///
    /// # Errors
    /// If TensorFlow gives no dimension.
    pub fn dims(&self, shape: &ShapeHandle<'a>) -> Result<PartialShape> {
        let (context, handle) = (self.raw.as_ptr(), shape.raw.as_ptr());
        let ops = &self.api.ops;
        // SAFETY: context and handle are live.
        let known = unsafe { ops.TF_ShapeInferenceContextRankKnown(context, handle) };
        if known == 0 {
            return Ok(None);
        }
        // SAFETY: context and handle are live; the dimension is deleted once, after its last use.
        unsafe {
            let rank = ops.TF_ShapeInferenceContextRank(context, handle);
            let mut dims = Vec::new();
            for axis in 0..rank {
                let dim = ops.TF_NewDimensionHandle();
                ops.TF_ShapeInferenceContextDim(context, handle, axis, dim);
                let value = match ops.TF_DimensionHandleValueKnown(dim) {
                    0 => -1,
                    _ => ops.TF_DimensionHandleValue(dim),
                };
                ops.TF_DeleteDimensionHandle(dim);
                dims.push(value);
            }
            Ok(Some(dims))
        }
    }
}

fn number(index: usize) -> Result<c_int> {
    c_int::try_from(index).map_err(|_| Error::invalid(format!("{index} is out of range")))
}
