//! JSON, as Python's `json` writes it.

use std::fmt;

use tfp_core::{Error, Result};

use crate::room::{push, push_letter};

/// How deep lists and objects may lie in each other. Keras' own are about 10 deep per nested model.
const DEEPEST: usize = 200;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// An integer.
    Number(f64),
    /// A number with a point or an exponent: another type in Python.
    Float(f64),
    Text(String),
    List(Vec<Self>),
    /// In the order of the file.
    Object(Vec<(String, Self)>),
}

impl Json {
    /// Reads a text.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(text).map_err(|_| Error::argument("JSON is not UTF-8"))?;
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.spaces();
        match parser.peek() {
            None => Ok(value),
            Some(_) => Err(parser.wrong("the end")),
        }
    }

    /// An object of members.
    pub fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        let members = members.into_iter();
        Self::Object(
            members
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// A member of an object, unless it is null.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let found = members.iter().find(|(member, _)| member == name);
        found
            .map(|(_, value)| value)
            .filter(|value| **value != Self::Null)
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) | Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// An integer that a double holds.
    pub fn integer(&self) -> Option<i64> {
        let number = self.number()?;
        (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
    }

    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(number as f64)
    }
}

/// The shortest number that is this one, as Python's programs have it: 0.001.
impl From<f32> for Json {
    fn from(number: f32) -> Self {
        let number = number.to_string().parse();
        Self::Float(number.unwrap_or(f64::NAN))
    }
}

impl From<&[i64]> for Json {
    fn from(numbers: &[i64]) -> Self {
        Self::List(numbers.iter().map(|&number| number.into()).collect())
    }
}

impl From<Vec<i64>> for Json {
    fn from(numbers: Vec<i64>) -> Self {
        numbers.as_slice().into()
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The text, as Python's `json` reads it.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(number) => write!(f, "{number:.0}"),
            Self::Float(number) if number.is_nan() => f.write_str("NaN"),
            Self::Float(number) if number.is_infinite() => f.write_str(if *number > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            }),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => quoted(f, text),
            Self::List(list) => {
                f.write_str("[")?;
                for (index, value) in list.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    write!(f, "{value}")?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    quoted(f, name)?;
                    write!(f, ": {value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            letter if (letter as u32) < 0x20 => write!(f, "\\u{:04x}", letter as u32)?,
            letter => write!(f, "{letter}")?,
        }
    }
    f.write_str("\"")
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &str) -> Error {
        Error::argument(format!("JSON: expected {expected} at byte {}", self.at))
    }

    /// Goes over a sign if it is next.
    fn takes(&mut self, sign: u8) -> bool {
        self.spaces();
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        if depth > DEEPEST {
            return Err(self.wrong(&format!("at most {DEEPEST} levels")));
        }
        self.spaces();
        let words = [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
            ("NaN", Json::Float(f64::NAN)),
            ("Infinity", Json::Float(f64::INFINITY)),
            ("-Infinity", Json::Float(f64::NEG_INFINITY)),
        ];
        let rest = self.text.get(self.at..).unwrap_or_default();
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        match self.peek() {
            Some(b'"') => self.string().map(Json::Text),
            Some(b'[') => {
                self.at += 1;
                let mut list = Vec::new();
                while !self.takes(b']') {
                    if !list.is_empty() && !self.takes(b',') {
                        return Err(self.wrong("',' or ']'"));
                    }
                    push(&mut list, self.value(depth + 1)?)?;
                }
                Ok(Json::List(list))
            }
            Some(b'{') => {
                self.at += 1;
                let mut members = Vec::new();
                while !self.takes(b'}') {
                    if !members.is_empty() && !self.takes(b',') {
                        return Err(self.wrong("',' or '}'"));
                    }
                    self.spaces();
                    let name = self.string()?;
                    if !self.takes(b':') {
                        return Err(self.wrong("':'"));
                    }
                    push(&mut members, (name, self.value(depth + 1)?))?;
                }
                Ok(Json::Object(members))
            }
            Some(b'-' | b'0'..=b'9') => {
                let is_part = |sign: &char| matches!(sign, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
                let length = rest.chars().take_while(is_part).count();
                let number = rest[..length].parse();
                let number = number.map_err(|_| self.wrong("a number"))?;
                self.at += length;
                let is_integer = !rest[..length].contains(['.', 'e', 'E']);
                Ok(match is_integer {
                    true => Json::Number(number),
                    false => Json::Float(number),
                })
            }
            _ => Err(self.wrong("a value")),
        }
    }

    fn string(&mut self) -> Result<String> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a string"));
        }
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let mut letters = rest.chars();
            match letters.next() {
                Some('"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some('\\') => {
                    self.at += 2;
                    let letter = match letters.next() {
                        Some('u') => self.unicode()?,
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('r') => '\r',
                        Some('b') => '\u{8}',
                        Some('f') => '\u{c}',
                        Some(sign @ ('"' | '\\' | '/')) => sign,
                        _ => return Err(self.wrong("an escape")),
                    };
                    push_letter(&mut string, letter)?;
                }
                Some(letter) => {
                    self.at += letter.len_utf8();
                    push_letter(&mut string, letter)?;
                }
                None => return Err(self.wrong("'\"'")),
            }
        }
    }

    /// The letter of `\uXXXX`, or of two of them.
    fn unicode(&mut self) -> Result<char> {
        let unit = |parser: &mut Self| -> Result<u32> {
            let digits = parser.text.get(parser.at..parser.at + 4);
            let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            parser.at += 4;
            unit.ok_or_else(|| parser.wrong("four hexadecimal digits"))
        };
        let mut code = unit(self)?;
        if (0xd800..0xdc00).contains(&code) {
            if self.text.get(self.at..self.at + 2) != Some("\\u") {
                return Err(self.wrong("the second half of a letter"));
            }
            self.at += 2;
            let low = unit(self)?;
            code = 0x1_0000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
        }
        char::from_u32(code).ok_or_else(|| self.wrong("a letter"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_writes_is_read() -> Result<()> {
        let json =
            Json::parse(br#" {"a": [1, -2.5e-3, NaN, "\u00e9\ud83d\ude00\n"], "b": null} "#)?;
        let list = json.get("a").and_then(Json::list).expect("a list");
        assert_eq!(list[0].integer(), Some(1));
        assert_eq!(list[1].number(), Some(-0.0025));
        assert!(list[2].number().is_some_and(f64::is_nan));
        assert_eq!(list[3].text(), Some("\u{e9}\u{1f600}\n"));
        assert!(json.get("b").is_none());
        Ok(())
    }

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let json = Json::object([
            (
                "a\"\\\n\u{1f600}",
                Json::List(vec![
                    4_i64.into(),
                    0.001_f32.into(),
                    0.0_f32.into(),
                    f32::INFINITY.into(),
                ]),
            ),
            ("b", Json::object([("c", Json::Null), ("d", true.into())])),
        ]);
        let text = json.to_string();
        assert!(text.contains("[4, 0.001, 0.0, Infinity]"), "{text}");
        assert_eq!(Json::parse(text.as_bytes())?, json);
        Ok(())
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let deep = "[".repeat(100_000);
        let bad = [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "\"\\x\"",
            "\"\\ud800\"",
            "1 2",
            "-",
            "\"\\u12\u{e9}\"",
            &deep,
        ];
        for text in bad {
            assert!(Json::parse(text.as_bytes()).is_err(), "{:.20}", text);
        }
        assert!(Json::parse(&[b'"', 0xff, b'"']).is_err());
    }
}
