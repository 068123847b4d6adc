//! Layers that mix images, and that draw which layers change them.

use tfp::nn::Weights;
use tfp::nn::layer::{
    AugMix, AutoContrast, CutMix, Equalization, Layer, MixUp, Pass, RandAugment,
    RandomElasticTransform, RandomPosterization, RandomSharpness, Solarization,
};
use tfp::{
    AnyContext, AnyValue, Context, DataType, EagerContext, Graph, Mode, Result, Session, Shape,
    Tensor,
};

const SAMPLES: usize = 48;
const SIDE: usize = 9;
const SIZE: usize = SIDE * SIDE;

fn at_step<'a>(cx: &'a AnyContext, step: i64) -> Result<Pass<'a>> {
    Ok(Pass::training(cx).at_step(cx.constant(&Tensor::scalar(step)?)?))
}

fn numbers(value: &AnyValue) -> Result<Vec<f32>> {
    value.handle()?.to_tensor()?.to_vec()
}

/// Images and labels that a layer makes of samples: each image has its number, and so has each label.
fn mixed(layer: &dyn Layer, step: i64) -> Result<(Vec<f32>, Vec<f32>)> {
    let eager = EagerContext::new()?;
    let (count, side) = (SAMPLES as i64, SIDE as i64);
    let built = layer.build_many(&Weights::new(&eager, 1), &[&[side, side, 1], &[count]])?;
    assert_eq!(built.outputs, [vec![side, side, 1], vec![count]]);
    let cx = eager.any();
    let images = (0..SAMPLES).flat_map(|at| [at as f32; SIZE]).collect();
    let images = cx.constant(&Tensor::from_vec(images, &[count, side, side, 1])?)?;
    let label = |at: usize| f32::from(u8::from(at.is_multiple_of(SAMPLES + 1)));
    let labels = (0..SAMPLES * SAMPLES).map(label).collect();
    let labels = cx.constant(&Tensor::from_vec(labels, &[count, count])?)?;
    let found = (built.forward)(&at_step(&cx, step)?, &[images, labels])?;
    Ok((numbers(&found[0])?, numbers(&found[1])?))
}

/// Of each sample: the other one, and how much of the sample itself stays.
fn weights_of(labels: &[f32]) -> Vec<(usize, f32)> {
    let mut found = Vec::new();
    for (sample, row) in labels.chunks(SAMPLES).enumerate() {
        let sum: f32 = row.iter().sum();
        assert!((sum - 1.0).abs() < 1e-5, "{row:?}");
        let mut others = (0..SAMPLES).filter(|&at| at != sample && row[at] > 0.0);
        let other = others.next().unwrap_or(sample);
        assert_eq!(others.next(), None, "{row:?}");
        found.push((other, row[sample]));
    }
    let mut others: Vec<usize> = found.iter().map(|(other, _)| *other).collect();
    others.sort_unstable();
    assert_eq!(
        others,
        (0..SAMPLES).collect::<Vec<_>>(),
        "each is once another"
    );
    found
}

#[test]
fn images_and_labels_are_mixed_by_the_same_weights() -> Result<()> {
    // The variance of a beta distribution of equal parameters is 1 / (8 alpha + 4).
    for (alpha, variance) in [(1.0, 1.0 / 12.0), (4.0, 1.0 / 36.0)] {
        let mut weights = Vec::new();
        for step in 0..12 {
            let (images, labels) = mixed(&MixUp { alpha }, step)?;
            for (sample, (other, stays)) in weights_of(&labels).into_iter().enumerate() {
                let expected = stays * sample as f32 + (1.0 - stays) * other as f32;
                let image = &images[sample * SIZE..(sample + 1) * SIZE];
                assert!(image.iter().all(|one| (one - expected).abs() < 1e-3));
                if other != sample {
                    weights.push(stays);
                }
            }
        }
        let count = weights.len() as f32;
        let mean = weights.iter().sum::<f32>() / count;
        let squares = weights.iter().map(|one| (one - mean) * (one - mean));
        let found = squares.sum::<f32>() / count;
        // Five standard errors of 560 numbers.
        assert!(count > 500.0 && (mean - 0.5).abs() < 0.062, "{mean}");
        assert!(
            (found / variance - 1.0).abs() < 0.3,
            "{found}, not {variance}"
        );
    }
    Ok(())
}

#[test]
fn a_rectangle_comes_from_another_image() -> Result<()> {
    let layer = CutMix { factor: (1.0, 1.0) };
    let mut changed = 0;
    for step in 0..4 {
        let (images, labels) = mixed(&layer, step)?;
        for (sample, (other, stays)) in weights_of(&labels).into_iter().enumerate() {
            if other == sample {
                continue;
            }
            let image = &images[sample * SIZE..(sample + 1) * SIZE];
            let (mut rows, mut columns, mut count) = (Vec::new(), Vec::new(), 0);
            for (at, &pixel) in image.iter().enumerate() {
                assert!(pixel == sample as f32 || pixel == other as f32);
                if pixel == other as f32 {
                    rows.push(at / SIDE);
                    columns.push(at % SIDE);
                    count += 1;
                }
            }
            for places in [&mut rows, &mut columns] {
                places.sort_unstable();
                places.dedup();
                assert!(places.windows(2).all(|two| two[0] + 1 == two[1]));
                // As many as the label says, up to the edges.
                let length = (1.0 - stays).sqrt() * SIDE as f32;
                assert!((places.len() as f32 - length).abs() <= 1.0 || count == 0);
            }
            assert_eq!(rows.len() * columns.len(), count);
            changed += usize::from(count > 0);
        }
    }
    assert!(changed > 2 * SAMPLES, "{changed}");
    Ok(())
}

