"""The Rust toolchains: a local sysroot, or the release that rules_rust downloads.

A standard library for another processor is a repository of its own, fetched when it is needed.
"""

load("@rules_rust//rust/platform:triple.bzl", "triple")

# The only functions of rules_rust that download a toolchain, and so the only place that knows where.
# buildifier: disable=bzl-visibility
load(
    "@rules_rust//rust/private:repository_utils.bzl",
    "load_cargo",
    "load_clippy",
    "load_rust_compiler",
    "load_rust_stdlib",
    "load_rustfmt",
)

# What is downloaded where no local toolchain is named.
_VERSION = "1.95.0"
_SHA256S = {
    "cargo-1.95.0-x86_64-unknown-linux-gnu.tar.xz": "e74edd2cf7d0f1f1383b4f00eb90c843750bc489e2ccf7214e6476678a907425",
    "clippy-1.95.0-x86_64-unknown-linux-gnu.tar.xz": "ac779bc9839dd47180806b133e4e2563c4a34716284cd5b8fede8ef289f452ca",
    "rust-std-1.95.0-aarch64-unknown-linux-gnu.tar.xz": "3a21b271b1ff973b94d69b25e7a39992f9fbcae1ab6d9475844a23e6ad3908ac",
    "rust-std-1.95.0-wasm32-unknown-unknown.tar.xz": "5587b89ff69623d09e476439d44a24453b4e4ea3d5e0b53a5c0a935151ff3fd1",
    "rust-std-1.95.0-x86_64-unknown-linux-gnu.tar.xz": "047ea7098803d3500fa1072e9cee5392697e21525559e4458128a2bf874aa382",
    "rustc-1.95.0-x86_64-unknown-linux-gnu.tar.xz": "8426a3d170a5879f5682f5fbdd024a1779b3951e7baba685af2d6dc32a6dfc15",
    "rustfmt-1.95.0-x86_64-unknown-linux-gnu.tar.xz": "f1b2a7301513ffdd95ebf22ebbdd932e4d17fc806f748d93924740d0297b1396",
}
_TRIPLE = "x86_64-unknown-linux-gnu"
_ARM64 = "aarch64-unknown-linux-gnu"
_PROGRAMS = ["cargo", "cargo-clippy", "clippy-driver", "rustc", "rustdoc", "rustfmt"]

# From 1.91 on, rustc keeps a library's metadata beside its rlib, so both are inputs.
_BUILD = """\
load("@rules_rust//rust:toolchain.bzl", "rust_stdlib_filegroup", "rust_toolchain")

package(default_visibility = ["//visibility:public"])

exports_files(glob(["bin/*"]))

filegroup(
    name = "rustc_lib",
    srcs = glob(
        [
            "lib/*.so*",
            "lib/rustlib/{triple}/bin/**",
            "lib/rustlib/{triple}/codegen-backends/*.so",
            "lib/rustlib/{triple}/lib/*.so*",
        ],
        allow_empty = True,
    ),
)

"""

_STD = """
rust_stdlib_filegroup(
    name = "rust_std",
    srcs = glob(
        [
            "lib/rustlib/{triple}/lib/*.rlib",
            "lib/rustlib/{triple}/lib/*.rmeta",
            "lib/rustlib/{triple}/lib/*.so*",
            "lib/rustlib/{triple}/lib/*.a",
            "lib/rustlib/{triple}/lib/self-contained/**",
        ],
        allow_empty = True,
    ),
)
"""

_SYSROOT = """
# Everything that a program needs to run rustc itself, with `bin/rustc` among it.
filegroup(
    name = "sysroot",
    srcs = glob(["bin/*"]) + [
        ":rust_std",
        ":rustc_lib",
    ],
)
"""

_TOOLCHAIN = """
rust_toolchain(
    name = "{name}",
    allocator_library = "@rules_rust//ffi/cc/allocator_library",
    binary_ext = "",
    cargo = "bin/cargo",
    cargo_clippy = {cargo_clippy},
    clippy_driver = {clippy_driver},
    default_edition = "2024",
    dylib_ext = ".so",
    exec_triple = "{exec_triple}",
    global_allocator_library = "@rules_rust//ffi/cc/global_allocator_library",
    rust_doc = "bin/rustdoc",
    rust_std = "{std}",
    rustc = "bin/rustc",
    rustc_lib = ":rustc_lib",
    rustfmt = {rustfmt},
    staticlib_ext = ".a",
    stdlib_linkflags = ["-lpthread", "-ldl"],
    target_triple = "{triple}",
)
"""

_STD_BUILD = """\
load("@rules_rust//rust:toolchain.bzl", "rust_stdlib_filegroup")

package(default_visibility = ["//visibility:public"])

# What is in the repository's folder, for programs that take the folder.
exports_files(["root"])
"""

def _sysroot(rctx):
    """The folder of a local toolchain, or None where none is named or found."""
    named = rctx.os.environ.get("TFP_RUST_SYSROOT", "")
    if named:
        return rctx.path(named)
    rustc = None if rctx.os.environ.get("TFP_RUST_DOWNLOAD", "") else rctx.which("rustc")
    found = rctx.execute([rustc, "--print", "sysroot"]) if rustc else None
    return rctx.path(found.stdout.strip()) if found and found.return_code == 0 else None

