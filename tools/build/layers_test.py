"""Which folder may name which, so that layers don't tangle.

A room is a folder or a file; a file belongs to the room with the longest path. A table has for
each room those that it may name, and it is exact: an arrow that is not in it fails, and so does
one that nothing needs any more. `EXCEPTIONS` are arrows of single files that a table leaves out,
`CIRCLES` are files that name each other; both give their reasons.
"""

import functools
import os
import pathlib
from collections.abc import Mapping

from tools.build import layers

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()

Table = Mapping[str, str]

KERNELS: Table = {
    "base": "",
    "simd": "base",
    "math": "simd",
    "frame": "base math simd",
    "gemm": "base frame simd",
    "conv": "base gemm simd",
    "quantized": "base conv gemm simd",
    "text": "base",
    "ops": "base",
    "ops/conv": "base conv gemm ops/matrix",
    "ops/elementwise": "base frame gemm math simd",
    "ops/image": "base conv math simd",
    "ops/matrix": "base conv frame gemm math ops/elementwise simd",
    "ops/moving": "base frame simd",
    "ops/narrow": (
        "base gemm ops/conv ops/elementwise ops/image ops/matrix ops/moving ops/norm ops/random"
        " ops/reduction ops/sequence simd"
    ),
    "ops/norm": "base conv frame math ops/matrix ops/moving simd",
    "ops/random": "base math simd",
    "ops/reduction": "base frame ops/elementwise simd",
    "ops/sequence": "base conv frame gemm ops/elementwise simd",
}

GPU: Table = {
    "problem": "",
    "shader": "",
    "work": "shader",
    "request": "work",
    "vulkan": "problem shader work",
    "ops": "request shader vulkan work",
    "cost": "ops problem shader vulkan work",
}

CORE: Table = {
    "base": "",
    "tensor": "base",
    "attr": "base tensor",
    "call": "attr base tensor",
    "graph": "attr base call tensor",
    "eager": "attr base call graph tensor",
    "host": "base call graph tensor",
    "session": "attr base graph tensor",
}

CLIENT: Table = {
    "context": "",
    "function": "context",
    "variable": "context",
    "sparse": "context",
    "ragged": "context sparse",
    "tensor_list": "context",
    "table": "context",
    "random": "context variable",
    "room": "",
    "files": "room",
    "gradient": "",
    "gradient/rule": "context",
    "gradient/shapes": "context",
    "gradient/slices": "context",
    "gradient/einsum": "context gradient/rule gradient/shapes",
    "gradient/rules": "context gradient/einsum gradient/rule gradient/shapes",
    "gradient/registry": "context gradient/rule gradient/rules",
    "gradient/swish": "context gradient/rule",
    "gradient/engine": "context gradient/registry gradient/rule gradient/slices gradient/swish",
    "gradient/graph": "context gradient/engine",
    "gradient/calls": "context function gradient/engine gradient/graph gradient/rule",
    "gradient/of_graph": "context gradient/calls gradient/engine gradient/graph",
    "gradient/of_tape": "context gradient/calls gradient/engine",
    "gradient/jacobian": "context gradient/engine gradient/of_graph",
    "gradient/custom": "context gradient/engine gradient/registry gradient/rule",
    "control_flow": "context function gradient/calls",
    "checkpoint": "files variable",
    "distribute/cluster": "",
    "distribute/config": "distribute/cluster formats",
    "distribute/meeting": "distribute/cluster distribute/config",
    "distribute/packs": "",
    "distribute/workers": (
        "distribute/cluster distribute/config distribute/meeting distribute/packs context"
    ),
    "distribute": (
        "distribute/cluster distribute/config distribute/meeting distribute/workers nn/optimizer"
        " nn/training variable"
    ),
    "saved_model": "checkpoint context files function gradient/registry table variable",
    "formats": "room",
    "data": "checkpoint context files function",
    "weights": ("checkpoint files formats nn nn/optimizer nn/training room saved_model variable"),
    "nn": "data",
    "nn/activation": "",
    "nn/constraint": "context",
    "nn/initializer": "context",
    "nn/policy": "context",
    "nn/loss": "nn/policy",
    "nn/metric": "nn/loss nn/policy",
    "nn/criterion": "context nn/loss nn/metric nn/policy",
    "nn/regularizer": "context",
    "nn/weights": (
        "checkpoint context nn/constraint nn/initializer nn/policy nn/regularizer variable"
    ),
    "nn/functional": "nn/activation",
    "nn/layer": (
        "context control_flow formats nn/activation nn/constraint nn/functional nn/initializer"
        " nn/policy nn/regularizer nn/weights saved_model variable"
    ),
    "nn/optimizer": "context formats nn/initializer nn/policy variable",
    "nn/training": (
        "distribute/packs distribute/workers checkpoint context files function"
        " gradient/of_graph nn/criterion"
        " nn/layer nn/loss nn/metric nn/optimizer nn/policy room saved_model variable"
    ),
    "nn/dataset": "data nn/training",
    "nn/keras": (
        "files formats nn/activation nn/constraint nn/functional nn/initializer nn/layer nn/loss"
        " nn/metric nn/optimizer nn/policy nn/regularizer nn/training nn/weights variable"
    ),
}

