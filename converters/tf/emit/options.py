"""What a crate must be like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from converters.tf import ir
from converters.tf.passes.rounded import WeightType as WeightType
from tools.codegen.cargo import CratePlace

# Weights of more bytes are a file unless something else is asked for: the compiler needs four to
# five times the memory of what it embeds.
_LARGEST_EMBEDDED = 256 << 20


# What a crate that copies the runtime does not ask.
_RUNTIME = CratePlace("path", "converters/runtime")


class WeightsMode(StrEnum):
    """Where a model's weights are; `AUTO` is `EMBED` or, for very many, `FILE`."""

    AUTO = "auto"
    EMBED = "embed"
    FILE = "file"
    BYTES = "bytes"


class Profile(StrEnum):
    """What a crate may use."""

    STD = "std"
    NO_STD = "no_std"


class Target(StrEnum):
    """What a conversion writes beside the crate."""

    CRATE = "crate"
    WEB = "web"


class RuntimeMode(StrEnum):
    """Whether the runtime comes as source or as a crate."""

    INCLUDE = "include"
    CRATE = "crate"


@dataclass(frozen=True)
class Options:
    """What a crate must be like.

    Attributes:
        name: Name of the model, in any spelling: `MnistCnn` gives the crate `mnist_cnn`.
        source: Name of the file or folder that it comes from.
        weights: Where the weights are.
        weight_type: What the elements of large weights were rounded to.
        profile: What the crate may use.
        pack: Whether a model packs copies of its matrices when it is made. Else it reads them where
            the weights lie. A crate without std never packs.
        runtime: Whether the runtime comes as source or as a crate.
        runtime_place: Where Cargo finds that crate; Bazel does not ask.
        embedded: Where Cargo finds the crate `tfp-embedded`, whose traits a crate without std then
            implements; `None` leaves them out.
        inplace: Whether elementwise ops may write over their operand.
        memdrop: Whether the memory of a tensor serves others after its last use.
        binary: Whether the output is turned into confidence levels.
        tolerance: Largest difference of the generated tests, absolute and relative.
        thresholds: Content of `thresholds.json`, or nothing for the stub.
        states: Pairs of an input and the output that it is in the next step.
        first: What inputs among these hold before the first step; others are 0.
        facts: What the model's file says of itself, names and texts.
        most: Open dimensions of a crate without std, each with the most that it may be.
        web_threads: Whether a host of WebAssembly may lend threads, which the crate's wrapper
            then needs functions for.
        from_environment: Whether the compiler finds the weights and the thresholds by the
            environment variables `MODEL_WEIGHTS` and `MODEL_THRESHOLDS`, and not in the folder.
    """

    name: str
    source: str
    weights: WeightsMode = WeightsMode.EMBED
    weight_type: WeightType = WeightType.FLOAT32
    profile: Profile = Profile.STD
    pack: bool = True
    runtime: RuntimeMode = RuntimeMode.INCLUDE
    runtime_place: CratePlace = _RUNTIME
    embedded: CratePlace | None = None
    inplace: bool = True
    memdrop: bool = True
    binary: bool = False
    tolerance: float = 1e-5
    thresholds: str = ""
    states: tuple[tuple[str, str], ...] = ()
    first: Mapping[str, ir.Array] = field(default_factory=dict)
    facts: tuple[tuple[str, str], ...] = ()
    most: tuple[tuple[str, int], ...] = ()
    web_threads: bool = False
    from_environment: bool = False

    @property
    def packs(self) -> bool:
        """Returns whether a model packs its matrices when it is made."""
        return self.pack and self.profile is Profile.STD

    def weights_for(self, size: int) -> WeightsMode:
        """Returns where weights of so many bytes are; a crate without std always embeds them."""
        if self.profile is Profile.NO_STD:
            return WeightsMode.EMBED
        if self.weights is not WeightsMode.AUTO:
            return self.weights
        return WeightsMode.EMBED if size <= _LARGEST_EMBEDDED else WeightsMode.FILE
