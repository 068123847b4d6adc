//! A driver in Rust: hooks run in order, errors keep their code, failed runs are cleaned up.

use core::num::NonZeroI32;
use tvmgen_default::{
    Device, DeviceError, Devices, Error, Hook, InputX, Inputs, Model, OutputY, Outputs,
};

#[derive(Default)]
struct Npu {
    log: Vec<Hook>,
    fail: Option<(Hook, i32)>,
}

impl Npu {
    fn step(&mut self, hook: Hook) -> Result<(), DeviceError> {
        self.log.push(hook);
        match self.fail {
            Some((at, code)) if at == hook => Err(DeviceError(NonZeroI32::new(code).unwrap())),
            _ => Ok(()),
        }
    }
}

impl Device for Npu {
    fn activate(&mut self) -> Result<(), DeviceError> {
        self.step(Hook::Activate)
    }
    fn open(&mut self) -> Result<(), DeviceError> {
        self.step(Hook::Open)
    }
    fn close(&mut self) -> Result<(), DeviceError> {
        self.step(Hook::Close)
    }
    fn deactivate(&mut self) -> Result<(), DeviceError> {
        self.step(Hook::Deactivate)
    }
}

fn run(npu: &mut Npu) -> (Result<(), Error>, OutputY) {
    let input = InputX([1.5, -2.0, 0.25, 8.0]);
    let mut output = OutputY::new();
    let mut devices = Devices { ethos_u: npu };
    let result = Model::new().run(
        &Inputs::new(&input),
        &mut Outputs::new(&mut output),
        &mut devices,
    );
    (result, output)
}

#[test]
fn hooks_run_in_order() {
    let mut npu = Npu::default();
    let (result, output) = run(&mut npu);
    assert_eq!(result, Ok(()));
    assert_eq!(output.0, [3.0, -4.0, 0.5, 16.0]);
    assert_eq!(
        npu.log,
        [Hook::Activate, Hook::Open, Hook::Close, Hook::Deactivate]
    );
}

#[test]
fn a_failed_hook_is_told_and_cleaned_up_after() {
    for (hook, expected) in [
        (Hook::Activate, vec![Hook::Activate, Hook::Deactivate]),
        (
            Hook::Open,
            vec![Hook::Activate, Hook::Open, Hook::Close, Hook::Deactivate],
        ),
        (
            Hook::Close,
            vec![Hook::Activate, Hook::Open, Hook::Close, Hook::Deactivate],
        ),
        (
            Hook::Deactivate,
            vec![Hook::Activate, Hook::Open, Hook::Close, Hook::Deactivate],
        ),
    ] {
        let mut npu = Npu {
            log: Vec::new(),
            fail: Some((hook, 77)),
        };
        let (result, _) = run(&mut npu);
        let code = NonZeroI32::new(77).unwrap();
        assert_eq!(
            result,
            Err(Error::Device {
                device: "ethos_u",
                hook,
                code
            })
        );
        assert_eq!(result.unwrap_err().code(), 77);
        assert_eq!(npu.log, expected);
    }
}
