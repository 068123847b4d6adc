//! Several threads give what one gives.

use proptest::prelude::*;

use super::super::team::{Plan, Sequences};
use super::{Matrices, assert_close};
use crate::base::parallel::{Parallel, Serial};
use crate::base::rounds::MOST;
use crate::base::threads::ThreadPool;
use crate::gemm::pack::panel;
use crate::ops::sequence::recurrent::*;
use crate::testing::{Interleaved, Threads, numbers};

/// A layer of any kind.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Lstm,
    GruAfter,
    GruBefore,
    Simple(Activation),
}

/// A layer with all that it reads.
struct Case<'a> {
    kind: Kind,
    walk: Walk<'a>,
    matrices: Matrices,
    packed: bool,
    bias: Vec<f32>,
    x: Vec<f32>,
}

/// The state, the cell state and all outputs.
type Results = [Vec<f32>; 3];

impl<'a> Case<'a> {
    fn new(kind: Kind, walk: Walk<'a>, inputs: usize, packed: bool) -> Self {
        let units = walk.units;
        let sizes = match kind {
            Kind::Lstm => vec![(inputs, 4 * units), (units, 4 * units)],
            Kind::GruAfter => vec![(inputs, 3 * units), (units, 3 * units)],
            Kind::GruBefore => vec![(inputs, 3 * units), (units, 2 * units), (units, units)],
            Kind::Simple(_) => vec![(inputs, units), (units, units)],
        };
        // Small enough that what a step rounds does not grow in those after.
        let scale = 0.5 / (units.max(inputs).max(1) as f32).sqrt();
        Self {
            kind,
            walk,
            bias: numbers(sizes[0].1, 7),
            matrices: Matrices::scaled(&sizes, scale),
            packed,
            x: numbers(walk.batch * walk.steps * inputs, 8),
        }
    }

    /// What the layer gives with some plan, or with its own.
    fn run(&self, plan: Option<Plan>, parallel: &dyn Parallel, outputs: bool) -> Results {
        let walk = self.walk;
        let state = walk.batch * walk.units;
        let (mut hidden, mut cell) = (numbers(state, 10), numbers(state, 11));
        let mut sequence = vec![f32::NAN; if outputs { state * walk.steps } else { 0 }];
        let factor = |index| self.matrices.factor(index, self.packed);
        let bias = Some(&self.bias[..]);
        let x = &self.x;
        macro_rules! run {
            ($layer:expr, $cell:expr, ($($state:expr),*)) => {{
                let layer = $layer;
                let mut scratch = vec![f32::NAN; layer.scratch_len().unwrap()];
                match plan {
                    Some(plan) => {
                        let own = Sequences {
                            walk,
                            x,
                            hidden: &mut hidden,
                            cell: $cell,
                            sequence: &mut sequence,
                            scratch: &mut scratch,
                        };
                        layer.run_as(plan, own, parallel).unwrap();
                    }
                    None => layer
                        .run(x, &mut hidden, $($state,)* &mut sequence, &mut scratch, parallel)
                        .unwrap(),
                }
            }};
        }
        let kernel = factor(0);
        match self.kind {
            Kind::Lstm => {
                let recurrent = factor(1);
                run!(
                    LstmLayer {
                        walk,
                        kernel,
                        recurrent,
                        bias
                    },
                    &mut cell,
                    (&mut cell)
                );
            }
            Kind::GruAfter => {
                let recurrent = Reset::After {
                    matrix: factor(1),
                    bias,
                };
                run!(
                    GruLayer {
                        walk,
                        kernel,
                        recurrent,
                        bias
                    },
                    &mut [],
                    ()
                );
            }
            Kind::GruBefore => {
                let recurrent = Reset::Before {
                    gates: factor(1),
                    candidate: factor(2),
                };
                run!(
                    GruLayer {
                        walk,
                        kernel,
                        recurrent,
                        bias
                    },
                    &mut [],
                    ()
                );
            }
            Kind::Simple(activation) => {
                let recurrent = factor(1);
                run!(
                    SimpleRnnLayer {
                        walk,
                        kernel,
                        recurrent,
                        bias,
                        activation
                    },
                    &mut [],
                    ()
                );
            }
        }
        [hidden, cell, sequence]
    }

