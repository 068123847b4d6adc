"""Archives of TVM: hand-made ones of each dialect, changed in their JSON, C, headers and tar."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

from converters.mlf.convert import Request, convert
from converters.mlf.tests.dialects import DIALECTS, tar_of
from tests.fuzz import edits
from tests.fuzz.case import Case, Outcome, Reference, Status, Target
from tests.fuzz.targets.texts import refused
from tools.codegen.conversion import ConversionError


class Mlf(Target):
    """Reads an archive and writes the text of a crate."""

    input_name = "m.tar"

    def __init__(self, folder: Path, reference: Reference) -> None:
        """Makes the archives."""
        super().__init__(folder, reference)
        made = [make().files for make in DIALECTS.values()]
        self._archives = [{k: _octets(v) for k, v in files.items()} for files in made if files]

    @property
    def bases(self) -> int:
        """How many archives there are."""
        return len(self._archives)

    def write(self, case: Case, folder: Path) -> Path:
        """Writes an archive."""
        files: dict[str, str | bytes] = dict(self._archives[case.base])
        tail: list[random.Random] = []
        for seed in case.edits:
            choose = random.Random(seed)
            if choose.random() < 0.1 or not files:
                tail.append(choose)
            else:
                _edit(choose, files)
        content = tar_of(files)
        for choose in tail:
            kind = choose.random()
            content = gzip.compress(content) if kind < 0.2 else edits.octets(choose, content)
        path = folder / self.input_name
        path.write_bytes(content)
        return path

    def check(self, path: Path) -> Outcome:
        """Converts an archive."""
        try:
            convert(Request(mlf=path))
        except ConversionError as err:
            return refused(err, "mlf2rust")
        return Outcome(Status.TAKEN)


def _octets(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _edit(choose: random.Random, files: dict[str, str | bytes]) -> None:
    """Changes a file: a value of its JSON, a word or line of its text, or its name."""
    name = choose.choice(sorted(files))
    content = _octets(files[name])
    kind = choose.random()
    if kind < 0.03:
        del files[name]
    elif kind < 0.06:
        files[edits.text(choose, name).replace("\0", "") or "x"] = content
    elif name.endswith(".json") and kind < 0.9:
        try:
            tree = json.loads(content)
        except ValueError:
            files[name] = edits.octets(choose, content)
            return
        edits.tree(choose, {"": tree} if not isinstance(tree, dict | list) else tree)
        files[name] = json.dumps(tree).encode("utf-8", "replace")
    elif kind < 0.9:
        files[name] = _words(choose, content.decode("utf-8", "replace")).encode("utf-8", "replace")
    else:
        files[name] = edits.octets(choose, content)


def _words(choose: random.Random, text: str) -> str:
    """Changes a word or a line of a text."""
    between = choose.choice((" ", "\n", "(", ",", ";"))
    parts = text.split(between)
    at, other = choose.randrange(len(parts)), choose.randrange(len(parts))
    kind = choose.random()
    if kind < 0.2:
        del parts[at]
    elif kind < 0.4:
        parts.insert(at, parts[other])
    elif kind < 0.6:
        parts[at], parts[other] = parts[other], parts[at]
    elif kind < 0.8 and parts[at].strip().isdigit():
        parts[at] = str(edits.number(choose, int(parts[at])))
    else:
        parts[at] = edits.text(choose, parts[at])
    return between.join(parts)
