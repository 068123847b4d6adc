//! `tf.train.Example`: named lists of values, as records have them.

use std::collections::BTreeMap;

use tfp_core::Result;
use tfp_core::wire::{Reader, Writer};

/// The values of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum Feature {
    /// Strings of bytes.
    Bytes(Vec<Vec<u8>>),
    /// Numbers of type float32.
    Floats(Vec<f32>),
    /// Numbers of type int64.
    Ints(Vec<i64>),
}

/// Named features: a `tf.train.Example`, made or read without TensorFlow. Its bytes are those that Python's
/// `SerializeToString(deterministic=True)` gives.
///
/// ```
/// use tfp::data::{Example, Feature};
///
/// let bytes = Example::new().ints("label", [3]).bytes("name", ["cat"]).to_bytes();
/// let example = Example::parse(&bytes)?;
/// assert_eq!(example.get("label"), Some(&Feature::Ints(vec![3])));
/// # Ok::<(), tfp::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    features: BTreeMap<String, Feature>,
}

impl Example {
    /// An example without features.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a feature.
    #[must_use]
    pub fn feature(mut self, name: &str, feature: Feature) -> Self {
        self.features.insert(name.to_owned(), feature);
        self
    }

    /// Sets a feature of strings, as encoded images.
    #[must_use]
    pub fn bytes<B: Into<Vec<u8>>>(self, name: &str, values: impl IntoIterator<Item = B>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.feature(name, Feature::Bytes(values))
    }

    /// Sets a feature of float32 numbers.
    #[must_use]
    pub fn floats(self, name: &str, values: impl IntoIterator<Item = f32>) -> Self {
        self.feature(name, Feature::Floats(values.into_iter().collect()))
    }

    /// Sets a feature of int64 numbers.
    #[must_use]
    pub fn ints(self, name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        self.feature(name, Feature::Ints(values.into_iter().collect()))
    }

    /// Returns a feature.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Feature> {
        self.features.get(name)
    }

    /// Returns all features, sorted by name.
    pub fn features(&self) -> impl Iterator<Item = (&str, &Feature)> {
        self.features
            .iter()
            .map(|(name, feature)| (name.as_str(), feature))
    }

    /// Returns the serialized example.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.message(1, |features| {
            for (name, feature) in &self.features {
                features.message(1, |entry| {
                    entry.bytes(1, name.as_bytes());
                    entry.message(2, |out| feature.write(out));
                });
            }
        });
        out.into_bytes()
    }

    /// Reads a serialized example.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](tfp_core::ErrorKind::Proto) for bytes that are none.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut example = Self::default();
        for field in Reader::new("Example", bytes) {
            let (1, features) = field? else { continue };
            for field in Reader::new("Features", features.bytes()?) {
                let (1, entry) = field? else { continue };
                let (mut name, mut feature) = (String::new(), None);
                for field in Reader::new("FeatureEntry", entry.bytes()?) {
                    match field? {
                        (1, text) => name = text.text()?.to_owned(),
                        (2, value) => feature = Some(value.bytes()?),
                        _ => {}
                    }
                }
                if let Some(feature) = Feature::read(feature.unwrap_or_default())? {
                    example.features.insert(name, feature);
                }
            }
        }
        Ok(example)
    }
}

impl Feature {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Bytes(values) => out.message(1, |list| {
                values.iter().for_each(|value| list.bytes(1, value));
            }),
            Self::Floats(values) => out.message(2, |list| list.floats(1, values)),
            Self::Ints(values) => out.message(3, |list| list.ints(1, values)),
        }
    }

    /// Reads a feature; one without a list of values is none.
    fn read(bytes: &[u8]) -> Result<Option<Self>> {
        let mut found = None;
        for field in Reader::new("Feature", bytes) {
            let (kind, list) = field?;
            let list = list.bytes()?;
            found = Some(match kind {
                1 => {
                    let mut values = Vec::new();
                    for field in Reader::new("BytesList", list) {
                        if let (1, value) = field? {
                            values.push(value.bytes()?.to_vec());
                        }
                    }
                    Self::Bytes(values)
                }
                2 => {
                    let mut values = Vec::new();
                    for field in Reader::new("FloatList", list) {
                        if let (1, value) = field? {
                            value.floats(&mut values)?;
                        }
                    }
                    Self::Floats(values)
                }
                3 => {
                    let mut values = Vec::new();
                    for field in Reader::new("Int64List", list) {
                        if let (1, value) = field? {
                            value.ints(&mut values)?;
                        }
                    }
                    Self::Ints(values)
                }
                _ => continue,
            });
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Example {
        Example::new()
            .ints("b", [1, -1, i64::MIN, i64::MAX, 300])
            .floats("a", [0.5, f32::NEG_INFINITY])
            .bytes("c", [&b"x\0y"[..], b""])
            .ints("none", [])
    }

    #[test]
    fn an_example_is_read_as_it_was_written() -> Result<()> {
        assert_eq!(Example::parse(&sample().to_bytes())?, sample());
        assert_eq!(Example::parse(&[])?, Example::new());
        Ok(())
    }

    #[test]
    fn the_bytes_are_those_of_python() {
        // What SerializeToString(deterministic=True) gives for {"i": [1, -1], "f": [0.5]}.
        let example = Example::new().ints("i", [1, -1]).floats("f", [0.5]);
        let hex: String = example
            .to_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let expected = "0a25\
                        0a0d0a0166120812060a040000003f\
                        0a140a0169120f1a0d0a0b01ffffffffffffffffff01";
        assert_eq!(hex, expected);
    }

    #[test]
    fn no_change_of_a_byte_panics() {
        let bytes = sample().to_bytes();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x0a, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = Example::parse(&damaged);
            }
            let _ = Example::parse(&bytes[..at]);
        }
    }
}
