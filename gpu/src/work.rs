//! What a body asks the device to do.

use crate::shader::Shader;

/// Most buffers of a dispatch.
pub const MAX_BUFFERS: usize = 16;
/// Most numbers that a dispatch passes to its shader.
pub const MAX_WORDS: usize = 32;

/// Where the bytes of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a host address inside of a block of the device's memory.
    Tensor(usize),
    /// At an offset of the memory that the plan has for itself, a multiple of 256.
    Scratch(usize),
}

/// A buffer of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub place: Place,
    pub bytes: usize,
}

/// One run of a shader.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub shader: Shader,
    /// Values of the specialization constants, by their numbers.
    pub constants: Vec<u32>,
    /// What differs from call to call.
    pub words: Vec<u32>,
    pub buffers: Vec<Region>,
    /// Work groups in three directions.
    pub groups: [u32; 3],
}

/// Bytes that the device copies between two blocks.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub from: usize,
    pub to: usize,
    pub bytes: usize,
}

/// Dispatches that follow each other; each sees what those before wrote.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub dispatches: Vec<Dispatch>,
    /// A copy instead of dispatches.
    pub copy: Option<Transfer>,
    /// Bytes of scratch memory.
    pub scratch: usize,
    /// What the host writes to the begin of the scratch memory.
    pub data: Vec<u32>,
    /// Floating-point operations, for the estimate of time.
    pub flops: u64,
}

impl Plan {
    /// A plan of one dispatch.
    pub fn one(dispatch: Dispatch, flops: u64) -> Self {
        Self {
            dispatches: vec![dispatch],
            copy: None,
            scratch: 0,
            data: Vec::new(),
            flops,
        }
    }

    /// More scratch memory.
    pub fn room(&mut self, bytes: usize) -> Region {
        let place = Place::Scratch(self.scratch);
        // As shaders see buffers: in whole vectors.
        let bytes = bytes.next_multiple_of(16);
        self.scratch += bytes.next_multiple_of(256);
        Region { place, bytes }
    }
}

/// Sizes as words of a dispatch; `None` if one is too large.
pub fn numbers(sizes: &[usize]) -> Option<Vec<u32>> {
    sizes.iter().map(|&size| u32::try_from(size).ok()).collect()
}

/// Groups for `count` units of work in directions x and y; a shader computes its number as `y * size(x) + x`.
pub fn spread(count: usize) -> Option<[u32; 3]> {
    const MOST: usize = 65_535;
    if count <= MOST {
        return Some([u32::try_from(count.max(1)).ok()?, 1, 1]);
    }
    let rows = count.div_ceil(MOST);
    (rows <= MOST).then_some([MOST as u32, rows as u32, 1])
}
