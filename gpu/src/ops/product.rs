//! Matmuls on the device, and what convolutions share with them.

use tfp_kernels::base::def::Attrs;

use crate::request::Operand;
use crate::shader::Shader;
use crate::work::{Dispatch, Place, Plan, Region, spread};

/// What the rows of A are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Elements along k lie together.
    Rows = 0,
    /// Elements along m lie together.
    Columns = 1,
    /// What a convolution sees of its image.
    Image = 2,
    /// What an image sees of the gradient of its convolution.
    Gradient = 3,
    /// What a filter sees of the image, for its gradient.
    Filter = 4,
}

/// What the columns of B are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Elements along n lie together.
    Rows = 0,
    /// Elements along k lie together.
    Columns = 1,
    /// A filter with input and output channels exchanged.
    Exchanged = 2,
}

/// What is done to a sum.
#[derive(Clone, Copy, Debug, Default)]
pub struct After {
    activation: u32,
    alpha: f32,
}

/// Activations in the order of their codes in the shader.
const ACTIVATIONS: &[&str] = &[
    "",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Tanh",
    "LeakyRelu",
];

impl After {
    /// The attributes `activation` and `alpha` of a fused op.
    pub fn read(attrs: &dyn Attrs) -> Option<Self> {
        let name = attrs.string("activation").ok()?;
        let code = ACTIVATIONS.iter().position(|known| *known == name)?;
        let alpha = if name == "LeakyRelu" {
            attrs.float("alpha").ok()?
        } else {
            0.0
        };
        Some(Self {
            activation: u32::try_from(code).ok()?,
            alpha,
        })
    }
}

/// Many products, numbered in two directions.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub outer: usize,
    pub inner: usize,
    /// Elements from one A to the next in both directions, and of B.
    pub a: [usize; 2],
    pub b: [usize; 2],
}

impl Batch {
    /// One product.
    pub const ONE: Self = Self {
        outer: 1,
        inner: 1,
        a: [0; 2],
        b: [0; 2],
    };
}

/// `c = act(a * b + bias + extra)`.
pub struct Product<'a> {
    /// Rows, columns and depth.
    pub size: [usize; 3],
    pub a: (&'a Operand, Left, usize),
    pub b: (&'a Operand, Right, usize),
    pub c: &'a Operand,
    pub bias: Option<&'a Operand>,
    pub extra: Option<&'a Operand>,
    pub after: After,
    pub batch: Batch,
    /// A convolution's sizes in the order of the shader's words.
    pub convolution: [usize; 13],
    /// Whether elements that lie together are a multiple of four, in A and B.
    pub vectors: [bool; 2],
}

/// Groups that keep a large device busy.
const GROUPS: usize = 264;
/// Least depth of a split.
const SPLIT: usize = 128;
const MOST_SPLITS: usize = 64;
/// Most bytes of scratch memory.
const SCRATCH: usize = 1 << 28;
const DEPTH: usize = 16;

impl Product<'_> {
    /// The plan; `None` if a size is too large for it.
    pub fn plan(&self) -> Option<Plan> {
        let [m, n, k] = self.size;
        let products = self.batch.outer * self.batch.inner;
        if m == 0 || n == 0 || k == 0 || products == 0 {
            return None;
        }
        // Places are numbers of 31 bits.
        let largest = [self.a.0.elements(), self.b.0.elements(), self.c.elements()];
        if largest.iter().any(|&elements| elements >= 1 << 31) {
            return None;
        }
        let tiles = |tile: usize| m.div_ceil(tile) * n.div_ceil(tile) * products;
        let (shader, tile) = if m > 64 && n > 64 && tiles(128) * 2 >= GROUPS {
            (Shader::Product128, 128)
        } else {
            (Shader::Product64, 64)
        };
        let splits = if products == 1 {
            splits(tiles(tile), (m * n, k))
        } else {
            1
        };
        let chunk = k.div_ceil(splits).next_multiple_of(DEPTH);
        let splits = k.div_ceil(chunk);
        let groups = [m.div_ceil(tile), n.div_ceil(tile), products * splits];
        let groups = [number(groups[0])?, number(groups[1])?, number(groups[2])?];
        if groups[1] > 65_535 || groups[2] > 65_535 {
            return None;
        }
        let bytes = m * n * splits * 4;
        let split = splits > 1;
        let target = if split {
            Region {
                place: Place::Scratch(0),
                bytes,
            }
        } else {
            self.c.region()
        };
        let added = u32::from(self.bias.is_some()) | u32::from(self.extra.is_some()) << 1;
        let vectors = u32::from(self.vectors[0])
            | u32::from(self.vectors[1]) << 1
            | u32::from(n % 4 == 0) << 2;
        let (activation, within) = if split {
            (0, 0)
        } else {
            (self.after.activation, added)
        };
        let a = self.a.0.region();
        let b = self.b.0.region();
        let spare = |operand: Option<&Operand>| operand.map_or(target, Operand::region);
        let dispatch = Dispatch {
            shader,
            constants: vec![
                self.a.1 as u32,
                self.b.1 as u32,
                vectors,
                activation,
                within,
            ],
            words: self.words(chunk, splits)?,
            buffers: vec![
                a,
                a,
                b,
                b,
                spare(self.bias),
                spare(self.extra),
                target,
                target,
            ],
            groups,
        };
        let mut plan = Plan::one(dispatch, 2 * (m * n * k * products) as u64);
        if split {
            plan.scratch = bytes;
            plan.dispatches.push(Dispatch {
                shader: Shader::Fold,
                constants: vec![self.after.activation, added],
                words: vec![
                    number(m * n)?,
                    number(n)?,
                    number(splits)?,
                    self.after.alpha.to_bits(),
                ],
                buffers: vec![target, spare(self.bias), spare(self.extra), self.c.region()],
                groups: spread((m * n).div_ceil(256))?,
            });
        }
        Some(plan)
    }

    fn words(&self, chunk: usize, splits: usize) -> Option<Vec<u32>> {
        let [m, n, k] = self.size;
        let batch = &self.batch;
        let sizes = [m, n, k, self.a.2, self.b.2, chunk, splits, batch.inner];
        let steps = [batch.a[0], batch.a[1], batch.b[0], batch.b[1]];
        let mut words = Vec::with_capacity(26);
        for value in sizes.into_iter().chain(steps) {
            words.push(number(value)?);
        }
        words.push(self.after.alpha.to_bits());
        for value in self.convolution {
            words.push(number(value)?);
        }
        Some(words)
    }
}

/// In how many parts the depth is split, so that few tiles keep the device busy.
fn splits(tiles: usize, (elements, k): (usize, usize)) -> usize {
    if tiles * 2 > GROUPS {
        return 1;
    }
    let wanted = GROUPS.div_ceil(tiles).min(k / SPLIT).min(MOST_SPLITS);
    wanted.min(SCRATCH / (elements * 4)).max(1)
}

fn number(value: usize) -> Option<u32> {
    u32::try_from(value).ok()
}
