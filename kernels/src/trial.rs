//! What the tests of the operations share: shapes, and a way to run a kernel definition on bytes.

use core::sync::atomic::AtomicU64;

use proptest::prelude::*;

use crate::base::def::{Attrs, Call, Inputs, KernelDef, Spec, State, TensorMut, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::simd::numbers;
use crate::testing::Interleaved;

/// Few cases per property, because there are many properties.
pub fn cases() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    }
}

/// Shapes of rank 0 to 8 with sizes 0 to 5, mostly without 0; those of many axes have sizes 1 and
/// 2.
pub fn shapes() -> impl Strategy<Value = Shape> {
    let dim = prop_oneof![1 => Just(0_usize), 12 => 1_usize..6];
    let few = proptest::collection::vec(dim, 0..6);
    let many = proptest::collection::vec(1_usize..3, 6..9);
    prop_oneof![4 => few, 1 => many].prop_map(|dims| Shape::new(&dims).unwrap())
}

/// A shape and one that broadcasts with it.
pub fn pairs() -> impl Strategy<Value = (Shape, Shape)> {
    (shapes(), any::<[u8; 8]>(), 0_usize..9).prop_map(|(shape, flags, drop)| {
        let (mut a, mut b) = (shape.to_vec(), shape.to_vec());
        for (axis, flag) in flags.iter().enumerate().take(shape.rank()) {
            match flag % 4 {
                0 => a[axis] = 1,
                1 => b[axis] = 1,
                _ => {}
            }
        }
        let b = &b[drop.min(b.len())..];
        (Shape::new(&a).unwrap(), Shape::new(b).unwrap())
    })
}

/// The indices of element number `number` of a tensor.
pub fn indices(shape: &[usize], mut number: usize) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        at[axis] = number % shape[axis];
        number /= shape[axis];
    }
    at
}

