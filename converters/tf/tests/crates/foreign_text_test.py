"""Names of a model file stay in comments and strings of the crate, whatever they hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from converters.tf import ir
from converters.tf.emit.crate import emit_crate
from converters.tf.emit.options import Options, Profile, RuntimeMode
from converters.tf.tests.crates import graphs, text_graphs
from converters.tf.tests.crates.crates import recorded, rustfmt
from tools.codegen.rust_code import code_only, unwritten

MARKER = "inj3ct"
CODE = f"fn {MARKER}() {{}} mod {MARKER}; "
HOSTILE = (
    *("\n", "\r", "\r\n", "\0", "\x0b", "\x85", "\u2028", "\u2029", "\ud800", "\u202e", "\u2066"),
    *("*/", '"', '"#', '\\"', "\\", "`", "{{", "}}", "{% raw %}", "//", "'", "```", "w, ", ")?"),
    *("self.", "weights::", ", p)", "@name", ":"),
)
HOSTILE_TEXT = st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=5).map("".join)


def _named(graph: ir.Graph, name: Callable[[str], str]) -> ir.Graph:
    """Returns a graph with every name changed: of ports, layers, tensors and weights."""
    values: dict[ir.Value, ir.Value] = {}

    def value(old: ir.Value) -> ir.Value:
        if old not in values:
            values[old] = replace(old, name=name(old.name))
        return values[old]

    nodes = tuple(
        replace(
            node,
            layer=name(node.layer),
            inputs=tuple(None if v is None else value(v) for v in node.inputs),
            outputs=tuple(value(v) for v in node.outputs),
        )
        for node in graph.nodes
    )
    ports = [
        tuple(ir.Port(name(p.name), value(p.value)) for p in some)
        for some in (graph.inputs, graph.outputs)
    ]
    return ir.Graph(name(graph.name), ports[0], ports[1], nodes)


def _check(files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        if not path.endswith((".rs", ".toml", ".md")) or path.startswith("src/runtime"):
            continue
        text = content.decode()
        assert all(c.isprintable() or c == "\n" for c in text), path
        if path.endswith(".rs"):
            assert MARKER not in code_only(text), path
        else:
            lines = [line for line in text.split("\n") if MARKER in line]
            assert all(line.startswith("#") or "`" in line for line in lines), path


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from([graphs.mlp, graphs.layout]), HOSTILE_TEXT, st.sampled_from(Profile))
def test_names_stay_names(make: Callable[[], ir.Graph], text: str, profile: Profile) -> None:
    numbers: dict[str, int] = {}

    def name(old: str) -> str:
        number = numbers.setdefault(old, len(numbers))
        return f"{old}{text}{CODE}{number}"

    # An array of `features.npz` has the name of its port, which loaders keep printable.
    graph = _named(make(), name)
    inputs, outputs = (
        tuple(replace(p, name=_plain(p.name)) for p in ports)
        for ports in (graph.inputs, graph.outputs)
    )
    graph = replace(graph, inputs=inputs, outputs=outputs)
    options = Options(
        name("net"),
        name("net.keras"),
        profile=profile,
        runtime=RuntimeMode.CRATE,
        facts=((name("key"), name("text")),),
    )
    _check(emit_crate(graph, options, recorded(graph)))


def _plain(name: str) -> str:
    return "".join(c for c in name if c.isprintable())


def test_such_a_crate_is_laid_out() -> None:
    """Rustfmt parses it: what is no comment or string is the Rust that was meant."""
    graph = _named(graphs.mlp(), lambda old: f'{old}*/"`\\ {CODE}')
    hostile = (f'key"{CODE}', f'text*/"`\\ \n{CODE}')
    options = Options("net", "net\n", runtime=RuntimeMode.CRATE, facts=(hostile, ("a", "x" * 999)))
    files = emit_crate(graph, options, recorded(graph), rustfmt())
    _check(files)
    assert "pub const METADATA: &[(&str, &str)] = &[" in files["src/lib.rs"].decode()


def test_words_and_patterns_are_numbers() -> None:
    """What a model says of text is in the weights, or in arrays of bytes."""
    graph = text_graphs.texts()
    files = emit_crate(graph, Options("net", "net", runtime=RuntimeMode.CRATE), recorded(graph))
    code = "".join(text.decode() for path, text in files.items() if path.startswith("src/"))
    assert "the fox" not in code
    assert "br />" not in code
    assert "compile_error!" not in code_only(code)


def test_words_of_outputs_are_strings() -> None:
    """Those of another direction of writing are escaped."""
    graph = text_graphs.chosen_words()
    files = emit_crate(graph, Options("net", "net", runtime=RuntimeMode.CRATE), recorded(graph))
    code = "".join(text.decode() for path, text in files.items() if path.startswith("src/"))
    assert "compile_error!" in code
    assert "compile_error!" not in code_only(code)
    assert "\u202e" not in code


def test_emitters_write_foreign_text_by_one_function() -> None:
    """No f-string and no code holds a name of the file, unless a writer made it safe."""
    emitters = (Path(__file__).parents[2] / "emit").rglob("*.py")
    assert unwritten(emitters, ("code", "call", "method")) == sorted(_NO_TEXT_OF_A_FILE)


def test_a_name_of_the_file_in_code_is_found(tmp_path: Path) -> None:
    file = tmp_path / "ports.py"
    file.write_text('a = code("{}", port.name)\nb = code("{}", string_literal(port.name))\n')
    assert unwritten([file], ["code"]) == ["ports.py: port.name"]
    assert unwritten([file]) == []


# What looks like one, with the reason.
_NO_TEXT_OF_A_FILE = {
    "sequence.py: node.layer": "a name that `wishes` makes an identifier of",
    "open_port.py: port.name": "part of an error's text, which is one string literal",
    "model.py: port.name": "a key of `features.npz`, which templates get as a string literal",
}


def test_templates_print_what_was_written_for_them() -> None:
    """The texts of a model file that templates print, all of which `emit_crate` writes."""
    folder = Path(__file__).parents[2] / "templates"
    printed: set[str] = set()
    for path in folder.glob("*.j2"):
        for expression in re.findall(r"\{\{(.*?)\}\}", path.read_text("utf-8")):
            if _TEXT.search(expression):
                printed.add(expression.strip())
    assert printed == _PRINTED


_TEXT = re.compile(r"\b(mark|label|doc|literal|key|source|layer)\b|^ *name *$|\bp\.name\b")
_PRINTED = {
    *("block.doc", "f.doc", "m.outputs[0].key", "mark", "name", "p.key", "p.literal", "p.name"),
    *("literal", "part.doc", "s.doc", "t.label"),
    # The name of an open dimension or a count is one line of a comment, and shapes are numbers.
    *("d.label", "k.label", "recorded[p.key]", "recorded[s.given.key]"),
}
