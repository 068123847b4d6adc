"""`rust_model`: a trained Keras or TensorFlow model as a Rust library, its test and its bench.

With `web = True`, also as an npm package.
"""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_library", "rust_test")

_OUTPUTS = {
    "bench": "_bench.rs",
    "features": "_features.npz",
    "rust": ".rs",
    "test": "_test.rs",
    "thresholds": "_thresholds.json",
    "weights": "_weights.bin",
}

def _rust_model_files_impl(ctx):
    outputs = {
        role: ctx.actions.declare_file(ctx.attr.crate_name + "_model/" + ctx.attr.crate_name + suffix)
        for role, suffix in _OUTPUTS.items()
    }
    arguments = ctx.actions.args()
    arguments.add("--model", ctx.file.model.path)
    arguments.add("--name", ctx.attr.crate_name)
    arguments.add_all(ctx.attr.flags)
    inputs = [ctx.file.model] + ctx.files.custom_objects + ctx.files.custom_op_files
    for file in ctx.files.custom_objects:
        arguments.add("--custom_objects", file)
    for target, name in ctx.attr.custom_ops.items():
        for file in target.files.to_list():
            arguments.add("--custom_op", file, format = name + "=%s")
            inputs.append(file)
    for flag, file in [("--features", ctx.file.recorded), ("--thresholds", ctx.file.thresholds)]:
        if file:
            arguments.add(flag, file)
            inputs.append(file)
    arguments.add("--rustfmt", ctx.file._rustfmt)
    for role, file in outputs.items():
        arguments.add("--%s_out" % role, file)
    ctx.actions.run(
        executable = ctx.executable._program,
        arguments = [arguments],
        inputs = inputs,
        outputs = outputs.values(),
        tools = [ctx.file._rustfmt] + ctx.files._rustc_lib,
        mnemonic = "Tf2Rust",
        progress_message = "Converting %{label}",
    )
    return [
        DefaultInfo(files = depset([outputs["rust"]])),
        OutputGroupInfo(**{role: depset([file]) for role, file in outputs.items()}),
    ]

# What every conversion takes.
_ATTRS = {
    "crate_name": attr.string(mandatory = True),
    "custom_objects": attr.label_list(allow_files = [".py"]),
    "custom_op_files": attr.label_list(allow_files = True),
    "custom_ops": attr.label_keyed_string_dict(allow_files = [".py"]),
    "flags": attr.string_list(),
    "model": attr.label(allow_single_file = True, mandatory = True),
    "recorded": attr.label(allow_single_file = [".npz"]),
    "_rustfmt": attr.label(
        allow_single_file = True,
        default = "@rust_sysroot//:bin/rustfmt",
        cfg = "exec",
    ),
}

_rust_model_files = rule(
    implementation = _rust_model_files_impl,
    attrs = _ATTRS | {
        "thresholds": attr.label(allow_single_file = [".json"]),
        "_program": attr.label(
            default = "//converters/tf:rust_model",
            executable = True,
            cfg = "exec",
        ),
        "_rustc_lib": attr.label(
            default = "@rust_sysroot//:rustc_lib",
            cfg = "exec",
        ),
    },
)

def _web_model_impl(ctx):
    folder = ctx.actions.declare_directory(ctx.label.name)
    sysroot = ctx.file._wasm_root.dirname
    arguments = ctx.actions.args()
    arguments.add(ctx.executable._program)
    arguments.add(folder.path)
    arguments.add("--path_to_tf_model", ctx.file.model.path)
    arguments.add("--model_name", ctx.attr.crate_name)
    arguments.add("--target", "web")
    arguments.add("--quiet")
    if ctx.attr.web_threads:
        arguments.add("--web_threads")
    arguments.add_all(ctx.attr.flags)
    inputs = [ctx.file.model] + ctx.files.custom_objects + ctx.files.custom_op_files
    for file in ctx.files.custom_objects:
        arguments.add("--custom_objects", file)
    for target, name in ctx.attr.custom_ops.items():
        for file in target.files.to_list():
            arguments.add("--custom_op", file, format = name + "=%s")
            inputs.append(file)
    if ctx.file.recorded:
        arguments.add("--path_to_fv", ctx.file.recorded)
        inputs.append(ctx.file.recorded)
    ctx.actions.run_shell(
        arguments = [arguments],
        # The program replaces folders, and Bazel has made this one.
        command = """set -eu
program=$1 folder=$2
shift 2
"$program" "$@" --path_to_save "$folder.all"
cp -R "$folder.all/web/." "$folder"
rm -rf "$folder.all"
""",
        env = {
            "TF2RUST_RUSTC": ctx.file._rustc.path,
            "TF2RUST_RUSTFMT": ctx.file._rustfmt.path,
            "TF2RUST_WASM_SYSROOT": sysroot,
        },
        inputs = inputs,
        mnemonic = "Tf2RustWeb",
        outputs = [folder],
        progress_message = "Converting %{label} for the browser",
        tools = [ctx.executable._program, ctx.file._rustc, ctx.file._rustfmt, ctx.file._wasm_root] +
                ctx.files._sysroot + ctx.files._wasm_std,
    )
    return [DefaultInfo(files = depset([folder]), runfiles = ctx.runfiles([folder]))]

