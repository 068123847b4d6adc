"""What editors need of targets that a build does not have to make."""

def _generated_sources_impl(_target, ctx):
    files = [file for file in getattr(ctx.rule.files, "srcs", []) if not file.is_source]
    deps = []
    for name in ["deps", "proc_macro_deps"]:
        deps += getattr(ctx.rule.attr, name, [])
    for name in ["crate", "actual"]:
        dep = getattr(ctx.rule.attr, name, None)
        if dep:
            deps.append(dep)
    below = [
        dep[OutputGroupInfo].generated_sources
        for dep in deps
        if OutputGroupInfo in dep and hasattr(dep[OutputGroupInfo], "generated_sources")
    ]
    return [OutputGroupInfo(generated_sources = depset(files, transitive = below))]

generated_sources_aspect = aspect(
    implementation = _generated_sources_impl,
    attr_aspects = ["actual", "crate", "deps", "proc_macro_deps"],
    doc = "Output group `generated_sources`: the sources of Rust crates that generators write.",
)
