//! Chooses between two tensors element by element.

use crate::base::adapt::{by_width, check_len, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, KernelDef};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::zip::plan::Plan;
use crate::simd::body::{Body, dispatch};

/// `out = condition ? then : other`, all three broadcast against each other. A condition is a byte,
/// 0 for false.
///
/// # Errors
/// [`Error::Incompatible`](crate::base::error::Error::Incompatible) if they can't be broadcast,
/// [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit its shape.
pub fn select<T: Copy + Send + Sync>(
    (condition, condition_shape): (&[u8], &Shape),
    (then, then_shape): (&[T], &Shape),
    (other, other_shape): (&[T], &Shape),
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    let shape = selected(condition_shape, then_shape, other_shape)?;
    check_len("condition", condition.len(), condition_shape)?;
    check_len("t", then.len(), then_shape)?;
    check_len("e", other.len(), other_shape)?;
    check_len("output", out.len(), &shape)?;
    let plan = Plan::new([condition_shape, then_shape, other_shape], &shape);
    let chunk = chunk_len(parallel, out.len(), plan.row(), 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        dispatch(Rows {
            plan: &plan,
            condition,
            then,
            other,
            start,
            out,
        });
    });
    Ok(())
}

fn selected(condition: &Shape, then: &Shape, other: &Shape) -> Result<Shape> {
    then.broadcast(other, ("t", "e"))?
        .broadcast(condition, ("t", "condition"))
}

struct Rows<'a, T> {
    plan: &'a Plan<3>,
    condition: &'a [u8],
    then: &'a [T],
    other: &'a [T],
    start: usize,
    out: &'a mut [T],
}

impl<T: Copy> Body for Rows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let plan = self.plan;
        let row = plan.row();
        if row == 0 {
            return;
        }
        let steps = [0, 1, 2].map(|n| plan.steps(n));
        let mut walk = plan.walk(self.start / row);
        for out in self.out.chunks_mut(row) {
            let [ic, it, ie] = walk.offsets;
            let (condition, then, other) =
                (&self.condition[ic..], &self.then[it..], &self.other[ie..]);
            match steps {
                [true, true, true] => {
                    let values = then.iter().zip(other);
                    for ((out, &c), (&t, &e)) in out.iter_mut().zip(condition).zip(values) {
                        *out = if c != 0 { t } else { e };
                    }
                }
                [true, true, false] => {
                    let e = other[0];
                    for ((out, &c), &t) in out.iter_mut().zip(condition).zip(then) {
                        *out = if c != 0 { t } else { e };
                    }
                }
                [true, false, true] => {
                    let t = then[0];
                    for ((out, &c), &e) in out.iter_mut().zip(condition).zip(other) {
                        *out = if c != 0 { t } else { e };
                    }
                }
                [true, false, false] => {
                    let (t, e) = (then[0], other[0]);
                    for (out, &c) in out.iter_mut().zip(condition) {
                        *out = if c != 0 { t } else { e };
                    }
                }
                [false, st, se] => {
                    let (from, steps) = if condition[0] != 0 {
                        (then, st)
                    } else {
                        (other, se)
                    };
                    if steps {
                        out.copy_from_slice(&from[..out.len()]);
                    } else {
                        out.fill(from[0]);
                    }
                }
            }
            walk.next();
        }
    }
}

/// `SelectV2` of TensorFlow.
pub static SELECT_V2: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool];),
    outputs: |inputs, sink| {
        let (condition, then, other) = shapes(inputs)?;
        let dtype = inputs.get(1, "t")?.dtype();
        sink(dtype, selected(&condition, &then, &other)?)
    },
    run: |call| by_width!(call.inputs.get(1, "t")?.dtype(), run(call)),
    ..KernelDef::of("SelectV2")
};

