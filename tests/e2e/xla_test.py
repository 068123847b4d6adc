"""What only XLA computes goes to the CPU with XLA, and nothing is done twice."""

from __future__ import annotations

from tests.e2e import child

PROGRAM = """
    import logging
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    import numpy as np

    def place(x):
        return x.device.rpartition("device:")[2]

    # Nothing but XLA has dilated convolutions of volumes of float64.
    def double(x):
        filters = tf.fill([1, 1, 1, 2, 2], tf.constant(1.0, tf.float64))
        return tf.nn.conv3d(x, filters, [1] * 5, "SAME", dilations=[1, 2, 1, 1, 1])

    sums = tf.function(double, jit_compile=True)
    x = tf.constant(np.arange(32.0).reshape(1, 2, 4, 2, 2), tf.float64)
    expected = np.repeat(x.numpy().sum(-1, keepdims=True), 2, -1)
    for _ in range(2):
        found = sums(x)
        np.testing.assert_array_equal(found, expected)
        print(place(found))

    # Keras makes such a function for each call.
    np.testing.assert_array_equal(tf.function(double, jit_compile=True)(x), expected)

    # What the device computes stays there.
    print(place(tf.function(lambda x: x + 1.0, jit_compile=True)(x)))

    count = tf.Variable(0.0)

    @tf.function(jit_compile=True)
    def counted(x):
        with tf.control_dependencies([count.assign_add(1.0)]):
            return double(x)

    def attempt(call):
        try:
            call()
        except tf.errors.OpError as error:
            print("refused", "dilated rates of 1" in str(error))

    # It may have changed the variable before it failed, so it does not run again.
    attempt(lambda: counted(x))
    print(count.numpy())

    with tf.GradientTape() as tape:
        tape.watch(x)
        attempt(lambda: sums(x))

    # Nobody has asked for XLA.
    attempt(lambda: double(x))
"""


def test_what_only_xla_computes_runs_on_the_cpu() -> None:
    process = child.run(PROGRAM)
    assert child.check(process).splitlines() == [
        "CPU:0",
        "CPU:0",
        "TFP:0",
        "refused True",
        "1.0",
        "refused True",
        "refused True",
    ]
    said = [line for line in process.stderr.splitlines() if "with XLA" in line]
    assert len(said) == 1
    assert said[0].startswith("function double runs on the CPU with XLA, because nothing else")
