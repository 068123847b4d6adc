//! Steps that go through blocks which stay in the cache.

use super::wide::{NO_SPEC, Wide, widened};
use crate::base::def::{Call, Inputs, KernelDef, Spec, State, TensorMut, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::half::Half;
use crate::base::parallel::Serial;
use crate::base::shape::Shape;
use crate::simd::numbers;

/// Inputs that what goes through blocks may have.
pub(super) const SIDES: usize = 3;

/// Elements of a block.
pub(super) const BLOCK: usize = 256;

/// Memory for the numbers of a block.
#[repr(align(64))]
struct Block([u8; BLOCK * size_of::<f32>()]);

/// A step that goes through blocks.
pub(super) struct Blocks<'c, 'a> {
    pub(super) def: &'static KernelDef,
    pub(super) inputs: &'c Inputs<'a>,
    pub(super) state: &'c State,
    /// Type of the output.
    pub(super) dtype: DType,
    /// Elements of the output.
    pub(super) total: usize,
}

impl Blocks<'_, '_> {
    /// The elements of the output from number `start` on.
    pub(super) fn run(&self, start: usize, out: &mut [u8]) -> Result<()> {
        let mut blocks = [const { Block([0; BLOCK * size_of::<f32>()]) }; SIDES];
        let mut result = Block([0; BLOCK * size_of::<f32>()]);
        let size = self.dtype.size();
        for (piece, out) in out.chunks_mut(BLOCK * size).enumerate() {
            let (at, len) = (start + piece * BLOCK, out.len() / size);
            let row = Shape::new(&[len])?;
            let mut specs = [NO_SPEC; SIDES];
            for ((block, spec), tensor) in
                blocks.iter_mut().zip(&mut specs).zip(self.inputs.tensors)
            {
                let repeated = tensor.shape().elements() == 1 && self.total != 1;
                *spec = Spec::new(DType::F32, if repeated { Shape::SCALAR } else { row })?;
                let block = numbers::within(&mut block.0);
                if tensor.is_forwarded() {
                    let spec = Spec::new(self.dtype, row)?;
                    let (half, bits) = TensorRef::new(&spec, out)?.halves("input")?;
                    half.widen(bits, block);
                } else {
                    let (half, bits) = tensor.halves("input")?;
                    let part = if repeated { 0..1 } else { at..at + len };
                    half.widen(bits.get(part).unwrap_or_default(), block);
                }
            }
            let mut refs = [TensorRef::forwarded(&NO_SPEC); SIDES];
            for ((slot, spec), block) in refs.iter_mut().zip(&specs).zip(&blocks) {
                *slot = TensorRef::new(spec, block.0.get(..spec.bytes()).unwrap_or_default())?;
            }
            let made = Spec::new(widened(self.dtype), row)?;
            let rounds = Half::of(self.dtype);
            let to = match rounds {
                Some(_) => result.0.get_mut(..made.bytes()).unwrap_or_default(),
                None => &mut *out,
            };
            (self.def.run)(&mut Call {
                inputs: Inputs {
                    tensors: refs.get(..self.inputs.tensors.len()).unwrap_or_default(),
                    attrs: &Wide(self.inputs.attrs),
                },
                outputs: &mut [TensorMut::new(&made, to)?],
                scratch: &mut [],
                parallel: &Serial,
                state: self.state,
            })?;
            if rounds.is_some() {
                let spec = Spec::new(self.dtype, row)?;
                let mut out = TensorMut::new(&spec, out)?;
                let (half, bits) = out.halves_mut("output")?;
                half.round(numbers::within(&mut result.0), bits);
            }
        }
        Ok(())
    }
}
