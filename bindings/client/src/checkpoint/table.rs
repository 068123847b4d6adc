//! The index of a checkpoint: a sorted table of keys and values, as a file.
//!
//! A table is blocks and a footer. A block is entries whose keys share prefixes, an array of restart
//! positions, a byte that tells its compression, and a checksum.

use std::collections::BTreeMap;

use tfp_core::wire::{push_varint, take_varint};

/// What ends a table.
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// The footer: two positions of blocks, padding, the magic number.
const FOOTER: usize = 48;
/// What follows a block: its compression and its checksum.
const TRAILER: usize = 5;

/// Reads every entry of a table, in the order of the keys.
///
/// # Errors
/// What is wrong with the bytes, and where.
pub(super) fn read_table(bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, String> {
    let Some(start) = bytes.len().checked_sub(FOOTER) else {
        return Err(format!(
            "{} bytes are too few for the index of a checkpoint",
            bytes.len()
        ));
    };
    let footer = &bytes[start..];
    if footer[FOOTER - 8..] != MAGIC.to_le_bytes() {
        return Err("it does not end as the index of a checkpoint does".to_owned());
    }
    let mut places = footer;
    // The first position is that of the meta index, which holds nothing.
    position(&mut places)?;
    let index = position(&mut places)?;
    let mut table = BTreeMap::new();
    let mut end = 0;
    for (_, place) in entries(block(bytes, index)?)? {
        let (offset, length) = position(&mut &place[..])?;
        if offset < end {
            return Err("its blocks overlap".to_owned());
        }
        end = offset.saturating_add(length);
        let data = block(bytes, (offset, length))?;
        table.extend(entries(data)?);
    }
    Ok(table)
}

/// Writes a table with entries, in the order of their keys.
pub(super) fn write_table(entries: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let list = entries
        .iter()
        .map(|(key, value)| (key.as_slice(), value.as_slice()));
    let data = push_block(&mut bytes, list);
    let meta = push_block(&mut bytes, std::iter::empty());
    let last = entries.keys().next_back();
    let index = push_block(
        &mut bytes,
        last.map(|key| (key.as_slice(), data.as_slice())),
    );
    let start = bytes.len();
    bytes.extend(meta.iter().chain(&index));
    bytes.resize(start + FOOTER - 8, 0);
    bytes.extend(MAGIC.to_le_bytes());
    bytes
}

/// Appends a block, whose keys are all whole, and returns its place.
fn push_block<'e>(
    bytes: &mut Vec<u8>,
    entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>,
) -> Vec<u8> {
    let start = bytes.len();
    let mut restarts = Vec::new();
    for (key, value) in entries {
        restarts.push((bytes.len() - start) as u32);
        for length in [0, key.len(), value.len()] {
            push_varint(bytes, length as u64);
        }
        bytes.extend(key.iter().chain(value));
    }
    if restarts.is_empty() {
        restarts.push(0);
    }
    let count = restarts.len() as u32;
    for number in restarts.into_iter().chain([count]) {
        bytes.extend(number.to_le_bytes());
    }
    let length = bytes.len() - start;
    bytes.push(0);
    let crc = masked_crc(&bytes[start..]);
    bytes.extend(crc.to_le_bytes());
    let mut place = Vec::new();
    push_varint(&mut place, start as u64);
    push_varint(&mut place, length as u64);
    place
}

/// Reads the place of a block: offset and length.
fn position(bytes: &mut &[u8]) -> Result<(u64, u64), String> {
    let mut next = || take_varint(bytes).map_err(|problem| format!("a block's place: {problem}"));
    Ok((next()?, next()?))
}

