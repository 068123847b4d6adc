//! How sure a binary classifier is: the levels of `thresholds.json`.

use crate::error::{Error, Result};

/// How sure the model is that an example is dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The decision value is below every threshold.
    None,
    /// At least `bottom`.
    Bottom,
    /// At least `low`.
    Low,
    /// At least `medium`.
    Medium,
    /// At least `high`.
    High,
}

/// The smallest decision value of each level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// For [`Confidence::Bottom`].
    pub bottom: f32,
    /// For [`Confidence::Low`].
    pub low: f32,
    /// For [`Confidence::Medium`].
    pub medium: f32,
    /// For [`Confidence::High`].
    pub high: f32,
}

/// What a binary classifier says about one example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanPrediction {
    /// Number of the example in the batch.
    pub fv_index: usize,
    /// How sure the model is.
    pub confidence: Confidence,
    /// The model's output for the class.
    pub decision_value: f32,
}

/// The result of a binary classifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinaryModelResult {
    /// The prediction of class 1.
    pub dirty: ScanPrediction,
}

impl Thresholds {
    /// Reads `{"dirty": {"bottom": 0.1, "low": 0.3, "medium": 0.6, "high": 0.9}}`.
    ///
    /// # Errors
    /// [`Error::Thresholds`] if a level is missing, appears twice or is NaN, or the levels
    /// fall.
    pub fn parse(text: &str) -> Result<Self> {
        let mut at = Cursor { text, position: 0 };
        let mut levels = [None; 4];
        at.expect('{')?;
        if at.string()? != "dirty" {
            return at.fail("expected the key \"dirty\"");
        }
        at.expect(':')?;
        at.expect('{')?;
        loop {
            let key = at.string()?;
            let place = ["bottom", "low", "medium", "high"]
                .iter()
                .position(|name| *name == key);
            let Some(level) = place.and_then(|place| levels.get_mut(place)) else {
                return at.fail("expected bottom, low, medium or high");
            };
            at.expect(':')?;
            if level.replace(at.number()?).is_some() {
                return at.fail("a level appears twice");
            }
            if at.eat(',') {
                continue;
            }
            at.expect('}')?;
            break;
        }
        at.expect('}')?;
        if !at.rest().trim().is_empty() {
            return at.fail("expected the end");
        }
        let [Some(bottom), Some(low), Some(medium), Some(high)] = levels else {
            return at.fail("a level is missing");
        };
        if !(bottom <= low && low <= medium && medium <= high) {
            return at.fail("the levels must not fall");
        }
        Ok(Self {
            bottom,
            low,
            medium,
            high,
        })
    }

    /// The level of a decision value; [`Confidence::None`] for NaN.
    #[must_use]
    pub fn dirty_confidence(&self, decision_value: f32) -> Confidence {
        if decision_value >= self.high {
            Confidence::High
        } else if decision_value >= self.medium {
            Confidence::Medium
        } else if decision_value >= self.low {
            Confidence::Low
        } else if decision_value >= self.bottom {
            Confidence::Bottom
        } else {
            Confidence::None
        }
    }

    /// The result for one example of a batch.
    #[must_use]
    pub fn result(&self, fv_index: usize, decision_value: f32) -> BinaryModelResult {
        BinaryModelResult {
            dirty: ScanPrediction {
                fv_index,
                confidence: self.dirty_confidence(decision_value),
                decision_value,
            },
        }
    }
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn fail<T>(&self, reason: &'static str) -> Result<T> {
        Err(Error::Thresholds {
            reason,
            position: self.position,
        })
    }

    fn eat(&mut self, wanted: char) -> bool {
        let rest = self.rest();
        let trimmed = rest.trim_start();
        self.position += rest.len() - trimmed.len();
        let found = trimmed.starts_with(wanted);
        if found {
            self.position += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.eat(wanted) {
            return Ok(());
        }
        self.fail(match wanted {
            '{' => "expected {",
            '}' => "expected }",
            ':' => "expected :",
            _ => "expected a string",
        })
    }

    fn string(&mut self) -> Result<&'a str> {
        self.expect('"')?;
        let Some(len) = self.rest().find('"') else {
            return self.fail("expected the end of a string");
        };
        let string = self.rest().get(..len).unwrap_or_default();
        self.position += len + 1;
        Ok(string)
    }

    fn number(&mut self) -> Result<f32> {
        self.eat('+');
        let rest = self.rest();
        let len = rest
            .find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c)))
            .unwrap_or(rest.len());
        let number = rest.get(..len).and_then(|text| text.parse::<f32>().ok());
        match number.filter(|x| x.is_finite()) {
            Some(number) => {
                self.position += len;
                Ok(number)
            }
            None => self.fail("expected a number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels() {
        let text = r#" {"dirty": {"bottom": 0.1, "low":0.25,"medium" : 5e-1, "high":0.9}} "#;
        let thresholds = Thresholds::parse(text).unwrap();
        let found = [0.0, 0.1, 0.3, 0.5, 0.95, f32::NAN].map(|x| thresholds.dirty_confidence(x));
        use Confidence::{Bottom, High, Low, Medium, None};
        assert_eq!(found, [None, Bottom, Low, Medium, High, None]);
        assert_eq!(thresholds.result(3, 0.3).dirty.fv_index, 3);
    }

    #[test]
    fn what_is_refused() {
        for text in [
            "",
            "{}",
            r#"{"dirty":{"bottom":0,"low":0,"medium":0}}"#,
            r#"{"dirty":{"bottom":0,"low":0,"medium":0,"high":true}}"#,
            r#"{"dirty":{"bottom":1,"low":0,"medium":0,"high":0}}"#,
            r#"{"dirty":{"bottom":0,"bottom":0,"low":0,"medium":0,"high":0}}"#,
            r#"{"dirty":{"bottom":0,"low":0,"medium":0,"high":0}} x"#,
            r#"{"dirty":{"bottom":0,"low":0,"medium":0,"high":0"#,
        ] {
            assert!(Thresholds::parse(text).is_err(), "{text}");
        }
    }
}
