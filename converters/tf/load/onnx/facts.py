"""What an ONNX file says of itself."""

from __future__ import annotations

from typing import Any

# A longer text is rather data than a description.
_LONGEST = 16_384
_FIELDS = ("producer_name", "producer_version", "domain", "doc_string")


def facts(model: Any) -> tuple[tuple[str, str], ...]:
    """Returns names and texts: of the producer, then of the properties, in the file's order.

    Args:
        model: A `ModelProto`. Texts that are empty or longer than 16,384 characters are left out,
            and bytes that are not text become U+FFFD.
    """
    found = [(name, _text(getattr(model, name))) for name in _FIELDS]
    found += [(_text(each.key), _text(each.value)) for each in model.metadata_props]
    return tuple((k, v) for k, v in found if v and max(len(k), len(v)) <= _LONGEST)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
