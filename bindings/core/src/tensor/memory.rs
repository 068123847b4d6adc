//! Memory that tensors take over: aligned elements, and strings.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use tfp_sys::{ClientApi, TF_TString};

use crate::base::error::{Error, Result};
use crate::tensor::element::Element;

/// The alignment at which TensorFlow uses memory in place; it copies anything less aligned.
pub const ALIGNMENT: usize = 64;

/// Elements in memory that TensorFlow uses in place: aligned to [`ALIGNMENT`] bytes.
///
/// It dereferences to a slice; [`Tensor::from_buffer`](crate::Tensor::from_buffer) takes it without a copy.
pub struct Buffer<T> {
    pub(crate) data: NonNull<T>,
    pub(crate) len: usize,
}

// SAFETY: a buffer owns its elements.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: `&Buffer` gives only `&T`.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: Element> Buffer<T> {
    /// Makes a buffer of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) when its size overflows, and
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) for more memory than there is.
    pub fn new(len: usize) -> Result<Self> {
        Self::zeroed(len)
    }
}

impl<T: Copy> Buffer<T> {
    /// For types of which all zeros are a value.
    pub(crate) fn zeroed(len: usize) -> Result<Self> {
        let Some(layout) = layout::<T>(len) else {
            return Err(Error::argument(format!(
                "{len} elements of {} bytes overflow the address space",
                size_of::<T>()
            )));
        };
        // SAFETY: the layout's size is not zero (see `layout`).
        let data = unsafe { alloc_zeroed(layout) };
        match NonNull::new(data.cast()) {
            Some(data) => Ok(Self { data, len }),
            None => Err(Error::exhausted(format!(
                "there is no memory for {len} elements of {} bytes",
                size_of::<T>()
            ))),
        }
    }
}

fn layout<T>(len: usize) -> Option<Layout> {
    let size = size_of::<T>().checked_mul(len)?.max(1);
    Layout::from_size_align(size, ALIGNMENT.max(align_of::<T>())).ok()
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Some(layout) = layout::<T>(self.len) {
            // SAFETY: the memory was allocated with this layout, and this is its end.
            unsafe { dealloc(self.data.as_ptr().cast(), layout) };
        }
    }
}

impl<T> std::ops::Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the buffer holds `len` initialised elements.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }
}

impl<T> std::ops::DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the buffer holds `len` initialised elements and is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_ptr(), self.len) }
    }
}

/// A string in a tensor's memory; all zeros are an empty one.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct TString([u8; 24]);

const _: () = assert!(size_of::<TString>() == size_of::<TF_TString>());

/// The memory of a tensor of strings.
pub(crate) struct StringBuffer {
    pub(crate) strings: Buffer<TString>,
    pub(crate) api: &'static ClientApi,
}

impl Drop for StringBuffer {
    fn drop(&mut self) {
        for slot in 0..self.strings.len {
            // SAFETY: each slot is an initialised string, and this is its end.
            unsafe {
                self.api
                    .tf_tstring
                    .TF_StringDealloc(self.strings.data.as_ptr().add(slot).cast());
            }
        }
    }
}
