"""Pictures of drawn things: `things.json` says what a thing consists of, chance how it is drawn.

The file has a list of ways to draw each thing. A way is a list of parts, and a part is painted over
those before it. It is a closed `ring` or an open `path` of points, or an `ellipse`: its middle and
half its width and height. Points are right and down, -1 to 1. Parts of one `colour` have the same
one; a part that is `maybe` is often left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from examples.tf2rust.scenes import Array, Random, background, photographed, places

SIZE = 64
THINGS: dict[str, list[list[dict[str, Any]]]] = json.loads(
    Path(__file__).with_name("things.json").read_text("utf-8")
)
# As the page names them, in this order.
KINDS = ("none", *THINGS)

# Pixels of the camera, which the page shrinks, and of the canvas for one of them in each direction.
_SEEN, _FINE = 96, 3
Colour: TypeAlias = tuple[int, int, int]


def _points(part: dict[str, Any]) -> tuple[Array, bool]:
    """Returns the points of a part `[count, 2]`, and whether it is closed."""
    if "ellipse" in part:
        x, y, width, height = part["ellipse"]
        angle = np.linspace(0, 2 * np.pi, 28, endpoint=False)
        return np.stack([x + width * np.cos(angle), y + height * np.sin(angle)], 1), True
    return np.array(part.get("ring") or part["path"], float), "ring" in part


def _rounded(points: Array, closed: bool) -> Array:
    """Cuts each corner once, as a quick hand does."""
    after = np.roll(points, -1, 0) if closed else points[1:]
    before = points if closed else points[:-1]
    cut = np.stack([0.8 * before + 0.2 * after, 0.2 * before + 0.8 * after], 1).reshape(-1, 2)
    return cut if closed else np.concatenate([points[:1], cut, points[-1:]])


def _parts(random: Random, kind: str) -> list[tuple[Array, bool, int]]:
    """Returns the parts of a thing as some hand draws them, each with the number of its colour."""
    way = THINGS[kind][random.integers(len(THINGS[kind]))]
    round_corners = random.random() < 0.4
    found = []
    for part in way:
        if part.get("maybe") and random.random() < 0.5:
            continue
        points, closed = _points(part)
        middle = points.mean(0)
        points = middle + (points - middle) * random.uniform(0.88, 1.14, 2)
        points += random.normal(size=2) * 0.02
        if round_corners:
            points = _rounded(points, closed)
        found.append((points + random.normal(size=points.shape) * 0.008, closed, part["colour"]))
    # The whole is bent, slanted, stretched, turned and put somewhere.
    waves, phases = random.normal(size=(2, 2)) * 1.3, random.uniform(0, 2 * np.pi, 2)
    bend = random.uniform(0, 0.07)
    matrix = np.eye(2) * random.uniform(0.8, 1.2, 2) + random.uniform(-0.15, 0.15, (2, 2))
    matrix[:, 0] *= random.choice([-1, 1])
    angle = np.clip(random.normal() * 0.2, -0.6, 0.6)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    size, place = random.uniform(0.42, 0.85), random.uniform(-0.2, 0.2, 2)
    return [
        (
            (points + bend * np.sin(points @ waves + phases)) @ (turn @ matrix * size).T + place,
            *rest,
        )
        for points, *rest in found
    ]


def _colour(random: Random, behind: Array, least: float = 0.2) -> Array:
    """Returns a colour that differs from another one."""
    colour = random.uniform(0, 1, 3)
    while np.abs(colour - behind).mean() < least:
        colour = random.uniform(0, 1, 3)
    return colour


def _bytes(colour: Array) -> Colour:
    red, green, blue = np.rint(np.clip(colour, 0, 1) * 255).astype(int).tolist()
    return red, green, blue


def _stroke(
    pen: ImageDraw.ImageDraw, points: list[tuple[float, float]], colour: Colour, width: int
) -> None:
    pen.line(points, colour, width, "curve")
    # Ends are round.
    for x, y in (points[0], points[-1]):
        pen.ellipse([x - width / 2, y - width / 2, x + width / 2, y + width / 2], colour)


def _on_canvas(points: Array) -> list[tuple[float, float]]:
    return [(x, y) for x, y in ((points + 1) / 2 * _SEEN * _FINE).tolist()]


def _clutter(random: Random, pen: ImageDraw.ImageDraw, count: int, largest: float) -> None:
    """Draws lines and blobs that are not a thing."""
    for _ in range(count):
        middle, size = random.uniform(-1, 1, 2), random.uniform(0.05, largest)
        corners = int(random.integers(2, 9))
        points = middle + size * random.normal(size=(corners, 2))
        if random.random() < 0.5 and corners > 2:
            angle = np.sort(random.uniform(0, 2 * np.pi, corners))
            points = middle + size * np.stack([np.cos(angle), np.sin(angle)], 1)
        if random.random() < 0.5:
            points = _rounded(_rounded(points, False), False)
        colour = _bytes(random.uniform(0, 1, 3))
        if random.random() < 0.4 and corners > 2:
            pen.polygon(_on_canvas(points), colour)
        else:
            _stroke(pen, _on_canvas(points), colour, int(random.integers(2, 12)))


def _thing(random: Random, pen: ImageDraw.ImageDraw, kind: str, behind: Array) -> None:
    """Draws a thing by lines alone, or fills its parts, with lines around them or without."""
    filled = random.random() < 0.5
    outlined = not filled or random.random() < 0.5
    line = _colour(random, behind, 0.3)
    if random.random() < 0.5 and behind.mean() > 0.45:
        line = line * 0.3
    width = max(2, int(_SEEN * _FINE * random.uniform(0.012, 0.04)))
    colours = [_colour(random, behind)]
    for _ in range(3):
        colours.append(_colour(random, colours[0] if random.random() < 0.6 else behind))
    for points, closed, number in _parts(random, kind):
        spots = _on_canvas(points)
        if closed and filled:
            pen.polygon(spots, _bytes(colours[number]))
        if closed and outlined:
            _stroke(pen, [*spots, spots[0]], _bytes(line), width)
        if not closed:
            colour = line if outlined else colours[number]
            _stroke(pen, spots, _bytes(colour), width if outlined else 2 * width)


def picture(random: Random, kind: int) -> npt.NDArray[np.uint8]:
    """Returns a picture of a kind, `[SIZE, SIZE, 3]`: red, green and blue."""
    x, y = places(_SEEN)
    image = background(random, x, y)
    if random.random() < 0.4:
        # Paper.
        image = random.uniform(0.6, 1) + 0.12 * (image - 0.5)
    behind = image[_SEEN // 4 : -_SEEN // 4, _SEEN // 4 : -_SEEN // 4].mean((0, 1))
    canvas = Image.fromarray(np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8))
    canvas = canvas.resize((_SEEN * _FINE, _SEEN * _FINE), Image.Resampling.BILINEAR)
    pen = ImageDraw.Draw(canvas)
    if kind:
        if random.random() < 0.5:
            _clutter(random, pen, int(random.integers(1, 6)), 0.2)
        _thing(random, pen, KINDS[kind], behind)
    elif random.random() < 0.9:
        _clutter(random, pen, int(random.integers(1, 12)), random.choice([0.2, 0.5, 0.9]))
    small = canvas.resize((_SEEN, _SEEN), Image.Resampling.BOX)
    seen = photographed(random, np.asarray(small, np.float64) / 255, x, y)
    shrunk = Image.fromarray(np.rint(seen * 255).astype(np.uint8)).resize((SIZE, SIZE))
    return np.asarray(shrunk)
