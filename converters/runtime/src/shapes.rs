//! Tensors of the caller with their shapes, for models that leave dimensions open.
//!
//! What depends on the open dimensions, such as the places of tensors in memory, is computed anew
//! for each call, by a checked [`Size`].

use core::ops::{Add, Mul, Sub};
#[cfg(feature = "std")]
use std::vec::Vec;

#[cfg(feature = "std")]
use crate::bytes::filled;
use crate::error::{Error, Result, Wanted};
use crate::ports::deliver_words;
#[cfg(feature = "std")]
use crate::ports::word;

/// The elements of an input, row-major, with its shape.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T, const RANK: usize> {
    /// The elements.
    pub data: &'a [T],
    /// How many there are along each axis.
    pub shape: [usize; RANK],
}

impl<'a, T, const RANK: usize> View<'a, T, RANK> {
    /// Elements with a shape; a call refuses one that does not have as many.
    #[must_use]
    pub const fn new(data: &'a [T], shape: [usize; RANK]) -> Self {
        Self { data, shape }
    }
}

/// The elements of an output, row-major, with its shape, in memory for as many as there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held<T, const RANK: usize, const MOST: usize> {
    elements: [T; MOST],
    /// How many there are along each axis.
    pub shape: [usize; RANK],
}

impl<T, const RANK: usize, const MOST: usize> Held<T, RANK, MOST> {
    /// The most elements.
    pub const MOST: usize = MOST;

    /// Memory in which no element is yet.
    #[must_use]
    pub const fn new(value: T) -> Self
    where
        T: Copy,
    {
        Self {
            elements: [value; MOST],
            shape: [0; RANK],
        }
    }

    /// The elements.
    #[must_use]
    pub fn data(&self) -> &[T] {
        let len = product(&self.shape).unwrap_or(0).min(MOST);
        self.elements.get(..len).unwrap_or_default()
    }

    /// Takes the elements of a call.
    ///
    /// # Errors
    /// [`Error::Output`] if there are more than it has memory for.
    pub fn take(&mut self, name: &'static str, from: &[T], shape: [usize; RANK]) -> Result<()>
    where
        T: Copy,
    {
        self.room(name, from.len())?.copy_from_slice(from);
        self.shape = shape;
        Ok(())
    }

    fn room(&mut self, name: &'static str, len: usize) -> Result<&mut [T]> {
        self.elements.get_mut(..len).ok_or(Error::Output {
            name,
            found: MOST,
            expected: len,
        })
    }
}

impl<const RANK: usize, const MOST: usize> Held<bool, RANK, MOST> {
    /// As [`Held::take`], for truth values.
    ///
    /// # Errors
    /// As [`Held::take`].
    pub fn take_bools(
        &mut self,
        name: &'static str,
        from: &[u8],
        shape: [usize; RANK],
    ) -> Result<()> {
        let room = self.room(name, from.len())?;
        for (to, from) in room.iter_mut().zip(from) {
            *to = *from != 0;
        }
        self.shape = shape;
        Ok(())
    }
}

impl<const RANK: usize, const MOST: usize> Held<&'static str, RANK, MOST> {
    /// As [`Held::take`], for words at certain places of a list.
    ///
    /// # Errors
    /// As [`Held::take`]; [`Error::Plan`] if the list has no such place.
    pub fn take_words(
        &mut self,
        name: &'static str,
        (words, from): (&'static [&'static str], &[i32]),
        shape: [usize; RANK],
    ) -> Result<()> {
        deliver_words(name, (words, from), self.room(name, from.len())?)?;
        self.shape = shape;
        Ok(())
    }
}

/// The elements of an output, row-major, with its shape.
#[cfg(feature = "std")]
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T, const RANK: usize> {
    /// The elements.
    pub data: Vec<T>,
    /// How many there are along each axis.
    pub shape: [usize; RANK],
}

#[cfg(feature = "std")]
impl<T: Clone, const RANK: usize> Array<T, RANK> {
    /// An array of one value.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is no memory for it.
    pub fn filled(value: T, shape: [usize; RANK]) -> Result<Self> {
        let len = product(&shape).ok_or(Error::Memory { bytes: usize::MAX })?;
        let data = filled(value, len)?;
        Ok(Self { data, shape })
    }
}

