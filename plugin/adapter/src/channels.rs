//! Tensors with channels first, for ops that TensorFlow's CPU computes with channels last alone.

use tfp_bindings::eager::{Eager, Value};
use tfp_bindings::proto::attr::{Attr, AttrList};
use tfp_bindings::{DataType, Error, Result};

use crate::host::HOST;

/// The tensors of an op: which inputs are images, which are the shapes of such, and whether the result
/// is an image.
struct Row {
    ops: &'static [&'static str],
    images: &'static [usize],
    shapes: &'static [usize],
    result: bool,
}

const fn row(
    ops: &'static [&'static str],
    images: &'static [usize],
    shapes: &'static [usize],
    result: bool,
) -> Row {
    Row {
        ops,
        images,
        shapes,
        result,
    }
}

const ROWS: &[Row] = &[
    row(
        &[
            "AvgPool",
            "AvgPool3D",
            "Conv2D",
            "DepthToSpace",
            "DepthwiseConv2dNative",
            "MaxPool",
            "MaxPool3D",
            "SpaceToDepth",
        ],
        &[0],
        &[],
        true,
    ),
    row(
        &[
            "MaxPool3DGrad",
            "MaxPool3DGradGrad",
            "MaxPoolGrad",
            "MaxPoolGradGrad",
        ],
        &[0, 1, 2],
        &[],
        true,
    ),
    row(&["AvgPool3DGrad", "AvgPoolGrad"], &[1], &[0], true),
    row(
        &["Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput"],
        &[2],
        &[0],
        true,
    ),
    row(
        &[
            "Conv2DBackpropFilter",
            "DepthwiseConv2dNativeBackpropFilter",
        ],
        &[0, 2],
        &[],
        false,
    ),
];

/// The orders of axes: channels first, channels last, and where the axes of the second are in the first.
const FORMATS: &[(&str, &str, &[i32])] = &[
    ("NCHW", "NHWC", &[0, 2, 3, 1]),
    ("NCDHW", "NDHWC", &[0, 2, 3, 4, 1]),
];

/// Attributes that have a number for each axis; those with two are [`PAIRS`].
const LISTS: &[&str] = &["dilations", "ksize", "strides"];
const PAIRS: &str = "explicit_paddings";

/// Which tensors of a node are turned, and how.
pub(crate) struct Channels {
    row: &'static Row,
    first: &'static str,
    last: &'static str,
    axes: &'static [i32],
}

impl Channels {
    /// Turns the attributes of a node with channels first, if its op is one that has to be.
    pub(crate) fn turn(op: &str, attrs: &mut Vec<(String, Attr)>) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.ops.contains(&op))?;
        let format = attrs.iter_mut().find(|(name, _)| name == "data_format")?;
        let Attr::String(found) = &format.1 else {
            return None;
        };
        let known = FORMATS
            .iter()
            .find(|(first, ..)| first.as_bytes() == *found);
        let &(first, last, axes) = known?;
        format.1 = Attr::String(last.as_bytes().to_vec());
        for (name, value) in attrs {
            let width = match &**name {
                PAIRS => 2,
                name if LISTS.contains(&name) => 1,
                _ => continue,
            };
            if let Attr::List(AttrList { ints, .. }) = value
                && ints.len() == width * axes.len()
            {
                let turned = axes.iter().flat_map(|&axis| {
                    let at = usize::try_from(axis).unwrap_or(0) * width;
                    ints.get(at..at + width).unwrap_or_default().to_vec()
                });
                *ints = turned.collect();
            }
        }
        Some(Self {
            row,
            first,
            last,
            axes,
        })
    }

    /// An input as the op takes it.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub(crate) fn input(
        &self,
        eager: &Eager,
        index: usize,
        value: Value,
        data_type: DataType,
    ) -> Result<Value> {
        if self.row.images.contains(&index) {
            return turned(eager, &value, data_type, self.axes);
        }
        if self.row.shapes.contains(&index) {
            let format = |format: &str| Attr::String(format.as_bytes().to_vec());
            let attrs = [
                ("T", Attr::Type(data_type)),
                ("src_format", format(self.first)),
                ("dst_format", format(self.last)),
            ];
            return only(eager.run_on(HOST, "DataFormatVecPermute", &[&value], &attrs, 1)?);
        }
        Ok(value)
    }

    /// A result as the node gives it.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub(crate) fn output(&self, eager: &Eager, value: Value) -> Result<Value> {
        if !self.row.result {
            return Ok(value);
        }
        let mut back = vec![0; self.axes.len()];
        for (place, &axis) in (0..).zip(self.axes) {
            if let Some(slot) = usize::try_from(axis)
                .ok()
                .and_then(|axis| back.get_mut(axis))
            {
                *slot = place;
            }
        }
        let data_type = value.to_tensor()?.data_type();
        turned(eager, &value, data_type, &back)
    }
}

/// A value with its axes in another order.
fn turned(eager: &Eager, value: &Value, data_type: DataType, axes: &[i32]) -> Result<Value> {
    let bytes: Vec<u8> = axes.iter().flat_map(|axis| axis.to_ne_bytes()).collect();
    let count = i64::try_from(axes.len()).unwrap_or(0);
    let order = eager.constant(DataType::INT32, &[count], &bytes)?;
    let attrs = [
        ("T", Attr::Type(data_type)),
        ("Tperm", Attr::Type(DataType::INT32)),
    ];
    only(eager.run_on(HOST, "Transpose", &[value, &order], &attrs, 1)?)
}

fn only(outputs: Vec<Value>) -> Result<Value> {
    let mut outputs = outputs.into_iter();
    outputs
        .next()
        .ok_or_else(|| Error::internal("an op gave nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(name: &str, ints: &[i64]) -> (String, Attr) {
        let list = AttrList {
            ints: ints.to_vec(),
            ..AttrList::default()
        };
        (name.to_owned(), Attr::List(list))
    }

    fn format(name: &str) -> (String, Attr) {
        ("data_format".to_owned(), Attr::String(name.into()))
    }

    #[test]
    fn attributes_are_turned_with_the_tensors() {
        let mut attrs = vec![
            format("NCDHW"),
            ints("ksize", &[1, 1, 2, 3, 4]),
            ints("explicit_paddings", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ints("other", &[1, 2, 3, 4, 5]),
        ];
        let found = Channels::turn("MaxPool3DGrad", &mut attrs).unwrap();
        assert_eq!((found.first, found.last), ("NCDHW", "NDHWC"));
        let expected = [
            format("NDHWC"),
            ints("ksize", &[1, 2, 3, 4, 1]),
            ints("explicit_paddings", &[0, 1, 4, 5, 6, 7, 8, 9, 2, 3]),
            ints("other", &[1, 2, 3, 4, 5]),
        ];
        assert_eq!(attrs, expected);
    }

    #[test]
    fn what_has_its_channels_last_stays() {
        for (op, name) in [
            ("MaxPool3D", "NDHWC"),
            ("LRN", "NCHW"),
            ("MaxPool", "NCHW_VECT_C"),
        ] {
            let mut attrs = vec![format(name), ints("strides", &[1, 2, 3, 4])];
            let before = attrs.clone();
            assert!(Channels::turn(op, &mut attrs).is_none());
            assert_eq!(attrs, before);
        }
    }

    #[test]
    fn no_op_is_in_two_rows() {
        let mut ops: Vec<_> = ROWS.iter().flat_map(|row| row.ops).collect();
        let count = ops.len();
        ops.sort_unstable();
        ops.dedup();
        assert_eq!(ops.len(), count);
    }
}
