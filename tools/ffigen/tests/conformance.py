"""Comparison of ffigen's bindings with bindgen's, and the table of their differences.

Every difference has a row with its reason; a row that matches nothing is stale, and an error too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tools.ffigen.tests.listing import Listing

# Names that the two write differently: bindgen's, ours.
RENAMED: dict[str, str] = {
    # A reserved word: bindgen appends an underscore, we write a raw identifier.
    "type_": "type",
    "priv_": "priv",
    "ref_": "ref",
    # bindgen takes primitive type names for reserved; they are not.
    "str_": "str",
    # A type without a name: bindgen counts them, we name them after the member that has the type.
    "TF_TString__bindgen_ty_1": "TF_TString_u",
    "TF_Filesystem_Option_Value_Union__bindgen_ty_1": "TF_Filesystem_Option_Value_Union_buffer_val",
    "PJRT_NamedValue__bindgen_ty_1": "PJRT_NamedValue_anon1",
    "PJRT_Buffer_MemoryLayout__bindgen_ty_1": "PJRT_Buffer_MemoryLayout_anon1",
    # A member without a name.
    "__bindgen_anon_1": "anon1",
    # C++ linkage: bindgen puts the namespace into the name, we keep it in the symbol only.
    "tensorflow_kDlTensorCapsuleName": "kDlTensorCapsuleName",
    "tensorflow_TFE_CallDLManagedTensorDeleter": "TFE_CallDLManagedTensorDeleter",
    "tensorflow_TFE_GetDLDevice": "TFE_GetDLDevice",
    "tensorflow_TFE_HandleFromDLPack": "TFE_HandleFromDLPack",
    "tensorflow_TFE_HandleToDLPack": "TFE_HandleToDLPack",
}


@dataclass(frozen=True)
class Row:
    """A known difference.

    Attributes:
        pattern: A regular expression over the whole `kind name`.
        own: What ours has: a regular expression over the rest of the line, or None for no item.
        bindgen: What bindgen has, likewise.
        reason: Why they differ.
    """

    pattern: str
    own: str | None
    bindgen: str | None
    reason: str


_TYPED = "bindgen gives any positive macro the type u32; the C expression has type int"
DIFFERENCES: tuple[Row, ...] = (
    Row(r"const (SE|GO|TP)_(MAJOR|MINOR|PATCH)", r": c_int = \d+", r": u32 = \d+", _TYPED),
    Row(r"const PJRT_API_(MAJOR|MINOR)", r": c_int = \d+", r": u32 = \d+", _TYPED),
    Row(r"const TFE_CUSTOM_DEVICE_VERSION", r": c_int = 4", r": u32 = 4", _TYPED),
    Row(r"const TF_TSTRING_LITTLE_ENDIAN", r": c_int = 1", r": u32 = 1", _TYPED),
    Row(
        r"const PJRT_\w+_STRUCT_SIZE",
        r": usize = \d+",
        r": c_uint = \d+",
        "an unnamed enum's value that is compared with struct_size fields: usize, as those are",
    ),
    Row(
        r"const TF_[A-Z_]+",
        r": TSL_Code = TSL_[A-Z_]+",
        None,
        "a macro over an enumerator, which bindgen does not evaluate",
    ),
    Row(
        r"type TF_(Bool|PayloadVisitor)",
        r" = \w+",
        None,
        "a macro over a type, which bindgen does not see",
    ),
    Row(
        r"type (SE_InitPlugin|TF_InitKernel|TF_InitGraph|TF_InitProfiler|TF_InitPlugin)",
        r" = fn\(.*\)",
        None,
        "an entry point is a type: TensorFlow has no such function, the plug-in defines it",
    ),
    Row(
        r"fn (SE_InitPlugin|TF_InitKernel|TF_InitGraph|TF_InitProfiler|TF_InitPlugin)",
        None,
        r"\(.*\)",
        "an entry point is a type: TensorFlow has no such function, the plug-in defines it",
    ),
    Row(
        r"const kDlTensorCapsuleName",
        r': &CStr = c"dltensor"',
        r': &\[u8; 9\] = c"dltensor"',
        "a C string is a CStr",
    ),
    Row(
        r"fn TFE_NewTensorHandle1",
        None,
        r"\(\*const tensorflow_Tensor, .*",
        "excluded: an overload over a C++ class",
    ),
    Row(r"opaque tensorflow_Tensor", None, "", "excluded: the C++ class of that overload"),
    Row(
        r"type TF_Code",
        r" = TSL_Code",
        None,
        "a typedef of an enum, which bindgen writes as `pub use ... as`",
    ),
    Row(
        r"offset PJRT_(NamedValue|Buffer_MemoryLayout)\.anon1",
        r" = \d+",
        None,
        "bindgen asserts no offset of a member without a name (but of all members after it)",
    ),
    Row(
        r"layout \w+",
        r": size 4, align 4",
        None,
        "bindgen asserts no layout of enums, which it takes for integers",
    ),
)


def compare(own: Listing, bindgen: Listing) -> tuple[list[str], list[Row]]:
    """Compares two listings.

    Args:
        own: ffigen's.
        bindgen: bindgen's, as `from_bindgen` returns it.

    Returns:
        The differences without a row, and the rows without a difference.
    """
    left, right = dict(own.lines), dict(bindgen.lines)
    _as_bindgen_writes_function_types(left)
    unexplained: list[str] = []
    used: set[Row] = set()
    for key in sorted(left.keys() | right.keys()):
        mine, theirs = left.get(key), right.get(key)
        if mine == theirs:
            continue
        row = next((r for r in DIFFERENCES if _matches(r, key, mine, theirs)), None)
        if row is None:
            unexplained.append(f"{key}\n  ffigen:  {mine}\n  bindgen: {theirs}")
        else:
            used.add(row)
    return unexplained, [row for row in DIFFERENCES if row not in used]


def from_bindgen(listing: Listing) -> Listing:
    """Writes bindgen's names as ours: `RENAMED`, and unnamed enums as their integer type."""
    integers = {
        key.split()[1]: rest[1:-1]
        for key, rest in listing.lines.items()
        if re.fullmatch(r"newtype _bindgen_ty_\d+", key)
    }
    words = re.compile(
        "|".join(rf"(?<![A-Za-z0-9]){re.escape(name)}\b" for name in sorted(RENAMED, reverse=True))
    )
    out: dict[str, str] = {}
    for key, rest in listing.lines.items():
        if key.split()[1] in integers:
            continue
        rest = re.sub(r"\b_bindgen_ty_\d+\b", lambda m: integers.get(m[0], m[0]), rest)
        new_key = words.sub(lambda m: RENAMED[m[0]], key)
        out[new_key] = words.sub(lambda m: RENAMED[m[0]], rest)
    return Listing(out)


def _matches(row: Row, key: str, own: str | None, bindgen: str | None) -> bool:
    return (
        re.fullmatch(row.pattern, key) is not None
        and _side_matches(row.own, own)
        and _side_matches(row.bindgen, bindgen)
        and (own is None or bindgen is None or _value(own) == _value(bindgen))
    )


def _side_matches(pattern: str | None, text: str | None) -> bool:
    if pattern is None or text is None:
        return pattern is None and text is None
    return re.fullmatch(pattern, text) is not None


def _value(text: str) -> str:
    return text.rpartition(" = ")[2]


def _as_bindgen_writes_function_types(lines: dict[str, str]) -> None:
    """Rewrites typedefs of functions: ours name the function, bindgen's the pointer to it."""
    names = [
        key.split()[1]
        for key, rest in lines.items()
        if key.startswith("type ") and rest.startswith(" = fn(")
    ]
    pointers = re.compile(r"Option<(" + "|".join(names) + r")>")
    for key, rest in lines.items():
        kind, name = key.split()
        if kind == "type" and name in names and name.startswith("PJRT_"):
            lines[key] = f" = Option<{rest.removeprefix(' = ')}>"
        else:
            lines[key] = pointers.sub(r"\1", rest)
