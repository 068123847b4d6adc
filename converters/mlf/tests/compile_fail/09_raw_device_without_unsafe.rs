// crate: device_raw
// error: E0133
use tvmgen_default::{Devices, RawDevice};

fn main() {
    let mut driver = 1.0f32;
    let handle = (&raw mut driver).cast();
    let ethos_u = RawDevice::from_ptr(handle); // misuse
    let ethos_u = unsafe { RawDevice::from_ptr(handle) }; // right
    drop(Devices { ethos_u });
}
