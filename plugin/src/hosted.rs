//! Ops that this device computes with TensorFlow's own kernels for the CPU, where the tensors lie.
//!
//! TensorFlow would place such an op on the CPU: it copies its inputs and outputs, takes along
//! what it keeps beside it, and refuses where soft placement is off or the op is pinned. This device's
//! memory is the host's, so the CPU's kernel can run on it.

use tfp_bindings::eager::Eager;
use tfp_bindings::{
    Construction, Context, DataType, Kernel, Registration, RegistrationError, Result, log,
};

use tfp_adapter::host::HostOp;
use tfp_adapter::profile::Profiled;

mod doubles;

/// Which nodes of an op are computed so: those whose type attribute is one of `types`.
struct Row {
    ops: &'static [&'static str],
    attr: &'static str,
    types: &'static [DataType],
    /// Inputs in the host's memory: small ones that say how, such as axes.
    host: &'static [&'static str],
}

const F32: &[DataType] = &[DataType::FLOAT];
const FLOATS: &[DataType] = &[DataType::FLOAT, DataType::DOUBLE];
const ALL_FLOATS: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
];
/// What moves elements without computing.
const MOVED: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
    DataType::INT64,
];
/// What pools volumes.
const POOLED: &[DataType] = &[DataType::FLOAT, DataType::BFLOAT16];
/// Integers whose largest element is asked for, as in quantized models.
const POOLED_WHOLE: &[DataType] = &[
    DataType::INT8,
    DataType::INT16,
    DataType::INT64,
    DataType::UINT8,
    DataType::UINT16,
];
const HALF: &[DataType] = &[DataType::HALF];
const UP_TO_HALF: &[DataType] = &[DataType::FLOAT, DataType::DOUBLE, DataType::HALF];
const COMPLEX: &[DataType] = &[DataType::COMPLEX64];

const fn row(
    ops: &'static [&'static str],
    types: &'static [DataType],
    host: &'static [&'static str],
) -> Row {
    Row {
        ops,
        attr: "T",
        types,
        host,
    }
}

/// Of lists of truth values, such as the masks of a recurrent layer's steps. Lists of other types
/// have kernels for every device.
const fn list(op: &'static [&'static str; 1], host: &'static [&'static str]) -> Row {
    Row {
        ops: op,
        attr: "element_dtype",
        types: &[DataType::BOOL],
        host,
    }
}

