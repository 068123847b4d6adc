//! Base64 of RFC 4648, with padding.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of each letter; 255 for every other byte.
const VALUES: [u8; 256] = {
    let mut values = [255; 256];
    let mut at = 0;
    while at < 64 {
        values[LETTERS[at] as usize] = at as u8;
        at += 1;
    }
    values
};

/// Writes bytes as letters.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            match place <= group.len() {
                true => text.push(LETTERS[(bits >> (18 - 6 * place) & 63) as usize].into()),
                false => text.push('='),
            }
        }
    }
    text
}

/// Reads letters; `None` for what is not base64 with its padding.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|&&b| b == b'=').count();
    let letters = &text[..text.len() - padding];
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in letters.chunks(4) {
        let mut bits = 0_u32;
        for &letter in group {
            let value = VALUES[usize::from(letter)];
            if value == 255 {
                return None;
            }
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        let [_, three @ ..] = bits.to_be_bytes();
        let (kept, dropped) = three.split_at(group.len() - 1);
        // Bits behind the last byte would be lost.
        if dropped.iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        for length in [254, 255, 256] {
            assert_eq!(decode(&encode(&all[..length])).unwrap(), &all[..length]);
        }
    }

    #[test]
    fn damaged_text_is_refused() {
        for text in ["Z", "Zg", "Zg=", "Z===", "====", "Zm9v!A==", "Zh==", "Z=g="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
