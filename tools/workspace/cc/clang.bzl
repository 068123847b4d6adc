"""clang and lld of the wheel `ziglang` as C and C++ toolchains, with all of their files as inputs.

The wheel has both programs under `zig clang` and `zig ld.lld`, and what it takes to link against
any version of glibc. Here it makes a sysroot with the oldest glibc that Rust serves: what is built
runs on every Linux from that one on, whatever the machine that builds has.

C++ has the headers of libc++ and the language itself, such as `new` and exceptions; there is no
standard library of C++ to link, so a class that is not wholly in a header is an error of the linker.
"""

load(":libgcc.bzl", "write_libgcc")

GLIBC = "2.17"

# cpu of Bazel's platforms -> the name of the processor in clang's targets, in zig's folders of
# headers, and flags of its own.
_TARGETS = {
    "aarch64": struct(arch = "aarch64", headers = "aarch64", flags = "-mno-outline-atomics"),
    "x86_64": struct(arch = "x86_64", headers = "x86", flags = ""),
}

# The wheel's own settings of libc++, which has no configuration file in it.
_LIBCXX = [
    "-D_LIBCPP_ABI_NAMESPACE=__1",
    "-D_LIBCPP_ABI_VERSION=1",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
    "-D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS",
    "-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
    "-D_LIBCPP_HAS_FILESYSTEM=1",
    "-D_LIBCPP_HAS_LOCALIZATION=1",
    "-D_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "-D_LIBCPP_HAS_MUSL_LIBC=0",
    "-D_LIBCPP_HAS_RANDOM_DEVICE=1",
    "-D_LIBCPP_HAS_TERMINAL=1",
    "-D_LIBCPP_HAS_THREADS=1",
    "-D_LIBCPP_HAS_TIME_ZONE_DATABASE=1",
    "-D_LIBCPP_HAS_UNICODE=1",
    "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "-D_LIBCPP_HAS_WIDE_CHARACTERS=1",
    "-D_LIBCPP_PSTL_BACKEND_SERIAL",
]

# Relative to itself, so that no path of a machine is in an action.
_CC = """\
#!/bin/sh
# clang for {target}, with lld, against glibc {glibc}.
case $0 in
  */*) here=${{0%/*}} ;;
  *) here=. ;;
esac
exec "$here/zig" clang --no-default-config --target={target} {flags} \\
  --sysroot="$here/sysroot/{target}" -resource-dir="$here/lib" -fuse-ld=lld -B"$here/bin" \\
  -Wno-unused-command-line-argument "$@" -D__GLIBC_MINOR__={minor} {libcxx} \\
  -nostdlibinc -stdlib++-isystem "$here/lib/libcxx/include" -stdlib++-isystem "$here/lib/libcxxabi/include"{headers}
"""

_LLD = """\
#!/bin/sh
exec "${0%/*}/../zig" ld.lld "$@"
"""

_AR = """\
#!/bin/sh
exec "${0%/*}/zig" ar "$@"
"""

# By the names that rustc, Cargo and makefiles look for on PATH.
_HOST_CC = """\
#!/bin/sh
exec "${0%/*}/../x86_64-linux-gnu-cc" "$@"
"""

_HOST_AR = """\
#!/bin/sh
exec "${0%/*}/../zig" ar "$@"
"""

_BUILD = """\
load("@bazel_tools//tools/cpp:unix_cc_toolchain_config.bzl", "cc_toolchain_config")
load("@rules_cc//cc:defs.bzl", "cc_toolchain")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "programs",
    srcs = [
        "ar",
        "bin/ld.lld",
        "zig",
    ],
)

exports_files(["bin/cc"])

# A C compiler for this machine, for what is no action: `bin/cc` and what it needs.
filegroup(
    name = "compiler",
    srcs = [
        "bin/ar",
        "bin/cc",
        ":x86_64_c_files",
    ],
)
"""

_TOOLCHAIN = """
filegroup(
    name = "{cpu}_linker_files",
    srcs = [
        ":programs",
        "{target}-cc",
    ] + glob(["sysroot/{target}/**"]),
)

filegroup(
    name = "{cpu}_c_files",
    srcs = [":{cpu}_linker_files"] + glob([
        "lib/include/**",
        "lib/libc/include/any-linux-any/**",
        "lib/libc/include/generic-glibc/**",
        "lib/libc/include/{headers}-linux-*/**",
    ]),
)

filegroup(
    name = "{cpu}_files",
    srcs = [":{cpu}_c_files"] + glob([
        "lib/libcxx/include/**",
        "lib/libcxxabi/include/**",
    ]),
)

cc_toolchain_config(
    name = "{cpu}_config",
    abi_libc_version = "glibc_{glibc}",
    abi_version = "gnu",
    compile_flags = [
        "-fstack-protector",
        "-Wall",
        "-fno-omit-frame-pointer",
        "-ffile-compilation-dir=.",
        "-no-canonical-prefixes",
        "-Wno-builtin-macro-redefined",
        "-D__DATE__=\\"redacted\\"",
        "-D__TIMESTAMP__=\\"redacted\\"",
        "-D__TIME__=\\"redacted\\"",
    ],
    compiler = "clang",
    coverage_compile_flags = [],
    coverage_link_flags = [],
    cpu = "{cpu}",
    cxx_builtin_include_directories = [],
    cxx_flags = ["-std=c++17"],
    dbg_compile_flags = ["-g"],
    host_system_name = "local",
    link_flags = ["-Wl,-z,relro,-z,now"],
    link_libs = [
        "-Wl,--push-state,--as-needed",
        "-lstdc++",
        "-Wl,--pop-state",
        "-lm",
    ],
    opt_compile_flags = ["-g0", "-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"],
    opt_link_flags = ["-Wl,--gc-sections"],
    supports_start_end_lib = True,
    target_libc = "glibc_{glibc}",
    target_system_name = "{target}",
    tool_paths = {{
        "ar": "ar",
        "cpp": "{target}-cc",
        "dwp": "/bin/false",
        "gcc": "{target}-cc",
        "gcov": "/bin/false",
        "ld": "bin/ld.lld",
        "llvm-cov": "/bin/false",
        "llvm-profdata": "/bin/false",
        "nm": "/bin/false",
        "objcopy": "/bin/false",
        "objdump": "/bin/false",
        "strip": "/bin/false",
    }},
    toolchain_identifier = "clang_{cpu}",
    unfiltered_compile_flags = [],
)

cc_toolchain(
    name = "cc_{cpu}",
    all_files = ":{cpu}_files",
    ar_files = ":programs",
    as_files = ":{cpu}_files",
    compiler_files = ":{cpu}_files",
    dwp_files = ":programs",
    linker_files = ":{cpu}_linker_files",
    objcopy_files = ":programs",
    strip_files = ":programs",
    supports_param_files = 1,
    toolchain_config = ":{cpu}_config",
    toolchain_identifier = "clang_{cpu}",
)
"""

