"""The picture of a model: readable, complete, and the same every time."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from converters.tf.describe.overview import MAX_ROWS, Picture, Row, layout, overview_png


def chain(layers: int) -> list[Row]:
    """An input, layers of which every fourth also reads the one four before it, an output."""
    rows = [Row("image", "input", "[batch, 8, 8, 3]", 0, ())]
    for i in range(1, layers + 1):
        before = (i - 1, i - 4) if i % 4 == 0 and i > 4 else (i - 1,)
        rows.append(Row(f"layer_{i}", "Conv2D", "[batch, 8, 8, 16]", 448, before))
    rows.append(Row("digit", "output", "[batch, 10]", 0, (layers,)))
    return rows


def crossing(picture: Picture) -> list[tuple[str, str]]:
    """Pairs of texts that overlap, by an estimate of 6 x 14 pixels per letter."""
    spots = sorted((t.at[1], t.at[0], t.at[0] + 6 * len(t.text), t.text) for t in picture.texts)
    return [
        (a[3], b[3])
        for i, a in enumerate(spots)
        for b in spots[i + 1 : i + 40]
        if b[0] - a[0] < 14 and a[1] < b[2] and b[1] < a[2]
    ]


@pytest.mark.parametrize("layers", [1, 12, 300, MAX_ROWS + 10])
def test_every_layer_is_named_inside_the_picture(layers: int) -> None:
    rows = chain(layers)
    picture = layout("net", rows)
    width, height = picture.size
    texts = {t.text: t.at for t in picture.texts}
    assert {row.name for row in rows[:MAX_ROWS]} <= set(texts)
    assert all(0 <= x < width and 0 <= y < height - 14 for x, y in texts.values())
    assert all(0 <= x <= width for line in picture.lines for x in line[::2])
    assert not crossing(picture)
    assert width * height < 60_000_000
    title = f"net: {layers} layers, {448 * layers:,} parameters"
    more = len(rows) - MAX_ROWS
    title += f"; {more} more rows are in computation_graph.json" if more > 0 else ""
    assert title in texts


def test_the_file_is_a_picture_of_that_size_and_always_the_same() -> None:
    rows = chain(60)
    content = overview_png("net", rows)
    assert content == overview_png("net", rows)
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "PNG"
        assert image.size == layout("net", rows).size
        for text in layout("net", rows).texts:
            x, y = (int(v) for v in text.at)
            darkest = min(image.crop((x, y, x + 10, y + 16)).convert("L").tobytes())
            assert darkest < 160, text


def test_each_connection_is_a_line_between_its_rows() -> None:
    rows = chain(12)
    picture = layout("net", rows)
    for index, row in enumerate(rows):
        x, y, _ = picture.dots[index]
        for source in row.before:
            top = picture.dots[source][1]
            spans = [(a, b, c, d) for a, b, c, d in picture.lines if a == c and b <= top and d >= y]
            assert spans, (row.name, rows[source].name)
            assert any(a == x or (a, y, x, y) in picture.lines for a, *_ in spans)


def test_a_layer_that_is_called_again_reads_later_rows() -> None:
    rows = [Row("a", "input", "", 0, ()), Row("shared", "Dense", "", 6, (0, 2)),
            Row("b", "ReLU", "", 0, (1,)), Row("c", "output", "", 0, (1,))]  # fmt: skip
    picture = layout("net", rows)
    back = [line for line in picture.lines if line[0] == line[2] and line[3] == picture.dots[2][1]]
    assert any(line[1] <= picture.dots[1][1] for line in back)


def test_names_of_any_letters_and_length() -> None:
    rows = [Row("höhe", "input", "", 0, ()), Row("x" * 200, "Dense", "", 1, (0,))]
    texts = [t.text for t in layout("net", rows).texts]
    assert "h\\xf6he" in texts
    assert max(len(t) for t in texts) < 60
    assert overview_png("net", rows)
    endless = "x" * 2_000_000
    picture = layout(endless, [Row(endless, endless, endless, 1, ())])
    assert max(len(t.text) for t in picture.texts) < 100
    assert picture.size[0] < 3000


def test_a_model_without_layers_is_a_title() -> None:
    assert [t.text for t in layout("net", []).texts] == ["net: 0 layers, 0 parameters"]
    assert overview_png("net", [])
