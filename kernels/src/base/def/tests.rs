use super::*;

#[test]
fn combinations_are_all_pairs_once() {
    let variants = Variants {
        types: &[
            ("T", &[DType::F32, DType::F64]),
            ("I", &[DType::I32, DType::I64]),
        ],
        host: &[],
    };
    let mut found: Vec<Vec<_>> = (0..variants.count())
        .map(|number| {
            variants
                .combination(number)
                .map(|(_, dtype)| dtype)
                .collect()
        })
        .collect();
    found.sort_by_key(|types| format!("{types:?}"));
    let (wide, long) = ([DType::F32, DType::F64], [DType::I32, DType::I64]);
    assert_eq!(found, wide.map(|a| long.map(|b| vec![a, b])).concat());
    let none = Variants {
        types: &[],
        host: &[],
    };
    assert_eq!((none.count(), none.combination(0).count()), (1, 0));
    let empty = Variants {
        types: &[("T", &[])],
        host: &[],
    };
    assert_eq!((empty.count(), empty.combination(0).count()), (0, 0));
}

#[test]
fn every_kernel_gives_types_outputs_and_run() {
    let lacks = |def: &KernelDef| {
        let of = KernelDef::of(def.op);
        def.variants.iter().all(|variants| variants.count() == 0)
            || core::ptr::fn_addr_eq(def.outputs, of.outputs)
            || core::ptr::fn_addr_eq(def.run, of.run)
    };
    assert!(lacks(&KernelDef::of("Tile")));
    for def in crate::kernels() {
        assert!(!lacks(def), "{} has no variants, outputs or run", def.op);
    }
}

#[test]
fn views_are_aligned_and_whole() {
    let words = [0x0102_0304_u32, 0, 7, 8];
    let bytes = numbers::bytes(&words);
    let view = |dims: &[usize], bytes| {
        let spec = Spec::new(DType::I32, Shape::new(dims).unwrap()).unwrap();
        let tensor = TensorRef::new(&spec, bytes)?;
        tensor.i32("x").map(<[i32]>::to_vec)
    };
    assert_eq!(view(&[2, 2], bytes).unwrap(), [0x0102_0304, 0, 7, 8]);
    assert!(matches!(
        view(&[1], &bytes[1..5]),
        Err(Error::Value {
            argument: "x",
            expected: "aligned data"
        })
    ));
    assert!(matches!(
        view(&[3], bytes),
        Err(Error::Length {
            found: 16,
            expected: 12,
            ..
        })
    ));
    // No elements lie anywhere.
    assert_eq!(view(&[0], &bytes[1..1]).unwrap(), []);
    let spec = Spec::scalar(DType::F64);
    assert!(TensorRef::forwarded(&spec).f64("x").unwrap().is_empty());
    assert!(matches!(
        TensorRef::forwarded(&spec).f32("x"),
        Err(Error::DType {
            found: DType::F64,
            ..
        })
    ));
    let spec = Spec::new(DType::F32, Shape::new(&[usize::MAX / 2]).unwrap());
    assert!(matches!(spec, Err(Error::Overflow { .. })));
}