#[cfg(feature = "std")]
impl<T, const RANK: usize> Array<T, RANK> {
    /// Takes as many elements as a call has counted, in the memory that it has.
    ///
    /// # Errors
    /// [`Error::Output`] if they don't fit in its memory.
    pub fn take(&mut self, name: &'static str, from: &[T], shape: [usize; RANK]) -> Result<()>
    where
        T: Copy,
    {
        self.take_all(name, from.iter().copied(), shape)
    }

    fn take_all(
        &mut self,
        name: &'static str,
        from: impl ExactSizeIterator<Item = T>,
        shape: [usize; RANK],
    ) -> Result<()> {
        if from.len() > self.data.capacity() {
            return Err(Error::Output {
                name,
                found: self.data.capacity(),
                expected: from.len(),
            });
        }
        self.data.clear();
        self.data.extend(from);
        self.shape = shape;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl<const RANK: usize> Array<bool, RANK> {
    /// As [`Array::take`], for truth values.
    ///
    /// # Errors
    /// As [`Array::take`].
    pub fn take_bools(
        &mut self,
        name: &'static str,
        from: &[u8],
        shape: [usize; RANK],
    ) -> Result<()> {
        self.take_all(name, from.iter().map(|&x| x != 0), shape)
    }
}

#[cfg(feature = "std")]
impl<const RANK: usize> Array<&'static str, RANK> {
    /// As [`Array::take`], for words at certain places of a list.
    ///
    /// # Errors
    /// As [`Array::take`]; [`Error::Plan`] if the list has no such place.
    pub fn take_words(
        &mut self,
        name: &'static str,
        (words, from): (&'static [&'static str], &[i32]),
        shape: [usize; RANK],
    ) -> Result<()> {
        for &place in from {
            word(words, place)?;
        }
        let found = from.iter().map(|&at| word(words, at).unwrap_or_default());
        self.take_all(name, found, shape)
    }
}

/// What an axis of an input is for the model.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// So many elements.
    Fixed(usize),
    /// The batch, or an open dimension of this number.
    Open(usize),
    /// An open dimension of this number, which is a multiple of the other.
    Multiple(usize, usize),
    /// What [`agree`] says once the open dimensions are known.
    Computed,
}

