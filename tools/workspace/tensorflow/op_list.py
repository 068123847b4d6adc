"""Writes all OpDefs that a TensorFlow library registers, as a serialized `tensorflow.OpList`."""

import ctypes
import pathlib

from absl import app, flags

_LIBRARY = flags.DEFINE_string(
    "library", None, "Path of libtensorflow_cc.so.2; its siblings are loaded too.", required=True
)
_OUT = flags.DEFINE_string("out", None, "File to write.", required=True)


class _Buffer(ctypes.Structure):
    """`TF_Buffer` of tensorflow/c/tf_buffer.h."""

    _fields_ = [
        ("data", ctypes.POINTER(ctypes.c_char)),
        ("length", ctypes.c_size_t),
        ("data_deallocator", ctypes.c_void_p),
    ]


def op_list(library: pathlib.Path) -> bytes:
    """Returns what `TF_GetAllOpList` of `library` gives.

    Raises:
        OSError: the library, or one that it needs, cannot be loaded.
    """
    tensorflow = ctypes.CDLL(str(library.resolve()))
    framework = ctypes.CDLL(str(library.resolve().parent / "libtensorflow_framework.so.2"))
    tensorflow.TF_GetAllOpList.restype = ctypes.POINTER(_Buffer)
    buffer = tensorflow.TF_GetAllOpList()
    data = ctypes.string_at(buffer.contents.data, buffer.contents.length)
    framework.TF_DeleteBuffer(buffer)
    return data


def main(argv: list[str]) -> None:
    """Writes the file."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {argv[1:]}")
    pathlib.Path(_OUT.value).write_bytes(op_list(pathlib.Path(_LIBRARY.value)))


if __name__ == "__main__":
    app.run(main)
