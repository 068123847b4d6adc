//! How a text is taken apart before bytes are merged: not at all.

/// Gives the pieces of a text.
pub(crate) fn pieces(text: &str, mut give: impl FnMut(&str)) {
    give(text);
}
