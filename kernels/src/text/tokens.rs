//! The tokens of texts, as values or as counts.

use crate::base::error::{Error, Result};
use crate::text::changes::{Change, changed, served};
use crate::text::finder::{Finder, Rest, Words};

/// Where a text is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Nowhere: the text is a token.
    Whole,
    /// At white space of ASCII; there are no empty tokens.
    Whitespace,
    /// Around every character.
    Characters,
    /// At a byte of ASCII; there may be empty tokens.
    At(u8),
}

/// How texts become tokens, and these the numbers of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How a text is standardized.
    pub changes: &'static [Change],
    /// Where it is taken apart.
    pub split: Split,
    /// How many neighbours are joined to one token: all of the first number, then those of the next.
    pub widths: &'static [usize],
    /// What stands between neighbours that are joined.
    pub between: &'static [u8],
    /// What becomes of tokens that are not in the vocabulary.
    pub rest: Rest,
}

/// Neighbours that are joined, at most.
pub const WIDEST: usize = 16;

/// Characters of a number, at most.
const DIGITS: usize = 20;

/// A text, or an integer that is read as its digits.
pub trait Text {
    /// The bytes of the text, which may be written to `digits`.
    fn bytes<'a>(&'a self, digits: &'a mut [u8; DIGITS]) -> &'a [u8];
}

impl Text for &str {
    fn bytes<'a>(&'a self, _: &'a mut [u8; DIGITS]) -> &'a [u8] {
        self.as_bytes()
    }
}

impl Text for i32 {
    fn bytes<'a>(&'a self, digits: &'a mut [u8; DIGITS]) -> &'a [u8] {
        written(i64::from(*self), digits)
    }
}

impl Text for i64 {
    fn bytes<'a>(&'a self, digits: &'a mut [u8; DIGITS]) -> &'a [u8] {
        written(*self, digits)
    }
}

/// The digits of a number.
fn written(number: i64, digits: &mut [u8; DIGITS]) -> &[u8] {
    let (mut at, mut rest) = (DIGITS, number.unsigned_abs());
    while at == DIGITS || rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

/// Writes the value of each token, for each text `row` of them; the last value stands where a text
/// has no more tokens.
///
/// # Errors
/// [`Error::Value`] or [`Error::Length`] unless `values` has a value for each class and one more, and
/// `out` `row` elements for each text; nothing has been written then.
pub fn values<S: Text, T: Copy>(
    reading: &Reading,
    words: &Words<'_>,
    texts: &[S],
    (values, row): (&[T], usize),
    out: &mut [T],
) -> Result<()> {
    check(reading, words, values.len().saturating_sub(1))?;
    length("out", out.len(), texts.len().saturating_mul(row))?;
    let Some((&pad, values)) = values.split_last() else {
        return length("values", 0, 1);
    };
    for (text, out) in texts.iter().zip(out.chunks_exact_mut(row.max(1))) {
        let mut places = out.iter_mut();
        let mut digits = [0; DIGITS];
        let text = text.bytes(&mut digits);
        each_class(reading, words, text, &mut |class| {
            if let Some(place) = places.next() {
                *place = values[class];
            }
        });
        places.for_each(|place| *place = pad);
    }
    Ok(())
}

/// Counts the tokens of each text in `size` bins; `bins` has a bin for each class, and tokens of one
/// that is not there are not counted. With `binary` a bin has 1 however many tokens it has.
///
/// # Errors
/// As [`values`], where `bins` has one for each class.
pub fn counts<T: Copy + From<u8> + core::ops::Add<Output = T>>(
    reading: &Reading,
    words: &Words<'_>,
    texts: &[&str],
    (bins, size, binary): (&[i32], usize, bool),
    out: &mut [T],
) -> Result<()> {
    check(reading, words, bins.len())?;
    length("out", out.len(), texts.len().saturating_mul(size))?;
    out.fill(T::from(0));
    for (text, out) in texts.iter().zip(out.chunks_exact_mut(size.max(1))) {
        each_class(reading, words, text.as_bytes(), &mut |class| {
            let bin = usize::try_from(bins[class]).ok();
            if let Some(count) = bin.and_then(|bin| out.get_mut(bin)) {
                *count = if binary {
                    T::from(1)
                } else {
                    *count + T::from(1)
                };
            }
        });
    }
    Ok(())
}

/// Checks a reading, and that there are so many classes.
fn check(reading: &Reading, words: &Words<'_>, classes: usize) -> Result<()> {
    let fail = |argument, expected| Err(Error::Value { argument, expected });
    if !served(reading.changes) {
        return fail("changes", "at most 8, of patterns of 1 to 255 bytes");
    }
    if !reading
        .widths
        .iter()
        .all(|width| (1..=WIDEST).contains(width))
    {
        return fail("widths", "1 to 16");
    }
    if !words.is_whole() {
        return fail("words", "words that end one after the other");
    }
    let buckets = usize::try_from(reading.rest.buckets()).unwrap_or(usize::MAX);
    length("classes", classes, words.ends.len().saturating_add(buckets))
}

fn length(argument: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Length {
        argument,
        found,
        expected,
    })
}

/// Hands the class of each token of a text to `sink`.
fn each_class(reading: &Reading, words: &Words<'_>, text: &[u8], sink: &mut impl FnMut(usize)) {
    for &width in reading.widths {
        let mut joined = Joined::new(reading, words, width, sink);
        let mut inside = matches!(reading.split, Split::Whole | Split::At(_));
        if inside {
            joined.begin();
        }
        changed(reading.changes, text, &mut |byte| {
            let (ends, begins, kept) = match reading.split {
                Split::Whole => (false, false, true),
                Split::At(separator) => (byte == separator, byte == separator, byte != separator),
                Split::Whitespace => {
                    let space = matches!(byte, b'\t'..=b'\r' | b' ');
                    (inside && space, !inside && !space, !space)
                }
                Split::Characters => {
                    let first = byte & 0xc0 != 0x80;
                    (inside && first, first, true)
                }
            };
            if ends {
                joined.end();
                inside = false;
            }
            if begins {
                joined.begin();
                inside = true;
            }
            if kept {
                joined.push(byte);
            }
        });
        if inside {
            joined.end();
        }
    }
}

/// Neighbours that are joined: one for each token that the last one may follow.
struct Joined<'a, 'w, S> {
    reading: &'a Reading,
    words: &'a Words<'w>,
    sink: &'a mut S,
    width: usize,
    /// Tokens that have begun.
    begun: usize,
    open: [Option<Finder>; WIDEST],
}

impl<'a, 'w, S: FnMut(usize)> Joined<'a, 'w, S> {
    fn new(reading: &'a Reading, words: &'a Words<'w>, width: usize, sink: &'a mut S) -> Self {
        Self {
            reading,
            words,
            sink,
            width,
            begun: 0,
            open: [None; WIDEST],
        }
    }

    fn begin(&mut self) {
        if self.begun > 0 && self.width > 1 {
            let between = self.reading.between;
            between.iter().for_each(|&byte| self.push(byte));
        }
        let place = self.begun % self.width;
        self.open[place] = Some(Finder::new(self.words, self.reading.rest));
        self.begun += 1;
    }

    fn push(&mut self, byte: u8) {
        let words = self.words;
        for finder in self.open[..self.width].iter_mut().flatten() {
            finder.push(words, byte);
        }
    }

    fn end(&mut self) {
        // The one that began `width` tokens ago; the next one begins in its place.
        if let Some(finder) = self.open[self.begun % self.width].take() {
            (self.sink)(finder.class(self.words, self.reading.rest));
        }
    }
}
