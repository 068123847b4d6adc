//! The Bazel rule's crate of a vendor's header links with the vendor's library and runs.

use tvm_vendor::{Error, InputX, Inputs, Model, OutputY, Outputs};

#[test]
fn a_vendor_library_runs() {
    let mut output = OutputY::new();
    let input = InputX([0.0, 1.5, 2.0, 0.25]);
    let done = Model::new().run(&Inputs::new(&input), &mut Outputs::new(&mut output));
    assert_eq!(done, Ok(()));
    assert_eq!(*output, [0.0, 3.0, 4.0, 0.5]);
}

#[test]
fn its_code_is_an_error() {
    let mut output = OutputY::new();
    let input = InputX([-1.0; InputX::LEN]);
    let done = Model::new().run(&Inputs::new(&input), &mut Outputs::new(&mut output));
    assert_eq!(done, Err(Error::Kernel));
}
