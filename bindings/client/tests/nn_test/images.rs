//! Layers of images that draw at random: `keras.rs` compares those that draw from one number.

use tfp::nn::Weights;
use tfp::nn::layer::{
    AspectRatio, CenterCrop, Equalization, Fill, Flip, Layer, Pass, RandomBrightness,
    RandomColorDegeneration, RandomColorJitter, RandomContrast, RandomCrop, RandomElasticTransform,
    RandomErasing, RandomFlip, RandomGaussianBlur, RandomGrayscale, RandomHue, RandomInvert,
    RandomPerspective, RandomPosterization, RandomRotation, RandomSaturation, RandomSharpness,
    RandomShear, RandomTranslation, RandomZoom, ResizeMethod, Resizing, Sequential, Solarization,
};
use tfp::{AnyValue, Context, EagerContext, Mode, Result, Tensor};

const ROWS: usize = 6;
const COLUMNS: usize = 7;
const SAMPLES: usize = 24;
/// The elements of an image.
const SIZE: usize = ROWS * COLUMNS * 3;
const DIMS: [i64; 4] = [SAMPLES as i64, ROWS as i64, COLUMNS as i64, 3];

/// One image for each sample, whose values differ from each other.
fn image() -> Vec<f32> {
    (0..SIZE).map(|at| (at * 37 % 127) as f32 * 2.0).collect()
}

/// What a layer makes of the image in each sample: at a step of training, or otherwise.
fn run(layer: &dyn Layer, step: Option<i64>) -> Result<(Vec<i64>, Vec<f32>)> {
    run_of(layer, step, &DIMS[1..])
}

/// As [`run`], by a layer that is built for images of some sizes.
fn run_of(layer: &dyn Layer, step: Option<i64>, sizes: &[i64]) -> Result<(Vec<i64>, Vec<f32>)> {
    let eager = EagerContext::new()?;
    let built = layer.build(&Weights::new(&eager, 1), sizes)?;
    let cx = eager.any();
    let x = cx.constant(&Tensor::from_vec(image().repeat(SAMPLES), &DIMS)?)?;
    let pass = match step {
        Some(step) => Pass::training(&cx).at_step(cx.constant(&Tensor::scalar(step)?)?),
        None => Pass::inference(&cx),
    };
    let AnyValue::Handle(y) = (built.forward)(&pass, &x)? else {
        panic!("a value of an eager context");
    };
    let y = y.to_tensor()?;
    Ok((y.dims().to_vec(), y.to_vec()?))
}

fn random() -> Vec<Box<dyn Layer>> {
    vec![
        Box::new(RandomFlip::default()),
        Box::new(RandomRotation::new(0.2)),
        Box::new(RandomTranslation::new(0.3, 0.4)),
        Box::new(RandomZoom::new(0.4)),
        Box::new(RandomZoom {
            width: Some((-0.5, 0.5)),
            ..RandomZoom::new(0.0)
        }),
        Box::new(RandomBrightness::new(0.3)),
        Box::new(RandomContrast::new(0.8)),
        Box::new(RandomColorDegeneration::new(0.8)),
        Box::new(RandomColorJitter {
            brightness: Some((-0.1, 0.1)),
            hue: Some((0.0, 1.0)),
            ..RandomColorJitter::default()
        }),
        Box::new(RandomElasticTransform::new(1.0, 1.0)),
        Box::new(RandomErasing::new(1.0)),
        Box::new(RandomGaussianBlur::new(1.0)),
        Box::new(RandomGrayscale { factor: 0.5 }),
        Box::new(RandomHue::new(0.5)),
        Box::new(RandomInvert::new(1.0)),
        Box::new(RandomPerspective::new(1.0, 0.5)),
        Box::new(RandomPosterization::new(8)),
        Box::new(RandomSaturation::new(0.6)),
        Box::new(RandomSharpness::new(1.0)),
        Box::new(RandomShear::new(0.3, 0.4)),
        Box::new(Solarization::new(0.3, 0.8)),
    ]
}

