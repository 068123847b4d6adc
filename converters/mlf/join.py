"""Joins the facts of one archive into the model; two sources of one fact have to agree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from converters.mlf.errors import ArchiveError, FormatError, MismatchError
from converters.mlf.join_facts import (
    alignment_of,
    allocator_bytes,
    devices_of,
    pools_of,
    refusal,
    report,
    run_parts,
    static_state,
)
from converters.mlf.join_headers import INCLUDE, INTERFACE, SRC, Headers, headers_of
from converters.mlf.join_io import io_slots, sanitise, tensors_of
from converters.mlf.model import (
    CFile,
    Entry,
    HiddenState,
    Interface,
    Tensor,
)
from converters.mlf.options import Options
from converters.mlf.parse.archive import METADATA, Archive
from converters.mlf.parse.c_header import Header, parse_header
from converters.mlf.parse.c_metadata import parse_c_metadata
from converters.mlf.parse.c_source import SourceFacts, parse_sources
from converters.mlf.parse.metadata import ModuleFacts, parse_metadata
from converters.mlf.parse.relay import Signature, parse_main_signature
from converters.mlf.rules import (
    CPP_SUFFIXES,
    DTYPES,
    OBJECT_SUFFIXES,
)
from tools.codegen.conversion import ConversionError, Problem, UnsupportedError, UsageError

_OBJECTS = "codegen/host/lib/"


def models_of_archive(archive: Archive, options: Options) -> tuple[Interface, ...]:
    """Returns the archive's modules sorted by name.

    Raises:
      ConversionError: every reason, of all modules, for which the archive is refused.
    """
    modules = _modules(archive)
    result = []
    errors: list[ConversionError] = []
    for facts in modules:
        try:
            result.append(_module(archive, facts, len(modules) == 1, options))
        except ConversionError as err:
            errors.append(err)
    if errors:
        kind = type(errors[0])
        raise kind(*(p for e in errors for p in e.problems))
    return tuple(result)


def _modules(archive: Archive) -> tuple[ModuleFacts, ...]:
    """Returns what `metadata.json` says; without it, an entry for each interface header."""
    if METADATA in archive.files:
        return parse_metadata(archive.text(METADATA), f"{archive.origin}:{METADATA}")
    found = [m for m in sorted(archive.files) if INTERFACE.fullmatch(m)]
    if not found:
        there = ", ".join(repr(m) for m in sorted(archive.files)[:12])
        raise ArchiveError(
            Problem(
                archive.origin,
                f"neither {METADATA!r} nor {INCLUDE + 'tvmgen_<model>.h'!r}; there are {there}",
                f"without metadata, the C has to be in {SRC} and the headers in {INCLUDE}",
            )
        )
    names = [m.removeprefix(INCLUDE + "tvmgen_").removesuffix(".h") for m in found]
    return tuple(
        ModuleFacts(n, "full-model", ("aot",), "", None, None, None, f"{archive.origin}:{n}")
        for n in names
    )


def model_of_header(text: str, where: str, library: bytes | None, options: Options) -> Interface:
    """Returns the model of a header without an archive; `library` is a static library's content."""
    header = parse_header(text, where)
    name = header.prefix.removeprefix("tvmgen_")
    facts = ModuleFacts(name, "full-model", ("aot",), "", None, None, None, where)
    sources = SourceFacts(run_symbol=header.prefix + "_run")
    signature = None
    if header.comment_inputs is not None:
        signature = Signature(header.comment_inputs, header.comment_outputs)
    return _interface(
        _Parts(name, facts, header, CFile(f"{header.prefix}.h", text), sources, {}, signature),
        options,
        library,
        Headers(),
        "a header and a static library",
    )


@dataclass(frozen=True)
class _Parts:
    """Everything read about one module."""

    name: str
    facts: ModuleFacts
    header: Header
    header_file: CFile
    sources: SourceFacts
    files: Mapping[str, str]
    signature: Signature | None


