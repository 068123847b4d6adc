//! The gradient functions of this crate, by group of ops.

mod array;
mod binary;
mod control;
mod conv;
mod factor;
mod fourier;
mod gather;
mod linalg;
mod nn;
mod ragged;
mod reduce;
mod scatter;
mod sparse;
mod unary;
mod variable;

use super::registry::Rule;

/// The gradient functions of a group of ops.
type Rules = &'static [(&'static str, Rule)];

/// All groups.
pub(super) static ALL: &[Rules] = &[
    array::RULES,
    binary::RULES,
    control::RULES,
    conv::RULES,
    factor::RULES,
    fourier::RULES,
    gather::RULES,
    linalg::RULES,
    nn::RULES,
    ragged::RULES,
    reduce::RULES,
    scatter::RULES,
    sparse::RULES,
    unary::RULES,
    variable::RULES,
];

/// Ops through which no gradient flows by nature: what they return is constant around their inputs,
/// or they exist to stop it.
pub(super) static STOPS: &[&str] = &[
    "All",
    "Any",
    "ApproximateEqual",
    "ArgMax",
    "ArgMin",
    "Assert",
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "Bincount",
    "BroadcastGradientArgs",
    "Bucketize",
    "Ceil",
    "ConcatOffset",
    "Const",
    "DenseBincount",
    "EditDistance",
    "EmptyTensorList",
    "Equal",
    "Floor",
    "FloorDiv",
    "Greater",
    "GreaterEqual",
    "HistogramFixedWidth",
    "HistogramSummary",
    "InTopK",
    "InTopKV2",
    "InvertPermutation",
    "IsFinite",
    "IsInf",
    "IsNan",
    "IsVariableInitialized",
    "Less",
    "LessEqual",
    "LinSpace",
    "ListDiff",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "LowerBound",
    "Multinomial",
    "NonMaxSuppression",
    "NonMaxSuppressionV2",
    "NonMaxSuppressionV3",
    "NotEqual",
    "OneHot",
    "OnesLike",
    "Placeholder",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "Range",
    "Rank",
    "ResourceApplyAdadelta",
    "ResourceApplyAdagradV2",
    "ResourceApplyAdam",
    "ResourceApplyFtrlV2",
    "ResourceApplyGradientDescent",
    "ResourceApplyMomentum",
    "ResourceApplyRMSProp",
    "Rint",
    "Round",
    "ScalarSummary",
    "Shape",
    "ShapeN",
    "Sign",
    "Size",
    "StatelessMultinomial",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformV2",
    "StopGradient",
    "StringFormat",
    "TensorListElementShape",
    "TensorListLength",
    "TensorListReserve",
    "TruncateDiv",
    "TruncatedNormal",
    "Unique",
    "UniqueV2",
    "UniqueWithCounts",
    "UpperBound",
    "VarHandleOp",
    "VarIsInitializedOp",
    "VariableShape",
    "Where",
    "ZerosLike",
];
