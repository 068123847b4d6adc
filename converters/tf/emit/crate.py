"""All files of a generated crate: path to content, in one mapping that the caller writes."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.emit.model import ModelText, PortText, feature_keys, model_text
from converters.tf.emit.names import Scope, camel
from converters.tf.emit.npz import npz_bytes
from converters.tf.emit.options import Options, Profile, RuntimeMode, WeightsMode
from converters.tf.emit.shake import shaken
from converters.tf.emit.vendor import read_sources, vendor
from converters.tf.emit.weights import rust_type
from tools.codegen.render import environment, render
from tools.codegen.rust import RustText, check_one_line, code_span, one_line, string_literal
from tools.codegen.rustfmt import format_rust

_TEMPLATES = Path(__file__).parent.parent / "templates"
_REPOSITORY = Path(__file__).parents[3]
# From this size on the assembler copies the weights, and not the compiler.
_INCBIN = 1 << 20
# Statements of one generated function, at most.
_PART = 60
# Layers that one generated function makes, at most: several hundred take the compiler minutes.
_GROUP = 128
THRESHOLDS = '{"dirty": {"bottom": 0.0, "low": 0.0, "medium": 0.0, "high": 0.0}}\n'
# What a module without std declares, imports or has from the language.
_TENSORS_NOT = frozenset(
    [
        *("Inputs", "Outputs", "Workspace", "Error", "Memory", "Aligned", "Self", "Default"),
        *("DType", "From", "Ok", "Err", "Some", "None", "Option", "Result", "Serial", "Slot"),
    ]
)
# What the skeleton of a model imports, whatever its layers are.
_SKELETON = (
    "engine::Engine",
    "engine::Workspace",
    "error::Error",
    "memory::Memory",
    "ports::examples",
    "weights::Weights",
)
_SKELETON_NO_STD = (
    "bytes::Aligned",
    "dtype::DType",
    "error::Error",
    "kernels::base::parallel::Serial",
    "memory::Memory",
)
# How tensors of the crates without std name the types of their elements.
_VARIANTS = {
    "f32": "Float32",
    "f64": "Float64",
    "i8": "Int8",
    "i16": "Int16",
    "i32": "Int32",
    "i64": "Int64",
    "u8": "UInt8",
    "u16": "UInt16",
    "u32": "UInt32",
    "u64": "UInt64",
    "bool": "Bool",
}
# How a tensor is borrowed, what then gives nested arrays, and the pointer to its elements.
_VIEWS = (
    ("&", "as_nested", "&raw const"),
    ("&mut ", "as_nested_mut", "&raw mut"),
)


@dataclass(frozen=True)
class Features:
    """Recorded inputs and outputs: the generated crate's test.

    Attributes:
        inputs: An array per input of the graph, by name.
        outputs: An array per output of the graph, by name.
    """

    inputs: Mapping[str, ir.Array]
    outputs: Mapping[str, ir.Array]


@dataclass(frozen=True)
class _Group:
    """A function that makes some of the layers."""

    name: str
    fields: list[Any]

    @property
    def w(self) -> bool:
        return any(_needs_w(f.value) for f in self.fields)

    @property
    def p(self) -> bool:
        return any(_needs_p(f.value) for f in self.fields)


def _needs_w(value: str) -> bool:
    return re.search(r"\bw, ", value) is not None


def _needs_p(value: str) -> bool:
    return re.search(r", p\)", value) is not None


@dataclass(frozen=True)
class _Part:
    """A function with some of the statements."""

    name: str
    doc: str
    lines: list[str]

    @property
    def x(self) -> bool:
        return any(re.search(r"\bx\.", line) for line in self.lines)

    @property
    def b(self) -> bool:
        return any(re.search(r"[\[(, ]b[\], )]", line) for line in self.lines)


def emit_crate(
    graph: ir.Graph,
    options: Options,
    features: Features,
    rustfmt: str | None = None,
) -> dict[str, bytes]:
    """Returns all files of a crate, by path in its folder; see `crate_files`."""
    return crate_files(model_text(graph, options), graph, options, features, rustfmt)


def crate_files(
    text: ModelText,
    graph: ir.Graph,
    options: Options,
    features: Features,
    rustfmt: str | None = None,
) -> dict[str, bytes]:
    """Returns all files of a crate, by path in its folder.

    Args:
        text: The graph as statements and fields.
        graph: A graph without problems (see `support.problems`).
        options: How the crate is to be.
        features: Recorded inputs and outputs.
        rustfmt: The program that lays out the text; without one the text is not laid out.

    Raises:
        CodegenError: rustfmt refuses a text: a defect of the emitters.
    """
    env = environment(_TEMPLATES, check_one_line)
    values = _values(text, graph, options)
    templates = dict(_RUST_FILES if options.profile is Profile.STD else _RUST_FILES_NO_STD)
    if text.blocks:
        templates["src/blocks.rs"] = "blocks.rs.j2"
    rust = {path: render(env, template, values) for path, template in templates.items()}
    rust["tests/npz/mod.rs"] = (_TEMPLATES / "npz.rs").read_text("utf-8")
    if rustfmt is not None:
        rust = format_rust(rust, rustfmt)
    if options.runtime is RuntimeMode.INCLUDE:
        for path, source in _runtime(values, rust.values()).items():
            rust[f"src/runtime/{path}"] = _formatted(source, rustfmt) if rustfmt else source
    files = {path: content.encode() for path, content in rust.items()}
    files["Cargo.toml"] = render(env, "Cargo.toml.j2", values).encode()
    files["README.md"] = render(env, "README.md.j2", values).encode()
    files["model/model_weights.bin"] = text.weights.content
    files["model/thresholds.json"] = (options.thresholds or THRESHOLDS).encode()
    files["testdata/features.npz"] = npz_bytes(features_arrays(graph, features))
    return dict(sorted(files.items()))


@functools.cache
def _formatted(text: str, rustfmt: str) -> str:
    """Returns a file of the runtime, laid out; the same for all crates of a process."""
    return format_rust({"runtime.rs": text}, rustfmt)["runtime.rs"]


_RUST_FILES = {
    "src/lib.rs": "lib.rs.j2",
    "src/model.rs": "model.rs.j2",
    "src/places.rs": "places.rs.j2",
    "src/weights.rs": "weights.rs.j2",
    "tests/golden.rs": "golden_test.rs.j2",
    "benches/benchmarks.rs": "benchmarks.rs.j2",
}

_RUST_FILES_NO_STD = {
    "src/lib.rs": "lib.rs.j2",
    "src/model.rs": "model_no_std.rs.j2",
    "src/places.rs": "places.rs.j2",
    "src/weights.rs": "weights.rs.j2",
    "tests/golden.rs": "golden_test_no_std.rs.j2",
}


def features_arrays(graph: ir.Graph, features: Features) -> dict[str, ir.Array]:
    """Returns the arrays of `features.npz` by name, in the types of the graph."""
    input_keys, output_keys = feature_keys(graph)
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        data = np.asarray(features.inputs[port.name])
        arrays[input_keys[port.name]] = data.astype(port.value.dtype.numpy)
    for port in graph.outputs:
        data = np.asarray(features.outputs[port.name])
        arrays[output_keys[port.name]] = data.astype(port.value.dtype.numpy)
    return arrays


def _runtime(values: Mapping[str, Any], users: Iterable[str]) -> dict[str, str]:
    """Returns the files of the runtime that the model needs, for sources that use them."""
    users = tuple(users)
    uses = set(values["uses"]) | {"weights::Tensor", "memory::Slot", "bytes::Aligned"}
    uses |= set() if values["std"] else {"once::Once"}
    files = vendor(
        read_sources(_REPOSITORY / "converters/runtime/src"),
        read_sources(_REPOSITORY / "kernels/src"),
        uses,
    )
    public = {
        name
        for text in users
        for tree in re.findall(r"^pub use (?:crate::)?runtime::([^;]+);", text, re.MULTILINE)
        for name in re.findall(r"\b[A-Z]\w+", tree)
    }
    files = shaken(files, users, public)
    # A crate needs std or has none of it: a feature to choose would end in one that can't compile.
    std = str(values["std"]).lower()
    return {path: text.replace('feature = "std"', std) for path, text in files.items()}


def _values(text: ModelText, graph: ir.Graph, options: Options) -> dict[str, Any]:
    """Returns everything that the templates name."""
    std = options.profile is Profile.STD
    embed = options.weights_for(len(text.weights.content)) is WeightsMode.EMBED
    incbin = len(text.weights.content) >= _INCBIN
    parts = _parts(text)
    ports = [*text.inputs, *text.outputs]
    taken = {text.type, *(use.rpartition("::")[2] for use in text.uses)}
    taken |= {block.type for block in text.blocks}
    # `X` is how both a tensor and its place may be written.
    taken |= {slot.name for slot in text.slots}
    types = tensor_types(ports, taken)
    needs_w = any(_needs_w(f.value) for f in text.fields)
    needs_p = any(_needs_p(f.value) for f in text.fields)
    deliver = _deliver_lines(text, "" if std else ".as_mut_slice()")
    uses = set(text.uses) | set(_SKELETON if std else _SKELETON_NO_STD)
    if text.weights.has_records:
        uses.add("stored::expanded")
    if needs_p:
        uses.add("kernels::base::parallel::Serial")
    if text.binary:
        uses |= {"confidence::BinaryModelResult", "confidence::Thresholds"}
    for function in ("deliver", "deliver_bools"):
        if any(line.startswith(f"{function}(") for line in deliver):
            uses.add(f"ports::{function}")
    body = "\n".join([*text.lines, *deliver, *(f"{f.type} {f.value}" for f in text.fields)])
    body += (
        " expanded Engine Workspace Error Memory examples Weights Aligned Serial Thresholds DType"
    )
    body += " BinaryModelResult"
    block_body = "\n".join(
        [*(line for b in text.blocks for line in b.lines)]
        + [r.type for b in text.blocks for r in b.roles]
        + ["Error Memory"]
    )
    imports = ["crate::places::*", "crate::weights"]
    imports += [f"crate::blocks::{b.type}" for b in text.blocks]
    imports += [f"crate::runtime::{use}" for use in uses if _names(use, body)]
    block_uses = uses | {"memory::Slot"}
    block_imports = [f"crate::runtime::{use}" for use in block_uses if _names(use, block_body)]
    if "Tensor<" in block_body:
        block_imports.append("crate::runtime::weights::Tensor")
    calls = list(text.lines)
    if parts:
        calls = [f"self.{p.name}({'x, ' if p.x else ''}m)?;" for p in parts]
    batch_call = any(re.search(r"[\[(, ]b[\], )]", line) for line in calls)
    return {
        "mark": f"@generated by tf2rust from {one_line(options.source)}. Do not edit.",
        "name": one_line(graph.name).replace("`", "'"),
        "m": {
            "crate": text.crate,
            "type": text.type,
            "inputs": [_PortView(p) for p in text.inputs],
            "outputs": [_PortView(p) for p in text.outputs],
            "fields": text.fields,
            "slots": [_slot(s) for s in text.slots],
            "binary": text.binary,
            "weights_file": False,
            "needs_w": needs_w,
            "needs_p": needs_p,
            "uses_batch": batch_call,
            "uses_memory": any(re.search(r"\bm\b", line) for line in [*calls, *deliver]),
            "calls": list(map(RustText, calls)),
            "parts": parts,
            "groups": _groups(text),
            "blocks": [replace(b, lines=tuple(map(RustText, b.lines))) for b in text.blocks],
        },
        "std": std,
        "linked": options.runtime is RuntimeMode.CRATE,
        "runtime_place": options.runtime_place.toml(),
        "embed": embed,
        "incbin": incbin,
        "path": _weights_path(options, incbin),
        "thresholds_path": 'env!("MODEL_THRESHOLDS")'
        if options.from_environment
        else '"../model/thresholds.json"',
        "symbol": f"{text.crate}_weights_{text.weights.fingerprint:016x}",
        "len": len(text.weights.content),
        "has_records": text.weights.has_records,
        "plain": text.weights.plain,
        "size": text.weights.size,
        "kept": text.weights.kept,
        "fingerprint": f"0x{text.weights.fingerprint:016x}",
        "tensors": [
            {
                "name": t.name,
                "type": rust_type(t.value.dtype),
                "at": t.at,
                "elements": t.elements,
                "label": code_span(t.value.name or "constant"),
                "shape": ir.shape_text(t.value.shape),
            }
            for t in text.weights.tensors.values()
        ],
        "arena": text.plan.arena_bytes,
        "macs": text.plan.macs,
        "layers": len(text.fields) + sum(len(u.fields) - 1 for b in text.blocks for u in b.uses),
        "weight_bytes": sum(
            t.value.data.nbytes for t in text.weights.tensors.values() if t.value.data is not None
        ),
        "uses": sorted(uses),
        "imports": _grouped(imports),
        "block_imports": _grouped(block_imports),
        "place_weights": any(r.kind == "tensor" for b in text.blocks for r in b.roles),
        "batch_lines": _batch_lines(text),
        "any_batch": all(p.fixed for p in text.outputs),
        "array_result": f"Vec<{text.outputs[0].type}>" if len(text.outputs) == 1 else "Outputs",
        "input_names": ", ".join(p.field for p in text.inputs),
        "deliver_lines": deliver,
        "tensors_of": list(zip(map(_PortView, ports), types, strict=True)),
        "input_types": types[: len(text.inputs)],
        "output_types": types[len(text.inputs) :],
        "tolerance": repr(options.tolerance),
        "dynamic": next((p for p in text.inputs if not p.fixed), None)
        and _Dynamic(next(p for p in text.inputs if not p.fixed)),
        "stacked": all(p.leading for p in ports),
        "batches": "1, 10" if any(not p.fixed for p in text.inputs) else "1",
        "constructor": "new()" if embed else 'from_file("model/model_weights.bin")',
    }


def tensor_types(ports: Sequence[PortText], taken: Iterable[str]) -> list[str]:
    """Returns the names of the types of inputs and outputs, of the crates without std."""
    scope = Scope(_TENSORS_NOT | set(taken))
    names = [camel(port.name, "Tensor") for port in ports]
    return [scope.unique(name, f"{name}Tensor") for name in names]


def _weights_path(options: Options, incbin: bool) -> str:
    """Returns where the compiler finds the weights: the arguments of `concat!`, or a path."""
    if options.from_environment:
        return 'env!("MODEL_WEIGHTS")'
    if incbin:
        return 'env!("CARGO_MANIFEST_DIR"), "/model/model_weights.bin"'
    return '"../model/model_weights.bin"'


class _PortView:
    """An input or output as the templates see it: with the expression of its length."""

    def __init__(self, port: PortText) -> None:
        self.field = port.field
        self.name = one_line(port.name).replace("`", "'")
        self.literal = string_literal(port.name)
        self.key = string_literal(port.key)
        self.type = port.type
        self.shape = port.shape
        self.dims = port.dims
        self.variant = _VARIANTS[port.type]
        self.nested = port.type
        for size in reversed(port.dims):
            self.nested = f"[{self.nested}; {size}]"
        # Without dimensions there is one element and nothing to nest.
        self.views = _VIEWS if port.dims else ()
        self.zero = port.zero
        self.sample = {"bool": "true", "f32": "0.5", "f64": "0.5"}.get(port.type, "1")
        self.fixed = port.fixed
        self.leading = port.leading
        self.elements = port.elements
        if port.fixed:
            self.length = str(port.elements)
        else:
            self.length = "batch" if port.elements == 1 else f"batch * {port.elements}"


class _Dynamic:
    """An input whose length depends on the batch."""

    def __init__(self, port: PortText) -> None:
        self.field = port.field
        self.elements = port.elements
        self.zero = port.zero


def _slot(slot: Any) -> dict[str, object]:
    place = slot.place
    make = "fixed" if place.fixed else "new"
    return {
        "name": slot.name,
        "doc": slot.doc,
        "type": rust_type(place.dtype),
        "make": f"{make}({place.at}, {place.elements})",
    }


def _names(use: str, text: str) -> bool:
    """Returns whether a text names what an import brings."""
    return re.search(rf"\b{use.rpartition('::')[2]}\b", text) is not None


def _grouped(paths: list[str]) -> list[str]:
    """Returns imports with one line per module."""
    modules: dict[str, set[str]] = {}
    for path in paths:
        module, _, name = path.rpartition("::")
        modules.setdefault(module, set()).add(name)
    lines = []
    for module, names in modules.items():
        if module == "crate":
            lines += [f"crate::{name}" for name in names]
        elif len(names) == 1:
            lines.append(f"{module}::{names.pop()}")
        else:
            lines.append(f"{module}::{{{', '.join(sorted(names))}}}")
    return sorted(lines)


def _parts(text: ModelText) -> list[_Part]:
    """Returns functions of some statements each, or none if one function does."""
    if len(text.lines) <= _PART:
        return []
    count = -(-len(text.lines) // _PART)
    size = -(-len(text.lines) // count)
    parts = []
    for i in range(count):
        lines: list[str] = [RustText(line) for line in text.lines[i * size : (i + 1) * size]]
        layers = re.findall(r"\bself\.(\w+)", "\n".join(lines))
        ends = f", `{layers[0]}` to `{layers[-1]}`" if layers else ""
        parts.append(_Part(f"part_{i + 1}", f"Part {i + 1} of {count}{ends}.", lines))
    return parts


def _groups(text: ModelText) -> list[_Group]:
    """Returns functions that make some layers each, or none if one function makes all."""
    groups: list[list[Any]] = [[]]
    made = 0
    for field in text.fields:
        count = field.value.count(")?")
        if made + count > _GROUP and groups[-1]:
            groups.append([])
            made = 0
        groups[-1].append(field)
        made += count
    if len(groups) == 1:
        return []
    return [_Group(f"layers_{i + 1}", fields) for i, fields in enumerate(groups)]


def _batch_lines(text: ModelText) -> list[str]:
    """Returns the body of the function that counts the examples."""
    lines = []
    dynamic = [p for p in text.inputs if not p.fixed]
    for port in dynamic[:1]:
        lines.append(
            f"let batch = examples({string_literal(port.name)}, self.{port.field}.len(), "
            f"{port.elements}, None)?;"
        )
    if not dynamic:
        lines.append("let batch = 1;")
    for port in [*dynamic[1:], *(p for p in text.inputs if p.fixed)]:
        count = "1" if port.fixed else "batch"
        lines.append(
            f"examples({string_literal(port.name)}, self.{port.field}.len(), "
            f"{port.elements}, Some({count}))?;"
        )
    return [*lines, "Ok(batch)"]


def _deliver_lines(text: ModelText, slice_of: str) -> list[str]:
    return [
        f"{'deliver_bools' if p.type == 'bool' else 'deliver'}({string_literal(p.name)}, "
        f"{p.source}, outputs.{p.field}{slice_of})?;"
        for p in text.outputs
    ]
