"""Loops and the lists of tensors that they read and write."""

from __future__ import annotations

from converters.tf.lower import Handler

OPS: dict[str, Handler] = {}