_web_model = rule(
    implementation = _web_model_impl,
    attrs = _ATTRS | {
        "web_threads": attr.bool(),
        "_program": attr.label(
            default = "//converters/tf:tf2rust",
            executable = True,
            cfg = "exec",
        ),
        "_rustc": attr.label(
            allow_single_file = True,
            default = "@rust_sysroot//:bin/rustc",
            cfg = "exec",
        ),
        "_sysroot": attr.label(
            default = "@rust_sysroot//:sysroot",
            cfg = "exec",
        ),
        "_wasm_root": attr.label(
            allow_single_file = True,
            default = "@rust_std_wasm32//:root",
            cfg = "exec",
        ),
        "_wasm_std": attr.label(
            default = "@rust_std_wasm32//:rust_std",
            cfg = "exec",
        ),
    },
)

def rust_model(
        name,
        model,
        features = None,
        thresholds = None,
        crate_name = None,
        flags = [],
        custom_objects = [],
        custom_ops = {},
        custom_op_files = [],
        web = False,
        web_threads = False,
        **kwargs):
    """Makes a `rust_library` of a model, a test `<name>_test` and a program `<name>_bench`.

    With `web`, `<name>_web` is a folder: the npm package. It is built when it is asked for, because
    it needs Rust's standard library for WebAssembly.

    Args:
      name: name of the library.
      model: a `.keras` or `.h5` file, a SavedModel's folder, a frozen graph, a `.tflite` file, or an
          `.onnx` file whose weights are in it.
      features: recorded inputs and predictions, an `.npz` file; made from the model if missing.
      thresholds: confidence levels, a `.json` file; the library then has `predict_from`.
      crate_name: name of the crate; default `name`.
      flags: further flags of `//converters/tf:rust_model`, such as `["--input_shape=224,224,3"]`.
      custom_objects: Python files with classes that the model file names; they run, so they also
        need `flags = ["--allow_custom_code"]`.
      custom_ops: Python modules of operators of your own, each with its name: `domain::Name`.
      custom_op_files: what they need beside them, such as their Rust files.
      web: whether there is an npm package.
      web_threads: whether the package also has modules that compute with several threads.
      **kwargs: as for `rust_library`.
    """
    crate = crate_name or name
    testonly = kwargs.get("testonly", False)
    files = name + "_files"
    _rust_model_files(
        name = files,
        testonly = testonly,
        crate_name = crate,
        custom_objects = custom_objects,
        custom_op_files = custom_op_files,
        custom_ops = custom_ops,
        recorded = features,
        flags = flags + (["--binary"] if thresholds else []),
        model = model,
        thresholds = thresholds,
    )
    for role in _OUTPUTS:
        native.filegroup(
            name = name + "_" + role + "_file",
            testonly = testonly,
            srcs = [files],
            output_group = role,
        )
    environment = {
        "MODEL_THRESHOLDS": "$(execpath :%s_thresholds_file)" % name,
        "MODEL_WEIGHTS": "$(execpath :%s_weights_file)" % name,
    }
    rust_library(
        name = name,
        srcs = [files],
        compile_data = [name + "_thresholds_file", name + "_weights_file"],
        crate_name = crate,
        edition = "2024",
        rustc_env = environment,
        deps = [Label("//converters/runtime:tfp_runtime")],
        **kwargs
    )
    rust_test(
        name = name + "_test",
        srcs = [name + "_test_file"],
        data = [name + "_features_file"],
        edition = "2024",
        env = {"FEATURES": "$(rootpath :%s_features_file)" % name},
        # The program falls back to Cargo's folder, which the compiler must know.
        rustc_env = {"CARGO_MANIFEST_DIR": "."},
        deps = [name],
    )
    rust_binary(
        name = name + "_bench",
        testonly = testonly,
        srcs = [name + "_bench_file"],
        edition = "2024",
        rustc_env = {"CARGO_MANIFEST_DIR": "."},
        deps = [name],
    )
    if web:
        _web_model(
            name = name + "_web",
            testonly = testonly,
            crate_name = crate,
            custom_objects = custom_objects,
            custom_op_files = custom_op_files,
            custom_ops = custom_ops,
            flags = flags,
            model = model,
            recorded = features,
            tags = ["manual"],
            visibility = kwargs.get("visibility"),
            web_threads = web_threads,
        )
