"""What the header and the C of one model say, checked: pools, memory, devices, alignment."""

from __future__ import annotations

from collections.abc import Sequence

from converters.mlf.errors import FormatError, MismatchError
from converters.mlf.model import Device, HiddenState, Pool, PoolKind
from converters.mlf.options import Options
from converters.mlf.parse.c_header import PART_NAMES, Header
from converters.mlf.parse.c_source import SourceFacts
from converters.mlf.parse.metadata import ModuleFacts
from converters.mlf.rules import (
    MAX_ALIGNMENT,
    MIN_ALIGNMENT,
    REFUSALS,
    RUNTIME_FUNCTIONS,
    UNPROVIDED_FUNCTIONS,
)
from tools.codegen.conversion import Problem, UnsupportedError


def refusal(key: str, where: str, detail: str = "") -> UnsupportedError:
    """Returns the error of a rule of `REFUSALS`, with what was found."""
    rule = REFUSALS[key]
    return UnsupportedError(Problem(where, rule.what + detail, rule.advice))


def static_state(sources: SourceFacts, options: Options) -> list[HiddenState]:
    """Returns the state of the C that one model at a time may use."""
    state = [
        HiddenState(f"static {'pool' if size else 'object'} `{name}` in the C", size)
        for name, size in sources.static_workspaces
    ]
    if options.exists_once:
        state.append(HiddenState("state that the C does not show, as --exists_once says", 0))
    return state


def report(problems: Sequence[Problem]) -> None:
    """Raises MismatchError with all problems, if there are any."""
    if problems:
        raise MismatchError(*problems)


def run_parts(header: Header) -> tuple[str, ...]:
    """Returns the structs that the run function takes, in order.

    Raises:
      FormatError: It takes something else, or in another order.
    """
    function = header.functions["run"]
    expected = {f"struct {header.prefix}_{part} *": part for part in PART_NAMES}
    found = []
    for param in function.params:
        kind = param.rpartition("*")[0] + "*"
        part = expected.get(kind.strip())
        if part is None or part not in header.structs:
            raise FormatError(
                Problem(
                    f"{header.where}:{function.line}",
                    f"{header.prefix}_run has parameter `{param}`; expected pointers to structs "
                    + ", ".join(sorted(expected.values())),
                )
            )
        found.append(part)
    if found != [p for p in PART_NAMES if p in found] or function.returns != "int32_t":
        raise FormatError(
            Problem(
                f"{header.where}:{function.line}",
                f"{function.returns} {header.prefix}_run({', '.join(found)}); expected int32_t "
                f"and the order {', '.join(PART_NAMES)}",
            )
        )
    return tuple(found)


def pools_of(header: Header, problems: list[Problem]) -> tuple[Pool, ...]:
    """Returns the memory pools of the header; data of another size becomes a problem.

    Raises:
      FormatError: A pool without a size, or data that are not bytes.
    """
    result = []
    for name in header.structs["workspace_pools"]:
        macro = f"{header.prefix}_{name}".upper()
        constant = header.defines.get(f"{macro}_CONSTANT_POOL_SIZE")
        workspace = header.defines.get(f"{macro}_WORKSPACE_POOL_SIZE")
        define = constant or workspace
        size = define.integer() if define is not None else None
        if define is None or size is None or not 0 <= size <= 1 << 32:
            shown = repr(define.value[:40]) if define is not None else "no size macro"
            raise FormatError(
                Problem(
                    header.where, f"pool {name!r} has {shown}; expected {macro}_*_POOL_SIZE bytes"
                )
            )
        data = b""
        if constant is not None:
            text = header.defines.get(f"{macro}_CONSTANT_POOL_DATA")
            octets = text.octets() if text is not None else b""
            if octets is None:
                raise FormatError(
                    Problem(
                        f"{header.where}:{constant.line}",
                        f"{macro}_CONSTANT_POOL_DATA is not bytes",
                    )
                )
            data = octets
            if len(data) != size:
                problems.append(
                    Problem(
                        f"{header.where}:{constant.line}",
                        f"constant pool {name!r} has size {size}, its data has {len(data)} bytes",
                    )
                )
        kind = PoolKind.CONSTANT if constant is not None else PoolKind.WORKSPACE
        result.append(Pool(name, kind, size, data))
    return tuple(result)


def allocator_bytes(header: Header | None, facts: ModuleFacts, sources: SourceFacts) -> int | None:
    """Returns the bytes of workspace that the C allocates; None if it allocates nothing.

    Raises:
      UnsupportedError: The C calls functions of TVM that a crate cannot provide.
      MismatchError: Header and metadata disagree about the size.
      FormatError: Nothing says the size.
    """
    _check_calls(sources, facts.where)
    if "TVMBackendAllocWorkspace" not in sources.calls:
        return None
    define = header.defines.get(f"{header.prefix}_workspace_size".upper()) if header else None
    size = define.integer() if define is not None else None
    if size is not None and facts.workspace_size is not None and size != facts.workspace_size:
        raise MismatchError(
            Problem(
                facts.where,
                f"workspace_size_bytes is {facts.workspace_size}, the header's macro says {size}",
            )
        )
    size = facts.workspace_size if size is None else size
    if size is None or not 0 <= size <= 1 << 32:
        raise FormatError(
            Problem(facts.where, "the C allocates workspace, and nothing tells how much it needs")
        )
    return size


def _check_calls(sources: SourceFacts, where: str) -> None:
    problems = [
        Problem(where, f"the C calls {name} of TVM's runtime", UNPROVIDED_FUNCTIONS[name])
        for name in sorted(sources.calls & set(UNPROVIDED_FUNCTIONS))
    ]
    problems += [
        Problem(where, f"the C calls {name}, which this crate cannot provide")
        for name in sorted(sources.calls - set(UNPROVIDED_FUNCTIONS) - set(RUNTIME_FUNCTIONS))
        if name.startswith(("TVMBackend", "TVMFunc", "TVMArray", "TVMMod"))
    ]
    if problems:
        raise UnsupportedError(*problems)


def alignment_of(sources: SourceFacts, options: Options, where: str) -> int:
    """Returns the alignment of a model's memory in bytes.

    Raises:
      UnsupportedError: It is not a power of two, or too large.
      MismatchError: The C needs more than the user asks for.
    """
    value = options.alignment or max(MIN_ALIGNMENT, sources.alignment)
    if value < 1 or value & (value - 1) or value > MAX_ALIGNMENT:
        raise UnsupportedError(
            Problem(where, f"alignment {value}; expected a power of two up to {MAX_ALIGNMENT}")
        )
    if value < sources.alignment:
        raise MismatchError(
            Problem(where, f"alignment {value} asked for, the C says aligned({sources.alignment})")
        )
    return value


def devices_of(header: Header, sources: SourceFacts, options: Options) -> tuple[Device, ...]:
    """Returns the devices that the run function takes, with the hooks that the C calls."""
    by_field = {name.lower(): name for name in sources.hooks}
    result = []
    for name in header.structs["devices"]:
        hook = by_field.get(name.replace("_", "").lower(), "")
        if name in options.raw_devices:
            hook = ""
        result.append(Device(name, hook, sources.hooks.get(hook, ())))
    return tuple(result)
