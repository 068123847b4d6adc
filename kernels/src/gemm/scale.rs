//! What a product does to its left-hand side first.

/// What becomes of an element of A before it is multiplied: `x * scale + shift`, kept within
/// bounds.
#[derive(Clone, Copy, Debug)]
pub struct Scale<'a> {
    /// A factor for each column of A.
    pub scale: &'a [f32],
    /// A term for each column of A.
    pub shift: Option<&'a [f32]>,
    /// Bounds of the result; NaN passes.
    pub clamp: Option<(f32, f32)>,
}

impl<'a> Scale<'a> {
    /// That of the columns from `from` on.
    #[inline(always)]
    pub(crate) fn columns_on(&self, from: usize) -> Self {
        let on = |x: &'a [f32]| x.get(from..).unwrap_or(&[]);
        Self {
            scale: on(self.scale),
            shift: self.shift.map(on),
            clamp: self.clamp,
        }
    }
}
