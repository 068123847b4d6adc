"""The source files of this repository as one repository, for checks that look at all of them.

Globs stop at package boundaries; `@checkout` does not, so a linter needs no list of packages.
"""

_SKIP = [".git", "target", "__pycache__", "node_modules"]

_BUILD = """\
package(default_visibility = ["@tfp//docs:__pkg__", "@tfp//tests/hermetic:__subpackages__", "@tfp//tests/packages:__pkg__", "@tfp//tools/build:__subpackages__"])

filegroup(
    name = "files",
    srcs = glob(["tree/**"]),
)
"""

# Bazel would take these for packages of its own.
_PACKAGE_FILES = ["BUILD", "BUILD.bazel", "WORKSPACE"]

def _walk(rctx, root, top):
    """Links every source file below `top` into `tree/`; package files get the suffix `.source`."""
    pending = [top]
    for _ in range(100000):
        if not pending:
            return
        folder = pending.pop()
        for entry in folder.readdir(watch = "no"):
            if entry.basename in _SKIP or entry.basename.startswith("bazel-"):
                continue
            if entry.is_dir:
                pending.append(entry)
                continue
            name = str(entry)[len(str(root)) + 1:]
            rctx.symlink(entry, "tree/" + name + (".source" if entry.basename in _PACKAGE_FILES else ""))

def _checkout_impl(rctx):
    root = rctx.path(Label("@tfp//:WORKSPACE")).dirname
    for entry in root.readdir(watch = "no"):
        if entry.basename in _SKIP or entry.basename.startswith("bazel-"):
            continue
        if entry.is_dir:
            rctx.watch_tree(entry)
            _walk(rctx, root, entry)
        else:
            rctx.watch(entry)
            rctx.symlink(entry, "tree/" + entry.basename + (".source" if entry.basename in _PACKAGE_FILES else ""))
    rctx.file("BUILD", _BUILD)

checkout_repository = repository_rule(
    implementation = _checkout_impl,
    doc = "Gathers the checkout's source files as `@checkout//:files`.",
)
