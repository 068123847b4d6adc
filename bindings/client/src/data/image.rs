//! Images in a pipeline: decoded, resized, changed at random. Values are those of Python's `tf.image`.
//!
//! An image is (height, width, channels). The functions work in closures of [`Dataset`],
//! and in any other context.

use std::path::Path;

use tfp_core::{Context, DataType, Error, Result, Shape, Tensor, Value};

use super::apply::Parallel;
use super::dataset::Dataset;
use super::source::{Kind, Origin, decoded};
use crate::context::any::Mode;
use crate::files::file_error;
use crate::ops;

/// How the pixels of another size are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// From the four nearest ones.
    Bilinear,
    /// From the nearest one; the element type stays.
    Nearest,
    /// From sixteen, with a cubic curve.
    Bicubic,
    /// From all that lie in the new one.
    Area,
}

/// Decodes a JPEG, PNG, GIF (its first frame) or BMP, a string scalar, to uint8 with some channels: 1, 3 or
/// 4, or 0 for those of the file.
///
/// # Errors
/// What TensorFlow says, as for bytes of something else.
pub fn decode<C: Context>(cx: &C, bytes: &C::Value, channels: i64) -> Result<C::Value> {
    decoded(cx, bytes, channels)
}

/// Computes an image of another height and width: float32, but for [`Method::Nearest`].
///
/// # Errors
/// What TensorFlow says.
pub fn resize<C: Context>(
    cx: &C,
    image: &C::Value,
    [height, width]: [i32; 2],
    method: Method,
) -> Result<C::Value> {
    let batch = ops::expand_dims(cx, image, 0_i32)?;
    let size = [height, width];
    let resized = match method {
        Method::Bilinear => {
            let options = ops::ResizeBilinearOptions {
                half_pixel_centers: Some(true),
                ..Default::default()
            };
            ops::resize_bilinear(cx, &batch, size, options)?
        }
        Method::Nearest => {
            let options = ops::ResizeNearestNeighborOptions {
                half_pixel_centers: Some(true),
                ..Default::default()
            };
            ops::resize_nearest_neighbor(cx, &batch, size, options)?
        }
        Method::Bicubic => {
            let options = ops::ResizeBicubicOptions {
                half_pixel_centers: Some(true),
                ..Default::default()
            };
            ops::resize_bicubic(cx, &batch, size, options)?
        }
        Method::Area => ops::resize_area(cx, &batch, size, ops::ResizeAreaOptions::default())?,
    };
    let options = ops::SqueezeOptions {
        squeeze_dims: Some(&[0]),
    };
    ops::squeeze(cx, &resized, options)
}

/// Turns an image around its middle column.
///
/// # Errors
/// What TensorFlow says.
pub fn flip_left_right<C: Context>(cx: &C, image: &C::Value) -> Result<C::Value> {
    ops::reverse_v2(cx, image, [1_i32])
}

/// Turns an image around its middle row.
///
/// # Errors
/// What TensorFlow says.
pub fn flip_up_down<C: Context>(cx: &C, image: &C::Value) -> Result<C::Value> {
    ops::reverse_v2(cx, image, [0_i32])
}

/// Turns one image of two around its middle column. Seeds are integers of shape (2), as those of
/// [`Dataset::map_with_seeds`].
///
/// # Errors
/// What TensorFlow says.
pub fn random_flip_left_right<C: Context>(
    cx: &C,
    image: &C::Value,
    seeds: &C::Value,
) -> Result<C::Value> {
    let flipped = flip_left_right(cx, image)?;
    chosen(cx, seeds, &flipped, image)
}

/// Turns one image of two around its middle row.
///
/// # Errors
/// What TensorFlow says.
pub fn random_flip_up_down<C: Context>(
    cx: &C,
    image: &C::Value,
    seeds: &C::Value,
) -> Result<C::Value> {
    let flipped = flip_up_down(cx, image)?;
    chosen(cx, seeds, &flipped, image)
}

/// Takes the first of two with a probability of a half.
fn chosen<C: Context>(
    cx: &C,
    seeds: &C::Value,
    first: &C::Value,
    second: &C::Value,
) -> Result<C::Value> {
    let number = uniform(cx, seeds)?;
    let is_first = ops::less(cx, &number, 0.5_f32)?;
    ops::select_v2(cx, &is_first, first, second)
}

/// Cuts a part of some height, width and channels out of an image, at a random place.
///
/// # Errors
/// What TensorFlow says, as for an image that is smaller.
pub fn random_crop<C: Context>(
    cx: &C,
    image: &C::Value,
    size: [i32; 3],
    seeds: &C::Value,
) -> Result<C::Value> {
    let shape = ops::shape(cx, image, ops::ShapeOptions::default())?;
    let room = ops::add_v2(cx, ops::sub(cx, &shape, size)?, 1_i32)?;
    let key = ops::stateless_random_get_key_counter(cx, seeds)?;
    let algorithm = ops::stateless_random_get_alg(cx)?;
    let numbers = ops::stateless_random_uniform_int_v2(
        cx,
        [3_i32],
        &key.key,
        &key.counter,
        &algorithm,
        0_i32,
        i32::MAX,
    )?;
    let begin = ops::floor_mod(cx, &numbers, &room)?;
    ops::slice(cx, image, &begin, size)
}

