"""buildifier, where the machine has one: from `TFP_BUILDIFIER`, which the launcher sets, or `PATH`."""

def _buildifier_impl(rctx):
    named = rctx.os.environ.get("TFP_BUILDIFIER", "")
    program = rctx.path(named) if named else rctx.which("buildifier")
    if program:
        rctx.symlink(program, "buildifier")
        rctx.file("BUILD", 'exports_files(["buildifier"])\n')
    else:
        rctx.file("BUILD", "")
    rctx.file("config.bzl", "HAS_BUILDIFIER = {}\n".format(program != None))

buildifier_repository = repository_rule(
    implementation = _buildifier_impl,
    configure = True,
    doc = "Declares `@buildifier//:buildifier`, and in `config.bzl` whether there is one.",
    environ = ["PATH", "TFP_BUILDIFIER"],
)
