/// `DLDataType` of DLPack.
#[repr(C)]
pub(crate) struct DlDataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

/// `DLDevice` of DLPack.
#[repr(C)]
pub(crate) struct DlDevice {
    pub(crate) device_type: i32,
    pub(crate) device_id: i32,
}

/// `DLTensor` of DLPack.
#[repr(C)]
pub(crate) struct DlTensor {
    pub(crate) data: *mut core::ffi::c_void,
    pub(crate) device: DlDevice,
    pub(crate) ndim: i32,
    pub(crate) dtype: DlDataType,
    pub(crate) shape: *const i64,
    pub(crate) strides: *const i64,
    pub(crate) byte_offset: u64,
}

impl DlTensor {
    /// A dense tensor on the CPU. `shape` is not written by TVM's C.
    #[inline]
    pub(crate) const fn new(
        data: *mut core::ffi::c_void,
        shape: &'static [i64],
        dtype: DlDataType,
    ) -> Self {
        Self {
            data,
            device: DlDevice {
                device_type: 1,
                device_id: 0,
            },
            ndim: shape.len() as i32,
            dtype,
            shape: shape.as_ptr(),
            strides: core::ptr::null(),
            byte_offset: 0,
        }
    }
}

/// `TVMValue`: a word that holds a number or an address.
#[repr(C)]
pub(crate) union TvmValue {
    pub(crate) v_int64: i64,
    pub(crate) v_float64: f64,
    pub(crate) v_handle: *mut core::ffi::c_void,
}

/// `kTVMDLTensorHandle`.
pub(crate) const DL_TENSOR_HANDLE: i32 = 7;

const _: () = {
    use core::mem::{offset_of, size_of};
    let word = size_of::<usize>();
    assert!(size_of::<TvmValue>() == 8);
    assert!(offset_of!(DlTensor, device) == word);
    assert!(offset_of!(DlTensor, ndim) == word + 8);
    assert!(offset_of!(DlTensor, dtype) == word + 12);
    assert!(offset_of!(DlTensor, shape) == word + 16);
    assert!(offset_of!(DlTensor, strides) == 2 * word + 16);
    assert!(offset_of!(DlTensor, byte_offset) == 3 * word + 16 || word != 8);
};
