//! Inputs, outputs and constants in memory that exists already: nothing is copied, all is checked.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use tvmgen_default::{
    BufferError, FLASH, Flash, FlashMemory, Input, InputMemory, Inputs, Model, Output,
    OutputMemory, Outputs, Sram, WorkspacePools,
};

const ALIGN: usize = 16;
const MISALIGNED: BufferError = BufferError::Alignment { expected: ALIGN };

/// A block of the heap that ends where its last byte is, so that a sanitizer sees one byte more.
struct Block(*mut u8, Layout);

impl Block {
    fn new(size: usize) -> Self {
        let layout = Layout::from_size_align(size, ALIGN).unwrap();
        // SAFETY: the size is not 0.
        Self(unsafe { alloc_zeroed(layout) }, layout)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block has that many initialized bytes.
        unsafe { std::slice::from_raw_parts_mut(self.0, self.1.size()) }
    }

    fn floats(&mut self) -> &mut [f32] {
        // SAFETY: as above; any bits are a float.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), self.1.size() / 4) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.0, self.1) };
    }
}

fn expected() -> Output {
    let (input, mut output, mut sram) = (Input([0.5; Input::LEN]), Output::new(), Sram::new());
    let mut pools = WorkspacePools::new(&mut sram);
    let mut outputs = Outputs::new(&mut output);
    Model::new()
        .run(&Inputs::new(&input), &mut outputs, &mut pools)
        .unwrap();
    output
}

#[test]
fn a_run_on_borrowed_memory() {
    assert_ne!(Output::SIZE % ALIGN, 0, "the block would hide padding");
    let (mut input, mut output) = (Block::new(Input::SIZE), Block::new(Output::SIZE));
    let (mut flash, mut sram) = (Block::new(Flash::SIZE), Sram::new());
    flash.bytes().copy_from_slice(FLASH.as_bytes());
    input.floats().fill(0.5);
    let array: &[f32; Input::LEN] = (&*input.floats()).try_into().unwrap();
    {
        let inputs = Inputs::new(InputMemory::from_slice(array).unwrap());
        let mut outputs = Outputs::new(OutputMemory::from_mut_slice(output.floats()).unwrap());
        let mut pools = WorkspacePools {
            // SAFETY: the archive's own bytes.
            flash: unsafe { FlashMemory::from_bytes(flash.bytes()) }.unwrap(),
            sram: &mut sram,
        };
        Model::new().run(&inputs, &mut outputs, &mut pools).unwrap();
        assert_eq!(outputs.output, &**expected());
    }
    assert_eq!(output.floats(), expected().as_slice());
}

#[test]
fn a_run_on_addresses() {
    let (input, output) = (Block::new(Input::SIZE), Block::new(Output::SIZE));
    let mut sram = Sram::new();
    // SAFETY: both blocks have the size, are zeroed, and nothing else uses them.
    let (inputs, mut outputs) = unsafe {
        (
            Inputs::new(InputMemory::from_borrowed_ptr(input.0.cast()).unwrap()),
            Outputs::new(OutputMemory::from_borrowed_mut_ptr(output.0.cast()).unwrap()),
        )
    };
    let mut pools = WorkspacePools::new(&mut sram);
    Model::new().run(&inputs, &mut outputs, &mut pools).unwrap();
    assert!((outputs.output.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}

#[test]
fn other_memory_is_an_error() {
    let mut block = Block::new(Flash::SIZE + ALIGN);
    let floats = block.floats();
    let long = BufferError::Length {
        expected: Input::LEN,
        found: Input::LEN + 1,
    };
    assert_eq!(
        InputMemory::from_slice(&floats[..Input::LEN + 1]),
        Err(long)
    );
    assert_eq!(long.to_string(), "17 elements; the model needs 16");
    assert!(InputMemory::from_slice(&[]).is_err());
    let shifted = 1..Input::LEN + 1;
    assert_eq!(
        InputMemory::from_slice(&floats[shifted.clone()]),
        Err(MISALIGNED)
    );
    assert_eq!(
        InputMemory::from_mut_slice(&mut floats[shifted]),
        Err(MISALIGNED)
    );
    let bytes = block.bytes();
    // SAFETY: refused before anything reads the bytes.
    unsafe {
        assert_eq!(
            FlashMemory::from_bytes(&bytes[1..Flash::SIZE + 1]).err(),
            Some(MISALIGNED)
        );
        assert!(FlashMemory::from_bytes(&bytes[..Flash::SIZE - 1]).is_err());
        assert!(FlashMemory::from_bytes(&bytes[..Flash::SIZE]).is_ok());
        let null = OutputMemory::from_borrowed_mut_ptr(core::ptr::null_mut());
        assert_eq!(null, Err(BufferError::Null));
        let odd = bytes.as_ptr().wrapping_add(4).cast();
        assert_eq!(InputMemory::from_borrowed_ptr(odd), Err(MISALIGNED));
    }
    assert_eq!(
        MISALIGNED.to_string(),
        "the address is not a multiple of 16"
    );
}
