//! Tensors in host memory.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::ptr::NonNull;

use tfp_sys::{ClientApi, TF_TString, TF_Tensor};

use crate::api::{Status, api};
use crate::dtype::DataType;
use crate::element::{Element, Nested, bytes_of};
use crate::error::{Error, Result};
use crate::memory::{ALIGNMENT, Buffer, StringBuffer, TString};
use crate::shape::Shape;
use crate::small_vec::SmallVec;

/// An n-dimensional array in host memory, of any element type.
///
/// Elements are in row-major order. A tensor owns its memory or shares it with TensorFlow, which
/// may hold on to it (as a constant of a graph does); reading never copies, and
/// [`Self::as_mut_slice`] copies first when the memory is shared.
pub struct Tensor {
    raw: NonNull<TF_Tensor>,
    api: &'static ClientApi,
    dtype: DataType,
    dims: SmallVec<i64, 4>,
}

// SAFETY: a TF_Tensor may be used and deleted on any thread.
unsafe impl Send for Tensor {}
// SAFETY: `&Tensor` only reads, and memory that is shared is never written (see `as_mut_slice`).
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Makes a tensor of zeros (empty strings for `STRING`).
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a type without host elements, a
    /// negative dimension or a size that overflows.
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
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) when their number is not the dimensions' product.
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
        check_count(buffer.len(), dims)?;
        if buffer.is_empty() {
            return Self::from_slice::<T>(&[], dims);
        }
        let len = size_of_val(&*buffer);
        let data = buffer.data.as_ptr();
        let owner = Box::into_raw(Box::new(buffer));
        // SAFETY: the buffer holds `len` bytes of elements and lives until `drop_box` gets it back.
        unsafe {
            Self::from_memory(
                T::DTYPE,
                dims,
                data.cast(),
                len,
                drop_box::<Buffer<T>>,
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
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) when their number is not the dimensions' product.
    pub fn from_strings<S: AsRef<[u8]>>(strings: &[S], dims: &[i64]) -> Result<Self> {
        check_count(strings.len(), dims)?;
        Self::strings(dims, strings.len(), strings.iter().map(AsRef::as_ref))
    }

    /// Makes a scalar string of any bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there.
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

    fn from_plain_bytes(dtype: DataType, bytes: &[u8], dims: &[i64]) -> Result<Self> {
        let tensor = Self::allocate(dtype, dims, bytes.len())?;
        // SAFETY: the tensor is new and of this many bytes, so the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data().cast(), bytes.len());
        }
        Ok(tensor)
    }

    /// Makes a tensor with memory that TensorFlow allocates, not initialised; the caller writes it.
    fn allocate(dtype: DataType, dims: &[i64], bytes: usize) -> Result<Self> {
        let api = api()?;
        let rank = c_int_of(dims.len())?;
        // SAFETY: `dims` has `rank` elements, and `bytes` is what the type and dimensions need.
        let raw = unsafe {
            api.tf_tensor
                .TF_AllocateTensor(dtype.raw(), dims.as_ptr(), rank, bytes)
        };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw,
                api,
                dtype,
                dims: dims.iter().copied().collect(),
            }),
            None => Err(Error::argument(format!(
                "TensorFlow can't allocate a tensor of {dtype} with shape {}",
                Shape::new(dims)
            ))),
        }
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
        // SAFETY: as this function's contract; on failure TensorFlow calls `free`.
        let raw = unsafe {
            api.tf_tensor.TF_NewTensor(
                dtype.raw(),
                dims.as_ptr(),
                rank,
                data,
                len,
                Some(free),
                owner,
            )
        };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw,
                api,
                dtype,
                dims: dims.iter().copied().collect(),
            }),
            None => Err(Error::argument(format!(
                "TensorFlow refuses {len} bytes as a tensor of {dtype} with shape {}",
                Shape::new(dims)
            ))),
        }
    }

    fn strings<'a>(
        dims: &[i64],
        count: usize,
        strings: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self> {
        let api = api()?;
        // All zeros are empty strings, so the buffer is whole at every moment.
        let buffer = Box::new(StringBuffer {
            strings: Buffer::zeroed(count)?,
            api,
        });
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

    /// Takes a tensor that TensorFlow gave away.
    ///
    /// # Safety
    /// `raw` is null or a tensor that nothing else deletes.
    pub(crate) unsafe fn from_owned_ptr(
        raw: *mut TF_Tensor,
        api: &'static ClientApi,
    ) -> Result<Self> {
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::internal("TensorFlow returned a null tensor"));
        };
        let tensor = &api.tf_tensor;
        // SAFETY: the tensor is alive; dimensions are asked for below their number.
        unsafe {
            let rank = tensor.TF_NumDims(raw.as_ptr());
            Ok(Self {
                raw,
                api,
                dtype: DataType::from_raw(tensor.TF_TensorType(raw.as_ptr())),
                dims: (0..rank)
                    .map(|axis| tensor.TF_Dim(raw.as_ptr(), axis))
                    .collect(),
            })
        }
    }

    /// Returns the pointer, which stays owned by this tensor.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut TF_Tensor {
        self.raw.as_ptr()
    }

    #[inline]
    fn data(&self) -> *mut c_void {
        // SAFETY: the tensor is alive.
        unsafe { self.api.tf_tensor.TF_TensorData(self.raw.as_ptr()) }
    }

    /// Returns the element type.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Returns the dimensions; empty for a scalar.
    #[must_use]
    #[inline]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the shape, which is fully known.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape::new(&self.dims)
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.dims
            .iter()
            .map(|&dim| usize::try_from(dim).unwrap_or(0))
            .product()
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the elements.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) for strings and other types that are not plain.
    pub fn as_bytes(&self) -> Result<&[u8]> {
        if self.dtype.size() == 0 {
            return Err(Error::argument(format!(
                "the elements of a tensor of {} are not plain bytes",
                self.dtype
            )));
        }
        let len = byte_len(self.dtype, self.len())?;
        let data = self.data().cast::<u8>();
        // SAFETY: the tensor is alive.
        let held = unsafe { self.api.tf_tensor.TF_TensorByteSize(self.raw.as_ptr()) };
        if held < len || (data.is_null() && len > 0) {
            return Err(Error::internal(format!(
                "a tensor holds {held} bytes, expected {len}"
            )));
        }
        if len == 0 {
            return Ok(&[]);
        }
        // SAFETY: the tensor holds at least `len` initialised bytes, and nothing writes memory that
        // is shared.
        Ok(unsafe { std::slice::from_raw_parts(data, len) })
    }

    /// Returns the elements, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) when the tensor has another element type, or
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for bytes that are no `bool`.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if T::DTYPE != self.dtype {
            return Err(Error::dtype("elements of a tensor", T::DTYPE, self.dtype));
        }
        let bytes = self.as_bytes()?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if !bytes.as_ptr().addr().is_multiple_of(align_of::<T>()) {
            return Err(Error::internal(format!(
                "a tensor of {} is not aligned to its elements",
                self.dtype
            )));
        }
        if !T::all_valid(bytes) {
            return Err(Error::argument(format!(
                "a tensor of {} holds bytes that are no value of that type",
                self.dtype
            )));
        }
        // SAFETY: the bytes are aligned, of a multiple of the element's size and valid elements.
        Ok(unsafe {
            std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>())
        })
    }

    /// Returns the elements for writing; copies the tensor first when TensorFlow shares its memory.
    ///
    /// # Errors
    /// As for [`Self::as_slice`].
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        let len = self.as_slice::<T>()?.len();
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: the tensor is alive; the function only compares its reference count.
        let unique = unsafe { self.api.tf_tensor.TF_TensorMaybeMove(self.raw.as_ptr()) };
        if unique.is_null() {
            *self = self.deep_copy()?;
        } else if let Some(raw) = NonNull::new(unique) {
            self.raw = raw;
        }
        let data = self.data().cast::<T>();
        // SAFETY: the elements are valid (checked above, and copied as they are), and nothing else
        // refers to the memory: this tensor is borrowed mutably and its buffer is not shared.
        Ok(unsafe { std::slice::from_raw_parts_mut(data, len) })
    }

    /// Returns the only element.
    ///
    /// # Errors
    /// As for [`Self::as_slice`], and [`ErrorKind::Shape`](crate::ErrorKind::Shape) unless there is one.
    pub fn to_scalar<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [value] => Ok(*value),
            _ => Err(Error::shape(
                "a single element of a tensor",
                "one element",
                self.shape(),
            )),
        }
    }

    /// Returns a copy of the elements.
    ///
    /// # Errors
    /// As for [`Self::as_slice`].
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.as_slice::<T>()?.to_vec())
    }

    /// Returns the strings, each any bytes, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) unless this is a tensor of strings.
    pub fn as_strings(&self) -> Result<Vec<&[u8]>> {
        if self.dtype != DataType::STRING {
            return Err(Error::dtype(
                "strings of a tensor",
                DataType::STRING,
                self.dtype,
            ));
        }
        let data = self.data().cast::<TF_TString>();
        let count = self.len();
        // SAFETY: the tensor is alive.
        let held = unsafe { self.api.tf_tensor.TF_TensorByteSize(self.raw.as_ptr()) };
        if held / size_of::<TString>() < count || (data.is_null() && count > 0) {
            return Err(Error::internal(format!(
                "a tensor holds {held} bytes for {count} strings"
            )));
        }
        let api = &self.api.tf_tstring;
        let string = |index| {
            // SAFETY: `index` is below the number of strings; their memory lives and stays as it is
            // while the tensor is borrowed.
            unsafe {
                let string = data.add(index);
                let len = api.TF_StringGetSize(string);
                let bytes = api.TF_StringGetDataPointer(string).cast::<u8>();
                if len == 0 {
                    &[][..]
                } else {
                    std::slice::from_raw_parts(bytes, len)
                }
            }
        };
        Ok((0..count).map(string).collect())
    }

    /// Returns a copy with its own memory.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for types that are not plain nor strings.
    pub fn deep_copy(&self) -> Result<Self> {
        if self.dtype == DataType::STRING {
            let strings = self.as_strings()?;
            return Self::strings(&self.dims, strings.len(), strings.into_iter());
        }
        Self::from_plain_bytes(self.dtype, self.as_bytes()?, &self.dims)
    }

    /// Returns a tensor with the same elements and other dimensions. It shares this one's memory,
    /// except that strings are copied.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) unless the number of elements stays.
    pub fn reshaped(&self, dims: &[i64]) -> Result<Self> {
        check_count(self.len(), dims)?;
        self.with_type(self.dtype, dims)
    }

    /// Returns a second tensor on the same memory; strings are copied.
    ///
    /// # Errors
    /// What TensorFlow says about types that are not plain.
    pub fn share(&self) -> Result<Self> {
        self.with_type(self.dtype, &self.dims)
    }

    /// Returns a tensor on the same memory whose bytes are read as another plain type.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) unless both have as many bytes.
    pub fn bitcast(&self, dtype: DataType, dims: &[i64]) -> Result<Self> {
        let (from, to) = (self.as_bytes()?.len(), byte_len(dtype, count(dims)?)?);
        let both_bool = (dtype == DataType::BOOL) == (self.dtype == DataType::BOOL);
        if from != to || !both_bool {
            return Err(Error::argument(format!(
                "a tensor of {} with shape {} ({from} bytes) can't be read as {dtype} with shape {} \
                 ({to} bytes)",
                self.dtype,
                self.shape(),
                Shape::new(dims)
            )));
        }
        self.with_type(dtype, dims)
    }

    fn with_type(&self, dtype: DataType, dims: &[i64]) -> Result<Self> {
        if dtype == DataType::STRING {
            let strings = self.as_strings()?;
            return Self::strings(dims, strings.len(), strings.into_iter());
        }
        let mut target = Self::allocate(DataType::UINT8, &[0], 0)?;
        let status = Status::new(self.api)?;
        // SAFETY: both tensors and the status are alive, and `dims` has the length that is passed.
        unsafe {
            self.api.tf_tensor.TF_TensorBitcastFrom(
                self.raw.as_ptr(),
                dtype.raw(),
                target.raw.as_ptr(),
                dims.as_ptr(),
                c_int_of(dims.len())?,
                status.as_ptr(),
            );
        }
        status.check()?;
        target.dtype = dtype;
        target.dims = dims.iter().copied().collect();
        Ok(target)
    }
}

