//! The kernels of `tfp-kernels` as Vulkan compute shaders: no TensorFlow type, one dispatch point.
//!
//! [`gpus`] lists what is there, [`open`] opens one. Memory of [`Gpu::allocate`] is the device's, and the host
//! sees it at the address that it gets: every kernel of the CPU works on it. [`body`] says whether an op has a
//! body for the GPU; [`Gpu::run`] runs it on the same [`Call`] that the CPU's kernel takes, or declines.
//!
//! Work is finished when [`Gpu::run`] returns. Threads may call it side by side.
#![deny(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]

mod cost;
mod ops;
mod problem;
mod request;
mod shader;
#[allow(unsafe_code, missing_docs)]
// Vulkan's functions, and memory that the host and the device share.
mod vulkan;
mod work;

use std::ptr::NonNull;
use std::time::Duration;

use tfp_kernels::base::def::{Call, KernelDef};
use tfp_kernels::base::dtype::DType;

pub use crate::cost::{Costs, Peaks};
pub use crate::problem::Problem;
use crate::request::Request;
use crate::vulkan::device::Opened;
use crate::vulkan::instance::library;
pub use crate::vulkan::instance::{Description, Heap, Kind};
use crate::work::{Place, Plan};

/// All devices that Vulkan lists, usable or not. An empty list is a loader without drivers.
///
/// # Errors
/// [`Problem::NoVulkan`] if there is no loader or no instance.
pub fn gpus() -> Result<Vec<Description>, Problem> {
    let library = library()?;
    let devices = library.devices()?;
    let all = devices.iter().enumerate();
    Ok(all
        .map(|(index, &device)| library.describe(index, device))
        .collect())
}

/// How a device is used.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether calls that the CPU's kernel ends sooner are declined.
    pub decline_small: bool,
    /// How long a kernel may take before the device counts as lost.
    pub patience: Duration,
    /// Where the memory is that host and device share.
    pub placement: Placement,
}

/// Where the memory is that host and device share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The device's if the host caches it, which integrated GPUs have; else the host's.
    #[default]
    Best,
    /// The device's. On a card, the host reads it about a thousand times more slowly than its own.
    Device,
    /// The host's: a card reads and writes it over the bus.
    Host,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            decline_small: true,
            patience: Duration::from_secs(60),
            placement: Placement::Best,
        }
    }
}

/// Opens the device with this index of [`gpus`].
///
/// # Errors
/// [`Problem::NoVulkan`], [`Problem::NoSuchGpu`], [`Problem::Unusable`], or a failed call.
pub fn open(index: usize, options: &Options) -> Result<Gpu, Problem> {
    let library = library()?;
    let devices = library.devices()?;
    let found = devices.len();
    let physical = *devices
        .get(index)
        .ok_or(Problem::NoSuchGpu { index, found })?;
    let description = library.describe(index, physical);
    let patient = Options {
        patience: Options::default().patience,
        ..*options
    };
    let opened = Opened::new(&library, physical, &description, &patient)?;
    let mut gpu = Gpu {
        description,
        opened,
        costs: Costs::default(),
        decline_small: false,
    };
    gpu.costs = cost::measure(&gpu)?;
    gpu.decline_small = options.decline_small;
    gpu.opened.set_patience(options.patience);
    Ok(gpu)
}

/// A device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of the heap.
    pub total: usize,
    /// Bytes that this process has of it.
    pub used: usize,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The outputs are written.
    Done {
        /// Nanoseconds that the device worked, if it tells.
        nanoseconds: Option<u64>,
    },
    /// Nothing was done: the CPU's kernel is to run.
    Declined(Reason),
}

/// Why a call is the CPU's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The body does not serve these types, shapes or attributes; or the call is wrong, and the CPU's kernel
    /// says how.
    Form,
    /// A tensor is not in the device's memory, or lies where shaders can't read it.
    Memory,
    /// The CPU's kernel ends sooner than a submission.
    Small,
}

/// The GPU's body of a kernel.
#[derive(Clone, Copy)]
pub struct Body {
    def: &'static KernelDef,
    plan: ops::PlanOf,
}

impl Body {
    /// The op of TensorFlow.
    #[must_use]
    pub fn op(&self) -> &'static str {
        self.def.op
    }
}

/// The body for a kernel, if there is one that serves this type. A body may decline a call even so.
#[must_use]
pub fn body(def: &'static KernelDef, dtype: DType) -> Option<Body> {
    let (_, plan) = ops::find(def.op, dtype)?;
    Some(Body { def, plan })
}

/// The ops that have a body, sorted, with the types that it serves.
pub fn bodies() -> impl Iterator<Item = (&'static str, &'static [DType])> {
    ops::all()
}

/// An opened device.
pub struct Gpu {
    description: Description,
    opened: Opened,
    costs: Costs,
    decline_small: bool,
}

