//! Tensors of the checks, and attributes.

use tfp_kernels::base::def::{Attrs, Spec};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::error::{Error, Result};
use tfp_kernels::base::shape::Shape;

/// An attribute of a case.
#[derive(Clone, Debug)]
pub enum Attr {
    /// `int`
    Int(i64),
    /// `float`
    Float(f32),
    /// `bool`
    Bool(bool),
    /// `string`
    Text(&'static str),
    /// `type`
    Type(DType),
    /// `list(int)`
    Ints(Vec<i64>),
}

/// The attributes of a case by name.
#[derive(Clone, Debug, Default)]
pub struct Table(pub Vec<(&'static str, Attr)>);

impl Table {
    fn find<'a, R>(
        &'a self,
        name: &'static str,
        read: impl Fn(&'a Attr) -> Option<R>,
    ) -> Result<R> {
        let found = self.0.iter().find(|(found, _)| *found == name);
        found.and_then(|(_, attr)| read(attr)).ok_or(Error::Value {
            argument: name,
            expected: "an attribute that the case gives",
        })
    }
}

macro_rules! getters {
    ($($name:ident $type:ty, $pattern:pat => $value:expr;)*) => {
        $(fn $name(&self, name: &'static str) -> Result<$type> {
            self.find(name, |attr| match attr {
                $pattern => Some($value),
                _ => None,
            })
        })*
    };
}

impl Attrs for Table {
    getters! {
        int i64, Attr::Int(value) => *value;
        float f32, Attr::Float(value) => *value;
        boolean bool, Attr::Bool(value) => *value;
        dtype DType, Attr::Type(value) => *value;
    }

    fn string(&self, name: &'static str) -> Result<&str> {
        self.find(name, |attr| match attr {
            Attr::Text(value) => Some(*value),
            _ => None,
        })
    }

    fn ints(&self, name: &'static str) -> Result<&[i64]> {
        self.find(name, |attr| match attr {
            Attr::Ints(value) => Some(&value[..]),
            _ => None,
        })
    }
}

/// A tensor as bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub dims: Vec<usize>,
    /// The elements' bytes, in memory that is aligned for all types.
    words: Vec<u64>,
}

impl Tensor {
    /// Of these bytes, repeated or cut to what the shape needs.
    #[must_use]
    pub fn new(dtype: DType, dims: &[usize], bytes: &[u8]) -> Self {
        let len = dims.iter().product::<usize>() * dtype.size();
        let mut padded = bytes.to_vec();
        padded.resize(len.next_multiple_of(8), 0);
        let words = padded.as_chunks::<8>().0.iter();
        Self {
            dtype,
            dims: dims.to_vec(),
            words: words.map(|&each| u64::from_ne_bytes(each)).collect(),
        }
    }

    /// Of float32.
    #[must_use]
    pub fn f32(dims: &[usize], data: &[f32]) -> Self {
        let word = |pair: &[f32]| {
            let upper = pair.get(1).map_or(0, |x| x.to_bits());
            u64::from(pair[0].to_bits()) | u64::from(upper) << 32
        };
        Self {
            dtype: DType::F32,
            dims: dims.to_vec(),
            words: data.chunks(2).map(word).collect(),
        }
    }

    /// Of int32.
    #[must_use]
    pub fn i32(dims: &[usize], data: &[i32]) -> Self {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_ne_bytes()).collect();
        Self::new(DType::I32, dims, &bytes)
    }

    /// Of int64.
    #[must_use]
    pub fn i64(dims: &[usize], data: &[i64]) -> Self {
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_ne_bytes()).collect();
        Self::new(DType::I64, dims, &bytes)
    }

    /// Bytes of all elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dims.iter().product::<usize>() * self.dtype.size()
    }

    /// Whether it has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Type and shape.
    ///
    /// # Errors
    /// For a shape that the kernels don't know.
    pub fn spec(&self) -> Result<Spec> {
        Spec::new(self.dtype, Shape::new(&self.dims)?)
    }

    /// The bytes of the elements.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes of the words, which are at least as many and borrowed as long.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len()) }
    }

    /// The elements as numbers, if they are floats or integers of 32 or 64 bits.
    #[must_use]
    pub fn numbers(&self) -> Vec<f64> {
        let bytes = self.bytes();
        match self.dtype {
            DType::F32 => {
                let all = bytes.as_chunks::<4>().0.iter();
                all.map(|&each| f64::from(f32::from_ne_bytes(each)))
                    .collect()
            }
            DType::I32 => {
                let all = bytes.as_chunks::<4>().0.iter();
                all.map(|&each| f64::from(i32::from_ne_bytes(each)))
                    .collect()
            }
            DType::I64 => {
                let all = bytes.as_chunks::<8>().0.iter();
                all.map(|&each| i64::from_ne_bytes(each) as f64).collect()
            }
            _ => bytes.iter().map(|&each| f64::from(each)).collect(),
        }
    }
}

/// Numbers in [-1, 1) that depend on the seed alone.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// An integer from `least` to `most`.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        self.number();
        least + (self.0 >> 33) as usize % (most - least + 1)
    }

    /// A tensor of numbers in [-scale, scale).
    pub fn tensor(&mut self, dims: &[usize], scale: f32) -> Tensor {
        let len = dims.iter().product();
        let data: Vec<f32> = (0..len).map(|_| self.number() * scale).collect();
        Tensor::f32(dims, &data)
    }
}
