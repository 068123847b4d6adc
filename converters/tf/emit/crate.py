"""All files of a generated crate: path to content, in one mapping that the caller writes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf import ir
from converters.tf.emit.context import Field
from converters.tf.emit.first_values import first_values
from converters.tf.emit.model import ModelText, feature_keys, model_text
from converters.tf.emit.npz import npz_bytes
from converters.tf.emit.open_port import OpenPort
from converters.tf.emit.opened import Opened
from converters.tf.emit.options import Options, Profile, RuntimeMode, WeightsMode
from converters.tf.emit.packages import FOLDER, VENDORED, packages
from converters.tf.emit.port_text import PortText
from converters.tf.emit.ports import (
    Dynamic,
    PortView,
    batch_lines,
    deliver_lines,
    tensor_types,
    together,
)
from converters.tf.emit.shake import shaken
from converters.tf.emit.statements import Code, Kind, Name, code
from converters.tf.emit.unreached import (
    has_packed_products,
    with_helpers,
    with_packing,
    with_products,
    with_variants,
    without_unmade_variants,
    without_unreached,
)
from converters.tf.emit.vendor import read_sources, vendor
from converters.tf.emit.ways import with_std
from converters.tf.emit.weights import rust_type
from tools.codegen.names import Scope
from tools.codegen.render import environment, render
from tools.codegen.rust import check_one_line, code_span, one_line, string_literal
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
# The module with the operators of the user.
CUSTOM = "custom"
# What the skeleton of a model imports, whatever its layers are.
_SKELETON = (
    "bytes::filled",
    "engine::Engine",
    "engine::Workspace",
    "error::Error",
    "memory::Memory",
    "origin::Origin",
    "ports::Port",
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
# What it imports besides where dimensions are open, where one is computed of others, and what not.
_OPEN = frozenset(["shapes::Array", "shapes::Extent", "shapes::Open", "shapes::View"])
_OPEN_NO_STD = frozenset(["shapes::Extent", "shapes::Held", "shapes::Open", "shapes::View"])
_SUMS = frozenset(["shapes::Size", "shapes::agree"])
_NOT_OPEN = frozenset(["bytes::filled", "dtype::DType", "ports::examples"])
# What the wrapper of a web package calls for threads of its host.
_HELPERS = ("fail", "failed", "jobs", "serve", "set_waker")
# What the functions of blocks name.
_BLOCKS = frozenset(["error::Error", "memory::Memory"])


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
    fields: Sequence[Field]

    @property
    def w(self) -> bool:
        return _name(Kind.WEIGHTS, (f.value for f in self.fields))

    @property
    def p(self) -> bool:
        return _name(Kind.PARALLEL, (f.value for f in self.fields))


@dataclass(frozen=True)
class _Part:
    """A function with some of the statements."""

    name: str
    doc: str
    lines: Sequence[Code]
    timed: Sequence[Code]
    # Whether it reads what depends on open dimensions.
    s: bool

    @property
    def x(self) -> bool:
        return _name(Kind.INPUT, self.lines)

    @property
    def b(self) -> bool:
        return _name(Kind.BATCH, self.lines)

    @property
    def call(self) -> Code:
        return code(f"self.{self.name}({', '.join(self._arguments)})?;")

    @property
    def timed_call(self) -> Code:
        return code(f"self.{self.name}_timed({', '.join([*self._arguments, 'times'])})?;")

    @property
    def _arguments(self) -> list[str]:
        return [*(["x"] if self.x else []), *(["s"] if self.s else []), "m"]


def _name(kind: Kind, codes: Iterable[Code]) -> bool:
    """Returns whether one of the codes has a name of a kind."""
    return any(c.has(kind) for c in codes)


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
        options: What the crate must be like.
        features: Recorded inputs and outputs.
        rustfmt: The program that lays out the text; without one the text is not laid out.

    Raises:
        CodegenError: rustfmt refuses a text: a defect of the emitters.
    """
    env = environment(_TEMPLATES, _printed)
    values = _values(text, graph, options)
    templates = dict(_RUST_FILES if options.profile is Profile.STD else _RUST_FILES_NO_STD)
    if text.opened is not None:
        bare = options.profile is Profile.NO_STD
        templates |= _RUST_FILES_OPEN_NO_STD if bare else _RUST_FILES_OPEN
        values["recorded"] = _recorded(graph, features)
    if text.blocks:
        templates["src/blocks.rs"] = "blocks.rs.j2"
        if options.profile is Profile.STD:
            templates["src/blocks/profile.rs"] = "blocks_profile.rs.j2"
    if values["words"]:
        templates["src/words.rs"] = "words.rs.j2"
    rust = {path: render(env, template, values) for path, template in templates.items()}
    own = _own_modules(graph)
    if own:
        rust[f"src/{CUSTOM}/mod.rs"] = render(
            env, "custom.rs.j2", values | {"modules": sorted(own)}
        )
    rust["tests/npz/mod.rs"] = (_TEMPLATES / "npz.rs").read_text("utf-8")
    if rustfmt is not None:
        rust = format_rust(rust, rustfmt)
    if options.runtime is RuntimeMode.INCLUDE:
        for path, source in _runtime(values, text.plan.graph, rust.values(), options).items():
            rust[f"src/runtime/{path}"] = _formatted(source, rustfmt) if rustfmt else source
    elif options.runtime_place == VENDORED:
        rust |= packages()
    rust |= {f"src/{CUSTOM}/{module}.rs": text for module, text in own.items()}
    files = {path: content.encode() for path, content in rust.items()}
    files["Cargo.toml"] = render(env, "Cargo.toml.j2", values).encode()
    files["README.md"] = render(env, "README.md.j2", values).encode()
    files["model/model_weights.bin"] = text.weights.content
    if options.binary:
        files["model/thresholds.json"] = (options.thresholds or THRESHOLDS).encode()
    files["testdata/features.npz"] = npz_bytes(features_arrays(graph, features))
    return dict(sorted(files.items()))


