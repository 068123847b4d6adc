//! How tensors are made: of elements, bytes and strings, with a copy and without.

use std::ffi::{c_char, c_void};
use std::hint::black_box;
use std::ptr::NonNull;

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Tensor};

use super::{Tensor, byte_len, c_int_of, check_count, count, product};
use crate::base::api::api;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::tensor::element::{Element, Nested, bytes_of};
use crate::tensor::memory::{ALIGNMENT, Buffer, StringBuffer, TString};
use tfp_wire::DataType;

impl Tensor {
    /// Makes a tensor of zeros (empty strings for `STRING`).
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a type without host elements or a size
    /// that overflows, [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a negative dimension, and
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) for more memory than there is.
    pub fn zeros(dtype: DataType, dims: &[i64]) -> Result<Self> {
        let count = count(dims)?;
        if dtype == DataType::STRING {
            return Self::strings(dims, count, std::iter::repeat_n(&[][..], count));
        }
        let bytes = byte_len(dtype, count)?;
        let tensor = Self::allocate(dtype, dims, bytes)?;
        // SAFETY: the tensor is new, so its `bytes` bytes are writable and nothing else sees them.
        unsafe { std::ptr::write_bytes(tensor.data().cast::<u8>(), 0, bytes) };
        Ok(tensor)
    }

    /// Makes a tensor with a copy of some elements.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) when their number is not the dimensions' product,
    /// and [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) for more memory than there is.
    pub fn from_slice<T: Element>(elements: &[T], dims: &[i64]) -> Result<Self> {
        check_count(elements.len(), dims)?;
        Self::from_plain_bytes(T::DTYPE, bytes_of(elements), dims)
    }

    /// Makes a tensor of elements without copying them when they are aligned to [`ALIGNMENT`] bytes,
    /// and with one copy otherwise.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_vec<T: Element>(elements: Vec<T>, dims: &[i64]) -> Result<Self> {
        if elements.is_empty()
            || !elements
                .as_ptr()
                .cast::<u8>()
                .addr()
                .is_multiple_of(ALIGNMENT)
        {
            return Self::from_slice(&elements, dims);
        }
        check_count(elements.len(), dims)?;
        let len = size_of_val(&*elements);
        let owner = Box::into_raw(Box::new(elements));
        // SAFETY: `owner` was just made by `Box::into_raw`.
        let data = unsafe { (*owner).as_mut_ptr() };
        // SAFETY: the vector's memory holds `len` bytes of elements and stays until `drop_box` gets
        // the box back.
        unsafe {
            Self::from_memory(
                T::DTYPE,
                dims,
                data.cast(),
                len,
                drop_box::<Vec<T>>,
                owner.cast(),
            )
        }
    }

    /// Makes a tensor of a buffer without copying.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_buffer<T: Element>(buffer: Buffer<T>, dims: &[i64]) -> Result<Self> {
        Self::from_buffer_with(buffer, (), dims)
    }

    /// Makes a tensor of a buffer without copying, and keeps something else as long as the memory: until
    /// this tensor, and all that TensorFlow made to share its memory, are gone. It is dropped on any thread.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_buffer_with<T: Element, K: Send + 'static>(
        buffer: Buffer<T>,
        kept: K,
        dims: &[i64],
    ) -> Result<Self> {
        check_count(buffer.len(), dims)?;
        if buffer.is_empty() {
            return Self::from_slice::<T>(&[], dims);
        }
        let len = size_of_val(&*buffer);
        let data = buffer.data.as_ptr();
        let owner = Box::into_raw(Box::new((buffer, kept)));
        // SAFETY: the buffer holds `len` bytes of elements and lives until `drop_box` gets it back.
        unsafe {
            Self::from_memory(
                T::DTYPE,
                dims,
                data.cast(),
                len,
                drop_box::<(Buffer<T>, K)>,
                owner.cast(),
            )
        }
    }

    /// Makes a scalar.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        Self::from_slice(&[value], &[])
    }

    /// Makes a tensor of a nested array, as `[[1.0_f32, 2.0], [3.0, 4.0]]`.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_array<A: Nested>(array: A) -> Result<Self> {
        Self::from_slice(items(&array), &A::DIMS[..A::RANK])
    }

    /// Makes a tensor of strings, each any bytes.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_strings<S: AsRef<[u8]>>(strings: &[S], dims: &[i64]) -> Result<Self> {
        check_count(strings.len(), dims)?;
        Self::strings(dims, strings.len(), strings.iter().map(AsRef::as_ref))
    }

    /// Makes a scalar string of any bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there, and
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) for more memory than there is.
    pub fn from_string(bytes: impl AsRef<[u8]>) -> Result<Self> {
        Self::from_strings(&[bytes.as_ref()], &[])
    }

    /// Makes a tensor of any plain type of the bytes of its elements, with one copy.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a type whose elements are not plain
    /// bytes or a length that does not fit the dimensions.
    pub fn from_bytes(dtype: DataType, bytes: &[u8], dims: &[i64]) -> Result<Self> {
        let expected = byte_len(dtype, count(dims)?)?;
        if bytes.len() != expected {
            return Err(Error::argument(format!(
                "{} bytes for a tensor of {dtype} with shape {}: expected {expected}",
                bytes.len(),
                Shape::new(dims)
            )));
        }
        Self::from_plain_bytes(dtype, bytes, dims)
    }

    pub(super) fn from_plain_bytes(dtype: DataType, bytes: &[u8], dims: &[i64]) -> Result<Self> {
        let tensor = Self::allocate(dtype, dims, bytes.len())?;
        // SAFETY: the tensor is new and of this many bytes, so the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data().cast(), bytes.len());
        }
        Ok(tensor)
    }

    /// Makes a tensor with memory that TensorFlow allocates, not initialised; the caller writes it.
    pub(super) fn allocate(dtype: DataType, dims: &[i64], bytes: usize) -> Result<Self> {
        let api = api()?;
        let rank = c_int_of(dims.len())?;
        // SAFETY: `dims` has `rank` elements, and `bytes` is what the type and dimensions need.
        let raw = fenced(|| unsafe {
            api.tf_tensor
                .TF_AllocateTensor(dtype.raw(), dims.as_ptr(), rank, bytes)
        })?;
        // TensorFlow returns a tensor on no memory where it finds none.
        Self::wrap(api, raw, dtype, dims)
            .filter(|tensor| bytes == 0 || !tensor.data().is_null())
            .ok_or_else(|| {
                let shape = Shape::new(dims);
                Error::exhausted(format!(
                    "TensorFlow can't allocate {bytes} bytes for a tensor of {dtype} with shape {shape}"
                ))
            })
    }

    /// Takes what TensorFlow has made of that type and dimensions; nothing if it refused.
    fn wrap(
        api: &'static ClientApi,
        raw: *mut TF_Tensor,
        dtype: DataType,
        dims: &[i64],
    ) -> Option<Self> {
        Some(Self {
            raw: NonNull::new(raw)?,
            api,
            dtype,
            dims: dims.iter().copied().collect(),
            len: product(dims),
        })
    }

    /// Makes a tensor on memory of the caller.
    ///
    /// # Safety
    /// `data` holds `len` bytes, the elements of a tensor of that type and dimensions, until
    /// `free` is called with `data`, `len` and `owner`; this happens once, on any thread, also
    /// when this function fails.
    unsafe fn from_memory(
        dtype: DataType,
        dims: &[i64],
        data: *mut c_void,
        len: usize,
        free: unsafe extern "C" fn(*mut c_void, usize, *mut c_void),
        owner: *mut c_void,
    ) -> Result<Self> {
        let (api, rank) = match api().and_then(|api| Ok((api, c_int_of(dims.len())?))) {
            Ok(both) => both,
            Err(error) => {
                // SAFETY: nothing has taken the memory, and this is the only call.
                unsafe { free(data, len, owner) };
                return Err(error);
            }
        };
        // SAFETY: as this function's contract; on failure TensorFlow calls `free`. What it throws says
        // nothing of whether it did: the memory is then kept for good.
        let raw = fenced(|| unsafe {
            api.tf_tensor.TF_NewTensor(
                dtype.raw(),
                dims.as_ptr(),
                rank,
                data,
                len,
                Some(free),
                owner,
            )
        })?;
        Self::wrap(api, raw, dtype, dims).ok_or_else(|| {
            let shape = Shape::new(dims);
            Error::argument(format!(
                "TensorFlow refuses {len} bytes as a tensor of {dtype} with shape {shape}"
            ))
        })
    }

    pub(super) fn strings<'a>(
        dims: &[i64],
        count: usize,
        strings: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Self> {
        let api = api()?;
        // All zeros are empty strings, so the buffer is whole at every moment.
        let buffer = Box::new(StringBuffer {
            strings: Buffer::zeroed(count)?,
            api,
        });
        check_memory(strings.clone().take(count))?;
        for (slot, string) in strings.take(count).enumerate() {
            // SAFETY: `slot` is below `count`; the string is initialised, and `string` is readable.
            unsafe {
                api.tf_tstring.TF_StringCopy(
                    buffer.strings.data.as_ptr().add(slot).cast(),
                    string.as_ptr().cast::<c_char>(),
                    string.len(),
                );
            }
        }
        let data = buffer.strings.data.as_ptr();
        let len = count * size_of::<TString>();
        // SAFETY: the buffer holds `count` strings and lives until `drop_box` gets it back.
        unsafe {
            Self::from_memory(
                DataType::STRING,
                dims,
                data.cast(),
                len,
                drop_box::<StringBuffer>,
                Box::into_raw(buffer).cast(),
            )
        }
    }
}

