//! A device's memory, its errors, and threads that call it side by side.

use std::ptr::NonNull;

use tfp_gpu::{Gpu, Options, Outcome, Problem, Reason, body, gpus, open};
use tfp_gpu_check::cases::kernel;
use tfp_gpu_check::run::{Case, Failure};
use tfp_gpu_check::tensor::Random;
use tfp_kernels::base::dtype::DType;

fn gpu(decline_small: bool) -> Gpu {
    let found = gpus().expect("these tests need a Vulkan driver, such as Mesa's lavapipe");
    assert!(!found.is_empty(), "Vulkan lists not a device");
    let options = Options {
        decline_small,
        ..Options::default()
    };
    open(0, &options).unwrap()
}

#[test]
fn a_gpu_that_is_not_there_is_an_error() {
    let found = gpus().unwrap().len();
    let problem = open(99, &Options::default()).err();
    assert_eq!(problem, Some(Problem::NoSuchGpu { index: 99, found }));
}

#[test]
fn memory_is_counted_and_what_is_not_there_refused() {
    let gpu = gpu(false);
    let before = gpu.memory();
    let block = gpu.allocate(1000).unwrap();
    assert_eq!(block.as_ptr() as usize % 64, 0);
    assert_eq!(gpu.memory().used, before.used + 1024);
    let asked = before.total;
    let refused = gpu.allocate(asked);
    assert!(matches!(refused, Err(Problem::Memory { asked: found, .. }) if found == asked));
    // SAFETY: nobody uses the block, and the other address is not one of a block.
    unsafe {
        assert!(!gpu.free(NonNull::dangling()));
        assert!(gpu.free(block));
    }
    assert_eq!(gpu.memory(), before);
}

#[test]
fn a_call_of_host_memory_and_a_small_one_are_declined() {
    let case = Case::new(kernel("Neg"), vec![Random::new(1).tensor(&[64], 1.0)]);
    let body = body(case.def, DType::F32).unwrap();
    let on_host = gpu(false);
    let outcome = case.on_host(&on_host, &body).unwrap();
    assert_eq!(outcome, Outcome::Declined(Reason::Memory));
    let small = case.on_gpu(&gpu(true), &body);
    assert!(matches!(small, Err(Failure::Declined(Reason::Small))));
}

#[test]
fn threads_call_side_by_side() {
    let gpu = gpu(false);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let gpu = &gpu;
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for turn in 0..50 {
                    let inputs = (0..2).map(|_| random.tensor(&[64 + turn], 2.0)).collect();
                    let case = Case::new(kernel("AddV2"), inputs);
                    let body = body(case.def, DType::F32).unwrap();
                    assert_eq!(case.on_gpu(gpu, &body).unwrap(), case.on_cpu().unwrap());
                }
            });
        }
    });
    assert_eq!(gpu.memory().used, 0);
}

#[test]
fn the_device_copies_to_the_host() {
    let gpu = gpu(false);
    let len = (1 << 25) + 5000;
    let block = gpu.allocate(len + 100).unwrap();
    // SAFETY: the block holds as many bytes, and nobody else has it.
    let bytes = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), len + 100) };
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at * 7 % 251) as u8;
    }
    let mut found = vec![0; len];
    let address = block.as_ptr() as usize;
    assert!(gpu.read(address + 100, &mut found).unwrap());
    assert!(found == bytes[100..]);
    // Beyond the block, in the host's own memory, and too little.
    assert!(!gpu.read(address + 1000, &mut found).unwrap());
    let own = found.clone();
    assert!(!gpu.read(own.as_ptr() as usize, &mut found).unwrap());
    assert!(!gpu.read(address, &mut found[..64]).unwrap());
    // SAFETY: nobody uses the block any more.
    assert!(unsafe { gpu.free(block) });
}

#[test]
fn the_device_copies_within_its_memory() {
    let gpu = gpu(false);
    let blocks = [gpu.allocate(20_000).unwrap(), gpu.allocate(20_000).unwrap()];
    // SAFETY: each block holds as many bytes, and nobody else has them.
    let [from, to] =
        blocks.map(|block| unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), 20_000) });
    for (at, byte) in from.iter_mut().enumerate() {
        *byte = (at * 7 % 251) as u8;
    }
    to.fill(0);
    let address = from.as_ptr() as usize;
    assert!(gpu.owns(address, 20_000) && !gpu.owns(address, 1 << 20));
    assert!(gpu.read(address + 64, &mut to[128..10_128]).unwrap());
    assert!(to[..128] == [0; 128] && to[128..10_128] == from[64..10_064]);
    assert!(to[10_128..].iter().all(|&byte| byte == 0));
    // Parts that overlap, and places between words.
    assert!(!gpu.read(address + 64, &mut from[4096..14_096]).unwrap());
    assert!(!gpu.read(address + 1, &mut to[..8000]).unwrap());
    for block in blocks {
        // SAFETY: nobody uses the block any more.
        assert!(unsafe { gpu.free(block) });
    }
}

#[test]
fn a_kernel_that_takes_too_long_loses_the_device() {
    fn lost<T>(done: &Result<T, Failure>) -> bool {
        matches!(done, Err(Failure::Gpu(Problem::Lost(_))))
    }
    let quick = Options {
        decline_small: false,
        patience: std::time::Duration::ZERO,
        ..Options::default()
    };
    let gpu = open(0, &quick).unwrap();
    let mut random = Random::new(1);
    let mut of = |elements| Case::new(kernel("Neg"), vec![random.tensor(&[elements], 1.0)]);
    let (large, small) = (of(1 << 24), of(64));
    let body = body(small.def, DType::F32).unwrap();
    assert!(!gpu.is_lost());
    let first = large.on_gpu(&gpu, &body).map(|outputs| outputs.len());
    assert!(lost(&first), "{first:?}");
    assert!(gpu.is_lost());
    // The kernel may still run: its memory stays.
    assert!(gpu.memory().used >= 2 << 26);
    assert!(lost(&small.on_gpu(&gpu, &body)));
    drop(gpu);
    let patient = Options {
        decline_small: false,
        ..Options::default()
    };
    let next = open(0, &patient).unwrap();
    let computed = small.on_gpu(&next, &body).unwrap();
    assert_eq!(computed, small.on_cpu().unwrap());
}
