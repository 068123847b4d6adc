"""Changes of protocol buffers, by what their messages say of themselves."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz import edits

# Fields that are bytes of numbers or of other messages are changed less often than what names them.
_DULL = 0.2


def _messages(message: Any) -> list[Any]:
    """Returns a message and all below it."""
    found = [message]
    for at in found:
        for field, value in at.ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                if field.message_type.fields_by_name["value"].message_type is not None:
                    found.extend(value[key] for key in sorted(value))
            elif field.is_repeated:
                found.extend(value)
            else:
                found.append(value)
    return found


def edit(choose: random.Random, message: Any) -> None:
    """Changes one field of a message or of one below it."""
    found = _messages(message)
    for _ in range(20):
        at = choose.choice(found)
        fields = at.DESCRIPTOR.fields
        if not fields:
            continue
        given = [field for field, _ in at.ListFields()]
        field = choose.choice(given) if given and choose.random() < 0.85 else choose.choice(fields)
        if field.type == field.TYPE_BYTES and choose.random() > _DULL:
            continue
        if _edited(choose, at, field, found):
            return


def _edited(choose: random.Random, at: Any, field: Any, found: list[Any]) -> bool:
    """Changes a field; returns whether it could."""
    if choose.random() < 0.1:
        at.ClearField(field.name)
        return True
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _map(choose, getattr(at, field.name), field)
    if field.is_repeated:
        return _list(choose, getattr(at, field.name), field, found)
    if field.message_type is not None:
        return _copied(choose, getattr(at, field.name), found)
    try:
        setattr(at, field.name, _scalar(choose, field, getattr(at, field.name)))
    except (ValueError, TypeError):
        return False
    return True


def _copied(choose: random.Random, into: Any, found: list[Any]) -> bool:
    """Copies another message of the same type over one."""
    like = [m for m in found if m.DESCRIPTOR is into.DESCRIPTOR and m is not into]
    if not like:
        into.SetInParent()
        return True
    chosen = choose.choice(like)
    copy = type(chosen)()
    copy.CopyFrom(chosen)
    into.CopyFrom(copy)
    return True


def _map(choose: random.Random, items: Any, field: Any) -> bool:
    keys = sorted(items)
    if not keys:
        return False
    key, other = choose.choice(keys), choose.choice(keys)
    value = field.message_type.fields_by_name["value"]
    if choose.random() < 0.3:
        del items[key]
    elif value.message_type is not None:
        if key == other:
            return False
        copy = type(items[other])()
        copy.CopyFrom(items[other])
        items[key].CopyFrom(copy)
    else:
        items[key] = _scalar(choose, value, items[key])
    return True


def _list(choose: random.Random, items: Any, field: Any, found: list[Any]) -> bool:
    kind = choose.random()
    if field.message_type is not None:
        if not len(items):
            items.add()
            return True
        at, other = choose.randrange(len(items)), choose.randrange(len(items))
        if kind < 0.25:
            del items[at]
        elif kind < 0.5:
            items.add().CopyFrom(items[at])
        elif kind < 0.75 and at != other:
            copy = type(items[at])()
            copy.CopyFrom(items[other])
            items[at].CopyFrom(copy)
        else:
            return _copied(choose, items[at], found)
        return True
    try:
        if not len(items) or kind < 0.25:
            items.append(_scalar(choose, field, items[0] if len(items) else _nothing(field)))
            return True
        at, other = choose.randrange(len(items)), choose.randrange(len(items))
        if kind < 0.45:
            del items[at]
        elif kind < 0.65:
            items[at], items[other] = items[other], items[at]
        elif kind < 0.75:
            items[at] = items[other]
        else:
            items[at] = _scalar(choose, field, items[at])
    except (ValueError, TypeError):
        return False
    return True


def _nothing(field: Any) -> Any:
    if field.type == field.TYPE_STRING:
        return ""
    return b"" if field.type == field.TYPE_BYTES else 0


def _scalar(choose: random.Random, field: Any, old: Any) -> Any:
    """Returns a value in place of another one of a field."""
    if field.enum_type is not None:
        return choose.choice([v.number for v in field.enum_type.values])
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return edits.number(choose, old)
    if isinstance(old, float):
        return choose.choice((*edits.FLOATS, old * 2, -old))
    if isinstance(old, bytes):
        kind = choose.random()
        if kind < 0.3:
            return edits.text(choose, old.decode("utf-8", "replace")).encode("utf-8", "replace")
        return edits.octets(choose, old)
    return edits.text(choose, old)
