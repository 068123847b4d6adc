"""Facts that only the C sources hold: offsets of I/O in pools, hidden state, alignment, hooks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from converters.mlf.errors import FormatError
from converters.mlf.parse.c_storage import mark_constant_sections, mutable_objects
from converters.mlf.parse.c_text import split_comments
from tools.codegen.conversion import Problem

_NUMBER = r"([0-9]{1,18})"
_RUN = re.compile(r"\bint32_t\s{1,8}(tvmgen_[^\s()]{1,256}_run)\s{0,8}\(([^){]{0,4096})\)\s{0,8}\{")
_ALIGNED = re.compile(r"\baligned\(([0-9]{1,6})\)")
_HOOK = re.compile(r"\bTVMDevice(\w{1,200}?)(Activate|Open|Close|Deactivate)\s{0,4}\(")
_MAP = re.compile(
    r"\bstruct\s{1,8}\w{1,256}\s{1,8}(tvmgen_\w{1,256})_map_(inputs|outputs)\s{0,4}\([^{};]{0,1024}\)\s{0,8}\{"
)
_OFFSET = re.compile(
    r"\.([^\s=]{1,256})\s{0,8}=\s{0,8}&\(\(uint8_t\s?\*\)workspace_pools->([^\s)]{1,256})\)\["
    + _NUMBER
    + r"\]"
)
#: Weights, which hold no fact and may be megabytes.
_NUMBERS = re.compile(r"\{[^;{}()]{256,}+\}")
_INCLUDE = re.compile(r"^[ \t]{0,64}#[ \t]{0,8}include[ \t]{0,8}[<\"]([^>\"\n]{1,512})[>\"]", re.M)
_QUOTED = re.compile(r"^[ \t]{0,64}#[ \t]{0,8}include[ \t]{0,8}\"([^>\"\n]{1,512})\"", re.M)
_CALL = re.compile(r"\b(TVM[A-Za-z]\w{2,200})\s{0,4}\(")
_DEFINITION = re.compile(r"[\w*]\s{1,8}(\w{1,256})\s{0,4}\([^){;]{0,4096}\)\s{0,8}\{")
_OWN_CALL = re.compile(r"\b(tvmgen_\w{1,256})\s{0,4}\(")


@dataclass(frozen=True)
class SourceFacts:
    """Facts of one module's C sources taken together.

    Attributes:
      run_symbol: the entry point as the C spells it; None if no source defines one.
      run_packed: the entry point takes TVM's packed arguments.
      run_file: member that defines the entry point.
      static_workspaces: (name, bytes) of objects that keep state between calls, as a static pool
        does; 0 bytes when it is not an array of bytes.
      alignment: greatest `aligned(n)`; 0 if there is none.
      hooks: device name as in the hook ("EthosU") -> hooks called, in the order of their lives.
      io_offsets: ("inputs"|"outputs", field) -> (pool, byte offset).
      calls: every called function whose name starts with "TVM", less those defined here.
      undefined: every declared or called function whose name starts with "tvmgen_" and that is not
        defined here.
      metadata_file: member with `kTvmgenMetadata`, or None.
    """

    run_symbol: str | None = None
    run_packed: bool = False
    run_file: str = ""
    static_workspaces: tuple[tuple[str, int], ...] = ()
    alignment: int = 0
    hooks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    io_offsets: Mapping[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    calls: frozenset[str] = frozenset()
    undefined: frozenset[str] = frozenset()
    metadata_file: str | None = None


def included(text: str) -> tuple[tuple[str, bool], ...]:
    """Returns the names that a C file includes, and whether each is in quotes."""
    quoted = set(_QUOTED.findall(text))
    return tuple((name, name in quoted) for name in sorted(set(_INCLUDE.findall(text))))


HOOKS = ("Activate", "Open", "Close", "Deactivate")


def parse_sources(
    sources: Mapping[str, str], where: str, headers: Sequence[str] = ()
) -> SourceFacts:
    """Collects facts from all C sources of one module.

    Args:
      sources: member name -> text.
      where: archive name, for messages.
      headers: texts of the headers that they include: what is defined there is theirs.

    Raises:
      FormatError: two sources define the entry point, or a tensor has two offsets.
    """
    facts = SourceFacts()
    hooks: dict[str, set[str]] = {}
    offsets: dict[tuple[str, str], tuple[str, int]] = {}
    calls: set[str] = set()
    own_calls: set[str] = set()
    defined: set[str] = set()
    codes: list[str] = []
    texts = [("a header", text) for text in headers]
    for name, text in [*sorted(sources.items()), *texts]:
        code, _ = split_comments(mark_constant_sections(text))
        code = _NUMBERS.sub("{}", code)
        calls.update(_CALL.findall(code))
        own_calls.update(_OWN_CALL.findall(code))
        defined.update(_DEFINITION.findall(code))
        alignment = max((int(n) for n in _ALIGNED.findall(code)), default=0)
        facts = replace(facts, alignment=max(facts.alignment, alignment))
        codes.append(code)
        for device, hook in _HOOK.findall(code):
            hooks.setdefault(device, set()).add(hook)
        for found in _RUN.finditer(code):
            if facts.run_symbol is not None:
                raise FormatError(
                    Problem(
                        f"{where}:{name}",
                        f"defines {found[1]}; {facts.run_file} defines {facts.run_symbol}",
                    )
                )
            packed = "num_args" in found[2]
            facts = replace(facts, run_symbol=found[1], run_packed=packed, run_file=name)
        for key, value in _io_offsets(code, f"{where}:{name}"):
            if offsets.setdefault(key, value) != value:
                raise FormatError(
                    Problem(f"{where}:{name}", f"{key[1]} at {value} and {offsets[key]}")
                )
        if name in sources and "kTvmgenMetadata" in code and "struct TVMMetadata " in code:
            facts = replace(facts, metadata_file=name)
    return replace(
        facts,
        static_workspaces=tuple(sorted(mutable_objects(codes))),
        hooks={d: tuple(h for h in HOOKS if h in hooks[d]) for d in sorted(hooks)},
        io_offsets=offsets,
        calls=frozenset(calls - defined),
        undefined=frozenset(own_calls - defined),
    )


def _io_offsets(code: str, where: str) -> list[tuple[tuple[str, str], tuple[str, int]]]:
    result = []
    for function in _MAP.finditer(code):
        end = code.find("return", function.end())
        body = code[function.end() : end if end > 0 else len(code)]
        for member, pool, offset in _OFFSET.findall(body):
            if not re.fullmatch(r"[A-Za-z_]\w*", member, re.ASCII):
                raise FormatError(
                    Problem(
                        where,
                        f"{member!r} is not a C identifier, so the exported C cannot compile",
                        f"rename the {function[2].removesuffix('s')} and export again",
                    )
                )
            result.append(((function[2], member), (pool, int(offset))))
    return result
