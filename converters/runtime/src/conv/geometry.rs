//! The axes and sizes of a convolution.

use crate::kernels::base::error::Result;
use crate::kernels::conv::{Conv, Padding, Window};

/// One spatial axis: how many elements, and how the filter moves over them.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Elements of the input.
    pub input: usize,
    /// Taps of the filter.
    pub size: usize,
    /// Elements from one stop to the next.
    pub stride: usize,
    /// Elements from one tap to the next.
    pub dilation: usize,
    /// Zeros before and after.
    pub padding: (usize, usize),
}

impl Axis {
    /// The axis that a one-dimensional operation lacks.
    pub const UNIT: Self = Self {
        input: 1,
        size: 1,
        stride: 1,
        dilation: 1,
        padding: (0, 0),
    };

    /// A filter of `size` taps that stops at every element of `input`, without padding.
    #[must_use]
    pub const fn new(input: usize, size: usize) -> Self {
        Self {
            input,
            size,
            ..Self::UNIT
        }
    }

    /// With so many elements from one stop to the next.
    #[must_use]
    pub const fn stride(mut self, elements: usize) -> Self {
        self.stride = elements;
        self
    }

    /// With so many elements from one tap to the next.
    #[must_use]
    pub const fn dilation(mut self, elements: usize) -> Self {
        self.dilation = elements;
        self
    }

    /// With so many zeros before and after.
    #[must_use]
    pub const fn padding(mut self, before: usize, after: usize) -> Self {
        self.padding = (before, after);
        self
    }

    /// The window of the kernels.
    ///
    /// # Errors
    /// If the filter does not fit.
    pub fn window(&self) -> Result<Window> {
        let (before, after) = self.padding;
        let padding = Padding::Explicit(before, after);
        Window::new(self.input, self.size, self.stride, self.dilation, padding)
    }
}

/// The sizes of a convolution for one example. Of a transposed one they are those of the
/// convolution in the other direction.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Vertical axis; [`Axis::UNIT`] for sequences.
    pub y: Axis,
    /// Horizontal axis.
    pub x: Axis,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Groups that do not see each other's channels.
    pub groups: usize,
}

impl Geometry {
    /// A convolution over images, vertical axis first, from `inputs` to `outputs` channels.
    #[must_use]
    pub const fn new(y: Axis, x: Axis, inputs: usize, outputs: usize) -> Self {
        Self {
            y,
            x,
            inputs,
            outputs,
            groups: 1,
        }
    }

    /// A convolution whose axes are alike.
    #[must_use]
    pub const fn square(axis: Axis, inputs: usize, outputs: usize) -> Self {
        Self::new(axis, axis, inputs, outputs)
    }

    /// A convolution over sequences.
    #[must_use]
    pub const fn line(axis: Axis, inputs: usize, outputs: usize) -> Self {
        Self::new(Axis::UNIT, axis, inputs, outputs)
    }

    /// In so many groups that do not see each other's channels.
    #[must_use]
    pub const fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }

    pub(crate) fn sizes(&self, batch: usize) -> Result<Conv> {
        Ok(Conv {
            batch,
            y: self.y.window()?,
            x: self.x.window()?,
            in_channels: self.inputs,
            out_channels: self.outputs,
            groups: self.groups,
        })
    }
}