TF2RUST: Table = {
    "errors": "tools/codegen",
    "ir": "",
    "passes": "ir",
    "plan": "ir passes",
    "lower": "ir tools/codegen",
    "lower/ops": "ir lower",
    "lower/convert": "ir lower lower/ops passes",
    "load": "errors ir lower tools/codegen",
    "load/saved_model": "errors ir load lower tools/codegen",
    "load/keras": "ir load load/saved_model lower tools/codegen",
    "load/onnx": "errors ir load load/saved_model lower lower/ops tools/codegen",
    "load/tflite": "errors ir load load/saved_model lower tools/codegen",
    "load/model": (
        "errors ir load load/keras load/onnx load/saved_model load/tflite lower tools/codegen"
    ),
    "emit": "ir passes plan tools/codegen",
    "describe": "emit errors ir lower tools/codegen",
    "tf2rust": "describe emit errors ir load/model lower lower/convert passes plan tools/codegen",
    "web": "emit tools/codegen",
    "cli": "emit errors ir load load/model plan tf2rust tools/codegen web",
}

MLF2RUST: Table = {
    "errors": "tools/codegen",
    "parse": "errors tools/codegen",
    "": "errors parse tools/codegen",
}

TOKENIZER: Table = {
    "errors": "tools/codegen",
    "model": "",
    "unicode": "",
    "load": "errors model tools/codegen",
    "emit": "model tools/codegen unicode",
    "convert": "emit errors load model tools/codegen",
    "": "convert emit model tools/codegen",
}

TOOLS: Table = {
    "build": "",
    "codegen": "",
    "ffigen": "tools/codegen",
    "ide": "",
    "opgen": "tools/codegen",
    "package": "",
    "provision": "",
    "quickstart": "",
    "workspace": "",
}

CONVERTERS: Table = {"package": "tools/package"}

WIRE: Table = {
    "error": "",
    "varint": "",
    "reader": "error varint",
    "writer": "varint",
    "data_type": "",
    "type_set": "data_type",
}

DERIVE: Table = {"parse": "", "emit": "parse"}

RUST: Mapping[str, Table] = {
    "bindings/client/src": CLIENT,
    "bindings/core/src": CORE,
    "bindings/derive/src": DERIVE,
    "bindings/wire/src": WIRE,
    "gpu/src": GPU,
    "kernels/src": KERNELS,
}

PYTHON: Mapping[str, Table] = {
    "converters": CONVERTERS,
    "converters/mlf": MLF2RUST,
    "converters/tf": TF2RUST,
    "converters/tokenizer": TOKENIZER,
    "tools": TOOLS,
}

_BYTES = "the bytes of numbers: only simd has `unsafe`"
_FAMILY = "types of one family, a file for each"

EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("kernels/src/base/chunks.rs", "kernels/src/simd"): "disjoint slices: only simd has `unsafe`",
    ("kernels/src/base/def.rs", "kernels/src/simd"): _BYTES,
    ("kernels/src/base/half.rs", "kernels/src/simd"): (
        "loops that simd compiles for each instruction set"
    ),
    ("kernels/src/base/narrow.rs", "kernels/src/simd"): _BYTES,
    ("kernels/src/base/narrow/blocks.rs", "kernels/src/simd"): _BYTES,
    ("kernels/src/base/scratch.rs", "kernels/src/simd"): _BYTES,
    ("kernels/src/ops/elementwise/scale_shift.rs", "kernels/src/ops/matrix"): (
        "reads the attribute of the fused op that it belongs to as a fused matmul does"
    ),
    ("kernels/src/simd/one.rs", "kernels/src/math"): (
        "a square root without std is computed as math does it"
    ),
}

CIRCLES: Mapping[str, str] = {
    # The file with which a circle begins, in the order of the alphabet.
    "bindings/client/src/context/any.rs": (
        "a context is one of four kinds: two hold a context around them, a tape holds records, and"
        " the gradient of a record is computed in a context"
    ),
    "bindings/client/src/saved_model/write.rs": "a writer, and the parts that read its lists",
    "bindings/core/src/eager/context.rs": "one object: a context, its handles and executors",
    "bindings/core/src/session.rs": "a run of a session is made by a method of the session",
    "gpu/src/vulkan/device.rs": "a device and its parts: memory, pipelines, submissions",
    "kernels/src/base/error.rs": "an error holds shapes, a shape returns errors",
    "kernels/src/base/threads.rs": "a pool and the places of its workers",
    "kernels/src/conv/backward_input.rs": (
        "a convolution tries its direct form, which falls back on the general one"
    ),
    "kernels/src/conv/winograd/form.rs": "tiles, their forms and the grid that they make",
    "kernels/src/frame/rows.rs": _FAMILY,
    "kernels/src/gemm/block.rs": _FAMILY,
    "kernels/src/gemm/block/apart.rs": "columns that are computed apart, and their columns",
    "kernels/src/math/single.rs": "a function and its table",
    "kernels/src/ops/sequence/recurrent.rs": _FAMILY,
}


