//! Operands: what may be passed where an op takes a tensor.

use crate::base::error::Result;
use crate::base::shape::Shape;
use crate::tensor::element::{BFloat16, Complex, Element, Half, Nested, bytes_of};
use crate::tensor::{Tensor, items};
use tfp_wire::DataType;

/// A tensor value of a context: an output in a graph, a handle in eager mode.
pub trait Value: Clone + Sized + 'static {
    /// Returns the element type.
    fn dtype(&self) -> DataType;

    /// Returns the shape, as far as it is known: wholly in eager mode, in a graph what shape
    /// inference found.
    ///
    /// # Errors
    /// What TensorFlow says, as about the failed step that a handle waits for.
    fn shape(&self) -> Result<Shape> {
        Ok(Shape::unknown())
    }
}

/// An input of a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum Operand<'a, V> {
    /// A value of the context.
    Value(&'a V),
    /// A value of the context that the call owns.
    Owned(V),
    /// A tensor, which becomes a constant of exactly its element type.
    Tensor(&'a Tensor),
    /// Rust data, which becomes a constant of the type that the other operands imply.
    Literal(Literal<'a>),
}

/// Rust data as an operand. Its element type gives way to that of values and tensors beside it, as
/// long as each number keeps its value (a float may be rounded, as a literal in source text is).
#[derive(Debug)]
pub struct Literal<'a>(pub(crate) Repr<'a>);

/// How many bytes of a literal are held without an allocation.
const INLINE: usize = 32;

#[derive(Debug)]
pub(crate) enum Repr<'a> {
    /// A scalar or a small array.
    Inline {
        dtype: DataType,
        bytes: [u8; INLINE],
        len: u8,
        dims: &'static [i64],
    },
    /// A slice: one dimension.
    Slice {
        dtype: DataType,
        bytes: &'a [u8],
        len: i64,
    },
    /// A slice with dimensions.
    View {
        dtype: DataType,
        bytes: &'a [u8],
        dims: &'a [i64],
    },
    /// A tensor made when the literal was passed, or why it could not be made.
    Made(Box<Result<Tensor>>),
}

impl<'a> Literal<'a> {
    pub(crate) fn from_scalar<A: Nested>(array: &A) -> Self {
        const { assert!(size_of::<A>() <= INLINE) };
        let mut bytes = [0; INLINE];
        let data = bytes_of(items(array));
        bytes[..data.len()].copy_from_slice(data);
        let dims: &'static [i64; 8] = const { &A::DIMS };
        Self(Repr::Inline {
            dtype: A::Item::DTYPE,
            bytes,
            len: data.len() as u8,
            dims: &dims[..A::RANK],
        })
    }

    pub(crate) fn made(tensor: Result<Tensor>) -> Self {
        Self(Repr::Made(Box::new(tensor)))
    }
}

/// Rust types that can be passed where an op takes a tensor of a context with values `V`.
///
/// - values of the context, by reference or owned: `&x`, `add(ctx, ..)?`;
/// - [`Tensor`] by reference;
/// - literals: numbers, truth values, texts (a string scalar), arrays of them (nested to any rank),
///   slices and vectors (one dimension), `(&data[..], &dims[..])` for any shape;
/// - with the feature `ndarray`: arrays by value or reference, and views, as literals.
///
/// A literal takes the element type that the op and the other operands imply, when its values
/// allow it, and otherwise its own: `f64` for `1.0`, `i32` for `1`; `usize` is `u64`, `isize` is `i64`.
pub trait IntoOperand<'a, V> {
    /// Converts.
    fn into_operand(self) -> Operand<'a, V>;
}

impl<'a, V> IntoOperand<'a, V> for Operand<'a, V> {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        self
    }
}

impl<'a, V: Value> IntoOperand<'a, V> for &'a V {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Value(self)
    }
}

impl<'a, V: Value> IntoOperand<'a, V> for &'a &'a V {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Value(self)
    }
}

impl<'a, V: Value> IntoOperand<'a, V> for V {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Owned(self)
    }
}

impl<'a, V> IntoOperand<'a, V> for &'a Tensor {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Tensor(self)
    }
}

impl<'a, V> IntoOperand<'a, V> for Literal<'a> {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Literal(self)
    }
}

macro_rules! scalars {
    ($($rust:ty),*) => {
        $(impl<'a, V> IntoOperand<'a, V> for $rust {
            #[inline]
            fn into_operand(self) -> Operand<'a, V> {
                Operand::Literal(Literal::from_scalar(&self))
            }
        })*
    };
}

scalars!(
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
    bool,
    Half,
    BFloat16,
    Complex<f32>,
    Complex<f64>
);

impl<'a, V> IntoOperand<'a, V> for usize {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        (self as u64).into_operand()
    }
}

impl<'a, V> IntoOperand<'a, V> for isize {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        (self as i64).into_operand()
    }
}