def _module(archive: Archive, facts: ModuleFacts, alone: bool, options: Options) -> Interface:
    name = facts.key
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise refusal("mangled", facts.where, f": {name!r}")
    if facts.style == "operator":
        raise refusal("operator", facts.where)
    if facts.executors != ("aot",):
        raise refusal("graph", facts.where, f"; executors {list(facts.executors)}")
    pattern = re.compile(re.escape(name) + r"_lib[0-9]{1,6}\.(c|cc|cpp|o)")
    members = [
        m
        for m in sorted(archive.files)
        if m.startswith((SRC, _OBJECTS)) and (pattern.fullmatch(m.rsplit("/", 1)[1]) or alone)
    ]
    sources = {m.removeprefix(SRC): archive.text(m) for m in members if m.endswith(".c")}
    if any(m.endswith(CPP_SUFFIXES) for m in members):
        raise refusal("cpp", facts.where, f": {[m for m in members if not m.endswith('.c')]}")
    if not sources or any(m.endswith(OBJECT_SUFFIXES) for m in members):
        raise refusal("objects", facts.where, f": {members}")
    extra = headers_of(archive, sources)
    source_facts = parse_sources(sources, archive.origin, extra.texts)
    producer = f"TVM {facts.tvm_version}" if facts.tvm_version else "TVM"
    relay = _relay_text(archive, name, alone)
    signature = parse_main_signature(relay) if relay is not None else None
    _check_whole(source_facts, extra, facts.where)
    header_name = f"tvmgen_{name.lower()}.h"
    if INCLUDE + header_name not in archive.files:
        if source_facts.metadata_file is None:
            headers = sorted(m for m in archive.files if m.startswith(INCLUDE))
            raise refusal("no_interface", facts.where, f"; no {header_name}, headers: {headers}")
        return _packed(archive, facts, sources, source_facts, extra, options, producer)
    where = f"{archive.origin}:{INCLUDE}{header_name}"
    text = archive.text(INCLUDE + header_name)
    parts = _Parts(
        name,
        facts,
        parse_header(text, where),
        CFile(header_name, text),
        source_facts,
        sources,
        signature,
    )
    return _interface(parts, options, None, extra, producer)


def _check_whole(sources: SourceFacts, extra: Headers, where: str) -> None:
    """Refuses an archive that lacks the source of a function of the model."""
    prefix = (sources.run_symbol or "").removesuffix("_run")
    if not prefix:
        return
    texts = "\n".join(extra.texts)
    missing = [
        name
        for name in sorted(sources.undefined)
        if name.startswith(prefix + "_") and not re.search(rf"\b{name}\b", texts)
    ]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise FormatError(
            Problem(
                where,
                f"the C calls {missing[0]}{more}, and no source of the archive defines it",
                "a member is missing; export the archive again",
            )
        )


def _relay_text(archive: Archive, name: str, alone: bool) -> str | None:
    candidates = [f"src/{name}.relay"] + (["src/relay.txt", "relay.txt"] if alone else [])
    for candidate in candidates:
        if candidate in archive.files:
            return archive.text(candidate)
    return None


def _interface(
    parts: _Parts,
    options: Options,
    library: bytes | None,
    extra: Headers,
    producer: str,
) -> Interface:
    header, facts, sources = parts.header, parts.facts, parts.sources
    run = sources.run_symbol
    if run is None or sources.run_packed:
        raise FormatError(
            Problem(facts.where, f"no C source defines {header.prefix}_run with the C interface")
        )
    prefix = run.removesuffix("_run")
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix, re.ASCII):
        raise refusal("mangled", facts.where, f": {prefix!r}")
    if prefix.lower() != header.prefix:
        raise MismatchError(
            Problem(
                facts.where, f"the header declares {header.prefix}_run, the source defines {run}"
            )
        )
    present = run_parts(header)
    in_pools = "map_inputs" in header.functions
    if in_pools == ("inputs" in present):
        raise FormatError(
            Problem(header.where, f"{header.prefix}_run takes {present}, map_inputs: {in_pools}")
        )
    problems: list[Problem] = []
    pools = pools_of(header, problems) if "workspace_pools" in present else ()
    inputs, outputs = tensors_of(
        header, facts, parts.signature, parts.name, options.overrides, problems
    )
    report(problems)
    state = static_state(sources, options)
    allocator = allocator_bytes(header, facts, sources)
    if allocator is not None:
        state.append(HiddenState("workspace arena of this crate", allocator))
    if header.finished_flag:
        state.append(HiddenState("accelerator with a completion flag", 4))
    elif library is not None:
        state.append(HiddenState("object code that nobody can look into", 0))
    alignment = alignment_of(sources, options, facts.where)
    slots = {}
    if in_pools:
        if not sources.io_offsets:
            raise refusal("io_offsets", facts.where)
        slots = io_slots(inputs, outputs, pools, sources.io_offsets, alignment, facts.where)
    return Interface(
        name=parts.name,
        entry=Entry.C,
        symbol_prefix=prefix,
        header_prefix=header.prefix,
        inputs=inputs,
        outputs=outputs,
        io_slots=slots,
        pools=pools,
        devices=devices_of(header, sources, options) if "devices" in present else (),
        hidden_state=tuple(state),
        allocator_bytes=allocator,
        alignment=alignment,
        finished_flag=header.finished_flag,
        starters=header.starters,
        quantization=header.quantization,
        header=parts.header_file,
        sources=tuple(CFile(n, t) for n, t in sorted(parts.files.items())),
        static_library=library,
        extra_headers=extra.extra,
        source_headers=extra.beside,
        missing_headers=tuple(
            sorted(i for i in extra.missing if i.lower() != f"{header.prefix}.h")
        ),
        producer=producer,
    )


