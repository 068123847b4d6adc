//! What the tests of several kernels use.

use core::sync::atomic::AtomicU64;

use crate::base::def::{Attrs, Call, Inputs, KernelDef, Spec, State, TensorMut, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::simd::numbers;

/// Numbers in [-1, 1) that depend on the seed alone.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// Whether `found` is `expected` up to `tolerance`.
pub fn close(found: f32, expected: f64, tolerance: f64) -> bool {
    (f64::from(found) - expected).abs() <= tolerance
}

/// Claims to have three threads and runs tasks last to first.
pub struct Interleaved;

impl Parallel for Interleaved {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).rev().for_each(task);
    }
}

/// Runs every task on a thread of its own, and says that it has so many.
pub struct Threads(pub usize);

impl Parallel for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for index in 0..tasks {
                scope.spawn(move || task(index));
            }
        });
    }
}

/// A tensor of f32.
pub type Tensor = (Vec<usize>, Vec<f32>);

/// Attributes by name.
#[derive(Clone, Debug)]
pub enum Value {
    Bool(bool),
    Float(f32),
    Ints(Vec<i64>),
    Text(&'static str),
}

struct Table<'a>(&'a [(&'static str, Value)]);

impl Table<'_> {
    fn find(&self, name: &'static str) -> Result<&Value> {
        let missing = Error::Value {
            argument: name,
            expected: "an attribute that the test gives",
        };
        let found = self.0.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| value).ok_or(missing)
    }
}

const WRONG_KIND: Error = Error::Value {
    argument: "attribute",
    expected: "another kind",
};

impl Attrs for Table<'_> {
    fn int(&self, _: &'static str) -> Result<i64> {
        Err(WRONG_KIND)
    }

    fn float(&self, name: &'static str) -> Result<f32> {
        match self.find(name)? {
            Value::Float(value) => Ok(*value),
            _ => Err(WRONG_KIND),
        }
    }

    fn boolean(&self, name: &'static str) -> Result<bool> {
        match self.find(name)? {
            Value::Bool(value) => Ok(*value),
            _ => Err(WRONG_KIND),
        }
    }

    fn string(&self, name: &'static str) -> Result<&str> {
        match self.find(name)? {
            Value::Text(value) => Ok(value),
            _ => Err(WRONG_KIND),
        }
    }

    fn dtype(&self, _: &'static str) -> Result<DType> {
        Err(WRONG_KIND)
    }

    fn ints(&self, name: &'static str) -> Result<&[i64]> {
        match self.find(name)? {
            Value::Ints(value) => Ok(value),
            _ => Err(WRONG_KIND),
        }
    }
}

/// What an argument of a kernel is in memory.
pub enum Data {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

/// Runs a kernel with f32 tensors as an adapter would; outputs and scratch start as NaN.
pub fn call(
    def: &KernelDef,
    attrs: &[(&'static str, Value)],
    inputs: &[Tensor],
) -> Result<Vec<Tensor>> {
    let inputs: Vec<_> = inputs
        .iter()
        .map(|(dims, data)| (dims.clone(), Data::F32(data.clone())))
        .collect();
    call_with(def, attrs, &inputs)
}

/// As [`call`], with tensors of any type.
pub fn call_with(
    def: &KernelDef,
    attrs: &[(&'static str, Value)],
    inputs: &[(Vec<usize>, Data)],
) -> Result<Vec<Tensor>> {
    let bytes: Vec<(DType, Vec<u32>)> = inputs
        .iter()
        .map(|(_, data)| match data {
            Data::F32(data) => (DType::F32, data.iter().map(|x| x.to_bits()).collect()),
            Data::I32(data) => (DType::I32, data.iter().map(|x| x.cast_unsigned()).collect()),
        })
        .collect();
    let mut specs = Vec::new();
    for ((dims, _), (dtype, _)) in inputs.iter().zip(&bytes) {
        specs.push(Spec::new(*dtype, Shape::new(dims)?)?);
    }
    let mut tensors = Vec::new();
    for (spec, (_, words)) in specs.iter().zip(&bytes) {
        tensors.push(TensorRef::new(spec, numbers::bytes(words))?);
    }
    let attrs = Table(attrs);
    let inputs = || Inputs {
        tensors: &tensors,
        attrs: &attrs,
    };
    let mut found = Vec::new();
    (def.outputs)(&inputs(), &mut |dtype, shape| {
        assert_eq!(dtype, DType::F32);
        found.push(Spec::new(dtype, shape)?);
        Ok(())
    })?;
    let mut memory: Vec<Vec<u32>> = found
        .iter()
        .map(|spec| vec![f32::NAN.to_bits(); spec.shape().elements()])
        .collect();
    let mut outputs = Vec::new();
    for (spec, memory) in found.iter().zip(&mut memory) {
        outputs.push(TensorMut::new(spec, numbers::bytes_mut(memory))?);
    }
    // Only as many words as asked for, at a 64-byte boundary.
    let bytes = (def.scratch)(&inputs())?;
    let mut room = vec![f32::NAN.to_bits(); bytes / 4 + 16];
    let skip = room.as_ptr().align_offset(64);
    let state = State {
        entropy: [1, 2],
        counter: AtomicU64::new(0),
    };
    (def.run)(&mut Call {
        inputs: inputs(),
        outputs: &mut outputs,
        scratch: &mut numbers::bytes_mut(&mut room[skip..])[..bytes],
        parallel: &Interleaved,
        state: &state,
    })?;
    Ok(found
        .iter()
        .zip(memory)
        .map(|(spec, memory)| {
            let data = memory.iter().map(|&word| f32::from_bits(word)).collect();
            (spec.shape().to_vec(), data)
        })
        .collect())
}
