//! Event files, which TensorBoard shows.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tfp_core::Result;

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
        let mut event = Message::default();
        event.double(1, now());
        event.bytes(3, b"brain.Event:2");
        events.write(&event.0)?;
        Ok(events)
    }

    /// Adds numbers of a step.
    fn scalars(&mut self, step: u64, values: &[(String, f32)]) -> Result<()> {
        for (tag, value) in values {
            let mut tensor = Message::default();
            // float32, and a shape without dimensions.
            tensor.integer(1, 1);
            tensor.bytes(2, &[]);
            tensor.bytes(5, &value.to_le_bytes());
            let mut plugin = Message::default();
            plugin.bytes(1, b"scalars");
            let mut metadata = Message::default();
            metadata.bytes(1, &plugin.0);
            // Scalars, as a class of data.
            metadata.integer(4, 1);
            let mut one = Message::default();
            one.bytes(1, tag.as_bytes());
            one.bytes(8, &tensor.0);
            one.bytes(9, &metadata.0);
            let mut summary = Message::default();
            summary.bytes(1, &one.0);
            let mut event = Message::default();
            event.double(1, now());
            event.integer(2, step);
            event.bytes(5, &summary.0);
            self.write(&event.0)?;
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

/// A message of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }
}
