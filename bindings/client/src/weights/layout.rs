//! The order of a tensor's elements and of their bytes.

use tfp_core::{Error, Result, Tensor};

use crate::room::room;

/// Turns the bytes of each number around.
pub(super) fn swap(bytes: &mut [u8], size: usize) {
    if size > 1 {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

/// The dimensions after a permutation: axis `i` of the result is axis `axes[i]`; `None` where the axes
/// are not those of the dimensions, each once.
pub(super) fn permuted(dims: &[i64], axes: &[usize]) -> Option<Vec<i64>> {
    let mut seen = vec![false; dims.len()];
    for &axis in axes {
        if std::mem::replace(seen.get_mut(axis)?, true) {
            return None;
        }
    }
    (axes.len() == dims.len()).then(|| axes.iter().map(|&axis| dims[axis]).collect())
}

/// The permutation that undoes one.
pub(super) fn inverse(axes: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; axes.len()];
    for (index, &axis) in axes.iter().enumerate() {
        if let Some(place) = inverse.get_mut(axis) {
            *place = index;
        }
    }
    inverse
}

/// Reads elements of `size` bytes, of a tensor with the last axis innermost, in another order of axes.
/// The axes are valid for the dimensions.
///
/// # Errors
/// As for [`room`].
pub(super) fn reorder(bytes: &[u8], size: usize, dims: &[i64], axes: &[usize]) -> Result<Vec<u8>> {
    let mut strides = vec![size; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as usize;
    }
    let mut out = room(bytes.len() as u64)?;
    let mut index = vec![0; axes.len()];
    let mut at = 0;
    while out.len() < bytes.len() {
        out.extend_from_slice(&bytes[at..at + size]);
        for place in (0..axes.len()).rev() {
            let (count, stride) = (dims[axes[place]] as usize, strides[axes[place]]);
            index[place] += 1;
            at += stride;
            if index[place] < count {
                break;
            }
            index[place] = 0;
            at -= stride * count;
        }
    }
    Ok(out)
}

/// Returns a tensor with its axes in another order.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for axes that are not those of the tensor, and
/// as for [`room`].
pub(super) fn permute(tensor: &Tensor, axes: &[usize]) -> Result<Tensor> {
    let dims = permuted(tensor.dims(), axes).ok_or_else(|| {
        Error::argument(format!(
            "the axes {axes:?} are no order of those of shape {}",
            tensor.shape()
        ))
    })?;
    let bytes = tensor.as_bytes()?;
    let size = tensor.dtype().size().unwrap_or(1);
    let moved = reorder(bytes, size, tensor.dims(), axes)?;
    Tensor::from_bytes(tensor.dtype(), &moved, &dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_move_with_their_axes() {
        let bytes: Vec<u8> = (0..24).collect();
        let axes = [2, 0, 1];
        let moved = reorder(&bytes, 1, &[2, 3, 4], &axes).unwrap();
        assert_eq!(permuted(&[2, 3, 4], &axes), Some(vec![4, 2, 3]));
        for (k, j, i) in [(0, 0, 0), (3, 1, 2), (2, 1, 0)] {
            assert_eq!(moved[(k * 2 + j) * 3 + i], bytes[(j * 3 + i) * 4 + k]);
        }
        let back = reorder(&moved, 1, &[4, 2, 3], &inverse(&axes));
        assert_eq!(back.unwrap(), bytes);
        let pairs: Vec<u8> = (0..12).collect();
        assert_eq!(
            reorder(&pairs, 2, &[2, 3], &[1, 0]).unwrap(),
            [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]
        );
        assert!(reorder(&[], 4, &[0, 3], &[1, 0]).unwrap().is_empty());
        assert_eq!(reorder(&[7], 1, &[], &[]).unwrap(), [7]);
    }

    #[test]
    fn axes_are_each_once() {
        assert_eq!(permuted(&[2, 3], &[0, 0]), None);
        assert_eq!(permuted(&[2, 3], &[0, 2]), None);
        assert_eq!(permuted(&[2, 3], &[0]), None);
    }
}
