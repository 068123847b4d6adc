//! What the index of a checkpoint says of a tensor, checked before TensorFlow reads it: it ends the
//! process for some sizes, and makes room for others before it looks for their bytes.

use tfp_core::wire::{Reader, read_shape};
use tfp_core::{DataType, Result, Shape};

/// A tensor of a checkpoint, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) dtype: DataType,
    pub(super) shape: Shape,
    /// Bytes that the tensor takes in the files with data, at least.
    pub(super) bytes: u64,
    /// Whether its bytes are in parts, which have entries of their own.
    pub(super) is_sliced: bool,
}

/// Reads a `BundleEntryProto`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_entry(bytes: &[u8]) -> std::result::Result<Entry, String> {
    let fields = read_fields(bytes).map_err(|error| error.to_string())?;
    let number = u32::try_from(fields.dtype).unwrap_or(0);
    let dtype = DataType::from_number(number);
    if !dtype.is_known() || dtype.is_ref() {
        return Err(format!("its element type has the number {}", fields.dtype));
    }
    let sizes = fields.shape.dims().unwrap_or(&[-1]);
    let count = elements(sizes).ok_or_else(|| format!("its shape is {}", fields.shape))?;
    let places = [fields.shard, fields.offset, fields.size];
    let end = fields.offset.checked_add(fields.size);
    if places.iter().any(|&place| place < 0) || end.is_none() || fields.shard > i32::MAX.into() {
        return Err(format!("its place is {places:?}"));
    }
    let size = fields.size.cast_unsigned();
    // An element that is no plain bytes takes one byte or more.
    let least = dtype.size().unwrap_or(1) as u64;
    let needed = count
        .checked_mul(least)
        .ok_or_else(|| format!("its shape is {}", fields.shape))?;
    if fields.slices.is_empty() {
        let fits = match dtype.size() {
            Some(_) => size == needed,
            None => size >= needed,
        };
        if !fits {
            return Err(format!(
                "{size} bytes for {} of {dtype}, which takes {needed}",
                fields.shape
            ));
        }
    }
    for slice in &fields.slices {
        if slice.len() != sizes.len() || !slice.iter().zip(sizes).all(|(e, &size)| e.is_in(size)) {
            return Err(format!("a slice is not inside of {}", fields.shape));
        }
    }
    Ok(Entry {
        dtype,
        shape: fields.shape,
        bytes: needed,
        is_sliced: !fields.slices.is_empty(),
    })
}

/// Returns how many elements a shape has, if it has a size for each axis and TensorFlow can count them.
fn elements(sizes: &[i64]) -> Option<u64> {
    let mut count = 1_i64;
    for &size in sizes {
        // TensorFlow multiplies from the left, whatever follows.
        count = count.checked_mul(size).filter(|_| size >= 0)?;
    }
    // The most axes that TensorFlow takes.
    (sizes.len() < 255).then(|| count.cast_unsigned())
}

/// A part of an axis; without a length all of it.
struct Extent {
    start: i64,
    length: Option<i64>,
}

impl Extent {
    fn is_in(&self, size: i64) -> bool {
        match self.length {
            None => self.start == 0,
            Some(length) => {
                self.start >= 0
                    && length >= 0
                    && self
                        .start
                        .checked_add(length)
                        .is_some_and(|end| end <= size)
            }
        }
    }
}

/// The fields of a message, as they are.
struct Fields {
    dtype: i64,
    shape: Shape,
    shard: i64,
    offset: i64,
    size: i64,
    slices: Vec<Vec<Extent>>,
}

fn read_fields(bytes: &[u8]) -> Result<Fields> {
    let mut fields = Fields {
        dtype: 0,
        shape: Shape::scalar(),
        shard: 0,
        offset: 0,
        size: 0,
        slices: Vec::new(),
    };
    for field in Reader::new("BundleEntryProto", bytes) {
        match field? {
            (1, value) => fields.dtype = value.int()?,
            (2, value) => fields.shape = read_shape(value.bytes()?)?,
            (3, value) => fields.shard = value.int()?,
            (4, value) => fields.offset = value.int()?,
            (5, value) => fields.size = value.int()?,
            (7, value) => fields.slices.push(read_slice(value.bytes()?)?),
            _ => {}
        }
    }
    Ok(fields)
}

fn read_slice(bytes: &[u8]) -> Result<Vec<Extent>> {
    let mut extents = Vec::new();
    for field in Reader::new("TensorSliceProto", bytes) {
        let (1, value) = field? else { continue };
        let mut extent = Extent {
            start: 0,
            length: None,
        };
        for field in Reader::new("TensorSliceProto.Extent", value.bytes()?) {
            match field? {
                (1, value) => extent.start = value.int()?,
                (2, value) => extent.length = Some(value.int()?),
                _ => {}
            }
        }
        extents.push(extent);
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use tfp_core::wire::Writer;

    use super::read_entry;

    /// Reads an entry of a type, with a shape, a place and bytes.
    fn read(dtype: i64, sizes: &[i64], offset: i64, size: i64) -> Result<u64, String> {
        read_with(dtype, sizes, offset, size, &[])
    }

    fn read_with(
        dtype: i64,
        sizes: &[i64],
        offset: i64,
        size: i64,
        slice: &[(i64, i64)],
    ) -> Result<u64, String> {
        let mut out = Writer::new();
        out.int(1, dtype);
        out.message(2, |out| {
            for &size in sizes {
                out.message(2, |out| out.int(1, size));
            }
        });
        out.int(4, offset);
        out.int(5, size);
        if !slice.is_empty() {
            out.message(7, |out| {
                for &(start, length) in slice {
                    out.message(1, |out| {
                        out.int(1, start);
                        out.int(2, length);
                    });
                }
            });
        }
        read_entry(&out.into_bytes()).map(|entry| entry.bytes)
    }

    #[test]
    fn tensors_take_as_many_bytes_as_they_have() {
        assert_eq!(read(1, &[2, 3], 0, 24), Ok(24));
        assert_eq!(read(1, &[], 7, 4), Ok(4));
        assert_eq!(read(7, &[2], 0, 90), Ok(2));
        assert_eq!(read(3, &[0, 9], 0, 0), Ok(0));
        let wrong: [(i64, &[i64], i64, i64); 10] = [
            (1, &[2, 3], 0, 20),
            (1, &[2, 3], -1, 24),
            (1, &[2, 3], i64::MAX, 24),
            (1, &[-1], 0, 4),
            (1, &[i64::MAX, i64::MAX], 0, 4),
            (1, &[i64::MAX, 2, 0], 0, 0),
            (1, &[i64::MAX], 0, -4),
            (7, &[2], 0, 1),
            (0, &[2], 0, 8),
            (101, &[2], 0, 8),
        ];
        for (dtype, sizes, offset, size) in wrong {
            assert!(
                read(dtype, sizes, offset, size).is_err(),
                "{dtype} {sizes:?} {offset} {size}"
            );
        }
        assert!(read(1, &[1; 300], 0, 4).is_err());
    }

    #[test]
    fn slices_are_inside_of_their_tensor() {
        assert_eq!(read_with(1, &[4, 5], 0, 0, &[(0, 2), (1, 4)]), Ok(80));
        for slice in [
            &[(0, 2)][..],
            &[(-1, 2), (0, 5)],
            &[(0, -2), (0, 5)],
            &[(3, 2), (0, 5)],
            &[(1, i64::MAX), (0, 5)],
        ] {
            assert!(read_with(1, &[4, 5], 0, 0, slice).is_err(), "{slice:?}");
        }
    }
}
