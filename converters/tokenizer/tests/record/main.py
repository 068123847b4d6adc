"""Records what KerasHub's tokenizers give for texts, for the tests of tokenizer2rust.

Without flags it writes small tokenizers, texts and numbers into the folder of the tests. With
--sweep=N it compares N drawn texts of each with crates that cargo builds, and says how many agree;
nothing is written then. KerasHub is installed into the cache folder on first use. Exit status: 0 if
all agree.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from converters.tf.tests.hub.installed import installed
from converters.tokenizer.convert import Request, convert
from converters.tokenizer.model import Split
from converters.tokenizer.tests.record import made, texts
from tools.codegen import program
from tools.codegen.folder import replace_folder

_SWEEP = flags.DEFINE_integer(
    "sweep", 0, "texts of each tokenizer that are compared", lower_bound=0
)
_SEED = flags.DEFINE_integer("seed", 1, "draws the texts")
_ONLY = flags.DEFINE_list("only", [], "names of tokenizers")
_KEPT = 80
_FOLDER = Path("converters/tokenizer/tests/golden")
# Of models after Llama 3, as its own tokenizer has it.
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

Encode = Callable[[str], list[int]]
Decode = Callable[[list[int]], str]


def main(argv: Sequence[str]) -> int:
    """Records or compares; returns the exit status."""
    del argv
    os.environ["KERAS_BACKEND"] = "tensorflow"
    sys.path.append(str(installed()))
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name, make in made.made():
            if _ONLY.value and name not in _ONLY.value:
                continue
            preset = Path(temporary, name, "preset")
            tokenizer = make()
            tokenizer.save_to_preset(str(preset))
            wrong += _each(name, "", preset, *_of_layer(tokenizer))
            if name == "gpt2":
                for split in (Split.GPT2, Split.LLAMA3):
                    wrong += _each(name, split.value, preset, *_of_split(preset, split))
    return int(wrong > 0)


def _of_layer(tokenizer: Any) -> tuple[Encode, Decode]:
    def encode(text: str) -> list[int]:
        found: list[int] = np.asarray(tokenizer(text)).reshape(-1).astype(np.int32).tolist()
        return found

    return encode, lambda ids: str(tokenizer.detokenize(np.asarray(ids, np.int32))) if ids else ""


def _of_split(preset: Path, split: Split) -> tuple[Encode, Decode]:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    files = preset / "assets/tokenizer"
    merges = [tuple(line.split(" ")) for line in (files / "merges.txt").read_text().splitlines()]
    ids = json.loads((files / "vocabulary.json").read_text())
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges))
    tokenizer.add_special_tokens(["<|endoftext|>"])
    if split is Split.GPT2:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        pieces = pre_tokenizers.Split(Regex(_LLAMA3), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, plain])
    tokenizer.decoder = decoders.ByteLevel()
    return (
        lambda text: list(tokenizer.encode(text).ids),
        lambda ids: str(tokenizer.decode(ids, skip_special_tokens=False)),
    )


def _each(name: str, split: str, preset: Path, encode: Encode, decode: Decode) -> int:
    random = np.random.default_rng(_SEED.value)
    given = dict.fromkeys([*texts.fixed(), *texts.drawn(random, _SWEEP.value or _KEPT)])
    recorded = {text: {"ids": (ids := encode(text)), "decoded": decode(ids)} for text in given}
    title = "_".join(filter(None, (name, split)))
    if _SWEEP.value:
        agree = _compared(preset, split, recorded)
        print(f"{title}: {len(recorded)} texts {'agree' if agree else 'DIFFER'}", flush=True)
        return int(not agree)
    _written(title, preset, split, recorded)
    return 0


def _compared(preset: Path, split: str, recorded: Mapping[str, Any]) -> bool:
    file = preset.parent / "recorded.json"
    file.write_text(json.dumps(recorded))
    result = convert(Request(preset, "compared", Split(split) if split else None, file))
    crate = preset.parent / "crate"
    replace_folder(crate, result.files)
    target = str(preset.parent.parent / "target")
    done = subprocess.run(
        ["cargo", "test", "--quiet", "--offline"],
        cwd=crate,
        env={**os.environ, "CARGO_TARGET_DIR": target},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
    return done.returncode == 0


def _written(title: str, preset: Path, split: str, recorded: Mapping[str, Any]) -> None:
    folder = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], _FOLDER, title)
    shutil.rmtree(folder, ignore_errors=True)
    if not split:
        shutil.copytree(preset, folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(text)}: {json.dumps(value)}" for text, value in recorded.items()]
    (folder / "recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"wrote {len(recorded)} texts and their numbers to {folder}", flush=True)


if __name__ == "__main__":
    program.run("record", main)