/// Adds a random number between `-most` and `most` to all values of a float32 image.
///
/// # Errors
/// What TensorFlow says.
pub fn random_brightness<C: Context>(
    cx: &C,
    image: &C::Value,
    most: f32,
    seeds: &C::Value,
) -> Result<C::Value> {
    let delta = between(cx, seeds, -most, most)?;
    ops::add_v2(cx, image, &delta)
}

/// Moves all values of a float32 image away from the mean of their channel, or towards it, by a random
/// factor.
///
/// # Errors
/// What TensorFlow says.
pub fn random_contrast<C: Context>(
    cx: &C,
    image: &C::Value,
    [least, most]: [f32; 2],
    seeds: &C::Value,
) -> Result<C::Value> {
    let factor = between(cx, seeds, least, most)?;
    ops::adjust_contrastv2(cx, image, &factor)
}

/// A float32 scalar from 0 up to below 1.
fn uniform<C: Context>(cx: &C, seeds: &C::Value) -> Result<C::Value> {
    let key = ops::stateless_random_get_key_counter(cx, seeds)?;
    let algorithm = ops::stateless_random_get_alg(cx)?;
    let shape: &[i32] = &[];
    let options = ops::StatelessRandomUniformV2Options::default();
    ops::stateless_random_uniform_v2(cx, shape, &key.key, &key.counter, &algorithm, options)
}

fn between<C: Context>(cx: &C, seeds: &C::Value, least: f32, most: f32) -> Result<C::Value> {
    let number = uniform(cx, seeds)?;
    let scaled = ops::mul(cx, &number, most - least)?;
    ops::add_v2(cx, &scaled, least)
}

/// The images of a folder with a folder per class: float32 pixels from 0 to 255, (height, width,
/// channels), resized with [`Method::Bilinear`], and the number of the class, int64. Classes and files are
/// sorted by name, as in Keras' `image_dataset_from_directory`. Returns the dataset, and the names of the
/// classes.
///
/// # Errors
/// [`ErrorKind::File`](tfp_core::ErrorKind::File) for a folder that can't be read or has no images, and
/// what TensorFlow says. Reading a damaged image is an error that names its file, in an eager context.
pub fn folder(
    cx: &impl Mode,
    folder: impl AsRef<Path>,
    size: [i32; 2],
    channels: i64,
) -> Result<(Dataset, Vec<String>)> {
    let folder = folder.as_ref();
    let (mut classes, mut paths, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for class in listed(folder)?.into_iter().filter(|path| path.is_dir()) {
        for path in listed(&class)? {
            let end = path
                .extension()
                .and_then(|end| end.to_str())
                .unwrap_or_default();
            let is_image = ["bmp", "gif", "jpeg", "jpg", "png"].contains(&&*end.to_lowercase());
            if !is_image || !path.is_file() {
                continue;
            }
            let text = path.to_str();
            let text =
                text.ok_or_else(|| file_error(&path, "the path of an image must be UTF-8"))?;
            paths.push(text.to_owned());
            labels.push(classes.len() as i64);
        }
        let name = class.file_name().unwrap_or_default().to_string_lossy();
        classes.push(name.into_owned());
    }
    if paths.is_empty() {
        return Err(file_error(
            folder,
            "it has no folder with a .bmp, .gif, .jpeg, .jpg or .png file",
        ));
    }
    let count = labels.len() as i64;
    let labels = Dataset::rows(cx, &[Tensor::from_vec(labels, &[count])?])?;
    let origin = Origin {
        kind: Kind::Images(channels),
        paths: paths.clone(),
        is_packed: false,
    };
    let names = Dataset::names(cx, paths)?;
    let both = Dataset::zip(&[&names, &labels])?;
    let shape = [i64::from(size[0]), i64::from(size[1]), channels];
    let data = both.parallel_map(Parallel::auto(), |cx, element| {
        let bytes = ops::read_file(cx, &element[0])?;
        let pixels = decode(cx, &bytes, channels)?;
        let pixels = resize(cx, &pixels, size, Method::Bilinear)?;
        let pixels = ops::ensure_shape(cx, &pixels, &Shape::from(shape))?;
        debug_assert_eq!(Value::dtype(&pixels), DataType::FLOAT);
        Ok(vec![pixels, element[1].clone()])
    })?;
    Ok((data.with_origins([origin]), classes))
}

/// What a folder has, sorted by name.
fn listed(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let unread = |error: std::io::Error| -> Error {
        file_error(folder, format!("it can't be read: {error}"))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        paths.push(entry.map_err(unread)?.path());
    }
    paths.sort();
    Ok(paths)
}