def _printed(value: object) -> object:
    """Returns what a template prints, every line of code checked by itself."""
    if not isinstance(value, Code | Name):
        return check_one_line(value)
    text = str(value)
    for line in text.split("\n"):
        check_one_line(line)
    return text


@functools.cache
def _formatted(text: str, rustfmt: str) -> str:
    """Returns a file of the runtime, laid out; the same for all crates of a process."""
    return format_rust({"runtime.rs": text}, rustfmt)["runtime.rs"]


_RUST_FILES = {
    "src/lib.rs": "lib.rs.j2",
    "src/model.rs": "model.rs.j2",
    "src/model/profile.rs": "profile.rs.j2",
    "src/places.rs": "places.rs.j2",
    "src/weights.rs": "weights.rs.j2",
    "tests/golden.rs": "golden_test.rs.j2",
    "benches/benchmarks.rs": "benchmarks.rs.j2",
}

# What is different where dimensions besides the batch are open.
_RUST_FILES_OPEN = {
    "src/model.rs": "model_open.rs.j2",
    "src/places.rs": "places_open.rs.j2",
    "tests/golden.rs": "golden_test_open.rs.j2",
    "benches/benchmarks.rs": "benchmarks_open.rs.j2",
}

# The same of crates without std.
_RUST_FILES_OPEN_NO_STD = {
    "src/model.rs": "model_open_no_std.rs.j2",
    "src/places.rs": "places_open.rs.j2",
    "tests/golden.rs": "golden_test_open_no_std.rs.j2",
}

_RUST_FILES_NO_STD = {
    "src/lib.rs": "lib.rs.j2",
    "src/model.rs": "model_no_std.rs.j2",
    "src/places.rs": "places.rs.j2",
    "src/weights.rs": "weights.rs.j2",
    "tests/golden.rs": "golden_test_no_std.rs.j2",
}


def _own_modules(graph: ir.Graph) -> dict[str, str]:
    """Returns the Rust modules of the user's operators, by name."""
    ops = [node.op for node in graph.all_nodes()]
    return {op.own.module: op.own.source for op in ops if isinstance(op, ir.Custom)}


def features_arrays(graph: ir.Graph, features: Features) -> dict[str, ir.Array]:
    """Returns the arrays of `features.npz` by name, in the types of the graph."""
    input_keys, output_keys = feature_keys(graph)
    arrays: dict[str, ir.Array] = {}
    for port in graph.inputs:
        data = np.asarray(features.inputs[port.name])
        # A file without pickled objects has text in NumPy's own type.
        text = port.value.dtype is ir.DType.STR
        arrays[input_keys[port.name]] = data.astype(str if text else port.value.dtype.numpy)
    for port in graph.outputs:
        data, kind = np.asarray(features.outputs[port.name]), port.value.dtype.numpy
        arrays[output_keys[port.name]] = data.astype(str if port.dtype is ir.DType.STR else kind)
    return arrays


