//! A training that several workers make together.

use std::sync::{Mutex, PoisonError};

use tfp_core::{Context, Error, Result, Tensor};

use super::Trainer;
use super::engine::Engine;
use crate::distribute::MultiWorker;
use crate::nn::optimizer::Rule;

impl<R: Rule> Trainer<R> {
    /// Makes this the training of all workers: each gives its part of a batch to [`Self::train_on`] or
    /// [`Self::fit`], and has the loss, the metrics and the values that one process would have of the whole
    /// batch. All workers begin with the chief's values.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a model whose variables are not in
    /// [`MultiWorker::context`], as those of a graph, and as for [`MultiWorker::all_reduce`].
    pub fn across(mut self, workers: &MultiWorker) -> Result<Self> {
        match &mut self.engine {
            Engine::Eager(eager) if eager.is_in(workers.context()) => {
                eager.set_workers(workers, &self.model);
            }
            Engine::Eager(_) | Engine::Graph(_) => {
                return Err(Error::argument(
                    "the variables of the model are not in the context of the workers: begin the model \
                     with Weights::new(workers.context(), seed)",
                ));
            }
        }
        self.synchronize()?;
        Ok(self)
    }

    /// Gives all workers what the chief has: the variables, what the optimizer keeps, and where the training
    /// is. After the chief has restored a checkpoint, all workers call this. Without workers it does
    /// nothing.
    ///
    /// # Errors
    /// As for [`MultiWorker::broadcast`].
    pub fn synchronize(&mut self) -> Result<()> {
        let Engine::Eager(eager) = &self.engine else {
            return Ok(());
        };
        let Some(workers) = eager.workers() else {
            return Ok(());
        };
        let cx = workers.context();
        let mut variables = self.model.variables().to_vec();
        variables.extend(self.engine.slots().into_iter().cloned());
        let mut values = Vec::new();
        for variable in &variables {
            values.push(variable.read(cx)?);
        }
        let scaling = self.scaling.unwrap_or_default();
        let places = [
            self.step,
            self.epoch,
            self.batch,
            scaling.finite,
            scaling.skipped,
        ];
        let places = places.map(|place| i64::try_from(place).unwrap_or(i64::MAX));
        values.push(cx.constant(&Tensor::from_array(places)?)?);
        let rate = self.own_rate().unwrap_or(f32::NAN);
        values.push(cx.constant(&Tensor::from_array([rate, scaling.scale])?)?);
        let mut found = workers.broadcast(&values)?;
        let rate = found.pop().map(|rate| rate.to_tensor()).transpose()?;
        let places = found.pop().map(|places| places.to_tensor()).transpose()?;
        let (Some(rate), Some(places)) = (rate, places) else {
            return Err(Error::argument("the chief sent too few values"));
        };
        if !workers.is_chief() {
            for (variable, value) in variables.iter().zip(&found) {
                variable.assign(cx, value)?;
            }
        }
        let &[rate, scale] = rate.as_slice::<f32>()? else {
            return Err(Error::argument("the chief sent too few numbers"));
        };
        if let [step, epoch, batch, finite, skipped] = *places.as_slice::<i64>()? {
            let number = |place: i64| u64::try_from(place).unwrap_or(0);
            (self.step, self.epoch, self.batch) = (number(step), number(epoch), number(batch));
            if let Some(scaling) = &mut self.scaling {
                (scaling.finite, scaling.skipped) = (number(finite), number(skipped));
                scaling.scale = scale;
            }
        }
        let own = Mutex::get_mut(&mut self.rate);
        *own.unwrap_or_else(PoisonError::into_inner) = Some(rate).filter(|rate| !rate.is_nan());
        let workers = workers.clone();
        self.synchronize_meters(&workers)
    }

    /// Gives all workers what the chief has measured of the epoch that is going on.
    fn synchronize_meters(&mut self, workers: &MultiWorker) -> Result<()> {
        let cx = workers.context();
        let chief = |tensor: Tensor| -> Result<Tensor> {
            let found = workers.broadcast(&[cx.constant(&tensor)?])?;
            match found.first() {
                Some(found) => found.to_tensor(),
                None => Err(Error::argument("the chief sent no value")),
            }
        };
        let meters = self.meters.iter();
        let lengths = meters.map(|(_, meter)| meter.sums().len() as i64);
        let lengths: Vec<i64> = lengths.collect();
        let lengths = chief(Tensor::from_slice(&lengths, &[lengths.len() as i64])?)?;
        let lengths = lengths.to_vec::<i64>()?;
        let total = usize::try_from(lengths.iter().sum::<i64>()).unwrap_or(0);
        if total == 0 {
            self.meters.iter_mut().for_each(|(_, meter)| meter.reset());
            return Ok(());
        }
        let meters = self.meters.iter();
        let mut sums: Vec<f64> = meters
            .flat_map(|(_, meter)| meter.sums().to_vec())
            .collect();
        sums.resize(total, 0.0);
        let sums = chief(Tensor::from_vec(sums, &[total as i64])?)?;
        let mut sums = sums.as_slice::<f64>()?;
        for ((_, meter), length) in self.meters.iter_mut().zip(lengths) {
            let length = usize::try_from(length).unwrap_or(0).min(sums.len());
            let (own, rest) = sums.split_at(length);
            meter.set_sums(own.to_vec());
            sums = rest;
        }
        Ok(())
    }
}
