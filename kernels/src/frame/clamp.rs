//! Ranges that layers end with.

use crate::frame::map::Map;
use crate::frame::zip::Zip;

/// `min(max(x, low), high)`; NaN stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clamp {
    /// Smallest result.
    pub low: f32,
    /// Largest result.
    pub high: f32,
}

impl Clamp {
    /// From 0 on.
    pub const RELU: Self = Self {
        low: 0.0,
        high: f32::INFINITY,
    };
    /// From 0 to 6.
    pub const RELU6: Self = Self {
        low: 0.0,
        high: 6.0,
    };
}

impl Map<f32> for Clamp {
    type Out = f32;

    #[inline(always)]
    fn apply(self, x: f32) -> f32 {
        let x = if x < self.low { self.low } else { x };
        if x > self.high { self.high } else { x }
    }
}

/// `min(max(a + b, low), high)`; NaN stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddClamp {
    /// Smallest result.
    pub low: f32,
    /// Largest result.
    pub high: f32,
}

impl AddClamp {
    /// From 0 on.
    pub const RELU: Self = Self {
        low: 0.0,
        high: f32::INFINITY,
    };
    /// From 0 to 6.
    pub const RELU6: Self = Self {
        low: 0.0,
        high: 6.0,
    };
}

impl Zip<f32> for AddClamp {
    type Out = f32;

    #[inline(always)]
    fn apply(self, a: f32, b: f32) -> f32 {
        let Self { low, high } = self;
        Map::apply(Clamp { low, high }, a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let clamp = Clamp {
            low: -1.0,
            high: 2.0,
        };
        assert_eq!(
            [-3.0, -1.0, 0.5, 9.0].map(|x| clamp.apply(x)),
            [-1.0, -1.0, 0.5, 2.0]
        );
        assert!(clamp.apply(f32::NAN).is_nan());
    }
}
