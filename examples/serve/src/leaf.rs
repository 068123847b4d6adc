//! Single elements in JSON, by their type.

use std::fmt::Write;

use crate::base64;
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
                [(name, Json::Text(text))] if name == "b64" => base64::decode(text),
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
                to.push_str(&base64::encode(self));
                to.push_str("\"}");
            }
        }
    }
}
