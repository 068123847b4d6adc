//! Sources of time.

/// What counts up: cycles, microseconds or whatever a board has.
///
/// A closure that returns the count is a clock, if the count has 64 bits and never wraps. [`Counter`] is
/// for hardware with fewer bits.
pub trait Clock {
    /// Ticks since some start.
    fn now(&self) -> u64;

    /// Ticks from `start`, an earlier [`now`](Self::now), to this moment.
    fn since(&self, start: u64) -> u64 {
        self.now().wrapping_sub(start)
    }
}

impl<F: Fn() -> u64> Clock for F {
    fn now(&self) -> u64 {
        self()
    }
}

/// A counter of fewer than 64 bits, such as the 32 bits of `DWT.CYCCNT` or the 24 bits of SysTick.
///
/// A time that is measured with it has to be shorter than one round of the counter.
///
/// ```
/// use tfp_embedded::{Clock, Counter};
///
/// let cyccnt = core::cell::Cell::new(0xFFFF_FFF0_u64);
/// let clock = Counter::new(32, || cyccnt.get());
/// let start = clock.now();
/// cyccnt.set(0x10);
/// assert_eq!(clock.since(start), 0x20);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counter<F> {
    read: F,
    mask: u64,
}

impl<F: Fn() -> u64> Counter<F> {
    /// A counter that counts up.
    ///
    /// # Arguments
    /// * `bits`: its width, 1 to 64; other values are taken as the nearest of these.
    /// * `read`: returns the count.
    pub const fn new(bits: u32, read: F) -> Self {
        let unused = match bits {
            0 => 63,
            1..=64 => 64 - bits,
            _ => 0,
        };
        Self {
            read,
            mask: u64::MAX >> unused,
        }
    }
}

impl<F: Fn() -> u64> Clock for Counter<F> {
    fn now(&self) -> u64 {
        (self.read)() & self.mask
    }

    fn since(&self, start: u64) -> u64 {
        self.now().wrapping_sub(start) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_closure_is_a_clock() {
        let time = Cell::new(5);
        let clock = || time.get();
        let start = clock.now();
        time.set(12);
        assert_eq!(clock.since(start), 7);
    }

    #[test]
    fn a_counter_may_wrap_once() {
        for bits in [1, 24, 32, 63, 64] {
            let last = u64::MAX >> (64 - bits);
            let time = Cell::new(last);
            let clock = Counter::new(bits, || time.get());
            let start = clock.now();
            assert_eq!(start, last);
            time.set(0);
            assert_eq!(clock.since(start), 1, "{bits} bits");
        }
    }

    #[test]
    fn bits_above_the_counter_are_left_out() {
        let clock = Counter::new(24, || 0xFF00_0003);
        assert_eq!((clock.now(), clock.since(1)), (3, 2));
    }

    #[test]
    fn a_width_that_no_counter_has_is_the_nearest_one() {
        assert_eq!(Counter::new(0, || 3).now(), 1);
        assert_eq!(Counter::new(65, || u64::MAX).now(), u64::MAX);
    }
}
