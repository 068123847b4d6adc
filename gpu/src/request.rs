//! One call of a kernel, as a body reads it.

use std::borrow::Cow;

use tfp_kernels::base::def::{Attrs, Call, KernelDef};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::shape::Shape;

use crate::work::{Place, Region};

/// A tensor: its type, its shape and the host address of its first element.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    pub dtype: DType,
    pub shape: Shape,
    pub address: usize,
    pub bytes: usize,
}

impl Operand {
    /// The buffer over all elements, in whole vectors.
    pub fn region(&self) -> Region {
        Region {
            place: Place::Tensor(self.address),
            bytes: self.bytes.next_multiple_of(16),
        }
    }

    /// Whether the elements are float32.
    pub fn is_f32(&self) -> bool {
        self.dtype == DType::F32
    }

    /// How many elements the tensor has.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }
}

/// What a body knows of a call.
pub struct Request<'a> {
    /// The op of TensorFlow.
    pub op: &'static str,
    pub inputs: Vec<Operand>,
    pub outputs: Vec<Operand>,
    pub attrs: &'a dyn Attrs,
    /// The bytes of inputs that are not forwarded. The host may read them: no kernel is at work on them.
    host: Vec<&'a [u8]>,
    read: &'a Reader<'a>,
}

/// Copies device memory from an address, if there is a faster way than reading it.
pub type Reader<'a> = dyn Fn(usize, &mut [u8]) -> bool + 'a;

impl<'a> Request<'a> {
    /// `None` if an input's values are in the buffer of an output that the definition does not name.
    pub fn of<'c: 'a>(def: &KernelDef, call: &mut Call<'c>, read: &'a Reader<'a>) -> Option<Self> {
        let outputs: Vec<Operand> = call
            .outputs
            .iter_mut()
            .map(|tensor| {
                let (dtype, shape) = (tensor.dtype(), *tensor.shape());
                let bytes = tensor.bytes_mut();
                Operand {
                    dtype,
                    shape,
                    address: bytes.as_ptr() as usize,
                    bytes: bytes.len(),
                }
            })
            .collect();
        let mut inputs = Vec::with_capacity(call.inputs.tensors.len());
        let mut host = Vec::with_capacity(call.inputs.tensors.len());
        for (number, tensor) in call.inputs.tensors.iter().enumerate() {
            let (dtype, shape) = (tensor.dtype(), *tensor.shape());
            let mut operand = Operand {
                dtype,
                shape,
                address: tensor.bytes().as_ptr() as usize,
                bytes: tensor.bytes().len(),
            };
            if tensor.is_forwarded() {
                let size = shape.elements() * dtype.size();
                let mut pairs = def.forward.iter().filter(|(from, _)| *from == number);
                let output =
                    pairs.find_map(|&(_, to)| outputs.get(to).filter(|to| to.bytes == size))?;
                operand.address = output.address;
                operand.bytes = size;
            }
            inputs.push(operand);
            host.push(tensor.bytes());
        }
        Some(Self {
            op: def.op,
            inputs,
            outputs,
            attrs: call.inputs.attrs,
            host,
            read,
        })
    }

    fn bytes(&self, input: usize) -> Option<Cow<'a, [u8]>> {
        let bytes: &'a [u8] = self.host.get(input)?;
        let mut copy = vec![0; bytes.len()];
        if (self.read)(bytes.as_ptr() as usize, &mut copy) {
            return Some(Cow::Owned(copy));
        }
        Some(Cow::Borrowed(bytes))
    }

    /// The words of an input's bytes.
    pub fn words(&self, input: usize) -> Option<Vec<u32>> {
        let bytes = self.bytes(input)?;
        let all = bytes.as_chunks::<4>().0.iter();
        Some(all.map(|&each| u32::from_ne_bytes(each)).collect())
    }

    /// The integers of an input.
    pub fn integers(&self, input: usize) -> Option<Vec<i64>> {
        let bytes = self.bytes(input)?;
        match self.inputs.get(input)?.dtype {
            DType::I32 => {
                let all = bytes.as_chunks::<4>().0.iter();
                Some(
                    all.map(|&each| i64::from(i32::from_ne_bytes(each)))
                        .collect(),
                )
            }
            DType::I64 => {
                let all = bytes.as_chunks::<8>().0.iter();
                Some(all.map(|&each| i64::from_ne_bytes(each)).collect())
            }
            _ => None,
        }
    }

    /// Whether all tensors are float32 but those of int32, which hold sizes.
    pub fn is_f32_but_sizes(&self) -> bool {
        let mut all = self.inputs.iter().chain(&self.outputs);
        all.all(|operand| matches!(operand.dtype, DType::F32 | DType::I32))
    }

    /// Whether all tensors are float32.
    pub fn is_f32(&self) -> bool {
        let mut all = self.inputs.iter().chain(&self.outputs);
        all.all(|operand| operand.dtype == DType::F32)
    }
}
