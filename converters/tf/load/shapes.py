"""Dimensions that the conversion must know although the model leaves them open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tools.codegen.conversion import Problem, UsageError

# Pixels of a side of an image whose size the model leaves open, as in keras.applications.
_IMAGE_SIDE = 224
# Channels of an image.
_IMAGE_CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class FixedShapes:
    """What the caller says about the inputs' shapes.

    Attributes:
        shapes: Dimensions without the batch, by input; the empty name is for an only input.
        assumed: What `resolved` took for dimensions that nobody gave: a line for each input.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list, compare=False)

    def resolved(
        self, inputs: Sequence[tuple[str, tuple[int | None, ...]]]
    ) -> list[tuple[int | None, ...]]:
        """Returns the shapes of a model's inputs with every dimension but the first known.

        Args:
            inputs: All inputs of the model: names and shapes.

        Raises:
            UsageError: With everything at once: shapes for inputs that the model has not, or for
                none of several; dimensions that stay open; shapes that contradict the model.
        """
        self._check([name for name, _ in inputs])
        shapes: list[tuple[int | None, ...]] = []
        problems: list[Problem] = []
        for name, shape in inputs:
            try:
                shapes.append(self._resolve(name, shape))
            except UsageError as err:
                problems += err.problems
        if problems:
            raise UsageError.of(problems)
        return shapes

    def _check(self, names: Sequence[str]) -> None:
        available = f"the model's inputs are {', '.join(names)}"
        problems = []
        for name, shape in self.shapes.items():
            flag = f"--input_shape {f'{name}=' if name else ''}{','.join(map(str, shape))}"
            if not name and len(names) > 1:
                problems.append(Problem(flag, f"which input is meant? {available}"))
            elif name and name not in names:
                problems.append(Problem(flag, f"no input has this name; {available}"))
        if problems:
            raise UsageError.of(problems)

    def _resolve(self, name: str, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        given = self.shapes.get(name, self.shapes.get(""))
        if given is not None:
            full = (shape[0] if shape else None, *given)
            agree = len(full) == len(shape) and all(
                a is None or a == b for a, b in zip(shape[1:], given, strict=True)
            )
            if not agree:
                raise UsageError(
                    Problem(
                        f"--input_shape {name}={','.join(map(str, given))}",
                        f"the model's input has the shape {_text(shape)}",
                    )
                )
            return full
        if None not in shape[1:]:
            return shape
        if len(shape) == 4 and shape[3] in _IMAGE_CHANNELS and shape[1] in (None, _IMAGE_SIDE):
            taken = (shape[0], _IMAGE_SIDE, shape[2] or _IMAGE_SIDE, shape[3])
            self.assumed.append(
                f"input {name}: its shape {_text(shape)} leaves the size open; {_text(taken)} is "
                f"taken, for another give --input_shape {name}="
                + ",".join(str(d or "?") for d in shape[1:])
            )
            return taken
        raise UsageError(
            Problem(
                f"input {name}",
                f"its shape {_text(shape)} leaves more open than the batch",
                f"give --input_shape {name}=" + ",".join(str(d or "?") for d in shape[1:]),
            )
        )


def _text(shape: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
