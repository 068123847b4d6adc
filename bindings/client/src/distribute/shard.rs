//! Parts of a dataset.

use tfp_core::{Error, Result, Tensor};

use super::workers::MultiWorker;
use crate::nn::training::{Batch, Source};

/// The part of each batch that one worker trains on.
///
/// The batches of the whole are those of one process: of each, the worker with rank `r` of `n` has the rows
/// from `r * rows / n` up to `(r + 1) * rows / n`. So all workers make the same number of steps. A part
/// may be empty where a batch has fewer rows than there are workers; it counts for nothing.
#[derive(Clone, Debug)]
pub struct Shard<S> {
    source: S,
    rank: usize,
    count: usize,
}

impl<S: Source> Shard<S> {
    /// The part of rank `rank` of `count`, of a source that all workers read in the same order.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a rank that is not below the count.
    pub fn new(source: S, rank: usize, count: usize) -> Result<Self> {
        if rank >= count {
            return Err(Error::argument(format!(
                "part {rank} of {count} parts of a dataset: expected a number below {count}"
            )));
        }
        Ok(Self {
            source,
            rank,
            count,
        })
    }

    /// Returns the whole.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    fn rows(&self, tensor: &Tensor) -> Result<Tensor> {
        let [rows, row @ ..] = tensor.dims() else {
            return Err(Error::argument("a scalar in a batch has no rows to share"));
        };
        let rows = usize::try_from(*rows).unwrap_or(0);
        let (from, to) = (
            self.rank * rows / self.count,
            (self.rank + 1) * rows / self.count,
        );
        let bytes = tensor.as_bytes()?;
        let size = bytes.len() / rows.max(1);
        let dims = [&[(to - from) as i64], row].concat();
        let part = bytes.get(from * size..to * size).unwrap_or_default();
        Tensor::from_bytes(tensor.dtype(), part, &dims)
    }

    fn part(&self, batch: &Batch) -> Result<Batch> {
        let rows = |tensors: &[Tensor]| -> Result<Vec<Tensor>> {
            tensors.iter().map(|tensor| self.rows(tensor)).collect()
        };
        Ok(Batch {
            x: rows(&batch.x)?,
            truth: rows(&batch.truth)?,
            weights: rows(&batch.weights)?,
        })
    }
}

impl MultiWorker {
    /// Returns this worker's part of each batch.
    ///
    /// # Errors
    /// None: a rank is below the count.
    pub fn shard<S: Source>(&self, source: S) -> Result<Shard<S>> {
        Shard::new(source, self.rank(), self.count())
    }
}

impl<S: Source> Source for Shard<S> {
    fn count(&self) -> Option<usize> {
        self.source.count()
    }

    fn epoch(&self, epoch: u64) -> Result<Box<dyn Iterator<Item = Result<Batch>> + '_>> {
        let batches = self.source.epoch(epoch)?;
        Ok(Box::new(batches.map(|batch| self.part(&batch?))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::training::Batches;

    #[test]
    fn parts_are_all_rows_in_order() -> Result<()> {
        let x = Tensor::from_vec((0..14).collect::<Vec<i32>>(), &[7, 2])?;
        let y = Tensor::from_vec((0..7).collect::<Vec<i32>>(), &[7])?;
        for count in [1, 2, 3, 4] {
            let mut found: Vec<Vec<i32>> = vec![Vec::new(); 2];
            let parts: Vec<_> = (0..count)
                .map(|rank| {
                    let whole = Batches::new(x.share()?, y.share()?, 5)?.shuffled(3);
                    Shard::new(whole, rank, count)
                })
                .collect::<Result<_>>()?;
            for part in &parts {
                assert_eq!(part.count(), Some(2));
                for (index, batch) in part.epoch(1)?.enumerate() {
                    let batch = batch?;
                    let (x, y) = (
                        batch.x[0].as_slice::<i32>()?,
                        batch.truth[0].to_vec::<i32>()?,
                    );
                    assert_eq!(batch.x[0].dims(), [y.len() as i64, 2]);
                    assert!(x.iter().step_by(2).zip(&y).all(|(x, y)| *x == 2 * y));
                    found[index].extend(y);
                }
            }
            let whole = parts[0].source().iter(1);
            for (batch, found) in whole.zip(&found) {
                assert_eq!(batch?.truth[0].as_slice::<i32>()?, found);
            }
        }
        assert!(Shard::new(Batches::new(x, y, 5)?, 2, 2).is_err());
        Ok(())
    }
}
