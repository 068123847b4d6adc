"""The text of generated crates."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from converters.tf import ir
from converters.tf.emit.crate import emit_crate
from converters.tf.emit.names import snake
from converters.tf.emit.options import (
    Options,
    Profile,
    RuntimeMode,
    WeightsMode,
)
from converters.tf.emit.packages import VENDORED
from converters.tf.emit.vendor import strip
from converters.tf.ir.ops import conv, tiles
from converters.tf.passes import chains
from converters.tf.plan.arena import Step, plan_memory
from converters.tf.tests.crates import graphs, more_graphs
from converters.tf.tests.crates.crates import emitted, recorded, rustfmt
from converters.tf.tests.crates.golden_files import GOLDENS, difference
from tools.codegen.cargo import CratePlace
from tools.codegen.conversion import UsageError

MORE = (more_graphs.written, more_graphs.each, more_graphs.systems, more_graphs.sizes)


@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    assert difference(name) == ""


def test_the_same_graph_gives_the_same_bytes() -> None:
    options = Options("layout", "graphs.py")
    assert emitted(graphs.layout(), options) == emitted(graphs.layout(), options)


def test_text_is_laid_out_as_rustfmt_does() -> None:
    """What is copied is laid out too, after paths have become longer."""
    files = emitted(graphs.mlp(), Options("mlp", "graphs.py"))
    text = {p: c.decode() for p, c in files.items() if p.endswith(".rs")}
    from tools.codegen.rustfmt import format_rust

    changed = {p for p, c in format_rust(text, rustfmt()).items() if c != text[p]}
    assert changed == set()


def test_names_may_be_anything() -> None:
    for name in ("self", "fn", "9 lives", "../../etc", 'a"b\n', "日本", "Dense", "std", ""):
        graph = graphs.mlp()
        port = ir.Port(name, graph.inputs[0].value)
        graph = ir.Graph(name, (port,), graph.outputs, graph.nodes)
        files = emit_crate(
            graph, Options(name or "x", name, runtime=RuntimeMode.CRATE), recorded(graph), rustfmt()
        )
        assert re.search(r'^name = "[a-z_0-9]+"$', files["Cargo.toml"].decode(), re.MULTILINE)
        assert all(".." not in path for path in files)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "gemma3_backbone_decoder_block_0_attention_query_norm",
            "backbone_decoder_block_0_attention_query_norm",
        ),
        ("abc_" + "x" * 43 + "_norm", "x" * 43 + "_norm"),
        ("abc_" + "x" * 44 + "_norm", "norm"),
        ("block_" + "x" * 60, "x" * 48),
        (
            "Gemma3Backbone/DecoderBlock1/attention/pre_attention_norm/scale",
            "block1_attention_pre_attention_norm_scale",
        ),
    ],
)
def test_long_names_lose_whole_words(name: str, short: str) -> None:
    assert snake(name, "default") == short


def test_the_scratch_of_tiles_is_planned_with_the_numbers_of_the_kernels() -> None:
    files = emitted(graphs.tiled(), Options("tiled", "graphs.py"))
    names = ("conv/winograd.rs", "winograd/grid.rs", "winograd/tiles.rs")
    texts = (c.decode() for p, c in files.items() if p.endswith(names))
    declared = re.compile(
        r"^(?:pub(?:\(super\))? )?const ([A-Z_]+): usize = ([^;]+);", re.MULTILINE
    )
    found = dict(pair for text in texts for pair in declared.findall(text))
    planned = {name: n for name, n in vars(tiles).items() if name.isupper() and isinstance(n, int)}
    assert {name: _number(found[name]) for name in planned} == planned


def test_the_scratch_of_chains_is_planned_with_the_numbers_of_the_kernels() -> None:
    files = emitted(graphs.chained(), Options("chained", "graphs.py"))
    (text,) = (c.decode() for p, c in files.items() if p.endswith("conv/chain.rs"))
    found = dict(re.findall(r"^(?:pub )?const ([A-Z_]+): usize = ([^;]+);", text, re.MULTILINE))
    planned = {n: getattr(conv, f"CHAIN_{n}") for n in ("NEAR", "TASKS", "LEAST_LINES", "LINE")}
    planned["MAX_LINKS"] = chains.MAX_LINKS
    assert {name: _number(found[name]) for name in planned} == planned


def test_pairs_are_planned_with_the_numbers_of_the_kernels() -> None:
    files = emitted(graphs.paired(), Options("paired", "graphs.py"))
    (text,) = (c.decode() for p, c in files.items() if p.endswith("thin/pair.rs"))
    (far,) = re.findall(r"^const FAR: usize = ([^;]+);", text, re.MULTILINE)
    assert _number(far) == chains.FAR_WEIGHTS
    assert files["src/model.rs"].decode().count(".run_then(m, ") == 2


def _number(text: str) -> int:
    """Returns the value of a product or of a power of two."""
    shifted = re.fullmatch(r"1 << (\d+)", text)
    return 1 << int(shifted[1]) if shifted else math.prod(map(int, text.split(" * ")))


def test_bodies_for_int8_of_all_processors_are_copied() -> None:
    graph = more_graphs.quantized()
    files = emitted(graph, Options(graph.name, "graphs.py"))
    folder = "src/runtime/kernels/simd/dots"
    # What only other targets compile is missed when a crate is built for them.
    names = (
        "avx2",
        "neon",
        "neon/channels",
        "neon/dotprod",
        "neon/matrix",
        "neon/plain",
        "simd128",
    )
    assert [n for n in names if f"{folder}/{n}.rs" not in files] == []
    text = files["src/runtime/kernels/simd/dots.rs"].decode()
    assert all(f"mod {name};" in text for name in ("avx2", "lines", "neon", "simd128"))


def test_vendored_sources_have_no_tests_and_no_tables() -> None:
    text = "\n".join(
        [
            "use crate::def::KernelDef;",
            "",
            "/// Doc.",
            "pub static DEF: KernelDef = KernelDef {",
            '    op: "X",',
            "};",
            "",
            "fn kept() {}",
            "",
            "#[cfg(test)]",
            "impl Gone for u32 {}",
            "",
            "fn kept_too() {}",
            "",
            "#[cfg(test)]",
            "mod tests {",
            "    fn gone() {}",
            "}",
            "",
            "#[cfg(all(test, unix))]",
            "mod more;",
            "",
        ]
    )
    assert strip(text) == "use crate::def::KernelDef;\n\nfn kept() {}\n\nfn kept_too() {}\n"


@pytest.mark.parametrize("make", graphs.GRAPHS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("memdrop", [True, False])
def test_live_tensors_do_not_overlap(make: object, memdrop: bool) -> None:
    assert callable(make)
    graph: ir.Graph = make()
    plan = plan_memory(graph, memdrop=memdrop)
    events = list(_events(plan.steps))
    last: dict[ir.Value, int] = {}
    for index, (_, reads, _) in enumerate(events):
        for value in reads:
            last[plan.root(value)] = index
    for port in graph.outputs:
        last[plan.root(port.value)] = len(events)
    alive: dict[ir.Value, int] = {}
    for index, (step, _, writes) in enumerate(events):
        written = [(plan.places[v].at, plan.places[v].end) for v in writes]
        taken = None
        if writes:
            written.append((step.scratch.at, step.scratch.end))
        if step.onto is not None:
            operand = step.node.operand(step.onto)
            assert operand is not None
            taken = plan.root(operand)
            if plan.root(step.node.output) is taken:
                # What a loop carries, written where it is: nothing else reads it as it was.
                readers = [s for s, reads, _ in events if operand in reads]
                assert all(s is step or isinstance(s.node.op, ir.Loop) for s in readers)
            else:
                assert last[taken] == index
        for value, end in alive.items():
            if end < index or value is taken:
                continue
            place = plan.places[value]
            for low, high in written:
                assert high <= place.at or place.end <= low, (step.node, value)
        for value in writes:
            if plan.places[value].elements:
                alive[value] = last.get(value, index)
            assert plan.places[value].end <= plan.arena_bytes


@pytest.mark.parametrize("make", (*graphs.GRAPHS, *MORE), ids=lambda make: make.__name__)
def test_shapes_that_follow_from_operands_are_those_of_the_nodes(make: object) -> None:
    assert callable(make)
    graph: ir.Graph = make()
    followed = 0
    for node in graph.all_nodes():
        shapes = node.op.shapes([() if v is None else v.shape for v in node.inputs])
        if shapes is not None:
            assert shapes == tuple(v.shape for v in node.outputs), node.op
            followed += 1
    assert followed


Event = tuple[Step, tuple[ir.Value, ...], tuple[ir.Value, ...]]


def _events(steps: Iterable[Step]) -> Iterator[Event]:
    """Yields what every moment reads and writes; what a loop carries is read until its end."""
    for step in steps:
        node = step.node
        if not isinstance(node.op, ir.Loop):
            yield step, node.present, node.outputs
            continue
        body = node.op.body
        carried = tuple(port.value for port in body.inputs)
        yield step, node.present, carried
        yield from _events(step.body)
        yield step, tuple(port.value for port in body.outputs) + carried[1:], ()


def test_only_binary_classifiers_have_confidence_levels() -> None:
    assert "model/thresholds.json" not in emitted(graphs.mlp(), Options("mlp", "graphs.py"))
    levels = emitted(graphs.mlp(), Options("mlp", "graphs.py", binary=True, thresholds="{}"))
    assert levels["model/thresholds.json"] == b"{}"


def test_what_a_file_says_of_itself_is_a_constant() -> None:
    plain = emitted(graphs.mlp(), Options("mlp", "graphs.py"))
    assert b"METADATA" not in plain["src/lib.rs"]
    facts = (("author", 'A "B"'), ("classes", "{0: 'cat',\n1: 'dog'}"))
    for profile in Profile:
        options = Options("mlp", "graphs.py", profile=profile, facts=facts)
        text = emitted(graphs.mlp(), options)["src/lib.rs"].decode()
        constant = " ".join(text.rpartition("pub const METADATA:")[2].split())
        assert constant == (
            '&[(&str, &str)] = &[("author", "A \\"B\\""), '
            "(\"classes\", \"{0: 'cat',\\n1: 'dog'}\")];"
        )


def test_only_needed_files_are_copied() -> None:
    files = emitted(graphs.mlp(), Options("mlp", "graphs.py"))
    names = {p.removeprefix("src/runtime/") for p in files if p.startswith("src/runtime/")}
    assert {"dense.rs", "softmax.rs", "kernels/gemm/mod.rs"} <= names
    assert not {"conv.rs", "recurrent.rs", "kernels/philox.rs", "kernels/unary.rs"} & names
    linked = emitted(graphs.mlp(), Options("mlp", "graphs.py", runtime=RuntimeMode.CRATE))
    assert not any(path.startswith("src/runtime/") for path in linked)
    bare = emitted(graphs.mlp(), Options("mlp", "graphs.py", profile=Profile.NO_STD))
    assert b"#![no_std]" in bare["src/lib.rs"]


@pytest.mark.parametrize("product", [False, True])
def test_running_sums_of_integers_bring_the_integers(product: bool) -> None:
    x = ir.Value(ir.DType.I32, (ir.Batch(), 3), None, "x")
    y = ir.Value(ir.DType.I32, (ir.Batch(), 3), None, "y")
    node = ir.Node(ir.Cumulative(1, product), (x,), (y,))
    files = emitted(
        ir.Graph("m", (ir.Port("x", x),), (ir.Port("y", y),), (node,)), Options("m", "m")
    )
    assert "src/runtime/kernels/ops/elementwise/int32.rs" in files


@pytest.mark.parametrize("profile", Profile)
def test_a_crate_has_no_feature_that_it_could_not_be_without(profile: Profile) -> None:
    files = emitted(graphs.mlp(), Options("mlp", "graphs.py", profile=profile))
    features = tomllib.loads(files["Cargo.toml"].decode()).get("features", {})
    assert features == ({"profile": []} if profile is Profile.STD else {})
    text = b"\n".join(files.values())
    named = set(re.findall(rb'\bfeature = ("[^"]*")', text))
    assert named == {f'"{name}"'.encode() for name in features}


@pytest.mark.parametrize(
    ("place", "table"),
    [
        ('path=../r "q"', {"path": '../r "q"'}),
        ("git=https://example.org/r", {"git": "https://example.org/r"}),
        ("registry=ours,version=1.2.3", {"version": "1.2.3", "registry": "ours"}),
    ],
)
def test_a_crate_that_links_the_runtime_says_where_it_is(place: str, table: dict[str, str]) -> None:
    options = Options(
        "mlp",
        "graphs.py",
        runtime=RuntimeMode.CRATE,
        runtime_place=CratePlace.parse(place, "--f", ""),
    )
    files = emitted(graphs.mlp(), options)
    manifest = tomllib.loads(files["Cargo.toml"].decode())
    runtime = {**table, "default-features": False, "features": ["std"]}
    assert manifest["dependencies"] == {"tfp-runtime": runtime}
    assert "exclude" not in manifest["workspace"]
    assert not [path for path in files if path.startswith("vendor/")]
    assert "depends on the crate `tfp-runtime`." in files["README.md"].decode()
    assert "without any dependency" not in files["src/lib.rs"].decode()


def test_a_crate_may_have_the_packages_of_the_runtime_in_a_folder() -> None:
    linked = Options("mlp", "m", runtime=RuntimeMode.CRATE, runtime_place=VENDORED)
    files = emitted(graphs.mlp(), linked)
    manifest = tomllib.loads(files["Cargo.toml"].decode())
    assert manifest["dependencies"]["tfp-runtime"]["path"] == "vendor/tfp-runtime"
    # Else they were members, and `cargo test --workspace` tested them.
    assert manifest["workspace"] == {"exclude": ["vendor"]}
    for name, crate in (("tfp-kernels", "kernels"), ("tfp-runtime", "converters/runtime")):
        package = tomllib.loads(files[f"vendor/{name}/Cargo.toml"].decode())
        assert package["package"]["name"] == name
        for dependency in package.get("dependencies", {}).values():
            assert "path" in dependency and "version" not in dependency
        assert files[f"vendor/{name}/src/lib.rs"] == Path(crate, "src/lib.rs").read_bytes()
    assert "`tfp-runtime`, which is in its folder `vendor`." in files["README.md"].decode()
    # A crate that copies what it needs of the runtime has no packages.
    own = emitted(graphs.mlp(), replace(linked, runtime=RuntimeMode.INCLUDE))
    assert not [path for path in own if path.startswith("vendor/")]
    assert "exclude" not in tomllib.loads(own["Cargo.toml"].decode())["workspace"]
    assert "It has no dependency." in own["README.md"].decode()


@pytest.mark.parametrize("place", ["", "path", "path=", "registry=ours", "/a/folder"])
def test_a_place_of_the_runtime_that_cargo_does_not_know_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="expected path=FOLDER, git=URL or registry=NAME,version="):
        CratePlace.parse(place, "--runtime_from", "")


def test_many_weights_are_a_file() -> None:
    many = (256 << 20) + 1
    auto = Options("m", "m", weights=WeightsMode.AUTO)
    assert auto.weights_for(many - 1) is WeightsMode.EMBED
    assert auto.weights_for(many) is WeightsMode.FILE
    assert Options("m", "m").weights_for(many) is WeightsMode.EMBED
    bare = Options("m", "m", weights=WeightsMode.AUTO, profile=Profile.NO_STD)
    assert bare.weights_for(many) is WeightsMode.EMBED


def test_an_example_of_one_number_is_not_multiplied() -> None:
    s = graphs.Sketch("ones")
    x = s.input("x", (graphs.B, 1))
    s.op(ir.Unary(ir.Function(ir.Fn.NEG)), [x], x.shape)
    text = emitted(s.graph(), Options("ones", "graphs.py"))["tests/golden.rs"].decode()
    assert "&in_x[_i..=_i]" in text
    assert not re.search(r"[*/] 1\b", text)
    bare = Options("ones", "graphs.py", profile=Profile.NO_STD)
    text = emitted(s.graph(), bare)["tests/golden.rs"].decode()
    assert "&all_x[i..=i]" in text
    assert not re.search(r"[*/] 1\b", text)


def test_the_page_of_a_crate_without_std_shows_its_own_interface() -> None:
    files = emitted(graphs.mlp(), Options("mlp", "graphs.py", profile=Profile.NO_STD))
    page = files["README.md"].decode()
    assert "model.run(&Inputs::new(&x), &mut outputs, workspace)?;" in page
    assert not re.search(r"predict|with_threads|cargo bench|any number", page)
    std = emitted(graphs.mlp(), Options("mlp", "graphs.py"))["README.md"].decode()
    assert "model.predict(Inputs { x: &x })?;" in std
    assert "cargo bench" in std


@pytest.mark.parametrize("width", [1, 2])
def test_the_column_of_class_1_is_taken_without_idle_steps(width: int) -> None:
    """Clippy denies `skip(0)`."""
    s = graphs.Sketch("binary")
    x = s.input("x", (graphs.B, width))
    s.op(ir.Unary(ir.Function(ir.Fn.SIGMOID)), [x], x.shape)
    files = emitted(s.graph(), Options("binary", "graphs.py", binary=True))
    text = files["src/model.rs"].decode() + files["tests/golden.rs"].decode()
    assert "predict_from" in text
    assert not re.search(r"skip\(0\)|step_by\(1\)", text)
    assert (".skip(1).step_by(2)" in re.sub(r"\s", "", text)) == (width == 2)


def test_shapes_in_docs_are_no_links() -> None:
    files = emitted(graphs.mlp(), Options("mlp", "graphs.py"))
    text = (files["src/weights.rs"] + files["src/places.rs"] + files["src/model.rs"]).decode()
    docs = [line for line in text.splitlines() if line.strip().startswith("///")]
    assert {"/// `hidden/bias`: `[8]`", "/// f32, `[batch, 8]`"} <= set(docs)
    assert not any(re.search(r"\[\d", re.sub("`[^`]*`", "", line)) for line in docs)
