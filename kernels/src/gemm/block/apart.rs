//! The ways to multiply some rows, each as a function of its own.

use core::ops::Range;

use super::panels::{Columns, Panel};
use super::piece::Piece;
use super::strip::{Turn, rest_columns, strip_columns};
use super::tiling::MAX_ROWS;
use super::{B, columns, in_place, narrow};
use crate::base::level::Level;
use crate::gemm::scale::Scale;
use crate::gemm::source::{Position, Source};
use crate::gemm::tile::{self, Store, Strip};
use crate::simd::blocks::Block;
use crate::simd::{Body, Simd};

/// Rows of A, some panels of B, which of its rows, and where the products go.
pub(super) struct Task<'t, 'a, 'c> {
    source: &'t Source<'a>,
    b: &'t Columns<'a, 't>,
    pieces: (Piece, Piece),
    block: &'t mut Block<'c, f32>,
    store: &'t Store<'t>,
}

impl<'t, 'a, 'c> Task<'t, 'a, 'c> {
    #[inline(always)]
    pub(super) fn new(
        source: &'t Source<'a>,
        b: &'t Columns<'a, 't>,
        pieces: (Piece, Piece),
        block: &'t mut Block<'c, f32>,
        store: &'t Store<'t>,
    ) -> Self {
        Self {
            source,
            b,
            pieces,
            block,
            store,
        }
    }
}

/// [`super::rows`]
pub(super) struct Walk<'t, 'a, 'c> {
    pub source: &'t Source<'a>,
    /// The right-hand side, its columns, and the level that it is packed for.
    pub b: (&'t B<'a>, usize, Level),
    pub block: &'t mut Block<'c, f32>,
    pub store: Store<'t>,
    /// For the rows of a strip, or none.
    pub memory: &'t mut [[f32; tile::STRIP]],
}

impl Body for Walk<'_, '_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        super::rows(s, self);
    }
}

/// [`in_place::matrix_columns`]
pub(super) struct InPlace<'t, 'a, 'c>(pub Task<'t, 'a, 'c>);

impl Body for InPlace<'_, '_, '_> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let of = self.0;
        in_place::matrix_columns(s, of.source, of.b, of.pieces, of.block, of.store)
    }
}

/// [`in_place::scaled_columns`]
pub(super) struct Scaled<'t, 'a, 'c> {
    pub of: Task<'t, 'a, 'c>,
    pub scale: &'t Scale<'a>,
    pub memory: &'t mut Strip<MAX_ROWS>,
}

impl Body for Scaled<'_, '_, '_> {
    type Out = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let Self { of, scale, memory } = self;
        let source = (of.source, scale);
        in_place::scaled_columns(s, source, of.b, of.pieces, memory, of.block, of.store)
    }
}

/// [`narrow::strips`]
pub(super) struct Narrow<'t, 'a, 'c, const STEP: usize> {
    pub of: Task<'t, 'a, 'c>,
    pub line: (&'t Position, usize),
    pub memory: &'t mut Strip<MAX_ROWS>,
}

impl<const STEP: usize> Body for Narrow<'_, '_, '_, STEP> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { of, line, memory } = self;
        narrow::strips::<S, STEP>(
            s, of.source, of.b, of.pieces, line, memory, of.block, of.store,
        );
    }
}

/// [`strip_columns`]
pub(super) struct Copied<'t, 'a, 'c> {
    pub of: Task<'t, 'a, 'c>,
    pub strip: Turn<'t>,
    pub memory: &'t mut Strip<MAX_ROWS>,
}

impl Body for Copied<'_, '_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { of, strip, memory } = self;
        strip_columns(
            s, of.source, of.b, of.pieces, strip, memory, of.block, of.store,
        );
    }
}

/// [`rest_columns`]
pub(super) struct Rest<'t, 'a, 'c, const PARTIAL: bool> {
    pub of: Task<'t, 'a, 'c>,
    pub strip: &'t [Position],
}

impl<const PARTIAL: bool> Body for Rest<'_, '_, '_, PARTIAL> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { of, strip } = self;
        rest_columns::<S, PARTIAL>(s, of.source, of.b, of.pieces, strip, of.block, of.store);
    }
}

/// [`columns::rows_panel`]
pub(super) struct ColumnsPanel<'t, 'a, 'c> {
    pub a: (&'t [f32], usize),
    pub b: &'t Panel<'a>,
    pub rows_of_b: (usize, usize),
    pub rows: Range<usize>,
    pub ahead: (&'t [f32], usize),
    pub block: &'t mut Block<'c, f32>,
    pub store: &'t Store<'t>,
}

impl Body for ColumnsPanel<'_, '_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        columns::rows_panel(s, self);
    }
}
