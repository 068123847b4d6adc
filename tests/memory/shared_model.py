"""Writes a crate of tf2rust with a test in which eight threads share its model.

The test runs with any Rust; under the thread sanitizer, `sanitize.py` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MODEL = """
import sys
import numpy as np
import tensorflow as tf

random = np.random.default_rng(0)
weights = lambda *shape: tf.constant(random.normal(size=shape).astype(np.float32))
with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [None, 64, 64, 8], "x")
    y = tf.nn.relu(tf.nn.conv2d(x, weights(3, 3, 8, 32), 1, "SAME"))
    y = tf.nn.relu(tf.nn.conv2d(y, weights(3, 3, 32, 16), 2, "SAME"))
    y = tf.nn.softmax(tf.reduce_mean(y, [1, 2]) @ weights(16, 10), name="y")
open(sys.argv[1], "wb").write(graph.as_graph_def().SerializeToString())
"""
"""Two convolutions, which are large enough to be shared between the model's own threads."""

TEST = """//! Eight threads share a model, its weights and its own threads.

use std::thread;

use shared::{Inputs, Shared};

const SIZE: usize = 64 * 64 * 8;

fn image(seed: usize) -> Vec<f32> {
    (0..SIZE).map(|at| ((at * 7 + seed * 131) % 255) as f32 / 255.0).collect()
}

fn predicted(model: &Shared, seed: usize) -> Vec<u32> {
    let outputs = model.predict(Inputs { x: &image(seed) }).expect("a prediction");
    outputs.y.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn threads_share_a_model() {
    let model = Shared::new().expect("a model").with_threads(4);
    let expected: Vec<_> = (0..8).map(|seed| predicted(&model, seed)).collect();
    thread::scope(|scope| {
        for number in 0..8 {
            let (model, expected) = (&model, &expected);
            scope.spawn(move || {
                // Half of them have a copy, which shares the weights.
                let own = (number % 2 == 1).then(|| model.clone());
                let model = own.as_ref().unwrap_or(model);
                for round in 0..6 {
                    let seed = (number + round) % 8;
                    assert_eq!(predicted(model, seed), expected[seed]);
                    model.shrink();
                }
            });
        }
    });
}
"""


def write(folder: Path) -> Path:
    """Writes the crate; returns its folder.

    Args:
        folder: An empty folder.

    Raises:
        subprocess.CalledProcessError: The model can't be written, or not converted.
    """
    model, written = folder / "shared.pb", folder / "shared"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
    convert = ["-m", "converters.tf.cli.main", "--model_name=Shared", "--quiet"]
    convert += [f"--path_to_tf_model={model}", f"--path_to_save={written}"]
    for arguments in (["-c", MODEL, str(model)], convert):
        subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True)
    crate = written / "rust_generated_code"
    (crate / "tests" / "threads.rs").write_text(TEST, encoding="ascii")
    return crate