#[test]
fn samples_and_steps_have_draws_of_their_own() -> Result<()> {
    for layer in random() {
        let name = layer.kind();
        let (dims, first) = run(&layer, Some(1))?;
        assert_eq!(dims, DIMS, "{name}");
        assert!(first.iter().all(|value| value.is_finite()), "{name}");
        let other = first.chunks(SIZE).any(|sample| sample != &first[..SIZE]);
        assert!(other, "{name}: all samples are equal");
        assert_eq!(run(&layer, Some(1))?.1, first, "{name}: the step decides");
        assert_ne!(run(&layer, Some(2))?.1, first, "{name}: steps differ");
        assert_eq!(run(&layer, None)?.1, image().repeat(SAMPLES), "{name}");
    }
    Ok(())
}

#[test]
fn sizes_may_be_known_in_the_computation_only() -> Result<()> {
    let resizing = |aspect_ratio| Resizing {
        aspect_ratio,
        method: ResizeMethod::Lanczos3,
        ..Resizing::new(9, 4)
    };
    let mut layers = random();
    for fit in [
        AspectRatio::Stretched,
        AspectRatio::Cropped,
        AspectRatio::Padded(3.0),
    ] {
        layers.push(Box::new(resizing(fit)));
    }
    for layer in layers {
        let known = run(&layer, Some(1))?;
        assert_eq!(
            run_of(&layer, Some(1), &[-1, -1, 3])?,
            known,
            "{}",
            layer.kind()
        );
    }
    Ok(())
}

#[test]
fn resized_integers_are_rounded() -> Result<()> {
    let eager = EagerContext::new()?;
    let layer = Resizing::new(1, 4);
    let built = layer.build(&Weights::new(&eager, 1), &[1, 2, 1])?;
    let cx = eager.any();
    let x = cx.constant(&Tensor::from_vec(vec![0_u8, 255], &[1, 1, 2, 1])?)?;
    let AnyValue::Handle(y) = (built.forward)(&Pass::inference(&cx), &x)? else {
        panic!("a value of an eager context");
    };
    // 63.75 and 191.25.
    assert_eq!(y.to_tensor()?.to_vec::<u8>()?, [0, 64, 191, 255]);
    Ok(())
}

/// The image with some of its sides changed.
fn flipped(rows: bool, columns: bool) -> Vec<f32> {
    let image = image();
    let mut found = Vec::new();
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            let row = if rows { ROWS - 1 - row } else { row };
            let column = if columns {
                COLUMNS - 1 - column
            } else {
                column
            };
            let at = (row * COLUMNS + column) * 3;
            found.extend(&image[at..at + 3]);
        }
    }
    found
}

#[test]
fn half_of_the_samples_are_flipped() -> Result<()> {
    for (mode, other) in [
        (Flip::Horizontal, flipped(false, true)),
        (Flip::Vertical, flipped(true, false)),
        (Flip::Both, flipped(true, true)),
    ] {
        let mut count = 0;
        for step in 0..4 {
            for sample in run(&RandomFlip { mode }, Some(step))?.1.chunks(SIZE) {
                let is_flipped = sample == other;
                assert!(is_flipped || sample == image());
                count += usize::from(is_flipped);
            }
        }
        assert!((24..72).contains(&count), "{count} of 96");
    }
    Ok(())
}

/// A part of the image from a place.
fn part(top: usize, left: usize, rows: usize, columns: usize) -> Vec<f32> {
    let image = image();
    let mut found = Vec::new();
    for row in top..top + rows {
        let at = (row * COLUMNS + left) * 3;
        found.extend(&image[at..at + columns * 3]);
    }
    found
}

