//! JSON as TensorFlow Serving speaks it: numbers may also be `NaN`, `Infinity` and `-Infinity`, which
//! serde_json refuses and Python's `json` writes.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// How deep lists and objects may lie in each other.
const DEEPEST: usize = 64;

/// A value. Numbers keep their text, which each element type reads without loss.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(&'a str),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Self>),
    /// An object, in the order of the text.
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The byte at which reading ended.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "JSON is not valid at byte {}: expected {}",
            self.at, self.expected
        )
    }
}

impl<'a> Json<'a> {
    /// Reads a text.
    ///
    /// # Errors
    /// The first byte that does not fit. Lists and objects may be 64 deep.
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        let mut parser = Parser { text, at: 0 };
        let value = parser.value(0)?;
        parser.spaces();
        match parser.peek() {
            None => Ok(value),
            Some(_) => Err(parser.wrong("the end")),
        }
    }

    /// The member of an object.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else {
            return None;
        };
        let mut found = members.iter().filter(|(member, _)| member == name);
        found.next_back().map(|(_, value)| value)
    }

    /// What the value is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a Boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, expected: &'static str) -> JsonError {
        JsonError {
            at: self.at,
            expected,
        }
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        if depth > DEEPEST {
            return Err(self.wrong("at most 64 lists and objects in each other"));
        }
        self.spaces();
        match self.peek() {
            Some(b'[') => self.list(depth),
            Some(b'{') => self.object(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9' | b'N' | b'I') => self.number(),
            Some(b't') if self.takes("true") => Ok(Json::Bool(true)),
            Some(b'f') if self.takes("false") => Ok(Json::Bool(false)),
            Some(b'n') if self.takes("null") => Ok(Json::Null),
            _ => Err(self.wrong("a value")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.spaces();
        if self.takes("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.spaces();
            if self.takes("]") {
                return Ok(Json::List(items));
            }
            if !self.takes(",") {
                return Err(self.wrong("',' or ']'"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        self.spaces();
        if self.takes("}") {
            return Ok(Json::Object(members));
        }
        loop {
            self.spaces();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a name in quotes"));
            }
            let name = self.string()?;
            self.spaces();
            if !self.takes(":") {
                return Err(self.wrong("':'"));
            }
            members.push((name, self.value(depth + 1)?));
            self.spaces();
            if self.takes("}") {
                return Ok(Json::Object(members));
            }
            if !self.takes(",") {
                return Err(self.wrong("',' or '}'"));
            }
        }
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.at;
        for word in ["NaN", "Infinity", "-Infinity"] {
            if self.takes(word) {
                return Ok(Json::Number(&self.text[start..self.at]));
            }
        }
        self.takes("-");
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.digits()?;
        if leading_zero && digits > 1 {
            return Err(self.wrong("a number without leading zeros"));
        }
        if self.takes(".") {
            self.digits()?;
        }
        if self.takes("e") || self.takes("E") {
            let _ = self.takes("+") || self.takes("-");
            self.digits()?;
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> Result<usize, JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.at - start {
            0 => Err(self.wrong("a digit")),
            count => Ok(count),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let (mut start, mut read) = (self.at, None::<String>);
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(match read {
                        Some(read) => Cow::Owned(read + rest),
                        None => Cow::Borrowed(rest),
                    });
                }
                Some(b'\\') => {
                    let read = read.get_or_insert_default();
                    read.push_str(&self.text[start..self.at]);
                    self.at += 1;
                    let escaped = self.escape()?;
                    read.push(escaped);
                    start = self.at;
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.wrong("the end of the string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let escaped = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.wrong("an escape of JSON")),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        let code = match first {
            0xD800..0xDC00 => {
                if !(self.takes("\\") && self.peek() == Some(b'u')) {
                    return Err(self.wrong("the second half of a surrogate pair"));
                }
                match self.four_digits()? {
                    second @ 0xDC00..0xE000 => {
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    _ => return Err(self.wrong("the second half of a surrogate pair")),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("a code point"))
    }

    /// Reads `u` and four hexadecimal digits.
    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at + 1..self.at + 5);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.wrong("four hexadecimal digits"))?;
        self.at += 5;
        Ok(code)
    }
}

/// Writes a text in quotes.
pub fn write_text(to: &mut String, text: &str) {
    to.push('"');
    for letter in text.chars() {
        match letter {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            '\0'..' ' => write!(to, "\\u{:04x}", letter as u32).unwrap_or_default(),
            _ => to.push(letter),
        }
    }
    to.push('"');
}

/// The object by which TensorFlow Serving tells an error.
#[must_use]
pub fn error_body(message: &str) -> String {
    let mut body = "{\"error\": ".to_owned();
    write_text(&mut body, message);
    body.push_str("}\n");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Json<'_> {
        Json::Number(text)
    }

    #[test]
    fn values_are_read() {
        let read = Json::parse(" {\"a\": [1, -2.5e3, NaN, -Infinity], \"b\": null, \"c\": true} ");
        let list = ["1", "-2.5e3", "NaN", "-Infinity"].map(number).to_vec();
        assert_eq!(
            read,
            Ok(Json::Object(vec![
                ("a".into(), Json::List(list)),
                ("b".into(), Json::Null),
                ("c".into(), Json::Bool(true)),
            ]))
        );
    }

    #[test]
    fn strings_have_escapes() {
        let read = Json::parse(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é""#);
        let text = "\"\\/\u{8}\u{c}\n\r\té😀é";
        assert_eq!(read, Ok(Json::Text(text.into())));
        let mut written = String::new();
        write_text(&mut written, text);
        assert_eq!(Json::parse(&written), Ok(Json::Text(text.into())));
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        let read = Json::parse(r#"{"a": 1, "a": 2}"#).unwrap();
        assert_eq!(read.get("a"), Some(&number("2")));
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\" 1}", 5),
            ("{a: 1}", 1),
            ("01", 2),
            ("1.", 2),
            ("-", 1),
            ("1e", 2),
            ("\"a", 2),
            ("\"\n\"", 1),
            (r#""\x""#, 2),
            (r#""\u12g4""#, 2),
            (r#""\ud800""#, 7),
            (r#""\udc00""#, 7),
            ("[1] 2", 4),
            ("nul", 0),
        ] {
            assert_eq!(
                Json::parse(text).map_err(|error| error.at),
                Err(at),
                "{text}"
            );
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Json::parse(&nested(DEEPEST)).is_ok());
        let error = Json::parse(&nested(100_000)).unwrap_err();
        assert!(error.expected.contains("64"), "{error}");
    }
}
