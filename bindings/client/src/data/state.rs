//! Where a reading is, in files.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tfp_core::{DataType, EagerContext, Error, ErrorKind, Result, Tensor, TensorHandle};

use super::dataset::Elements;
use crate::checkpoint::{Checkpoint, CheckpointReader, Stateful, write_tensors};
use crate::context::any::HOST;
use crate::ops;

/// The name of the state in its files.
const STATE: &str = "iterator_state";

/// What a reading and the checkpoints that hold its state share.
struct Place {
    cx: EagerContext,
    iterator: TensorHandle,
    is_done: Arc<AtomicBool>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reading")
    }
}

impl Stateful for Place {
    fn state(&self) -> Result<Tensor> {
        let options = ops::SerializeIteratorOptions {
            // A state that is not in the file would be lost: that is an error.
            external_state_policy: Some(2),
        };
        let cx = self.cx.on_device(HOST)?;
        ops::serialize_iterator(&cx, &self.iterator, options)?.to_tensor()
    }

    fn set_state(&self, state: &Tensor) -> Result<()> {
        let cx = self.cx.on_device(HOST)?;
        let state = cx.handle(state)?;
        ops::deserialize_iterator(&cx, &self.iterator, &state)?;
        self.is_done.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Elements {
    fn place(&self) -> Place {
        let (cx, iterator, is_done) = self.parts();
        Place {
            cx: cx.clone(),
            iterator: iterator.clone(),
            is_done: Arc::clone(is_done),
        }
    }

    /// Lets a checkpoint hold where the reading is, at a path as those of its variables: each save writes
    /// it, and each restoring sets the reading back, of a dataset made by the same steps. In Python it is
    /// `tf.train.Checkpoint(iterator=iter(dataset))`; each goes on where the other was.
    ///
    /// A save has the errors of [`Self::save`], too.
    ///
    /// # Errors
    /// As for [`Checkpoint::add`].
    pub fn track(&self, checkpoint: &mut Checkpoint, path: &str) -> Result<()> {
        checkpoint.add_state(path, Box::new(self.place()))
    }

    /// Writes where the reading is, as a checkpoint with a prefix: which elements were read, and what
    /// shuffling, prefetching and caching in memory hold. One that is there is replaced once the new one
    /// is whole. [`Self::track`] puts it into a checkpoint with variables.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`](tfp_core::Code::FailedPrecondition) for a dataset whose functions have
    /// a state of their own, as random numbers without a seed, and [`ErrorKind::File`] for a folder that
    /// can't be written.
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<()> {
        write_tensors(prefix, &[(STATE, &self.place().state()?)])
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
        self.place().set_state(&reader.read(STATE)?)
    }
}
