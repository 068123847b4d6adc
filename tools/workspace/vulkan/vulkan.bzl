"""Vulkan for tests: Mesa's software driver (lavapipe) and the loader, from Debian's packages, without root."""

# The oldest C library that the packages run on.
_GLIBC = (2, 36)

_LIBRARY_FOLDERS = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]

# `library_path` is relative to the file itself.
_ICD = """\
{"file_format_version": "1.0.0", "ICD": {"library_path": "./libvulkan_driver.so", "api_version": "1.3.230"}}
"""

# The driver finds its libraries by an rpath of the old kind, which holds for what they load in turn.
# So no test needs them in LD_LIBRARY_PATH, where every program of the test would find them.
_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_binary")

package(default_visibility = ["//visibility:public"])

exports_files(["icd.json"])

_HERE = {constraints}

cc_binary(
    name = "libvulkan_driver.so",
    additional_linker_inputs = ["lib/libvulkan_lvp.so"],
    data = glob(
        ["lib/*.so*"],
        allow_empty = True,
    ),
    linkopts = [
        "-Wl,--no-as-needed,--disable-new-dtags,--allow-shlib-undefined",
        "-Wl,-rpath,$$ORIGIN/lib",
        "$(execpath lib/libvulkan_lvp.so)",
    ],
    linkshared = True,
    target_compatible_with = _HERE,
)

# What a test needs at run time; see `//tools/workspace/vulkan:test.bzl`. A filegroup has the runfiles
# of `data` among its own, those of `srcs` not.
filegroup(
    name = "lavapipe",
    srcs = ["icd.json"] + glob(
        ["loader/*.so*"],
        allow_empty = True,
    ),
    data = [":libvulkan_driver.so"],
    target_compatible_with = _HERE,
)
"""

def _mirrors(rctx):
    """The mirror that `TFP_DEBIAN_MIRROR` names, else the archives of apt on Debian."""
    named = rctx.os.environ.get("TFP_DEBIAN_MIRROR", "")
    if named:
        return [named.rstrip("/")]
    release = rctx.path("/etc/os-release")
    if not release.exists or "\nID=debian\n" not in "\n" + rctx.read(release):
        return []
    files = [rctx.path("/etc/apt/sources.list")]
    folder = rctx.path("/etc/apt/sources.list.d")
    if folder.exists:
        files += [file for file in folder.readdir() if file.basename.endswith((".list", ".sources"))]
    found = {}
    for file in files:
        for line in rctx.read(file).splitlines() if file.exists else []:
            if line.startswith(("deb ", "URIs:")):
                for word in line.split(" "):
                    if word.startswith(("http://", "https://")):
                        found[word.rstrip("/")] = None
    return found.keys()

def _shortcoming(rctx, mirrors):
    """Why this machine has no lavapipe, or nothing."""
    if rctx.os.arch not in ("amd64", "x86_64"):
        return "its packages are for x86-64, this machine is {}".format(rctx.os.arch)
    said = rctx.execute(["getconf", "GNU_LIBC_VERSION"])
    words = said.stdout.strip().split(" ") if said.return_code == 0 else []
    version = [int(part) for part in words[1].split(".")[:2]] if len(words) == 2 else [0, 0]
    if version < list(_GLIBC):
        return "its packages need glibc {}.{}, this machine has {}".format(
            _GLIBC[0],
            _GLIBC[1],
            words[1] if len(words) == 2 else "none",
        )
    if not mirrors:
        return "set TFP_DEBIAN_MIRROR to a mirror of Debian, from which it comes"
    return ""

def _lavapipe_impl(rctx):
    mirrors = _mirrors(rctx)
    shortcoming = _shortcoming(rctx, mirrors)
    if shortcoming:
        # buildifier: disable=print
        print("the tests of Vulkan are skipped: {}".format(shortcoming))
        rctx.file("icd.json", "")
        rctx.file("lib/libvulkan_lvp.so", "")
        rctx.file("BUILD", _BUILD.format(constraints = ["@platforms//:incompatible"]))
        return
    rctx.report_progress("fetching lavapipe, 51 MB")
    for folder in ("lib", "loader"):
        rctx.file(folder + "/.folder", "")
    for line in rctx.read(rctx.attr.packages).splitlines():
        if not line or line.startswith("#"):
            continue
        sha256, path = line.split(" ")
        rctx.download(
            output = "package/file.deb",
            sha256 = sha256,
            url = ["{}/{}".format(mirror, path) for mirror in mirrors],
        )
        rctx.extract("package/file.deb", output = "package")
        rctx.extract("package/data.tar.xz", output = "package/data")
        for folder in _LIBRARY_FOLDERS:
            folder = rctx.path("package/data/" + folder)
            for file in folder.readdir() if folder.exists else []:
                if ".so" not in file.basename or (file.basename.startswith("libvulkan_") and file.basename != "libvulkan_lvp.so"):
                    continue
                to = "loader/" if file.basename.startswith("libvulkan.so") else "lib/"

                # Links are to files beside them: a copy would be one more file of the same library.
                rctx.execute(["mv", "-n", str(file), to])
        rctx.delete("package")
    rctx.file("icd.json", _ICD)
    rctx.file("BUILD", _BUILD.format(constraints = ["@platforms//cpu:x86_64", "@platforms//os:linux"]))

lavapipe_repository = repository_rule(
    implementation = _lavapipe_impl,
    doc = """Declares `@lavapipe//:lavapipe`, a Vulkan driver that computes on the CPU.

It comes from the mirror of Debian that `TFP_DEBIAN_MIRROR` names, or of this Debian's apt. Where it can't run or come,
what depends on it is incompatible with the machine, so that Bazel skips it.""",
    attrs = {
        "packages": attr.label(default = Label("//tools/workspace/vulkan:lavapipe.list"), doc = "Hash and path of each package."),
    },
    environ = ["TFP_DEBIAN_MIRROR"],
)
