//! What a model of `SentencePiece` replaces in a text before it is taken apart.

/// A trie in the form of the library Darts-clone, and the texts that its values point at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charsmap {
    units: &'static [u8],
    texts: &'static [u8],
}

impl Charsmap {
    /// Reads the bytes of a trie, whose count comes first, and of its texts.
    pub(crate) fn new(bytes: &'static [u8]) -> Self {
        let (count, rest) = bytes.split_at(bytes.len().min(4));
        let count = count
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let (units, texts) = rest.split_at(rest.len().min(count));
        Self { units, texts }
    }

    /// The longest text with which bytes begin that is replaced: its length, and what it becomes.
    pub(crate) fn longest(&self, bytes: &[u8]) -> Option<(usize, &'static str)> {
        let mut found = None;
        let mut node = offset(self.unit(0)?);
        for (at, &byte) in bytes.iter().enumerate() {
            node ^= usize::from(byte);
            let Some(unit) = self.unit(node) else { break };
            // The label of a unit has its uppermost bit if the unit is a value.
            if unit & 0x8000_00FF != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            if unit >> 8 & 1 == 1 {
                found = self
                    .unit(node)
                    .map(|leaf| (at + 1, (leaf & 0x7FFF_FFFF) as usize));
            }
        }
        let (length, start) = found?;
        let text = self.texts.get(start..)?.split(|&byte| byte == 0).next()?;
        Some((length, core::str::from_utf8(text).ok()?))
    }

    fn unit(&self, place: usize) -> Option<u32> {
        let bytes = self.units.get(4 * place..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*bytes))
    }
}

fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 0x200) >> 6)) as usize
}
