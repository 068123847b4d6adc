//! The functions that TensorFlow calls by name.

use std::sync::{Mutex, PoisonError};

use tfp_bindings::optimizer::init_graph;
use tfp_bindings::profiler::init_profiler;
use tfp_bindings::{Result, init_kernels, init_plugin, load, log, sys};

use crate::graph::{self, GraphOptimizer, Settings};
use crate::platform::TfpPlatform;
use crate::variables::{fits, generator, kernel as variable_kernel};
use crate::{hosted, lists, moves, ops, python};
use tfp_adapter::config::{self, Config};
use tfp_adapter::profile::KernelProfiler;

/// Label of the mark that the first load leaves.
const LOADED: &str = "tfp_is_loaded";

/// An op of which every type of device that computes has a kernel.
const COMMON_OP: &str = "MatMul";

/// How the load that is going on is configured; `None` if it offers nothing.
static ACTIVE: Mutex<Option<Config>> = Mutex::new(None);

fn set_active(config: Option<Config>) {
    *ACTIVE.lock().unwrap_or_else(PoisonError::into_inner) = config;
}

fn active() -> Option<Config> {
    ACTIVE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Takes the usual type of device where TensorFlow has kernels of its own for the one asked for, as
/// it has for GPU when it is built for CUDA: two kernels for a node are an error in TensorFlow.
fn leave_taken_type(config: &mut Config) -> Result<()> {
    let asked = &config.names.device_type;
    if load::has_kernel(COMMON_OP, asked)? {
        let usual = config::usual_names();
        log(&format!(
            "TFP_DEVICE_TYPE={asked}: this TensorFlow has kernels of its own for {asked} (as \
             `tensorflow` has for GPU; `tensorflow-cpu` has none), so the device is {}:0",
            usual.device_type
        ));
        config.names = usual;
    }
    Ok(())
}

/// Offers the platform.
///
/// # Safety
/// TensorFlow's contract for this entry point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SE_InitPlugin(
    params: *mut sys::SE_PlatformRegistrationParams,
    status: *mut sys::TF_Status,
) {
    set_active(None);
    let mut offered = None;
    let make = || {
        let mut config = Config::from_environment()?;
        if config.disabled || load::is_marked(LOADED)? {
            config.devices = 0;
            config.names = load::spare_platform();
        } else {
            leave_taken_type(&mut config)?;
            offered = Some(config.clone());
        }
        Ok(TfpPlatform::new(config))
    };
    // SAFETY: the arguments are TensorFlow's.
    if unsafe { init_plugin(params, status, load::spare_platform(), make) } {
        set_active(offered);
    }
}

/// Registers the kernels.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InitKernel() {
    init_kernels(|| {
        if let Some(config) = active() {
            let device_type = &config.names.device_type;
            if let Err(error) = load::mark(device_type, LOADED) {
                log(&format!("no mark for later loads: {error}"));
            }
            tfp_adapter::configure(&config);
            ops::define();
            tfp_adapter::register(device_type);
            variable_kernel::register(device_type);
            fits::register(device_type);
            generator::register(device_type);
            lists::register(device_type);
            hosted::register(device_type);
            moves::register(device_type);
            python::tell(device_type);
        }
        Ok(())
    });
}

/// Offers the graph optimizer.
///
/// # Safety
/// TensorFlow's contract for this entry point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TF_InitGraph(
    params: *mut sys::TP_OptimizerRegistrationParams,
    status: *mut sys::TF_Status,
) {
    // A load that offers no device must still name a type of device, one that nobody else has.
    let (device_type, off) = match active() {
        Some(config) => {
            let device_type = config.names.device_type;
            graph::configure(Settings {
                device_type: device_type.clone(),
                fuse: config.fusion && ops::are_defined(),
                own_ops: ops::are_defined(),
            });
            let off = graph::passes_off(&device_type);
            (device_type, off)
        }
        None => (load::spare_platform().device_type, &[][..]),
    };
    // SAFETY: the arguments are TensorFlow's.
    unsafe { init_graph::<GraphOptimizer>(params, status, &device_type, off) };
}

/// Offers the profiler.
///
/// # Safety
/// TensorFlow's contract for this entry point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TF_InitProfiler(
    params: *mut sys::TF_ProfilerRegistrationParams,
    status: *mut sys::TF_Status,
) {
    let profiled = active().map(|config| config.names.device_type);
    let device_type = profiled
        .clone()
        .unwrap_or_else(|| load::spare_platform().device_type);
    let profiler = KernelProfiler::new(profiled);
    // SAFETY: the arguments are TensorFlow's.
    unsafe { init_profiler(params, status, &device_type, profiler) };
}

/// Writes what [`tfp_adapter::reads::report`] says to `out`, as much as its `capacity` bytes hold, and gives the
/// length of all of it. Module `tfp_plugin.check` calls it.
///
/// # Safety
/// `out` is valid for writes of `capacity` bytes, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tfp_gpu_report(out: *mut u8, capacity: usize) -> usize {
    let text = std::panic::catch_unwind(tfp_adapter::reads::report).unwrap_or_default();
    if !out.is_null() {
        let length = text.len().min(capacity);
        // SAFETY: `out` is valid for `capacity` bytes by this function's contract; the text is another's.
        unsafe { out.copy_from_nonoverlapping(text.as_ptr(), length) };
    }
    text.len()
}

const _: sys::SE_InitPlugin = SE_InitPlugin;
const _: sys::TF_InitGraph = TF_InitGraph;
const _: sys::TF_InitProfiler = TF_InitProfiler;