/// The ops, each with the inputs that it has in the host's memory.
const ROWS: &[Row] = &[
    row(&["Einsum", "L2Loss"], ALL_FLOATS, &[]),
    row(
        &[
            "MaxPool3D",
            "MaxPool3DGrad",
            "MaxPool3DGradGrad",
            "AvgPool3D",
        ],
        POOLED,
        &[],
    ),
    row(&["MaxPoolGradGrad"], ALL_FLOATS, &[]),
    row(&["MaxPool"], POOLED_WHOLE, &[]),
    row(&["AvgPool3DGrad"], POOLED, &["orig_input_shape"]),
    row(&["TopKV2"], MOVED, &["k"]),
    row(&["InTopKV2"], &[DataType::INT64], &["k"]),
    row(
        &["DepthToSpace", "SpaceToDepth", "ExtractImagePatches"],
        ALL_FLOATS,
        &[],
    ),
    row(&["BatchToSpaceND"], ALL_FLOATS, &["block_shape", "crops"]),
    row(
        &["SpaceToBatchND"],
        ALL_FLOATS,
        &["block_shape", "paddings"],
    ),
    row(&["MirrorPadGrad"], ALL_FLOATS, &["paddings"]),
    row(&["Roll"], MOVED, &["shift", "axis"]),
    row(&["ResizeBicubic", "ResizeArea"], ALL_FLOATS, &["size"]),
    row(&["ResizeBicubicGrad"], FLOATS, &[]),
    row(&["LRN", "LRNGrad"], &[DataType::FLOAT, DataType::HALF], &[]),
    row(&["RGBToHSV", "HSVToRGB"], ALL_FLOATS, &[]),
    row(
        &["AdjustContrastv2", "AdjustHue", "AdjustSaturation"],
        F32,
        &[],
    ),
    row(&["CropAndResize"], UP_TO_HALF, &["crop_size"]),
    row(&["CropAndResizeGradImage"], UP_TO_HALF, &["image_size"]),
    row(&["CropAndResizeGradBoxes"], UP_TO_HALF, &[]),
    Row {
        ops: &["ImageProjectiveTransformV3"],
        attr: "dtype",
        types: ALL_FLOATS,
        host: &["output_shape"],
    },
    row(
        &[
            "SegmentMax",
            "SegmentMean",
            "SegmentMin",
            "SegmentProd",
            "SegmentSum",
        ],
        ALL_FLOATS,
        &[],
    ),
    row(
        &[
            "UnsortedSegmentMax",
            "UnsortedSegmentMin",
            "UnsortedSegmentProd",
        ],
        ALL_FLOATS,
        &["num_segments"],
    ),
    row(&["MatrixBandPart"], ALL_FLOATS, &["num_lower", "num_upper"]),
    row(
        &["MatrixDiagV3"],
        ALL_FLOATS,
        &["k", "num_rows", "num_cols"],
    ),
    row(&["MatrixDiagPartV3", "MatrixSetDiagV3"], ALL_FLOATS, &["k"]),
    row(
        &[
            "Cholesky",
            "CholeskyGrad",
            "LogMatrixDeterminant",
            "MatrixDeterminant",
        ],
        FLOATS,
        &[],
    ),
    row(&["MatrixInverse", "Qr"], UP_TO_HALF, &[]),
    row(
        &["MatrixSolve", "MatrixTriangularSolve", "Svd"],
        FLOATS,
        &[],
    ),
    row(&["SelfAdjointEigV2"], FLOATS, &[]),
    row(&["CumulativeLogsumexp"], ALL_FLOATS, &["axis"]),
    row(
        &["BesselI0e", "BesselI1e", "Digamma", "Lgamma"],
        UP_TO_HALF,
        &[],
    ),
    row(&["Erfinv", "Ndtri"], FLOATS, &[]),
    row(
        &["Betainc", "Igamma", "Igammac", "Polygamma", "Zeta"],
        FLOATS,
        &[],
    ),
    Row {
        ops: &["BatchMatMulV3"],
        attr: "Ta",
        types: &[DataType::FLOAT, DataType::DOUBLE, DataType::BFLOAT16],
        host: &[],
    },
    Row {
        ops: &["RFFT", "RFFT2D"],
        attr: "Treal",
        types: F32,
        host: &["fft_length"],
    },
    Row {
        ops: &["IRFFT", "IRFFT2D"],
        attr: "Tcomplex",
        types: COMPLEX,
        host: &["fft_length"],
    },
    Row {
        ops: &["FFT", "FFT2D", "IFFT", "IFFT2D"],
        attr: "Tcomplex",
        types: COMPLEX,
        host: &[],
    },
    row(
        &["Angle", "ComplexAbs", "Conj", "Imag", "Real"],
        COMPLEX,
        &[],
    ),
    row(&["Complex"], F32, &[]),
    row(&["Cumsum"], &[DataType::INT32], &["x", "axis", "out"]),
    // Shapes, which the gradients of loops keep.
    Row {
        ops: &["TensorListPushBack"],
        attr: "element_dtype",
        types: &[DataType::INT32],
        host: &["tensor"],
    },
    Row {
        ops: &["TensorListPopBack"],
        attr: "element_dtype",
        types: &[DataType::INT32],
        host: &["element_shape", "tensor"],
    },
    list(&["TensorListFromTensor"], &["element_shape"]),
    list(&["TensorListGather"], &["indices", "element_shape"]),
    list(&["TensorListGetItem"], &["index", "element_shape"]),
    list(&["TensorListPopBack"], &["element_shape"]),
    list(&["TensorListSetItem"], &["index"]),
    list(&["TensorListStack"], &["element_shape"]),
    row(
        &["AddV2", "DivNoNan", "Exp", "Mul", "Neg", "RealDiv", "Sub"],
        COMPLEX,
        &[],
    ),
];

