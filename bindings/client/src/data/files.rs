//! Datasets of files.

use std::path::{Path, PathBuf};

use tfp_core::{Context as _, DataType, Error, ErrorKind, Result, Shape, Tensor};

use super::csv::Csv;
use super::dataset::{Dataset, place_of};
use super::record::{RecordReader, RecordWriter};
use super::source::{Kind, Origin};
use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;
use crate::files::{Beside, file_error, flush, rename};
use crate::ops;

/// How the bytes of files are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By gzip.
    Gzip,
    /// By zlib.
    Zlib,
}

impl Compression {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => "GZIP",
            Self::Zlib => "ZLIB",
        }
    }
}

/// Paths of files: strings or paths, or a value of type string, as an element of [`Dataset::files`] in
/// a closure.
#[derive(Clone, Debug)]
pub struct Files(Named);

#[derive(Clone, Debug)]
enum Named {
    Paths(Vec<PathBuf>),
    Value(AnyValue),
}

impl<P: AsRef<Path>> From<&[P]> for Files {
    fn from(paths: &[P]) -> Self {
        let paths = paths.iter().map(|path| path.as_ref().to_owned());
        Self(Named::Paths(paths.collect()))
    }
}

impl<P: AsRef<Path>, const N: usize> From<&[P; N]> for Files {
    fn from(paths: &[P; N]) -> Self {
        paths.as_slice().into()
    }
}

impl<P: AsRef<Path>> From<&Vec<P>> for Files {
    fn from(paths: &Vec<P>) -> Self {
        paths.as_slice().into()
    }
}

impl From<&str> for Files {
    fn from(path: &str) -> Self {
        [path].as_slice().into()
    }
}

impl From<&Path> for Files {
    fn from(path: &Path) -> Self {
        [path].as_slice().into()
    }
}

impl From<&PathBuf> for Files {
    fn from(path: &PathBuf) -> Self {
        path.as_path().into()
    }
}

impl From<&AnyValue> for Files {
    fn from(value: &AnyValue) -> Self {
        Self(Named::Value(value.clone()))
    }
}

impl Files {
    /// The value that ops take, and the paths as far as they are known.
    fn value(self, cx: &AnyContext) -> Result<(AnyValue, Vec<String>)> {
        let paths = match self.0 {
            Named::Value(value) => return Ok((value, Vec::new())),
            Named::Paths(paths) => paths,
        };
        let text = |path: &PathBuf| {
            let text = path.to_str().map(str::to_owned);
            let text =
                text.ok_or_else(|| file_error(path, "the path of a dataset's file must be UTF-8"))?;
            // Of other file systems TensorFlow knows more.
            if !text.contains("://") && !path.exists() {
                return Err(Error::new(ErrorKind::NotFound {
                    what: "file",
                    name: text,
                    place: "the file system".to_owned(),
                }));
            }
            Ok(text)
        };
        let paths = paths.iter().map(text).collect::<Result<Vec<_>>>()?;
        let value = cx.constant(&Tensor::from_strings(&paths, &[paths.len() as i64])?)?;
        Ok((value, paths))
    }
}

impl Dataset {
    /// The paths of files that match a pattern, as `data/*.tfrecord`, sorted: string scalars.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, and what TensorFlow says.
    pub fn files(cx: &impl Mode, pattern: &str) -> Result<Self> {
        let found = ops::matching_files(&crate::checkpoint::host()?, pattern)?.to_tensor()?;
        let paths: Vec<String> = found
            .as_strings()?
            .iter()
            .map(|path| String::from_utf8_lossy(path).into_owned())
            .collect();
        if paths.is_empty() {
            return Err(Error::new(ErrorKind::NotFound {
                what: "file",
                name: pattern.to_owned(),
                place: "the file system".to_owned(),
            }));
        }
        Self::names(cx, paths)
    }

    /// Paths as string scalars.
    pub(super) fn names(cx: &impl Mode, paths: Vec<String>) -> Result<Self> {
        let tensor = Tensor::from_strings(&paths, &[paths.len() as i64])?;
        let origin = Origin {
            kind: Kind::Names,
            paths,
            is_packed: false,
        };
        Ok(Self::rows(cx, &[tensor])?.with_origins([origin]))
    }

    /// The records of TFRecord files, one after the other: string scalars. The error of a damaged one
    /// names file and record, if it is not compressed. A file that is cut within the 12 bytes before a
    /// record just ends for TensorFlow; [`RecordReader`](super::RecordReader) finds that.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a file that is not there, and what TensorFlow says.
    pub fn records(
        cx: &impl Mode,
        files: impl Into<Files>,
        compression: Compression,
    ) -> Result<Self> {
        let cx = place_of(cx);
        let (value, paths) = files.into().value(&cx)?;
        let options = ops::TFRecordDatasetOptions::default();
        let (name, buffer) = (compression.name(), 256_i64 << 10);
        let variant = ops::tf_record_dataset(&cx, &value, name, buffer, options)?;
        let origin = Origin {
            kind: Kind::Records,
            paths,
            is_packed: compression != Compression::None,
        };
        let made = Self::made(&cx, variant, &[DataType::STRING], &[Shape::scalar()]);
        Ok(made.with_origins([origin]))
    }

