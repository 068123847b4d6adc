"""Images whose height and width the model leaves open: they stay open, or get the usual size."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers

from converters.tf.describe.features import with_sizes
from converters.tf.emit.options import Options, Profile
from converters.tf.ir import shape_text
from converters.tf.load.model import LoadOptions, trace_model
from converters.tf.load.shapes import FixedShapes
from converters.tf.tests.open_models import u_net
from converters.tf.tf2rust import Request, Result, graph_of, run
from tools.codegen.conversion import UnsupportedError, UsageError

_OPEN, _USUAL = "[batch, height, width, 3]", "[batch, 224, 224, 3]"
_FEATURES = "rust_generated_code/testdata/features.npz"


def _image() -> keras.KerasTensor:
    return keras.Input((None, None, 3), name="image")


def _net() -> keras.Model:
    image = _image()
    found = layers.Conv2D(4, 3, strides=2, padding="same", activation="relu")(image)
    return keras.Model(image, layers.Dense(2)(layers.GlobalMaxPooling2D()(found)))


def _smooth() -> keras.Model:
    image = _image()
    return keras.Model(image, layers.UpSampling2D(interpolation="bilinear")(image))


def _blocks() -> keras.Model:
    image = _image()
    return keras.Model(image, keras.ops.max(keras.ops.reshape(image, (-1, 49, 3072)), 1))


def _mixed() -> keras.Model:
    image = _image()
    return keras.Model(image, keras.ops.sum(image, (0, 3)))


def _converted(
    model: keras.Model,
    folder: Path,
    options: Options | None = None,
    shapes: FixedShapes | None = None,
    features: Path | None = None,
    web: bool = False,
) -> Result:
    path = folder / "net.keras"
    model.save(path)
    load = LoadOptions(shapes or FixedShapes())
    request = Request(path, options or Options("net", path.name), load, features, None, True, web)
    return run(request)


def _shape(result: Result) -> str:
    return shape_text(result.plan.graph.inputs[0].value.shape)


def _recorded(result: Result) -> tuple[int, ...]:
    with np.load(io.BytesIO(result.files[_FEATURES])) as file:
        return tuple(file["image"].shape)


def test_they_stay_open_in_files_of_keras(tmp_path: Path) -> None:
    result = _converted(_net(), tmp_path)
    assert (_shape(result), result.notes) == (_OPEN, ())
    assert _recorded(result) == (3, 67, 68, 3)


def test_they_stay_open_in_saved_models(tmp_path: Path) -> None:
    _net().export(tmp_path / "net", verbose=False)
    result = run(Request(tmp_path / "net", Options("net", "net")))
    assert (_shape(result), result.notes) == (_OPEN, ())


def test_recorded_inputs_may_have_any_size(tmp_path: Path) -> None:
    image = np.random.default_rng(1).normal(size=(2, 9, 5, 3)).astype(np.float32)
    model = _net()
    np.savez(tmp_path / "f.npz", image=image, predictions=np.asarray(model(image)))
    result = _converted(model, tmp_path, features=tmp_path / "f.npz")
    assert (_shape(result), _recorded(result)) == (_OPEN, (2, 9, 5, 3))


@pytest.mark.parametrize(
    ("make", "why"), [(_smooth, "Keras can't trace it"), (_blocks, "batch*3*height*width / 150528")]
)
def test_a_refused_one_gets_the_usual_size(
    make: Callable[[], keras.Model], why: str, tmp_path: Path
) -> None:
    result = _converted(make(), tmp_path)
    assert _shape(result) == _USUAL
    (note,) = result.notes
    assert why in note
    assert note.startswith("input image: [?, 224, 224, 3] is taken for its shape [?, ?, ?, 3]: ")
    assert note.endswith("(for another size give --input_shape image=?,?,3 with numbers)")
    assert len(note) < 400
    with pytest.raises(UnsupportedError):
        _converted(make(), tmp_path, shapes=FixedShapes({"": (None, None, 3)}))


def test_one_that_no_size_helps_is_refused_for_its_own_reason(tmp_path: Path) -> None:
    model = _mixed()
    with pytest.raises(UnsupportedError) as given:
        _converted(model, tmp_path, shapes=FixedShapes({"": (224, 224, 3)}))
    with pytest.raises(UnsupportedError) as caught:
        _converted(model, tmp_path)
    assert caught.value.problems == given.value.problems


@pytest.mark.parametrize(
    ("options", "web", "why"),
    [
        (Options("net", "net"), True, "a package has fixed sizes"),
        (Options("net", "net", binary=True), False, "confidence levels are for fixed sizes"),
        (Options("net", "net", profile=Profile.NO_STD), False, "has fixed memory, unless --max"),
    ],
)
def test_what_needs_all_sizes_gets_the_usual_one(
    options: Options, web: bool, why: str, tmp_path: Path
) -> None:
    result = _converted(_net(), tmp_path, options, web=web)
    assert _shape(result) == _USUAL
    (note,) = result.notes
    assert why in note
    small = FixedShapes({"image": (9, 12, 3)})
    result = _converted(_net(), tmp_path, options, small, web=web)
    assert (_shape(result), result.notes) == ("[batch, 9, 12, 3]", ())


def test_a_bound_leaves_them_open_without_std(tmp_path: Path) -> None:
    most = (("height", 32), ("width", 40))
    options = Options("net", "net", profile=Profile.NO_STD, most=most)
    result = _converted(_net(), tmp_path, options)
    assert (_shape(result), result.notes) == ("[1, height, width, 3]", ())
    assert _recorded(result) == (1, 32, 40, 3)
    options = Options("net", "net", profile=Profile.NO_STD, most=most[:1])
    with pytest.raises(UsageError, match=r"leaves width open .*--max width=512"):
        _converted(_net(), tmp_path, options)


def test_made_images_are_no_squares() -> None:
    """A height that is taken for a width is then found."""
    graph = graph_of(trace_model(u_net()))
    assert with_sizes(graph, None).inputs[0].value.shape[1:] == (64, 68, 3)
    most = {"height": 32, "width": 20}
    assert with_sizes(graph, None, most).inputs[0].value.shape[1:] == (32, 20, 3)


def test_a_large_window_gets_a_larger_image() -> None:
    image = _image()
    graph = graph_of(trace_model(keras.Model(image, layers.Conv2D(1, 100, strides=9)(image))))
    assert with_sizes(graph, None).inputs[0].value.shape[1:] == (131, 132, 3)