/// The number of the element at `at`, where axes of size 1 are repeated and missing ones added.
pub fn number(shape: &[usize], at: &[usize]) -> usize {
    let added = at.len() - shape.len();
    shape.iter().enumerate().fold(0, |number, (axis, &dim)| {
        number * dim + if dim == 1 { 0 } else { at[added + axis] }
    })
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub enum Attr {
    Int(i64),
    Bool(bool),
    Type(DType),
    Ints(&'static [i64]),
    Float(f32),
    Text(&'static str),
}

struct Table<'a>(&'a [(&'static str, Attr)]);

impl Table<'_> {
    fn find<R>(&self, name: &'static str, read: impl Fn(Attr) -> Option<R>) -> Result<R> {
        let found = self.0.iter().find(|(found, _)| *found == name);
        found.and_then(|&(_, attr)| read(attr)).ok_or(Error::Value {
            argument: name,
            expected: "an attribute that the test gives",
        })
    }
}

impl Attrs for Table<'_> {
    fn int(&self, name: &'static str) -> Result<i64> {
        self.find(name, |attr| match attr {
            Attr::Int(value) => Some(value),
            _ => None,
        })
    }

    fn float(&self, name: &'static str) -> Result<f32> {
        self.find(name, |attr| match attr {
            Attr::Float(value) => Some(value),
            _ => None,
        })
    }

    fn boolean(&self, name: &'static str) -> Result<bool> {
        self.find(name, |attr| match attr {
            Attr::Bool(value) => Some(value),
            _ => None,
        })
    }

    fn string(&self, name: &'static str) -> Result<&str> {
        self.find(name, |attr| match attr {
            Attr::Text(value) => Some(value),
            _ => None,
        })
    }

    fn dtype(&self, name: &'static str) -> Result<DType> {
        self.find(name, |attr| match attr {
            Attr::Type(value) => Some(value),
            _ => None,
        })
    }

    fn ints(&self, name: &'static str) -> Result<&[i64]> {
        self.find(name, |attr| match attr {
            Attr::Ints(value) => Some(value),
            _ => None,
        })
    }
}

/// A tensor as its bytes, in memory that is aligned for all types.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub dtype: DType,
    pub dims: Vec<usize>,
    words: Vec<u64>,
    len: usize,
}

impl Tensor {
    pub fn new(dtype: DType, dims: &[usize], bytes: &[u8]) -> Self {
        let mut tensor = Self::filled(dtype, dims, bytes.len());
        tensor.bytes_mut().copy_from_slice(bytes);
        tensor
    }

    fn spec(&self) -> Result<Spec> {
        Spec::new(self.dtype, Shape::new(&self.dims)?)
    }

    pub fn f32(dims: &[usize], data: &[f32]) -> Self {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_ne_bytes()).collect();
        Self::new(DType::F32, dims, &bytes)
    }

    pub fn i32(dims: &[usize], data: &[i32]) -> Self {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_ne_bytes()).collect();
        Self::new(DType::I32, dims, &bytes)
    }

    pub fn i64(dims: &[usize], data: &[i64]) -> Self {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_ne_bytes()).collect();
        Self::new(DType::I64, dims, &bytes)
    }

    fn filled(dtype: DType, dims: &[usize], len: usize) -> Self {
        Self {
            dtype,
            dims: dims.to_vec(),
            words: vec![0xA5A5_A5A5_A5A5_A5A5; len.div_ceil(8)],
            len,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &numbers::bytes(&self.words)[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut numbers::bytes_mut(&mut self.words)[..self.len]
    }

    pub fn to_f32(&self) -> Vec<f32> {
        assert_eq!(self.dtype, DType::F32);
        let chunks = self.bytes().as_chunks::<4>().0;
        chunks
            .iter()
            .map(|&bytes| f32::from_ne_bytes(bytes))
            .collect()
    }

    pub fn to_i64(&self) -> Vec<i64> {
        assert_eq!(self.dtype, DType::I64);
        let chunks = self.bytes().as_chunks::<8>().0;
        chunks
            .iter()
            .map(|&bytes| i64::from_ne_bytes(bytes))
            .collect()
    }
}

/// Runs a kernel as an adapter would. With `forward`, inputs that may be are given as outputs.
pub fn run(
    def: &KernelDef,
    attrs: &[(&'static str, Attr)],
    inputs: &[Tensor],
    forward: bool,
) -> Result<Vec<Tensor>> {
    let attrs = Table(attrs);
    let specs = inputs.iter().map(Tensor::spec);
    let specs = specs.collect::<Result<Vec<_>>>()?;
    let mut tensors = Vec::new();
    for (input, spec) in inputs.iter().zip(&specs) {
        tensors.push(TensorRef::new(spec, input.bytes())?);
    }
    let mut outputs: Vec<Tensor> = Vec::new();
    let whole = Inputs {
        tensors: &tensors,
        attrs: &attrs,
    };
    (def.outputs)(&whole, &mut |dtype, shape| {
        outputs.push(Tensor::filled(
            dtype,
            &shape,
            dtype.size() * shape.elements(),
        ));
        Ok(())
    })?;
    let mut scratch = Tensor::filled(DType::U8, &[], (def.scratch)(&whole)?);
    let mut given = tensors.clone();
    let mut taken = vec![false; outputs.len()];
    for &(from, to) in def.forward.iter().filter(|_| forward) {
        let Some(input) = inputs.get(from) else {
            continue;
        };
        let output = &mut outputs[to];
        if input.dtype == output.dtype && input.len == output.len && !taken[to] {
            output.bytes_mut().copy_from_slice(input.bytes());
            given[from] = TensorRef::forwarded(&specs[from]);
            taken[to] = true;
        }
    }
    let state = State {
        entropy: [1, 2],
        counter: AtomicU64::new(0),
    };
    let made = outputs.iter().map(Tensor::spec);
    let made = made.collect::<Result<Vec<_>>>()?;
    let mut views = Vec::new();
    for (output, spec) in outputs.iter_mut().zip(&made) {
        views.push(TensorMut::new(spec, output.bytes_mut())?);
    }
    (def.run)(&mut Call {
        inputs: Inputs {
            tensors: &given,
            attrs: &attrs,
        },
        outputs: &mut views,
        scratch: scratch.bytes_mut(),
        parallel: &Interleaved,
        state: &state,
    })?;
    Ok(outputs)
}