    /// The lines of text files, one after the other, without their ends: string scalars.
    ///
    /// # Errors
    /// As for [`Self::records`].
    pub fn lines(
        cx: &impl Mode,
        files: impl Into<Files>,
        compression: Compression,
    ) -> Result<Self> {
        let cx = place_of(cx);
        let (value, _) = files.into().value(&cx)?;
        let options = ops::TextLineDatasetOptions::default();
        let (name, buffer) = (compression.name(), 256_i64 << 10);
        let variant = ops::text_line_dataset(&cx, &value, name, buffer, options)?;
        Ok(Self::made(
            &cx,
            variant,
            &[DataType::STRING],
            &[Shape::scalar()],
        ))
    }

    /// The records of CSV files, one after the other: a scalar per column. The error of one that does not
    /// fit names file, record and field, if the file is not compressed.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for columns of other types than CSV files have, and as for
    /// [`Self::records`].
    pub fn csv(
        cx: &impl Mode,
        files: impl Into<Files>,
        csv: &Csv,
        compression: Compression,
    ) -> Result<Self> {
        let cx = place_of(cx);
        let defaults = csv.defaults()?;
        let (value, paths) = files.into().value(&cx)?;
        let types = csv.types();
        let shapes = vec![Shape::scalar(); types.len()];
        let excluded: &[i64] = &[];
        let variant = ops::csv_dataset_v2(
            &cx,
            &value,
            compression.name(),
            4_i64 << 20,
            csv.has_header,
            csv.delimiter.to_string().as_str(),
            csv.quotes,
            csv.missing.as_str(),
            csv.selected.as_slice(),
            defaults.iter().collect::<Vec<_>>(),
            excluded,
            &shapes,
        )?;
        let origin = Origin {
            kind: Kind::Csv(csv.clone()),
            paths,
            is_packed: compression != Compression::None,
        };
        Ok(Self::made(&cx, variant, &types, &shapes).with_origins([origin]))
    }

    /// Writes the elements, each a string scalar, as the records of a TFRecord file. A file that is there
    /// stays until the new one is whole. For records that are not compressed see also
    /// [`RecordWriter`](super::RecordWriter).
    ///
    /// TensorFlow compresses records, and does not tell that the disk is full when it ends. They are
    /// therefore written without compression beside the file first, and compared with what TensorFlow
    /// wrote: that takes their space, and another reading.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for elements of another type or with dimensions, [`ErrorKind::File`] for a
    /// folder that can't be written or a full disk, and the first error of an element.
    pub fn write_records(&self, path: impl AsRef<Path>, compression: Compression) -> Result<()> {
        if self.types() != [DataType::STRING] {
            return Err(Error::argument(format!(
                "records are strings; the elements are {:?}",
                self.types()
            )));
        }
        let path = path.as_ref();
        if compression == Compression::None {
            return self.write_plain(path);
        }
        let beside = Beside::new(path)?;
        let part = beside.path().join("part");
        let text = part
            .to_str()
            .ok_or_else(|| file_error(path, "the path of records must be UTF-8"))?;
        let plain = beside.path().join("plain");
        self.write_plain(&plain)?;
        let name = compression.name();
        let source = Self::records(self.place(), &plain, Compression::None)?;
        ops::dataset_to_tf_record(self.place(), source.value(), text, name)?;
        flush(&part)?;
        let written = Self::records(self.place(), &part, compression)?;
        if !is_all(&plain, &written)? {
            let problem = "TensorFlow cut the compressed records: is the disk full?";
            return Err(file_error(path, problem));
        }
        rename(&part, path)
    }

    /// Writes records that are not compressed.
    fn write_plain(&self, path: &Path) -> Result<()> {
        let mut writer = RecordWriter::create(path)?;
        for element in self.iter()? {
            for value in element? {
                let record = value.to_tensor()?;
                if !record.dims().is_empty() {
                    return Err(Error::argument(format!(
                        "records are string scalars; an element has the shape {}",
                        record.shape()
                    )));
                }
                for bytes in record.as_strings()? {
                    writer.write(bytes)?;
                }
            }
        }
        writer.finish().map(|_| ())
    }
}

/// Whether a dataset has the records of a file that is not compressed.
fn is_all(plain: &Path, written: &Dataset) -> Result<bool> {
    let mut found = written.iter()?;
    for expected in RecordReader::open(plain)? {
        let expected = expected?;
        let Some(Ok(element)) = found.next() else {
            return Ok(false);
        };
        let same = element.iter().map(|value| {
            let record = value.to_tensor()?;
            Ok(record.as_strings()? == [&expected[..]])
        });
        if !same
            .collect::<Result<Vec<bool>>>()?
            .iter()
            .all(|&same| same)
        {
            return Ok(false);
        }
    }
    Ok(found.next().is_none())
}