/// Looks for the memory of copies of strings: TensorFlow's function does not, and writes to address 0.
///
/// # Errors
/// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) if there is none now. Some hundred
/// kilobytes are not looked for, as little as Rust does for its own.
fn check_memory<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    const UNSEEN: usize = 256 << 10;
    /// What an allocator needs beside each.
    const ASIDE: usize = 32;
    /// The longest string that needs no memory of its own.
    const INLINE: usize = 22;
    let sizes = strings.map(<[u8]>::len).filter(|&len| len > INLINE);
    let total = sizes.fold(0_usize, |sum, len| sum.saturating_add(len + ASIDE));
    let mut memory: Vec<u8> = Vec::new();
    if total < UNSEEN || memory.try_reserve_exact(total).is_ok() {
        // The compiler may leave out memory that nobody looks at.
        black_box(memory);
        return Ok(());
    }
    Err(Error::exhausted(format!(
        "there is no memory for {total} bytes of strings"
    )))
}

/// Drops the box that a tensor's memory belongs to.
unsafe extern "C" fn drop_box<T>(_data: *mut c_void, _len: usize, owner: *mut c_void) {
    // SAFETY: `owner` came from `Box::into_raw` of a `T` when the tensor was made, and TensorFlow
    // calls this once.
    drop(unsafe { Box::from_raw(owner.cast::<T>()) });
}

/// Returns the elements of a nested array.
pub(crate) fn items<A: Nested>(array: &A) -> &[A::Item] {
    let len = size_of::<A>() / size_of::<A::Item>();
    // SAFETY: by `Nested`'s contract the array is its items, one after the other.
    unsafe { std::slice::from_raw_parts((&raw const *array).cast(), len) }
}
