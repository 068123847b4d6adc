//! Classes of characters, as ranges that are searched.

/// Whether a character is in one of some ranges, which are in order.
pub(crate) fn is_in(ranges: &[(u32, u32)], c: char) -> bool {
    let code = u32::from(c);
    let after = ranges.partition_point(|range| range.0 <= code);
    after > 0 && code <= ranges[after - 1].1
}