def texts(root: str, suffix: str) -> dict[str, str]:
    found = {
        str(path.relative_to(TREE)): path.read_text()
        for path in sorted((TREE / root).rglob(f"*{suffix}"))
    }
    assert found, f"no {suffix} below {TREE / root}"
    return found


@functools.cache
def arrows() -> layers.Arrows:
    every: layers.Arrows = {}
    for root in RUST:
        every |= layers.rust_arrows(texts(root, ".rs"))
    python: dict[str, str] = {}
    for root in PYTHON:
        python |= texts(root, ".py")
    return every | layers.python_arrows(python)


def rooms() -> dict[str, set[str]]:
    """The tables as one, by paths from the root of the repository."""
    trees = {**RUST, **PYTHON}
    joined: dict[str, set[str]] = {}
    for root, table in trees.items():
        for room, allowed in table.items():
            joined[f"{root}/{room}".rstrip("/")] = {
                name if name.startswith("tools/") else f"{root}/{name}" for name in allowed.split()
            }
    return joined


def room_of(path: str, names: Mapping[str, object]) -> str:
    file = pathlib.PurePath(path)
    for candidate in (file.with_suffix(""), *file.parents):
        if str(candidate) in names:
            return str(candidate)
    return ""


def test_every_file_is_in_a_room() -> None:
    table = rooms()
    lost = [
        path for path in arrows() if not room_of(path, table) and not path.endswith("__init__.py")
    ]
    assert not lost, f"give these files a row in {__file__}: {lost}"


def test_rooms_name_only_what_their_rows_allow() -> None:
    table = rooms()
    wrong = []
    for path, targets in arrows().items():
        own = room_of(path, table)
        for target in targets:
            room = room_of(target, table)
            allowed = room in {own, *table.get(own, ())} or (path, room) in EXCEPTIONS
            if not allowed:
                wrong.append(f"{path} names {target}: {own} stands on {sorted(table.get(own, ()))}")
    assert not wrong, "\n".join(wrong)


def test_rows_allow_only_what_rooms_need() -> None:
    table = rooms()
    found = {
        (name, room_of(target, table))
        for path, targets in arrows().items()
        for target in targets
        for name in (path, room_of(path, table))
    }
    idle = [
        f"{room} -> {name}"
        for room, names in table.items()
        for name in names
        if (room, name) not in found
    ]
    idle += [f"{path} -> {room}" for path, room in EXCEPTIONS if (path, room) not in found]
    assert not idle, f"nothing needs these arrows any more: {idle}"


def test_rooms_form_no_circle() -> None:
    assert layers.circles(rooms()) == []


def test_files_form_only_the_circles_that_have_a_reason() -> None:
    found = {circle[0]: circle for circle in layers.circles(arrows())}
    new = [circle for first, circle in found.items() if first not in CIRCLES]
    assert not new, f"these files name each other: {new}"
    assert not set(CIRCLES) - set(found), "these circles are gone"


def test_rust_is_read_as_the_compiler_reads_it() -> None:
    files = {
        "src/lib.rs": "mod a; mod b; mod c; #[cfg(test)] mod t; pub use a::{Made, inner::Deep};",
        "src/a.rs": "mod inner; use crate::{b::Other as O, c}; // crate::c\npub struct Made;",
        "src/a/inner.rs": 'use super::O; pub struct Deep; const X: &str = "crate::c";',
        "src/b.rs": "#[cfg(test)]\nmod t { use crate::c; }\npub struct Other(crate::Made);",
        "src/c.rs": "fn f() { crate::Deep; std::mem::take(x) }",
        "src/t.rs": "use crate::a;",
    }
    assert layers.rust_arrows(files) == {
        "src/a.rs": {"src/b.rs", "src/c.rs"},
        "src/a/inner.rs": {"src/b.rs"},
        "src/b.rs": {"src/a.rs"},
        "src/c.rs": {"src/a/inner.rs"},
    }


def test_python_is_read_wherever_it_imports() -> None:
    files = {
        "p/__init__.py": "",
        "p/a.py": "from p import b\nfrom p.c import Name\nimport json",
        "p/b.py": "def f():\n    import p.c",
        "p/c.py": "",
        "p/c_test.py": "import p.a",
    }
    assert layers.python_arrows(files) == {
        "p/__init__.py": set(),
        "p/a.py": {"p/b.py", "p/c.py"},
        "p/b.py": {"p/c.py"},
        "p/c.py": set(),
    }


def test_circles_are_found() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": [], "e": ["e"]}
    assert layers.circles(graph) == [["a", "b", "c"]]
