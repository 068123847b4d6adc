//! Archives: `.keras` files are zip files whose members are not compressed.

use tfp_core::{Error, Result};

use super::bytes::Bytes;

/// What the last record of an archive begins with, and how long it is without its comment.
const END: (&[u8], usize) = (b"PK\x05\x06", 22);

/// Returns a member of an archive.
pub(super) fn member<'b>(archive: &'b [u8], name: &str) -> Result<&'b [u8]> {
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
    let mut names = Vec::new();
    for _ in 0..count {
        if file.part(at, 4)? != b"PK\x01\x02" {
            return Err(file.damaged("its directory ends early"));
        }
        let method = file.number(at + 10, 2)?;
        let packed = file.number(at + 20, 4)?;
        let length = file.number(at + 24, 4)?;
        let name_length = file.number(at + 28, 2)?;
        let more = file.number(at + 30, 2)? + file.number(at + 32, 2)?;
        let local = file.number(at + 42, 4)?;
        let found = file.part(at + 46, name_length)?;
        at += 46 + name_length + more;
        if found != name.as_bytes() {
            names.push(String::from_utf8_lossy(found).into_owned());
            continue;
        }
        if method != 0 || packed != length {
            return Err(Error::argument(format!(
                "'{name}' in the archive is compressed, which Keras does not do"
            )));
        }
        if length == u64::from(u32::MAX) || local == u64::from(u32::MAX) {
            return Err(Error::argument(format!(
                "'{name}' in the archive is beyond 4 GiB, which is not supported"
            )));
        }
        if file.part(local, 4)? != b"PK\x03\x04" {
            return Err(file.damaged("a member is not where its directory says"));
        }
        let begin = 30 + file.number(local + 26, 2)? + file.number(local + 28, 2)?;
        let bytes = file.part(local + begin, length)?;
        return Ok(bytes);
    }
    Err(Error::argument(format!(
        "no '{name}' in the archive; there are {}",
        names.join(", ")
    )))
}
