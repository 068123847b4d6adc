"""What to do about what is not supported."""

from __future__ import annotations

import re

# By the text of the finding.
_HINTS = {
    "the batch is reduced": "examples of a call must not change each other's results: reduce the "
    "other axes only, or make what is chosen or ended by it an input of its own",
    "a reshape mixes the batch elements": "it moves the batch among the other axes: "
    "transpose first, so that the results of an example do not depend on the others of its call",
    **dict.fromkeys(
        ("element type float8_e4m3fn", "element type float8_e5m2"),
        "take the model from before its quantization, or quantize it to int8 or int4",
    ),
    "random numbers": "make them an input of the model, or their seed an input of "
    "tf.random.stateless_normal or stateless_uniform; if a layer such as Dropout draws them, it "
    "was traced for training: take the .keras file, or export a call with training=False",
    "random numbers of a seed that is the same in every call": "pass --stateful if a layer keeps "
    "the seed in a variable, as keras.random.SeedGenerator does, or make the seed an input of the "
    "model; if a layer such as Dropout draws them, it may have been traced for training: take the "
    ".keras file, or export a call with training=False",
    "boxes that overlap are suppressed": "end the model at the boxes and their scores, and choose "
    "among them in the program",
    "how many elements there are depends on the values of all examples": "give them all, with a "
    "mask",
    "how many elements there are differs from turn to turn of a loop": "for boxes, take "
    "tf.image.combined_non_max_suppression, or tf.raw_ops.NonMaxSuppressionV5 of each example with "
    "pad_to_max_output_size=True; else give them all, with a mask",
    "how many elements there are depends on their values": "give them all, with a mask",
    "segments that the inputs choose are reduced": "how many there are must be known: take an "
    "op such as tf.math.unsorted_segment_sum",
    "top_k that leaves the order open": "pass sorted=True",
    "a loop hands a tensor from example to example": "examples of a call must not change each "
    "other's results: let the loop compute each example by itself, as tf.map_fn does",
    "a list that grows to a length that is not known": "give the TensorArray its size",
    "a part whose length the inputs say": "take a part of a fixed size, as tf.slice does, and mask",
    "a complex number": "give its real and its imaginary part: tf.math.real and tf.math.imag",
    "the longest of texts that no input gives decides how many tokens there are": "give an "
    "output_sequence_length, or to_tensor() a shape",
}
# Findings that a model whose batch has a size does not have.
_OF_THE_BATCH = re.compile(
    r"(?<!not )\b(the (whole )?batch|batch elements|example to example|numbers of examples"
    r"|values of all examples|elements of other examples)\b"
)
# A batch whose size the call gives, beside a number: a variable may have one for each example.
_BATCH_AND_NUMBER = re.compile(r"shapes \[batch\b.*, \[(?P<size>[2-9]|\d\d+)\b.* don't broadcast")


def hint(what: str, batch: bool) -> str:
    """Returns what to do about a finding, or nothing.

    Args:
        what: The finding.
        batch: Whether the batch of the model is open.
    """
    found = _HINTS.get(what, "")
    if batch and (beside := _BATCH_AND_NUMBER.search(what)) is not None:
        size = beside["size"]
        return f"if the model is for {size} examples in each call, fix the batch by --batch {size}"
    if not batch or "--batch" in what or _OF_THE_BATCH.search(what) is None:
        return found
    one = "fix the batch by --batch 1, for calls of one example each"
    return f"{found}, or {one}" if found else one
