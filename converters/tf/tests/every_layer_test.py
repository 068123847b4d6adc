"""Every class of `keras.layers` converts, or is refused for a reason that is written down."""

from __future__ import annotations

import pytest
from keras import layers

from converters.tf.tests.checks import check, converted
from converters.tf.tests.every_layer import (
    BASES,
    CASES,
    PARTS,
    REASONS,
    Case,
    all_kinds,
)
from tools.codegen.conversion import UnsupportedError


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_layer(case: Case) -> None:
    model = case.model()
    assert getattr(layers, case.kind) in {type(layer) for layer in model._flatten_layers()}
    given = None if case.given is None else {"input": case.given}
    check(model, (1, 3), given=given)
    converted.add(case.kind)


def test_no_class_is_forgotten() -> None:
    tested = {case.kind for case in CASES}
    assert not tested & set(REASONS)
    assert set(PARTS) <= tested
    assert tested | set(REASONS) | set(BASES) == all_kinds()


@pytest.mark.parametrize("case", [case for _, case in PARTS.values()], ids=str)
def test_what_is_refused(case: Case) -> None:
    with pytest.raises(UnsupportedError) as caught:
        check(case.model())
    assert len(caught.value.problems) == 1
