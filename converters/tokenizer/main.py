"""tokenizer2rust: a tokenizer of KerasHub or SentencePiece becomes a pure Rust crate.

Reads the folder that `tokenizer.save_to_preset` writes, or a model file of SentencePiece, and
writes the folder of a crate that depends on nothing.

  tokenizer2rust bert/ --out bert_tokenizer
  tokenizer2rust gpt2/ --out gpt2_tokenizer --recorded texts.json
  tokenizer2rust spiece.model --out tokenizer --crate_name words

It needs neither Keras nor TensorFlow, and runs nothing of the folder.

Exit codes: 0 done; 2 wrong usage; 3 a file is missing or damaged; 4 the recorded texts can't be
read; 6 the tokenizer is not supported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags

from converters.tokenizer.convert import Request, Result, convert
from converters.tokenizer.emit import MARK
from converters.tokenizer.model import BytePair, Split, WordPiece
from tools.codegen import program
from tools.codegen.conversion import ConversionError, Problem, UsageError
from tools.codegen.folder import check_own, replace_folder

_NAME = "tokenizer2rust"

_OUT = flags.DEFINE_string("out", None, "folder to write the crate to (required)")
_CRATE = flags.DEFINE_string("crate_name", "", "name of the crate; default: that of the tokenizer")
_SPLIT = flags.DEFINE_enum_class(
    "split",
    None,
    Split,
    "how a text is taken apart before bytes are merged; default: whole, as KerasHub's layers do"
    " when they are called",
)
_RECORDED = flags.DEFINE_string(
    "recorded", None, 'JSON with numbers by text, {"some text": [1, 2]}; becomes the crate\'s test'
)
_JSON = flags.DEFINE_bool("json", False, "print a JSON report on standard output")


def _request(arguments: Sequence[str]) -> Request:
    if len(arguments) != 1:
        what = f"expected one folder or file, found {len(arguments)}"
        raise UsageError(Problem("command line", what, f"{_NAME} --help"))
    if not _OUT.value:
        raise UsageError(Problem("--out", "no folder given"))
    return Request(
        tokenizer=Path(arguments[0]),
        crate=_CRATE.value,
        split=_SPLIT.value,
        recorded=Path(_RECORDED.value) if _RECORDED.value else None,
    )


def _kind(result: Result) -> str:
    model = result.tokenizer.model
    if isinstance(model, WordPiece):
        return f"WordPiece, {len(model.tokens)} tokens"
    if isinstance(model, BytePair):
        return f"byte pairs, {len(model.ids)} tokens"
    how = "unigrams" if model.unigram else "pairs"
    return f"SentencePiece by {how}, {len(model.pieces)} tokens"


def main(argv: Sequence[str]) -> int:
    """Converts as the flags say; returns the exit code."""
    try:
        request = _request(argv[1:])
        out = Path(_OUT.value or "")
        check_own(out, MARK.encode(), _NAME)
        result = convert(request)
        replace_folder(out, result.files)
    except ConversionError as err:
        if _JSON.value:
            print(json.dumps(err.report(), indent=2))
        print(err.text(_NAME), file=sys.stderr)
        return err.exit_code
    said = f"{_NAME}: wrote the crate {result.crate} to {out} ({_kind(result)})"
    print(said, file=sys.stderr)
    if not result.examples:
        print(f"{_NAME}: it has no test; --recorded takes texts and their numbers", file=sys.stderr)
    if _JSON.value:
        print(json.dumps(_report(result), indent=2))
    return 0


def _report(result: Result) -> dict[str, object]:
    return {
        "ok": True,
        "tokenizer": result.tokenizer.name,
        "crate": result.crate,
        "kind": _kind(result),
        "pad": result.tokenizer.pad,
        "sequence_length": result.tokenizer.length,
        "recorded": result.examples,
        "files": {path: len(content) for path, content in result.files.items()},
    }


def run() -> None:
    """Entry point of the program; under `bazel run`, paths are relative to the caller's folder."""
    program.run(_NAME, main)


if __name__ == "__main__":
    run()
