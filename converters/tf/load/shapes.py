"""Dimensions that the conversion must know although the model leaves them open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from converters.tf.ir.dimensions import Text
from tools.codegen.conversion import Problem, UsageError
from tools.codegen.names import Scope

# Pixels of a side of an image whose size the model leaves open, as in keras.applications.
_IMAGE_SIDE = 224
# What the axes after the batch are called that a model leaves open, by the rank.
_AXES = {
    2: ("steps",),
    3: ("steps",),
    4: ("height", "width"),
    5: ("depth", "height", "width"),
}
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")
# Channels of an image.
_IMAGE_CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class FixedShapes:
    """What the caller says about the inputs' shapes.

    Attributes:
        shapes: Dimensions by input, all or all but the batch; the empty name is for an only input.
            `None` leaves one open.
        batch: The number of examples of each call; `None` leaves it to the call.
        images: Why images of open height and width get the usual size; if empty, they stay open.
        opened: Inputs whose height and width `given` left open although nobody asked for it.
        assumed: What `given` took for dimensions that nobody gave: a line for each input.
    """

    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    batch: int | None = None
    images: str = ""
    opened: list[str] = field(default_factory=list, compare=False)
    assumed: list[str] = field(default_factory=list, compare=False)

    def named(self, inputs: Sequence[tuple[str, tuple[int | None, ...]]]) -> list[tuple[Text, ...]]:
        """Returns the shapes of a model's inputs, with a name for each dimension that stays open.

        Args:
            inputs: All inputs of the model: names and shapes.

        Raises:
            UsageError: As `given`.
        """
        shapes = self.given(inputs)
        pairs = zip(inputs, shapes, strict=True)
        batch = self.batch_of([given[0] for (_, own), given in pairs if own and own[0] is None])
        several = sum(None in shape[1:] for shape in shapes) > 1
        scope = Scope()

        def dim(name: str, axis: int, rank: int) -> str:
            return scope.unique(open_name(name if several else "", axis, rank))

        return [
            tuple(
                d if d is not None else dim(name, axis, len(shape)) if axis else batch
                for axis, d in enumerate(shape)
            )
            for (name, _), shape in zip(inputs, shapes, strict=True)
        ]

    def given(
        self, inputs: Sequence[tuple[str, tuple[int | None, ...]]], sides: bool = True
    ) -> list[tuple[int | None, ...]]:
        """Returns the shapes of a model's inputs with the dimensions that the caller gives.

        Args:
            inputs: All inputs of the model: names and shapes.
            sides: Whether the sides of an image may get the usual size if they are open.

        Raises:
            UsageError: With all that is wrong: shapes for inputs that the model has not, or for
                none of several; shapes that contradict the model.
        """
        self._check([name for name, _ in inputs])
        shapes: list[tuple[int | None, ...]] = []
        problems: list[Problem] = []
        for name, shape in inputs:
            try:
                shapes.append(self._resolve(name, shape, sides))
            except UsageError as err:
                problems += err.problems
        if problems:
            raise UsageError.of(problems)
        return shapes

    def batch_of(self, given: Iterable[int | None]) -> int | None:
        """Returns the number of examples of each call, if the caller fixes it.

        Args:
            given: What the caller's shapes say that it is, where the model leaves it open.

        Raises:
            UsageError: It is given twice, in different ways.
        """
        found = sorted({n for n in (*given, self.batch) if n is not None})
        if len(found) > 1:
            what = f"batches of {' and '.join(map(str, found))}"
            raise UsageError(Problem("--input_shape", what, "give all inputs the same"))
        return found[0] if found else None

    def _check(self, names: Sequence[str]) -> None:
        available = f"the model's inputs are {', '.join(names)}"
        problems = []
        for name, shape in self.shapes.items():
            flag = f"--input_shape {f'{name}=' if name else ''}{_flag(shape)}"
            if not name and len(names) > 1:
                problems.append(Problem(flag, f"which input is meant? {available}"))
            elif name and name not in names:
                problems.append(Problem(flag, f"no input has this name; {available}"))
        if problems:
            raise UsageError.of(problems)

    def _resolve(
        self, name: str, shape: tuple[int | None, ...], sides: bool
    ) -> tuple[int | None, ...]:
        given = self.shapes.get(name, self.shapes.get(""))
        if given is not None:
            full = given if len(given) == len(shape) else (shape[0] if shape else None, *given)
            agree = len(full) == len(shape) and all(
                a in (None, b) for a, b in zip(shape, full, strict=True)
            )
            if agree:
                return full
            raise UsageError(
                Problem(
                    f"--input_shape {name}={_flag(given)}",
                    f"the model's input has the shape {_text(shape)}",
                    "give all dimensions, or all but the batch",
                )
            )
        image = sides and len(shape) == 4 and shape[3] in _IMAGE_CHANNELS
        if not image or shape[1:3] != (None, None):
            return shape
        if not self.images:
            self.opened.append(name)
            return shape
        taken = (shape[0], _IMAGE_SIDE, _IMAGE_SIDE, shape[3])
        self.assumed.append(
            f"input {name}: {_text(taken)} is taken for its shape {_text(shape)}: {self.images} "
            f"(for another size give --input_shape {name}={_flag(shape[1:])} with numbers)"
        )
        return taken

    def with_sides(self, why: str) -> FixedShapes:
        """Returns the same where images of open size stay open, or get the usual size.

        Args:
            why: Why they get it; empty to leave them open.
        """
        return replace(self, images=why, opened=[], assumed=[])


def open_name(prefix: str, axis: int, rank: int) -> str:
    """Returns a name for an open dimension: `steps`, or `tokens_steps` after an input's name.

    It is an identifier, whatever characters the input's name has.
    """
    words = _AXES.get(rank, ())
    word = words[axis - 1] if axis <= len(words) else f"axis_{axis}"
    start = _NO_WORD.sub("_", prefix).strip("_").lower()
    return f"{start}_{word}" if start else word


def _flag(dims: Sequence[int | None]) -> str:
    """Returns dimensions as the flag has them."""
    return ",".join("?" if d is None else str(d) for d in dims)


def _text(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
