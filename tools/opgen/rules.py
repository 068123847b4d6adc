"""What the registry does not say: exceptions and names, each with its reason."""

from __future__ import annotations

from collections.abc import Collection

# Ops whose name starts so belong to TensorFlow's own rewriting passes and get no wrapper.
PRIVATE_PREFIX = "_"

# Where an op's documentation is.
DOC_LINK = "https://www.tensorflow.org/api_docs/python/tf/raw_ops/{op}"

# The parameter of every wrapper that is no input and no attribute of the op.
CONTEXT_PARAMETER = "cx"
OPTIONS_PARAMETER = "options"

# Rust names of functions that the rule (snake case) gets wrong.
FUNCTION_NAMES: dict[str, str] = {
    # The number belongs to "log1p", as in Python's `xlog1py`.
    "Xlog1py": "xlog1py",
}

# The group (module and Cargo feature) of each file of Python wrappers, by the end of its path.
GROUPS: dict[str, str] = {
    "mlir/tensorflow/gen_mlir_passthrough_op": "xla",
    "tf2xla/ops/gen_xla_ops": "xla",
    "rpc/kernels/gen_rpc_ops": "distribute",
    "dtensor/python/gen_dtensor_ops": "distribute",
    "tpu/ops/gen_xla_ops": "tpu",
    "gen_array_ops": "array",
    "gen_audio_ops": "audio",
    "gen_batch_ops": "batch",
    "gen_bitwise_ops": "math",
    "gen_boosted_trees_ops": "boosted_trees",
    "gen_candidate_sampling_ops": "nn",
    "gen_checkpoint_ops": "io",
    "gen_clustering_ops": "clustering",
    "gen_collective_ops": "distribute",
    "gen_composite_tensor_ops": "container",
    "gen_control_flow_ops": "control_flow",
    "gen_count_ops": "sparse",
    "gen_ctc_ops": "rnn",
    "gen_cudnn_rnn_ops": "rnn",
    "gen_data_flow_ops": "data_flow",
    "gen_dataset_ops": "dataset",
    "gen_debug_ops": "debug",
    "gen_decode_proto_ops": "parsing",
    "gen_encode_proto_ops": "parsing",
    "gen_experimental_dataset_ops": "dataset",
    "gen_filesystem_ops": "io",
    "gen_functional_ops": "control_flow",
    "gen_image_ops": "image",
    "gen_io_ops": "io",
    "gen_linalg_ops": "linalg",
    "gen_list_ops": "container",
    "gen_logging_ops": "summary",
    "gen_lookup_ops": "lookup",
    "gen_manip_ops": "array",
    "gen_map_ops": "container",
    "gen_math_ops": "math",
    "gen_nccl_ops": "distribute",
    "gen_nn_ops": "nn",
    "gen_optional_ops": "dataset",
    "gen_parsing_ops": "parsing",
    "gen_ragged_array_ops": "ragged",
    "gen_ragged_conversion_ops": "ragged",
    "gen_ragged_math_ops": "ragged",
    "gen_random_index_shuffle_ops": "random",
    "gen_random_ops": "random",
    "gen_resource_variable_ops": "variable",
    "gen_rnn_ops": "rnn",
    "gen_script_ops": "script",
    "gen_sdca_ops": "training",
    "gen_sendrecv_ops": "distribute",
    "gen_set_ops": "sparse",
    "gen_sparse_csr_matrix_ops": "sparse",
    "gen_sparse_ops": "sparse",
    "gen_special_math_ops": "math",
    "gen_spectral_ops": "spectral",
    "gen_state_ops": "variable",
    "gen_stateful_random_ops": "random",
    "gen_stateless_random_ops": "random",
    "gen_stateless_random_ops_v2": "random",
    "gen_string_ops": "string",
    "gen_summary_ops": "summary",
    "gen_sync_ops": "variable",
    "gen_tpu_ops": "tpu",
    "gen_tpu_partition_ops": "tpu",
    "gen_training_ops": "training",
    "gen_uniform_quant_ops": "quantization",
    "gen_user_ops": "math",
}

# The group of ops without a Python wrapper, by the start of their name; the longest one counts.
GROUP_PREFIXES: dict[str, str] = {
    "CalibrationStatisticsSaver": "quantization",
    "CollateTPU": "tpu",
    "ComputeDedup": "tpu",
    "ConfigureTPU": "tpu",
    "ConnectTPU": "tpu",
    "CustomAggregator": "quantization",
    "DTensor": "distribute",
    "DumpTensor": "quantization",
    "EnqueueTPU": "tpu",
    "ExecuteTPU": "tpu",
    "FinalizeTPU": "tpu",
    "GetTpu": "tpu",
    "HostConst": "array",
    "KthOrderStatistic": "tpu",
    "LoadAllTPU": "tpu",
    "MakeUnique": "tpu",
    "MergeDedup": "tpu",
    "NegTrain": "nn",
    "QuantizedConcatV2": "array",
    "RetrieveAllTPU": "tpu",
    "Risc": "risc",
    "Skipgram": "nn",
    "SplitDedup": "tpu",
    "StochasticCastToInt": "quantization",
    "TPU": "tpu",
    "TopK": "tpu",
    "Tpu": "tpu",
    "UpdateTaskId": "tpu",
    "Xla": "xla",
    "XlaRecvTPU": "tpu",
    "XlaSendTPU": "tpu",
    "XlaSparse": "tpu",
}

