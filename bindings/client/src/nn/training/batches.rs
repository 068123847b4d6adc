//! Data in memory, in batches.

use tfp_core::{Error, Result, Tensor};

use crate::room::{extend, room};

/// Inputs and truths of some samples.
#[derive(Debug, Default)]
pub struct Batch {
    /// The inputs, in the order of the model's: (batch, ...) each.
    pub x: Vec<Tensor>,
    /// The truths, in the order of the outputs that have a loss: (batch, ...) each.
    pub truth: Vec<Tensor>,
    /// A weight per sample, (batch), for each truth or for all of them; nothing where all are one.
    pub weights: Vec<Tensor>,
}

impl Batch {
    /// A batch of one input and one truth.
    #[must_use]
    pub fn new(x: Tensor, truth: Tensor) -> Self {
        Self {
            x: vec![x],
            truth: vec![truth],
            weights: Vec::new(),
        }
    }
}

/// The tensors of a batch, for the inputs or outputs of a model: one, several in order, or several by
/// name.
#[derive(Clone, Debug)]
pub enum Tensors<'a> {
    /// In the order of the model's inputs, or of its outputs that have a loss.
    Ordered(Vec<&'a Tensor>),
    /// By the names of inputs or outputs.
    Named(Vec<(&'a str, &'a Tensor)>),
}

impl<'a> Tensors<'a> {
    /// Brings the tensors into the order of names.
    pub(super) fn ordered(self, what: &str, names: &[&str]) -> Result<Vec<&'a Tensor>> {
        let expected = || names.join(", ");
        match self {
            Self::Ordered(tensors) if tensors.len() == names.len() => Ok(tensors),
            Self::Ordered(tensors) => Err(Error::argument(format!(
                "{} tensors for the {what} {}",
                tensors.len(),
                expected()
            ))),
            Self::Named(named) => {
                for (index, (name, _)) in named.iter().enumerate() {
                    let before = &named[..index];
                    if !names.contains(name) || before.iter().any(|(other, _)| other == name) {
                        return Err(Error::argument(format!(
                            "a tensor for '{name}'; the {what} are {}, each once",
                            expected()
                        )));
                    }
                }
                let find = |name: &&str| {
                    let found = named.iter().find(|(other, _)| other == name);
                    found.map(|&(_, tensor)| tensor).ok_or_else(|| {
                        Error::argument(format!("no tensor for '{name}' of the {what}"))
                    })
                };
                names.iter().map(find).collect()
            }
        }
    }
}

impl<'a> From<&'a Tensor> for Tensors<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Self::Ordered(vec![tensor])
    }
}

impl<'a> From<&'a Vec<Tensor>> for Tensors<'a> {
    fn from(tensors: &'a Vec<Tensor>) -> Self {
        Self::Ordered(tensors.iter().collect())
    }
}

impl<'a, const N: usize> From<[&'a Tensor; N]> for Tensors<'a> {
    fn from(tensors: [&'a Tensor; N]) -> Self {
        Self::Ordered(tensors.to_vec())
    }
}

impl<'a, const N: usize> From<[(&'a str, &'a Tensor); N]> for Tensors<'a> {
    fn from(tensors: [(&'a str, &'a Tensor); N]) -> Self {
        Self::Named(tensors.to_vec())
    }
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
    x: Vec<Tensor>,
    truth: Vec<Tensor>,
    weights: Vec<Tensor>,
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
        Self::of(vec![x], vec![truth], size)
    }

    /// Data for models with several inputs or outputs, in their order.
    ///
    /// # Errors
    /// As for [`Self::new`], and [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) without an input.
    pub fn of(x: Vec<Tensor>, truth: Vec<Tensor>, size: usize) -> Result<Self> {
        let count = |tensor: &Tensor| tensor.dims().first().copied();
        let samples = x.first().and_then(count);
        let mut all = x.iter().chain(&truth);
        if size == 0 || samples.is_none() || !all.all(|tensor| count(tensor) == samples) {
            let shapes = |tensors: &[Tensor]| {
                let shapes: Vec<String> =
                    tensors.iter().map(|one| one.shape().to_string()).collect();
                shapes.join(", ")
            };
            return Err(Error::argument(format!(
                "batches of {size} samples from inputs of shape {} and truths of shape {}: expected \
                 a size above zero and as many truths as inputs",
                shapes(&x),
                shapes(&truth)
            )));
        }
        Ok(Self {
            x,
            truth,
            weights: Vec::new(),
            size,
            shuffle: None,
        })
    }

    /// Gives each sample a weight, (samples): one tensor for all truths, or one for each.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for another shape or number.
    pub fn weighted(self, weights: Vec<Tensor>) -> Result<Self> {
        let samples = self.samples() as i64;
        let fits = weights.iter().all(|one| one.dims() == [samples]);
        if !fits || (weights.len() != 1 && weights.len() != self.truth.len()) {
            return Err(Error::argument(format!(
                "{} tensors of weights for {} truths of {samples} samples: expected one of shape \
                 [{samples}] for all or for each",
                weights.len(),
                self.truth.len()
            )));
        }
        Ok(Self { weights, ..self })
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
            .first()
            .and_then(|x| x.dims().first())
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
            let take = |tensors: &[Tensor]| -> Result<Vec<Tensor>> {
                tensors.iter().map(|tensor| take(tensor, rows)).collect()
            };
            Ok(Batch {
                x: take(&self.x)?,
                truth: take(&self.truth)?,
                weights: take(&self.weights)?,
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
    let mut taken = room((row * rows.len()) as u64)?;
    for &index in rows {
        taken.extend_from_slice(&bytes[index * row..(index + 1) * row]);
    }
    let mut dims = tensor.dims().to_vec();
    if let Some(first) = dims.first_mut() {
        *first = rows.len() as i64;
    }
    Tensor::from_bytes(tensor.dtype(), &taken, &dims)
}

/// Puts tensors together along their first dimension.
pub(super) fn joined(parts: &[Tensor]) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(Error::argument("no tensor to put together"));
    };
    let mut bytes = Vec::new();
    let mut count = 0;
    for part in parts {
        let [rows, inner @ ..] = part.dims() else {
            return Err(Error::argument(
                "results of a batch without a first dimension",
            ));
        };
        if Some(inner) != first.dims().get(1..) {
            return Err(Error::argument(format!(
                "results of shapes {} and {} can't be put together",
                first.shape(),
                part.shape()
            )));
        }
        extend(&mut bytes, part.as_bytes()?)?;
        count += rows;
    }
    let mut dims = first.dims().to_vec();
    dims[0] = count;
    Tensor::from_bytes(first.dtype(), &bytes, &dims)
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
