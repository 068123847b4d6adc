use super::*;
use crate::ops;
use crate::testing::numbers as draw;
use crate::trial::{Attr, Tensor, cases, pairs, run};
use proptest::prelude::*;

const HALVES: [DType; 2] = [DType::F16, DType::BF16];

fn narrow(op: &str) -> &'static KernelDef {
    let rooms = [
        ops::narrow::ELEMENTWISE,
        ops::narrow::KERNELS,
        ops::narrow::PRODUCTS,
    ];
    let mut kernels = rooms.into_iter().flatten();
    kernels.find(|def| def.op == op).unwrap()
}

/// The numbers, as far as the type holds them: as the type has them, and widened again.
fn both(dtype: DType, dims: &[usize], x: &[f32]) -> (Tensor, Tensor) {
    let half = Half::of(dtype).unwrap();
    let (mut bits, mut wide) = (vec![0; x.len()], vec![0.0; x.len()]);
    half.round(x, &mut bits);
    half.widen(&bits, &mut wide);
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
    (Tensor::new(dtype, dims, &bytes), Tensor::f32(dims, &wide))
}

/// What `wide` makes of widened inputs, rounded, is what the narrow kernel makes.
fn check(wide: &KernelDef, attrs: &[(&'static str, Attr)], inputs: &[(Tensor, Tensor)]) {
    for forward in [false, true] {
        let of = |side: fn(&(Tensor, Tensor)) -> &Tensor| -> Vec<Tensor> {
            inputs.iter().map(|both| side(both).clone()).collect()
        };
        let expected = run(wide, attrs, &of(|both| &both.1), false).unwrap();
        let found = run(narrow(wide.op), attrs, &of(|both| &both.0), forward).unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.dims, expected.dims);
            let rounded = match Half::of(found.dtype) {
                Some(_) => both(found.dtype, &expected.dims, &expected.to_f32()).0,
                None => expected.clone(),
            };
            assert_eq!(found, &rounded, "{} {forward}", wide.op);
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn elementwise_is_widening_and_one_rounding((a, b) in pairs(), repeat: bool) {
        // Also one that fills several blocks.
        let stretch = if repeat { 700 } else { 1 };
        let dims = |shape: &Shape| -> Vec<usize> {
            let mut dims = shape.to_vec();
            if let Some(last) = dims.last_mut() {
                *last *= if *last == 1 { 1 } else { stretch };
            }
            dims
        };
        for dtype in HALVES {
            let [x, y] = [(&a, 1), (&b, 2)].map(|(shape, seed)| {
                let dims = dims(shape);
                both(dtype, &dims, &draw(dims.iter().product(), seed))
            });
            check(&ops::elementwise::binary::SUB, &[], &[x.clone(), y.clone()]);
            check(&ops::elementwise::compare::LESS, &[], &[x.clone(), y]);
            check(&ops::elementwise::unary::TANH, &[], &[x]);
        }
    }
}

#[test]
fn products_statistics_and_attributes() {
    for dtype in HALVES {
        let a = both(dtype, &[7, 300], &draw(2100, 1));
        let b = both(dtype, &[5, 300], &draw(1500, 2));
        let turned = [
            ("transpose_a", Attr::Bool(false)),
            ("transpose_b", Attr::Bool(true)),
        ];
        check(&ops::matrix::mat_mul::DEF, &turned, &[a.clone(), b]);
        let axes = Tensor::i32(&[1], &[1]);
        let keep = [("keep_dims", Attr::Bool(true))];
        let axes = (axes.clone(), axes);
        check(&ops::reduction::reductions::MEAN, &keep, &[a.clone(), axes]);
        let slope = [("alpha", Attr::Float(0.25))];
        check(&ops::elementwise::leaky_relu::LEAKY_RELU, &slope, &[a]);

        let x = both(dtype, &[2, 3, 3, 4], &draw(72, 3));
        let vector = |seed| {
            let vector = Tensor::f32(&[4], &draw(4, seed));
            (vector.clone(), vector)
        };
        let none = (Tensor::f32(&[0], &[]), Tensor::f32(&[0], &[]));
        let attrs = [
            ("epsilon", Attr::Float(0.001)),
            ("exponential_avg_factor", Attr::Float(1.0)),
            ("data_format", Attr::Text("NHWC")),
            ("is_training", Attr::Bool(true)),
        ];
        let inputs = [x, vector(4), vector(5), none.clone(), none];
        let def = &ops::norm::fused_batch_norm::FUSED_BATCH_NORM_V3;
        check(def, &attrs, &inputs);
        // The statistics stay wide.
        let inputs = inputs.map(|both| both.0);
        let out = run(narrow(def.op), &attrs, &inputs, false).unwrap();
        let types: Vec<_> = out.iter().map(|out| out.dtype).collect();
        let wide = DType::F32;
        assert_eq!(types, [dtype, wide, wide, wide, wide, wide]);
    }
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let x = both(DType::F16, &[2, 3], &[0.0; 6]).0;
    let y = both(DType::F16, &[2], &[0.0; 2]).0;
    assert!(run(narrow("Sub"), &[], &[x.clone(), y], false).is_err());
    assert!(
        run(
            narrow("Less"),
            &[],
            &[x.clone(), Tensor::i64(&[1], &[1])],
            false
        )
        .is_err()
    );
    let many: Vec<Tensor> = (0..14).map(|_| x.clone()).collect();
    assert!(run(narrow("Sub"), &[], &many, false).is_err());
}
