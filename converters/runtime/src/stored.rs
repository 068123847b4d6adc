//! Weights that a file has in fewer bits than the model computes with.
//!
//! Such a file starts like any other one: a header and tensors as they are. From a place that the
//! converter knows on, it has a record for each of the other tensors, all of which are `f32`:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | the format: 1 for halves, 2 for bytes with factors |
//! | 4 | elements |
//! | 4 | columns, for bytes with factors: the elements lie in rows of so many |
//! | 4 | nothing |
//! | 4 each | the factor of each column, for bytes with factors |
//! | 2 or 1 each | the elements: IEEE 754 binary16, or signed integers to be multiplied by the factors |
//!
//! All is little-endian, and each record starts at a multiple of 16 bytes. In memory, the tensors
//! follow each other as in a file without records, each at a multiple of 64 bytes.

use crate::bytes::{ALIGN, AlignedBytes, view_mut};
use crate::error::{Error, Result};
use crate::origin::Origin;
use crate::weights::Weights;

/// A record holds IEEE 754 binary16 numbers.
pub const HALVES: u32 = 1;
/// A record holds signed bytes, and a factor for each column.
pub const BYTES: u32 = 2;
/// Bytes before what a record holds.
pub const RECORD: usize = 16;

/// The weights as the model reads them: what lies before byte `plain` as it is, and the tensors of
/// the records after it as `f32`; `len` bytes in all.
///
/// # Errors
/// [`Error::Weights`] if the records do not give so many bytes, [`Error::Memory`] if there is no
/// memory for them.
pub fn expanded(weights: Origin<'_>, plain: usize, len: usize) -> Result<Origin<'static>> {
    let weights = weights.kept(usize::MAX);
    let bytes = weights.bytes();
    let (before, mut records) = bytes.split_at_checked(plain).ok_or_else(|| ends(len))?;
    let mut all = AlignedBytes::zeroed(len)?;
    let (same, mut rest) = all
        .as_mut_slice()
        .split_at_mut_checked(plain)
        .ok_or_else(|| ends(len))?;
    same.copy_from_slice(before);
    while !rest.is_empty() {
        let record = Record::read(&mut records).ok_or_else(|| ends(len))?;
        let size = record.elements.saturating_mul(size_of::<f32>());
        let size = size.checked_next_multiple_of(ALIGN);
        let (out, after) = size
            .filter(|&size| size > 0)
            .and_then(|size| core::mem::take(&mut rest).split_at_mut_checked(size))
            .ok_or_else(|| ends(len))?;
        record.write(view_mut(out)?);
        rest = after;
    }
    if !records.is_empty() {
        return Err(ends(len));
    }
    Ok(Weights::Owned(all).into())
}

#[cold]
fn ends(expected: usize) -> Error {
    Error::Weights {
        reason: "a record that is none, so that the tensors do not have as many bytes",
        found: 0,
        expected: expected as u64,
    }
}

/// The elements of a tensor in fewer bits.
struct Record<'a> {
    elements: usize,
    /// Four bytes for each column; none for halves.
    factors: &'a [u8],
    data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Takes a record from the front of `bytes`; `None` if there is none.
    fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let head = take(bytes, RECORD)?;
        let word = |i: usize| Some(u32::from_le_bytes(*head.get(4 * i..)?.first_chunk()?));
        let (format, elements, columns) = (word(0)?, word(1)? as usize, word(2)? as usize);
        let (factors, size) = match format {
            HALVES => (0, elements.checked_mul(2)?),
            BYTES if columns > 0 => (columns.checked_mul(4)?, elements),
            _ => return None,
        };
        let factors = take(bytes, factors)?;
        let data = take(bytes, size)?;
        let padding = (factors.len() + size).next_multiple_of(RECORD) - factors.len() - size;
        take(bytes, padding)?;
        Some(Self {
            elements,
            factors,
            data,
        })
    }

    fn write(&self, out: &mut [f32]) {
        if self.factors.is_empty() {
            for (out, half) in out.iter_mut().zip(self.data.as_chunks().0) {
                *out = of_half(u16::from_le_bytes(*half));
            }
            return;
        }
        let (factors, _) = self.factors.as_chunks();
        let rows = self.data.chunks(factors.len());
        for (out, row) in out.chunks_mut(factors.len()).zip(rows) {
            for ((out, &x), factor) in out.iter_mut().zip(row).zip(factors) {
                *out = f32::from(x.cast_signed()) * f32::from_le_bytes(*factor);
            }
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

/// An IEEE 754 binary16 number, which a binary32 one can always be.
fn of_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let size = u32::from(bits & 0x7fff);
    // What a binary32 number with this exponent has to be multiplied by: 2^(127 - 15).
    const SHIFT: f32 = f32::from_bits((127 + 112) << 23);
    let x = f32::from_bits(size << 13) * SHIFT;
    let x = match size < 0x7c00 {
        true => x.to_bits(),
        // Infinity or NaN.
        false => size << 13 | 0x7f80_0000,
    };
    f32::from_bits(sign | x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number by its definition.
    fn half(bits: u16) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
        let size = match exponent {
            0 => fraction * 2_f64.powi(-14),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
        };
        if bits >> 15 == 1 { -size } else { size }
    }

    #[test]
    fn every_half() {
        for bits in 0..=u16::MAX {
            let (found, expected) = (f64::from(of_half(bits)), half(bits));
            if expected.is_nan() {
                assert!(found.is_nan(), "{bits:#x}");
            } else {
                assert_eq!(found.to_bits(), expected.to_bits(), "{bits:#x}");
            }
        }
    }

    /// A plain part of 64 bytes, 3 halves, and 2 rows of 3 bytes and a part of one.
    fn stored() -> Vec<u8> {
        let mut bytes = vec![7; 64];
        let mut record = |head: [u32; 4], data: &[u8]| {
            bytes.extend(head.iter().flat_map(|x| x.to_le_bytes()));
            bytes.extend(data);
            bytes.resize(bytes.len().next_multiple_of(RECORD), 0);
        };
        record([HALVES, 3, 0, 0], &[0, 0x3c, 0, 0xc0, 1, 0]);
        let mut data: Vec<u8> = [0.5_f32, 2.0, -1.0]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        data.extend([1, 2, 3, 255, 128, 127, 4]);
        record([BYTES, 7, 3, 0], &data);
        bytes
    }

    fn owned(bytes: &[u8]) -> Origin<'static> {
        let mut owned = AlignedBytes::zeroed(bytes.len()).unwrap();
        owned.as_mut_slice().copy_from_slice(bytes);
        Weights::Owned(owned).into()
    }

    #[test]
    fn records_become_tensors() {
        let all = expanded(owned(&stored()), 64, 192).unwrap().kept(192);
        let floats = |at: usize, count: usize| {
            let of = crate::weights::Tensor::<f32>::new(at, count);
            of.of(all.bytes()).unwrap().to_vec()
        };
        assert_eq!(all.bytes()[..64], [7; 64]);
        assert_eq!(floats(64, 4), [1.0, -2.0, 2_f32.powi(-24), 0.0]);
        assert_eq!(
            floats(128, 8),
            [0.5, 4.0, -3.0, -0.5, -256.0, -127.0, 2.0, 0.0]
        );
    }

    #[test]
    fn damaged_records_are_refused() {
        let good = stored();
        let refused = |bytes: &[u8], plain, len| {
            let result = expanded(owned(bytes), plain, len);
            assert!(
                matches!(result, Err(Error::Weights { .. })),
                "{plain} {len}"
            );
        };
        for len in 0..good.len() {
            refused(&good[..len], 64, 192);
        }
        // Fewer and more tensors than there are, and a plain part that is longer than all.
        refused(&good, 64, 128);
        refused(&good, 64, 256);
        refused(&good, 64, 100);
        refused(&good, 300, 400);
        refused(&good, 64, 63);
        for (at, byte) in [
            (64, 3),
            (64, 0),
            (68, 255),
            (71, 255),
            (96, 1),
            (104, 0),
            (107, 255),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            refused(&bad, 64, 192);
        }
    }
}
