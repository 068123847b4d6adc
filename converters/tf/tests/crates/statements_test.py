from __future__ import annotations

import pytest

from converters.tf.emit.statements import BATCH, Kind, Name, call, code, lines, method

DENSE = Name(Kind.FIELD, "dense", "Dense")
X = Name(Kind.SLOT, "X", "f32")
W = Name(Kind.TENSOR, "W", "f32")


def test_parts_are_written_as_in_rust() -> None:
    text = code("f({}, {}, {}, {})", (1, "a"), [True, X], W, Name(Kind.INPUT, "x"))
    assert str(text) == "f((1, a), [true, X], weights::W, x.x)"
    assert str(method(DENSE, "run", X)) == "self.dense.run(m, X)?;"
    assert str(call("layout::copy", W, X)) == "layout::copy(m, weights::W, X)?;"


def test_braces_of_rust_stand_for_themselves() -> None:
    assert str(code("Mode { exclusive: {} }", False)) == "Mode { exclusive: false }"
    # What a part has is not looked at again.
    assert str(code("map({})", "Gelu {}")) == "map(Gelu {})"


@pytest.mark.parametrize("parts", [(), (1, 2)])
def test_a_template_has_a_place_for_every_part(parts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="zip"):
        code("f({})", *parts)


def test_imports_travel_with_expressions() -> None:
    op = code("Relu", use=["kernels::unary::Relu"]).needing("kernels::int32")
    statement = call("elementwise::map", (op, X), X)
    assert statement.uses == {"elementwise", "kernels::unary::Relu"}
    assert statement.needs == {"kernels::int32"}
    both = lines([statement, method(DENSE, "run", X)])
    assert (both.uses, both.needs) == (statement.uses, statement.needs)
    assert str(both).count("\n") == 1


def test_names_are_found_by_their_kind() -> None:
    statement = call("layout::set", code("{} * {}", BATCH, 3), X, W, X)
    assert list(statement.names(Kind.SLOT, Kind.TENSOR)) == [X, W, X]
    assert statement.has(Kind.BATCH)
    # A letter in a text is not a name.
    assert not call("layout::set", "b", X).has(Kind.BATCH)


def test_statements_that_differ_in_names_alone_have_one_shape() -> None:
    other = Name(Kind.SLOT, "Y", "f32")
    assert call("a::b", X, "1").shape() == call("a::b", other, 1).shape()
    assert call("a::b", X).shape() != call("a::b", Name(Kind.SLOT, "X", "i32")).shape()
    assert call("a::b", X).shape() != call("a::b", W).shape()
    assert call("a::b", X).shape() != call("a::b", "X").shape()


def test_names_are_replaced_and_texts_are_not() -> None:
    statement = method(DENSE, "run", X, "X")
    renamed = statement.renamed(lambda n: "p.x" if n == X else n)
    assert str(renamed) == "self.dense.run(m, p.x, X)?;"
    assert (renamed.uses, renamed.needs) == (statement.uses, statement.needs)