impl Gpu {
    /// What the device is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// What was measured when the device was opened.
    #[must_use]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Memory of the device that the host sees at this address, a multiple of 64.
    ///
    /// # Errors
    /// [`Problem::Memory`] if there is not as much.
    pub fn allocate(&self, bytes: usize) -> Result<NonNull<u8>, Problem> {
        self.opened.allocate(bytes)
    }

    /// Gives memory of [`Gpu::allocate`] back. `false` if the address is not one of these. A device that is lost may
    /// still write: its memory stays until the process ends.
    ///
    /// # Safety
    /// Nobody uses the memory any more.
    #[allow(unsafe_code)]
    pub unsafe fn free(&self, address: NonNull<u8>) -> bool {
        // SAFETY: what the caller promises.
        unsafe { self.opened.free(address) }
    }

    /// Whether the device is lost. All its work fails from then on, and what its memory holds is undefined.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.opened.is_lost()
    }

    /// How much memory there is, and how much is in use.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory {
            total: self.opened.total(),
            used: self.opened.used(),
        }
    }

    /// Runs a body on a call that the CPU's kernel would take, to its end.
    ///
    /// # Errors
    /// [`Problem::Memory`] if there is no scratch memory, [`Problem::Lost`] for a device that is gone.
    #[allow(unsafe_code)]
    pub fn run(&self, body: &Body, call: &mut Call<'_>) -> Result<Outcome, Problem> {
        let limits = &self.opened.limits;
        let read = |address, to: &mut [u8]| self.read(address, to).unwrap_or(false);
        let Some(request) = Request::of(body.def, call, &read) else {
            return Ok(Outcome::Declined(Reason::Form));
        };
        if request
            .outputs
            .first()
            .is_none_or(|output| output.bytes == 0)
        {
            return Ok(Outcome::Declined(Reason::Form));
        }
        let Some(plan) = (body.plan)(&request, limits) else {
            return Ok(Outcome::Declined(Reason::Form));
        };
        if !self.holds(&plan) {
            return Ok(Outcome::Declined(Reason::Memory));
        }
        if self.decline_small && !self.costs.worth(&plan) {
            return Ok(Outcome::Declined(Reason::Small));
        }
        // SAFETY: the call borrows its inputs and, exclusively, its outputs until this returns. `holds` found
        // all of them inside of blocks, which a borrower keeps. Scratch memory is the submission's own.
        let nanoseconds = unsafe { self.opened.run(&plan) }?;
        Ok(Outcome::Done { nanoseconds })
    }

    /// Whether the host reads the device's memory much more slowly than its own. Where no call is declined for its size,
    /// this is so, too.
    #[must_use]
    pub fn is_far(&self) -> bool {
        !self.decline_small || self.costs.host_read >= 1.0
    }

    /// Copies device memory to the host through memory that the host caches, or to other device memory: a discrete
    /// card's own is slow to read. `false` if nothing was done: the bytes are not the device's, are few, or can be
    /// read as quickly.
    ///
    /// # Errors
    /// [`Problem::Memory`] if there is no memory for the copy, [`Problem::Lost`] for a device that is gone.
    pub fn read(&self, address: usize, to: &mut [u8]) -> Result<bool, Problem> {
        if !self.is_far() || !self.is_many(to.len()) {
            return Ok(false);
        }
        self.opened.read(address, to)
    }

    /// Whether the host takes longer to read this many bytes of the device's memory than a submission takes. Where no
    /// call is declined for its size, a fixed number decides.
    #[must_use]
    pub fn is_many(&self, bytes: usize) -> bool {
        const LEAST: usize = 4096;
        if self.decline_small {
            bytes as f64 * self.costs.host_read > self.costs.submission
        } else {
            bytes >= LEAST
        }
    }

    /// Whether these bytes are the device's.
    #[must_use]
    pub fn owns(&self, address: usize, bytes: usize) -> bool {
        self.opened.offset(address, bytes).is_some()
    }

    /// What the device reaches, measured for the bench.
    ///
    /// # Errors
    /// As [`Gpu::run`].
    pub fn peaks(&self) -> Result<Peaks, Problem> {
        cost::peaks(self)
    }

    /// Whether shaders can read all buffers of a plan where they are.
    fn holds(&self, plan: &Plan) -> bool {
        let limits = &self.opened.limits;
        let buffers = plan
            .dispatches
            .iter()
            .flat_map(|dispatch| &dispatch.buffers);
        buffers.into_iter().all(|region| {
            let fits = (1..=limits.range).contains(&region.bytes);
            fits && match region.place {
                Place::Scratch(_) => true,
                Place::Tensor(address) => {
                    let offset = self.opened.offset(address, region.bytes);
                    // Shaders read vectors of 16 bytes.
                    offset.is_some_and(|offset| offset % limits.alignment.max(16) == 0)
                }
            }
        })
    }
}
