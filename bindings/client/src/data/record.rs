//! TFRecord files: records with their lengths and checksums.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind as IoKind, Read, Write as _};
use std::path::{Path, PathBuf};

use tfp_core::{Error, Result};

use crate::checkpoint::masked_crc;
use crate::files::{self, Beside, file_error, read_file, unwritten};

/// How long a record may be that is read: a damaged length is not taken for memory.
const LONGEST: u64 = 1 << 34;

/// Writes a TFRecord file, record by record. The file takes its name, and replaces one that is there,
/// when it is [finished](Self::finish); a writer that is dropped before leaves nothing.
pub struct RecordWriter {
    path: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
    beside: Beside,
    count: u64,
}

impl RecordWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) for a folder that can't be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let beside = Beside::new(&path)?;
        let part = beside.path().join("part");
        let file = File::create(&part).map_err(unwritten(&part))?;
        Ok(Self {
            path,
            part,
            file: BufWriter::new(file),
            beside,
            count: 0,
        })
    }

    /// Adds a record, as the bytes of an [`Example`](super::Example).
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File), as for a full disk.
    pub fn write(&mut self, record: impl AsRef<[u8]>) -> Result<()> {
        let record = record.as_ref();
        let length = (record.len() as u64).to_le_bytes();
        let parts = [
            &length[..],
            &masked_crc(&length).to_le_bytes(),
            record,
            &masked_crc(record).to_le_bytes(),
        ];
        let mut written = parts.iter().map(|part| self.file.write_all(part));
        written
            .try_for_each(std::convert::identity)
            .map_err(unwritten(&self.path))?;
        self.count += 1;
        Ok(())
    }

    /// Gives the file its name, and returns how many records it has.
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) for a file that can't be written; one that was there
    /// stays.
    pub fn finish(mut self) -> Result<u64> {
        self.file.flush().map_err(unwritten(&self.path))?;
        files::flush(&self.part)?;
        files::rename(&self.part, &self.path)?;
        drop(self.beside);
        Ok(self.count)
    }
}

impl fmt::Debug for RecordWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count;
        write!(
            f,
            "RecordWriter('{}', {count} records)",
            self.path.display()
        )
    }
}

/// Reads a TFRecord file that is not compressed, record by record, without TensorFlow. It ends after the
/// first error, which names the file, the number of the record, from 0 on, and its first byte.
pub struct RecordReader {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    at: u64,
    is_done: bool,
}

impl RecordReader {
    /// Opens a file.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](tfp_core::ErrorKind::NotFound) when there is none,
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) when it can't be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) => {
                read_file(&path)?;
                return Err(file_error(&path, format!("it can't be read: {error}")));
            }
        };
        Ok(Self {
            path,
            file: BufReader::new(file),
            number: 0,
            at: 0,
            is_done: false,
        })
    }

    fn error(&self, problem: &str) -> Error {
        let (number, at) = (self.number, self.at);
        file_error(
            &self.path,
            format!("record {number} at byte {at}: {problem}"),
        )
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.file
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                IoKind::UnexpectedEof => self.error("the file ends within it: it is cut"),
                _ => self.error(&format!("it can't be read: {error}")),
            })
    }

    fn record(&mut self) -> Result<Option<Vec<u8>>> {
        let mut head = [0; 12];
        // A file may end before a record, but not within one.
        match self.file.read(&mut head[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => self.fill(&mut head[1..])?,
            Err(error) => return Err(self.error(&format!("it can't be read: {error}"))),
        }
        let (length, crc) = head.split_at(8);
        if masked_crc(length).to_le_bytes() != *crc {
            return Err(self.error("the checksum of its length is wrong"));
        }
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        if length > LONGEST {
            return Err(self.error(&format!("its length is {length} bytes")));
        }
        let mut record = Vec::new();
        let read = self.file.by_ref().take(length).read_to_end(&mut record);
        read.map_err(|error| self.error(&format!("it can't be read: {error}")))?;
        if record.len() as u64 != length {
            return Err(self.error("the file ends within it: it is cut"));
        }
        let mut crc = [0; 4];
        self.fill(&mut crc)?;
        if masked_crc(&record).to_le_bytes() != crc {
            return Err(self.error("the checksum of its bytes is wrong"));
        }
        self.number += 1;
        self.at += 16 + length;
        Ok(Some(record))
    }
}

impl Iterator for RecordReader {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let record = self.record().transpose();
        self.is_done = !matches!(record, Some(Ok(_)));
        record
    }
}

impl fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        write!(
            f,
            "RecordReader('{}', at record {number})",
            self.path.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let name = format!("tfp_record_{}_{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn read(path: &Path) -> Result<Vec<Vec<u8>>> {
        RecordReader::open(path)?.collect()
    }

    #[test]
    fn records_are_read_as_they_were_written() -> Result<()> {
        let folder = scratch("whole");
        let path = folder.join("a.tfrecord");
        let mut writer = RecordWriter::create(&path)?;
        for record in ["one", "", "three"] {
            writer.write(record)?;
        }
        assert!(!path.exists());
        assert_eq!(writer.finish()?, 3);
        assert_eq!(read(&path)?, [&b"one"[..], b"", b"three"]);
        // Dropped before its end, a writer changes nothing.
        RecordWriter::create(&path)?.write("other")?;
        assert_eq!(read(&path)?.len(), 3);
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1);
        assert!(read(&folder.join("none")).is_err());
        std::fs::remove_dir_all(folder).expect("deleted");
        Ok(())
    }

    #[test]
    fn damage_names_the_record() -> Result<()> {
        let folder = scratch("damaged");
        let path = folder.join("a.tfrecord");
        let mut writer = RecordWriter::create(&path)?;
        writer.write("first")?;
        writer.write("second")?;
        writer.finish()?;
        let whole = std::fs::read(&path).expect("bytes");
        for (at, problem) in [
            (22, "length is wrong"),
            (30, "length is wrong"),
            (34, "bytes is wrong"),
            (41, "bytes is wrong"),
        ] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, damaged).expect("written");
            let error = read(&path).expect_err("damage").to_string();
            assert!(
                error.contains("record 1 at byte 21") && error.contains(problem),
                "{at}: {error}"
            );
        }
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("written");
            match read(&path) {
                Ok(records) => assert!([0, 21].contains(&length), "{length}: {records:?}"),
                Err(error) => assert!(error.to_string().contains("it is cut"), "{length}: {error}"),
            }
        }
        std::fs::remove_dir_all(folder).expect("deleted");
        Ok(())
    }
}
