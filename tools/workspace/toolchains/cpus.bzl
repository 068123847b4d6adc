"""The processors that the toolchains of C and Rust build for."""

CPUS = [
    "aarch64",
    "x86_64",
]
