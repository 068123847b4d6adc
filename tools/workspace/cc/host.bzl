"""The host's gcc as the C and C++ toolchain, with its files as inputs of every action.

The compiler runs from where it is installed. A digest of the compiler, the linker, the C library
and the headers is an input of every compile and link action, so a cache that several machines
share never mixes two of them.
"""

_TOOLS = {
    "ar": "ar",
    "cpp": "cpp",
    "dwp": "dwp",
    "gcc": "gcc",
    "gcov": "gcov",
    "ld": "ld",
    "llvm-cov": "llvm-cov",
    "llvm-profdata": "llvm-profdata",
    "nm": "nm",
    "objcopy": "objcopy",
    "objdump": "objdump",
    "strip": "strip",
}

# Everything that can reach an output: compiler proper, linker, C library, start files, headers.
_DIGEST = """\
set -eu
gcc=$1
own=$(dirname "$("$gcc" -print-libgcc-file-name)")
libc=$(dirname "$("$gcc" -print-file-name=crt1.o)")
for tool in cc1 cc1plus collect2 as ld ar strip; do
  path=$("$gcc" -print-prog-name=$tool)
  found=$(command -v "$path" || true)
  [ -z "$found" ] || echo "$found"
done >tools.txt
{
  cat tools.txt
  readlink -f "$gcc"
  find "$own" -type f
  find "$libc" -maxdepth 1 -name '*crt*.o'
  for lib in libc.so libc.so.6 libc_nonshared.a libm.so libm.so.6 libmvec.so.1 libdl.a libpthread.a libgcc_s.so.1 libstdc++.so.6; do
    if [ -e "$libc/$lib" ]; then echo "$libc/$lib"; fi
  done
  find /usr/include -name '*.h' -type f
} | LC_ALL=C sort -u | tr '\\n' '\\0' | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
"""

_BUILD = """\
load("@bazel_tools//tools/cpp:unix_cc_toolchain_config.bzl", "cc_toolchain_config")
load("@rules_cc//cc:defs.bzl", "cc_toolchain")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "digest",
    srcs = ["toolchain.sha256"],
)

exports_files(["bin/cc"])

# A C compiler for this machine, for what is no action: `bin/cc` and what it needs.
filegroup(
    name = "compiler",
    srcs = [
        "bin/ar",
        "bin/cc",
        ":digest",
    ],
)

cc_toolchain_config(
    name = "config",
    abi_libc_version = "local",
    abi_version = "local",
    compile_flags = [
        "-fstack-protector",
        "-Wall",
        "-fno-omit-frame-pointer",
        "-no-canonical-prefixes",
        "-Wno-builtin-macro-redefined",
        "-D__DATE__=\\"redacted\\"",
        "-D__TIMESTAMP__=\\"redacted\\"",
        "-D__TIME__=\\"redacted\\"",
    ],
    compiler = "gcc",
    coverage_compile_flags = ["--coverage"],
    coverage_link_flags = ["--coverage"],
    cpu = "k8",
    cxx_builtin_include_directories = {includes},
    cxx_flags = ["-std=c++17"],
    dbg_compile_flags = ["-g"],
    host_system_name = "local",
    link_flags = [
        "-Wl,-z,relro,-z,now",
        "-no-canonical-prefixes",
        "-pass-exit-codes",
    ],
    link_libs = ["-lstdc++", "-lm"],
    opt_compile_flags = ["-g0", "-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"],
    opt_link_flags = ["-Wl,--gc-sections"],
    supports_start_end_lib = False,
    target_libc = "local",
    target_system_name = "local",
    tool_paths = {tools},
    toolchain_identifier = "host_gcc",
    unfiltered_compile_flags = [],
)

cc_toolchain(
    name = "cc_x86_64",
    all_files = ":digest",
    ar_files = ":digest",
    as_files = ":digest",
    compiler_files = ":digest",
    dwp_files = ":digest",
    linker_files = ":digest",
    objcopy_files = ":digest",
    strip_files = ":digest",
    supports_param_files = 1,
    toolchain_config = ":config",
    toolchain_identifier = "host_gcc",
)
"""

def _include_directories(rctx, gcc):
    """The folders that gcc itself searches, in its order, as it prints them."""
    result = rctx.execute([gcc, "-E", "-xc++", "-v", "/dev/null"])
    text = result.stderr.split("#include <...> search starts here:")
    if result.return_code != 0 or len(text) != 2:
        fail("cc: {} does not run as a C++ compiler; install g++ (apt-get install g++).\n{}".format(gcc, result.stderr))
    folders = [line.strip() for line in text[1].split("End of search list.")[0].split("\n")]
    return [str(rctx.path(folder).realpath) for folder in folders if folder] + [folder for folder in folders if folder]

def declare_host(rctx):
    """Writes the files of the repository for the host's gcc, or what `CC` names.

    Args:
      rctx: the repository's context.
    """
    name = rctx.os.environ.get("CC", "") or "gcc"
    gcc = rctx.path(name) if name.startswith("/") else rctx.which(name)
    if not gcc:
        fail("cc: no {} on PATH; install a C and C++ compiler (apt-get install g++)".format(name))
    rctx.watch(gcc)
    tools = {name: str(rctx.which(program) or "/bin/false") for name, program in _TOOLS.items()}
    tools["gcc"] = str(gcc)
    rctx.report_progress("hashing the C toolchain")
    digest = rctx.execute(["sh", "-c", _DIGEST, "sh", gcc])
    if digest.return_code != 0:
        fail("cc: the files of {} could not be hashed: {}".format(gcc, digest.stderr))
    rctx.file("toolchain.sha256", digest.stdout)
    includes = {folder: None for folder in _include_directories(rctx, gcc)}
    for name, tool in (("ar", "ar"), ("cc", "gcc")):
        rctx.file("bin/" + name, "#!/bin/sh\nexec '{}' \"$@\"\n".format(tools[tool]))
    rctx.file("BUILD", _BUILD.format(includes = repr(includes.keys()), tools = repr(tools)))
