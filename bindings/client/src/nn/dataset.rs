//! Datasets are what trainings read.

use std::sync::atomic::Ordering;

use tfp_core::{Error, Result};

use super::training::{Batch, Source};
use crate::data::Dataset;
use crate::ops;

impl Source for Dataset {
    fn count(&self) -> Option<usize> {
        let options = ops::DatasetCardinalityOptions::default();
        let count = ops::dataset_cardinality(self.place(), self.value(), options).ok()?;
        // Negative ones stand for infinite and unknown.
        let count = count.handle().ok()?.to_tensor().ok()?;
        usize::try_from(count.to_scalar::<i64>().ok()?).ok()
    }

    fn epoch(&self, epoch: u64) -> Result<Box<dyn Iterator<Item = Result<Batch>> + '_>> {
        // Each reading has another order: a training that goes on begins with that of its epoch.
        while self.readings().load(Ordering::Relaxed) < epoch {
            self.iter()?;
        }
        let inputs = self.inputs();
        Ok(Box::new(self.iter()?.map(move |element| {
            let element = element?;
            if element.len() <= inputs {
                return Err(Error::argument(format!(
                    "a dataset of {} tensors per element can't be trained on, expected {} and truths",
                    element.len(),
                    match inputs {
                        1 => "inputs".to_owned(),
                        inputs => format!("{inputs} inputs"),
                    }
                )));
            }
            let mut x = Vec::new();
            for handle in &element {
                x.push(handle.to_tensor()?);
            }
            let truth = x.split_off(inputs);
            Ok(Batch {
                x,
                truth,
                weights: Vec::new(),
            })
        })))
    }
}
