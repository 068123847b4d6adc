"""Weights in fewer bits: what they are rounded to, how a file has them, and crates that read it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from converters.tf import ir
from converters.tf.emit.options import Options, RuntimeMode, WeightsMode
from converters.tf.emit.stored import record
from converters.tf.emit.weights import lay_out, sums
from converters.tf.passes.rounded import WeightType, as_bytes, of_bytes, rounded
from converters.tf.tests.crates import graphs
from converters.tf.tests.crates.crates import compile_and_test, emitted, runtime_flags, write

_SMALL = [WeightType.FLOAT16, WeightType.INT8]
# Halves have 11 significant bits, signed bytes 7 of the largest number of their column.
_NEAR = {WeightType.FLOAT16: 2**-11, WeightType.INT8: 1 / 254 * (1 + 2**-15)}

_tables = arrays.arrays(
    np.float32,
    st.tuples(st.integers(32, 40), st.integers(1, 9)),
    elements=st.floats(-(2.0**100), 2.0**100, width=32),
)


@given(_tables)
def test_bytes_are_near_and_stay_as_they_are(table: ir.Array) -> None:
    parts = as_bytes(table)
    if parts is None:
        largest = np.abs(table).max(axis=0)
        assert (largest[largest > 0] < 128 * np.finfo(np.float32).tiny).any()
        return
    whole, factors = parts
    near = of_bytes(whole, factors)
    exact = whole.astype(np.float64) * factors
    assert np.array_equal(near, exact), "a product was rounded"
    bound = np.abs(table).max(axis=0) * _NEAR[WeightType.INT8]
    assert (np.abs(near - table.astype(np.float64)) <= bound).all()
    again = as_bytes(near)
    assert again is not None
    assert np.array_equal(of_bytes(*again).view(np.uint32), near.view(np.uint32))


@pytest.mark.parametrize("kind", _SMALL)
def test_a_record_gives_back_what_was_rounded(kind: WeightType) -> None:
    graph = rounded(graphs.wide(), kind)
    (weight,) = graph.constants()
    (before,) = graphs.wide().constants()
    assert weight.data is not None
    assert before.data is not None
    bound = _NEAR[kind] * np.abs(before.data).max()
    assert 0 < np.abs(weight.data - before.data).max() <= bound
    again = rounded(graph, kind)
    assert [v.data.tobytes() for v in again.constants() if v.data is not None] == [
        weight.data.tobytes()
    ]
    small = record(weight.data)
    assert small is not None
    elements = weight.data.size
    body = 2 * elements if kind is WeightType.FLOAT16 else elements + 4 * weight.data.shape[-1]
    assert len(small) == 16 + -(-body // 16) * 16
    assert record(before.data) is None


def test_what_stays_as_it_is() -> None:
    """Few elements, a vector, an element that is no half, and rows too few for bytes."""

    def of(data: ir.Array, kind: WeightType) -> ir.Array:
        value = ir.constant(data.astype(np.float32))
        port = ir.Port("y", value)
        (after,) = rounded(ir.Graph("g", (), (port,), ()), kind).constants()
        assert after.data is not None
        return after.data

    data = np.random.default_rng(1).normal(size=(300, 40)).astype(np.float32)
    for kind in _SMALL:
        assert not np.array_equal(of(data, kind), data)
        assert np.array_equal(of(data[:6], kind), data[:6])
        assert np.array_equal(of(data[:, 0], kind), data[:, 0])
    large = data.copy()
    large[3, 5] = 65520.0
    assert np.array_equal(of(large, WeightType.FLOAT16), large)
    assert not np.array_equal(of(large, WeightType.INT8), large)
    taps = data[:31]
    assert np.array_equal(of(taps, WeightType.INT8), of(taps, WeightType.FLOAT16))
    large[3, 5] = np.inf
    assert np.array_equal(of(large, WeightType.INT8), large)


def test_whole_numbers_stay_as_they_are() -> None:
    data = np.random.default_rng(2).integers(-100, 101, (64, 7)).astype(np.float32)
    data[:, 1] = 0
    for table in (data, np.concatenate([data, data / 3], axis=1)):
        parts = as_bytes(table)
        assert parts is not None
        assert np.array_equal(of_bytes(*parts)[:, :7], data)


def test_plain_tensors_come_first() -> None:
    graph = rounded(graphs.products(), WeightType.FLOAT16)
    file = lay_out(graph, (), rounded=True)
    places = [(t.at, t.elements * t.value.dtype.bytes) for t in file.tensors.values()]
    for (at, size), (after, _) in zip(places, [*places[1:], (file.size, 0)], strict=True):
        assert at + size <= after
        assert after % 64 == 0
    whole = lay_out(graph, (), rounded=False)
    assert not whole.has_records
    assert len(whole.content) == whole.size == whole.plain == file.size


@given(st.binary(max_size=200))
def test_sums_are_those_of_their_definition(content: bytes) -> None:
    first = second = 0
    padded = content + bytes(-len(content) % 32)
    for at in range(0, len(padded), 4):
        first += int.from_bytes(padded[at : at + 4], "little")
        second += first
    assert sums(content) == (first % 2**64, second % 2**64)


_FLIPPED = """
#[test]
fn a_flipped_bit_of_the_weights_is_an_error() {
    let mut bytes = std::fs::read("model/model_weights.bin").expect("the weights");
    assert!(products::Products::from_bytes(&bytes).is_ok());
    for at in (0..bytes.len()).step_by(7) {
        bytes[at] ^= 1 << (at % 8);
        let error = products::Products::from_bytes(&bytes).err().expect("they are damaged");
        assert!(matches!(error, products::Error::Weights { .. }), "{at}: {error}");
        bytes[at] ^= 1 << (at % 8);
    }
}
"""


@pytest.mark.parametrize("kind", [WeightType.FLOAT32, WeightType.INT8])
def test_a_flipped_bit_of_a_file_is_an_error(
    kind: WeightType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header, plain tensors and records of smaller ones."""
    monkeypatch.setattr("converters.tf.passes.rounded._LEAST_ELEMENTS", 8)
    monkeypatch.setattr("converters.tf.passes.rounded._LEAST_ROWS", 2)
    graph = rounded(graphs.products(), kind)
    options = Options(
        graph.name,
        "graphs.py",
        runtime=RuntimeMode.CRATE,
        weights=WeightsMode.FILE,
        weight_type=kind,
    )
    files = emitted(graph, options)
    assert (b"expanded(" in files["src/model.rs"]) == (kind is WeightType.INT8)
    files["tests/golden.rs"] += _FLIPPED.encode()
    write(files, tmp_path)
    assert "test result: ok" in compile_and_test(tmp_path, graph.name, runtime_flags())


