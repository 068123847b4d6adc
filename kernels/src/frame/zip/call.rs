//! What an element-wise kernel of two arguments is made of: the shapes of its output, and its run.

use super::{Loop, Op, Zip, zip_loop, zip_loop_in_place};
use crate::base::adapt::Element;
use crate::base::def::{Call, Inputs, OutputSink};
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// One output of the first input's type and the broadcast shape.
pub(crate) fn outputs_broadcast(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let x = inputs.get(0, "x")?;
    let shape = x.shape().broadcast(&inputs.shape(1, "y")?, ("x", "y"))?;
    sink(x.dtype(), shape)
}

/// One output of the type and shape that both inputs have.
pub(crate) fn outputs_of_one_shape(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (x, y) = (inputs.get(0, "x")?, inputs.shape(1, "y")?);
    check_same(x.shape() == &y, x.shape(), y)?;
    sink(x.dtype(), *x.shape())
}

/// One output like the first input. The second one has as many elements, in whatever shape.
pub(crate) fn outputs_of_one_count(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (x, y) = (inputs.get(0, "x")?, inputs.shape(1, "y")?);
    check_same(x.shape().elements() == y.elements(), x.shape(), y)?;
    sink(x.dtype(), *x.shape())
}

fn check_same(is_same: bool, expected: &Shape, found: Shape) -> Result<()> {
    if is_same {
        return Ok(());
    }
    Err(Error::Shape {
        argument: "y",
        found,
        expected: *expected,
    })
}

/// One bool output of the broadcast shape.
pub(crate) fn outputs_broadcast_bool(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let shape = inputs
        .shape(0, "x")?
        .broadcast(&inputs.shape(1, "y")?, ("x", "y"))?;
    sink(crate::base::dtype::DType::Bool, shape)
}

/// Runs `op` on two inputs, in place if the buffer of one was forwarded.
pub(crate) fn run_zip<O: Zip<T, Out = T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop(call, O::COST, &Op(op))
}

fn run_loop<T: Element>(call: &mut Call<'_>, cost: usize, rows: &dyn Loop<T, T>) -> Result<()> {
    let (a, b) = (call.inputs.get(0, "x")?, call.inputs.get(1, "y")?);
    let parallel = call.parallel;
    let output = call.output(0)?;
    let mut shapes = [*a.shape(), *b.shape(), *output.shape()];
    // Nothing is repeated then, and the shapes need not be the same.
    let count = shapes[2].elements();
    if shapes.iter().all(|shape| shape.elements() == count) {
        shapes = [Shape::new(&[count])?; 3];
    }
    let [a_shape, b_shape, shape] = &shapes;
    let out = T::view_mut(output, "z")?;
    if a.is_forwarded() || b.is_forwarded() {
        let left = a.is_forwarded();
        let other = if left {
            (T::view(&b, "y")?, b_shape)
        } else {
            (T::view(&a, "x")?, a_shape)
        };
        zip_loop_in_place((out, shape), other, left, cost, parallel, rows)
    } else {
        let a = (T::view(&a, "x")?, a_shape);
        let b = (T::view(&b, "y")?, b_shape);
        zip_loop(a, b, out, cost, parallel, rows)
    }
}

/// Runs `op`, whose result has another type, on two inputs.
pub(crate) fn run_zip_to<O: Zip<T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop_to(call, O::COST, &Op(op))
}

fn run_loop_to<T: Element, U: Element>(
    call: &mut Call<'_>,
    cost: usize,
    rows: &dyn Loop<T, U>,
) -> Result<()> {
    let (a, b) = (call.inputs.get(0, "x")?, call.inputs.get(1, "y")?);
    let parallel = call.parallel;
    let out = U::view_mut(call.output(0)?, "z")?;
    let a = (T::view(&a, "x")?, a.shape());
    let b = (T::view(&b, "y")?, b.shape());
    zip_loop(a, b, out, cost, parallel, rows)
}

/// Kernels of element-wise operations of two arguments whose result has the arguments' type: a type
/// that is a [`Zip`], a function on slices, a [`KernelDef`](crate::base::def::KernelDef) per row.
///
/// `forward` has the inputs whose memory the result may take, `outputs` the function that says which
/// shapes fit each other. A type after `in` has all arguments in
/// host memory if that is `host`; a function after `if` accepts or refuses the second argument.
macro_rules! zip_kernels {
    (
        forward $forward:expr;
        outputs $outputs:ident;
        $(
            $(#[$doc:meta])*
            $def:ident $op:ident $function:ident $cost:literal {
                $(
                    $type:ident $dtype:ident $(in $host:ident)? $(if $check:ident)?
                        => |$x:ident, $y:ident| $body:expr;
                )*
            }
        )*
    ) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl $crate::frame::zip::Zip<$type> for $op {
                type Out = $type;

                const COST: usize = $cost;

                #[inline(always)]
                fn apply(self, $x: $type, $y: $type) -> $type {
                    $body
                }
                $(
                    #[inline(always)]
                    fn accept(second: &[$type]) -> $crate::base::error::Result<()> {
                        $check(second)
                    }
                )?
            }
        )*

        $(#[$doc])*
        ///
        /// # Errors
        /// As [`zip`](crate::frame::zip::zip()).
        pub fn $function<T: $crate::base::adapt::Element>(
            x: (&[T], &$crate::base::shape::Shape),
            y: (&[T], &$crate::base::shape::Shape),
            out: &mut [T],
            parallel: &dyn $crate::base::parallel::Parallel,
        ) -> $crate::base::error::Result<()>
        where
            $op: $crate::frame::zip::Zip<T, Out = T>,
        {
            $crate::frame::zip::zip($op, x, y, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: $crate::base::def::KernelDef = $crate::base::def::KernelDef {
            variants: $crate::base::adapt::variants!($(
                ["T": $dtype] host $crate::frame::zip::call::zip_kernels!(@arguments $($host)?);
            )*),
            forward: $forward,
            outputs: $crate::frame::zip::call::$outputs,
            run: |call| match call.inputs.get(0, "x")?.dtype() {
                $($crate::base::dtype::DType::$dtype => {
                    $($check(<$type as $crate::base::adapt::Element>::view(
                        &call.inputs.get(1, "y")?,
                        "y",
                    )?)?;)?
                    $crate::frame::zip::call::run_zip::<$op, $type>($op, call)
                })*
                found => Err($crate::base::adapt::unserved("x", found)),
            },
            ..$crate::base::def::KernelDef::of(stringify!($op))
        };
    )*};
    (@arguments) => {
        &[]
    };
    (@arguments host) => {
        &["x", "y", "z"]
    };
}

pub(crate) use zip_kernels;
