"""How-to pages name the right files: the example of each page stands in all files that it lists."""

import os
import pathlib
import re

import pytest

TREE = pathlib.Path(os.environ["CHECKOUT"]).resolve()
HOW_TO = TREE / "docs/how-to"


def holds(path: str, example: str) -> bool:
    """Whether a file, or a file below a folder, has the example in any spelling."""
    place = TREE / path
    files = [place] if place.is_file() else sorted(place.rglob("*.*"))
    pattern = re.compile(example, re.I | re.M)
    return any(pattern.search(file.read_text(encoding="utf-8")) for file in files)


def steps(page: str, heading: str) -> list[tuple[str, str]]:
    """The files of a section's table, each with what is to be done there."""
    text = (HOW_TO / page).read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1]
    section = text.split("\n## ", 1)[0]
    return re.findall(r"^\| \d+ \| `([^`]+)` \| (.+) \|$", section, re.M)


def test_an_operation_of_the_typed_graph_stands_in_every_file_of_the_page() -> None:
    rows = steps("converter-op.md", "An op that needs a new operation of the typed graph")
    assert len(rows) == 5
    wrong = [path for path, _ in rows if not holds(path, r"top_?k")]
    assert not wrong, f"TopK, the example of the page, is not in {wrong}"


def test_the_page_lists_the_methods_of_a_card() -> None:
    text = (HOW_TO / "converter-op.md").read_text(encoding="utf-8")
    graph = (TREE / "converters/tf/ir/graph.py").read_text(encoding="utf-8")
    card = graph.split("\nclass Op:\n", 1)[1].split("\n\n\n", 1)[0]
    methods = re.findall(r"^    def (\w+)", card, re.M)
    assert "meaning" in methods
    assert sorted(re.findall(r"^\| `(\w+)` \|", text, re.M)) == sorted(methods)


@pytest.mark.parametrize(
    ("path", "example"),
    [
        # how-to/converter-op.md, the first section.
        ("converters/tf/lower/ops/index/sorting.py", r"^OPS\b"),
        ("converters/tf/lower/ops/registry.py", r"\bsorting\b"),
        ("converters/tf/lower/ops/refused.py", r"\bOPS\b"),
        # how-to/kernel.md
        ("kernels/src/ops/elementwise/mod.rs", r"pub static KERNELS"),
        ("kernels/src/ops/elementwise/mod.rs", r"&leaky_relu::LEAKY_RELU,"),
        ("kernels/src/ops/elementwise/leaky_relu.rs", r"pub static LEAKY_RELU: KernelDef"),
        ("kernels/src/ops/image/max_pool.rs", r"AVG_POOL_GRAD"),
        ("plugin/src/hosted.rs", r"\bEinsum\b"),
        ("tests/conformance/hosted.py", r"\bEinsum\b"),
        # how-to/layer.md
        ("bindings/client/src/nn/layer", r"impl Layer for Dense"),
        ("bindings/client/tests/keras_goldens.py", r"\bDense\b"),
        ("bindings/client/tests/nn_test/layers.rs", r"\bDense\b"),
        ("converters/tf/passes/recurrent.py", r"\bir\.Lstm\b"),
        ("converters/tf/lower/ops/control/loops.py", r"^OPS\b|\bWhile\b"),
        # how-to/op-wrapper.md
        *(
            ("tools/opgen/rules.py", rf"^{name}\b")
            for name in ("FUNCTION_NAMES", "GROUPS", "GROUP_PREFIXES", "ENUMS", "VARIANTS")
        ),
        ("tools/opgen/rules.py", r"^BYTES_LISTS\b"),
        # ARCHITECTURE.md, entry points.
        ("plugin/adapter/src/adapter.rs", r"fn compute\b"),
        ("kernels/src/base/def.rs", r"pub struct KernelDef\b"),
        ("bindings/client/src/context/any.rs", r"pub enum AnyContext\b"),
        ("converters/tf/tf2rust.py", r"^def run\b"),
        ("converters/mlf/convert.py", r"^def convert\b"),
        ("tools/opgen/pipeline.py", r"^def generate\b"),
        ("tools/ffigen/pipeline.py", r"^def generate\b"),
    ],
)
def test_what_a_page_sends_people_to_is_there(path: str, example: str) -> None:
    assert holds(path, example), (
        f"{path} has no {example}: correct the page that sends people there"
    )
