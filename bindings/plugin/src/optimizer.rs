//! Graph optimizers: graph in, graph out, for every function with nodes on the device.

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use tfp_sys as sys;

use crate::api::api;
use crate::barrier::{guard, log, report};
use crate::buffer::{self, Buffer};
use crate::data_type::DataType;
use crate::error::{Code, Error, Result};
use crate::executor::check_size;
use crate::kernel::c_name;
use crate::proto::attr::{PartialShape, parse_shape};
use crate::proto::graph::GraphDef;
use crate::status::with_status;
use tfp_wire::Reader;

/// Rewrites graphs.
pub trait Optimizer: Send + Sync + Sized + 'static {
    /// Makes the optimizer; TensorFlow asks for one per graph.
    ///
    /// # Errors
    /// Then the graph stays as it is.
    fn new() -> Result<Self>;

    /// Rewrites a graph. The nodes that [`Item::preserved`] names have to stay.
    ///
    /// # Errors
    /// Then the graph stays as it is.
    fn optimize(&self, graph: GraphDef, item: &Item<'_>) -> Result<GraphDef>;
}

/// A pass of TensorFlow's own optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pass {
    /// Fuses nodes into ops such as `_FusedConv2D`, which a device may lack.
    Remapping,
    /// Changes data formats.
    Layout,
    /// Computes constant parts.
    ConstantFolding,
    /// Rewrites arithmetic.
    Arithmetic,
    /// Inserts casts to smaller floats.
    AutoMixedPrecision,
    /// Moves small nodes to the host.
    PinToHost,
    /// Reduces memory.
    Memory,
    /// Removes needless dependencies.
    Dependency,
    /// Rewrites loops.
    Loop,
    /// Optimizes functions.
    Function,
    /// Merges equal nodes.
    CommonSubgraph,
}

/// Offers an optimizer to TensorFlow; the whole body of a `TF_InitGraph`. `off` are passes of
/// TensorFlow's that are turned off for the whole process.
///
/// # Safety
/// The arguments are those of `TF_InitGraph`.
pub unsafe fn init_graph<O: Optimizer>(
    params: *mut sys::TP_OptimizerRegistrationParams,
    status: *mut sys::TF_Status,
    device_type: &str,
    off: &[Pass],
) {
    let body = || {
        // SAFETY: by this function's contract.
        let params = unsafe { params.as_mut() }
            .ok_or_else(|| Error::internal("the registration parameters are null"))?;
        check_size(
            "TP_OptimizerRegistrationParams",
            params.struct_size,
            sys::TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE,
        )?;
        // SAFETY: TensorFlow passes null or tables that it has initialised.
        let tables = unsafe { (params.optimizer_configs.as_mut(), params.optimizer.as_mut()) };
        let (Some(configs), Some(optimizer)) = tables else {
            return Err(Error::internal("TensorFlow passed no tables to fill"));
        };
        check_size(
            "TP_OptimizerConfigs",
            configs.struct_size,
            sys::TP_OPTIMIZER_CONFIGS_STRUCT_SIZE,
        )?;
        check_size(
            "TP_Optimizer",
            optimizer.struct_size,
            sys::TP_OPTIMIZER_STRUCT_SIZE,
        )?;
        params.struct_size = sys::TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
        // TensorFlow may read the name at any time: it stays until the process ends.
        params.device_type = c_name(device_type)?.into_raw();
        configs.struct_size = sys::TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
        for pass in off {
            *toggle(configs, *pass) = sys::TF_TriState_Off;
        }
        optimizer.struct_size = sys::TP_OPTIMIZER_STRUCT_SIZE;
        optimizer.create_func = Some(create::<O>);
        optimizer.optimize_func = Some(optimize::<O>);
        optimizer.destroy_func = Some(destroy::<O>);
        Ok(())
    };
    // SAFETY: by this function's contract.
    unsafe { report(status, body) };
}

