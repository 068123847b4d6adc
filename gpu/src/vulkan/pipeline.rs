//! Pipelines: a shader with the values of its specialization constants.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use ash::vk;

use super::device::Device;
use super::instance::call;
use crate::problem::Problem;
use crate::shader::Shader;
use crate::work::{MAX_BUFFERS, MAX_WORDS};

#[derive(Default)]
struct State {
    modules: BTreeMap<Shader, vk::ShaderModule>,
    pipelines: BTreeMap<(Shader, Vec<u32>), vk::Pipeline>,
}

/// The pipelines of a device. All have one layout: buffers at the bindings 0 to 15 of set 0, and 128 bytes
/// of push constants.
pub struct Pipelines {
    pub layout: vk::PipelineLayout,
    pub set_layout: vk::DescriptorSetLayout,
    cache: vk::PipelineCache,
    state: RwLock<State>,
}

impl Pipelines {
    pub fn new(raw: &ash::Device) -> Result<Self, Problem> {
        let bindings: Vec<_> = (0..MAX_BUFFERS)
            .map(|number| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(number as u32)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the device is alive, `info` and its bindings live until the call ends.
        let set_layout = unsafe { raw.create_descriptor_set_layout(&info, None) }
            .map_err(call("vkCreateDescriptorSetLayout"))?;
        let layouts = [set_layout];
        let ranges = [vk::PushConstantRange::default()
            .stage_flags(vk::ShaderStageFlags::COMPUTE)
            .size((MAX_WORDS * 4) as u32)];
        let info = vk::PipelineLayoutCreateInfo::default()
            .set_layouts(&layouts)
            .push_constant_ranges(&ranges);
        // SAFETY: as above.
        let layout = unsafe { raw.create_pipeline_layout(&info, None) }
            .map_err(call("vkCreatePipelineLayout"))?;
        let info = vk::PipelineCacheCreateInfo::default();
        // SAFETY: as above.
        let cache = unsafe { raw.create_pipeline_cache(&info, None) }
            .map_err(call("vkCreatePipelineCache"))?;
        Ok(Self {
            layout,
            set_layout,
            cache,
            state: RwLock::default(),
        })
    }

    /// The pipeline of a shader with these constants, which is made at the first call.
    pub fn get(
        &self,
        device: &Device,
        shader: Shader,
        constants: &[u32],
    ) -> Result<vk::Pipeline, Problem> {
        let key = (shader, constants.to_vec());
        {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(&found) = state.pipelines.get(&key) {
                return Ok(found);
            }
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&found) = state.pipelines.get(&key) {
            return Ok(found);
        }
        let module = match state.modules.get(&shader) {
            Some(&module) => module,
            None => {
                let words = shader.words();
                let info = vk::ShaderModuleCreateInfo::default().code(&words);
                // SAFETY: the code is what the compiler of shaders wrote; `shaders_test` compares it.
                let module = unsafe { device.raw.create_shader_module(&info, None) }
                    .map_err(call("vkCreateShaderModule"))?;
                state.modules.insert(shader, module);
                module
            }
        };
        let entries: Vec<_> = (0..constants.len() as u32)
            .map(|number| vk::SpecializationMapEntry {
                constant_id: number,
                offset: number * 4,
                size: 4,
            })
            .collect();
        let data: Vec<u8> = constants
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        let special = vk::SpecializationInfo::default()
            .map_entries(&entries)
            .data(&data);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main")
            .specialization_info(&special);
        let info = [vk::ComputePipelineCreateInfo::default()
            .stage(stage)
            .layout(self.layout)];
        // SAFETY: module and layout are of this device and alive, all else lives until the call ends.
        let made = unsafe { device.raw.create_compute_pipelines(self.cache, &info, None) };
        let pipeline = made
            .map_err(|(_, result)| call("vkCreateComputePipelines")(result))?
            .first()
            .copied()
            .ok_or(Problem::Internal("a pipeline was not made"))?;
        state.pipelines.insert(key, pipeline);
        Ok(pipeline)
    }

    /// # Safety
    /// The device does not use any of them, and nobody asks for one after.
    pub unsafe fn destroy(&self, raw: &ash::Device) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: what the caller promises; all were created on this device.
        unsafe {
            for (_, pipeline) in std::mem::take(&mut state.pipelines) {
                raw.destroy_pipeline(pipeline, None);
            }
            for (_, module) in std::mem::take(&mut state.modules) {
                raw.destroy_shader_module(module, None);
            }
            raw.destroy_pipeline_cache(self.cache, None);
            raw.destroy_pipeline_layout(self.layout, None);
            raw.destroy_descriptor_set_layout(self.set_layout, None);
        }
    }
}
