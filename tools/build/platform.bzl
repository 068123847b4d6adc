"""Targets built for another system than the one that builds."""

def _transition_impl(settings, attr):
    _ = settings  # @unused
    return {"//command_line_option:platforms": str(attr.platform)}

_platform_transition = transition(
    implementation = _transition_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _built_for_impl(ctx):
    files = depset(transitive = [target[DefaultInfo].files for target in ctx.attr.targets])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

built_for = rule(
    implementation = _built_for_impl,
    attrs = {
        "platform": attr.label(mandatory = True, doc = "The platform to build for."),
        "targets": attr.label_list(cfg = _platform_transition, mandatory = True, doc = "What to build."),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    doc = "The files of targets, built for a platform.",
)
