//! Boxes chosen by their scores, each of which suppresses those that overlap it:
//! `NonMaxSuppressionV4` and, for one class, `CombinedNonMaxSuppression` of TensorFlow.

use crate::base::adapt::check_count;
use crate::base::error::Result;

/// Which boxes are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// A box suppresses those whose intersection with it is more than this part of their union.
    pub overlap: f32,
    /// Boxes have a higher score than this.
    pub score: f32,
    /// Of equal scores the first box comes first. Otherwise they come as they leave a binary heap
    /// in which scores alone are compared, which is TensorFlow's order for several classes.
    pub in_order: bool,
}

/// Writes the places of boxes of each group, the best score first, and -1 where there are no more.
/// A group is a row of `scores`, of `count` boxes; neighbouring groups share boxes if there are
/// fewer of these. A box is two opposite corners; one without area overlaps none.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) if `boxes` are not those of whole groups, or
/// `heap` does not hold `count` elements.
pub fn suppress(
    (boxes, scores, count): (&[f32], &[f32], usize),
    limits: Limits,
    out: &mut [i32],
    heap: &mut [f32],
) -> Result<()> {
    let Some(groups) = scores.len().checked_div(count).filter(|&groups| groups > 0) else {
        out.fill(-1);
        return Ok(());
    };
    check_count("scores", scores.len(), groups * count)?;
    check_count("scratch", heap.len().min(count), count)?;
    let owners = boxes.len() / (4 * count);
    let shared = groups.checked_div(owners).unwrap_or_default();
    check_count("boxes", boxes.len(), 4 * scores.len() / shared.max(1))?;
    let width = out.len() / groups;
    check_count("output", out.len(), groups * width)?;
    if width == 0 {
        return Ok(());
    }
    let each = scores.chunks(count).zip(out.chunks_mut(width));
    for (group, (scores, out)) in each.enumerate() {
        let boxes = &boxes[group / shared * 4 * count..][..4 * count];
        let mut heap = Heap {
            slots: heap,
            len: 0,
            scores,
            in_order: limits.in_order,
        };
        for (place, &score) in scores.iter().enumerate() {
            if score > limits.score {
                heap.push(place);
            }
        }
        choose(boxes, &mut heap, limits.overlap, out);
    }
    Ok(())
}

fn choose(boxes: &[f32], heap: &mut Heap<'_>, overlap: f32, out: &mut [i32]) {
    let corners = |place: usize| Corners::of(&boxes[4 * place..][..4]);
    let mut chosen = 0;
    while chosen < out.len() {
        let Some(place) = heap.pop() else { break };
        let candidate = corners(place);
        let hidden = out[..chosen]
            .iter()
            .any(|&other| candidate.overlap(&corners(other as usize)) > overlap);
        if !hidden {
            out[chosen] = place as i32;
            chosen += 1;
        }
    }
    out[chosen..].fill(-1);
}

fn smaller(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

fn larger(a: f32, b: f32) -> f32 {
    if a < b { b } else { a }
}

/// A box by its ends along both axes.
struct Corners {
    low: [f32; 2],
    high: [f32; 2],
    area: f32,
}

impl Corners {
    fn of(given: &[f32]) -> Self {
        let (first, second) = given.split_at(2);
        let low = [smaller(first[0], second[0]), smaller(first[1], second[1])];
        let high = [larger(first[0], second[0]), larger(first[1], second[1])];
        let area = (high[0] - low[0]) * (high[1] - low[1]);
        Self { low, high, area }
    }

    /// Which part of their union two boxes share.
    fn overlap(&self, other: &Self) -> f32 {
        if self.area <= 0.0 || other.area <= 0.0 {
            return 0.0;
        }
        let along = |axis: usize| {
            let low = larger(self.low[axis], other.low[axis]);
            larger(smaller(self.high[axis], other.high[axis]) - low, 0.0)
        };
        let common = along(0) * along(1);
        common / (self.area + other.area - common)
    }
}

/// Places of which the one with the largest score leaves first. They are kept as the bits of
/// floats, because scratch memory is of these.
struct Heap<'a> {
    slots: &'a mut [f32],
    len: usize,
    scores: &'a [f32],
    in_order: bool,
}

