//! Gradients are what Python's are, in graphs and on tapes.

#[test]
fn tensorflow_is_there() -> tfp::Result<()> {
    tfp::api().map(|_| ())
}
