//! What a training leaves in files, and how it goes on from there.

use std::path::Path;
use std::sync::Mutex;

use tfp_core::{Error, Result, Tensor};

use super::Trainer;
use crate::checkpoint::{Checkpoint, index_path};
use crate::files::file_error;
use crate::nn::optimizer::Rule;
use crate::saved_model::ModelWriter;

/// Where a checkpoint has the number of steps.
const STEP: &str = "step";
/// Where it has the number of epochs, and of batches of the next one.
const EPOCH: &str = "epoch";
const BATCH: &str = "batch";
/// Where it has a learning rate that was set, NaN if none was.
const RATE: &str = "rate";
/// Where it has the scale of the loss, how many steps were finite since it changed, and how many were
/// not.
const SCALE: &str = "loss_scale/scale";
const FINITE: &str = "loss_scale/finite";
const SKIPPED: &str = "loss_scale/skipped";
/// What the name of a meter's sums begins with.
const METER: &str = "meter";

impl<R: Rule> Trainer<R> {
    /// Returns the model's variables at `model/<name>`, and the optimizer's at `optimizer/<name>/<slot>`.
    fn checkpoint(&self) -> Result<Checkpoint> {
        let mut checkpoint = Checkpoint::new();
        for variable in self.model.variables() {
            checkpoint.add(&format!("model/{}", variable.name()), variable)?;
        }
        for slot in self.engine.slots() {
            checkpoint.add(slot.name(), slot)?;
        }
        Ok(checkpoint)
    }

    /// Returns where a checkpoint has the sums of each meter.
    fn meter_names(&self) -> Vec<String> {
        let meters = self.meters.iter().enumerate();
        meters
            .map(|(index, (name, _))| format!("{METER}/{index}_{name}"))
            .collect()
    }

    /// Writes a checkpoint of all that the training goes on from: the model, what the optimizer keeps,
    /// the numbers of steps, of epochs and of batches of the next one, what was measured of it, and the
    /// scale of the loss. A graph's training reads what an eager one wrote, and Python both.
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) or TensorFlow's status for files that can't be
    /// written.
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<()> {
        let names = self.meter_names();
        let mut more = Vec::new();
        let mut counts = vec![(STEP, self.step), (EPOCH, self.epoch), (BATCH, self.batch)];
        if let Some(scaling) = &self.scaling {
            counts.extend([(FINITE, scaling.finite), (SKIPPED, scaling.skipped)]);
            more.push((SCALE, Tensor::scalar(scaling.scale)?));
        }
        for (name, number) in counts {
            let number = i64::try_from(number)
                .map_err(|_| Error::argument(format!("{name} {number} is too large")))?;
            more.push((name, Tensor::scalar(number)?));
        }
        more.push((RATE, Tensor::scalar(self.own_rate().unwrap_or(f32::NAN))?));
        for (name, (_, meter)) in names.iter().zip(&self.meters) {
            let sums = meter.sums();
            more.push((name, Tensor::from_slice(sums, &[sums.len() as i64])?));
        }
        let checkpoint = self.checkpoint()?;
        checkpoint.write_with(self.engine.session(), prefix.as_ref(), &more)
    }

    /// Writes a SavedModel that infers: signature `serving_default` takes the inputs, of any batch, and
    /// returns the outputs, by their names; those of a [`Sequential`](crate::nn::layer::Sequential) are
    /// `x` and `y`. Variables are at their names. `tf.saved_model.load`, Keras' `TFSMLayer`,
    /// [`Model`](crate::Model) and [`SavedModel`](crate::SavedModel) load it.
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) for a folder that can't be written, and what
    /// TensorFlow says.
    pub fn export(&self, folder: impl AsRef<Path>) -> Result<()> {
        let mut writer = ModelWriter::new();
        for variable in self.model.variables() {
            writer.variable(variable.name(), variable)?;
        }
        self.engine
            .export(&self.model, &self.plan, writer, folder.as_ref())
    }

    /// Goes on from a checkpoint that [`Self::save`] wrote: further steps have the losses that they
    /// would have had, to the bit. Of one that has variables and steps alone, the first epoch is next.
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) for one that is missing or damaged,
    /// [`ErrorKind::NotFound`](tfp_core::ErrorKind::NotFound) with the names of variables that it does
    /// not have, and [`ErrorKind::Shape`](tfp_core::ErrorKind::Shape) for those of another model.
    pub fn restore(&mut self, prefix: impl AsRef<Path>) -> Result<()> {
        let checkpoint = self.checkpoint()?;
        let names = self.meter_names();
        let mut paths = vec![STEP, EPOCH, BATCH, FINITE, SKIPPED, RATE, SCALE];
        let others = paths.len();
        paths.extend(names.iter().map(String::as_str));
        let prefix = prefix.as_ref();
        let found = checkpoint.read_with(self.engine.session(), prefix, &paths)?;
        let damaged = |problem: &str| file_error(&index_path(prefix), problem);
        let number = |index: usize| {
            let tensor = found.get(index).and_then(Option::as_ref);
            let number = tensor.map(Tensor::to_scalar::<i64>).transpose()?;
            number
                .map(|number| u64::try_from(number).map_err(|_| damaged("a count is negative")))
                .transpose()
        };
        let step = number(0)?.ok_or_else(|| damaged("it has no number of steps"))?;
        let (epoch, batch) = (number(1)?.unwrap_or(0), number(2)?.unwrap_or(0));
        let (finite, skipped) = (number(3)?.unwrap_or(0), number(4)?.unwrap_or(0));
        let float = |index: usize| {
            let tensor = found.get(index).and_then(Option::as_ref);
            tensor.map(Tensor::to_scalar::<f32>).transpose()
        };
        let (rate, scale) = (float(5)?, float(6)?);
        let mut sums = Vec::new();
        for tensor in &found[others..] {
            sums.push(
                tensor
                    .as_ref()
                    .map_or(Ok(Vec::new()), Tensor::to_vec::<f64>)?,
            );
        }
        (self.step, self.epoch, self.batch) = (step, epoch, batch);
        if let (Some(scaling), Some(scale)) = (&mut self.scaling, scale) {
            (scaling.scale, scaling.finite, scaling.skipped) = (scale, finite, skipped);
        }
        self.rate = Mutex::new(rate.filter(|rate| !rate.is_nan()));
        for ((_, meter), sums) in self.meters.iter_mut().zip(sums) {
            meter.set_sums(sums);
        }
        Ok(())
    }
}
