//! Integers of seven bits a byte, the lowest first, as messages and the tables of checkpoints have them.

/// Appends an integer.
pub fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes an integer from the front of `bytes`.
///
/// # Errors
/// What is wrong: the bytes end within the integer, or it has more than 64 bits.
pub fn take_varint(bytes: &mut &[u8]) -> std::result::Result<u64, &'static str> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("an integer is cut off")?;
        *bytes = rest;
        // The tenth byte has the last bit.
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("an integer has more than 64 bits")
}
