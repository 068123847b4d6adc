"""The source files of this repository as one repository, for checks that look at all of them.

Globs stop at package boundaries; `@checkout` does not, so a linter needs no list of packages. What git ignores
is left out.
"""

_BUILD = """\
package(default_visibility = ["@tfp//docs:__pkg__", "@tfp//tests/hermetic:__subpackages__", "@tfp//tests/packages:__pkg__", "@tfp//tools/build:__subpackages__"])

filegroup(
    name = "files",
    srcs = glob(["tree/**"]),
)
"""

# Bazel would take these for packages of its own.
_PACKAGE_FILES = ["BUILD", "BUILD.bazel", "WORKSPACE"]

def _ignored(text):
    """Reads a `.gitignore`: names at any depth, paths from the top on, and beginnings of names at the top.

    Args:
        text: its content. Of the patterns of git, these are enough: `name/`, `/path`, `/name-*`.

    Returns:
        The three, as a struct of a list each.
    """
    names, paths, prefixes = [".git"], [], []
    for line in text.splitlines():
        pattern = line.strip().rstrip("/")
        if not pattern or pattern.startswith("#"):
            continue
        at_top, is_prefix = pattern.startswith("/"), pattern.endswith("*")
        stem = pattern.strip("/").removesuffix("*")
        odd = [letter for letter in stem.elems() if letter in "!*?["]
        if odd or (not at_top and (is_prefix or "/" in stem)):
            fail(".gitignore: write '{}' as `name/`, `/path` or `/name-*`".format(line))
        (prefixes if is_prefix else paths if at_top else names).append(stem)
    return struct(names = names, paths = paths, prefixes = prefixes)

def _is_ignored(ignored, path):
    beginnings = [prefix for prefix in ignored.prefixes if path.startswith(prefix)]
    return path.split("/")[-1] in ignored.names or path in ignored.paths or len(beginnings) > 0

def _checkout_impl(rctx):
    root = rctx.path(Label("@tfp//:WORKSPACE")).dirname
    ignored = _ignored(rctx.read(root.get_child(".gitignore")))
    for entry in root.readdir(watch = "no"):
        if not _is_ignored(ignored, entry.basename):
            if entry.is_dir:
                rctx.watch_tree(entry)
            else:
                rctx.watch(entry)
    pending = [root]
    for _ in range(100000):
        if not pending:
            break
        for entry in pending.pop().readdir(watch = "no"):
            name = str(entry)[len(str(root)) + 1:]
            if _is_ignored(ignored, name):
                continue
            if entry.is_dir:
                pending.append(entry)
            else:
                suffix = ".source" if entry.basename in _PACKAGE_FILES else ""
                rctx.symlink(entry, "tree/" + name + suffix)
    rctx.file("BUILD", _BUILD)

checkout_repository = repository_rule(
    implementation = _checkout_impl,
    doc = "Gathers the checkout's source files as `@checkout//:files`.",
)