def _recorded(graph: ir.Graph, features: Features) -> dict[str, str]:
    """Returns the shapes of the recorded arrays, as Rust has them, by literal of the name."""
    arrays = features_arrays(graph, features)
    return {string_literal(name): str(list(data.shape)) for name, data in arrays.items()}


def _runtime(
    values: Mapping[str, Any], graph: ir.Graph, users: Iterable[str], options: Options
) -> dict[str, str]:
    """Returns the files of the runtime that the model needs, for sources that use them."""
    users = tuple(users)
    uses = set(values["uses"]) | {"weights::Tensor", "memory::Slot", "bytes::Aligned"}
    uses |= set() if values["std"] else {"once::Once"}
    std, packs = bool(values["std"]), options.packs
    kernels = without_unreached(read_sources(_REPOSITORY / "kernels/src"), graph, std, packs)
    runtime = read_sources(_REPOSITORY / "converters/runtime/src")
    runtime = with_packing(with_helpers(runtime, options.web_threads), packs)
    files = vendor(_chosen(runtime, std), _chosen(kernels, std), uses)
    public = {name for names in values["public"].values() for name in names}
    files = with_products(files, graph, packed=packs and has_packed_products(files))
    # What is left out may have been all that named something else.
    fewer = without_unmade_variants(files)
    while True:
        files = shaken(fewer, users, public)
        fewer = without_unmade_variants(files)
        if fewer == files:
            return with_variants(files)


def _chosen(files: Mapping[str, str], std: bool) -> dict[str, str]:
    """Returns sources for a crate with or without std.

    A crate needs std or has none of it: a feature to choose would end in one that can't compile.
    """
    value = str(std).lower()
    return {path: with_std(text.replace('feature = "std"', value)) for path, text in files.items()}


def _values(text: ModelText, graph: ir.Graph, options: Options) -> dict[str, Any]:
    """Returns everything that the templates name."""
    std = options.profile is Profile.STD
    linked = options.runtime is RuntimeMode.CRATE
    deliver = deliver_lines(text, "" if std else ".as_mut_slice()")
    return {
        "mark": f"@generated by tf2rust from {one_line(options.source)}. Do not edit.",
        "name": one_line(graph.name).replace("`", "'"),
        "m": _model_values(text, deliver),
        "std": std,
        "custom": bool(_own_modules(graph)),
        "public": _public(std, text, options.web_threads),
        "open": text.opened and text.opened.view(),
        # What nothing is borrowed for has no lifetime.
        "inputs_type": "Inputs<'_>" if text.inputs else "Inputs",
        "words": [_view(p, text.opened) for p in text.outputs if p.lists],
        "facts": [tuple(map(string_literal, fact)) for fact in options.facts],
        "linked": linked,
        "vendor": FOLDER if linked and options.runtime_place == VENDORED else "",
        "runtime_place": options.runtime_place.toml(),
        "depends": _depends(options),
        "embedded": options.embedded is not None,
        "embedded_place": options.embedded.toml() if options.embedded else "",
        "arena": text.plan.arena_bytes,
        "macs": text.plan.macs,
        "layers": len(text.fields) + sum(len(u.fields) - 1 for b in text.blocks for u in b.uses),
        "place_weights": any(r.kind is Kind.TENSOR for b in text.blocks for r in b.roles),
        "deliver_lines": deliver,
        "tolerance": repr(options.tolerance),
        **_import_values(text, std, deliver),
        **_weight_values(text, options),
        **_state_values(text, options),
        **({} if text.opened else _port_values(text)),
    }


def _model_values(text: ModelText, deliver: Sequence[Code]) -> dict[str, Any]:
    """Returns what the templates name of the model's struct."""
    opened = text.opened
    parts = _parts(text)
    calls = [part.call for part in parts] or text.lines
    made = _Group("build", text.fields)
    return {
        "crate": text.crate,
        "type": text.type,
        "inputs": [_view(p, opened) for p in text.inputs],
        "outputs": [_view(p, opened) for p in text.outputs],
        "fields": text.fields,
        "slots": [] if opened else [_slot(s) for s in text.slots],
        "binary": text.binary,
        "needs_w": made.w,
        "needs_p": made.p,
        "uses_batch": _name(Kind.BATCH, calls),
        "uses_memory": bool(calls) or _name(Kind.MEMORY, deliver),
        "calls": calls,
        "timed_calls": [part.timed_call for part in parts] or text.timed,
        "parts": parts,
        "groups": _groups(text),
        "blocks": text.blocks,
    }