/// Both numbers that a weight is of are the smallest ones of float32, but for few.
#[test]
fn the_smallest_factor_of_cut_mix_is_half_or_all() -> Result<()> {
    let (_, labels) = mixed(&CutMix::new(0.0), 1)?;
    let weights = weights_of(&labels);
    let is_one = |stays: f32| [0.0, 0.5, 1.0].contains(&stays);
    assert!(
        weights.iter().all(|(_, stays)| is_one(*stays)),
        "{weights:?}"
    );
    Ok(())
}

/// Two images of red, green and blue.
fn pictures() -> Vec<f32> {
    let value = |at: usize| 20.0 + 0.7 * (at * 37 % 251) as f32;
    (0..2 * SIZE * 3).map(value).collect()
}

/// What a layer makes of pictures at a step of training.
fn changed(layer: &dyn Layer, step: i64) -> Result<Vec<f32>> {
    let eager = EagerContext::new()?;
    let side = SIDE as i64;
    let built = layer.build(&Weights::new(&eager, 1), &[side, side, 3])?;
    let cx = eager.any();
    let x = cx.constant(&Tensor::from_vec(pictures(), &[2, side, side, 3])?)?;
    numbers(&(built.forward)(&at_step(&cx, step)?, &x)?)
}

fn near(found: &[f32], expected: &[f32]) -> bool {
    let away = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    away.fold(0.0, f32::max) < 0.01
}

/// What the changes of a factor of zero make, where they change something.
fn every() -> Result<Vec<Vec<f32>>> {
    let zero = (0.0, 0.0);
    let layers: [&dyn Layer; 5] = [
        &RandomPosterization::new(1),
        &Solarization::new(0.0, 0.0),
        &AutoContrast::default(),
        &Equalization::default(),
        &RandomSharpness {
            factor: zero,
            ..RandomSharpness::new(0.0)
        },
    ];
    layers.iter().map(|layer| changed(layer, 1)).collect()
}

#[test]
fn each_of_the_changes_is_drawn() -> Result<()> {
    let layer = RandAugment {
        count: 1,
        factor: (0.0, 0.0),
        ..RandAugment::default()
    };
    let every = every()?;
    let mut counts = [0; 6];
    for step in 0..110 {
        let found = changed(&layer, step)?;
        let place = every.iter().position(|one| near(&found, one));
        assert!(place.is_some() || near(&found, &pictures()), "step {step}");
        counts[place.unwrap_or(5)] += 1;
    }
    // Each of eleven: six of them change nothing.
    assert!(
        counts[..5].iter().all(|count| (2..25).contains(count)),
        "{counts:?}"
    );
    assert!((40..80).contains(&counts[5]), "{counts:?}");
    Ok(())
}

#[test]
fn chains_of_changes_are_mixed_with_the_images() -> Result<()> {
    let still = AugMix {
        depth: 0,
        ..AugMix::default()
    };
    assert!(near(&changed(&still, 1)?, &pictures()));
    let layer = AugMix {
        chains: 1,
        depth: 1,
        factor: (0.0, 0.0),
        ..AugMix::default()
    };
    let every = every()?;
    let pictures = pictures();
    let (mut shares, mut same) = (Vec::new(), 0);
    for step in 0..60 {
        let found = changed(&layer, step)?;
        if near(&found, &pictures) {
            same += 1;
            continue;
        }
        // The share of what was drawn, which is that of each pixel.
        let share = every.iter().find_map(|one| {
            let of = |at: usize| (found[at] - pictures[at]) / (one[at] - pictures[at]);
            let far: Vec<usize> = (0..found.len())
                .filter(|&at| (one[at] - pictures[at]).abs() > 5.0)
                .collect();
            let share = of(*far.first()?);
            far.iter()
                .all(|&at| (of(at) - share).abs() < 1e-3)
                .then_some(share)
        });
        shares.push(share.unwrap_or_else(|| panic!("step {step}")));
    }
    assert!((10..50).contains(&same), "{same}");
    assert!(shares.iter().all(|share| (0.0..1.001).contains(share)));
    let mean = shares.iter().sum::<f32>() / shares.len() as f32;
    assert!((mean - 0.5).abs() < 0.3, "{mean}");
    let wide = AugMix::default();
    let found = changed(&wide, 3)?;
    assert!(found.iter().all(|one| (0.0..=255.0).contains(one)));
    assert_ne!(found, changed(&wide, 4)?);
    Ok(())
}

