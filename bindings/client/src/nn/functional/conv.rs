//! Convolutions.

use tfp_core::{Context, Error, Result};
use tfp_ops as ops;

use super::{Padding, known, part, shape_of, spatial};

/// What convolutions share. Each pair is (rows, columns); one-dimensional ones use the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// The step between windows.
    pub strides: (i64, i64),
    /// The step between the inputs of a window.
    pub dilations: (i64, i64),
    /// How borders are treated.
    pub padding: Padding,
    /// Into how many independent parts the channels are divided.
    pub groups: i64,
}

impl Default for ConvOptions {
    fn default() -> Self {
        Self {
            strides: (1, 1),
            dilations: (1, 1),
            padding: Padding::Valid,
            groups: 1,
        }
    }
}

/// A convolution in one or two dimensions.
///
/// (batch, steps, channels) and (size, channels / groups, filters), or (batch, rows, columns,
/// channels) and (height, width, channels / groups, filters). The bias is (filters).
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when ranks or sizes are not known or
/// groups don't divide them, and what TensorFlow says.
pub fn conv<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kernel: &C::Value,
    bias: Option<&C::Value>,
    options: &ConvOptions,
) -> Result<C::Value> {
    let dims = spatial("conv", x)?;
    let (image, filter) = as_images(cx, dims, x, kernel)?;
    let image = pad_causal(cx, dims, image, &filter, options)?;
    let y = if options.groups == 1 {
        one_group(cx, dims, &image, &filter, options)?
    } else {
        let channels = known("conv", x, -1)?;
        let filters = known("conv", kernel, -1)?;
        if options.groups < 1 || channels % options.groups != 0 || filters % options.groups != 0 {
            return Err(Error::argument(format!(
                "conv: {} groups don't divide {channels} channels and {filters} filters",
                options.groups
            )));
        }
        let images = ops::split(cx, 3, &image, options.groups)?;
        let parts = ops::split(cx, 3, &filter, options.groups)?;
        let results = images
            .iter()
            .zip(&parts)
            .map(|(image, part)| one_group(cx, dims, image, part, options))
            .collect::<Result<Vec<_>>>()?;
        ops::concat_v2(cx, &results, 3)?
    };
    finish(cx, dims, y, bias)
}

/// A convolution in three dimensions: (batch, planes, rows, columns, channels) and (depth, height,
/// width, channels, filters). The bias is (filters).
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for causal padding, and what TensorFlow says.
pub fn conv3d<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kernel: &C::Value,
    bias: Option<&C::Value>,
    strides: [i64; 3],
    padding: Padding,
) -> Result<C::Value> {
    not_causal("conv3d", padding)?;
    let [planes, rows, columns] = strides;
    let strides = [1, planes, rows, columns, 1];
    let options = ops::Conv3DOptions::default();
    let y = ops::conv3d(cx, x, kernel, &strides, padding.op(), options)?;
    match bias {
        Some(bias) => ops::bias_add(cx, y, bias, ops::BiasAddOptions::default()),
        None => Ok(y),
    }
}

/// The gradient of a convolution in three dimensions as a layer of its own: (batch, planes, rows, columns,
/// channels) and (depth, height, width, filters, channels).
///
/// # Errors
/// As for [`conv3d`].
pub fn conv3d_transpose<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kernel: &C::Value,
    bias: Option<&C::Value>,
    strides: [i64; 3],
    padding: Padding,
) -> Result<C::Value> {
    not_causal("conv3d_transpose", padding)?;
    let sizes = shape_of(cx, x)?;
    let mut parts = vec![part(cx, &sizes, 0, Some(1))?];
    for (axis, stride) in (1_i32..).zip(strides) {
        let mut size = ops::mul(cx, part(cx, &sizes, axis, Some(axis + 1))?, stride as i32)?;
        if padding != Padding::Same {
            let window = known("conv3d_transpose", kernel, i64::from(axis) - 1)?;
            size = ops::add_v2(cx, size, (window - stride).max(0) as i32)?;
        }
        parts.push(size);
    }
    let filters = known("conv3d_transpose", kernel, 3)? as i32;
    parts.push(ops::reshape(cx, filters, [1])?);
    let sizes = ops::concat_v2(cx, &parts, 0)?;
    let [planes, rows, columns] = strides;
    let strides = [1, planes, rows, columns, 1];
    let options = ops::Conv3DBackpropInputV2Options::default();
    let padding = padding.op();
    let y = ops::conv3d_backprop_input_v2(cx, sizes, kernel, x, &strides, padding, options)?;
    match bias {
        Some(bias) => ops::bias_add(cx, y, bias, ops::BiasAddOptions::default()),
        None => Ok(y),
    }
}

/// A convolution that sees each channel alone: (batch, rows, columns, channels) and (height, width,
/// channels, multiplier) give `channels * multiplier` channels.
///
/// # Errors
/// As for [`conv`], and for causal padding.
pub fn depthwise_conv2d<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kernel: &C::Value,
    bias: Option<&C::Value>,
    options: &ConvOptions,
) -> Result<C::Value> {
    not_causal("depthwise_conv2d", options.padding)?;
    let dilations = four(2, options.dilations);
    let op = ops::DepthwiseConv2dNativeOptions {
        dilations: Some(&dilations),
        ..Default::default()
    };
    let strides = four(2, options.strides);
    let y = ops::depthwise_conv2d_native(cx, x, kernel, &strides, options.padding.op(), op)?;
    finish(cx, 2, y, bias)
}