/// Ops that TensorFlow's GPU has for a type and its CPU for float32 only: computed in float32 and
/// rounded once.
const WIDENED: &[Row] = &[
    row(
        &[
            "AdjustContrastv2",
            "AdjustHue",
            "AdjustSaturation",
            "AvgPool3D",
            "MaxPool3D",
            "MaxPool3DGrad",
            "MaxPool3DGradGrad",
        ],
        HALF,
        &[],
    ),
    row(&["AvgPool3DGrad"], HALF, &["orig_input_shape"]),
    Row {
        ops: &["BatchMatMulV3"],
        attr: "Ta",
        types: HALF,
        host: &[],
    },
    row(&["ExtractImagePatches"], &[DataType::BOOL], &[]),
];

/// Ops of float32 without a type attribute.
const PLAIN: &[&str] = &[
    "FakeQuantWithMinMaxArgs",
    "FakeQuantWithMinMaxArgsGradient",
    "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannel",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
];

/// Ops on a value that may be missing, which is how Keras' loops hand over what a step gave.
const OPTIONAL: &[(&str, &[&str])] = &[
    ("OptionalFromValue", &[]),
    ("OptionalGetValue", &[]),
    ("OptionalHasValue", &["has_value"]),
    ("OptionalNone", &[]),
];

/// Registers their kernels where the eager runtime is there to serve them.
pub fn register(device_type: &str) {
    if !Eager::is_available() {
        return;
    }
    add_rows::<HostedKernel>(ROWS, device_type);
    add_rows::<HostedKernel>(doubles::ROWS, device_type);
    add_rows::<WidenedKernel>(WIDENED, device_type);
    let plain = PLAIN.iter().map(|op| (op, &[][..]));
    for (op, host) in plain.chain(OPTIONAL.iter().map(|(op, host)| (op, *host))) {
        let registration = Registration::new(op, device_type);
        let host = host.iter();
        add::<HostedKernel>(host.fold(registration, |kept, argument| kept.host_memory(argument)));
    }
}

fn add_rows<K: Kernel>(rows: &[Row], device_type: &str) {
    for row in rows {
        for op in row.ops {
            for &data_type in row.types {
                let registration = Registration::new(op, device_type);
                let registration = registration.constraint(row.attr, data_type);
                let host = row.host.iter();
                add::<K>(host.fold(registration, |kept, argument| kept.host_memory(argument)));
            }
        }
    }
}

fn add<K: Kernel>(registration: Registration) {
    match registration.register::<Profiled<K>>() {
        // An older TensorFlow need not have every op.
        Ok(()) | Err(RegistrationError::UnknownOp { .. }) => {}
        Err(error) => log(&format!("kernel left out: {error}")),
    }
}

/// The kernel of a node.
struct HostedKernel(HostOp);

impl Kernel for HostedKernel {
    fn new(node: &Construction) -> Result<Self> {
        Ok(Self(HostOp::new(node)))
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        self.0.run(context)
    }
}

/// The kernel of a node whose type TensorFlow's CPU has no kernel for, but for float32.
struct WidenedKernel(HostOp);

impl Kernel for WidenedKernel {
    fn new(node: &Construction) -> Result<Self> {
        let row = WIDENED.iter().find(|row| row.ops.contains(&node.op()));
        let attr = row.map_or("T", |row| row.attr);
        Ok(Self(HostOp::widened(node, node.data_type(attr)?)))
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        self.0.run(context)
    }
}
