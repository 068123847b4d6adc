//! Safe SDK for TensorFlow plug-ins (PluggableDevice) in stable Rust.
//!
//! A plug-in is a shared library with up to four entry points. Each is one call of this crate:
//!
//! | entry point | offers | function |
//! |---|---|---|
//! | `SE_InitPlugin` | devices | [`init_plugin`] with a [`Platform`] |
//! | `TF_InitKernel` | kernels, ops | [`init_kernels`] with [`Registration`]s and [`OpDefinition`](op::OpDefinition)s |
//! | `TF_InitGraph` | a graph optimizer | [`init_graph`](optimizer::init_graph) with an [`Optimizer`](optimizer::Optimizer) |
//! | `TF_InitProfiler` | a profiler | [`init_profiler`](profiler::init_profiler) with a [`Profiler`](profiler::Profiler) |
//!
//! [`export_plugin!`] writes them all.
//!
//! A panic in any implementation becomes an error status; tensors are freed when they go out of
//! scope; nothing links to TensorFlow, whose functions are found in the process that loads the
//! plug-in.
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]

mod api;
mod barrier;
mod buffer;
mod construction;
mod context;
mod data_type;
pub mod device;
pub mod eager;
#[doc(hidden)]
pub mod entry;
mod error;
mod executor;
pub mod host;
mod kernel;
mod layout;
pub mod load;
pub mod op;
pub mod opdefs;
pub mod optimizer;
mod platform;
pub mod profiler;
pub mod proto;
mod registration;
mod status;
mod tensor;

pub use tfp_sys as sys;

pub use barrier::{init_kernels, log};
pub use construction::Construction;
pub use context::{Context, InputPlan, OutputPlan};
pub use data_type::{DataType, Element};
pub use device::{Device, Platform, PlatformInfo};
pub use error::{Code, Error, Result};
pub use kernel::{AsyncKernel, Kernel, Step};
pub use layout::Layout;
pub use platform::init_plugin;
pub use registration::{Registration, RegistrationError};
pub use tensor::{Tensor, TensorMut};

/// Defines the entry points of a plug-in. In this order:
///
/// * `platform`: an expression of type `Result<impl Platform>`;
/// * `kernels`: an expression of type `Result<()>` that registers kernels and ops;
/// * optional, `optimizer`: a type that is an [`Optimizer`](optimizer::Optimizer), and `off`: a slice
///   of TensorFlow's own [passes](optimizer::Pass) that are turned off for the whole process;
/// * optional, `profiler`: an expression that makes a [`Profiler`](profiler::Profiler).
///
/// TensorFlow ends the process when a platform comes twice, as it does through a symbolic link or a
/// copy of the library. So only the first load in a process offers anything.
///
/// ```ignore
/// tfp_bindings::export_plugin! {
///     platform: Ok(Mine),
///     kernels: register(),
///     optimizer: Fusion, off: &[Pass::Remapping],
///     profiler: Steps::default(),
/// }
/// ```
#[macro_export]
macro_rules! export_plugin {
    (
        platform: $platform:expr,
        kernels: $kernels:expr
        $(, optimizer: $optimizer:ty, off: $off:expr)?
        $(, profiler: $profiler:expr)?
        $(,)?
    ) => {
        /// Offers the platform.
        ///
        /// # Safety
        /// TensorFlow's contract for this entry point.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn SE_InitPlugin(
            params: *mut $crate::sys::SE_PlatformRegistrationParams,
            status: *mut $crate::sys::TF_Status,
        ) {
            // SAFETY: the arguments are TensorFlow's.
            unsafe { $crate::entry::offer_platform(params, status, || $platform) };
        }

        /// Registers the kernels.
        #[unsafe(no_mangle)]
        pub extern "C" fn TF_InitKernel() {
            $crate::entry::offer_kernels(|| $kernels);
        }

        $(
            /// Offers the graph optimizer.
            ///
            /// # Safety
            /// TensorFlow's contract for this entry point.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn TF_InitGraph(
                params: *mut $crate::sys::TP_OptimizerRegistrationParams,
                status: *mut $crate::sys::TF_Status,
            ) {
                // SAFETY: the arguments are TensorFlow's.
                unsafe { $crate::entry::offer_optimizer::<$optimizer>(params, status, $off) };
            }
        )?

        $(
            /// Offers the profiler.
            ///
            /// # Safety
            /// TensorFlow's contract for this entry point.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn TF_InitProfiler(
                params: *mut $crate::sys::TF_ProfilerRegistrationParams,
                status: *mut $crate::sys::TF_Status,
            ) {
                // SAFETY: the arguments are TensorFlow's.
                unsafe { $crate::entry::offer_profiler(params, status, || $profiler) };
            }
        )?
    };
}