@pytest.mark.parametrize("kind", _SMALL)
def test_crates_compute_with_rounded_weights(
    kind: WeightType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("converters.tf.passes.rounded._LEAST_ELEMENTS", 8)
    monkeypatch.setattr("converters.tf.passes.rounded._LEAST_ROWS", 2)
    for make in (graphs.blocks, graphs.chained, graphs.loops, graphs.products, graphs.sequences):
        graph = rounded(make(), kind)
        options = Options(graph.name, "graphs.py", weight_type=kind, runtime=RuntimeMode.CRATE)
        files = emitted(graph, options)
        assert b"expanded(" in files["src/model.rs"], graph.name
        folder = tmp_path / graph.name
        write(files, folder)
        assert "test result: ok" in compile_and_test(folder, graph.name, runtime_flags())


def test_the_runtime_of_a_crate_reads_records() -> None:
    graph = rounded(graphs.wide(), WeightType.INT8)
    files = emitted(graph, Options(graph.name, "graphs.py", weight_type=WeightType.INT8))
    assert "src/runtime/stored.rs" in files
    plain = emitted(graph, Options(graph.name, "graphs.py"))
    assert "src/runtime/stored.rs" not in plain
    assert len(files["model/model_weights.bin"]) < 0.26 * len(plain["model/model_weights.bin"])
