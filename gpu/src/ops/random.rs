//! Random numbers, bit-equal to those of the CPU's kernel.

use crate::request::Request;
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, numbers, spread};

/// Operations per number, for the estimate of time.
const FLOPS: usize = 40;

/// `StatelessRandomUniformV2`.
pub fn uniform(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let output = request.outputs.first()?;
    let [key, counter] = [1, 2].map(|input| request.words(input));
    let (key, counter) = (key?, counter?);
    // 1 is Philox, 3 the automatic choice, which is Philox.
    let known = matches!(request.integers(3)?[..], [1 | 3]);
    if !output.is_f32() || !known || key.len() != 2 || counter.len() < 4 {
        return None;
    }
    let elements = output.elements();
    let mut words = numbers(&[elements])?;
    words.extend(key);
    words.extend(&counter[..4]);
    let dispatch = Dispatch {
        shader: Shader::Random,
        constants: Vec::new(),
        words,
        buffers: vec![output.region()],
        groups: spread(elements.div_ceil(1024))?,
    };
    Some(Plan::one(dispatch, (FLOPS * elements) as u64))
}
