//! Running a model with a device whose driver is written in Rust.
//!
//! Crate: the hand-made archive `device_hooks`, compiled for an `ethos_u`.

use tvmgen_default::{
    Device, DeviceError, Devices, Error, InputX, Inputs, Model, OutputY, Outputs,
};

/// Counts how often the accelerator is powered; a real driver would talk to its registers.
#[derive(Default)]
struct EthosU {
    powered: u32,
    jobs: u32,
}

impl Device for EthosU {
    fn activate(&mut self) -> Result<(), DeviceError> {
        self.powered += 1;
        Ok(())
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        self.jobs += 1;
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), DeviceError> {
        self.powered -= 1;
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let input_data = InputX([1.0, 2.0, 3.0, 4.0]);
    let mut output_data = OutputY::new();
    let mut driver = EthosU::default();

    Model::new().run(
        &Inputs::new(&input_data),
        &mut Outputs::new(&mut output_data),
        &mut Devices::new(&mut driver),
    )?;

    assert_eq!(output_data.0, [2.0, 4.0, 6.0, 8.0]);
    assert_eq!((driver.powered, driver.jobs), (0, 1));
    println!("{output_data:?}");
    Ok(())
}
