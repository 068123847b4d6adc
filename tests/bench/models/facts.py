"""What is known of a model before it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """What is known of a model before it runs.

    Attributes:
        macs: Multiplications with addition of an example.
        arena: Bytes of memory of a call of ours with one example, without weights.
        weights: Bytes of the weights.
        size: Bytes of the compiled crate and of its file of weights.
        compile: Seconds that rustc took for the crate without the runtime.
        missing: By the folder of a batch, why an implementation can't have the model.
    """

    macs: int
    arena: int
    weights: int
    size: int
    compile: float
    missing: dict[str, dict[str, str]]