# The group of an op that no rule above covers: custom ops, ops newer than these tables.
DEFAULT_GROUP = "other"

# One shared enum per distinct set of allowed strings. A set without a row gets the name of its
# first op and attribute.
_ENUMS: dict[str, str] = {
    "Padding": "SAME VALID",
    "PaddingOrExplicit": "SAME VALID EXPLICIT",
    "DataFormat": "NHWC NCHW",
    "DataFormat3d": "NDHWC NCDHW",
    "DataFormatVectC": "NHWC NCHW NCHW_VECT_C",
    "DataFormatAny": "NHWC NCHW NDHWC NCDHW",
    "ChannelPosition": "CHANNELS_FIRST CHANNELS_LAST",
    "RnnMode": "rnn_relu rnn_tanh lstm gru",
    "RnnInputMode": "linear_input skip_input auto_select",
    "RnnDirection": "unidirectional bidirectional",
    "InputQuantMode": "MIN_FIRST SCALED",
    "QuantizeMode": "MIN_COMBINED MIN_FIRST SCALED",
    "QuantizeRounding": "HALF_AWAY_FROM_ZERO HALF_TO_EVEN",
    "DequantizeRounding": "HALF_TO_EVEN HALF_UP",
    "MirrorPadMode": "REFLECT SYMMETRIC",
    "MeanOrSum": "MEAN SUM",
    "MergeOp": "Min Max Mul Add",
    "FinalOp": "Id Div",
    "NcclReduction": "min max prod sum",
    "XlaReduction": "Min Max Mul Add Mean",
    "DTensorReduction": "Min Max Mul Add Mean Any All",
    "XlaReductionScope": "CrossReplica CrossReplicaAndPartition",
    "UnicodeErrors": "strict replace ignore",
    "UnicodeEncoding": "UTF-8 UTF-16-BE UTF-32-BE",
    "StringUnit": "BYTE UTF8_CHAR",
    "DiagonalAlignment": "LEFT_RIGHT RIGHT_LEFT LEFT_LEFT RIGHT_RIGHT",
    "CropMethod": "bilinear nearest",
    "CropBoxGradientMethod": "bilinear",
    "DensityUnit": "in cm",
    "SdcaLoss": "logistic_loss squared_loss hinge_loss smooth_hinge_loss poisson_loss",
    "TreeSplit": "inequality equality",
    "SparseTreeSplit": "inequality",
    "MixedPriorityPolicy": (
        "low_priority_padding_with_max_batch_size"
        " low_priority_padding_with_next_allowed_batch_size priority_isolation priority_merge"
    ),
    "BatchPaddingPolicy": "PAD_UP BATCH_DOWN MINIMIZE_TPU_COST_PER_REQUEST",
    "RiscPooling": "AVG MAX",
    "RiscComparison": "EQ NE GE GT LE LT",
    "RiscArithmetic": "ADD SUB MUL DIV REM MIN POW",
    "RiscUnaryOp": "ABL CEIL COS EXP FLOOR IMAG LOG NEG REAL SIGN",
    "RiscSortDirection": "ASCENDING DESCENDING",
}
ENUMS: dict[frozenset[str], str] = {
    frozenset(values.split()): name for name, values in _ENUMS.items()
} | {
    # The empty string means "by the number of channels".
    frozenset(["", "grayscale", "rgb"]): "JpegFormat",
}

# Variants whose value is no word.
VARIANTS: dict[str, str] = {"": "Unspecified"}


def group(op: str, file: str | None) -> str | None:
    """Returns the module of an op, or None where no rule names one.

    Args:
        op: The op's name.
        file: The file of its Python wrapper, or None.
    """
    if file is not None:
        stem = "/" + file.removesuffix(".py")
        ends = [end for end in GROUPS if stem.endswith("/" + end)]
        if ends:
            return GROUPS[max(ends, key=len)]
    starts = [start for start in GROUP_PREFIXES if op.startswith(start)]
    return GROUP_PREFIXES[max(starts, key=len)] if starts else None


def enum_name(values: Collection[str]) -> str | None:
    """Returns the name of the enum of a set of allowed strings, or None for a set without one."""
    return ENUMS.get(frozenset(values))


# Lists of strings that are no texts; all other lists of strings are `&[&str]` in Rust.
BYTES_LISTS: dict[tuple[str, str], str] = {
    ("TPUReplicateMetadata", "padding_map"): "serialized protocol buffers",
}
