//! Event files, which TensorBoard shows.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tfp_core::wire::Writer;
use tfp_core::{DataType, Result};

use super::{Callback, Control, Logs, Trainer};
use crate::checkpoint::masked_crc;
use crate::files::unwritten;
use crate::nn::optimizer::Rule;

/// Writes loss, metrics and learning rate of each epoch for TensorBoard, with the folders and names of
/// Keras: `train` and `validation`, `epoch_loss`.
#[derive(Debug)]
pub struct TensorBoard {
    folder: PathBuf,
    train: Option<Events>,
    validation: Option<Events>,
}

impl TensorBoard {
    /// Writes below a folder; each training has files of its own.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self {
            folder: folder.as_ref().to_owned(),
            train: None,
            validation: None,
        }
    }
}

impl<R: Rule> Callback<R> for TensorBoard {
    fn start(&mut self, _: &Trainer<R>) -> Result<()> {
        (self.train, self.validation) = (None, None);
        Ok(())
    }

    fn end(&mut self, epoch: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        let mut train = vec![("epoch_learning_rate".to_owned(), trainer.rate())];
        let mut validation = Vec::new();
        for (name, value) in logs.iter() {
            match name.strip_prefix("val_") {
                Some(name) => validation.push((format!("epoch_{name}"), value as f32)),
                None => train.push((format!("epoch_{name}"), value as f32)),
            }
        }
        for (place, name, values) in [
            (&mut self.train, "train", train),
            (&mut self.validation, "validation", validation),
        ] {
            if values.is_empty() {
                continue;
            }
            let events = match place.take() {
                Some(events) => events,
                None => Events::new(&self.folder.join(name))?,
            };
            place.insert(events).scalars(epoch as u64, &values)?;
        }
        Ok(Control::Continue)
    }

    fn finish(&mut self, _: &Trainer<R>) -> Result<()> {
        (self.train, self.validation) = (None, None);
        Ok(())
    }
}

/// A file of events.
#[derive(Debug)]
struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    fn new(folder: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        fs::create_dir_all(folder).map_err(unwritten(folder))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (seconds, process) = (now() as u64, std::process::id());
        let path = folder.join(format!(
            "events.out.tfevents.{seconds}.rust.{process}.{number}.v2"
        ));
        let file = File::create(&path).map_err(unwritten(&path))?;
        let mut events = Self { path, file };
        let mut event = Writer::new();
        event.double(1, now());
        event.bytes(3, b"brain.Event:2");
        events.write(&event.into_bytes())?;
        Ok(events)
    }

    /// Adds numbers of a step.
    fn scalars(&mut self, step: u64, values: &[(String, f32)]) -> Result<()> {
        for (tag, value) in values {
            let mut event = Writer::new();
            event.double(1, now());
            event.int(2, step as i64);
            event.message(5, |summary| {
                summary.message(1, |one| {
                    one.bytes(1, tag.as_bytes());
                    one.message(8, |tensor| {
                        tensor.int(1, DataType::FLOAT.number().into());
                        // A shape without dimensions.
                        tensor.bytes(2, &[]);
                        tensor.floats(5, &[*value]);
                    });
                    one.message(9, |metadata| {
                        metadata.message(1, |plugin| plugin.bytes(1, b"scalars"));
                        // Scalars, as a class of data.
                        metadata.int(4, 1);
                    });
                });
            });
            self.write(&event.into_bytes())?;
        }
        self.file.flush().map_err(unwritten(&self.path))
    }

    /// Adds a record: its length and its bytes, each with a checksum.
    fn write(&mut self, event: &[u8]) -> Result<()> {
        let length = (event.len() as u64).to_le_bytes();
        let mut record = length.to_vec();
        record.extend(masked_crc(&length).to_le_bytes());
        record.extend(event);
        record.extend(masked_crc(event).to_le_bytes());
        self.file.write_all(&record).map_err(unwritten(&self.path))
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