#[test]
fn crops_are_parts_at_places_of_the_step() -> Result<()> {
    let layer = RandomCrop {
        height: 4,
        width: 3,
    };
    let mut places = Vec::new();
    for step in 0..40 {
        let (dims, found) = run(&layer, Some(step))?;
        assert_eq!(dims, [DIMS[0], 4, 3, 3]);
        let every = (0..3).flat_map(|top| (0..5).map(move |left| (top, left)));
        let place = every.into_iter().find(|&(top, left)| {
            let part = part(top, left, 4, 3);
            found.chunks(part.len()).all(|sample| sample == part)
        });
        places.push(place.expect("a part of the image"));
    }
    places.sort_unstable();
    places.dedup();
    // Both ends are among them.
    assert!(places.len() > 8, "{places:?}");
    assert_eq!(places.iter().map(|place| place.0).max(), Some(2));
    assert_eq!(places.iter().map(|place| place.1).max(), Some(4));
    // As in Keras 3.15: the whole image.
    assert_eq!(run(&layer, None)?, (DIMS.to_vec(), image().repeat(SAMPLES)));
    let middle = CenterCrop {
        height: 4,
        width: 3,
    };
    assert_eq!(run(&middle, None)?.1, part(1, 2, 4, 3).repeat(SAMPLES));
    Ok(())
}

/// A place of the result, (x, y), is (x + 0.5 y, y) of the image, or (x - 0.5 y, y).
#[test]
fn shears_move_rows_in_either_direction() -> Result<()> {
    let layer = RandomShear {
        x: (0.5, 0.5),
        fill: Fill::Constant(-1.0),
        ..RandomShear::new(0.0, 0.0)
    };
    let (image, mut sides) = (image(), [0, 0]);
    for sample in run(&layer, Some(1))?.1.chunks(SIZE) {
        assert_eq!(sample[..COLUMNS * 3], image[..COLUMNS * 3], "the first row");
        // The third row, by one column: what comes in from outside is the fill.
        let row = 2 * COLUMNS * 3..3 * COLUMNS * 3;
        let (found, before) = (&sample[row.clone()], &image[row]);
        let last = (COLUMNS - 1) * 3;
        let is_left = found[..last] == before[3..] && found[last..] == [-1.0; 3];
        let is_right = found[3..] == before[..last] && found[..3] == [-1.0; 3];
        assert!(is_left != is_right, "{found:?}");
        sides[usize::from(is_left)] += 1;
    }
    assert!(sides.iter().all(|&count| count > 4), "{sides:?}");
    Ok(())
}

#[test]
fn what_is_erased_is_one_rectangle() -> Result<()> {
    let layer = RandomErasing {
        fill: Some(vec![1.0, 3.0, 5.0]),
        scale: (0.1, 0.4),
        factor: (0.5, 0.5),
        ..RandomErasing::new(1.0)
    };
    let (image, mut erased) = (image(), 0);
    for sample in run(&layer, Some(1))?.1.chunks(SIZE) {
        let (mut rows, mut columns, mut count) = (Vec::new(), Vec::new(), 0);
        for (at, (found, before)) in sample.chunks(3).zip(image.chunks(3)).enumerate() {
            if found != before {
                assert_eq!(found, [1.0, 3.0, 5.0]);
                rows.push(at / COLUMNS);
                columns.push(at % COLUMNS);
                count += 1;
            }
        }
        for places in [&mut rows, &mut columns] {
            places.sort_unstable();
            places.dedup();
            assert!(places.windows(2).all(|two| two[0] + 1 == two[1]));
        }
        assert_eq!(rows.len() * columns.len(), count);
        erased += usize::from(count > 0);
    }
    assert!((4..21).contains(&erased), "{erased} of {SAMPLES}");
    Ok(())
}

/// The top left corner stays, and the others come from their old places.
#[test]
fn perspectives_keep_one_corner() -> Result<()> {
    let layer = RandomPerspective {
        factor: (1.0, 1.0),
        ..RandomPerspective::new(1.0, 0.8)
    };
    let image = image();
    for sample in run(&layer, Some(1))?.1.chunks(SIZE) {
        let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 0.01;
        assert!(
            sample[..3].iter().zip(&image[..3]).all(near),
            "{:?}",
            &sample[..3]
        );
    }
    Ok(())
}

