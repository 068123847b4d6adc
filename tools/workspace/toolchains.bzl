"""`tfp_toolchains`: the wheels by name, and the toolchains."""

load("@pip//:requirements.bzl", "install_deps")
load("//tools/workspace/toolchains:cpus.bzl", "CPUS")

# A workspace has one set.
# buildifier: disable=unnamed-macro
def tfp_toolchains(cc = True):
    """Declares a repository per locked wheel and registers the toolchains.

    Args:
      cc: whether the C and C++ toolchain is among them; a workspace that has its own leaves it out.
    """
    install_deps()
    native.register_toolchains("@host_python//:toolchain")
    for language in ["rust"] + (["cc"] if cc else []):
        for cpu in CPUS:
            native.register_toolchains(str(Label("//tools/workspace/toolchains:{}_{}".format(language, cpu))))
