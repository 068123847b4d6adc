"""ONNX files with an operator of the user's own, whose attributes are hostile."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from converters.tf.emit.options import Options, RuntimeMode
from converters.tf.load.model import LoadOptions
from converters.tf.tf2rust import Request, run
from tests.fuzz import edits, protos
from tests.fuzz.case import Case, Outcome, Reference, Status
from tests.fuzz.targets.converter import Converter, wrong_files
from tests.fuzz.targets.texts import refused
from tools.codegen.conversion import ConversionError
from tools.codegen.rust_code import code_only

_MODULE = """\
import numpy as np

RUST = "scaled.rs"
ARGUMENTS = ("factor", "way", "axes", "flag", "words", "parts")


def shapes(operands, attributes):
    return [operands[0]]


def compute(operands, attributes):
    return [operands[0] * np.float32(attributes["factor"])]
"""
_RUST = "pub fn scaled() {}\n"
_NAME = "mine::Scaled"
# What no line of code may hold.
_MARK = "inj3ct"
_TEXTS = (
    *(f'"); fn {_MARK}() {{}} //', f"*/ fn {_MARK}() {{}} /*", f"\n{_MARK}\n", f"{_MARK}\\"),
    *(f'\\", {_MARK}!(), "', f"{{{_MARK}}}", f"\u202e{_MARK}\u2066", f'r#"{_MARK}"#'),
)


class CustomOps(Converter):
    """Converts; a text of the file may be in no code."""

    input_name = "m.onnx"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Writes the operator's files."""
        super().__init__(folder, reference)
        (folder / "scaled.rs").write_text(_RUST, "utf-8")
        self._module = folder / "scaled.py"
        self._module.write_text(_MODULE, "utf-8")

    @property
    def bases(self) -> int:
        """How many models there are."""
        return 2

    def write(self, case: Case, folder: Path) -> Path:
        """Writes a model."""
        model = _model(case.base)
        for seed in case.edits:
            choose = random.Random(seed)
            if choose.random() < 0.5:
                _hostile(choose, model)
            else:
                protos.edit(choose, model)
        path = folder / self.input_name
        path.write_bytes(model.SerializeToString(deterministic=True))
        return path

    def check(self, path: Path) -> Outcome:
        """Converts a model."""
        load = LoadOptions(custom_ops=((_NAME, self._module),))
        options = Options("net", path.name, runtime=RuntimeMode.CRATE)
        try:
            result = run(Request(path, options, load))
        except ConversionError as err:
            return refused(err, "tf2rust")
        problem = wrong_files(result.files)
        for name, content in result.files.items():
            if name.endswith(".rs") and _MARK in code_only(content.decode()):
                problem = problem or f"{name} has a text of the file as code"
        if problem:
            return Outcome(Status.FAULT, problem, "files")
        return Outcome(Status.TAKEN)


def _model(kind: int) -> Any:
    attributes = {
        "factor": 0.5,
        "way": "up",
        "axes": [1, -1],
        "flag": 1,
        "words": ["a", "b"],
        "parts": [0.25, 3.0],
    }
    own = helper.make_node("Scaled", ["r"], ["y"], "own", domain="mine", **attributes)
    nodes = [helper.make_node("Relu", ["x"], ["r"], "relu"), own]
    if kind:
        nodes += [helper.make_node("Add", ["y", "w"], ["z"], "add")]
    weight = numpy_helper.from_array(np.ones(3, np.float32), "w")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("z" if kind else "y", TensorProto.FLOAT, ["n", 3])],
        [weight] if kind else [],
    )
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


def _hostile(choose: random.Random, model: Any) -> None:
    """Gives an attribute or a name a text, or a number at which something ends."""
    nodes = [n for n in model.graph.node if n.attribute]
    if not nodes:
        return
    attribute = choose.choice(choose.choice(nodes).attribute)
    text = choose.choice((*_TEXTS, *edits.TEXTS)).encode("utf-8", "replace")
    if attribute.strings and choose.random() < 0.7:
        attribute.strings[choose.randrange(len(attribute.strings))] = text
    elif attribute.ints:
        attribute.ints.append(choose.choice(edits.NUMBERS))
    elif attribute.floats:
        attribute.floats.append(choose.choice(edits.FLOATS))
    elif attribute.s:
        attribute.s = text
    elif attribute.f:
        attribute.f = choose.choice(edits.FLOATS)
    else:
        names = [n for n in model.graph.node if n.name]
        if names:
            choose.choice(names).name = choose.choice(_TEXTS)
