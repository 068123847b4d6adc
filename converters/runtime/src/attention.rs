//! Scaled dot-product attention.

use crate::error::{Result, at};
use crate::kernels::base::shape::Shape;
use crate::kernels::ops::moving::broadcast_to::broadcast_to;
use crate::kernels::ops::sequence::attention::{Attention as Kernel, Lines as Elements};
use crate::memory::{Memory, Reader, Slot, Source, count};

/// Queries, keys or values of heads that lie side by side: rows of `row` elements, those of the
/// heads from column `first` on.
#[derive(Clone, Copy)]
pub struct Lines<'a> {
    x: Source<'a, f32>,
    first: usize,
    row: usize,
}

impl<'a> Lines<'a> {
    /// The columns from `first` on of `x`, which has rows of `row` elements.
    #[inline]
    pub fn of(x: impl Into<Source<'a, f32>>, first: usize, row: usize) -> Self {
        let x = x.into();
        Self { x, first, row }
    }

    fn read(&self, reader: &Reader<'a>) -> Result<Elements<'a>> {
        let data = reader.read(self.x)?;
        Ok(Elements {
            data: data.get(self.first..).unwrap_or_default(),
            ld: self.row,
        })
    }
}

/// The sizes of an attention: `heads` heads per example, each of `queries` x `depth` against
/// `keys` x `depth`, with values of `width`.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Name of the layer.
    pub name: &'static str,
    /// Heads of an example.
    pub heads: usize,
    /// Queries of a head.
    pub queries: usize,
    /// Keys and values of a head.
    pub keys: usize,
    /// Elements of a query or key.
    pub depth: usize,
    /// Elements of a value.
    pub width: usize,
    /// Factor of the scores.
    pub scale: f32,
    /// Hides the keys after the query's own place.
    pub causal: bool,
}

impl Attention {
    /// The heads of all examples, by the elements that they leave.
    fn all_heads(&self, out: &[f32]) -> usize {
        count(out.len(), self.queries * self.width)
    }

    fn kernel(&self, heads: usize) -> Kernel<'static> {
        Kernel {
            heads,
            queries: self.queries,
            keys: self.keys,
            depth: self.depth,
            width: self.width,
            scale: self.scale,
            mask: None,
            causal: self.causal,
        }
    }

    /// `softmax(q * k^T * scale) * v`.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn run<'a>(
        &self,
        m: &'a mut Memory<'_>,
        [q, k, v]: [Source<'a, f32>; 3],
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let (q, k, v) = (reader.read(q)?, reader.read(k)?, reader.read(v)?);
        self.kernel(self.all_heads(out))
            .run(q, k, v, out, scratch, reader.parallel)
            .map_err(at(self.name))
    }

    /// As [`Attention::run`], where the heads of an example lie side by side, in the result, too.
    ///
    /// # Errors
    /// As [`Attention::run`].
    pub fn run_beside<'a>(
        &self,
        m: &'a mut Memory<'_>,
        [q, k, v]: [Lines<'a>; 3],
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let lines = [q.read(&reader)?, k.read(&reader)?, v.read(&reader)?];
        self.kernel(self.all_heads(out))
            .run_beside(self.heads, lines, out, scratch, reader.parallel)
            .map_err(at(self.name))
    }

    /// As [`Attention::run`], with a mask of four axes that is broadcast to `[batch, heads,
    /// queries, keys]` and added to the scores.
    ///
    /// # Errors
    /// As [`Attention::run`].
    pub fn run_masked<'a>(
        &self,
        m: &'a mut Memory<'_>,
        [q, k, v]: [Source<'a, f32>; 3],
        (mask, mask_shape): (Source<'a, f32>, [usize; 4]),
        out: Slot<f32>,
        scratch: Slot<f32>,
    ) -> Result<()> {
        let (reader, out, scratch) = m.write_with(out, scratch)?;
        let (q, k, v) = (reader.read(q)?, reader.read(k)?, reader.read(v)?);
        let mask = reader.read(mask)?;
        let (scores, scratch) = scratch
            .split_at_mut_checked(self.queries * self.keys)
            .unwrap_or_default();
        let all = Shape::new(&[self.queries, self.keys]).map_err(at(self.name))?;
        let one = Shape::new(&mask_shape[2..]).map_err(at(self.name))?;
        let (examples, heads) = (mask_shape[0], mask_shape[1]);
        let mut last = None;
        for head in 0..self.all_heads(out) {
            // A mask with one example or head serves all of them.
            let example = (head / self.heads).min(examples.saturating_sub(1));
            let place = example * heads + (head % self.heads).min(heads.saturating_sub(1));
            if last != Some(place) {
                let mask = part(mask, place, one.elements());
                broadcast_to((mask, &one), (&mut *scores, &all), reader.parallel)
                    .map_err(at(self.name))?;
                last = Some(place);
            }
            let kernel = Kernel {
                mask: Some(scores),
                ..self.kernel(1)
            };
            let from = head * self.queries * self.width;
            let to = from + self.queries * self.width;
            kernel
                .run(
                    part(q, head, self.queries * self.depth),
                    part(k, head, self.keys * self.depth),
                    part(v, head, self.keys * self.width),
                    out.get_mut(from..to).unwrap_or_default(),
                    scratch,
                    reader.parallel,
                )
                .map_err(at(self.name))?;
        }
        Ok(())
    }
}

/// Part number `index` of a slice of parts of `len` elements; empty if there is none.
fn part(x: &[f32], index: usize, len: usize) -> &[f32] {
    x.get(index * len..(index + 1) * len).unwrap_or_default()
}
