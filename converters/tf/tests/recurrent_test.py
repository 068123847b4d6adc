"""Recurrent layers and attention, with masks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import layers

from converters.tf.tests.checks import check, few, model_of, ops

flags = st.booleans()
KINDS = {
    "SimpleRnn": layers.SimpleRNN,
    "Lstm": layers.LSTM,
    "Gru": layers.GRU,
}


@few
@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 6),
    st.integers(1, 5),
    st.fixed_dictionaries(
        {
            "return_sequences": flags,
            "return_state": flags,
            "go_backwards": flags,
            "use_bias": flags,
        }
    ),
    flags,
    flags,
)
def test_recurrent(
    kind: str, length: int, units: int, options: dict[str, bool], masked: bool, after: bool
) -> None:
    more = {"reset_after": after} if kind == "Gru" else {}

    def body(x: Any) -> Any:
        x = layers.Embedding(5, 4, mask_zero=masked)(x)
        return KINDS[kind](units, **options, **more)(x)

    graph = check(model_of([(length,)], body, ["int32"]), whole=3)
    if length > 1:
        assert kind in ops(graph)
        assert "Loop" not in ops(graph)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_recurrent_dropout_changes_nothing(kind: str, bias: bool, masked: bool) -> None:
    def body(x: Any) -> Any:
        x = layers.Embedding(5, 4, mask_zero=masked)(x)
        options = {"return_sequences": True, "use_bias": bias, "recurrent_dropout": 0.1}
        x = KINDS[kind](3, **options)(x)
        return layers.Bidirectional(KINDS[kind](2, recurrent_dropout=0.2))(x)

    graph = check(model_of([(6,)], body, ["int32"]), whole=3)
    assert ops(graph).count(kind) == 3


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize(
    ("merge", "sequences"),
    [("concat", True), ("concat", False), ("sum", True), ("mul", False), ("ave", True)],
)
def test_bidirectional_with_a_mask(kind: str, merge: str, sequences: bool) -> None:
    def body(x: Any) -> Any:
        x = layers.Embedding(5, 4, mask_zero=True)(x)
        inner = KINDS[kind](3, return_sequences=sequences)
        return layers.Bidirectional(inner, merge_mode=merge)(x)

    graph = check(model_of([(6,)], body, ["int32"]), whole=3)
    assert ops(graph).count(kind) == 2


def test_stacked_layers_share_a_mask() -> None:
    def body(x: Any) -> Any:
        x = layers.Masking(0.0)(x)
        x = layers.LSTM(4, return_sequences=True)(x)
        return layers.GRU(3)(x)

    graph = check(model_of([(6, 2)], body))
    assert {"Lstm", "Gru"} <= set(ops(graph))


def test_states_pass_from_an_encoder_to_a_decoder() -> None:
    def body(source: Any, target: Any) -> Any:
        _, h, c = layers.LSTM(5, return_state=True)(layers.Embedding(6, 4, mask_zero=True)(source))
        y = layers.Embedding(6, 4, mask_zero=True)(target)
        y = layers.LSTM(5, return_sequences=True)(y, initial_state=[h, c])
        return layers.Dense(6, activation="softmax")(y)

    graph = check(model_of([(7,), (4,)], body, ["int32", "int32"]), whole=4)
    assert ops(graph).count("Lstm") == 2


@pytest.mark.parametrize(
    "layer",
    [
        layers.LSTM(3, activation="relu"),
        layers.GRU(3, recurrent_activation="hard_sigmoid"),
        layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)]),
        layers.LSTM(3, unroll=True),
        layers.SimpleRNN(3, activation="softsign"),
    ],
    ids=lambda layer: layer.name,
)
def test_unusual_cells(layer: Any) -> None:
    check(model_of([(4, 2)], layer))


@pytest.mark.parametrize("sequences", [True, False])
def test_a_convolution_over_time_is_written_out(sequences: bool) -> None:
    layer = layers.ConvLSTM1D(3, 2, padding="same", return_sequences=sequences)
    found = ops(check(model_of([(4, 5, 2)], layer), (1, 3)))
    assert found.count("Conv") == 4 * 8
    assert "Loop" not in found


def test_a_long_loop_stays_one() -> None:
    layer = layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], return_sequences=True)
    assert "Loop" in ops(check(model_of([(150, 2)], layer), (3,)))


@few
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), flags, flags, flags, flags)
def test_attention(
    heads: int, depth: int, length: int, causal: bool, masked: bool, cross: bool, dropout: bool
) -> None:
    def body(x: Any, y: Any) -> Any:
        x = layers.Embedding(5, 6, mask_zero=masked)(x)
        y = layers.Embedding(5, 6, mask_zero=masked)(y) if cross else x
        # With dropout, Keras multiplies keys by queries and turns the product.
        layer = layers.MultiHeadAttention(heads, depth, dropout=0.1 if dropout else 0.0)
        return layer(x, y, use_causal_mask=causal)

    graph = check(model_of([(length,), (length,)], body, ["int32", "int32"]), (1, 3), whole=3)
    # Then a query that sees no key gets 0 from all, too.
    hidden = dropout and masked
    assert length == 1 or hidden or "Attention" in ops(graph)


def test_grouped_queries() -> None:
    def body(x: Any) -> Any:
        return layers.GroupQueryAttention(4, 4, 2)(x, x)

    assert "Attention" in ops(check(model_of([(5, 6)], body)))
