"""A model as an npm package: WebAssembly modules, and the JavaScript that loads and calls them."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from converters.tf.emit.model import ModelText
from converters.tf.emit.open_problems import sizes_advice
from converters.tf.emit.options import Options, WeightsMode
from converters.tf.emit.port_text import TEXT, WORD, WRITTEN, PortText
from converters.tf.web.compile import BUILDS, LINK_SHARED, THREADED, Compiler, compile_modules
from converters.tf.web.memory import imported_pages
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.names import KEYWORDS
from tools.codegen.render import environment, render
from tools.codegen.rust import c_comment, check_one_line, one_line

_TEMPLATES = Path(__file__).parent.parent / "templates" / "web"
_RUNTIME = ("common.js", "threads.js", "texts.js", "engine.js", "worker.js", "model.js")
"""The parts of `runtime.js`, which is one module: each may name what those before it define."""

_TEXTS = {
    "index.js": "index.js.j2",
    "index.cjs": "index.cjs.j2",
    "index.d.ts": "index.d.ts.j2",
    "worker.js": "worker.js.j2",
    "model.test.mjs": "model.test.mjs.j2",
    "package.json": "package.json.j2",
}
_RUST = {"rust/Cargo.toml": "Cargo.toml.j2", "rust/src/lib.rs": "lib.rs.j2"}
# The JavaScript array of each element type, and the type of one element.
_ARRAYS = {
    "bool": ("Uint8Array", "boolean"),
    "f32": ("Float32Array", "number"),
    "f64": ("Float64Array", "number"),
    "i8": ("Int8Array", "number"),
    "i16": ("Int16Array", "number"),
    "i32": ("Int32Array", "number"),
    "i64": ("BigInt64Array", "bigint"),
    "u8": ("Uint8Array", "number"),
    "u16": ("Uint16Array", "number"),
    "u32": ("Uint32Array", "number"),
    "u64": ("BigUint64Array", "bigint"),
    TEXT: ("string[]", "string"),
    WORD: ("string[]", "string"),
    WRITTEN: ("string[]", "string"),
}
# What the memory of the module holds where JavaScript may write any byte.
_MEMORY = {"bool": "u8", TEXT: "u8"}
_EXPORTS = "export { ModelError, define, serve };"


@dataclass(frozen=True)
class _Port:
    """An input or output as the templates see it."""

    index: int
    field: str
    property: str
    label: str
    type: str
    text: bool
    memory: str
    array: str
    number: str
    shape: str
    length: str

    @classmethod
    def of(cls, index: int, port: PortText) -> _Port:
        array, number = _ARRAYS[port.type]
        return cls(
            index=index,
            field=port.field,
            property=_property(port),
            label=c_comment(port.name),
            type=port.type,
            text=port.type in (TEXT, WORD, WRITTEN),
            memory=_MEMORY.get(port.type, port.type),
            array=array,
            number=number,
            shape=port.shape,
            length=str(port.elements) if port.fixed else f"batch.saturating_mul({port.elements})",
        )


def _property(port: PortText) -> str:
    """Returns the name in JavaScript: as in Rust, where keywords of Rust have a mark."""
    name = port.field
    return name[:-1] if name.endswith("_") and name[:-1] in KEYWORDS else name


def embeds(options: Options, weight_file_bytes: int) -> bool:
    """Returns whether the weights are inside of the module."""
    return options.weights_for(weight_file_bytes) is WeightsMode.EMBED


def rust_files(text: ModelText, options: Options) -> dict[str, bytes]:
    """Returns the crate that becomes the module, by path in the package's folder."""
    env = environment(_TEMPLATES, check_one_line)
    values = _values(text, options)
    return {path: render(env, name, values).encode() for path, name in _RUST.items()}


def web_files(
    text: ModelText,
    options: Options,
    files: Mapping[str, bytes],
    compiler: Compiler,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, bytes]:
    """Returns the files of the package, by path in the folder of a conversion.

    Args:
        text: The model as it was emitted.
        options: How its crate is.
        files: What the conversion writes, the crate in `rust_generated_code` among it.
        compiler: What makes the modules.
        progress: Called with what is done next.

    Raises:
        UsageError: rustc fails, or the model leaves dimensions open besides the batch.
    """
    if text.opened is not None:
        names = ", ".join([*text.opened.dims, *text.opened.counts])
        what = f"a package has fixed sizes, and the model leaves {names} open"
        advice = sizes_advice(text.opened.plan.graph)
        if text.opened.counts:
            advice = "end the model before the values say how large a result is"
        raise UsageError(Problem("--target=web", what, advice))
    prefix = "rust_generated_code/"
    crate = {p.removeprefix(prefix): c for p, c in files.items() if p.startswith(prefix)}
    wrapper = rust_files(text, options)["rust/src/lib.rs"]
    threads = options.web_threads
    modules = compile_modules(compiler, text.crate, crate, wrapper, threads, progress)
    package = package_files(text, options, modules, crate)
    return {f"web/{path}": content for path, content in package.items()}