/// The open dimensions of a call, as the inputs say them.
#[derive(Clone, Copy, Debug)]
pub struct Open<const N: usize> {
    /// The size, and the input and the axis that said it first.
    found: [Option<(usize, &'static str, usize)>; N],
    /// How large each has to be at least.
    least: [usize; N],
    /// How large each may be at most.
    most: [usize; N],
}

impl<const N: usize> Open<N> {
    /// Dimensions that are at least this large.
    #[must_use]
    pub const fn new(least: [usize; N]) -> Self {
        Self::within(least, [usize::MAX; N])
    }

    /// Dimensions between these bounds.
    #[must_use]
    pub const fn within(least: [usize; N], most: [usize; N]) -> Self {
        let found = [None; N];
        Self { found, least, most }
    }

    /// Takes the dimensions of an input.
    ///
    /// # Errors
    /// [`Error::Shape`] if an axis is not as the model or another input has it, [`Error::Elements`]
    /// if the input has more or fewer elements than its shape says.
    pub fn learn<T, const RANK: usize>(
        &mut self,
        input: &'static str,
        x: &View<'_, T, RANK>,
        axes: [Extent; RANK],
    ) -> Result<()> {
        for (axis, (&size, kind)) in x.shape.iter().zip(axes).enumerate() {
            let wanted = match kind {
                Extent::Fixed(expected) => (size != expected).then_some(Wanted::Exactly(expected)),
                Extent::Open(number) => self.said(number, size, input, axis),
                Extent::Multiple(number, of) => self
                    .said(number, size, input, axis)
                    .or_else(|| (!size.is_multiple_of(of)).then_some(Wanted::MultipleOf(of))),
                Extent::Computed => None,
            };
            if let Some(wanted) = wanted {
                return Err(Error::Shape {
                    input,
                    axis,
                    found: size,
                    wanted,
                });
            }
        }
        let expected = product(&x.shape);
        if expected == Some(x.data.len()) {
            return Ok(());
        }
        Err(Error::Elements {
            input,
            found: x.data.len(),
            expected: expected.unwrap_or(usize::MAX),
        })
    }

    /// Takes a dimension that the texts of an input decide; `axis` is the one after all of its own.
    ///
    /// # Errors
    /// [`Error::Shape`] if it is too small or too large, or not what another input says.
    pub fn told(
        &mut self,
        number: usize,
        size: usize,
        (input, axis): (&'static str, usize),
    ) -> Result<()> {
        match self.said(number, size, input, axis) {
            None => Ok(()),
            Some(wanted) => Err(Error::Shape {
                input,
                axis,
                found: size,
                wanted,
            }),
        }
    }

    fn said(
        &mut self,
        number: usize,
        size: usize,
        input: &'static str,
        axis: usize,
    ) -> Option<Wanted> {
        let least = self.least.get(number).copied().unwrap_or(0);
        if size < least {
            return Some(Wanted::AtLeast(least));
        }
        let most = self.most.get(number).copied().unwrap_or(usize::MAX);
        if size > most {
            return Some(Wanted::AtMost(most));
        }
        let known = self.found.get_mut(number)?;
        match *known {
            Some((expected, input, axis)) => (expected != size).then_some(Wanted::As {
                size: expected,
                input,
                axis,
            }),
            None => {
                *known = Some((size, input, axis));
                None
            }
        }
    }

    /// The sizes; 1 for what no input has.
    #[must_use]
    pub fn sizes(&self) -> [usize; N] {
        self.found.map(|found| found.map_or(1, |(size, ..)| size))
    }
}

/// Checks an axis whose size is computed of open dimensions, as `of` says.
///
/// # Errors
/// [`Error::Shape`] if it has another size, [`Error::Small`] or [`Error::Memory`] if that is none.
pub fn agree<T, const RANK: usize>(
    input: &'static str,
    x: &View<'_, T, RANK>,
    axis: usize,
    (size, of): (Size, &'static str),
) -> Result<()> {
    let size = size.at_least(0, of)?;
    let found = x.shape.get(axis).copied().unwrap_or(1);
    if found == size {
        return Ok(());
    }
    Err(Error::Shape {
        input,
        axis,
        found,
        wanted: Wanted::Computed { size, of },
    })
}

/// A number that is computed of the open dimensions; nothing once it is too large.
#[derive(Clone, Copy, Debug)]
pub struct Size(Option<i128>);

impl Size {
    /// A size of the call.
    #[must_use]
    pub fn of(size: usize) -> Self {
        Self(i128::try_from(size).ok())
    }

    /// The quotient, rounded down.
    #[must_use]
    pub fn over(self, by: i128) -> Self {
        Self(self.0.and_then(|x| x.checked_div_euclid(by)))
    }

    /// The larger one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0.zip(other.0).map(|(a, b)| a.max(b)))
    }

    /// The number of bytes or elements of memory that it is.
    ///
    /// # Errors
    /// As [`Size::at_least`].
    pub fn bytes(self) -> Result<usize> {
        self.at_least(0, "the memory of a call")
    }

    /// The number.
    ///
    /// # Errors
    /// [`Error::Memory`] if it is too large, [`Error::Small`] with `what` if it is below `least`.
    pub fn at_least(self, least: i128, what: &'static str) -> Result<usize> {
        let size = self.0.ok_or(Error::Memory { bytes: usize::MAX })?;
        if size < least {
            return Err(Error::Small { what });
        }
        usize::try_from(size).map_err(|_| Error::Memory { bytes: usize::MAX })
    }
}

impl From<i128> for Size {
    fn from(size: i128) -> Self {
        Self(Some(size))
    }
}

impl<T: Into<Size>> Add<T> for Size {
    type Output = Self;

    fn add(self, other: T) -> Self {
        Self(
            self.0
                .zip(other.into().0)
                .and_then(|(a, b)| a.checked_add(b)),
        )
    }
}

impl<T: Into<Size>> Sub<T> for Size {
    type Output = Self;

    fn sub(self, other: T) -> Self {
        Self(
            self.0
                .zip(other.into().0)
                .and_then(|(a, b)| a.checked_sub(b)),
        )
    }
}

impl<T: Into<Size>> Mul<T> for Size {
    type Output = Self;

    fn mul(self, other: T) -> Self {
        Self(
            self.0
                .zip(other.into().0)
                .and_then(|(a, b)| a.checked_mul(b)),
        )
    }
}

fn product(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1_usize, |all, &size| all.checked_mul(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Open<2> {
        Open::new([0, 1])
    }

    fn of(data: &[i32], shape: [usize; 2]) -> View<'_, i32, 2> {
        View::new(data, shape)
    }

    const AXES: [Extent; 2] = [Extent::Open(0), Extent::Open(1)];

    #[test]
    fn words_are_taken_with_their_shape() {
        static WORDS: [&str; 2] = ["a", "é"];
        let mut array = Array::filled("", [1, 2]).unwrap();
        array.take_words("y", (&WORDS, &[1]), [1, 1]).unwrap();
        assert_eq!((array.data.as_slice(), array.shape), (&["é"][..], [1, 1]));
        assert!(array.take_words("y", (&WORDS, &[0, 2]), [1, 2]).is_err());
        assert!(array.take_words("y", (&WORDS, &[0; 3]), [1, 3]).is_err());
        assert_eq!(array.data, ["é"]);
    }

    #[test]
    fn inputs_say_the_dimensions() {
        let mut open = open();
        open.learn("a", &of(&[1; 6], [2, 3]), AXES).unwrap();
        open.learn(
            "b",
            &of(&[1; 4], [2, 2]),
            [Extent::Open(0), Extent::Fixed(2)],
        )
        .unwrap();
        assert_eq!(open.sizes(), [2, 3]);
    }

    #[test]
    fn texts_say_a_dimension() {
        let mut open = Open::within([0, 1], [usize::MAX, 3]);
        for (size, wanted) in [(0, Wanted::AtLeast(1)), (4, Wanted::AtMost(3))] {
            let error = open.told(1, size, ("x", 2)).unwrap_err();
            assert!(
                matches!(error, Error::Shape { axis: 2, found, wanted: w, .. }
                if found == size && w == wanted)
            );
        }
        open.told(1, 3, ("x", 2)).unwrap();
        assert_eq!(open.sizes(), [1, 3]);
    }

    #[test]
    fn a_contradiction_names_both_inputs() {
        let mut open = open();
        open.learn("a", &of(&[1; 6], [2, 3]), AXES).unwrap();
        let error = open.learn("b", &of(&[1; 8], [2, 4]), AXES).unwrap_err();
        let text = "axis 1 of input b has 4 elements, expected 3 as axis 1 of input a";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_sum_is_checked_once_its_parts_are_known() {
        let mut open = open();
        let x = of(&[1; 6], [2, 3]);
        open.learn("a", &x, [Extent::Open(0), Extent::Computed])
            .unwrap();
        assert_eq!(open.sizes(), [2, 1]);
        let sum = |size| agree("a", &x, 1, (Size::of(size) + 1, "past + 1"));
        assert!(sum(2).is_ok());
        let text = "axis 1 of input a has 3 elements, expected 4, which is past + 1";
        assert_eq!(sum(3).unwrap_err().to_string(), text);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let zero = open().learn("a", &of(&[], [2, 0]), AXES).unwrap_err();
        let text = "axis 1 of input a has 0 elements, expected at least 1";
        assert_eq!(zero.to_string(), text);
        let fixed = open().learn(
            "a",
            &of(&[1; 6], [2, 3]),
            [Extent::Open(0), Extent::Fixed(4)],
        );
        let text = "axis 1 of input a has 3 elements, expected 4";
        assert_eq!(fixed.unwrap_err().to_string(), text);
        let short = open().learn("a", &of(&[1; 5], [2, 3]), AXES).unwrap_err();
        let text = "input a has 5 elements, expected 6 for its shape";
        assert_eq!(short.to_string(), text);
        let huge = open().learn("a", &of(&[1; 5], [usize::MAX, 3]), AXES);
        assert!(matches!(huge, Err(Error::Elements { .. })));
        assert!(open().learn("a", &of(&[], [0, 3]), AXES).is_ok());
    }

    #[test]
    fn bounds_are_kept() {
        let open = || Open::within([0, 1], [usize::MAX, 3]);
        assert!(open().learn("a", &of(&[1; 6], [2, 3]), AXES).is_ok());
        let error = open().learn("a", &of(&[1; 8], [2, 4]), AXES).unwrap_err();
        let text = "axis 1 of input a has 4 elements, expected at most 3";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn a_result_is_held_as_far_as_there_is_memory() {
        let mut held = Held::<i32, 2, 6>::new(7);
        assert!(held.data().is_empty());
        held.take("y", &[1, 2, 3, 4], [2, 2]).unwrap();
        assert_eq!((held.data(), held.shape), (&[1, 2, 3, 4][..], [2, 2]));
        let error = held.take("y", &[0; 7], [7, 1]).unwrap_err().to_string();
        assert_eq!(error, "output y has room for 6 elements, expected 7");
        assert_eq!(held.data(), [1, 2, 3, 4]);
        let mut bools = Held::<bool, 1, 3>::new(false);
        bools.take_bools("y", &[0, 1], [2]).unwrap();
        assert_eq!(bools.data(), [false, true]);
    }

    #[test]
    fn sizes_are_checked() {
        let steps = Size::of(7);
        assert_eq!((steps * 2 - 4).at_least(1, "x").unwrap(), 10);
        assert_eq!((steps - 9).over(2).0, Some(-1));
        assert_eq!(steps.or(Size::of(9)).0, Some(9));
        assert!(matches!(
            (steps - 7).at_least(1, "x"),
            Err(Error::Small { what: "x" })
        ));
        let huge = Size::of(usize::MAX);
        assert!(matches!(
            (huge * huge * huge).at_least(0, "x"),
            Err(Error::Memory { .. })
        ));
        assert!(matches!(
            (huge * 2).at_least(0, "x"),
            Err(Error::Memory { .. })
        ));
    }
}
