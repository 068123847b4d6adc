//! The attributes that TensorFlow's convolutions and poolings share.

use super::geometry::{Padding, Window};
use crate::base::def::Attrs;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// Where the channels of an image tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Channels last.
    Nhwc,
    /// Channels first.
    Nchw,
}

impl Format {
    /// Reads `data_format`.
    ///
    /// # Errors
    /// [`Error::Value`] unless it is `NHWC` or `NCHW`.
    pub fn read(attrs: &dyn Attrs) -> Result<Self> {
        match attrs.string("data_format")? {
            "NHWC" => Ok(Self::Nhwc),
            "NCHW" => Ok(Self::Nchw),
            _ => Err(Error::Value {
                argument: "data_format",
                expected: "NHWC or NCHW",
            }),
        }
    }

    /// Batch, height, width, channels of four values in this order of axes.
    pub fn unpack<T: Copy>(self, [a, b, c, d]: [T; 4]) -> [T; 4] {
        match self {
            Self::Nhwc => [a, b, c, d],
            Self::Nchw => [a, c, d, b],
        }
    }

    /// Four values in this order of axes from batch, height, width, channels.
    pub fn pack<T: Copy>(self, [n, h, w, c]: [T; 4]) -> [T; 4] {
        match self {
            Self::Nhwc => [n, h, w, c],
            Self::Nchw => [n, c, h, w],
        }
    }

    /// Batch, height, width, channels of an image tensor.
    ///
    /// # Errors
    /// [`Error::Rank`] unless it has four axes.
    pub fn image(self, argument: &'static str, shape: &Shape) -> Result<[usize; 4]> {
        let dims = <[usize; 4]>::try_from(&shape[..]).map_err(|_| Error::Rank {
            argument,
            found: shape.rank(),
            expected: "4",
        })?;
        Ok(self.unpack(dims))
    }

    /// The shape of an image tensor.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn shape(self, dims: [usize; 4]) -> Result<Shape> {
        Shape::new(&self.pack(dims))
    }
}

/// Strides, dilations and padding, each vertical, then horizontal.
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    /// Order of axes.
    pub format: Format,
    strides: [usize; 2],
    dilations: [usize; 2],
    /// What lies around the input.
    pub padding: [Padding; 2],
}

impl Sliding {
    /// Reads `data_format`, `strides`, `dilations`, `padding` and `explicit_paddings`.
    ///
    /// # Errors
    /// [`Error::Value`] if one of them is not what the op allows.
    pub fn of_convolution(attrs: &dyn Attrs) -> Result<Self> {
        let format = Format::read(attrs)?;
        let is_explicit = attrs.string("padding")? == "EXPLICIT";
        if !is_explicit && !attrs.ints("explicit_paddings")?.is_empty() {
            return Err(Error::Value {
                argument: "explicit_paddings",
                expected: "nothing where the padding is not EXPLICIT",
            });
        }
        Ok(Self {
            format,
            strides: spatial(attrs, "strides", format)?,
            dilations: spatial(attrs, "dilations", format)?,
            padding: padding(attrs, format, true)?,
        })
    }

    /// Reads `data_format`, `strides`, `padding`, and `explicit_paddings` if the op has them.
    ///
    /// # Errors
    /// As for a convolution.
    pub fn of_pooling(attrs: &dyn Attrs, explicit: bool) -> Result<Self> {
        let format = Format::read(attrs)?;
        Ok(Self {
            format,
            strides: spatial(attrs, "strides", format)?,
            dilations: [1, 1],
            padding: padding(attrs, format, explicit)?,
        })
    }

    /// The two axes for an input and a filter of these heights and widths.
    ///
    /// # Errors
    /// As [`Window::new`].
    pub fn windows(&self, input: [usize; 2], size: [usize; 2]) -> Result<[Window; 2]> {
        let axis = |i: usize| {
            Window::new(
                input[i],
                size[i],
                self.strides[i],
                self.dilations[i],
                self.padding[i],
            )
        };
        Ok([axis(0)?, axis(1)?])
    }
}

/// The values of a list attribute for height and width; those for batch and channels must be 1.
///
/// # Errors
/// [`Error::Value`].
pub fn spatial(attrs: &dyn Attrs, name: &'static str, format: Format) -> Result<[usize; 2]> {
    let wrong = Error::Value {
        argument: name,
        expected: "four positive numbers, 1 for batch and channels",
    };
    let values = <[i64; 4]>::try_from(attrs.ints(name)?).map_err(|_| wrong)?;
    let [n, h, w, c] = format.unpack(values);
    if n != 1 || c != 1 || h < 1 || w < 1 {
        return Err(wrong);
    }
    Ok([
        usize::try_from(h).map_err(|_| wrong)?,
        usize::try_from(w).map_err(|_| wrong)?,
    ])
}

fn padding(attrs: &dyn Attrs, format: Format, explicit: bool) -> Result<[Padding; 2]> {
    match attrs.string("padding")? {
        "SAME" => Ok([Padding::Same; 2]),
        "VALID" => Ok([Padding::Valid; 2]),
        "EXPLICIT" if explicit => {
            let wrong = Error::Value {
                argument: "explicit_paddings",
                expected: "four pairs of numbers from 0 on, 0 for batch and channels",
            };
            let values =
                <[i64; 8]>::try_from(attrs.ints("explicit_paddings")?).map_err(|_| wrong)?;
            let [a, b, c, d, e, f, g, h] = values.map(|x| usize::try_from(x).unwrap_or(usize::MAX));
            let [batch, y, x, channels] = format.unpack([(a, b), (c, d), (e, f), (g, h)]);
            let small = |x: usize| x < usize::MAX && u32::try_from(x).is_ok();
            let fits = |pair: (usize, usize)| small(pair.0) && small(pair.1);
            if batch != (0, 0) || channels != (0, 0) || !fits(y) || !fits(x) {
                return Err(wrong);
            }
            Ok([Padding::Explicit(y.0, y.1), Padding::Explicit(x.0, x.1)])
        }
        _ => Err(Error::Value {
            argument: "padding",
            expected: "SAME, VALID, or EXPLICIT where the op has explicit_paddings",
        }),
    }
}
