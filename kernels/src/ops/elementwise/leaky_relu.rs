//! The rectified linear unit with a slope for negative values, and its gradient.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{AttrKind, KernelDef};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::map::{Map, map, outputs_like_first, run_map};
use crate::frame::zip::call::{outputs_of_one_shape, run_zip};
use crate::frame::zip::{Zip, zip};

/// `x` above 0, and `alpha * x` elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct LeakyRelu {
    /// Slope of the negative side.
    pub alpha: f32,
}

/// `x` above 0, and `slope * x` elsewhere: (x, slope), `PReLU` of Keras.
#[derive(Clone, Copy, Debug)]
pub struct PRelu;

/// The gradient: the incoming one where the argument is above 0, and `alpha` times it elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct LeakyReluGrad {
    /// Slope of the negative side.
    pub alpha: f32,
}

macro_rules! leaky {
    ($($type:ident)*) => {$(
        impl Map<$type> for LeakyRelu {
            type Out = $type;

            #[inline(always)]
            fn apply(self, x: $type) -> $type {
                if x > 0.0 { x } else { $type::from(self.alpha) * x }
            }
        }

        impl Zip<$type> for PRelu {
            type Out = $type;

            #[inline(always)]
            fn apply(self, x: $type, slope: $type) -> $type {
                if x > 0.0 { x } else { slope * x }
            }
        }

        impl Zip<$type> for LeakyReluGrad {
            type Out = $type;

            #[inline(always)]
            fn apply(self, gradient: $type, x: $type) -> $type {
                if x > 0.0 { gradient } else { $type::from(self.alpha) * gradient }
            }
        }
    )*};
}

leaky!(f32 f64);

/// See [`LeakyRelu`].
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
pub fn leaky_relu<T: Element>(
    alpha: f32,
    x: &[T],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()>
where
    LeakyRelu: Map<T, Out = T>,
{
    map(LeakyRelu { alpha }, x, out, parallel)
}

/// See [`LeakyReluGrad`]; both arguments have `shape`.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit the shape.
pub fn leaky_relu_grad<T: Element>(
    alpha: f32,
    (gradients, features): (&[T], &[T]),
    shape: &Shape,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()>
where
    LeakyReluGrad: Zip<T, Out = T>,
{
    let op = LeakyReluGrad { alpha };
    zip(op, (gradients, shape), (features, shape), out, parallel)
}

/// `LeakyRelu` of TensorFlow.
pub static LEAKY_RELU: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64];),
    attrs: &[("alpha", AttrKind::Float)],
    forward: &[(0, 0)],
    outputs: outputs_like_first,
    run: |call| {
        let alpha = call.inputs.attrs.float("alpha")?;
        by_type!(
            call.inputs.get(0, "features")?.dtype(),
            "features",
            T of [f32 f64] => run_map::<_, T>(LeakyRelu { alpha }, call)
        )
    },
    ..KernelDef::of("LeakyRelu")
};

/// `LeakyReluGrad` of TensorFlow.
pub static LEAKY_RELU_GRAD: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64];),
    attrs: &[("alpha", AttrKind::Float)],
    forward: &[(0, 0), (1, 0)],
    outputs: outputs_of_one_shape,
    run: |call| {
        let alpha = call.inputs.attrs.float("alpha")?;
        by_type!(
            call.inputs.get(0, "gradients")?.dtype(),
            "gradients",
            T of [f32 f64] => run_zip::<_, T>(LeakyReluGrad { alpha }, call)
        )
    },
    ..KernelDef::of("LeakyReluGrad")
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;

    #[test]
    fn slopes() {
        let x = [-2.0_f32, 0.0, 3.0];
        let mut out = [9.0; 3];
        leaky_relu(0.5, &x, &mut out, &Serial).unwrap();
        assert_eq!(out, [-1.0, 0.0, 3.0]);
        let shape = Shape::new(&[3]).unwrap();
        leaky_relu_grad(0.5, (&[4.0; 3], &x), &shape, &mut out, &Serial).unwrap();
        assert_eq!(out, [2.0, 2.0, 4.0]);
    }

    #[test]
    fn slopes_per_channel() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = [-2.0_f32, 3.0, -4.0, inf, -5.0, nan];
        let mut out = [9.0; 6];
        let shapes = [Shape::new(&[3, 2]).unwrap(), Shape::new(&[2]).unwrap()];
        zip(
            PRelu,
            (&x, &shapes[0]),
            (&[-0.5, 0.0], &shapes[1]),
            &mut out,
            &Serial,
        )
        .unwrap();
        assert_eq!(out[..5], [1.0, 3.0, 2.0, inf, 2.5]);
        assert!(out[5].is_nan());
    }
}