fn toggle(configs: &mut sys::TP_OptimizerConfigs, pass: Pass) -> &mut sys::TF_TriState {
    match pass {
        Pass::Remapping => &mut configs.remapping,
        Pass::Layout => &mut configs.layout_optimizer,
        Pass::ConstantFolding => &mut configs.constant_folding,
        Pass::Arithmetic => &mut configs.arithmetic_optimization,
        Pass::AutoMixedPrecision => &mut configs.auto_mixed_precision,
        Pass::PinToHost => &mut configs.pin_to_host_optimization,
        Pass::Memory => &mut configs.memory_optimization,
        Pass::Dependency => &mut configs.dependency_optimization,
        Pass::Loop => &mut configs.loop_optimization,
        Pass::Function => &mut configs.function_optimization,
        Pass::CommonSubgraph => &mut configs.common_subgraph_elimination,
    }
}

unsafe extern "C" fn create<O: Optimizer>() -> *mut c_void {
    match guard(O::new) {
        Ok(optimizer) => Box::into_raw(Box::new(optimizer)).cast(),
        Err(error) => {
            log(&format!("no graph optimizer: {error}"));
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn destroy<O: Optimizer>(raw: *mut c_void) {
    if !raw.is_null() {
        let _ = guard(|| {
            // SAFETY: TensorFlow passes what `create` returned, once.
            drop(unsafe { Box::from_raw(raw.cast::<O>()) });
            Ok(())
        });
    }
}

unsafe extern "C" fn optimize<O: Optimizer>(
    raw: *mut c_void,
    input: *const sys::TF_Buffer,
    item: *const sys::TF_GrapplerItem,
    output: *mut sys::TF_Buffer,
    status: *mut sys::TF_Status,
) {
    let body = || {
        // SAFETY: TensorFlow passes what `create` returned, a graph, and a place for the result.
        let (optimizer, input, output) =
            unsafe { (raw.cast::<O>().as_ref(), input.as_ref(), output.as_mut()) };
        let (Some(optimizer), Some(input), Some(output)) = (optimizer, input, output) else {
            return Err(Error::internal("there is no optimizer, graph or result"));
        };
        // SAFETY: the buffer is live during the call.
        let graph = GraphDef::parse(unsafe { buffer::bytes(input) })?;
        let item = Item {
            raw: item,
            life: PhantomData,
        };
        let result = optimizer.optimize(graph, &item)?;
        buffer::fill(output, result.to_bytes());
        Ok(())
    };
    // SAFETY: TensorFlow passes a live status.
    unsafe { report(status, body) };
}

/// The graph that is optimized, as TensorFlow knows it.
pub struct Item<'a> {
    raw: *const sys::TF_GrapplerItem,
    life: PhantomData<&'a sys::TF_GrapplerItem>,
}

fn functions() -> Result<&'static sys::grappler::Functions> {
    api()?
        .grappler
        .as_ref()
        .map_err(|error| Error::new(Code::Unimplemented, error.to_string()))
}

impl Item<'_> {
    /// Names of the nodes that have to stay: feeds, fetches, and nodes with side effects.
    ///
    /// # Errors
    /// If TensorFlow gives no list.
    pub fn preserved(&self) -> Result<Vec<String>> {
        let grappler = functions()?;
        name_list(
            // SAFETY: the item is live during the optimization; the places are too.
            |count, size, status| unsafe {
                grappler.TF_GetNodesToPreserveListSize(self.raw, count, size, status);
            },
            // SAFETY: as above, and the arrays are as long as said.
            |values, lengths, count, storage, size, status| unsafe {
                grappler.TF_GetNodesToPreserveList(
                    self.raw, values, lengths, count, storage, size, status,
                );
            },
        )
    }

    /// Names of the nodes whose values are fetched.
    ///
    /// # Errors
    /// If TensorFlow gives no list.
    pub fn fetched(&self) -> Result<Vec<String>> {
        let grappler = functions()?;
        name_list(
            // SAFETY: the item is live during the optimization; the places are too.
            |count, size, status| unsafe {
                grappler.TF_GetFetchNodesListSize(self.raw, count, size, status);
            },
            // SAFETY: as above, and the arrays are as long as said.
            |values, lengths, count, storage, size, status| unsafe {
                grappler
                    .TF_GetFetchNodesList(self.raw, values, lengths, count, storage, size, status);
            },
        )
    }

    /// Infers types and shapes of the whole graph.
    ///
    /// # Errors
    /// If TensorFlow can't infer them.
    pub fn properties(&self) -> Result<Properties> {
        let grappler = functions()?;
        // SAFETY: the item is live during the optimization.
        let raw = unsafe { grappler.TF_NewGraphProperties(self.raw) };
        let raw = NonNull::new(raw).ok_or_else(|| Error::internal("there are no properties"))?;
        let properties = Properties { raw, grappler };
        with_status(|status| {
            // SAFETY: properties and status are live.
            unsafe {
                grappler.TF_InferStatically(raw.as_ptr(), 0, 0, 0, 0, status.as_ptr());
            }
            status.take()
        })?;
        Ok(properties)
    }
}

