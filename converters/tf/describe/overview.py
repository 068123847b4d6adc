"""A picture of a model: a row per layer, connections at its left, in the order of the computation.

A model with many layers continues in further columns, so that the picture stays readable on a
screen. Equal models give equal bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt
from typing import TypeAlias

from PIL import Image, ImageDraw, ImageFont

#: Rows of the largest picture; it says how many more there are.
MAX_ROWS = 1000
_ROW = 22
_LANE = 9
_MAX_LANES = 40
_GAP = 24
_MARGIN = 20
_EDGE = 4
_MOST_LETTERS = 48
_FEW_ROWS = 48
_FONT = ImageFont.load_default(13)
_WHITE, _BLACK, _GREY = (255, 255, 255), (20, 20, 20), (120, 120, 120)
_LINE = (150, 160, 175)
_COLORS = {"weights": (37, 99, 180), "plain": (140, 140, 140), "port": (20, 140, 80)}

Line: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True)
class Row:
    """A layer, an input or an output of the model.

    Attributes:
        name: Its name.
        kind: Its class, or `input`, `output`.
        shape: Shape of what it gives, or empty.
        parameters: Number of its weights' elements.
        before: Rows that it reads, by index; a layer that is called again may read later ones.
    """

    name: str
    kind: str
    shape: str
    parameters: int
    before: tuple[int, ...]


@dataclass(frozen=True)
class Text:
    """A text of the picture: the place of its left upper corner, and its color."""

    at: tuple[float, float]
    text: str
    color: tuple[int, int, int]


@dataclass(frozen=True)
class Picture:
    """What is drawn where, in pixels.

    Attributes:
        size: Width and height.
        texts: All texts.
        lines: From x, y to x, y.
        dots: Centers and colors of the rows' marks.
    """

    size: tuple[int, int]
    texts: tuple[Text, ...]
    lines: tuple[Line, ...]
    dots: tuple[tuple[float, float, tuple[int, int, int]], ...]


def overview_png(title: str, rows: Sequence[Row]) -> bytes:
    """Returns the picture as a PNG file."""
    picture = layout(title, rows)
    image = Image.new("RGB", picture.size, _WHITE)
    draw = ImageDraw.Draw(image)
    for line in picture.lines:
        draw.line(line, fill=_LINE)
    for x, y, color in picture.dots:
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=color)
    masks: dict[str, Image.Image] = {}
    for text in picture.texts:
        if text.text not in masks:  # Most rows have the kind and the shape of others.
            masks[text.text] = _mask(text.text)
        at = (int(text.at[0]) - _EDGE, int(text.at[1]) - _EDGE)
        draw.bitmap(at, masks[text.text], fill=text.color)
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def layout(title: str, rows: Sequence[Row]) -> Picture:
    """Returns where everything of the picture goes.

    Args:
        title: What the picture shows.
        rows: Layers in the order of the computation; those after `MAX_ROWS` are only counted.
    """
    shown = [_cells(row) for row in rows[:MAX_ROWS]]
    readers = _readers(rows[: len(shown)])
    lanes = _lanes(readers)
    graph = _LANE * (1 + max(lanes.values(), default=0)) + _LANE
    widths = [max((_width(cells[i]) for cells in shown), default=0.0) for i in range(4)]
    column = graph + sum(w + _GAP for w in widths)
    height = max(_FEW_ROWS, ceil(sqrt(len(shown) * column / (1.6 * _ROW))))
    columns = max(1, ceil(len(shown) / height))
    place = _Place(_MARGIN + graph, column, 3 * _ROW, height)
    texts = [Text((_MARGIN, _MARGIN / 2), _title(title, rows), _BLACK)]
    dots = []
    for index, (row, cells) in enumerate(zip(rows, shown, strict=False)):
        x, y = place.dot(index)
        dots.append((x, y, _color(row)))
        left = x + _LANE
        top = y - _ROW / 2 + 3
        for cell, width, color in zip(cells[:3], widths, (_BLACK, _GREY, _GREY), strict=False):
            if cell:
                texts.append(Text((left, top), cell, color))
            left += width + _GAP
        if cells[3]:
            texts.append(Text((left + widths[3] - _width(cells[3]), top), cells[3], _GREY))
    size = (
        ceil(max(2 * _MARGIN + columns * column, 2 * _MARGIN + _width(texts[0].text))),
        ceil(place.top + (min(len(shown), height) + 1) * _ROW),
    )
    lines = [
        line
        for source, lane in lanes.items()
        for line in _bus(source, readers[source], lane, place)
    ]
    return Picture(size, tuple(texts), tuple(lines), tuple(dots))


@dataclass(frozen=True)
class _Place:
    """Places of the rows' marks.

    Attributes:
        left: Of the first column.
        column: From column to column.
        top: Of the first row.
        height: Rows of a column.
    """

    left: float
    column: float
    top: int
    height: int

    def dot(self, index: int) -> tuple[float, float]:
        """Returns the center of a row's mark."""
        column, row = divmod(index, self.height)
        return self.left + column * self.column, self.top + row * _ROW

    def spans(self, first: int, last: int) -> list[tuple[float, float, float]]:
        """Returns (x of the marks, from y, to y) in each column of the rows from first to last."""
        result = []
        for column in range(first // self.height, last // self.height + 1):
            start, end = column * self.height, (column + 1) * self.height - 1
            x, top = self.dot(max(first, start))
            bottom = self.dot(min(last, end))[1]
            half = _ROW / 2
            result.append((x, top - half * (first < start), bottom + half * (last > end)))
        return result


def _title(title: str, rows: Sequence[Row]) -> str:
    layers = sum(row.kind not in ("input", "output") for row in rows)
    text = f"{_short(title)}: {layers} layers, {sum(r.parameters for r in rows):,} parameters"
    more = len(rows) - MAX_ROWS
    return text + (f"; {more} more rows are in computation_graph.json" if more > 0 else "")


def _cells(row: Row) -> tuple[str, str, str, str]:
    parameters = f"{row.parameters:,}" if row.parameters else ""
    return _short(row.name), _short(row.kind), _short(row.shape), parameters


def _short(text: str) -> str:
    """Returns a text that Pillow's own font, of Latin letters only, can draw on a line."""
    letters = text.encode("ascii", "backslashreplace").decode()
    if len(letters) <= _MOST_LETTERS:
        return letters
    half = _MOST_LETTERS // 2 - 1
    return f"{letters[:half]}..{letters[-half:]}"


def _mask(text: str) -> Image.Image:
    """Returns which pixels a text covers, with an edge around it, as letters lean over."""
    image = Image.new("L", (ceil(_width(text)) + 2 * _EDGE, _ROW + 2 * _EDGE))
    ImageDraw.Draw(image).text((_EDGE, _EDGE), text, fill=255, font=_FONT)
    return image


@lru_cache(2 * MAX_ROWS)
def _width(text: str) -> float:
    return ceil(_FONT.getlength(text))


def _color(row: Row) -> tuple[int, int, int]:
    if row.kind in ("input", "output"):
        return _COLORS["port"]
    return _COLORS["weights" if row.parameters else "plain"]


def _readers(rows: Sequence[Row]) -> dict[int, list[int]]:
    """Returns the rows that read each row which something reads."""
    readers: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        for source in row.before:
            if source < len(rows):
                readers.setdefault(source, []).append(index)
    return readers


def _lanes(readers: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Returns the lane of each row that is read; 0 is straight down to the next row."""
    lanes: dict[int, int] = {}
    free: list[int] = []
    reach = {s: (min(s, *found), max(s, *found)) for s, found in readers.items()}
    for source in sorted(reach, key=lambda s: (reach[s][0], s)):
        first, last = reach[source]
        if (first, last) == (source, source + 1):
            lanes[source] = 0
            continue
        lane = next((i for i, end in enumerate(free) if end < first), len(free))
        if lane == len(free):
            free.append(last)
        free[lane] = last
        lanes[source] = min(lane + 1, _MAX_LANES)
    return dict(sorted(lanes.items()))


def _bus(source: int, readers: Sequence[int], lane: int, place: _Place) -> list[Line]:
    """Returns the lines from a row to all that read it, with arrows at those."""
    shift = lane * _LANE
    lines: list[Line] = []
    for x, top, bottom in place.spans(min(source, *readers), max(source, *readers)):
        lines.append((x - shift, top, x - shift, bottom))
    for index in (source, *readers):
        x, y = place.dot(index)
        if shift:
            lines.append((x - shift, y, x, y))
    for index in readers:
        x, y = place.dot(index)
        if shift:
            lines += [(x - 7, y - 3, x - 3, y), (x - 7, y + 3, x - 3, y)]
        else:
            lines += [(x - 3, y - 7, x, y - 3), (x + 3, y - 7, x, y - 3)]
    return lines
