//! Single elements in JSON, by their type.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::json::{Json, write_text};

/// An element that JSON has a form for.
pub(crate) trait Leaf: Sized {
    /// Reads an element; `None` for what is not one.
    fn read(json: &Json<'_>) -> Option<Self>;

    /// Writes an element; byte strings as base64 if `binary`.
    fn write(&self, to: &mut String, binary: bool);
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl Leaf for $integer {
            fn read(json: &Json<'_>) -> Option<Self> {
                match json {
                    Json::Number(text) => text.parse().ok(),
                    _ => None,
                }
            }

            fn write(&self, to: &mut String, _: bool) {
                write!(to, "{self}").unwrap_or_default();
            }
        })*
    };
}

integers!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! floats {
    ($($float:ty),*) => {
        $(impl Leaf for $float {
            fn read(json: &Json<'_>) -> Option<Self> {
                match json {
                    Json::Number("NaN") => Some(Self::NAN),
                    Json::Number("Infinity") => Some(Self::INFINITY),
                    Json::Number("-Infinity") => Some(Self::NEG_INFINITY),
                    Json::Number(text) => text.parse().ok().filter(|value: &Self| value.is_finite()),
                    _ => None,
                }
            }

            fn write(&self, to: &mut String, _: bool) {
                // The shortest text that is this value, with a point or an exponent.
                match *self {
                    value if value.is_nan() => to.push_str("NaN"),
                    Self::INFINITY => to.push_str("Infinity"),
                    Self::NEG_INFINITY => to.push_str("-Infinity"),
                    value => write!(to, "{value:?}").unwrap_or_default(),
                }
            }
        })*
    };
}

floats!(f32, f64);

impl Leaf for bool {
    fn read(json: &Json<'_>) -> Option<Self> {
        match json {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn write(&self, to: &mut String, _: bool) {
        to.push_str(if *self { "true" } else { "false" });
    }
}

impl Leaf for Vec<u8> {
    fn read(json: &Json<'_>) -> Option<Self> {
        match json {
            Json::Text(text) => Some(text.as_bytes().to_vec()),
            Json::Object(members) => match &members[..] {
                [(name, Json::Text(text))] if name == "b64" => STANDARD.decode(&**text).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    fn write(&self, to: &mut String, binary: bool) {
        match std::str::from_utf8(self) {
            Ok(text) if !binary => write_text(to, text),
            _ => {
                to.push_str("{\"b64\": \"");
                STANDARD.encode_string(self, to);
                to.push_str("\"}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<Vec<u8>> {
        let json = format!("{{\"b64\": \"{text}\"}}");
        Leaf::read(&Json::parse(&json).unwrap())
    }

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 254, 255, 256] {
            let (mut text, part) = (String::new(), all[..length].to_vec());
            part.write(&mut text, true);
            let read: Option<Vec<u8>> = Leaf::read(&Json::parse(&text).unwrap());
            assert_eq!(read, Some(part), "{text}");
        }
        assert_eq!(bytes("Zm9vYg=="), Some(b"foob".to_vec()));
    }

    #[test]
    fn damaged_base64_is_not_a_value() {
        for text in ["Z", "Zg", "Zg=", "Z===", "====", "Zm9v!A==", "Zh==", "Z=g="] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
