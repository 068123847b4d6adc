//! Arithmetic with the signs of Rust: `&a * 2.0 + &b`.

use std::ops::{Add, Div, Mul, Neg, Range, Sub};

use tfp_core::{Context, Error, IntoOperand, Result, Value};
use tfp_ops as ops;

/// A value with the context that computes with it. The operators `+`, `-`, `*` and `/` take other ones,
/// references to them, and numbers on either side; a number has the type of the value beside it.
///
/// An error is kept: what is computed from it has the same, and [`Self::value`] returns it.
#[derive(Debug)]
pub struct Expression<'c, C: Context + ?Sized> {
    context: &'c C,
    value: Result<C::Value>,
}

impl<C: Context + ?Sized> Clone for Expression<'_, C> {
    fn clone(&self) -> Self {
        Self {
            context: self.context,
            value: self.value(),
        }
    }
}

impl<'c, C: Context + ?Sized> Expression<'c, C> {
    /// Takes a value of a context; numbers and arrays are constants.
    pub fn new<'v>(context: &'c C, value: impl IntoOperand<'v, C::Value>) -> Self {
        let value = ops::identity(context, value);
        Self { context, value }
    }

    /// Takes what an op has returned.
    pub fn of(context: &'c C, value: Result<C::Value>) -> Self {
        Self { context, value }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// The first error of what the value was computed from.
    pub fn value(&self) -> Result<C::Value> {
        self.value.clone()
    }

    /// Computes with the value by an op.
    #[must_use]
    pub fn map(&self, compute: impl FnOnce(&'c C, &C::Value) -> Result<C::Value>) -> Self {
        let value = match &self.value {
            Ok(value) => compute(self.context, value),
            Err(error) => Err(error.clone()),
        };
        Self::of(self.context, value)
    }

    fn with(
        &self,
        other: &Self,
        compute: impl FnOnce(&'c C, &C::Value, &C::Value) -> Result<C::Value>,
    ) -> Self {
        let value = other.value();
        self.map(|context, own| compute(context, own, &value?))
    }

    /// Computes the matrix product over the last two dimensions.
    #[must_use]
    pub fn matmul(&self, other: &Self) -> Self {
        self.with(other, |cx, a, b| {
            ops::batch_mat_mul_v2(cx, a, b, ops::BatchMatMulV2Options::default())
        })
    }

    /// Computes the power of each element.
    #[must_use]
    pub fn pow(&self, power: f64) -> Self {
        self.map(|cx, x| ops::pow(cx, x, power))
    }

    /// Computes the sum of all elements, a scalar.
    #[must_use]
    pub fn sum(&self) -> Self {
        self.map(|cx, x| {
            let flat = ops::reshape(cx, x, [-1])?;
            ops::sum(cx, flat, 0, ops::SumOptions::default())
        })
    }

    /// Computes the mean of all elements, a scalar.
    #[must_use]
    pub fn mean(&self) -> Self {
        self.map(|cx, x| {
            let flat = ops::reshape(cx, x, [-1])?;
            ops::mean(cx, flat, 0, ops::MeanOptions::default())
        })
    }

    /// Takes a range of the first dimension.
    #[must_use]
    pub fn slice(&self, range: Range<i32>) -> Self {
        self.map(|cx, x| {
            let options = ops::StridedSliceOptions::default();
            ops::strided_slice(cx, x, [range.start], [range.end], [1], options)
        })
    }

    /// Takes one element of the first dimension, which the result does not have; a negative index counts
    /// from the end.
    #[must_use]
    pub fn at(&self, index: i32) -> Self {
        self.map(|cx, x| {
            let size = x.shape()?.dims().and_then(|dims| dims.first().copied());
            let is_inside = |size: i64| (-size..size).contains(&i64::from(index));
            if size.is_some_and(|size| size >= 0 && !is_inside(size)) {
                return Err(Error::argument(format!(
                    "the index {index} of a value of shape {}",
                    x.shape()?
                )));
            }
            let options = ops::StridedSliceOptions {
                shrink_axis_mask: Some(1),
                // The end of a range that begins with the last element.
                end_mask: Some(i64::from(index == -1)),
                ..Default::default()
            };
            ops::strided_slice(cx, x, [index], [index.wrapping_add(1)], [1], options)
        })
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:path),*) => {$(
        impl<'c, C: Context + ?Sized> $trait<&Expression<'c, C>> for &Expression<'c, C> {
            type Output = Expression<'c, C>;

            fn $method(self, other: &Expression<'c, C>) -> Expression<'c, C> {
                self.with(other, |cx, a, b| $op(cx, a, b))
            }
        }

        impl<'c, C: Context + ?Sized> $trait<Expression<'c, C>> for &Expression<'c, C> {
            type Output = Expression<'c, C>;

            fn $method(self, other: Expression<'c, C>) -> Expression<'c, C> {
                $trait::$method(self, &other)
            }
        }

        impl<'c, C: Context + ?Sized> $trait<&Self> for Expression<'c, C> {
            type Output = Self;

            fn $method(self, other: &Self) -> Self {
                $trait::$method(&self, other)
            }
        }

        impl<C: Context + ?Sized> $trait for Expression<'_, C> {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                $trait::$method(&self, &other)
            }
        }

        operators!(@number $trait $method $op, f64 i32);
    )*};
    (@number $trait:ident $method:ident $op:path, $($number:ty)*) => {$(
        impl<'c, C: Context + ?Sized> $trait<$number> for &Expression<'c, C> {
            type Output = Expression<'c, C>;

            fn $method(self, other: $number) -> Expression<'c, C> {
                self.map(|cx, a| $op(cx, a, other))
            }
        }

        impl<C: Context + ?Sized> $trait<$number> for Expression<'_, C> {
            type Output = Self;

            fn $method(self, other: $number) -> Self {
                $trait::$method(&self, other)
            }
        }

        impl<'c, C: Context + ?Sized> $trait<&Expression<'c, C>> for $number {
            type Output = Expression<'c, C>;

            fn $method(self, other: &Expression<'c, C>) -> Expression<'c, C> {
                other.map(|cx, b| $op(cx, self, b))
            }
        }

        impl<'c, C: Context + ?Sized> $trait<Expression<'c, C>> for $number {
            type Output = Expression<'c, C>;

            fn $method(self, other: Expression<'c, C>) -> Expression<'c, C> {
                $trait::$method(self, &other)
            }
        }
    )*};
}

operators!(Add add ops::add_v2, Sub sub ops::sub, Mul mul ops::mul, Div div ops::real_div);

impl<'c, C: Context + ?Sized> Neg for &Expression<'c, C> {
    type Output = Expression<'c, C>;

    fn neg(self) -> Expression<'c, C> {
        self.map(|cx, x| ops::neg(cx, x))
    }
}

impl<C: Context + ?Sized> Neg for Expression<'_, C> {
    type Output = Self;

    fn neg(self) -> Self {
        -&self
    }
}