def _rust_impl(rctx):
    sysroot = _sysroot(rctx)
    if sysroot:
        if not sysroot.get_child("bin").get_child("rustc").exists:
            fail("rust: {} has no bin/rustc; set TFP_RUST_SYSROOT to what `rustc --print sysroot` says".format(sysroot))
        rctx.watch(sysroot.get_child("bin").get_child("rustc"))
        rctx.symlink(sysroot.get_child("lib"), "lib")
        for program in _PROGRAMS:
            if sysroot.get_child("bin").get_child(program).exists:
                rctx.symlink(sysroot.get_child("bin").get_child(program), "bin/" + program)
    else:
        target = triple(_TRIPLE)
        load_rust_compiler(rctx, iso_date = None, target_triple = target, version = _VERSION)
        load_rust_stdlib(rctx, iso_date = None, target_triple = target, version = _VERSION)
        load_cargo(rctx, iso_date = None, target_triple = target, version = _VERSION)
        load_clippy(rctx, iso_date = None, target_triple = target, version = _VERSION)
        load_rustfmt(rctx, iso_date = None, target_triple = target, version = _VERSION)
    have = {program: rctx.path("bin/" + program).exists for program in _PROGRAMS}
    label = {program: repr("bin/" + program) if have[program] else "None" for program in _PROGRAMS}
    build = (_BUILD + _STD + _SYSROOT).format(triple = _TRIPLE)
    for name, target, std in (
        ("rust_x86_64", _TRIPLE, ":rust_std"),
        ("rust_aarch64", _ARM64, "@rust_std_aarch64//:rust_std"),
    ):
        build += _TOOLCHAIN.format(
            name = name,
            cargo_clippy = label["cargo-clippy"],
            clippy_driver = label["clippy-driver"],
            exec_triple = _TRIPLE,
            rustfmt = label["rustfmt"],
            std = std,
            triple = target,
        )
    rctx.file("BUILD", build)

def _config_impl(rctx):
    sysroot = _sysroot(rctx)

    # A download has all programs.
    has_clippy, has_rustfmt = [
        not sysroot or sysroot.get_child("bin").get_child(program).exists
        for program in ("clippy-driver", "rustfmt")
    ]
    rctx.file("config.bzl", "HAS_CLIPPY = {}\nHAS_RUSTFMT = {}\n".format(has_clippy, has_rustfmt))
    rctx.file("BUILD", "")

rust_config = repository_rule(
    implementation = _config_impl,
    configure = True,
    doc = """Says in `config.bzl` which programs `rust_sysroot` has.

Packages load it, so it fetches nothing: what they load is there before anything else is fetched.""",
    environ = ["PATH", "TFP_RUST_DOWNLOAD", "TFP_RUST_SYSROOT"],
)

rust_sysroot = repository_rule(
    implementation = _rust_impl,
    configure = True,
    doc = """Declares what the toolchains of this package stand on.

It is the sysroot that `TFP_RUST_SYSROOT` names, else that of `rustc` on `PATH`, else a download
(always a download if `TFP_RUST_DOWNLOAD` is set).""",
    attrs = {
        "sha256s": attr.string_dict(default = _SHA256S, doc = "Hashes of the archives of a download."),
    },
    environ = ["PATH", "TFP_RUST_DOWNLOAD", "TFP_RUST_SYSROOT"],
)

def _std_impl(rctx):
    target = rctx.attr.triple
    sysroot = _sysroot(rctx)
    if sysroot:
        std = sysroot.get_child("lib").get_child("rustlib").get_child(target)

        # Also while it is missing: what `rustup target add` installs is seen by the next build.
        rctx.watch(std.get_child("lib"))
        if std.get_child("lib").exists:
            rctx.symlink(std, "lib/rustlib/" + target)
        elif not rctx.attr.optional:
            fail("rust: {} has no library for {}; install it (rustup target add {}) or name a toolchain that has it with TFP_RUST_SYSROOT".format(sysroot, target, target))
    else:
        load_rust_stdlib(rctx, iso_date = None, target_triple = triple(target), version = _VERSION)
    rctx.file("root", "")
    rctx.file("BUILD", _STD_BUILD + _STD.format(triple = target))

rust_std = repository_rule(
    implementation = _std_impl,
    configure = True,
    doc = """Declares Rust's standard library for a processor other than the host's.

It is in the toolchain that `rust_sysroot` finds, or downloaded where that is.""",
    attrs = {
        "optional": attr.bool(doc = "Whether the repository is empty where a local toolchain lacks the library."),
        "sha256s": attr.string_dict(default = _SHA256S, doc = "Hashes of the archives of a download."),
        "triple": attr.string(mandatory = True, doc = "The target, as rustc names it."),
    },
    environ = ["PATH", "TFP_RUST_DOWNLOAD", "TFP_RUST_SYSROOT"],
)
