//! Which of Python's gradients this crate does not have, and why.

use crate::fixture;

/// The ops, and what all of them have in common.
const MISSING: &[(&str, &str)] = &[
    (
        "constant in pieces: no gradient in place of zeros",
        "ArgMax ArgMin Ceil Floor FloorDiv Rint Round Sign TruncateDiv",
    ),
    (
        "only TPUs have a kernel",
        "AllToAll CollectivePermute CrossReplicaSum TPUEmbeddingActivations",
    ),
    (
        "only GPUs have a kernel",
        "CudnnRNN CudnnRNNV2 CudnnRNNV3 NcclAllReduce NcclBroadcast NcclReduce SparseMatrixAdd \
         SparseMatrixSoftmax",
    ),
    (
        "only XLA has a kernel",
        "XlaClusterOutput XlaEinsum XlaSharding XlaSpmdFullToShardShape XlaSpmdShardToFullShape",
    ),
    (
        "a mesh of devices, which only Python makes",
        "CopyToMesh CopyToMeshGrad Relayout RelayoutLike",
    ),
    (
        "calls Python, or holds a value of it",
        "CompositeTensorVariantFromComponents CompositeTensorVariantToComponents EagerPyFunc \
         _EagerConst",
    ),
    (
        "a step of a loop of TensorFlow 1, whose gradient is a loop: `while_loop` has one",
        "Enter Exit LoopCond Merge NextIteration RefEnter RefExit RefMerge RefNextIteration RefSwitch Switch",
    ),
    (
        "an array of TensorFlow 1: lists of tensors have gradients",
        "TensorArrayConcat TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayGather \
         TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayRead TensorArrayReadV2 \
         TensorArrayReadV3 TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 \
         TensorArraySplit TensorArraySplitV2 TensorArraySplitV3 TensorArrayWrite \
         TensorArrayWriteV2 TensorArrayWriteV3",
    ),
    (
        "a reference variable of Python's debugger",
        "DebugGradientRefIdentity",
    ),
    (
        "Python's function raises an error",
        "SparseMatrixMul SparseSparseMaximum SparseSparseMinimum",
    ),
    (
        "Python's function is not the slope: it forgets what the mean does to the limits",
        "StatelessParameterizedTruncatedNormal",
    ),
    (
        "Python's function takes other inputs than the op has",
        "QuantizeAndDequantizeV4Grad",
    ),
];

#[test]
fn every_gradient_of_python_is_here_or_has_a_reason() {
    let here = tfp::differentiable_ops();
    let missing: Vec<&str> = MISSING.iter().flat_map(|(_, ops)| ops.split(' ')).collect();
    let registered = fixture::registered();
    let without: Vec<&String> = registered
        .iter()
        .filter(|op| here.contains(&op.as_str()) == missing.contains(&op.as_str()))
        .collect();
    assert!(without.is_empty(), "neither, or both: {without:?}");
    let unknown = |op: &&&str| !registered.iter().any(|other| other == **op);
    let unknown: Vec<_> = missing.iter().filter(unknown).collect();
    assert!(unknown.is_empty(), "not in Python: {unknown:?}");
    println!(
        "{} of Python's {} gradients",
        registered.len() - missing.len(),
        registered.len()
    );
}
