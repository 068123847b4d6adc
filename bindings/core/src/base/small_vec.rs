//! A vector whose first elements live inside it, so that a call with few operands does not allocate.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr;

/// A growable list that holds up to `N` elements without an allocation.
///
/// It dereferences to a slice. Elements move to the heap once, when the list outgrows `N`.
pub struct SmallVec<T, const N: usize> {
    // `inline[..len]` is initialised while `heap` is `None`; unused once `heap` is `Some`.
    inline: [MaybeUninit<T>; N],
    len: usize,
    heap: Option<Vec<T>>,
}

impl<T, const N: usize> SmallVec<T, N> {
    /// Returns an empty list.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self {
            inline: [const { MaybeUninit::uninit() }; N],
            len: 0,
            heap: None,
        }
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, value: T) {
        if let Some(heap) = &mut self.heap {
            heap.push(value);
        } else if self.len < N {
            self.inline[self.len].write(value);
            self.len += 1;
        } else {
            self.spill().push(value);
        }
    }

    /// Appends copies of elements.
    #[inline]
    pub fn extend_from_slice(&mut self, elements: &[T])
    where
        T: Copy,
    {
        if self.heap.is_some() || elements.len() > N - self.len {
            return self.extend(elements.iter().copied());
        }
        let room = self.inline[self.len..].as_mut_ptr().cast::<T>();
        // SAFETY: there is room for so many elements, and nobody else refers to this list.
        unsafe { ptr::copy_nonoverlapping(elements.as_ptr(), room, elements.len()) };
        self.len += elements.len();
    }

    #[cold]
    fn spill(&mut self) -> &mut Vec<T> {
        let mut heap = Vec::with_capacity(2 * N + 1);
        let len = std::mem::take(&mut self.len);
        // SAFETY: the first `len` elements are initialised, `heap` has room for them, and `len` is
        // zero from here on, so that each has one owner.
        unsafe {
            ptr::copy_nonoverlapping(self.inline.as_ptr().cast::<T>(), heap.as_mut_ptr(), len);
            heap.set_len(len);
        }
        self.heap.insert(heap)
    }

    /// Drops the elements past a length.
    pub fn truncate(&mut self, len: usize) {
        if let Some(heap) = &mut self.heap {
            return heap.truncate(len);
        }
        while self.len > len {
            self.len -= 1;
            // SAFETY: the element was within the length, and is not any more.
            unsafe { self.inline[self.len].assume_init_drop() };
        }
    }

    /// Moves the elements into a `Vec`.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.into_iter().collect()
    }
}

impl<T, const N: usize> Drop for SmallVec<T, N> {
    #[inline]
    fn drop(&mut self) {
        if self.heap.is_none() && self.len > 0 {
            let live =
                ptr::slice_from_raw_parts_mut(self.inline.as_mut_ptr().cast::<T>(), self.len);
            self.len = 0;
            // SAFETY: without a heap the first `len` elements are initialised; they are dropped once.
            unsafe { ptr::drop_in_place(live) };
        }
    }
}

impl<T, const N: usize> Deref for SmallVec<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.heap {
            Some(heap) => heap,
            // SAFETY: without a heap the first `len` elements are initialised.
            None => unsafe { std::slice::from_raw_parts(self.inline.as_ptr().cast(), self.len) },
        }
    }
}

impl<T, const N: usize> DerefMut for SmallVec<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.heap {
            Some(heap) => heap,
            // SAFETY: without a heap the first `len` elements are initialised, and `self` is unique.
            None => unsafe {
                std::slice::from_raw_parts_mut(self.inline.as_mut_ptr().cast(), self.len)
            },
        }
    }
}

impl<T, const N: usize> Default for SmallVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone, const N: usize> Clone for SmallVec<T, N> {
    fn clone(&self) -> Self {
        self.iter().cloned().collect()
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for SmallVec<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T, const N: usize> Extend<T> for SmallVec<T, N> {
    #[inline]
    fn extend<I: IntoIterator<Item = T>>(&mut self, iter: I) {
        let mut iter = iter.into_iter();
        if self.heap.is_none() {
            while self.len < N {
                let Some(value) = iter.next() else { return };
                self.inline[self.len].write(value);
                self.len += 1;
            }
        }
        for value in iter {
            self.push(value);
        }
    }
}

impl<T, const N: usize> FromIterator<T> for SmallVec<T, N> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut list = Self::new();
        list.extend(iter);
        list
    }
}

/// The elements of a [`SmallVec`], by value.
pub struct IntoIter<T, const N: usize> {
    // Elements `next..len` of `inline` are owned while `heap` is `None`.
    inline: [MaybeUninit<T>; N],
    next: usize,
    len: usize,
    heap: Option<std::vec::IntoIter<T>>,
}

impl<T, const N: usize> IntoIterator for SmallVec<T, N> {
    type Item = T;
    type IntoIter = IntoIter<T, N>;

    #[inline]
    fn into_iter(self) -> IntoIter<T, N> {
        let mut list = ManuallyDrop::new(self);
        let heap = list.heap.take().map(Vec::into_iter);
        let len = if heap.is_some() { 0 } else { list.len };
        IntoIter {
            // SAFETY: the array is moved out of a value that is never used or dropped again.
            inline: unsafe { ptr::read(&raw const list.inline) },
            next: 0,
            len,
            heap,
        }
    }
}

impl<T, const N: usize> Iterator for IntoIter<T, N> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if let Some(heap) = &mut self.heap {
            return heap.next();
        }
        if self.next == self.len {
            return None;
        }
        let index = self.next;
        self.next += 1;
        // SAFETY: `index` was in `next..len`, and is not any more.
        Some(unsafe { self.inline[index].assume_init_read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.heap {
            Some(heap) => heap.len(),
            None => self.len - self.next,
        };
        (len, Some(len))
    }
}

impl<T, const N: usize> ExactSizeIterator for IntoIter<T, N> {}

impl<T, const N: usize> Drop for IntoIter<T, N> {
    #[inline]
    fn drop(&mut self) {
        if self.heap.is_none() {
            self.for_each(drop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SmallVec;
    use std::rc::Rc;

    #[test]
    fn owns_each_element_once() {
        for count in 0..9 {
            for taken in 0..=count {
                let witness = Rc::new(());
                let list: SmallVec<Rc<()>, 4> = (0..count).map(|_| Rc::clone(&witness)).collect();
                assert_eq!(list.len(), count);
                let copy = list.clone();
                let mut iter = list.into_iter();
                for _ in 0..taken {
                    assert!(iter.next().is_some());
                }
                assert_eq!(iter.len(), count - taken);
                assert_eq!(Rc::strong_count(&witness), 1 + 2 * count - taken);
                drop(iter);
                drop(copy);
                assert_eq!(Rc::strong_count(&witness), 1);
            }
        }
    }

    #[test]
    fn keeps_order_across_the_spill() {
        let mut list: SmallVec<usize, 3> = SmallVec::new();
        for value in 0..10 {
            list.push(value);
            assert_eq!(list.last(), Some(&value));
        }
        list[4] = 40;
        assert_eq!(list.into_vec(), [0, 1, 2, 3, 40, 5, 6, 7, 8, 9]);
    }
}
