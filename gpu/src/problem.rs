//! What can go wrong with a GPU.

use std::fmt;

/// Why a GPU can't be used, or did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The machine has no Vulkan: the loader's library or a driver is missing.
    NoVulkan(String),
    /// There is no GPU with this index.
    NoSuchGpu {
        /// What was asked for.
        index: usize,
        /// How many there are.
        found: usize,
    },
    /// The GPU or its driver lacks what the kernels need.
    Unusable {
        /// The device's name.
        name: String,
        /// What it lacks.
        reason: String,
    },
    /// There is not enough device memory.
    Memory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes in use.
        used: usize,
        /// Bytes of the heap.
        total: usize,
    },
    /// The device is lost: a reset by the driver, or a kernel that did not end.
    Lost(String),
    /// A call of Vulkan failed.
    Call {
        /// The function.
        function: &'static str,
        /// The result of Vulkan.
        result: String,
    },
    /// A body asked for what this program does not hold: an error of this crate.
    Internal(&'static str),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVulkan(reason) => write!(
                f,
                "Vulkan is not available: {reason}. Install the GPU's driver and libvulkan.so.1"
            ),
            Self::NoSuchGpu { index, found } => {
                write!(f, "there is no GPU {index}; Vulkan lists {found}")
            }
            Self::Unusable { name, reason } => write!(f, "GPU \"{name}\" is not usable: {reason}"),
            Self::Memory { asked, used, total } => write!(
                f,
                "{asked} bytes of device memory were asked for; {used} of {total} are in use"
            ),
            Self::Lost(reason) => write!(f, "the GPU is lost: {reason}. Start the process anew"),
            Self::Call { function, result } => write!(f, "{function} failed: {result}"),
            Self::Internal(what) => write!(f, "error of the program: {what}"),
        }
    }
}

impl std::error::Error for Problem {}