/// Asks for a list of names: its size first, then the names.
fn name_list(
    size: impl FnOnce(*mut c_int, *mut usize, *mut sys::TF_Status),
    fill: impl FnOnce(*mut *mut c_char, *mut usize, c_int, *mut c_void, usize, *mut sys::TF_Status),
) -> Result<Vec<String>> {
    with_status(|status| {
        let (mut count, mut bytes) = (0, 0);
        size(&mut count, &mut bytes, status.as_ptr());
        status.take()?;
        let length = usize::try_from(count).unwrap_or(0);
        let mut storage = vec![0_u8; bytes];
        let mut values = vec![std::ptr::null_mut(); length];
        let mut lengths = vec![0_usize; length];
        fill(
            values.as_mut_ptr(),
            lengths.as_mut_ptr(),
            count,
            storage.as_mut_ptr().cast(),
            bytes,
            status.as_ptr(),
        );
        status.take()?;
        let names = values.iter().zip(&lengths).map(|(&value, &length)| {
            if value.is_null() {
                return String::new();
            }
            // SAFETY: the callee set pointer and length of a name within `storage`.
            let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length) };
            String::from_utf8_lossy(bytes).into_owned()
        });
        Ok(names.collect())
    })
}

/// Types and shapes of the nodes of a graph.
pub struct Properties {
    raw: NonNull<sys::TF_GraphProperties>,
    grappler: &'static sys::grappler::Functions,
}

impl Properties {
    /// Type and shape of each output of a node.
    ///
    /// # Errors
    /// If TensorFlow knows no such node.
    pub fn outputs(&self, node: &str) -> Result<Vec<(DataType, PartialShape)>> {
        let name = c_name(node)?;
        with_status(|status| {
            let mut count = 0;
            // SAFETY: properties, place and status are live, the name is a C string.
            unsafe {
                self.grappler.TF_GetOutputPropertiesListSize(
                    self.raw.as_ptr(),
                    name.as_ptr(),
                    &mut count,
                    status.as_ptr(),
                );
            }
            status.take()?;
            let buffers = (0..count).map(|_| Buffer::new());
            let buffers = buffers.collect::<Result<Vec<_>>>()?;
            let mut raw: Vec<_> = buffers.iter().map(Buffer::as_ptr).collect();
            // SAFETY: as above; the array is as long as said.
            unsafe {
                self.grappler.TF_GetOutputPropertiesList(
                    self.raw.as_ptr(),
                    name.as_ptr(),
                    raw.as_mut_ptr(),
                    count,
                    status.as_ptr(),
                );
            }
            status.take()?;
            buffers
                .iter()
                .map(|b| parse_properties(b.bytes()))
                .collect()
        })
    }
}

impl Drop for Properties {
    fn drop(&mut self) {
        // SAFETY: the properties are owned and not used again.
        unsafe { self.grappler.TF_DeleteGraphProperties(self.raw.as_ptr()) }
    }
}

/// Reads an `OpInfo.TensorProperties`.
fn parse_properties(message: &[u8]) -> Result<(DataType, PartialShape)> {
    // TensorFlow leaves the shape of rank 0 out, and writes one of unknown rank.
    let mut properties = (DataType::from_number(0), Some(Vec::new()));
    for field in Reader::new("OpInfo.TensorProperties", message) {
        match field? {
            (1, dtype) => {
                let number = u32::try_from(dtype.int()?).unwrap_or(0);
                properties.0 = DataType::from_number(number);
            }
            (2, shape) => properties.1 = parse_shape(shape.bytes()?)?,
            _ => {}
        }
    }
    Ok(properties)
}
