"""A model that strangers publish, and the archive that carries it."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Mapping
from enum import StrEnum

from converters.tf.cli.arguments import parse_shapes, parse_values
from converters.tf.load.model import LoadOptions
from converters.tf.load.shapes import FixedShapes


class Kind(StrEnum):
    """Who else computes a model."""

    ONNX = "onnxruntime"
    TFLITE = "TFLite"
    TENSORFLOW = "TensorFlow"


@dataclasses.dataclass(frozen=True)
class Archive:
    """A published package.

    Attributes:
        package: Its name.
        version: Its version.
        sha256: The hash of its only file here: a wheel, or what `npm pack` writes.
        npm: Whether it is an npm package; else it is a Python one.
    """

    package: str
    version: str
    sha256: str
    npm: bool = False

    @property
    def spec(self) -> str:
        """Returns what pip or npm calls it."""
        return f"{self.package}{'@' if self.npm else '=='}{self.version}"

    @property
    def pattern(self) -> str:
        """Returns the pattern of the file's name."""
        if self.npm:
            return f"{self.package.removeprefix('@').replace('/', '-')}-{self.version}.tgz"
        return f"{self.package.replace('-', '_')}-{self.version}-*.whl"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model of an archive.

    Attributes:
        archive: The archive.
        path: The file in it, or the folder of a SavedModel, which ends with a slash.
        does: What it does, in a few words.
        shapes: Values of `--input_shape`.
        values: Values of `--input_value`.
        batch: The value of `--batch`.
        sizes: What open dimensions besides the batch are in the two calls, by name.
        span: The lowest and the highest number of an input.
        texts: Texts that an input gets.
        tolerance: Largest difference that is allowed, over the largest element of the output.
        refused: Whether tf2rust ought to refuse it.
    """

    archive: Archive
    path: str
    does: str
    shapes: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    batch: int | None = None
    sizes: Mapping[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    span: tuple[float, float] = (-1.0, 1.0)
    texts: tuple[str, ...] = ()
    tolerance: float = 1e-4
    refused: bool = False

    @property
    def name(self) -> str:
        """Returns the package and the name of the file, which are unique."""
        return f"{self.archive.package}/{posixpath.basename(self.path.rstrip('/'))}"

    @property
    def kind(self) -> Kind:
        """Returns who else computes it."""
        ends = {".onnx": Kind.ONNX, ".tflite": Kind.TFLITE}
        return ends.get(posixpath.splitext(self.path)[1], Kind.TENSORFLOW)

    @property
    def flags(self) -> tuple[str, ...]:
        """Returns the flags of `tf2rust`."""
        shapes = (f"--input_shape {value}" for value in self.shapes)
        values = (f"--input_value {value}" for value in self.values)
        batch = () if self.batch is None else (f"--batch {self.batch}",)
        return (*shapes, *values, *batch)

    def options(self) -> LoadOptions:
        """Returns the same for the library.

        Raises:
            UsageError: A flag makes no sense.
        """
        shapes = FixedShapes(parse_shapes(self.shapes), self.batch)
        return LoadOptions(shapes, values=parse_values(self.values))
