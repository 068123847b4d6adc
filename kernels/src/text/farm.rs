//! The fingerprint of TensorFlow's `StringToHashBucketFast`, of bytes that come one by one.
//!
//! Source: `Fingerprint64` of FarmHash, which is `farmhashna::Hash64`.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;
/// Bytes of a block; as many are held back until it is known that others follow.
const BLOCK: usize = 64;
const SEED: u64 = 81;

/// The bytes so far.
#[derive(Clone, Copy, Debug)]
pub struct Farm {
    held: [u8; 2 * BLOCK],
    count: usize,
    /// Bytes that are in the state already.
    done: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl Default for Farm {
    fn default() -> Self {
        Self::new()
    }
}

impl Farm {
    /// No bytes.
    #[must_use]
    pub const fn new() -> Self {
        let y = SEED.wrapping_mul(K1).wrapping_add(113);
        Self {
            held: [0; 2 * BLOCK],
            count: 0,
            done: 0,
            state: State {
                x: SEED.wrapping_mul(K2),
                y,
                z: mixed(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2),
                v: (0, 0),
                w: (0, 0),
            },
        }
    }

    /// Adds a byte.
    pub fn push(&mut self, byte: u8) {
        if self.count == self.held.len() {
            self.block();
            self.held.copy_within(BLOCK.., 0);
            self.count = BLOCK;
        }
        self.held[self.count] = byte;
        self.count += 1;
    }

    /// The fingerprint of all bytes.
    #[must_use]
    pub fn finish(mut self) -> u64 {
        if self.count <= BLOCK {
            return short(&self.held[..self.count]);
        }
        let len = self.done + self.count as u64;
        self.block();
        let last = self.count - BLOCK;
        let mut s = self.state;
        let mul = K1.wrapping_add((s.z & 0xff) << 1);
        s.w.0 = s.w.0.wrapping_add((len - 1) & 63);
        s.v.0 = s.v.0.wrapping_add(s.w.0);
        s.w.0 = s.w.0.wrapping_add(s.v.0);
        s.round(&self.held[last..last + BLOCK], mul, 9);
        let first = pair(s.v.0, s.w.0, mul)
            .wrapping_add(mixed(s.y).wrapping_mul(K0))
            .wrapping_add(s.z);
        pair(first, pair(s.v.1, s.w.1, mul).wrapping_add(s.x), mul)
    }

    fn block(&mut self) {
        if self.done == 0 {
            self.state.x = self.state.x.wrapping_add(word(&self.held, 0));
        }
        self.state.round(&self.held[..BLOCK], K1, 1);
        self.done += BLOCK as u64;
    }
}

impl State {
    fn round(&mut self, s: &[u8], mul: u64, weight: u64) {
        let Self { x, y, z, v, w } = *self;
        let x = x
            .wrapping_add(y)
            .wrapping_add(v.0)
            .wrapping_add(word(s, 8))
            .rotate_right(37)
            .wrapping_mul(mul)
            ^ w.1.wrapping_mul(weight);
        let y = y
            .wrapping_add(v.1)
            .wrapping_add(word(s, 48))
            .rotate_right(42)
            .wrapping_mul(mul)
            .wrapping_add(v.0.wrapping_mul(weight))
            .wrapping_add(word(s, 40));
        let z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(mul);
        self.v = weak(&s[..32], v.1.wrapping_mul(mul), x.wrapping_add(w.0));
        self.w = weak(&s[32..], z.wrapping_add(w.1), y.wrapping_add(word(s, 16)));
        (self.x, self.y, self.z) = (z, y, x);
    }
}

fn weak(s: &[u8], a: u64, b: u64) -> (u64, u64) {
    let (first, last) = (a.wrapping_add(word(s, 0)), word(s, 24));
    let b = b.wrapping_add(first).wrapping_add(last).rotate_right(21);
    let sum = first.wrapping_add(word(s, 8)).wrapping_add(word(s, 16));
    (
        sum.wrapping_add(last),
        b.wrapping_add(sum.rotate_right(44)).wrapping_add(first),
    )
}

fn short(s: &[u8]) -> u64 {
    let len = s.len();
    let mul = K2.wrapping_add(2 * len as u64);
    match len {
        0 => K2,
        1..=3 => {
            let (a, b, c) = (s[0], s[len >> 1], s[len - 1]);
            let y = u64::from(a) + (u64::from(b) << 8);
            let z = len as u64 + (u64::from(c) << 2);
            mixed(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        4..=7 => {
            let (a, b) = (half(s, 0), half(s, len - 4));
            pair(len as u64 + (a << 3), b, mul)
        }
        8..=16 => {
            let (a, b) = (word(s, 0).wrapping_add(K2), word(s, len - 8));
            let c = b.rotate_right(37).wrapping_mul(mul).wrapping_add(a);
            let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(mul);
            pair(c, d, mul)
        }
        17..=32 => {
            let (a, b) = (word(s, 0).wrapping_mul(K1), word(s, 8));
            let (c, d) = (
                word(s, len - 8).wrapping_mul(mul),
                word(s, len - 16).wrapping_mul(K2),
            );
            pair(sum(a, b, c, d), turned(a, b.wrapping_add(K2), c), mul)
        }
        _ => {
            let (a, b) = (word(s, 0).wrapping_mul(K2), word(s, 8));
            let (c, d) = (
                word(s, len - 8).wrapping_mul(mul),
                word(s, len - 16).wrapping_mul(K2),
            );
            let y = sum(a, b, c, d);
            let z = pair(y, turned(a, b.wrapping_add(K2), c), mul);
            let (e, f) = (word(s, 16).wrapping_mul(mul), word(s, 24));
            let g = y.wrapping_add(word(s, len - 32)).wrapping_mul(mul);
            let h = z.wrapping_add(word(s, len - 24)).wrapping_mul(mul);
            pair(sum(e, f, g, h), turned(e, f.wrapping_add(a), g), mul)
        }
    }
}

fn sum(a: u64, b: u64, c: u64, d: u64) -> u64 {
    a.wrapping_add(b)
        .rotate_right(43)
        .wrapping_add(c.rotate_right(30))
        .wrapping_add(d)
}

fn turned(a: u64, b: u64, c: u64) -> u64 {
    a.wrapping_add(b.rotate_right(18)).wrapping_add(c)
}

const fn mixed(x: u64) -> u64 {
    x ^ (x >> 47)
}

fn pair(u: u64, v: u64, mul: u64) -> u64 {
    let a = mixed((u ^ v).wrapping_mul(mul));
    mixed((v ^ a).wrapping_mul(mul)).wrapping_mul(mul)
}

fn word(s: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&s[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn half(s: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&s[at..at + 4]);
    u64::from(u32::from_le_bytes(bytes))
}
