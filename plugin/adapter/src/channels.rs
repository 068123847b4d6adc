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
            "Conv3D",
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
        &[
            "Conv2DBackpropInput",
            "Conv3DBackpropInputV2",
            "DepthwiseConv2dNativeBackpropInput",
        ],
        &[2],
        &[0],
        true,
    ),
    row(
        &[
            "Conv2DBackpropFilter",
            "Conv3DBackpropFilterV2",
            "DepthwiseConv2dNativeBackpropFilter",
        ],
        &[0, 2],
        &[],
        false,
    ),
];

/// Two orders of axes, by their names.
struct Format {
    /// With the channels first.
    first: &'static str,
    /// With the channels last.
    last: &'static str,
    /// Where the axes of `last` are in `first`.
    there: &'static [u8],
    /// Where the axes of `first` are in `last`.
    back: &'static [u8],
}

const FORMATS: &[Format] = &[
    Format {
        first: "NCHW",
        last: "NHWC",
        there: &[0, 2, 3, 1],
        back: &[0, 3, 1, 2],
    },
    Format {
        first: "NCDHW",
        last: "NDHWC",
        there: &[0, 2, 3, 4, 1],
        back: &[0, 4, 1, 2, 3],
    },
];

/// Attributes that have a number for each axis; those with two are [`PAIRS`].
const LISTS: &[&str] = &["dilations", "ksize", "strides"];
const PAIRS: &str = "explicit_paddings";

/// Which tensors of a node are turned, and how.
pub(crate) struct Channels {
    row: &'static Row,
    format: &'static Format,
}

impl Channels {
    /// Turns the attributes of a node with channels first, if its op is one that has to be.
    pub(crate) fn turn(op: &str, attrs: &mut Vec<(String, Attr)>) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.ops.contains(&op))?;
        let (_, found) = attrs.iter_mut().find(|(name, _)| name == "data_format")?;
        let format = FORMATS.iter().find(|format| *found == text(format.first))?;
        *found = text(format.last);
        for (name, value) in attrs {
            let width = match &**name {
                PAIRS => 2,
                name if LISTS.contains(&name) => 1,
                _ => continue,
            };
            if let Attr::List(AttrList { ints, .. }) = value
                && ints.len() == width * format.there.len()
            {
                let turned = format.there.iter().flat_map(|&axis| {
                    let at = usize::from(axis) * width;
                    ints.get(at..at + width).unwrap_or_default().to_vec()
                });
                *ints = turned.collect();
            }
        }
        Some(Self { row, format })
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
            return turned(eager, &value, data_type, self.format.there);
        }
        if self.row.shapes.contains(&index) {
            let attrs = [
                ("T", Attr::Type(data_type)),
                ("src_format", text(self.format.first)),
                ("dst_format", text(self.format.last)),
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
        let data_type = value.to_tensor()?.data_type();
        turned(eager, &value, data_type, self.format.back)
    }
}

fn text(text: &str) -> Attr {
    Attr::String(text.as_bytes().to_vec())
}

/// A value with its axes in another order.
fn turned(eager: &Eager, value: &Value, data_type: DataType, axes: &[u8]) -> Result<Value> {
    let axes = axes.iter().map(|&axis| i32::from(axis));
    let bytes: Vec<u8> = axes.clone().flat_map(i32::to_ne_bytes).collect();
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
        ("data_format".to_owned(), text(name))
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
        assert_eq!((found.format.first, found.format.last), ("NCDHW", "NDHWC"));
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
    fn what_is_turned_back_is_as_it_was() {
        for format in FORMATS {
            let (first, last) = (format.first.as_bytes(), format.last.as_bytes());
            let taken = |from: &[u8], axes: &[u8]| -> Vec<u8> {
                axes.iter().map(|&axis| from[usize::from(axis)]).collect()
            };
            assert_eq!(taken(first, format.there), last);
            assert_eq!(taken(last, format.back), first);
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
