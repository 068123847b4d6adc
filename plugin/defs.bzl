"""How the file of the plug-in is made."""

_FLAGS = "@rules_rust//rust/settings:extra_rustc_flags"

def _only_bitcode(settings, _attr):
    return {_FLAGS: settings[_FLAGS] + ["-Clinker-plugin-lto"]}

# The crates under the library keep what link-time optimization reads, and no machine code beside it:
# half of the processor time that they take.
_bitcode = transition(
    implementation = _only_bitcode,
    inputs = [_FLAGS],
    outputs = [_FLAGS],
)

def _named_library_impl(ctx):
    [library] = [file for file in ctx.files.library if file.extension == "so"]
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.run_shell(
        command = 'cp "$1" "$2"',
        arguments = [library.path, out.path],
        inputs = [library],
        outputs = [out],
        mnemonic = "CopyLibrary",
    )
    return DefaultInfo(files = depset([out]))

named_library = rule(
    implementation = _named_library_impl,
    doc = "A shared library under the name of the target.",
    attrs = {
        "library": attr.label(
            doc = "The `rust_shared_library`.",
            mandatory = True,
        ),
    },
)

optimized_library = rule(
    implementation = _named_library_impl,
    doc = """A shared library under the name of the target, from crates that are built for link-time optimization.

The `rust_shared_library` has `-Clto=fat`, and `-Clinker-plugin-lto=no` for itself: rustc optimizes, not the linker.""",
    attrs = {
        "library": attr.label(
            cfg = _bitcode,
            doc = "The `rust_shared_library`.",
            mandatory = True,
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
