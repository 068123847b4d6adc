//! Data in memory, in batches.

use tfp_core::{Error, Result, Tensor};

/// Inputs and truths of some samples.
#[derive(Debug)]
pub struct Batch {
    /// The inputs: (batch, ...).
    pub x: Tensor,
    /// The truths: (batch, ...).
    pub truth: Tensor,
}

/// Where a training's batches come from.
pub trait Source {
    /// Returns the number of batches of an epoch, when it is known.
    fn count(&self) -> Option<usize>;

    /// Reads the batches of an epoch.
    ///
    /// # Errors
    /// Those of reading.
    fn epoch(&self, epoch: u64) -> Result<Box<dyn Iterator<Item = Result<Batch>> + '_>>;
}

/// Data in memory that is read in batches.
#[derive(Debug)]
pub struct Batches {
    x: Tensor,
    truth: Tensor,
    size: usize,
    shuffle: Option<u64>,
}

impl Batches {
    /// Data whose first dimension is the samples, in batches of a size; the last one may be smaller.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when both don't have the same number of
    /// samples or the size is zero.
    pub fn new(x: Tensor, truth: Tensor, size: usize) -> Result<Self> {
        let count = |tensor: &Tensor| tensor.dims().first().copied();
        if size == 0 || count(&x).is_none() || count(&x) != count(&truth) {
            return Err(Error::argument(format!(
                "batches of {size} samples from inputs of shape {} and truths of shape {}: expected \
                 a size above zero and as many truths as inputs",
                x.shape(),
                truth.shape()
            )));
        }
        Ok(Self {
            x,
            truth,
            size,
            shuffle: None,
        })
    }

    /// Gives each epoch another order of samples. Equal seeds give equal orders.
    #[must_use]
    pub fn shuffled(self, seed: u64) -> Self {
        Self {
            shuffle: Some(seed),
            ..self
        }
    }

    /// Returns the number of samples.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.x
            .dims()
            .first()
            .map_or(0, |&count| usize::try_from(count).unwrap_or(0))
    }

    /// Returns the number of batches.
    #[must_use]
    pub fn count(&self) -> usize {
        self.samples().div_ceil(self.size)
    }

    /// Reads the batches of an epoch.
    pub fn iter(&self, epoch: u64) -> impl Iterator<Item = Result<Batch>> + '_ {
        let mut order: Vec<usize> = (0..self.samples()).collect();
        if let Some(seed) = self.shuffle {
            shuffle(&mut order, seed.wrapping_add(epoch));
        }
        let (count, size) = (self.count(), self.size);
        (0..count).map(move |index| {
            let rows = &order[index * size..order.len().min((index + 1) * size)];
            Ok(Batch {
                x: take(&self.x, rows)?,
                truth: take(&self.truth, rows)?,
            })
        })
    }
}

impl Source for Batches {
    fn count(&self) -> Option<usize> {
        Some(self.count())
    }

    fn epoch(&self, epoch: u64) -> Result<Box<dyn Iterator<Item = Result<Batch>> + '_>> {
        Ok(Box::new(self.iter(epoch)))
    }
}

/// The rows of a tensor.
fn take(tensor: &Tensor, rows: &[usize]) -> Result<Tensor> {
    let bytes = tensor.as_bytes()?;
    let count = tensor.dims().first().map_or(0, |&count| count as usize);
    let row = bytes.len() / count.max(1);
    let mut taken = Vec::with_capacity(row * rows.len());
    for &index in rows {
        taken.extend_from_slice(&bytes[index * row..(index + 1) * row]);
    }
    let mut dims = tensor.dims().to_vec();
    if let Some(first) = dims.first_mut() {
        *first = rows.len() as i64;
    }
    Tensor::from_bytes(tensor.dtype(), &taken, &dims)
}

/// Fisher and Yates, with the numbers of SplitMix64 (Steele et al., 2014).
fn shuffle(order: &mut [usize], seed: u64) {
    let mut state = seed;
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        order.swap(last, (z % (last as u64 + 1)) as usize);
    }
}