impl Drop for Tensor {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the tensor is alive and this is its end; TensorFlow counts other users of its memory.
        unsafe { self.api.tf_tensor.TF_DeleteTensor(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {})", self.dtype, self.shape())
    }
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

fn c_int_of(rank: usize) -> Result<c_int> {
    c_int::try_from(rank)
        .ok()
        .filter(|&rank| rank <= MAX_RANK)
        .ok_or_else(|| Error::argument(format!("{rank} dimensions; TensorFlow allows {MAX_RANK}")))
}

const MAX_RANK: c_int = 254;

/// Returns the number of elements of a tensor.
pub(crate) fn count(dims: &[i64]) -> Result<usize> {
    c_int_of(dims.len())?;
    let mut count = Some(1_i64);
    let mut is_empty = false;
    for &dim in dims {
        if dim < 0 {
            return Err(impossible(dims));
        }
        is_empty |= dim == 0;
        count = count.and_then(|count| count.checked_mul(dim));
    }
    if is_empty {
        return Ok(0);
    }
    let count = count.and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| impossible(dims))
}

#[cold]
fn impossible(dims: &[i64]) -> Error {
    Error::shape(
        "dimensions of a tensor",
        "dimensions that are not negative and whose product fits 63 bits",
        Shape::new(dims),
    )
}

pub(crate) fn check_count(elements: usize, dims: &[i64]) -> Result<()> {
    let expected = count(dims)?;
    if elements == expected {
        return Ok(());
    }
    Err(Error::shape(
        format!("{elements} elements for a tensor"),
        format!("a shape of {elements} elements"),
        Shape::new(dims),
    ))
}

fn byte_len(dtype: DataType, count: usize) -> Result<usize> {
    if dtype.size() == 0 || dtype.is_ref() {
        return Err(Error::argument(format!(
            "the elements of {dtype} are not plain bytes"
        )));
    }
    dtype
        .size()
        .checked_mul(count)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| Error::argument(format!("{count} elements of {dtype} overflow memory")))
}