impl Heap<'_> {
    fn at(&self, slot: usize) -> usize {
        self.slots[slot].to_bits() as usize
    }

    fn put(&mut self, slot: usize, place: usize) {
        self.slots[slot] = f32::from_bits(place as u32);
    }

    fn is_after(&self, place: usize, other: usize) -> bool {
        let (own, best) = (self.scores[place], self.scores[other]);
        own < best || (self.in_order && own == best && place > other)
    }

    fn push(&mut self, place: usize) {
        self.len += 1;
        self.rise(self.len - 1, place);
    }

    /// Puts a place where everything on the way to the top is not after it.
    fn rise(&mut self, mut slot: usize, place: usize) {
        while slot > 0 {
            let parent = (slot - 1) / 2;
            if !self.is_after(self.at(parent), place) {
                break;
            }
            self.put(slot, self.at(parent));
            slot = parent;
        }
        self.put(slot, place);
    }

    /// The gap at the top sinks to the end of a branch, where the last place starts to rise.
    fn pop(&mut self) -> Option<usize> {
        self.len = self.len.checked_sub(1)?;
        let (best, last) = (self.at(0), self.at(self.len));
        let mut gap = 0;
        while 2 * gap + 1 < self.len {
            let (left, right) = (2 * gap + 1, 2 * gap + 2);
            let of_left = right == self.len || self.is_after(self.at(right), self.at(left));
            let child = if of_left { left } else { right };
            self.put(gap, self.at(child));
            gap = child;
        }
        if self.len > 0 {
            self.rise(gap, last);
        }
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Limits = Limits {
        overlap: 0.5,
        score: f32::NEG_INFINITY,
        in_order: true,
    };

    fn chosen<const N: usize>(boxes: &[f32], scores: &[f32], limits: Limits) -> [i32; N] {
        let (mut out, mut heap) = ([7; N], vec![0.0; scores.len()]);
        suppress((boxes, scores, scores.len()), limits, &mut out, &mut heap).unwrap();
        out
    }

    #[test]
    fn the_best_of_those_that_overlap_stays() {
        // The second is given by its other corners; the fourth has no area.
        let boxes = [
            [0.0, 0.0, 1.0, 1.0],
            [1.1, 1.0, 0.1, 0.0],
            [2.0, 2.0, 3.0, 3.0],
            [2.0, 2.0, 2.0, 3.0],
        ];
        let boxes = boxes.as_flattened();
        assert_eq!(chosen(boxes, &[0.5, 0.9, 0.1, 0.2], ALL), [1, 3, 2, -1]);
        assert_eq!(chosen(boxes, &[0.9, 0.5, 0.1, 0.2], ALL), [0, 3]);
        let strict = Limits { score: 0.1, ..ALL };
        assert_eq!(chosen(boxes, &[0.9, 0.5, 0.1, f32::NAN], strict), [0, -1]);
        let all = Limits {
            overlap: 1.0,
            ..ALL
        };
        assert_eq!(chosen(boxes, &[0.9, 0.5, 0.5, 0.5], all), [0, 1, 2, 3]);
    }

    #[test]
    fn scores_leave_in_falling_order() {
        for count in 0..70_usize {
            let scores: Vec<f32> = (0..count).map(|i| (i * 37 % 11) as f32).collect();
            for in_order in [false, true] {
                let boxes = vec![0.0; 4 * count];
                let limits = Limits { in_order, ..ALL };
                let found: [i32; 70] = chosen(&boxes, &scores, limits);
                let (found, none) = found.split_at(count);
                assert!(none.iter().all(|&place| place == -1));
                let key = |place: i32| (-scores[place as usize], if in_order { place } else { 0 });
                assert!(found.is_sorted_by(|&a, &b| key(a) <= key(b)));
                let mut places = found.to_vec();
                places.sort_unstable();
                assert!(places.iter().map(|&place| place as usize).eq(0..count));
            }
        }
    }

    #[test]
    fn groups_may_share_boxes() {
        let boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9]]
            .as_flattened()
            .repeat(2);
        let scores = [1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 1.0];
        let (mut out, mut heap) = ([0; 8], [0.0; 2]);
        suppress((&boxes, &scores, 2), ALL, &mut out, &mut heap).unwrap();
        assert_eq!(out, [1, -1, 0, -1, 1, -1, 0, -1]);
        assert!(suppress((&boxes[4..], &scores, 2), ALL, &mut out, &mut heap).is_err());
        assert!(suppress((&boxes, &scores, 2), ALL, &mut out, &mut []).is_err());
    }
}