def package_files(
    text: ModelText,
    options: Options,
    modules: Mapping[str, bytes],
    crate: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Returns all files of the package, by path in its folder.

    Args:
        text: The model as it was emitted.
        options: How its crate is.
        modules: The compiled modules by the names of their builds.
        crate: The files of the model's crate.
    """
    env = environment(_TEMPLATES, check_one_line)
    pages = [imported_pages(modules[build.name]) for build in THREADED if build.name in modules]
    values = {**_values(text, options), "pages": max(pages, default=0)}
    sizes_of = {build: len(content) for build, content in modules.items()}
    name = str(values["package"])
    binary = {
        f"{name}{build.suffix}.wasm": modules[build.name]
        for build in (*BUILDS, *THREADED)
        if build.name in modules
    }
    if not values["embed"]:
        binary[f"{name}.weights"] = crate["model/model_weights.bin"]
        sizes_of["weights"] = len(crate["model/model_weights.bin"])
    values["bytes"] = json.dumps(sizes_of)
    files = {path: render(env, template, values).encode() for path, template in _TEXTS.items()}
    runtime = "\n".join((_TEMPLATES / "runtime" / part).read_text("utf-8") for part in _RUNTIME)
    files["runtime.js"] = runtime.encode()
    files["runtime.cjs"] = _common(runtime).encode()
    # TypeScript takes a file with another name for one of a module that `require` can't load.
    files["index.d.cts"] = files["index.d.ts"]
    files["features.json"] = _features(text, crate["testdata/features.npz"], options.tolerance)
    sizes = [{"name": path, "bytes": len(content)} for path, content in binary.items()]
    script = sum(len(files[path]) for path in ("index.js", "runtime.js"))
    sizes.append({"name": "index.js and runtime.js", "bytes": script})
    files["README.md"] = render(env, "README.md.j2", {**values, "sizes": sizes}).encode()
    return dict(sorted((files | binary | rust_files(text, options)).items()))


def _values(text: ModelText, options: Options) -> dict[str, object]:
    description = {
        "type": text.type,
        "inputs": [_description(port) for port in text.inputs],
        "outputs": [_description(port) for port in text.outputs],
    }
    # Also of the weights, so that the files of two conversions are not mixed.
    identity = json.dumps([description, f"{text.weights.fingerprint:016x}"], sort_keys=True)
    number = zlib.crc32(identity.encode())
    return {
        "mark": f"@generated by tf2rust from {one_line(options.source)}. Do not edit.",
        "name": one_line(options.source).replace("`", "'"),
        "package": text.crate.replace("_", "-"),
        "crate": text.crate,
        "type": text.type,
        "inputs": [_Port.of(i, port) for i, port in enumerate(text.inputs)],
        "outputs": [_Port.of(i, port) for i, port in enumerate(text.outputs)],
        "interface": json.dumps({**description, "id": number}),
        "id": number,
        "embed": embeds(options, len(text.weights.content)),
        "threads": options.web_threads,
        "link_flags": " ".join(f"-C link-arg={flag}" for flag in LINK_SHARED),
    }


def _description(port: PortText) -> dict[str, object]:
    shape = [int(d) if d.isdecimal() else d for d in port.shape.strip("[]").split(", ") if d]
    return {
        "name": _property(port),
        "dtype": "str" if port.type in (TEXT, WORD, WRITTEN) else port.type,
        "shape": shape,
        "elements": port.elements,
        "fixed": port.fixed,
    }


def _common(runtime: str) -> str:
    """Returns the module as CommonJS."""
    names = _EXPORTS.removeprefix("export ").removesuffix(";")
    body = runtime.replace(_EXPORTS, f"module.exports = {names};")
    return f'"use strict";\n\n{body}'


def _features(text: ModelText, npz: bytes, tolerance: float) -> bytes:
    """Returns the recorded inputs and outputs as JSON: bytes in base64, and lists of texts."""
    with np.load(io.BytesIO(npz)) as arrays:
        ports = {
            role: {_property(port): _recorded(arrays[port.key]) for port in found}
            for role, found in (("inputs", text.inputs), ("outputs", text.outputs))
        }
    return json.dumps({"tolerance": tolerance, **ports}, indent=1).encode() + b"\n"


def _recorded(array: np.ndarray[Any, Any]) -> str | list[str]:
    if array.dtype.kind == "U":
        return [str(text) for text in array.ravel()]
    return base64.b64encode(array.tobytes()).decode()
