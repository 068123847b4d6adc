"""What a user adds to an archive."""

from __future__ import annotations

from dataclasses import dataclass, field

from converters.mlf.model import Override


@dataclass(frozen=True)
class Options:
    """What the user adds to an archive.

    Attributes:
      overrides: types of tensors that the archive does not describe.
      alignment: alignment in bytes, instead of the archive's; 0 keeps it.
      raw_devices: device fields that stay raw pointers although the C calls their hooks.
      exists_once: the C has state that its text does not show, such as registers of a device.
    """

    overrides: tuple[Override, ...] = ()
    alignment: int = 0
    raw_devices: frozenset[str] = field(default_factory=frozenset)
    exists_once: bool = False
