//! A short array whose length is known when it is made.

/// As many places as a call needs, on the stack up to `N`.
pub struct Slots<T, const N: usize> {
    inline: [T; N],
    spill: Vec<T>,
    length: usize,
}

impl<T, const N: usize> Slots<T, N> {
    /// `length` places, each as `empty` makes it.
    pub fn new(length: usize, empty: impl Fn() -> T) -> Self {
        let spill = if length > N {
            (0..length).map(|_| empty()).collect()
        } else {
            Vec::new()
        };
        Self {
            inline: std::array::from_fn(|_| empty()),
            spill,
            length,
        }
    }

    /// All places.
    pub fn all(&self) -> &[T] {
        if self.length > N {
            &self.spill
        } else {
            &self.inline[..self.length]
        }
    }

    /// All places.
    pub fn all_mut(&mut self) -> &mut [T] {
        if self.length > N {
            &mut self.spill
        } else {
            &mut self.inline[..self.length]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_the_limit() {
        for length in 0..6 {
            let mut slots = Slots::<usize, 3>::new(length, || 7);
            slots
                .all_mut()
                .iter_mut()
                .enumerate()
                .for_each(|(i, s)| *s += i);
            let expected: Vec<_> = (7..7 + length).collect();
            assert_eq!(slots.all(), expected);
        }
    }
}
