"""The C and C++ toolchains: the provisioned clang and lld, or the host's gcc.

`TFP_ZIG` names the unpacked wheel `ziglang`, which `tools/bazel` provisions. `TFP_CC=host` asks for
the host's compiler; so does a build without `TFP_ZIG`, such as one in another workspace.
"""

load(":clang.bzl", "declare_clang")
load(":host.bzl", "declare_host")

def _cc_impl(rctx):
    told = rctx.os.environ.get("TFP_CC", "")
    if told not in ("", "clang", "host"):
        fail("cc: TFP_CC is {}, expected host or clang".format(told))
    zig = rctx.os.environ.get("TFP_ZIG", "")
    if told == "clang" and not zig:
        fail("cc: TFP_CC is clang, but TFP_ZIG does not name the unpacked wheel ziglang; build with tools/bazel, which sets it")
    if zig and told != "host":
        declare_clang(rctx, rctx.path(zig))
    else:
        declare_host(rctx)

cc_toolchains = repository_rule(
    implementation = _cc_impl,
    configure = True,
    doc = "Declares the C and C++ toolchains, one for each system that is built for.",
    environ = ["CC", "PATH", "TFP_CC", "TFP_ZIG"],
)
