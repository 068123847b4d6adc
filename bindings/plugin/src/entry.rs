//! What [`export_plugin!`](crate::export_plugin) makes of TensorFlow's calls: the first load of a
//! platform in a process offers what it has, later ones offer nothing.

use std::sync::{Mutex, PoisonError};

use tfp_sys as sys;

use crate::barrier::{guard, init_kernels, log};
use crate::device::{Platform, PlatformInfo};
use crate::error::{Code, Error, Result};
use crate::load::{is_marked, mark, spare_platform};
use crate::optimizer::{Optimizer, Pass, init_graph};
use crate::platform::init_plugin;
use crate::profiler::{Profiler, init_profiler};

/// What became of the last `SE_InitPlugin`.
#[derive(Clone, Debug)]
enum Load {
    /// There is no platform; ops may be of use nevertheless.
    Failed,
    /// This one's platform was offered.
    First(PlatformInfo),
    /// Another load's platform was.
    Repeated,
}

static LOAD: Mutex<Load> = Mutex::new(Load::Failed);

fn last() -> Load {
    LOAD.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn set(load: Load) {
    *LOAD.lock().unwrap_or_else(PoisonError::into_inner) = load;
}

fn label(info: &PlatformInfo) -> String {
    format!("tfp_bindings_{}", info.name)
}

/// Type of device to name: TensorFlow takes one optimizer and one profiler for each.
fn device_type() -> String {
    match last() {
        Load::First(info) => info.device_type,
        Load::Failed | Load::Repeated => spare_platform().device_type,
    }
}

/// The whole body of an `SE_InitPlugin`.
///
/// # Safety
/// The arguments are those of `SE_InitPlugin`.
pub unsafe fn offer_platform<P: Platform>(
    params: *mut sys::SE_PlatformRegistrationParams,
    status: *mut sys::TF_Status,
    make: impl FnOnce() -> Result<P>,
) {
    let mut load = Load::Failed;
    let make = || {
        let platform = make()?;
        let info = platform.info();
        // Also where TensorFlow can't tell what it has.
        let here = matches!(last(), Load::First(earlier) if earlier.name == info.name);
        if here || is_marked(&label(&info))? {
            load = Load::Repeated;
            let message = format!("platform {} is loaded already", info.name);
            return Err(Error::new(Code::AlreadyExists, message));
        }
        load = Load::First(info);
        Ok(platform)
    };
    // SAFETY: the arguments are TensorFlow's.
    let accepted = unsafe { init_plugin(params, status, spare_platform(), make) };
    if !accepted && matches!(load, Load::First(_)) {
        load = Load::Failed;
    }
    set(load);
}

/// The whole body of a `TF_InitKernel`.
pub fn offer_kernels(register: impl FnOnce() -> Result<()>) {
    init_kernels(|| match last() {
        Load::Repeated => Ok(()),
        Load::Failed => register(),
        Load::First(info) => {
            if let Err(error) = mark(&info.device_type, &label(&info)) {
                log(&format!("no mark for later loads: {error}"));
            }
            register()
        }
    });
}

/// The whole body of a `TF_InitGraph`.
///
/// # Safety
/// The arguments are those of `TF_InitGraph`.
pub unsafe fn offer_optimizer<O: Optimizer>(
    params: *mut sys::TP_OptimizerRegistrationParams,
    status: *mut sys::TF_Status,
    off: &[Pass],
) {
    let off = match last() {
        Load::First(_) => off,
        Load::Failed | Load::Repeated => &[],
    };
    // SAFETY: the arguments are TensorFlow's.
    unsafe { init_graph::<O>(params, status, &device_type(), off) }
}

/// The whole body of a `TF_InitProfiler`.
///
/// # Safety
/// The arguments are those of `TF_InitProfiler`.
pub unsafe fn offer_profiler<P: Profiler>(
    params: *mut sys::TF_ProfilerRegistrationParams,
    status: *mut sys::TF_Status,
    make: impl FnOnce() -> P,
) {
    let device_type = device_type();
    if let Load::First(_) = last() {
        match guard(|| Ok(make())) {
            Ok(profiler) => {
                // SAFETY: the arguments are TensorFlow's.
                unsafe { init_profiler(params, status, &device_type, profiler) };
                return;
            }
            Err(error) => log(&format!("there is no profiler: {error}")),
        }
    }
    // SAFETY: as above.
    unsafe { init_profiler(params, status, &device_type, Nothing) }
}

/// Profiles a load without devices.
struct Nothing;

impl Profiler for Nothing {
    fn start(&self) -> Result<()> {
        Ok(())
    }

    fn stop(&self) -> Result<()> {
        Ok(())
    }

    fn collect(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}
