"""Packages for people without Bazel."""

load("//tools/build:version.bzl", "VERSION")

def _destination(file, place):
    """Where a file goes in the wheel; `place` is `prefix to strip:folder to put it in`."""
    strip, _, folder = place.partition(":")
    path = file.short_path
    if strip:
        if not path.startswith(strip + "/"):
            fail("{} is not below {}".format(path, strip))
        path = path[len(strip) + 1:]
    return folder + "/" + path if folder else path

def _wheel_impl(ctx):
    out = ctx.actions.declare_file("{}-{}.whl".format(ctx.attr.stem, ctx.attr.tag))
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add(out, format = "--out=%s")
    arguments.add(VERSION, format = "--version=%s")
    arguments.add(ctx.attr.tag, format = "--tag=%s")
    arguments.add(ctx.file.project, format = "--project=%s")
    arguments.add(ctx.file.readme, format = "--readme=%s")
    arguments.add_all(ctx.files.licences, format_each = "--licence=%s")
    arguments.add_all(ctx.attr.parts, format_each = "--part=%s")
    arguments.add_all([k + "=" + v for k, v in ctx.attr.rename.items()], format_each = "--rename=%s")
    inputs = [ctx.file.project, ctx.file.readme] + ctx.files.licences
    for target, place in ctx.attr.files.items():
        for file in target[DefaultInfo].files.to_list():
            inputs.append(file)
            arguments.add("{}={}".format(file.path, _destination(file, place)), format = "--file=%s")
    ctx.actions.run(
        outputs = [out],
        inputs = inputs,
        executable = ctx.executable._builder,
        arguments = [arguments],
        mnemonic = "Wheel",
        progress_message = "Packing %{output}",
    )
    return [DefaultInfo(files = depset([out]))]

_wheel = rule(
    implementation = _wheel_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(allow_files = True),
        "licences": attr.label_list(allow_files = True),
        "parts": attr.string_list(),
        "project": attr.label(allow_single_file = [".toml"], mandatory = True),
        "readme": attr.label(allow_single_file = [".md"], mandatory = True),
        "rename": attr.string_dict(),
        "stem": attr.string(mandatory = True),
        "tag": attr.string(mandatory = True),
        "_builder": attr.label(
            default = "//tools/package:wheel_main",
            executable = True,
            cfg = "exec",
        ),
    },
    doc = "Builds one wheel.",
)

def tfp_wheel(name, distribution, tag = "py3-none-any", licences = ["//:LICENSE"], **kwargs):
    """A wheel that pip installs, of the repository's version.

    Args:
      name: name of the target.
      distribution: name of the distribution, as the project has it.
      tag: Python, ABI and platform, which may be a `select`; a tag that the libraries in it do not
        keep fails the build.
      licences: licence files.
      **kwargs: `files` (label -> `prefix to strip:folder in the wheel`), `parts` (crates that a
        library has inside; those of others as `NAME VERSION LICENCE`), `project` (a TOML file with the table `[project]`), `readme`, `rename`
        (Python package -> its name in the wheel), `visibility`.
    """
    _wheel(
        name = name,
        licences = licences,
        stem = "{}-{}".format(distribution.replace("-", "_"), VERSION),
        tag = tag,
        **kwargs
    )

def _crate_impl(ctx):
    out = ctx.actions.declare_file(ctx.attr.file_name)
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add(out, format = "--out=%s")
    arguments.add(VERSION, format = "--version=%s")
    arguments.add(ctx.file.manifest, format = "--manifest=%s")
    arguments.add(ctx.file.workspace, format = "--workspace=%s")
    arguments.add(ctx.file.licence, format = "--licence=%s")
    inputs = [ctx.file.manifest, ctx.file.licence, ctx.file.workspace]
    top = ctx.label.package + "/"
    for file in ctx.files.srcs:
        inputs.append(file)
        arguments.add("{}={}".format(file.path, file.short_path[len(top):]), format = "--file=%s")
    ctx.actions.run(
        outputs = [out],
        inputs = inputs,
        executable = ctx.executable._builder,
        arguments = [arguments],
        mnemonic = "Crate",
        progress_message = "Packing %{output}",
    )
    return [DefaultInfo(files = depset([out]))]

_crate = rule(
    implementation = _crate_impl,
    attrs = {
        "file_name": attr.string(mandatory = True),
        "licence": attr.label(allow_single_file = True, mandatory = True),
        "manifest": attr.label(allow_single_file = [".toml"], mandatory = True),
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "workspace": attr.label(allow_single_file = [".toml"], mandatory = True),
        "_builder": attr.label(
            default = "//tools/package:crate_main",
            executable = True,
            cfg = "exec",
        ),
    },
    doc = "Builds one package of Cargo.",
)

def tfp_crate(name, package, srcs, **kwargs):
    """A package that Cargo takes, of the repository's version, from the crate of this folder.

    Args:
      name: name of the target.
      package: name of the package, such as `tfp-sys`.
      srcs: its files; the folder `src` is where they go.
      **kwargs: `manifest`, `visibility`.
    """
    _crate(
        name = name,
        srcs = srcs,
        file_name = "{}-{}.crate".format(package, VERSION),
        licence = "//:LICENSE",
        workspace = "//:Cargo.toml",
        manifest = kwargs.pop("manifest", "Cargo.toml"),
        **kwargs
    )
