//! A vendor's C driver: the handle is the only thing that needs `unsafe`.

use tvmgen_default::{Devices, Error, InputX, Inputs, Model, OutputY, Outputs, RawDevice};

fn run(scale: &mut f32) -> Result<OutputY, Error> {
    let input = InputX([1.5, -2.0, 0.25, 8.0]);
    let mut output = OutputY::new();
    // SAFETY: the driver wants the address of a float, which outlives the run.
    let handle = unsafe { RawDevice::from_ptr((&raw mut *scale).cast()) };
    let mut devices = Devices::new(handle);
    Model::new().run(
        &Inputs::new(&input),
        &mut Outputs::new(&mut output),
        &mut devices,
    )?;
    Ok(output)
}

#[test]
fn the_driver_gets_the_handle() {
    assert_eq!(run(&mut 3.0).unwrap().0, [4.5, -6.0, 0.75, 24.0]);
}

#[test]
fn a_failure_is_an_error() {
    let error = run(&mut 0.0).unwrap_err();
    assert_eq!(error, Error::Kernel);
    assert_eq!(error.code(), -1);
    assert_eq!(error.to_string(), "a kernel of the model failed (code -1)");
}
