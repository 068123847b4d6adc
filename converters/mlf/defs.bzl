"""`tvm_rust_model`: a TVM archive as a Rust library."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_rust//rust:defs.bzl", "rust_library")

# As `C_FLAGS` of rules.py, which gives the reasons.
_COPTS = [
    "-std=gnu11",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-math-errno",
    "-w",
    "-Wno-incompatible-pointer-types",
]

def _mlf2rust_impl(ctx):
    rust = ctx.actions.declare_file(ctx.attr.crate_name + ".rs")
    units = ctx.actions.declare_directory(ctx.label.name + "_unit")
    guards = ctx.actions.declare_directory(ctx.label.name + "_guard")
    include = ctx.actions.declare_directory(ctx.label.name + "_include")
    arguments = ctx.actions.args()
    arguments.add("--crate_name", ctx.attr.crate_name)
    arguments.add_all(ctx.attr.flags)
    arguments.add("--single_file")
    arguments.add("--crate_root")
    arguments.add("--mlf" if ctx.file.mlf else "--header", ctx.file.mlf or ctx.file.header)
    arguments.add("--rust_out", rust)
    arguments.add("--unit_out", units.path)
    arguments.add("--guard_out", guards.path)
    arguments.add("--include_out", include.path)
    ctx.actions.run(
        executable = ctx.executable._mlf2rust,
        arguments = [arguments],
        inputs = [ctx.file.mlf or ctx.file.header],
        outputs = [rust, units, guards, include],
        mnemonic = "Mlf2Rust",
        progress_message = "Converting %{label}",
    )
    return [
        DefaultInfo(files = depset([rust])),
        OutputGroupInfo(
            unit = depset([units]),
            guard = depset([guards]),
            include = depset([include]),
        ),
    ]

_mlf2rust = rule(
    implementation = _mlf2rust_impl,
    attrs = {
        "crate_name": attr.string(mandatory = True),
        "flags": attr.string_list(),
        "header": attr.label(allow_single_file = [".h"]),
        "mlf": attr.label(allow_single_file = [".tar", ".tar.gz", ".tgz", ".zip"]),
        "_mlf2rust": attr.label(
            default = "//converters/mlf:mlf2rust",
            executable = True,
            cfg = "exec",
        ),
    },
)

def tvm_rust_model(
        name,
        mlf = None,
        header = None,
        library = None,
        crate_name = None,
        flags = [],
        deps = [],
        embedded = False,
        **kwargs):
    """Makes a `rust_library` of a TVM archive, its C compiled in.

    Args:
      name: name of the library.
      mlf: the archive, a `.tar`, `.tar.gz` or `.zip` file.
      header: a vendor's interface header, instead of `mlf`.
      library: a `cc_library` or `cc_import` with the object code of `header`; required with it.
      crate_name: name of the crate; default `name`.
      flags: further flags of mlf2rust, for instance `["--shape=y=float32[1,4]"]`.
      deps: C libraries that the model's C needs: vendors' headers and drivers.
      embedded: whether the models have a `Runner` with the traits of `//converters/embedded`.
      **kwargs: as for `rust_library`.
    """
    if (mlf == None) == (header == None):
        fail("tvm_rust_model {}: give either mlf or header".format(name))
    if (header == None) != (library == None):
        fail("tvm_rust_model {}: header and library belong together".format(name))
    crate = crate_name or name
    source = name + "_mlf2rust"
    _mlf2rust(
        name = source,
        testonly = kwargs.get("testonly", False),
        crate_name = crate,
        # Cargo's place of the crate, which is not asked for here.
        flags = flags + (["--embedded_from=path=converters/embedded"] if embedded else []),
        header = header,
        mlf = mlf,
    )
    for group in ["unit", "guard", "include"]:
        native.filegroup(
            name = name + "_" + group,
            testonly = kwargs.get("testonly", False),
            srcs = [source],
            output_group = group,
        )
    cc_library(
        name = name + "_c",
        testonly = kwargs.get("testonly", False),
        srcs = [name + "_unit"],
        additional_compiler_inputs = [name + "_include"],
        copts = _COPTS + ["-I$(execpath :%s_include)" % name],
        linkopts = ["-lm"],
        deps = deps + ([library] if library else []),
    )

    # Linked whole: a second model with the same symbols in a program is then an error.
    cc_library(
        name = name + "_names",
        testonly = kwargs.get("testonly", False),
        srcs = [name + "_guard"],
        alwayslink = True,
    )
    rust_library(
        name = name,
        srcs = [source],
        crate_name = crate,
        edition = "2024",
        deps = [
            name + "_c",
            name + "_names",
        ] + ([Label("//converters/embedded:tfp_embedded")] if embedded else []),
        **kwargs
    )