def _view(port: PortText, opened: Opened | None) -> PortView | OpenPort:
    return PortView(port) if opened is None else OpenPort(port, opened)


def _import_values(text: ModelText, std: bool, deliver: Sequence[Code]) -> dict[str, Any]:
    """Returns the imports of the modules, and all paths of the runtime that the crate uses."""
    skeleton = set(_SKELETON if std else _SKELETON_NO_STD)
    if not text.inputs:
        skeleton.discard("ports::examples")
    if text.weights.has_records:
        skeleton.add("stored::expanded")
    if _name(Kind.WEIGHTS, (f.value for f in text.fields)):
        skeleton.add("origin::Origin")
    if _name(Kind.PARALLEL, (f.value for f in text.fields)):
        skeleton.add("kernels::base::parallel::Serial")
    if text.binary:
        skeleton |= {"confidence::BinaryModelResult", "confidence::Thresholds"}
    if text.opened is not None:
        skeleton = (skeleton | (_OPEN if std else _OPEN_NO_STD)) - _NOT_OPEN
        if text.opened.sums:
            skeleton |= _SUMS
        readings = [code for p in text.inputs for _, code, _ in text.opened.longest(p)]
        if readings:
            skeleton = skeleton.union({"text::longest"}, *(c.uses for c in readings))
    codes = [*text.lines, *(f.value for f in text.fields), *deliver]
    imports = ["crate::places::Places" if text.opened else "crate::places::*", "crate::weights"]
    imports += [f"crate::blocks::{b.type}" for b in text.blocks]
    imports += ["crate::words"] if any(p.lists for p in text.outputs) else []
    imports += _of_runtime(skeleton.union(*(c.uses for c in codes)))
    return {
        "uses": sorted(skeleton.union(text.uses, text.needs, *(c.uses for c in deliver))),
        "imports": _grouped(imports),
        "block_imports": _grouped(_of_runtime(_BLOCKS.union(*(b.imports for b in text.blocks)))),
    }


def _weight_values(text: ModelText, options: Options) -> dict[str, Any]:
    """Returns what the templates name of the weights."""
    weights = text.weights
    tensors = weights.tensors.values()
    embed = options.weights_for(len(weights.content)) is WeightsMode.EMBED
    incbin = len(weights.content) >= _INCBIN
    own = '"../model/thresholds.json"'
    return {
        "embed": embed,
        "incbin": incbin,
        "path": _weights_path(options, incbin),
        "thresholds_path": 'env!("MODEL_THRESHOLDS")' if options.from_environment else own,
        "symbol": f"{text.crate}_weights_{weights.fingerprint:016x}",
        "len": len(weights.content),
        "has_records": weights.has_records,
        "plain": weights.plain,
        "size": weights.size,
        "kept": weights.kept,
        "largest": weights.largest,
        "fingerprint": f"0x{weights.fingerprint:016x}",
        "tensors": [
            {
                "name": t.name,
                "type": rust_type(t.value.dtype),
                "at": t.at,
                "elements": t.elements,
                "label": code_span(t.value.name or "constant"),
                "shape": ir.shape_text(t.value.shape),
            }
            for t in tensors
        ],
        "weight_bytes": sum(t.value.data.nbytes for t in tensors if t.value.data is not None),
        "constructor": "new()" if embed else 'from_file("model/model_weights.bin")',
    }


def _state_values(text: ModelText, options: Options) -> dict[str, Any]:
    """Returns what the templates name of what steps carry on."""
    if not options.states:
        return {"states": []}
    inputs = {port.name: _view(port, text.opened) for port in text.inputs}
    outputs = {port.name: _view(port, text.opened) for port in text.outputs}
    return {
        "states": [
            {
                "given": inputs.pop(a),
                "next": outputs.pop(b),
                "first": first_values(options.first.get(a)),
            }
            for a, b in options.states
        ],
        "next_field": Scope(port.field for port in text.inputs).unique("next"),
        "has_first": bool(options.first),
        "step_inputs": list(inputs.values()),
        "step_outputs": list(outputs.values()),
    }


