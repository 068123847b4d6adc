//! Archives: `.keras` files are zip files whose members are not compressed.

use tfp_core::{Error, Result};

use super::bytes::Bytes;
use crate::room::room;

/// What the last record of an archive begins with, and how long it is without its comment.
const END: (&[u8], usize) = (b"PK\x05\x06", 22);

/// A member of an archive.
#[derive(Debug)]
pub(crate) struct Member<'b> {
    pub name: String,
    /// Where its bytes begin in the archive.
    pub at: u64,
    /// The bytes as they are in the archive.
    pub packed: &'b [u8],
    /// How they are packed: 0 not at all, 8 by deflate.
    pub method: u64,
    /// The checksum and the length of what was packed.
    pub crc: u32,
    pub length: u64,
}

/// Returns the members of an archive, in the order of its directory.
pub(crate) fn members(archive: &[u8]) -> Result<Vec<Member<'_>>> {
    let file = Bytes {
        what: "the archive",
        bytes: archive,
    };
    // A comment of up to 64 KiB may follow.
    let last = archive.len().checked_sub(END.1);
    let first = last.unwrap_or(0).saturating_sub(usize::from(u16::MAX));
    let is_end = |&at: &usize| archive[at..].starts_with(END.0);
    let end = last.and_then(|last| (first..=last).rev().find(is_end));
    let end = end.ok_or_else(|| Error::argument("it is not a zip file"))? as u64;
    let count = file.number(end + 10, 2)?;
    let mut at = file.number(end + 16, 4)?;
    let mut members = Vec::new();
    for _ in 0..count {
        if file.part(at, 4)? != b"PK\x01\x02" {
            return Err(file.damaged("its directory ends early"));
        }
        let method = file.number(at + 10, 2)?;
        let crc = file.number(at + 16, 4)? as u32;
        let packed = file.number(at + 20, 4)?;
        let length = file.number(at + 24, 4)?;
        let name_length = file.number(at + 28, 2)?;
        let more = file.number(at + 30, 2)? + file.number(at + 32, 2)?;
        let local = file.number(at + 42, 4)?;
        let name = String::from_utf8_lossy(file.part(at + 46, name_length)?).into_owned();
        at += 46 + name_length + more;
        if length == u64::from(u32::MAX) || local == u64::from(u32::MAX) {
            return Err(Error::argument(format!(
                "'{name}' in the archive is beyond 4 GiB, which is not supported"
            )));
        }
        if file.part(local, 4)? != b"PK\x03\x04" {
            return Err(file.damaged("a member is not where its directory says"));
        }
        let begin = 30 + file.number(local + 26, 2)? + file.number(local + 28, 2)?;
        if method == 0 && packed != length {
            return Err(file.damaged(&format!("'{name}' has two lengths, {packed} and {length}")));
        }
        members.push(Member {
            at: local + begin,
            packed: file.part(local + begin, packed)?,
            name,
            method,
            crc,
            length,
        });
    }
    // Bytes that several members share would be unpacked again and again.
    let mut places: Vec<(u64, u64)> = members
        .iter()
        .map(|member| (member.at, member.at + member.packed.len() as u64))
        .collect();
    places.sort_unstable();
    if places.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Err(file.damaged("two of its members have bytes in common"));
    }
    Ok(members)
}

/// Returns a member of an archive, which must not be packed.
pub(crate) fn member<'b>(archive: &'b [u8], name: &str) -> Result<&'b [u8]> {
    let members = members(archive)?;
    match members.iter().find(|member| member.name == name) {
        Some(member) if member.method == 0 => Ok(member.packed),
        Some(_) => Err(Error::argument(format!(
            "'{name}' in the archive is compressed, which Keras does not do"
        ))),
        None => {
            let names: Vec<&str> = members.iter().map(|one| one.name.as_str()).collect();
            Err(Error::argument(format!(
                "no '{name}' in the archive; there are {}",
                names.join(", ")
            )))
        }
    }
}

impl Member<'_> {
    /// Returns what was packed by deflate as a file of gzip, which has the same checks.
    ///
    /// # Errors
    /// As for [`room`].
    pub fn to_gzip(&self) -> Result<Vec<u8>> {
        let mut gzip = room(self.packed.len() as u64 + 18)?;
        gzip.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        gzip.extend_from_slice(self.packed);
        gzip.extend(self.crc.to_le_bytes());
        gzip.extend((self.length as u32).to_le_bytes());
        Ok(gzip)
    }

    /// Checks the bytes of a member that is not packed.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for another checksum.
    pub fn check(&self) -> Result<()> {
        if self.method == 0 && crc32(self.packed) != self.crc {
            return Err(Error::argument(format!(
                "'{}' in the archive is damaged: its checksum is wrong",
                self.name
            )));
        }
        Ok(())
    }
}

/// Writes an archive of members that are not compressed.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let too_large = |what: &str| {
        Error::argument(format!(
            "the archive's {what} would be beyond 4 GiB, which is not supported"
        ))
    };
    // Headers of a member take 76 bytes, and its name is in both.
    let all = members.iter();
    let all = all.map(|(name, bytes)| (bytes.len() + 2 * name.len() + 76) as u64);
    let mut archive = room(all.sum::<u64>() + END.1 as u64)?;
    let mut directory = Vec::new();
    for (name, bytes) in members {
        let at = u32::try_from(archive.len()).map_err(|_| too_large(name))?;
        let size = u32::try_from(bytes.len()).map_err(|_| too_large(name))?;
        let mut common = Vec::new();
        // Version 2.0, no flags, not compressed, and the first time that there is: 1980-01-01.
        for number in [20_u16, 0, 0, 0, 0x21] {
            common.extend(number.to_le_bytes());
        }
        for number in [crc32(bytes), size, size] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&common);
        archive.extend([0; 2]);
        archive.extend(name.as_bytes());
        archive.extend_from_slice(bytes);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        // Neither more fields nor a comment; on the first disk; a file that its owner may write.
        directory.extend([0; 8]);
        directory.extend((0o600_u32 << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let begin = u32::try_from(archive.len()).map_err(|_| too_large("directory"))?;
    let count = u16::try_from(members.len());
    let count = count.map_err(|_| Error::argument("an archive of more than 65,535 members"))?;
    let count = count.to_le_bytes();
    archive.extend(&directory);
    archive.extend(END.0);
    archive.extend([0; 4]);
    archive.extend(count);
    archive.extend(count);
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(begin.to_le_bytes());
    archive.extend([0; 2]);
    Ok(archive)
}

/// The checksum of a member.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = value >> 1 ^ if value & 1 == 1 { 0xedb8_8320 } else { 0 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    let update = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize];
    !bytes.iter().fold(!0, update)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_again() -> Result<()> {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let bytes = archive(&[("a", b"one"), ("b/c", b"")])?;
        assert_eq!(member(&bytes, "a")?, b"one");
        assert_eq!(member(&bytes, "b/c")?, b"");
        assert!(member(&bytes, "d").is_err());
        Ok(())
    }

    #[test]
    fn members_share_no_bytes() -> Result<()> {
        let mut bytes = archive(&[("a", b"one"), ("b", b"two"), ("c", b"")])?;
        assert_eq!(members(&bytes)?.len(), 3);
        // The second place in the directory leads to the first member.
        let all = b"PK\x01\x02";
        let mut places = (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(all));
        let second = places.nth(1).expect("a second member");
        bytes[second + 42..second + 46].fill(0);
        let error = members(&bytes).expect_err("bytes of two members");
        assert!(error.to_string().contains("in common"), "{error}");
        Ok(())
    }
}