/// `Select` of TensorFlow, whose condition is a scalar, of the values' shape, or a vector over the
/// values' first axis.
pub static SELECT: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool];),
    outputs: |inputs, sink| {
        let (condition, then, other) = shapes(inputs)?;
        crate::base::adapt::check_shape("e", &other, &then)?;
        let condition = aligned(&condition, &then)?;
        crate::base::adapt::check_shape("t", &then, &selected(&condition, &then, &other)?)?;
        sink(inputs.get(1, "t")?.dtype(), then)
    },
    run: |call| by_width!(call.inputs.get(1, "t")?.dtype(), run_v1(call)),
    ..KernelDef::of("Select")
};

/// A vector condition with axes appended, so that it lies along the values' first axis.
fn aligned(condition: &Shape, values: &Shape) -> Result<Shape> {
    if condition.rank() != 1 || values.rank() <= 1 {
        if condition.rank() != 0 {
            crate::base::adapt::check_shape("condition", condition, values)?;
        }
        return Ok(*condition);
    }
    crate::base::adapt::check_shape("condition", condition, &Shape::new(&values[..1])?)?;
    let mut aligned = *condition;
    for _ in 1..values.rank() {
        aligned.push(1)?;
    }
    Ok(aligned)
}

fn shapes(inputs: &Inputs<'_>) -> Result<(Shape, Shape, Shape)> {
    Ok((
        inputs.shape(0, "condition")?,
        inputs.shape(1, "t")?,
        inputs.shape(2, "e")?,
    ))
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let shape = call.inputs.shape(0, "condition")?;
    run_with::<N>(call, &shape)
}

fn run_v1<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (condition, then, _) = shapes(&call.inputs)?;
    run_with::<N>(call, &aligned(&condition, &then)?)
}

fn run_with<const N: usize>(call: &mut Call<'_>, condition_shape: &Shape) -> Result<()> {
    let condition = call.inputs.get(0, "condition")?;
    let (then, other) = (call.inputs.get(1, "t")?, call.inputs.get(2, "e")?);
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    select(
        (condition.bytes(), condition_shape),
        (units(then.bytes()), then.shape()),
        (units(other.bytes()), other.shape()),
        out,
        parallel,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{cases, indices, number, pairs};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn all_three_are_broadcast((a, b) in pairs(), c in 0_usize..3, order: bool) {
            let (then, other) = if order { (a, b) } else { (b, a) };
            let whole = a.broadcast(&b, ("a", "b")).unwrap();
            let condition = [whole, then, Shape::SCALAR][c];
            let flags: Vec<u8> = numbers(condition.elements(), 3).iter().map(|&x| u8::from(x > 0.0)).collect();
            let (t, e) = (numbers(then.elements(), 1), numbers(other.elements(), 2));
            let mut out = vec![f32::NAN; whole.elements()];
            select((&flags, &condition), (&t, &then), (&e, &other), &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                let at = indices(&whole, i);
                let expected = if flags[number(&condition, &at)] != 0 {
                    t[number(&then, &at)]
                } else {
                    e[number(&other, &at)]
                };
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn the_first_version_takes_a_vector_over_the_first_axis() {
        use crate::base::dtype::DType;
        use crate::trial::{Tensor, run};
        let condition = Tensor::new(DType::Bool, &[2], &[1, 0]);
        let (t, e) = (
            Tensor::f32(&[2, 2], &[1.0; 4]),
            Tensor::f32(&[2, 2], &[2.0; 4]),
        );
        let out = run(
            &super::SELECT,
            &[],
            &[condition, t.clone(), e.clone()],
            false,
        )
        .unwrap();
        assert_eq!(out[0].to_f32(), [1.0, 1.0, 2.0, 2.0]);
        for wrong in [&[1, 0, 0][..], &[1]] {
            let wrong = Tensor::new(DType::Bool, &[wrong.len()], wrong);
            assert!(run(&super::SELECT, &[], &[wrong, t.clone(), e.clone()], false).is_err());
        }
    }
}