def _port_values(text: ModelText) -> dict[str, Any]:
    """Returns what the templates name of inputs and outputs."""
    ports = [*text.inputs, *text.outputs]
    taken = {text.type, *(use.rpartition("::")[2] for use in text.uses)}
    taken |= {block.type for block in text.blocks}
    # `X` is how both a tensor and its place may be written.
    taken |= {slot.name for slot in text.slots}
    taken |= {"Next", "State", "StepInputs", "StepOutputs"}
    types = tensor_types(ports, taken)
    dynamic = [Dynamic(p) for p in text.inputs if not p.fixed]
    return {
        "batch_lines": batch_lines(text),
        "any_batch": all(p.fixed for p in text.outputs),
        "array_result": f"Vec<{text.outputs[0].type}>" if len(text.outputs) == 1 else "Outputs",
        "input_names": ", ".join(p.field for p in text.inputs),
        "tensors_of": list(zip(map(PortView, ports), types, strict=True)),
        "input_types": types[: len(text.inputs)],
        "output_types": types[len(text.inputs) :],
        "type_of": dict(zip((p.field for p in ports), types, strict=True)),
        "all_inputs": together(types[: len(text.inputs)]),
        "all_outputs": together(types[len(text.inputs) :]),
        "dynamic": dynamic[0] if dynamic else None,
        "stacked": all(p.leading for p in ports),
        "batches": "1, 10" if dynamic else "1",
    }


def _depends(options: Options) -> str:
    """Returns the sentence about the crate's dependencies."""
    names = ["`tfp-embedded`"] if options.embedded is not None else []
    vendored = f", which is in its folder `{FOLDER}`" if options.runtime_place == VENDORED else ""
    names += [f"`tfp-runtime`{vendored}"] if options.runtime is RuntimeMode.CRATE else []
    if not names:
        return "It has no dependency."
    return f"It depends on the crate{'s' if len(names) > 1 else ''} {' and '.join(names)}."


def _public(std: bool, text: ModelText, helped: bool) -> dict[str, Sequence[str]]:
    """Returns the types of the runtime that users of the crate see, by module."""
    public: dict[str, Sequence[str]] = {"error": ["Error"]}
    opened = text.opened is not None
    if opened:
        public["error"] = ["Error", "Wanted"]
        public["shapes"] = ["Array" if std else "Held", "View"]
    if not std:
        return public if opened else {"dtype": ["DType"], **public}
    if helped:
        public["kernels::base::helpers"] = list(_HELPERS)
    if text.binary is not None:
        public["confidence"] = ["BinaryModelResult", "Confidence", "ScanPrediction", "Thresholds"]
    return {"engine": ["Workspace"], **public, "ports": ["Port"]}


def _weights_path(options: Options, incbin: bool) -> str:
    """Returns where the compiler finds the weights: the arguments of `concat!`, or a path."""
    if options.from_environment:
        return 'env!("MODEL_WEIGHTS")'
    if incbin:
        return 'env!("CARGO_MANIFEST_DIR"), "/model/model_weights.bin"'
    return '"../model/model_weights.bin"'


def _slot(slot: Any) -> dict[str, object]:
    place = slot.place
    make = "fixed" if place.fixed else "new"
    return {
        "name": slot.name,
        "doc": slot.doc,
        "type": rust_type(place.dtype),
        "make": f"{make}({place.at}, {place.elements})",
    }


def _of_runtime(uses: Iterable[str]) -> list[str]:
    return [f"crate::runtime::{use}" for use in uses]


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
        lines, timed = (part[i * size : (i + 1) * size] for part in (text.lines, text.timed))
        layers = [name.name for line in lines for name in line.names(Kind.FIELD)]
        ends = f", `{layers[0]}` to `{layers[-1]}`" if layers else ""
        parts.append(
            _Part(
                f"part_{i + 1}",
                f"Part {i + 1} of {count}{ends}.",
                lines,
                timed,
                text.opened is not None,
            )
        )
    return parts


def _groups(text: ModelText) -> list[_Group]:
    """Returns functions that make some layers each, or none if one function makes all."""
    groups: list[list[Field]] = [[]]
    made = 0
    for field in text.fields:
        if made + field.made > _GROUP and groups[-1]:
            groups.append([])
            made = 0
        groups[-1].append(field)
        made += field.made
    if len(groups) == 1:
        return []
    return [_Group(f"layers_{i + 1}", fields) for i, fields in enumerate(groups)]
