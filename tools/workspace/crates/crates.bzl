"""Third-party Rust crates: `cargo vendor` by the lock file, and a BUILD file per crate.

crate_universe needs either a prebuilt program from a download site or several minutes to build it,
and its lock depends on the version of cargo; the few crates here need neither.
"""

_BUILD_HEAD = """\
load("@rules_rust//cargo:defs.bzl", "cargo_build_script")
load("@rules_rust//rust:defs.bzl", "rust_library", "rust_proc_macro")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "package",
    srcs = glob(
        ["**"],
        exclude = ["BUILD"],
    ),
)
"""

_TRIPLE = "x86_64-unknown-linux-gnu"

def _run(rctx, cargo, arguments, step):
    # Cargo asks the compiler beside it, not one that PATH may or may not have.
    environment = {"RUSTC": str(cargo.dirname.get_child("rustc"))}
    result = rctx.execute([cargo] + arguments, environment = environment, timeout = 900, quiet = True)
    if result.return_code != 0:
        fail("crates: {} failed. Check that cargo reaches its registry and that Cargo.lock matches Cargo.toml.\n{}".format(
            step,
            result.stderr.strip(),
        ))
    return result.stdout

def _folder(package):
    return "{}-{}".format(package["name"], package["version"])

def _target(package, kinds):
    for target in package["targets"]:
        for kind in target["kind"]:
            if kind in kinds:
                return target
    return None

def _is_proc_macro(package):
    return _target(package, ["proc-macro"]) != None

def _label(package):
    target = _target(package, ["lib", "rlib", "proc-macro"])
    return "//vendor/{}:{}".format(_folder(package), target["name"].replace("-", "_"))

def _dependencies(node, packages, build):
    """The labels of one crate's dependencies: (libraries, procedural macros, renamed ones)."""
    libraries, macros, aliases = [], [], {}
    for dep in node["deps"]:
        wanted = [k for k in dep["dep_kinds"] if k["kind"] == ("build" if build else None)]
        if not wanted:
            continue
        package = packages[dep["pkg"]]
        label = _label(package)
        (macros if _is_proc_macro(package) else libraries).append(label)
        if dep["name"] != label.split(":")[1]:
            aliases[label] = dep["name"]
    return sorted(libraries), sorted(macros), aliases

def _relative(path, package):
    root = package["manifest_path"][:-len("Cargo.toml")]
    return path[len(root):]

def _rule(kind, attributes):
    lines = ["{}(".format(kind)]
    for name, value in attributes:
        if value:
            lines.append("    {} = {},".format(name, value if name in ["srcs", "compile_data", "data"] else repr(value)))
    return "\n".join(lines + [")", ""])

def _build_file(package, node, packages):
    library = _target(package, ["lib", "rlib", "proc-macro"])
    script = _target(package, ["custom-build"])
    libraries, macros, aliases = _dependencies(node, packages, build = False)
    rules = [_BUILD_HEAD]
    files = 'glob(["**"], exclude = ["**/*.rs", "BUILD"])'
    if script:
        build_libraries, build_macros, build_aliases = _dependencies(node, packages, build = True)
        rules.append(_rule("cargo_build_script", [
            ("name", "build_script"),
            ("srcs", 'glob(["**/*.rs"])'),
            ("crate_root", _relative(script["src_path"], package)),
            ("crate_features", node["features"]),
            ("data", files),
            ("edition", script["edition"]),
            ("pkg_name", package["name"]),
            ("version", package["version"]),
            ("links", package["links"]),
            ("deps", build_libraries),
            ("proc_macro_deps", build_macros),
            ("aliases", build_aliases),
            ("rustc_flags", ["--cap-lints=allow"]),
        ]))
        libraries = libraries + [":build_script"]
    rules.append(_rule("rust_proc_macro" if _is_proc_macro(package) else "rust_library", [
        ("name", library["name"].replace("-", "_")),
        ("srcs", 'glob(["**/*.rs"])'),
        ("crate_root", _relative(library["src_path"], package)),
        ("crate_features", node["features"]),
        ("compile_data", files),
        ("edition", library["edition"]),
        ("version", package["version"]),
        ("deps", libraries),
        ("proc_macro_deps", macros),
        ("aliases", aliases),
        ("rustc_flags", ["--cap-lints=allow"]),
    ]))
    return "\n".join(rules)

def _crates_impl(rctx):
    cargo = rctx.path(rctx.attr.cargo)
    manifest = rctx.path(rctx.attr.manifest)
    for source, name in [(manifest, "Cargo.toml"), (rctx.path(rctx.attr.lock), "Cargo.lock")]:
        rctx.file(name, rctx.read(source))
    rctx.file("empty.rs", "")
    rctx.report_progress("vendoring crates")
    config = _run(rctx, cargo, ["vendor", "--locked", "--versioned-dirs", "vendor"], "cargo vendor")
    rctx.file(".cargo/config.toml", config)
    metadata = json.decode(_run(rctx, cargo, [
        "metadata",
        "--locked",
        "--offline",
        "--format-version=1",
        "--filter-platform=" + _TRIPLE,
    ], "cargo metadata"))
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    top = ['package(default_visibility = ["//visibility:public"])', "", 'exports_files(["Cargo.lock"])', ""]
    for identity, node in nodes.items():
        if identity != root:
            package = packages[identity]
            rctx.file("vendor/{}/BUILD".format(_folder(package)), _build_file(package, node, packages))
    folders = ["//vendor/{}:package".format(_folder(packages[each])) for each in nodes if each != root]

    # Crates of other platforms are no targets, but a directory source has to hold all of the lock.
    everything = repr(sorted(folders)) + ' + glob(["vendor/**"])'
    top.append(_rule("filegroup", [("name", "packages"), ("srcs", everything)]))
    for dep in nodes[root]["deps"]:
        top.append(_rule("alias", [("name", dep["name"]), ("actual", _label(packages[dep["pkg"]]))]))
    rctx.file("BUILD", "\n".join(top))

crates_repository = repository_rule(
    implementation = _crates_impl,
    doc = """Makes `@crates//:NAME` for each dependency of `manifest`, vendored by `lock`.

`@crates//:packages` is the folder `vendor`, a directory source of Cargo, beside `Cargo.lock`.""",
    attrs = {
        "cargo": attr.label(mandatory = True, doc = "The cargo program."),
        "lock": attr.label(mandatory = True, doc = "Cargo.lock beside the manifest."),
        "manifest": attr.label(mandatory = True, doc = "Cargo.toml that names the direct dependencies."),
    },
)
