//! Where a reading is, in files.

use std::path::Path;

use tfp_core::{DataType, Error, ErrorKind, Result};

use super::dataset::Elements;
use crate::checkpoint::{CheckpointReader, host, write_tensors};
use crate::context::any::HOST;
use crate::ops;

/// The name of the state in its files.
const STATE: &str = "iterator_state";

impl Elements {
    /// Writes where the reading is, as a checkpoint with a prefix: which elements were read, and what
    /// shuffling, prefetching and caching in memory hold. One that is there is replaced once the new one
    /// is whole.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`](tfp_core::Code::FailedPrecondition) for a dataset whose functions have
    /// a state of their own, as random numbers without a seed, and [`ErrorKind::File`] for a folder that
    /// can't be written.
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<()> {
        let (cx, iterator) = self.parts();
        let options = ops::SerializeIteratorOptions {
            // A state that is not in the file would be lost: that is an error.
            external_state_policy: Some(2),
        };
        let state = ops::serialize_iterator(&cx.on_device(HOST)?, iterator, options)?;
        write_tensors(prefix, &[(STATE, &state.to_tensor()?)])
    }

    /// Goes on where the reading was that [wrote](Self::save) these files, of a dataset made by the same
    /// steps.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::File`] for files of something else or that
    /// are damaged, and what TensorFlow says for those of another dataset.
    pub fn restore(&mut self, prefix: impl AsRef<Path>) -> Result<()> {
        let prefix = prefix.as_ref();
        let reader = CheckpointReader::open(prefix)?;
        if reader.entry(STATE).map(|(dtype, _)| dtype) != Some(DataType::VARIANT) {
            return Err(Error::new(ErrorKind::File {
                path: prefix.display().to_string(),
                problem: "it holds no state of a reading".to_owned(),
            }));
        }
        let state = host()?.handle(&reader.read(STATE)?)?;
        let (cx, iterator) = self.parts();
        let state = cx.on_device(HOST)?.handle(&state.to_tensor()?)?;
        ops::deserialize_iterator(&cx.on_device(HOST)?, iterator, &state)?;
        self.go_on();
        Ok(())
    }
}
