//! Two layers, one after the other, whose matrices are read as one.

use super::Dense;
use crate::error::{Error, Result, at};
use crate::kernels::gemm::thin::Pair;
use crate::memory::{Memory, Slot, Source};

impl Dense {
    /// Computes this layer and the one that reads it, with scratch memory for its own result right
    /// after the output.
    ///
    /// # Errors
    /// [`Error::Layer`] or [`Error::Plan`] if a slot does not fit.
    pub fn run_then<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        next: &Self,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let x = reader.read(x.into())?;
        let (weights, parallel) = (reader.weights, reader.parallel);
        let rows = x.len() / self.kernel.rows.max(1);
        let between = rows * self.kernel.columns;
        let between = scratch.get_mut(..between).ok_or(Error::Plan {
            expected: "scratch memory for the result between two layers",
        })?;
        if rows != 1 {
            self.rows(x, (between, &mut []), false, weights, parallel)?;
            return next.rows(between, (out, &mut []), false, weights, parallel);
        }
        let pair = Pair {
            matrices: [
                self.kernel.packed(self.name)?,
                next.kernel.packed(next.name)?,
            ],
            biases: [self.bias(weights)?, next.bias(weights)?],
            activations: [self.activation, next.activation],
            backwards: self.turn.next(),
        };
        pair.run(x, between, out, parallel).map_err(at(next.name))
    }
}
