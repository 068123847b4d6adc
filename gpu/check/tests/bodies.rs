//! Every body against the kernel of the CPU, on the device that Vulkan lists first.

use tfp_gpu::{Gpu, Options, bodies, gpus, open};
use tfp_gpu_check::cases;
use tfp_gpu_check::compare::check;

fn gpu() -> Gpu {
    let found = gpus().expect("these tests need a Vulkan driver, such as Mesa's lavapipe");
    assert!(!found.is_empty(), "Vulkan lists not a device");
    let options = Options {
        decline_small: false,
        ..Options::default()
    };
    open(0, &options).unwrap()
}

#[test]
fn bodies_compute_what_the_kernels_do() {
    let gpu = gpu();
    let mut wrong = Vec::new();
    let mut checked = std::collections::BTreeSet::new();
    for seed in [1] {
        for each in cases::all(seed) {
            match check(&gpu, &each.case, each.tolerance) {
                Ok(true) => {
                    checked.insert(each.case.def.op);
                }
                Ok(false) if !each.must => {}
                Ok(false) => wrong.push(format!(
                    "{} declined {:?}",
                    each.case.def.op,
                    each.case
                        .inputs
                        .iter()
                        .map(|input| &input.dims)
                        .collect::<Vec<_>>()
                )),
                Err(text) => wrong.push(text),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
    let unchecked: Vec<_> = bodies().filter(|(op, _)| !checked.contains(op)).collect();
    assert!(unchecked.is_empty(), "not checked: {unchecked:?}");
}