impl<'a, V, A: Nested, const N: usize> IntoOperand<'a, V> for [A; N] {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        let data = items(&self);
        let dims: &'static [i64; 8] = const { &<[A; N]>::DIMS };
        let dims = &dims[..<[A; N]>::RANK];
        let bytes = bytes_of(data);
        if bytes.len() > INLINE {
            return Operand::Literal(Literal::made(Tensor::from_slice(data, dims)));
        }
        let mut inline = [0; INLINE];
        inline[..bytes.len()].copy_from_slice(bytes);
        Operand::Literal(Literal(Repr::Inline {
            dtype: <A::Item as Element>::DTYPE,
            bytes: inline,
            len: bytes.len() as u8,
            dims,
        }))
    }
}

impl<'a, V, A: Nested, const N: usize> IntoOperand<'a, V> for &'a [A; N] {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        let dims: &'static [i64; 8] = const { &<[A; N]>::DIMS };
        Operand::Literal(Literal(Repr::View {
            dtype: <A::Item as Element>::DTYPE,
            bytes: bytes_of(items(self)),
            dims: &dims[..<[A; N]>::RANK],
        }))
    }
}

impl<'a, V, T: Element> IntoOperand<'a, V> for &'a [T] {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Literal(Literal(Repr::Slice {
            dtype: T::DTYPE,
            bytes: bytes_of(self),
            len: self.len() as i64,
        }))
    }
}

impl<'a, V, T: Element> IntoOperand<'a, V> for &'a Vec<T> {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        self.as_slice().into_operand()
    }
}

impl<'a, V, T: Element> IntoOperand<'a, V> for Vec<T> {
    fn into_operand(self) -> Operand<'a, V> {
        let dims = [self.len() as i64];
        Operand::Literal(Literal::made(Tensor::from_vec(self, &dims)))
    }
}

impl<'a, V, T: Element> IntoOperand<'a, V> for (&'a [T], &'a [i64]) {
    #[inline]
    fn into_operand(self) -> Operand<'a, V> {
        let (data, dims) = self;
        match crate::tensor::check_count(data.len(), dims) {
            Ok(()) => Operand::Literal(Literal(Repr::View {
                dtype: T::DTYPE,
                bytes: bytes_of(data),
                dims,
            })),
            Err(error) => Operand::Literal(Literal::made(Err(error))),
        }
    }
}

macro_rules! strings {
    ($($text:ty),*) => {
        $(
            impl<'a, V> IntoOperand<'a, V> for $text {
                fn into_operand(self) -> Operand<'a, V> {
                    Operand::Literal(Literal::made(Tensor::from_string(self)))
                }
            }

            impl<'a, 'b, V> IntoOperand<'a, V> for &'b [$text] {
                fn into_operand(self) -> Operand<'a, V> {
                    let dims = [self.len() as i64];
                    Operand::Literal(Literal::made(Tensor::from_strings(self, &dims)))
                }
            }

            impl<'a, V, const N: usize> IntoOperand<'a, V> for [$text; N] {
                fn into_operand(self) -> Operand<'a, V> {
                    Operand::Literal(Literal::made(Tensor::from_strings(&self, &[N as i64])))
                }
            }
        )*
    };
}

strings!(&str, String);

/// Rust types that can be passed where an op takes a list of tensors: slices, arrays and vectors of
/// operands, and tuples of up to eight different ones.
pub trait IntoOperands<'a, V> {
    /// Appends each operand.
    fn append_to(self, list: &mut Operands<'a, V>);
}

/// The operands of a call.
pub type Operands<'a, V> = crate::base::small_vec::SmallVec<Operand<'a, V>, 4>;

impl<'a, V, T> IntoOperands<'a, V> for &'a [T]
where
    &'a T: IntoOperand<'a, V>,
{
    fn append_to(self, list: &mut Operands<'a, V>) {
        list.extend(self.iter().map(IntoOperand::into_operand));
    }
}

impl<'a, V, T> IntoOperands<'a, V> for &'a Vec<T>
where
    &'a T: IntoOperand<'a, V>,
{
    fn append_to(self, list: &mut Operands<'a, V>) {
        list.extend(self.iter().map(IntoOperand::into_operand));
    }
}

impl<'a, V, T, const N: usize> IntoOperands<'a, V> for &'a [T; N]
where
    &'a T: IntoOperand<'a, V>,
{
    fn append_to(self, list: &mut Operands<'a, V>) {
        list.extend(self.iter().map(IntoOperand::into_operand));
    }
}

impl<'a, V, T: IntoOperand<'a, V>> IntoOperands<'a, V> for Vec<T> {
    fn append_to(self, list: &mut Operands<'a, V>) {
        list.extend(self.into_iter().map(IntoOperand::into_operand));
    }
}

impl<'a, V, T: IntoOperand<'a, V>, const N: usize> IntoOperands<'a, V> for [T; N] {
    fn append_to(self, list: &mut Operands<'a, V>) {
        list.extend(self.into_iter().map(IntoOperand::into_operand));
    }
}

macro_rules! tuples {
    ($($name:ident)*) => {
        impl<'a, V, $($name: IntoOperand<'a, V>),*> IntoOperands<'a, V> for ($($name,)*) {
            #[allow(non_snake_case, unused_variables)]
            fn append_to(self, list: &mut Operands<'a, V>) {
                let ($($name,)*) = self;
                $(list.push($name.into_operand());)*
            }
        }
    };
}

tuples!();
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