/// What Keras 3.15 gives for two samples of 2 by 3 pixels with 2 channels.
#[test]
fn equalization_is_that_of_keras() -> Result<()> {
    let x = [
        10.0, 105.0, 20.0, 105.5, 20.0, 125.0, 30.0, 65.0, 200.0, 80.0, 250.0, 80.0, 10.0, 75.0,
        40.0, 160.0, 40.0, 185.0, 90.0, 65.0, 91.0, 70.0, 130.0, 70.0,
    ];
    let many = [
        0.0, 178.0, 51.0, 178.0, 51.0, 204.0, 76.0, 0.0, 230.0, 128.0, 255.0, 128.0, 0.0, 76.0,
        128.0, 230.0, 128.0, 255.0, 153.0, 0.0, 178.0, 51.0, 204.0, 51.0,
    ];
    let few = [
        0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 255.0, 0.0, 255.0, 0.0, 0.0, 0.0, 0.0, 255.0, 0.0,
        255.0, 102.0, 0.0, 102.0, 0.0, 153.0, 0.0,
    ];
    let eager = EagerContext::new()?;
    let equalized = |bins: i64, values: (f32, f32), x: &[f32]| -> Result<Vec<f32>> {
        let layer = Equalization { bins, values };
        let built = layer.build(&Weights::new(&eager, 1), &[2, 3, 2])?;
        let cx = eager.any();
        let x = cx.constant(&Tensor::from_slice(x, &[2, 2, 3, 2])?)?;
        let AnyValue::Handle(y) = (built.forward)(&Pass::training(&cx), &x)? else {
            panic!("a value of an eager context");
        };
        y.to_tensor()?.to_vec()
    };
    assert_eq!(equalized(256, (0.0, 255.0), &x)?, many);
    assert_eq!(equalized(5, (0.0, 255.0), &x)?, few);
    let unit = |numbers: &[f32]| -> Vec<f32> { numbers.iter().map(|y| y / 127.5 - 1.0).collect() };
    let found = equalized(5, (-1.0, 1.0), &unit(&x))?;
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-5;
    assert!(found.iter().zip(&unit(&few)).all(near), "{found:?}");
    // A channel of one value has nothing to make equal.
    assert_eq!(equalized(256, (0.0, 255.0), &[7.0; 24])?, [7.0; 24]);
    Ok(())
}

#[test]
fn images_and_numbers_that_do_not_fit_are_errors() -> Result<()> {
    let eager = EagerContext::new()?;
    let weights = Weights::new(&eager, 1);
    let fails = |input: &[i64], layer: &dyn Layer, expected: &str| {
        let error = Sequential::new(&weights, input, &[layer]);
        let error = error.map(|_| ()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    let rotation = RandomRotation::new(0.1);
    fails(
        &[6, 3],
        &rotation,
        "RandomRotation takes rows, columns and channels",
    );
    let reversed = RandomRotation {
        factor: (0.2, 0.1),
        ..rotation
    };
    fails(&[6, 6, 3], &reversed, "the factor from 0.2 to 0.1");
    fails(
        &[6, 6, 3],
        &RandomRotation::new(f32::NAN),
        "from NaN to NaN",
    );
    let crop = CenterCrop {
        height: 0,
        width: 3,
    };
    fails(&[6, 6, 3], &crop, "sizes [0, 3]");
    let crop = CenterCrop { height: 3, ..crop };
    fails(&[6, 6, 4], &RandomHue::new(0.5), "3 colors");
    fails(&[6, 6, 3], &RandomPosterization::new(9), "(1, 9) bits");
    fails(
        &[6, 6, 3],
        &RandomPerspective::new(0.5, 2.0),
        "the scale is 2",
    );
    let blur = RandomGaussianBlur {
        size: (3, 4),
        ..RandomGaussianBlur::new(1.0)
    };
    fails(&[6, 6, 3], &blur, "a window of 3 by 4");
    fails(&[-1, 6, 3], &crop, "known sizes of images [-1, 6]");
    Ok(())
}
