"""Writes the files of a crate."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from converters.tokenizer import unicode
from converters.tokenizer.model import BytePair, SentencePiece, Split, Tokenizer, WordPiece
from tools.codegen.render import environment, generated_header, render
from tools.codegen.rust import RustText, check_one_line, code_span, string_literal

MARK = generated_header("converters/tokenizer", "a tokenizer", "").strip()
_TEMPLATES = Path(__file__).parent / "templates"
_COLUMNS = 100


@dataclass(frozen=True)
class Example:
    """What the tokenizer's own library gives for a text.

    Attributes:
        text: The text.
        ids: The numbers of its tokens.
        decoded: What the library makes of them; `None` if that was not recorded.
    """

    text: str
    ids: tuple[int, ...]
    decoded: str | None = None


@dataclass(frozen=True)
class _Parts:
    """What of a crate depends on the kind of its tokenizer.

    Attributes:
        model: The type that takes text apart.
        uses: Lines that import.
        arguments: What its constructor gets.
        sources: Template by module.
        tables: Names and text of tables of characters.
        data: Content by name of the files that the crate embeds.
        examples: Tokens that the documentation names.
    """

    model: str
    uses: Sequence[str]
    arguments: Sequence[str]
    sources: Mapping[str, str]
    tables: Sequence[RustText]
    data: Mapping[str, bytes]
    examples: Iterable[str]


def crate_files(
    tokenizer: Tokenizer, crate: str, examples: Sequence[Example], version: str
) -> dict[str, bytes]:
    """Returns the files of a crate, by path.

    Args:
        tokenizer: What it is to do.
        crate: Its name.
        examples: What its test compares.
        version: The version of this program.
    """
    parts = _parts(tokenizer.model)
    env = environment(_TEMPLATES, check_one_line)
    modules = sorted([*parts.sources, *(["unicode"] if parts.tables else [])])
    example = next(iter(parts.examples), "")
    values = {
        "mark": MARK,
        "title": f"The tokenizer {tokenizer.name}",
        "name": tokenizer.name,
        "crate": crate,
        "version": version,
        "modules": modules,
        "uses": parts.uses,
        "model": parts.model,
        "arguments": parts.arguments,
        "pad": tokenizer.pad,
        "length": tokenizer.length,
        "example": code_span(example),
        "tables": parts.tables,
        "unicode_version": unicode.VERSION,
        "count": len(examples),
        "word_piece": isinstance(tokenizer.model, WordPiece),
        **_word_values(tokenizer.model),
    }
    draw = functools.partial(render, env)
    files = {
        "Cargo.toml": draw("Cargo.toml.j2", values),
        "README.md": draw("README.md.j2", values),
        "src/lib.rs": draw("lib.rs.j2", values),
        "examples/encode.rs": draw("encode.rs.j2", values),
    }
    for module, template in parts.sources.items():
        files[f"src/{module}.rs"] = draw(f"src/{template}", values)
    if parts.tables:
        files["src/unicode.rs"] = draw("src/unicode.rs.j2", values)
    if examples:
        files["tests/recorded.rs"] = draw("recorded.rs.j2", values)
    out = {path: text.encode() for path, text in files.items()}
    out |= {f"data/{name}": content for name, content in parts.data.items()}
    if examples:
        out["data/recorded.bin"] = b"".join(map(_recorded, examples))
    return dict(sorted(out.items()))


def _word_values(model: object) -> dict[str, object]:
    if not isinstance(model, WordPiece):
        return {"lowercase": False, "strip_accents": False, "split": False, "specials": []}
    return {
        "lowercase": model.lowercase,
        "strip_accents": model.strip_accents,
        "split": model.split,
        "specials": [string_literal(token) for token in dict.fromkeys(model.specials)],
    }


def _parts(model: WordPiece | BytePair | SentencePiece) -> _Parts:
    if isinstance(model, WordPiece):
        return _word_piece(model)
    if isinstance(model, BytePair):
        return _byte_pair(model)
    return _sentence_piece(model)


def _word_piece(model: WordPiece) -> _Parts:
    sources = {module: f"{module}.rs" for module in ("data", "numbers", "table", "word_piece")}
    sources["words"] = "words.rs.j2"
    tables = []
    if model.split:
        tables += [
            _ranges("KEPT", "Words of one character.", unicode.kept(cjk=model.split_on_cjk)),
            _ranges("SPACES", "Characters between words.", unicode.spaces()),
        ]
    if model.strip_accents:
        canonical = unicode.decompositions("NFD")
        tables += [
            _ranges("MARKS", "Marks on letters.", unicode.marks()),
            _texts("CANONICAL", "Characters and their parts.", canonical),
        ]
    if model.lowercase:
        compatible = unicode.decompositions("NFKD")
        ignorable = "Characters that have no shape."
        tables += [
            _texts("COMPATIBLE", "Characters and what they are a form of.", compatible),
            _texts("FOLDS", "Capital letters and small ones.", unicode.folds()),
            _ranges("IGNORABLE", ignorable, unicode.IGNORABLE),
            _pairs(),
        ]
        sources |= {"composed": "composed.rs", "folded": "folded.rs"}
    if model.lowercase or model.strip_accents:
        tables.append(_classes())
        sources["normal"] = "normal.rs"
    if model.split or model.strip_accents or model.lowercase:
        sources["classes"] = "classes.rs"
    return _Parts(
        model="WordPiece",
        uses=["use crate::word_piece::WordPiece;"],
        arguments=[
            'include_bytes!("../data/tokens.bin"),',
            f"{_last(model.tokens, model.unknown)},",
            f"{string_literal(model.suffix)},",
        ],
        sources=sources,
        tables=tables,
        data={"tokens.bin": _tokens(enumerate(model.tokens))},
        examples=[model.unknown],
    )


def _last(tokens: Sequence[str], token: str) -> int:
    return len(tokens) - 1 - tokens[::-1].index(token)


def _byte_pair(model: BytePair) -> _Parts:
    sources = {module: f"{module}.rs" for module in ("byte_pair", "data", "numbers", "table")}
    sources["pieces"] = f"pieces_{model.split.value}.rs"
    tables = []
    if model.split is not Split.WHOLE:
        sources["classes"] = "classes.rs"
        tables = [
            _ranges("LETTERS", "Letters.", unicode.letters()),
            _ranges("NUMBERS", "Digits and other numbers.", unicode.numbers()),
        ]
    # The last rule for a pair is the one that holds.
    rules = {pair: at for at, pair in enumerate(model.merges)}
    merges = (
        (model.ids[a], model.ids[b], model.ids[a + b])
        for (a, b), _ in sorted(rules.items(), key=lambda rule: rule[1])
    )
    return _Parts(
        model="BytePair",
        uses=["use crate::byte_pair::BytePair;"],
        arguments=[
            'include_bytes!("../data/tokens.bin"),',
            'include_bytes!("../data/merges.bin"),',
            'include_bytes!("../data/whole.bin"),',
            f"{str(model.prefix).lower()},",
        ],
        sources=sources,
        tables=tables,
        data={
            "tokens.bin": _tokens((id_, token) for token, id_ in model.ids.items()),
            "merges.bin": b"".join(struct.pack("<3I", *merge) for merge in merges),
            "whole.bin": _tokens((id_, token) for token, id_ in model.whole.items()),
        },
        examples=model.whole or model.ids,
    )


def _sentence_piece(model: SentencePiece) -> _Parts:
    modules = ("charsmap", "data", "normalized", "numbers", "sentence_piece", "table")
    sources = {module: f"{module}.rs" for module in modules}
    sources["search"] = "search_unigram.rs" if model.unigram else "search_pairs.rs"

    def flag(value: object) -> str:
        return str(value).lower()

    def place(value: int | None) -> str:
        return "None" if value is None else f"Some({value})"

    arguments = [
        "Files {",
        '    tokens: include_bytes!("../data/tokens.bin"),',
        '    scores: include_bytes!("../data/scores.bin"),',
        '    kinds: include_bytes!("../data/kinds.bin"),',
        '    charsmap: include_bytes!("../data/charsmap.bin"),',
        "},",
        "Settings {",
        "    rules: Rules {",
        f"        prefix: {flag(model.prefix)},",
        f"        after: {flag(model.after)},",
        f"        trim: {flag(model.trim)},",
        f"        mark: {flag(model.mark)},",
        "    },",
        f"    first: {place(model.first)},",
        f"    last: {place(model.last)},",
        f"    unknown: {model.unknown},",
        f"    surface: {string_literal(model.surface)},",
        f"    silent: {place(model.silent)},",
        f"    bytes: {flag(model.falls_back)},",
        "},",
    ]
    return _Parts(
        model="SentencePiece",
        uses=[
            "use crate::normalized::Rules;",
            "use crate::sentence_piece::{Files, SentencePiece, Settings};",
        ],
        arguments=arguments,
        sources=sources,
        tables=[],
        data={
            "tokens.bin": _tokens(enumerate(piece.text for piece in model.pieces)),
            "scores.bin": struct.pack(
                f"<{len(model.pieces)}f", *(piece.score for piece in model.pieces)
            ),
            "kinds.bin": bytes(piece.kind.value for piece in model.pieces),
            "charsmap.bin": model.charsmap,
        },
        examples=(piece.text for piece in model.pieces),
    )


def _tokens(tokens: Iterable[tuple[int, str]]) -> bytes:
    """Returns the number of each token, its length in bytes, and its text."""
    encoded = ((id_, token.encode()) for id_, token in tokens)
    return b"".join(struct.pack("<2I", id_, len(text)) + text for id_, text in encoded)


def _recorded(example: Example) -> bytes:
    text = example.text.encode()
    count = len(example.ids)
    ids = struct.pack(f"<I{count}i", count, *example.ids)
    decoded = b"" if example.decoded is None else example.decoded.encode()
    length = -1 if example.decoded is None else len(decoded)
    return struct.pack("<I", len(text)) + text + ids + struct.pack("<i", length) + decoded


def _ranges(name: str, what: str, ranges: unicode.Ranges) -> RustText:
    rows = [f"(0x{first:X}, 0x{last:X})" for first, last in ranges]
    return _table(name, what, "(u32, u32)", rows)


def _texts(name: str, what: str, entries: Iterable[tuple[str, str]]) -> RustText:
    # As numbers: marks without a letter, and text from right to left, are hard to read.
    rows = [f'({_char(c)}, "{"".join(map(_escaped, text))}")' for c, text in entries]
    return _table(name, what, "(char, &str)", rows)


def _classes() -> RustText:
    rows = [f"(0x{first:X}, 0x{last:X}, {kind})" for first, last, kind in unicode.classes()]
    return _table("CLASSES", "How characters combine with others.", "(u32, u32, u8)", rows)


def _pairs() -> RustText:
    rows = [f"({', '.join(map(_char, pair))})" for pair in unicode.pairs()]
    return _table("PAIRS", "Pairs that are one character.", "(char, char, char)", rows)


def _escaped(c: str) -> str:
    return f"\\u{{{ord(c):X}}}"


def _char(c: str) -> str:
    return f"'{_escaped(c)}'"


def _table(name: str, what: str, kind: str, rows: Sequence[str]) -> RustText:
    lines = [f"/// {what}", f"pub(crate) static {name}: [{kind}; {len(rows)}] = ["]
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > _COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {row},"
    return RustText("\n".join([*lines, line, "];"]))
