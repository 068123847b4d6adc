"""Tokenizers of KerasHub: small ones, changed in their JSON, vocabularies and models."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from converters.tokenizer import unicode
from converters.tokenizer.convert import Request, convert
from tests.fuzz import edits
from tests.fuzz.case import Case, Outcome, Reference, Status, Target
from tests.fuzz.targets.texts import refused
from tools.codegen.conversion import ConversionError
from tools.codegen.rust_code import code_only

GOLDEN = Path("converters/tokenizer/tests/golden")

# Each case has a process of its own, a copy of the one that imports this: what all of them need is
# computed here.
unicode.kept(cjk=True)
unicode.spaces()
unicode.marks()
unicode.classes()
unicode.decompositions("NFD")
unicode.decompositions("NFKD")
unicode.pairs()
unicode.folds()

_HOSTILE = '"; fn marked() {} //'


class Tokenizers(Target):
    """Reads a tokenizer and writes the text of a crate."""

    input_name = "preset"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Finds the tokenizers."""
        super().__init__(folder, reference)
        self._presets = sorted(file.parent for file in GOLDEN.glob("*/tokenizer.json"))
        if not self._presets:
            raise RuntimeError(f"no tokenizer below {GOLDEN}")

    @property
    def bases(self) -> int:
        """How many tokenizers there are."""
        return len(self._presets)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes the folder of a tokenizer."""
        path = folder / self.input_name
        shutil.copytree(self._presets[case.base], path, copy_function=shutil.copyfile)
        for seed in case.edits:
            _edit(random.Random(seed), path)
        return path

    def check(self, path: Path) -> Outcome:
        """Converts a tokenizer; no text of it may become code."""
        try:
            result = convert(Request(path))
        except ConversionError as err:
            return refused(err, "tokenizer2rust")
        for name, content in result.files.items():
            if name.endswith(".rs") and "marked" in code_only(content.decode()):
                return Outcome(Status.FAULT, f"{name} has a text of the file as code", "code")
        return Outcome(Status.TAKEN)


def _edit(choose: random.Random, preset: Path) -> None:
    """Changes a file: a value, a line, a hostile token, some bytes, or whether it is there."""
    file = choose.choice(sorted(path for path in preset.rglob("*") if path.is_file()))
    content = file.read_bytes()
    kind = choose.random()
    if kind < 0.03:
        file.unlink()
        if not any(path.is_file() for path in preset.rglob("*")):
            file.write_bytes(content)
    elif file.suffix == ".json" and kind < 0.8:
        file.write_text(_json(choose, content))
    elif file.suffix == ".txt" and kind < 0.8:
        lines = content.decode("utf-8", "replace").split("\n")
        at = choose.randrange(len(lines))
        lines[at] = choose.choice((_HOSTILE, lines[0], edits.text(choose, lines[at])))
        file.write_bytes("\n".join(lines).encode("utf-8", "replace"))
    else:
        file.write_bytes(edits.octets(choose, content))


def _json(choose: random.Random, content: bytes) -> str:
    try:
        tree = json.loads(content)
    except ValueError:
        return edits.text(choose, content.decode("utf-8", "replace")).replace("\ud800", "?")
    if isinstance(tree, dict) and choose.random() < 0.3:
        config = tree.get("config")
        inner = config if isinstance(config, dict) else tree
        name = choose.choice(("special_tokens", "unsplittable_tokens", "suffix_indicator"))
        inner[name] = _HOSTILE if name == "suffix_indicator" else [_HOSTILE]
        inner["special_tokens_in_strings"] = True
    else:
        edits.tree(choose, {"": tree} if not isinstance(tree, dict | list) else tree)
    return json.dumps(tree)
