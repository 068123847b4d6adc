"""A program that maps a model's weights, for tests of its memory; Linux."""

from __future__ import annotations

STATUS = """
fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("the process' status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    let kib: String = line.chars().filter(char::is_ascii_digit).collect();
    kib.parse::<usize>().expect("a number") << 10
}
"""
"""A function that returns bytes of a line of the process' status."""

_MAPPED = """
use std::os::fd::AsRawFd;
use std::sync::Arc;

unsafe extern "C" {
    fn mmap(at: *mut u8, len: usize, allow: i32, kind: i32, file: i32, from: i64) -> *const u8;
}

fn mapped(path: &str) -> &'static [u8] {
    let file = std::fs::File::open(path).expect("the weights");
    let len = file.metadata().expect("a length").len() as usize;
    // SAFETY: nobody writes to the file, and the map stays.
    unsafe {
        let bytes = mmap(std::ptr::null_mut(), len, 1, 1, file.as_raw_fd(), 0);
        assert!(bytes.addr() != usize::MAX);
        std::slice::from_raw_parts(bytes, len)
    }
}

struct Map(&'static [u8]);

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

fn main() {
    let path = "model/model_weights.bin";
    let before = status("RssAnon:");
    let model = match std::env::args().nth(1).as_deref() {
        Some("static") => CRATE::TYPE::from_static(mapped(path)),
        Some("shared") => CRATE::TYPE::from_shared(Arc::new(Map(mapped(path)))),
        _ => CRATE::TYPE::from_file(path),
    };
    let model = model.expect("a model");
    let made = status("RssAnon:").saturating_sub(before);
    let x: Vec<f32> = (0..EXAMPLES * UNITS).map(|i| (i % 23) as f32 / 23.0).collect();
    let results = model.clone().predict(CRATE::Inputs { x: &x }).expect("a result");
    let bits = results.OUTPUT.iter().map(|x| u64::from(x.to_bits()));
    let sum = bits.fold(0, |sum: u64, x| sum.rotate_left(5) ^ x);
    println!("{made} {} {sum}", status("RssAnon:").saturating_sub(before));
    let refused = CRATE::TYPE::from_static(&mapped(path)[8..]);
    assert!(matches!(refused, Err(CRATE::Error::Weights { .. })));
}
"""

SOURCES = ("file", "static", "shared")
"""How the program makes its model, by its argument."""


def mapped_program(crate: str, kind: str, output: str, units: int, examples: int) -> str:
    """Returns the program's text.

    It prints by how many bytes the process' own memory grew with a model, and after a call. A sum
    of the bits of the results follows.

    Args:
        crate: The model's crate, whose input is `x`: f32 of shape [batch, units].
        kind: Its type.
        output: Its output.
        units: Elements of an example.
        examples: Examples of the call.
    """
    text = STATUS + _MAPPED
    for name, value in (
        ("CRATE", crate),
        ("TYPE", kind),
        ("OUTPUT", output),
        ("UNITS", str(units)),
        ("EXAMPLES", str(examples)),
    ):
        text = text.replace(name, value)
    return text
