//! What the columns of CSV files are.

use tfp_core::{DataType, Error, Result, Tensor};

use crate::files::{file_error, read_file};

/// The columns of CSV files, in order: each becomes a scalar of an element.
///
/// ```
/// use tfp::DataType;
/// use tfp::data::Csv;
///
/// let csv = Csv::new()
///     .column(DataType::STRING)
///     .column_or(tfp::Tensor::scalar(0.0_f32)?)
///     .header(true);
/// # Ok::<(), tfp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Csv {
    columns: Vec<(DataType, Option<std::sync::Arc<Tensor>>)>,
    pub(super) has_header: bool,
    pub(super) delimiter: char,
    pub(super) quotes: bool,
    pub(super) missing: String,
    pub(super) selected: Vec<i64>,
}

impl Default for Csv {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            has_header: false,
            delimiter: ',',
            quotes: true,
            missing: String::new(),
            selected: Vec::new(),
        }
    }
}

impl Csv {
    /// No columns, no header, commas between and double quotes around fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column that must have a value: of type float32, float64, int32, int64 or string.
    #[must_use]
    pub fn column(mut self, dtype: DataType) -> Self {
        self.columns.push((dtype, None));
        self
    }

    /// Adds a column with a scalar that stands for an empty field; the type is the scalar's.
    #[must_use]
    pub fn column_or(mut self, default: Tensor) -> Self {
        let dtype = default.dtype();
        self.columns.push((dtype, Some(default.into())));
        self
    }

    /// Says whether the first line of each file has the names of the columns.
    #[must_use]
    pub fn header(self, has_header: bool) -> Self {
        Self { has_header, ..self }
    }

    /// Sets what is between fields.
    #[must_use]
    pub fn delimiter(self, delimiter: char) -> Self {
        Self { delimiter, ..self }
    }

    /// Takes double quotes as any other letter.
    #[must_use]
    pub fn without_quotes(self) -> Self {
        Self {
            quotes: false,
            ..self
        }
    }

    /// Sets a text that stands for an empty field, as `NA`.
    #[must_use]
    pub fn missing(self, missing: &str) -> Self {
        let missing = missing.to_owned();
        Self { missing, ..self }
    }

    /// Takes only some fields, by their numbers from 0 on, which rise: the columns are theirs.
    #[must_use]
    pub fn select(self, fields: &[i64]) -> Self {
        let selected = fields.to_vec();
        Self { selected, ..self }
    }

    pub(super) fn types(&self) -> Vec<DataType> {
        self.columns.iter().map(|(dtype, _)| *dtype).collect()
    }

    /// What TensorFlow takes as defaults: nothing for a column that must have a value.
    pub(super) fn defaults(&self) -> Result<Vec<Tensor>> {
        let valid = [
            DataType::FLOAT,
            DataType::DOUBLE,
            DataType::INT32,
            DataType::INT64,
            DataType::STRING,
        ];
        let default = |(dtype, default): &(DataType, Option<std::sync::Arc<Tensor>>)| {
            if !valid.contains(dtype) {
                return Err(Error::argument(format!(
                    "a CSV column of type {dtype}; there are {}",
                    valid.map(|one| one.to_string()).join(", ")
                )));
            }
            match (default, dtype) {
                (Some(default), _) => default.reshaped(&[1]),
                (None, &DataType::STRING) => Tensor::from_strings::<&str>(&[], &[0]),
                (None, &dtype) => Tensor::zeros(dtype, &[0]),
            }
        };
        if self.columns.is_empty() || !self.delimiter.is_ascii() {
            return Err(Error::argument(
                "CSV files need a column, and an ASCII letter between fields",
            ));
        }
        if !self.selected.is_empty() && self.selected.len() != self.columns.len() {
            return Err(Error::argument(format!(
                "{} fields are selected for {} CSV columns",
                self.selected.len(),
                self.columns.len()
            )));
        }
        self.columns.iter().map(default).collect()
    }

    /// Looks for the first record of a file that does not fit.
    pub(super) fn check(&self, path: &str) -> Option<Error> {
        let bytes = match read_file(path.as_ref()) {
            Ok(bytes) => bytes,
            Err(error) => return Some(error),
        };
        let mut records = Records {
            csv: self,
            rest: &bytes,
            line: 1,
        };
        if self.has_header && records.next().is_none() {
            let problem = "it is empty, and its header is missing";
            return Some(file_error(path.as_ref(), problem));
        }
        for (number, (line, fields)) in records.enumerate() {
            let fits = fields.map_err(str::to_owned);
            if let Err(problem) = fits.and_then(|fields| self.fits(&fields)) {
                let problem = format!("record {number} in line {line}: {problem}");
                return Some(file_error(path.as_ref(), problem));
            }
        }
        None
    }