# The name at link time -> what zig calls it.
_LIBRARIES = {
    "libc.so.6": "libc.so.6",
    "libdl.so": "libdl.so.2",
    "libld.so": "libld.so.2",
    "libm.so": "libm.so.6",
    "libpthread.so": "libpthread.so.0",
    "libresolv.so": "libresolv.so.2",
    "librt.so": "librt.so.1",
    "libutil.so": "libutil.so.1",
}

def _run(rctx, command, what):
    result = rctx.execute(command, environment = {
        "ZIG_GLOBAL_CACHE_DIR": "work/cache",
        "ZIG_LOCAL_CACHE_DIR": "work/cache",
    })
    if result.return_code != 0:
        fail("cc: {} could not be built: {}".format(what, result.stderr))
    return result.stderr

def _write_sysroot(rctx, zig, target):
    """Lets zig link two programs, and keeps the start files and libraries that it made for them."""
    folder = "sysroot/{}/usr/lib".format(target)
    rctx.file("work/main.c", "int main(void) { return 0; }\n")
    for pie, start in (("-fno-PIE", "crt1.o"), ("-fPIE", "Scrt1.o")):
        log = _run(rctx, [
            zig,
            "build-exe",
            "work/main.c",
            "-lc",
            "-target",
            "{}.{}".format(target, GLIBC),
            "-OReleaseSmall",
            "-fstrip",
            pie,
            "--verbose-link",
            "-femit-bin=work/main",
        ], "the C library for " + target)
        made = {word.rpartition("/")[2]: word for word in log.replace("\n", " ").split(" ") if word.startswith("work/cache/")}
        wanted = {start: start}
        if start == "crt1.o":
            wanted = wanted | _LIBRARIES | {"libc_nonshared.a": "libc_nonshared.a"}
        for name, source in wanted.items():
            if source not in made:
                fail("cc: {} linked no {} for {}".format(zig, source, target))
            rctx.execute(["mkdir", "-p", folder])
            _run(rctx, ["cp", made[source], "{}/{}".format(folder, name)], name)
    rctx.file(folder + "/libc.so", "GROUP(libc.so.6 libc_nonshared.a AS_NEEDED(libld.so))\n", executable = False)
    gcc = "{}/gcc/{}/12".format(folder, target)
    rctx.execute(["mkdir", "-p", gcc])
    write_libgcc(rctx, zig, target, gcc)

def declare_clang(rctx, wheel):
    """Writes the files of the repository.

    Args:
      rctx: the repository's context.
      wheel: the folder of the unpacked wheel `ziglang`.
    """
    home = wheel.get_child("ziglang")
    zig = home.get_child("zig")
    if not zig.exists:
        fail("cc: {} has no ziglang/zig; TFP_ZIG has to name the unpacked wheel ziglang".format(wheel))
    rctx.watch(zig)
    rctx.symlink(zig, "zig")
    for folder in ("include", "libc/include", "libcxx/include", "libcxxabi/include"):
        rctx.symlink(home.get_child("lib").get_child(*folder.split("/")), "lib/" + folder)
    rctx.file("bin/ld.lld", _LLD)
    rctx.file("ar", _AR)
    rctx.file("bin/cc", _HOST_CC)
    rctx.file("bin/ar", _HOST_AR)
    build = _BUILD
    for cpu, row in _TARGETS.items():
        target = row.arch + "-linux-gnu"
        rctx.report_progress("making the C library for " + target)
        _write_sysroot(rctx, str(zig), target)
        folders = [row.headers + "-linux-gnu", "generic-glibc", row.headers + "-linux-any", "any-linux-any"]
        rctx.file(target + "-cc", _CC.format(
            flags = row.flags,
            glibc = GLIBC,
            headers = "".join([
                ' \\\n  -Xclang -internal-externc-isystem -Xclang "$here/lib/libc/include/{}"'.format(folder)
                for folder in folders
            ]),
            libcxx = " ".join(_LIBCXX),
            minor = GLIBC.partition(".")[2],
            target = target,
        ))
        build += _TOOLCHAIN.format(cpu = cpu, glibc = GLIBC, headers = row.headers, target = target)
    rctx.delete("work")
    rctx.file("BUILD", build)
