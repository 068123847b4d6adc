//! Tensors in host memory.

pub(crate) mod element;
mod make;
pub(crate) mod memory;
mod show;

pub(crate) use make::items;

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_TString, TF_Tensor};

use crate::base::api::{Status, not_null};
use crate::base::error::{Error, Result};
use crate::base::shape::{MAX_RANK, Shape};
use crate::base::small_vec::SmallVec;
use crate::tensor::element::Element;
use crate::tensor::memory::TString;
use tfp_wire::DataType;

/// An n-dimensional array in host memory, of any element type.
///
/// Elements are in row-major order. A tensor owns its memory or shares it with TensorFlow, which
/// may hold on to it (as a constant of a graph does); reading never copies, and
/// [`Self::as_mut_slice`] copies first when the memory is shared.
pub struct Tensor {
    raw: NonNull<TF_Tensor>,
    api: &'static ClientApi,
    // The memory holds as many elements of this type as the dimensions say.
    dtype: DataType,
    dims: SmallVec<i64, 4>,
    // The product of the dimensions.
    len: usize,
}

// SAFETY: a TF_Tensor may be used and deleted on any thread.
unsafe impl Send for Tensor {}
// SAFETY: `&Tensor` only reads, and memory that is shared is never written (see `as_mut_slice`).
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Takes a tensor that TensorFlow gave away.
    ///
    /// # Safety
    /// `raw` is null or a tensor that nothing else deletes.
    #[inline]
    pub(crate) unsafe fn from_owned_ptr(
        raw: *mut TF_Tensor,
        api: &'static ClientApi,
    ) -> Result<Self> {
        let raw = not_null(raw, "TensorFlow, asked for a tensor,")?;
        let c = &api.tf_tensor;
        // SAFETY: the tensor is alive; dimensions are asked for below their number.
        let (dtype, dims) = unsafe {
            let rank = c.TF_NumDims(raw.as_ptr());
            let dims: SmallVec<i64, 4> =
                (0..rank).map(|axis| c.TF_Dim(raw.as_ptr(), axis)).collect();
            (c.TF_TensorType(raw.as_ptr()), dims)
        };
        let tensor = Self {
            raw,
            api,
            dtype: DataType::from_raw(dtype),
            len: product(&dims),
            dims,
        };
        // SAFETY: the tensor is alive.
        let held = unsafe { c.TF_TensorByteSize(raw.as_ptr()) };
        // What elements without a size need is not known here.
        let expected = tensor.dtype.size().unwrap_or(0).checked_mul(tensor.len);
        match expected.filter(|&expected| expected <= held) {
            Some(_) => Ok(tensor),
            None => Err(too_small(&tensor, held)),
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
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the elements.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) for strings and other types that are not plain.
    pub fn as_bytes(&self) -> Result<&[u8]> {
        let len = byte_len(self.dtype, self.len())?;
        let data = self.data().cast::<u8>();
        if data.is_null() && len > 0 {
            return Err(Error::internal("a tensor with elements has no memory"));
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
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for bytes that are not a `bool`.
    #[inline]
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        if T::DTYPE != self.dtype {
            return Err(Error::dtype("elements of a tensor", T::DTYPE, self.dtype));
        }
        if self.len == 0 {
            return Ok(&[]);
        }
        let data = self.data().cast::<T>();
        if data.is_null() || !data.is_aligned() {
            return Err(self.bad_memory());
        }
        // SAFETY: the tensor holds as many elements of this type as its dimensions say, each of plain
        // bytes that are initialised, and nothing writes memory that is shared.
        let bytes =
            unsafe { std::slice::from_raw_parts(data.cast::<u8>(), self.len * size_of::<T>()) };
        if !T::all_valid(bytes) {
            return Err(Error::argument(format!(
                "a tensor of {} holds bytes that are no value of that type",
                self.dtype
            )));
        }
        // SAFETY: as above, and the bytes are aligned and valid elements.
        Ok(unsafe { std::slice::from_raw_parts(data, self.len) })
    }

    #[cold]
    fn bad_memory(&self) -> Error {
        Error::internal(format!(
            "a tensor of {} has no memory, or not aligned to its elements",
            self.dtype
        ))
    }

    /// Whether nothing else has the memory, or it is of a type whose elements are not read.
    pub(crate) fn is_alone(&self) -> bool {
        if self.dtype.size().is_none() && self.dtype != DataType::STRING {
            return true;
        }
        // SAFETY: the tensor is alive; the function only compares its reference count.
        !unsafe { self.api.tf_tensor.TF_TensorMaybeMove(self.raw.as_ptr()) }.is_null()
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
    #[inline]
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
    /// As for [`Self::as_slice`], and [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) for
    /// more memory than there is.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let elements = self.as_slice::<T>()?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(elements.len()).map_err(|_| {
            Error::exhausted(format!(
                "there is no memory for a copy of a tensor of {} with shape {}",
                self.dtype,
                self.shape()
            ))
        })?;
        copy.extend_from_slice(elements);
        Ok(copy)
    }

    /// Returns the strings, each any bytes, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) unless this is a tensor of strings, and
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted) for a list of more than there is memory.
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
        let mut list = Vec::new();
        list.try_reserve_exact(count).map_err(|_| {
            Error::exhausted(format!("there is no memory for a list of {count} strings"))
        })?;
        list.extend((0..count).map(string));
        Ok(list)
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
        let rank = c_int_of(dims.len())?;
        // SAFETY: both tensors and the status are alive, and `dims` has the length that is passed.
        fenced(|| unsafe {
            self.api.tf_tensor.TF_TensorBitcastFrom(
                self.raw.as_ptr(),
                dtype.raw(),
                target.raw.as_ptr(),
                dims.as_ptr(),
                rank,
                status.as_ptr(),
            );
        })?;
        status.check()?;
        target.dtype = dtype;
        target.dims = dims.iter().copied().collect();
        target.len = product(dims);
        Ok(target)
    }
}

#[cold]
fn too_small(tensor: &Tensor, held: usize) -> Error {
    Error::internal(format!("TensorFlow returned {tensor:?} with {held} bytes"))
}

impl Drop for Tensor {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the tensor is alive and this is its end; TensorFlow counts other users of its memory.
        unsafe { self.api.tf_tensor.TF_DeleteTensor(self.raw.as_ptr()) };
    }
}

fn c_int_of(rank: usize) -> Result<c_int> {
    c_int::try_from(rank)
        .ok()
        .filter(|_| rank <= MAX_RANK)
        .ok_or_else(|| Error::argument(format!("{rank} dimensions; TensorFlow allows {MAX_RANK}")))
}

/// Returns the number of elements of a tensor.
pub(crate) fn count(dims: &[i64]) -> Result<usize> {
    c_int_of(dims.len())?;
    // Also where a later dimension is zero: TensorFlow multiplies in this order, and ends the process
    // when a product overflows.
    let count = dims.iter().try_fold(1_i64, |count, &dim| {
        count.checked_mul(dim).filter(|_| dim >= 0)
    });
    let count = count.and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| impossible(dims))
}

/// Returns the number of elements of a tensor that exists.
#[inline]
fn product(dims: &[i64]) -> usize {
    dims.iter()
        .fold(1, |count: usize, &dim| count.wrapping_mul(dim as usize))
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
    let Some(size) = dtype.size().filter(|_| !dtype.is_ref()) else {
        return Err(Error::argument(format!(
            "the elements of {dtype} are not plain bytes"
        )));
    };
    size.checked_mul(count)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| Error::argument(format!("{count} elements of {dtype} overflow memory")))
}