def check_used(options: Options, models: Sequence[Interface]) -> None:
    """Raises UsageError for a type or a raw device that belongs to no model, or is given twice."""
    problems = []
    given: set[tuple[str, str]] = set()
    for item in options.overrides:
        text = f"{item.model}.{item.tensor}" if item.model else item.tensor
        key = (item.model, sanitise(item.tensor))
        fitting = [m for m in models if item.model in ("", m.name)]
        tensors = [t.name for m in fitting for t in m.inputs + m.outputs]
        if key in given:
            problems.append(Problem(f"--shape {text}", "given twice"))
        elif key[1] not in tensors:
            there = f"tensors are {', '.join(tensors)}" if fitting else "no such model"
            if not fitting:
                there += f"; models are {', '.join(m.name for m in models)}"
            problems.append(Problem(f"--shape {text}", f"no such tensor; {there}"))
        given.add(key)
    devices = sorted({d.name for m in models for d in m.devices})
    problems += [
        Problem(
            f"--raw_device {name}", f"no such device; devices are {', '.join(devices) or 'none'}"
        )
        for name in sorted(options.raw_devices - set(devices))
    ]
    if problems:
        raise UsageError(*problems)


def _packed(
    archive: Archive,
    facts: ModuleFacts,
    files: Mapping[str, str],
    sources: SourceFacts,
    extra: Headers,
    options: Options,
    producer: str,
) -> Interface:
    member = sources.metadata_file or ""
    where = f"{archive.origin}:{SRC}{member}"
    metadata = parse_c_metadata(files[member], where)
    if sources.run_symbol is None or not sources.run_packed:
        raise FormatError(Problem(where, "no C source defines a packed tvmgen_<module>_run"))
    prefix = sources.run_symbol.removesuffix("_run")
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix, re.ASCII):
        raise refusal("mangled", facts.where, f": {prefix!r}")
    if metadata.workspace_pools:
        raise refusal("packed_pools", facts.where, f": {metadata.workspace_pools}")
    problems: list[Problem] = []
    sides = []
    for kind, types, listed in (
        ("input", metadata.inputs, facts.inputs),
        ("output", metadata.outputs, facts.outputs),
    ):
        tensors = []
        for tensor in types:
            dtype = DTYPES.get(tensor.dtype)
            if dtype is None:
                raise UnsupportedError(
                    Problem(where, f"{kind} {tensor.name!r} has dtype {tensor.dtype}")
                )
            size = -(-prod(tensor.shape) * dtype.bits // 8)
            if not 0 < size <= 1 << 32:
                what = f"{kind} {tensor.name!r}: size {size} bytes; expected 1 to {1 << 32}"
                problems.append(Problem(where, what))
            tensors.append(Tensor(tensor.name, tensor.dtype, size, tensor.shape))
        if listed is not None:
            sizes = sorted((t.dtype, t.size) for t in listed)
            own = sorted((t.dtype, t.size) for t in tensors)
            if sizes != own:
                problems.append(Problem(where, f"{kind}s are {own} here, {sizes} in metadata.json"))
        if not tensors:
            problems.append(Problem(where, f"no {kind}"))
        sides.append(tuple(tensors))
    report(problems)
    state = static_state(sources, options)
    allocator = allocator_bytes(None, facts, sources)
    if allocator is not None:
        state.append(HiddenState("workspace arena of this crate", allocator))
    compiled = {n: t for n, t in files.items() if n != member or _needs_metadata(files, member)}
    return Interface(
        name=facts.key,
        entry=Entry.PACKED,
        symbol_prefix=prefix,
        header_prefix=prefix,
        inputs=sides[0],
        outputs=sides[1],
        hidden_state=tuple(state),
        allocator_bytes=allocator,
        alignment=alignment_of(sources, options, facts.where),
        sources=tuple(CFile(n, t) for n, t in sorted(compiled.items())),
        extra_headers=extra.extra,
        source_headers=extra.beside,
        missing_headers=tuple(sorted(extra.missing)),
        producer=producer,
    )


def _needs_metadata(files: Mapping[str, str], member: str) -> bool:
    return any("get_c_metadata" in text for name, text in files.items() if name != member)