/// A graph has all changes, and computes the one that is drawn.
#[test]
fn graphs_draw_the_same_changes() -> Result<()> {
    let mix = AugMix {
        chains: 2,
        depth: 1,
        ..AugMix::default()
    };
    let layers: [&dyn Layer; 2] = [&RandAugment::default(), &mix];
    let side = SIDE as i64;
    for layer in layers {
        let graph = Graph::new()?;
        let built = layer.build(&Weights::new(&graph, 1), &[side, side, 3])?;
        let cx = graph.any();
        let x = cx.constant(&Tensor::from_vec(pictures(), &[2, side, side, 3])?)?;
        let index = graph
            .scope()
            .placeholder("step", DataType::INT64, &Shape::scalar())?;
        let pass = Pass::training(&cx).at_step(AnyValue::from(&index));
        let y = (built.forward)(&pass, &x)?;
        let session = Session::new(&graph)?;
        for step in 0..3 {
            let fed = Tensor::scalar(step)?;
            let found = session.eval(&[(&index, &fed)], &[y.output()?])?;
            let (found, expected) = (found[0].to_vec::<f32>()?, changed(layer, step)?);
            assert!(near(&found, &expected), "{} at {step}", layer.kind());
        }
    }
    Ok(())
}

const ROWS: usize = 24;
const COLUMNS: usize = 30;

/// How far the pixels inside of an image have moved along one axis, by an image whose values are the
/// places along it.
fn moves(layer: &RandomElasticTransform, is_down: bool) -> Result<Vec<f32>> {
    let eager = EagerContext::new()?;
    let dims = [8, ROWS as i64, COLUMNS as i64, 1];
    let built = layer.build(&Weights::new(&eager, 1), &dims[1..])?;
    let cx = eager.any();
    let place = |at: usize| if is_down { at / COLUMNS } else { at % COLUMNS };
    let image: Vec<f32> = (0..ROWS * COLUMNS).map(|at| place(at) as f32).collect();
    let x = cx.constant(&Tensor::from_vec(image.repeat(8), &dims)?)?;
    let y = numbers(&(built.forward)(&at_step(&cx, 1)?, &x)?)?;
    let is_inside = |at: usize, size: usize| (6..size - 6).contains(&at);
    let mut found = Vec::new();
    for (at, value) in y.iter().enumerate() {
        let at = at % (ROWS * COLUMNS);
        if is_inside(at / COLUMNS, ROWS) && is_inside(at % COLUMNS, COLUMNS) {
            found.push(value - place(at) as f32);
        }
    }
    Ok(found)
}

/// The deviation of noise that seven smooth weights of a deviation have made means of.
#[test]
fn pixels_move_by_smooth_noise() -> Result<()> {
    let layer = RandomElasticTransform {
        factor: (1.0, 1.0),
        scale: (1.0, 1.0),
        ..RandomElasticTransform::new(1.0, 1.0)
    };
    let (down, across) = (moves(&layer, true)?, moves(&layer, false)?);
    assert!(near(&down, &across), "as many rows as columns");
    // 10 % of the longer side, and 5 % of the shorter one.
    let (far, sigma) = (0.1 * COLUMNS as f64, 0.05 * ROWS as f64);
    let weights = (-3..=3).map(|at| (-0.5 * f64::from(at * at) / (sigma * sigma)).exp());
    let weights: Vec<f64> = weights.collect();
    let sum: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|one| one * one).sum();
    let expected = far * sigma * squares / (sum * sum);
    let found = down.iter().map(|one| f64::from(*one).powi(2)).sum::<f64>();
    let found = (found / down.len() as f64).sqrt();
    assert!(
        (found / expected - 1.0).abs() < 0.15,
        "{found}, not {expected}"
    );
    let still = RandomElasticTransform::new(1.0, 0.0);
    assert!(moves(&still, true)?.iter().all(|one| *one == 0.0));
    Ok(())
}

#[test]
fn numbers_that_do_not_fit_are_errors() -> Result<()> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 1);
    let fails = |layer: &dyn Layer, inputs: &[&[i64]], expected: &str| {
        let error = layer.build_many(&weights, inputs).map(|_| ());
        let error = error.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    let image: &[i64] = &[6, 6, 3];
    fails(&MixUp { alpha: 0.0 }, &[image], "alpha is 0");
    fails(&MixUp::default(), &[image, &[2, 2]], "labels as a vector");
    fails(&MixUp::default(), &[image, &[2], &[2]], "found 3 inputs");
    fails(&CutMix::new(1.5), &[image], "expected 0 to 1");
    let augment = RandAugment {
        count: 1 << 20,
        ..RandAugment::default()
    };
    fails(&augment, &[image], "1048576 changes");
    let mix = AugMix {
        chains: i64::MAX,
        depth: 2,
        ..AugMix::default()
    };
    fails(&mix, &[image], "expected one chain");
    let described = MixUp::default().keras(&[image, &[2]]);
    assert!(described.is_err_and(|error| error.to_string().contains("a dictionary")));
    Ok(())
}
