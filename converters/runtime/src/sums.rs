//! Two sums that tell whether bytes are still those that were written.

/// Bytes that are summed side by side.
const LINE: usize = 32;
const WORDS: usize = LINE / 4;

/// The sum of the words of some bytes, and the sum of that sum after each word.
///
/// A word is 32 bits, little-endian; sums are modulo 2^64, so that words never cancel each other out
/// in the first one, and the second one tells places up to 2^32 words apart. So one or two bits that
/// changed change one of them, and so does any change of a single word.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Sums of every eighth word, from each of the first eight on.
    plain: [u64; WORDS],
    /// What `plain` was after each line, summed.
    weighted: [u64; WORDS],
}

impl Sums {
    /// Adds bytes, as if zeros followed up to a multiple of 32: more may be added after such a
    /// multiple only.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let (lines, rest) = bytes.as_chunks::<LINE>();
        // Copies, so that they are in registers.
        let (mut plain, mut weighted) = (self.plain, self.weighted);
        for line in lines {
            let (words, _) = line.as_chunks::<4>();
            for ((plain, weighted), word) in plain.iter_mut().zip(&mut weighted).zip(words) {
                *plain = plain.wrapping_add(u64::from(u32::from_le_bytes(*word)));
                *weighted = weighted.wrapping_add(*plain);
            }
        }
        (self.plain, self.weighted) = (plain, weighted);
        if !rest.is_empty() {
            let mut line = [0; LINE];
            line[..rest.len()].copy_from_slice(rest);
            self.add(&line);
        }
    }

    /// The two sums.
    #[must_use]
    pub fn finish(&self) -> [u64; 2] {
        let (mut first, mut second) = (0_u64, 0_u64);
        for (at, (plain, weighted)) in self.plain.iter().zip(&self.weighted).enumerate() {
            first = first.wrapping_add(*plain);
            // The words of a line count once for each line up to the end, and once less for each
            // word before them.
            second = second
                .wrapping_add(weighted.wrapping_mul(WORDS as u64))
                .wrapping_sub(plain.wrapping_mul(at as u64));
        }
        [first, second]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len as u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect()
    }

    fn of(bytes: &[u8]) -> [u64; 2] {
        let mut sums = Sums::default();
        sums.add(bytes);
        sums.finish()
    }

    /// By their definition.
    fn defined(bytes: &[u8]) -> [u64; 2] {
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(LINE), 0);
        let [mut first, mut second] = [0_u64; 2];
        for word in padded.chunks(4) {
            first += u64::from(u32::from_le_bytes(word.try_into().unwrap()));
            second += first;
        }
        [first, second]
    }

    #[test]
    fn they_are_what_they_are_defined_to_be() {
        for len in (0..100).chain([1000, 4096]) {
            assert_eq!(of(&bytes(len)), defined(&bytes(len)), "{len}");
        }
    }

    #[test]
    fn bytes_may_come_in_parts() {
        let all = bytes(1000);
        for part in [32, 64, 96, 512] {
            let mut sums = Sums::default();
            all.chunks(part).for_each(|part| sums.add(part));
            assert_eq!(sums.finish(), of(&all), "{part}");
        }
    }

    #[test]
    fn one_or_two_other_bits_are_noticed() {
        let mut all = bytes(160);
        let whole = of(&all);
        let flip = |all: &mut [u8], bit: usize| all[bit / 8] ^= 1 << (bit % 8);
        for one in 0..8 * all.len() {
            flip(&mut all, one);
            assert_ne!(of(&all), whole, "{one}");
            for two in one + 1..8 * all.len() {
                flip(&mut all, two);
                assert_ne!(of(&all), whole, "{one} {two}");
                flip(&mut all, two);
            }
            flip(&mut all, one);
        }
    }

    #[test]
    fn words_that_changed_places_are_noticed() {
        let (mut all, whole) = (bytes(128), of(&bytes(128)));
        for one in 0..32 {
            for two in 0..one {
                if all[4 * one..4 * one + 4] == all[4 * two..4 * two + 4] {
                    continue;
                }
                (0..4).for_each(|i| all.swap(4 * one + i, 4 * two + i));
                assert_ne!(of(&all), whole, "{one} {two}");
                (0..4).for_each(|i| all.swap(4 * one + i, 4 * two + i));
            }
        }
    }
}
