"""Writes an ONNX file with an operator of another domain."""

from __future__ import annotations

import sys

import onnx
from onnx import TensorProto, helper


def main() -> None:
    """Writes the file that the command line names."""
    nodes = [
        helper.make_node("SoftClip", ["x"], ["clipped"], "clip", domain="mine", limit=0.75),
        helper.make_node("Neg", ["clipped"], ["y"], "neg"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 5]) for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "own", ends[:1], ends[1:])
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), sys.argv[1])


if __name__ == "__main__":
    main()
