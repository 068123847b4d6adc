"""Data and weights in Rust: elements and values are those of Python's tf.data and NumPy."""

import json
import os
import pathlib
import struct
import subprocess
from typing import Any

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

PROGRAM = os.environ["DATA_FILES"]
# Types of safetensors by those of NumPy.
SAFE = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
    "float8_e4m3fn": "F8_E4M3",
}
R = np.random.default_rng(7)


def _run(*arguments: str) -> str:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _write_safetensors(path: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, value in tensors.items():
        at = len(data)
        data += value.tobytes()
        kind = SAFE[str(value.dtype)]
        offsets = [at, len(data)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": offsets}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def _read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, found = json.loads(data[8 : 8 + length]), {}
    assert header.pop("__metadata__", {}).get("format", "tfp") == "tfp"
    types = {safe: np.dtype(name) for name, safe in SAFE.items()}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        part = data[8 + length + begin : 8 + length + end]
        found[name] = np.frombuffer(part, types[entry["dtype"]]).reshape(entry["shape"])
    return found


def _same(found: Any, expected: dict[str, np.ndarray]) -> None:
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].dtype.name == value.dtype.name, name
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Files of weights, which the program has read and written."""
    folder = tmp_path_factory.mktemp("weights")
    np.savez(folder / "plain.npz", **PLAIN)
    np.savez_compressed(folder / "packed.npz", **PLAIN)
    _write_safetensors(folder / "model.safetensors", MODEL)
    _write_safetensors(folder / "types.safetensors", TYPES)
    names = list(MODEL)
    for part, chosen in enumerate([names[:2], names[2:]]):
        _write_safetensors(folder / f"part{part}.safetensors", {n: MODEL[n] for n in chosen})
    index = {"weight_map": {n: f"part{int(at > 1)}.safetensors" for at, n in enumerate(names)}}
    (folder / "sharded.safetensors.index.json").write_text(json.dumps(index))
    # A global seed would change the pipelines below.
    start = keras.initializers.GlorotUniform(seed=1)
    inputs = keras.Input((3,))
    layers = [keras.layers.Dense(4, name="dense", kernel_initializer=start)]
    layers.append(keras.layers.BatchNormalization())
    layers.append(keras.layers.Dense(2, name="dense_1", kernel_initializer=start))
    model = keras.Sequential([inputs, *layers], name="sequential")
    model.compile("adam", "mse")
    model.fit(R.normal(size=(8, 3)), R.normal(size=(8, 2)), shuffle=False, verbose=0)
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(folder / "ck")
    KERAS.update({v.path.removeprefix("sequential/"): v.numpy() for v in model.variables[:8]})
    _write_safetensors(folder / "torch.safetensors", TORCH)
    REPORT.append(_run("weights", str(folder)))
    return folder


PLAIN: dict[str, Any] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(R.normal(size=(3, 4, 2))),
    "big": np.arange(-3, 3, dtype=">i4").reshape(3, 2),
    "flags": np.array([True, False]),
    "scalar": np.array(3.5, np.float16),
    "none": np.zeros((0, 2), np.int64),
    "complex": np.array([1 + 2j, -3j], ">c8"),
}
MODEL = {n: R.normal(size=(4, 3)).astype(np.float32) for n in ("w.1", "w.2", "w/3", 'q"4')}
TYPES = {name: np.arange(4).astype(name) for name in SAFE}
TORCH = {
    "fc1.weight": R.normal(size=(4, 3)).astype(tf.bfloat16.as_numpy_dtype),
    "fc1.bias": R.normal(size=4).astype(tf.bfloat16.as_numpy_dtype),
    "bn.weight": R.normal(size=4).astype(np.float32),
    "bn.running_mean": R.normal(size=4).astype(np.float64),
    "bn.running_var": R.normal(size=3).astype(np.float32),
    "fc2.weight": R.normal(size=(2, 4)).astype(np.float32),
    "fc2.bias": R.normal(size=2).astype(np.float32),
    "extra": np.zeros(1, np.float32),
}
KERAS: dict[str, np.ndarray] = {}
REPORT: list[str] = []


def test_arrays_of_numpy(files: pathlib.Path) -> None:
    for name in ("plain", "packed"):
        with np.load(files / f"{name}.again.npz") as found:
            _same(found, PLAIN)


def test_safetensors(files: pathlib.Path) -> None:
    for name in ("model", "sharded"):
        with np.load(files / f"{name}.again.npz") as found:
            _same(found, MODEL)
    _same(_read_safetensors(files / "types.again.safetensors"), TYPES)


def test_a_checkpoint_of_keras(files: pathlib.Path) -> None:
    assert "checkpoint: 8 variables loaded\n" in REPORT[0]
    with np.load(files / "checkpoint.again.npz") as found:
        _same(found, KERAS)
    with np.load(files / "by_path.again.npz") as found:
        _same(found, {"kernel": KERAS["dense/kernel"]})


def test_names_and_axes_of_another_program(files: pathlib.Path) -> None:
    line = REPORT[0].split("torch: ")[1]
    assert line.startswith("6 variables loaded; missing in the file: batch_normalization/beta;")
    assert "not used: extra" in line
    assert "'batch_normalization/moving_variance' is float32 of shape [4]" in line
    expected = {
        "dense/kernel": TORCH["fc1.weight"].astype(np.float32).T,
        "dense/bias": TORCH["fc1.bias"].astype(np.float32),
        "batch_normalization/gamma": TORCH["bn.weight"],
        "batch_normalization/beta": KERAS["batch_normalization/beta"],
        "batch_normalization/moving_mean": TORCH["bn.running_mean"].astype(np.float32),
        "batch_normalization/moving_variance": KERAS["batch_normalization/moving_variance"],
        "dense_1/kernel": TORCH["fc2.weight"].T,
        "dense_1/bias": TORCH["fc2.bias"],
    }
    with np.load(files / "torch.again.npz") as found:
        _same(found, expected)
    again = _read_safetensors(files / "torch.again.safetensors")
    np.testing.assert_array_equal(again["fc1.weight"], TORCH["fc1.weight"].astype(np.float32))
    with h5py.File(files / "model.again.h5") as file:
        np.testing.assert_array_equal(file["dense/kernel"][:], expected["dense/kernel"])
    reader = tf.train.load_checkpoint(str(files / "again"))
    np.testing.assert_array_equal(reader.get_tensor("dense_1/kernel"), expected["dense_1/kernel"])


def _example(index: int) -> bytes:
    feature = {
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=[index, index / 2])),
        "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(index % 4))),
        "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % index])),
    }
    if index % 2:
        feature["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[index]))
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return bytes(example.SerializeToString())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Files of data, over which the program has run its pipelines."""
    folder = tmp_path_factory.mktemp("data")
    for name, indices in (("a", range(4)), ("b", range(4, 9))):
        with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as writer:
            for index in indices:
                writer.write(_example(index))
    with tf.io.TFRecordWriter(str(folder / "c.gz"), "GZIP") as writer:
        writer.write(b"packed")
    (folder / "lines.txt").write_bytes(b"one\r\n\ntwo \xff\nlast")
    text = 'n,x,s\n1,2.5,"a,b"\n-3,,"say ""yes"""\n4,1e-3,\n'
    (folder / "t.csv").write_text(text)
    for name, count in (("cat", 2), ("dog", 1)):
        (folder / "images" / name).mkdir(parents=True)
        for index in range(count):
            pixels = R.integers(0, 256, (7 + index, 9, 3), np.uint8)
            png = tf.io.encode_png(pixels).numpy()
            (folder / "images" / name / f"{index}.png").write_bytes(png)
    assert _run("pipelines", str(folder)) == "cat dog\n"
    return folder


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [one for part in value for one in _flat(part)]
    return [value]


def _expected(folder: pathlib.Path) -> dict[str, tf.data.Dataset]:
    """The same pipelines in Python."""

    def path(name: str) -> str:
        return str(folder / name)

    def random(seed: int) -> tf.data.Dataset:
        return tf.data.Dataset.random(seed, rerandomize_each_iteration=True)

    made: dict[str, tf.data.Dataset] = {}
    records = tf.data.TFRecordDataset([path("a.tfrecord"), path("b.tfrecord")])
    made["records"] = records
    made["gzip"] = tf.data.TFRecordDataset([path("c.gz")], "GZIP")
    made["lines"] = tf.data.TextLineDataset([path("lines.txt")])
    csv = tf.data.experimental.CsvDataset
    made["csv"] = csv(
        path("t.csv"), [tf.int64, tf.constant([-1.5]), tf.constant(["?"])], header=True
    )
    some = [tf.int64, tf.constant(["-"])]
    made["csv_selected"] = csv(path("t.csv"), some, header=True, select_cols=[0, 2])
    files = tf.data.Dataset.list_files(path("*.tfrecord"), shuffle=False)
    made["interleave"] = files.interleave(tf.data.TFRecordDataset, 2, 2)
    made["parallel_interleave"] = files.interleave(
        tf.data.TFRecordDataset, 2, 1, num_parallel_calls=2, deterministic=True
    )
    spec = {
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64, -7),
        "ids": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "name": tf.io.FixedLenFeature([], tf.string),
    }

    def listed(found: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(found[key] for key in spec)

    made["parsed"] = records.map(lambda one: listed(tf.io.parse_single_example(one, spec)))
    made["parsed_batch"] = records.batch(3).map(lambda b: listed(tf.io.parse_example(b, spec)))

    ten = tf.data.Dataset.range(10)
    squares = made["parallel_map"] = ten.map(tf.square, num_parallel_calls=3)
    odd = made["filter"] = ten.filter(lambda n: n % 2 == 1)
    made["zip"] = tf.data.Dataset.zip((squares, odd)).enumerate()
    made["cache"] = squares.cache().repeat(2)
    made["concatenate"] = odd.concatenate(ten.take(2)).shard(2, 1)
    made["unbatch"] = ten.take_while(lambda n: n < 4).batch(3).unbatch()
    made["shuffle"] = ten.shuffle(4, 42).repeat(3)
    made["shuffle_once"] = ten.shuffle(4, 7, reshuffle_each_iteration=False).repeat(2)
    made["random"] = random(5).take(6)
    made["flat_map"] = ten.take(4).flat_map(lambda n: tf.data.Dataset.from_tensors(n).repeat(2))

    lengths = ten.map(lambda n: (tf.fill([n * 7 % 5], n), n))
    made["padded"] = lengths.padded_batch(4, ([None], []))
    padding = (tf.constant(-1, tf.int64), tf.constant(0, tf.int64))
    made["padded_with"] = lengths.padded_batch(4, ([6], []), padding, drop_remainder=True)
    made["buckets"] = lengths.bucket_by_sequence_length(
        lambda values, _: tf.size(values), [2, 4], [3, 2, 1]
    )
    images = keras.utils.image_dataset_from_directory(
        path("images"), batch_size=None, image_size=(6, 5), shuffle=False, verbose=False
    ).map(lambda pixels, label: (pixels, tf.cast(label, tf.int64)))
    made["images"] = images
    seeds, image = [3, 4], tf.image
    made["changed"] = images.map(
        lambda pixels, _: (
            image.stateless_random_flip_left_right(pixels, seeds),
            image.stateless_random_flip_up_down(pixels, seeds),
            image.stateless_random_crop(pixels, [4, 3, 3], seeds),
            image.stateless_random_brightness(pixels, 0.5, seeds),
            image.stateless_random_contrast(pixels, 0.5, 1.5, seeds),
            image.resize(pixels, [9, 4], "nearest"),
            image.resize(pixels, [3, 2], "area"),
            image.resize(pixels, [9, 7], "bicubic"),
        )
    )
    made["seeded"] = tf.data.Dataset.zip((ten, random(11).batch(2, drop_remainder=True)))
    return made


def test_elements_are_those_of_python(data: pathlib.Path) -> None:
    expected = _expected(data)
    assert sorted(expected) == sorted(p.name.split(".")[0] for p in data.glob("*.rust.npz"))
    for name, dataset in expected.items():
        with np.load(data / f"{name}.rust.npz") as found:
            count = 0
            for index, element in enumerate(dataset):
                for part, value in enumerate(_flat(element)):
                    here = found[f"{index}/{part}"]
                    there = value.numpy()
                    if value.dtype == tf.string:
                        # An array of bytes would lose zeros at their ends.
                        texts = [there] if isinstance(there, bytes) else there.ravel()
                        there = np.frombuffer(b"|".join(texts), np.uint8)
                    assert here.dtype == there.dtype, f"{name} {index}/{part}"
                    np.testing.assert_array_equal(here, there, f"{name} {index}/{part}")
                    count += 1
            assert count == len(found.files), name


def test_a_reading_goes_on_in_the_other_language(tmp_path: pathlib.Path) -> None:
    """By the state of the iterator in a checkpoint of `tf.train.Checkpoint`."""
    data = tf.data.Dataset.range(30).map(lambda n: n + 1)
    data = data.shuffle(9, seed=7).batch(3).prefetch(2)

    def reading() -> tuple[Any, tf.Variable, tf.train.Checkpoint]:
        iterator, step = iter(data), tf.Variable(3, dtype=tf.int64)
        return iterator, step, tf.train.Checkpoint(iterator=iterator, step=step)

    iterator, _, checkpoint = reading()
    for _ in range(3):
        next(iterator)
    checkpoint.save(str(tmp_path / "python"))
    rest = [element.numpy().tolist() for element in iterator]
    lines = _run("readings", str(tmp_path)).splitlines()
    assert [json.loads(line) for line in lines] == rest
    iterator, step, checkpoint = reading()
    checkpoint.read(str(tmp_path / "rust")).assert_consumed()
    assert step.numpy() == 5
    assert [element.numpy().tolist() for element in iterator] == rest[2:]


def test_records_that_are_written_are_read(data: pathlib.Path) -> None:
    names = [str(data / "a.tfrecord"), str(data / "b.tfrecord")]
    found = list(tf.data.TFRecordDataset(str(data / "rust.gz"), "GZIP").as_numpy_iterator())
    assert found == list(tf.data.TFRecordDataset(names).as_numpy_iterator())


def test_damaged_files_are_named(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "bad.npz", w=np.ones(4))
    whole = bytearray((tmp_path / "bad.npz").read_bytes())
    whole[whole.index(b"\x00\x00\xf0?") + 2] ^= 1
    (tmp_path / "bad.npz").write_bytes(whole)
    _write_safetensors(tmp_path / "cut.safetensors", {"w": np.ones(4, np.float32)})
    whole = bytearray((tmp_path / "cut.safetensors").read_bytes())
    (tmp_path / "cut.safetensors").write_bytes(whole[:-1])
    (tmp_path / "bad.safetensors").write_bytes(whole.replace(b"[4]", b"[5]"))
    (tmp_path / "bad.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(50))
    (tmp_path / "text.txt").write_text("these are no weights at all")
    for name, kept in (("crc", None), ("cut", 36), ("head", 30)):
        with tf.io.TFRecordWriter(str(tmp_path / f"{name}.tfrecord")) as writer:
            writer.write(b"first")
            writer.write(b"second")
        whole = bytearray((tmp_path / f"{name}.tfrecord").read_bytes())
        whole[35] ^= name == "crc"
        (tmp_path / f"{name}.tfrecord").write_bytes(whole[:kept])
    (tmp_path / "columns.csv").write_text("n,x\n1,2\n1,2,3\n")
    (tmp_path / "number.csv").write_text("n,x\n1,2\n2,x\n")
    (tmp_path / "quote.csv").write_text('n,x\n1,2\n2,"3\n')
    lines = dict(line.split(": ", 1) for line in _run("damage", str(tmp_path)).splitlines())
    crc = f"'{tmp_path}/crc.tfrecord': record 1 at byte 21: the checksum of its bytes is wrong"
    for name, text in {
        "bad.npz": "the tensor 'w': 'w.npy' in the archive is damaged: its checksum is wrong",
        "bad.safetensors": "the tensor 'w' is float32 of shape [5] and has 16 bytes",
        "cut.safetensors": "the tensor 'w' ends at byte 16 of 15: the file is cut",
        "bad.h5": "bad.h5': ",
        "none.npz": "no file '",
        "text.txt": "it is neither safetensors, npz nor HDF5",
        "crc.tfrecord": crc,
        "cut.tfrecord": "record 1 at byte 21: the file ends within it: it is cut",
        "head.tfrecord": f"no error, then '{tmp_path}/head.tfrecord': record 1 at byte 21",
        "none.tfrecord": "no file '",
        "columns.csv": "columns.csv': record 1 in line 3: 3 fields, expected 2",
        "number.csv": 'number.csv\': record 1 in line 3: field 1 is "x", expected float32',
        "quote.csv": "record 1 in line 3: the file ends within a quoted field",
        "interleaved": crc,
    }.items():
        assert text in lines[name] and (str(tmp_path) in lines[name]), f"{name}: {lines[name]}"
