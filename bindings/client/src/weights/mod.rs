//! Weights from and to files of any program: safetensors, NumPy's `.npz`, HDF5, and checkpoints of
//! TensorFlow, among them those of Keras 3.
//!
//! A [`TensorFile`] has tensors by name, [`NamedVariables`] has variables by name, and a [`Mapping`] says
//! which name in the file is which variable's. What does not match is in the report, [`Loaded`].
//!
//! ```no_run
//! use tfp::weights::{self, Mapping, TensorFile};
//! # fn main() -> tfp::Result<()> {
//! # let model: tfp::nn::Model = todo!();
//! // A Dense layer of PyTorch keeps its kernel transposed.
//! let names = Mapping::new()
//!     .replace("dense/kernel", "fc.weight")
//!     .replace("dense/bias", "fc.bias")
//!     .permute("kernel", &[1, 0]);
//! let report = TensorFile::open("model.safetensors")?.load(&model, &names)?;
//! println!("{report}");
//! weights::save("model.npz", &model, &Mapping::new())?;
//! # Ok(())
//! # }
//! ```

mod file;
mod layout;
mod load;
mod mapping;
mod named;
mod save;

pub use file::TensorFile;
pub use load::{Loaded, Mismatch};
pub use mapping::Mapping;
pub use named::{InSession, NamedVariables};
pub use save::{save, write_npz, write_safetensors};