/// The gradient of a convolution as a layer of its own: it makes images larger by the strides.
///
/// (batch, steps, channels) and (size, filters, channels), or (batch, rows, columns, channels) and
/// (height, width, filters, channels).
///
/// # Errors
/// As for [`conv`], for causal padding and for several groups.
pub fn conv_transpose<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kernel: &C::Value,
    bias: Option<&C::Value>,
    options: &ConvOptions,
) -> Result<C::Value> {
    transposable("conv_transpose", options)?;
    let dims = spatial("conv_transpose", x)?;
    let (image, filter) = as_images(cx, dims, x, kernel)?;
    let (strides, spread) = (pair(dims, options.strides), pair(dims, options.dilations));
    let sizes = shape_of(cx, &image)?;
    let mut parts = vec![part(cx, &sizes, 0, Some(1))?];
    let steps = [(strides.0, spread.0), (strides.1, spread.1)];
    for (axis, (stride, dilation)) in steps.into_iter().enumerate() {
        let axis = axis as i32 + 1;
        let mut size = ops::mul(cx, part(cx, &sizes, axis, Some(axis + 1))?, stride as i32)?;
        if options.padding != Padding::Same {
            let window = known("conv_transpose", &filter, i64::from(axis) - 1)?;
            let reach = (window - 1) * dilation + 1;
            size = ops::add_v2(cx, size, (reach - stride).max(0) as i32)?;
        }
        parts.push(size);
    }
    let filters = known("conv_transpose", &filter, 2)? as i32;
    parts.push(ops::reshape(cx, filters, [1])?);
    let sizes = ops::concat_v2(cx, &parts, 0)?;
    let dilations = four(dims, options.dilations);
    let op = ops::Conv2DBackpropInputOptions {
        dilations: Some(&dilations),
        ..Default::default()
    };
    let strides = four(dims, options.strides);
    let padding = options.padding.op();
    let y = ops::conv2d_backprop_input(cx, sizes, filter, image, &strides, padding, op)?;
    finish(cx, dims, y, bias)
}

/// Refuses options that no transposed convolution has.
pub(crate) fn transposable(what: &str, options: &ConvOptions) -> Result<()> {
    if options.groups != 1 {
        let groups = options.groups;
        return Err(Error::argument(format!(
            "{what}: {groups} groups, expected 1"
        )));
    }
    not_causal(what, options.padding)
}

/// Refuses padding that only convolutions along steps have.
pub(crate) fn not_causal(what: &str, padding: Padding) -> Result<()> {
    if padding == Padding::Causal {
        return Err(Error::argument(format!(
            "{what}: causal padding is for convolutions of (steps, channels) only"
        )));
    }
    Ok(())
}

fn one_group<C: Context + ?Sized>(
    cx: &C,
    dims: usize,
    image: &C::Value,
    filter: &C::Value,
    options: &ConvOptions,
) -> Result<C::Value> {
    let dilations = four(dims, options.dilations);
    let op = ops::Conv2DOptions {
        dilations: Some(&dilations),
        ..Default::default()
    };
    let strides = four(dims, options.strides);
    ops::conv2d(cx, image, filter, &strides, options.padding.op(), op)
}

/// Makes steps the columns of images with one row.
fn as_images<C: Context + ?Sized>(
    cx: &C,
    dims: usize,
    x: &C::Value,
    kernel: &C::Value,
) -> Result<(C::Value, C::Value)> {
    if dims == 2 {
        return Ok((x.clone(), kernel.clone()));
    }
    Ok((
        ops::expand_dims(cx, x, 1)?,
        ops::expand_dims(cx, kernel, 0)?,
    ))
}

fn pad_causal<C: Context + ?Sized>(
    cx: &C,
    dims: usize,
    image: C::Value,
    filter: &C::Value,
    options: &ConvOptions,
) -> Result<C::Value> {
    if options.padding != Padding::Causal {
        return Ok(image);
    }
    if dims != 1 {
        return Err(Error::argument(
            "conv: causal padding is for one dimension only",
        ));
    }
    let before = (known("conv", filter, 1)? - 1) * options.dilations.0;
    ops::pad(cx, image, [[0, 0], [0, 0], [before as i32, 0], [0, 0]])
}

/// Adds the bias and undoes [`as_images`].
fn finish<C: Context + ?Sized>(
    cx: &C,
    dims: usize,
    mut y: C::Value,
    bias: Option<&C::Value>,
) -> Result<C::Value> {
    if let Some(bias) = bias {
        y = ops::bias_add(cx, y, bias, ops::BiasAddOptions::default())?;
    }
    if dims == 1 {
        let options = ops::SqueezeOptions {
            squeeze_dims: Some(&[1]),
        };
        y = ops::squeeze(cx, y, options)?;
    }
    Ok(y)
}

/// (rows, columns), where one dimension is the columns of one row.
fn pair(dims: usize, pair: (i64, i64)) -> (i64, i64) {
    if dims == 1 { (1, pair.0) } else { pair }
}

/// A number per dimension of an image batch.
pub(super) fn four(dims: usize, of: (i64, i64)) -> [i64; 4] {
    let (rows, columns) = pair(dims, of);
    [1, rows, columns, 1]
}