    /// Plans that the layer has, whether they are worth it or not.
    fn plans(&self) -> Vec<Plan> {
        let mut plans = vec![Plan::Alone];
        if !self.packed {
            return plans;
        }
        let Walk { batch, units, .. } = self.walk;
        let panel = panel(crate::base::level::level());
        if units % panel == 0 {
            plans.extend((2..=(units / panel).min(MOST)).map(Plan::Units));
        }
        if batch == 1 && matches!(self.kind, Kind::Lstm | Kind::GruAfter) {
            let panels = units * 3 / panel;
            plans.extend((2..=panels.min(4)).map(Plan::Panels));
        }
        plans.extend((2..=batch.min(4)).map(Plan::Rows));
        plans
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::Lstm),
        2 => Just(Kind::GruAfter),
        2 => Just(Kind::GruBefore),
        1 => Just(Kind::Simple(Activation::Map(|x| x.iter_mut().for_each(|x| *x = x.tanh())))),
        1 => Just(Kind::Simple(Activation::RELU6)),
    ]
}

fn units() -> impl Strategy<Value = usize> {
    prop_oneof![2 => (1..9_usize).prop_map(|n| n * 32), 1 => 1..40_usize, 2 => 33..130_usize]
}

/// Whether all elements have the same bits.
fn same(found: &Results, expected: &Results) -> bool {
    let bits = |results: &Results| {
        results
            .concat()
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>()
    };
    bits(found) == bits(expected)
}

fn check(found: &Results, expected: &Results) {
    for (found, expected) in found.iter().zip(expected) {
        assert_close(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn threads_give_what_one_gives(
        (kind, units, inputs) in (kind(), units(), prop_oneof![0..40_usize, 100..200_usize]),
        (batch, steps) in (prop_oneof![2 => Just(1), 2 => 2..10_usize, 1 => 14..40_usize], 0..9_usize),
        (reverse, masked, zero_masked, packed, outputs) in
            (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.9), any::<bool>()),
        seed in 0..100_u64,
    ) {
        let mask: Vec<u8> = numbers(batch * steps, seed).iter().map(|x| u8::from(*x > -0.3)).collect();
        let walk = Walk { batch, steps, units, reverse, mask: masked.then_some(&mask), zero_masked };
        let case = Case::new(kind, walk, inputs, packed);
        let expected = case.run(None, &Serial, outputs);
        let pools = [1, 2, 3].map(ThreadPool::new);
        let mut parallel: Vec<&dyn Parallel> = vec![&Interleaved, &Threads(2)];
        parallel.extend(pools.iter().map(|pool| pool as &dyn Parallel));
        for parallel in parallel {
            let found = case.run(None, parallel, outputs);
            check(&found, &expected);
            if batch > 1 && packed {
                prop_assert!(same(&found, &expected), "{kind:?} {walk:?}");
            }
        }
        for plan in case.plans() {
            for parallel in [&pools[1] as &dyn Parallel, &pools[2], &Interleaved] {
                check(&case.run(Some(plan), parallel, outputs), &expected);
            }
        }
    }
}

#[test]
fn layers_are_shared_if_that_repays() {
    let plan = |kind, units, batch, steps, parallel: &dyn Parallel| {
        let walk = Walk {
            batch,
            steps,
            units,
            reverse: false,
            mask: None,
            zero_masked: false,
        };
        let case = Case::new(kind, walk, 64, true);
        let layer = LstmLayer {
            walk,
            kernel: case.matrices.factor(0, true),
            recurrent: case.matrices.factor(1, true),
            bias: None,
        };
        let recurrent = [layer.recurrent];
        Plan::new(&walk, &layer.kernel, &recurrent, true, parallel)
    };
    let two = Threads(2);
    assert_eq!(plan(Kind::Lstm, 128, 1, 100, &Serial), Plan::Alone);
    assert_eq!(plan(Kind::Lstm, 128, 1, 100, &two), Plan::Units(2));
    assert_eq!(plan(Kind::Lstm, 100, 1, 100, &two), Plan::Panels(2));
    assert_eq!(plan(Kind::Lstm, 100, 8, 100, &two), Plan::Rows(2));
    // Two sequences, some that make two tiles, and those between; weights that a cache has not.
    assert_eq!(plan(Kind::Lstm, 128, 2, 100, &two), Plan::Rows(2));
    assert_eq!(plan(Kind::Lstm, 128, 8, 100, &two), Plan::Rows(2));
    assert_eq!(plan(Kind::Lstm, 128, 4, 100, &two), Plan::Units(2));
    assert_eq!(plan(Kind::Lstm, 512, 8, 1, &two), Plan::Units(2));
    assert_eq!(plan(Kind::Lstm, 128, 6, 100, &Threads(4)), Plan::Units(4));
    assert_eq!(plan(Kind::Lstm, 8, 1, 100, &two), Plan::Alone);
}