/// Returns the contents of a block, once its checksum is right.
fn block(bytes: &[u8], (offset, length): (u64, u64)) -> Result<&[u8], String> {
    let whole = usize::try_from(offset)
        .ok()
        .zip(usize::try_from(length).ok())
        .and_then(|(offset, length)| {
            let end = offset.checked_add(length)?.checked_add(TRAILER)?;
            bytes.get(offset..end)
        })
        .ok_or_else(|| format!("a block of {length} bytes at byte {offset} is not in the file"))?;
    let (contents, checksum) = whole.split_at(whole.len() - 4);
    if masked_crc(contents).to_le_bytes() != checksum {
        return Err(format!(
            "the checksum of the block at byte {offset} is wrong"
        ));
    }
    match contents.split_last() {
        Some((0, contents)) => Ok(contents),
        _ => Err(format!(
            "the block at byte {offset} is compressed, which no checkpoint of TensorFlow is"
        )),
    }
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// Reads the entries of a block.
fn entries(block: &[u8]) -> Result<Vec<Entry>, String> {
    let damaged = || "a block is damaged".to_owned();
    let count = block.last_chunk::<4>().ok_or_else(damaged)?;
    let restarts = u32::from_le_bytes(*count) as usize;
    let end = restarts
        .checked_mul(4)
        .and_then(|size| block.len().checked_sub(size.checked_add(4)?))
        .ok_or_else(damaged)?;
    let mut data = &block[..end];
    let (mut list, mut key) = (Vec::new(), Vec::new());
    // Of sixteen keys one is whole, so all of them have at most sixteen times the block's bytes.
    let mut room = block.len().saturating_mul(16);
    while !data.is_empty() {
        let mut length = || usize::try_from(take_varint(&mut data).ok()?).ok();
        let (Some(shared), Some(rest), Some(size)) = (length(), length(), length()) else {
            return Err(damaged());
        };
        if shared > key.len() || rest > data.len() || size > data.len() - rest {
            return Err(damaged());
        }
        key.truncate(shared);
        key.extend_from_slice(&data[..rest]);
        room = room.checked_sub(key.len()).ok_or_else(damaged)?;
        list.push((key.clone(), data[rest..rest + size].to_vec()));
        data = &data[rest + size..];
    }
    Ok(list)
}

/// The CRC-32C of bytes, rotated and shifted as tables store it.
pub(crate) fn masked_crc(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            let low = crc & 1;
            crc = crc >> 1 ^ (low.wrapping_neg() & 0x82f6_3b78);
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::{FOOTER, MAGIC, masked_crc, read_table};

    fn with_trailer(mut block: Vec<u8>) -> Vec<u8> {
        block.push(0);
        let crc = masked_crc(&block);
        block.extend(crc.to_le_bytes());
        block
    }

    /// A table of one block with the keys "ab" and "ac".
    fn table() -> Vec<u8> {
        let one = [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        let data = [&[0, 2, 1, b'a', b'b', 7, 1, 1, 2, b'c', 8, 9][..], &one].concat();
        let length = data.len() as u8;
        let mut bytes = with_trailer(data);
        let index_at = bytes.len() as u8;
        let index = [&[0, 1, 2, b'b', 0, length][..], &one].concat();
        let index_length = index.len() as u8;
        bytes.extend(with_trailer(index));
        let mut footer = vec![0, 0, index_at, index_length];
        footer.resize(FOOTER - 8, 0);
        footer.extend(MAGIC.to_le_bytes());
        bytes.extend(footer);
        bytes
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        // The CRC-32C of "123456789" is e3069283.
        let plain = masked_crc(b"123456789")
            .wrapping_sub(0xa282_ead8)
            .rotate_left(15);
        assert_eq!(plain, 0xe306_9283);
    }

    #[test]
    fn keys_share_prefixes() {
        let table = read_table(&table()).expect("a table");
        let list: Vec<_> = table.into_iter().collect();
        assert_eq!(
            list,
            [(b"ab".to_vec(), vec![7]), (b"ac".to_vec(), vec![8, 9])]
        );
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_an_error_or_padding() {
        let whole = table();
        for at in 0..whole.len() {
            assert!(read_table(&whole[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let footer = at + FOOTER >= whole.len();
                assert!(
                    footer || read_table(&damaged).is_err(),
                    "bit {bit} of byte {at}"
                );
            }
        }
    }

    /// A table whose index names these places, each by the key "b", "c", ...
    fn table_of(blocks: &[&[u8]], places: &[usize]) -> Vec<u8> {
        let one = [0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        let (mut bytes, mut spots) = (Vec::new(), Vec::new());
        for block in blocks {
            let block = [block, &one[..]].concat();
            spots.push((bytes.len() as u8, block.len() as u8));
            bytes.extend(with_trailer(block));
        }
        let mut index = Vec::new();
        for (number, &place) in places.iter().enumerate() {
            let (at, length) = spots[place];
            index.extend([0, 1, 2, b'b' + number as u8, at, length]);
        }
        index.extend(&one);
        let mut footer = vec![0, 0, bytes.len() as u8, index.len() as u8];
        bytes.extend(with_trailer(index));
        footer.resize(FOOTER - 8, 0);
        footer.extend(MAGIC.to_le_bytes());
        bytes.extend(footer);
        bytes
    }

    #[test]
    fn a_block_is_read_once() {
        let block = [0, 1, 1, b'a', 7];
        assert!(read_table(&table_of(&[&block], &[0])).is_ok());
        let error = read_table(&table_of(&[&block], &[0, 0]));
        assert!(error.is_err_and(|error| error.contains("overlap")));
    }

    #[test]
    fn keys_that_share_too_much_are_refused() {
        let shared = |count: usize| {
            let mut block = vec![0, 100, 0];
            block.extend([b'k'; 100]);
            (0..count).for_each(|_| block.extend([100, 0, 0]));
            block
        };
        assert!(super::entries(&with_restarts(shared(15))).is_ok());
        assert!(super::entries(&with_restarts(shared(60))).is_err());
    }

    fn with_restarts(mut block: Vec<u8>) -> Vec<u8> {
        block.extend([0_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat());
        block
    }
}
