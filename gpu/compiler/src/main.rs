//! `tfp-gpu-compiler FOLDER [OUT]` compiles the shaders of a folder to SPIR-V.
//!
//! `shaders.txt` in the folder has a line for each module: its name, its WGSL files, and definitions
//! such as `V=vec4<f32>`, which replace `$V` in the text. `OUT` is `FOLDER/spirv` unless given.

mod specialize;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};

fn compile(source: &str) -> Result<Vec<u32>, String> {
    let module =
        naga::front::wgsl::parse_str(source).map_err(|problem| problem.emit_to_string(source))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES)
        .validate(&module)
        .map_err(|problem| problem.emit_to_string(source))?;
    let unchecked = BoundsCheckPolicy::Unchecked;
    let options = spv::Options {
        lang_version: (1, 3),
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: BoundsCheckPolicies {
            index: unchecked,
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        ..spv::Options::default()
    };
    let pipeline = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: "main".into(),
    };
    let words = spv::write_vec(&module, &info, &options, Some(&pipeline))
        .map_err(|problem| format!("naga writes no SPIR-V: {problem}"))?;
    specialize::specialize(&words)
}

fn run(folder: &Path, out: &Path) -> Result<(), String> {
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|problem| format!("{}: {problem}", path.display()))
    };
    for line in read(folder.join("shaders.txt"))?.lines() {
        let Some(module) = text::Module::parse(line)? else {
            continue;
        };
        let mut source = String::new();
        for file in &module.files {
            source += &read(folder.join(file))?;
        }
        let source = text::define(&source, &module.definitions)
            .map_err(|problem| format!("{}: {problem}", module.name))?;
        let source =
            text::repeat(&source).map_err(|problem| format!("{}: {problem}", module.name))?;
        let words = compile(&source).map_err(|problem| format!("{}: {problem}", module.name))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let path = out.join(format!("{}.spv", module.name));
        std::fs::write(&path, bytes).map_err(|problem| format!("{}: {problem}", path.display()))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: tfp-gpu-compiler FOLDER [OUT]");
        return ExitCode::FAILURE;
    };
    let out = arguments.next().unwrap_or_else(|| folder.join("spirv"));
    match run(&folder, &out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
