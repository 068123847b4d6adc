"""`python_bytecode`: what Python packages are compiled to, in one file."""

def _line(file):
    return "{}\t{}".format(file.short_path.removeprefix("../"), file.path)

def _python_bytecode_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".bytecode")
    sources = depset(transitive = [dep[PyInfo].transitive_sources for dep in ctx.attr.deps])
    lines = ctx.actions.args()
    lines.add_all(sources, map_each = _line)
    lines.set_param_file_format("multiline")
    listing = ctx.actions.declare_file(ctx.label.name + ".sources")
    ctx.actions.write(listing, lines)
    arguments = ctx.actions.args()
    arguments.add("--sources", listing)
    arguments.add("--output", output)
    ctx.actions.run(
        outputs = [output],
        inputs = depset([listing], transitive = [sources]),
        executable = ctx.executable._write,
        arguments = [arguments],
        # Before Python 3.11 sets in the code are else in another order each time.
        env = {"PYTHONHASHSEED": "0"},
        mnemonic = "PythonBytecode",
        progress_message = "Compiling Python packages %{label}",
    )
    return DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))

python_bytecode = rule(
    implementation = _python_bytecode_impl,
    attrs = {
        "deps": attr.label_list(doc = "Python libraries, with all that they need.", providers = [PyInfo]),
        "_write": attr.label(cfg = "exec", default = Label("//tools/build/bytecode:write"), executable = True),
    },
    doc = "Compiles Python packages into one file, for `//tools/build/bytecode:site`.",
)