    fn fits(&self, fields: &[Vec<u8>]) -> Result<(), String> {
        let expected = self.columns.len();
        if self.selected.is_empty() && fields.len() != expected {
            return Err(format!("{} fields, expected {expected}", fields.len()));
        }
        for (index, (dtype, default)) in self.columns.iter().enumerate() {
            let at = self.selected.get(index).map_or(index, |&at| at as usize);
            let field = fields
                .get(at)
                .ok_or_else(|| format!("{} fields, expected one of number {at}", fields.len()))?;
            let text = String::from_utf8_lossy(field);
            if text.is_empty() || text == self.missing {
                match default {
                    Some(_) => continue,
                    None => return Err(format!("field {at} is empty and has no default")),
                }
            }
            let number = text.trim();
            let is_valid = match *dtype {
                DataType::INT32 => number.parse::<i32>().is_ok(),
                DataType::INT64 => number.parse::<i64>().is_ok(),
                DataType::FLOAT => number.parse::<f32>().is_ok(),
                DataType::DOUBLE => number.parse::<f64>().is_ok(),
                _ => true,
            };
            if !is_valid {
                return Err(format!("field {at} is {text:?}, expected {dtype}"));
            }
        }
        Ok(())
    }
}

/// The records of a file, each with the number of its first line: quotes may go over several. A record whose quotes
/// are wrong says so.
struct Records<'a> {
    csv: &'a Csv,
    rest: &'a [u8],
    line: usize,
}

/// Where a field has quotes.
#[derive(Clone, Copy, PartialEq)]
enum Quotes {
    None,
    Open,
    Closed,
}

impl Iterator for Records<'_> {
    type Item = (usize, Result<Vec<Vec<u8>>, &'static str>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let (first, mut fields, mut field) = (self.line, Vec::new(), Vec::new());
        let (mut quotes, mut problem) = (Quotes::None, None);
        while let [byte, rest @ ..] = self.rest {
            self.rest = rest;
            self.line += usize::from(*byte == b'\n');
            match (byte, quotes) {
                (b'"', Quotes::Open) if rest.first() == Some(&b'"') => {
                    field.push(b'"');
                    self.rest = &rest[1..];
                }
                (b'"', Quotes::Open) => quotes = Quotes::Closed,
                (byte, Quotes::Open) => field.push(*byte),
                (b'\n', _) => break,
                (b'\r', _) if rest.first() == Some(&b'\n') => {}
                (byte, _) if char::from(*byte) == self.csv.delimiter => {
                    fields.push(std::mem::take(&mut field));
                    quotes = Quotes::None;
                }
                (_, Quotes::Closed) => {
                    problem = problem.or(Some("a field goes on after its closing quote"));
                }
                (b'\r', Quotes::None) => {
                    problem = problem.or(Some("a carriage return is in a field without quotes"));
                }
                (b'"', Quotes::None) if self.csv.quotes && field.is_empty() => {
                    quotes = Quotes::Open;
                }
                (byte, Quotes::None) => {
                    if *byte == b'"' && self.csv.quotes {
                        problem = problem.or(Some("a quote is in a field that begins without one"));
                    }
                    field.push(*byte);
                }
            }
        }
        if quotes == Quotes::Open {
            problem = problem.or(Some("the file ends within a quoted field"));
        }
        fields.push(field);
        Some((first, problem.map_or(Ok(fields), Err)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_that_does_not_fit_is_found() {
        let csv = Csv::new().column(DataType::INT32).column(DataType::STRING);
        let path = std::env::temp_dir().join(format!("tfp_csv_{}", std::process::id()));
        let name = path.to_str().expect("UTF-8");
        let header = csv.clone().header(true);
        let plain = csv.clone().without_quotes();
        for (csv, text, problem) in [
            (&csv, "1,a\n2,\"b\n,\"\"\"\r\n3,c", None),
            (
                &csv,
                "1,a\n\"2\n\",b\n3\n",
                Some("record 2 in line 4: 1 fields"),
            ),
            (
                &csv,
                "1,a\nx,b\n",
                Some("record 1 in line 2: field 0 is \"x\", expected int32"),
            ),
            (&csv, "1,a\n,b\n", Some("field 0 is empty")),
            (
                &csv,
                "1,a\n2,\"b\n\n",
                Some("record 1 in line 2: the file ends within a quoted field"),
            ),
            (
                &csv,
                "1,\"a\"b\n",
                Some("record 0 in line 1: a field goes on after its closing quote"),
            ),
            (
                &csv,
                "1,a\n2,b\"c\"\n",
                Some("record 1 in line 2: a quote is in a field that begins without one"),
            ),
            (
                &csv,
                "1,a\r2,b\r",
                Some("record 0 in line 1: a carriage return is in a field without quotes"),
            ),
            (&plain, "1,a\"b\n", None),
            (&header, "n,s\n1,a\n", None),
            (&header, "n,s\n1\n", Some("record 0 in line 2")),
            (&header, "n,s\n", None),
            (&header, "", Some("it is empty, and its header is missing")),
            (&csv, "", None),
        ] {
            std::fs::write(&path, text).expect("written");
            let found = csv.check(name).map(|error| error.to_string());
            match problem {
                None => assert_eq!(found, None, "{text}"),
                Some(problem) => assert!(found.is_some_and(|one| one.contains(problem)), "{text}"),
            }
        }
        std::fs::remove_file(&path).expect("deleted");
        assert!(
            csv.check(name)
                .is_some_and(|error| error.to_string().contains(name))
        );
    }
}
