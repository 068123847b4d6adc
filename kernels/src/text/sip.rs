//! The hash of TensorFlow's `StringToHashBucketStrong`, of bytes that come one by one.
//!
//! Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), SipHash-2-4.

/// The bytes so far.
#[derive(Clone, Copy, Debug)]
pub struct Sip {
    state: [u64; 4],
    /// Bytes that do not fill a word yet.
    word: u64,
    len: u64,
}

impl Sip {
    /// No bytes, for a key.
    #[must_use]
    pub const fn new(key: [u64; 2]) -> Self {
        Self {
            state: [
                key[0] ^ 0x736f_6d65_7073_6575,
                key[1] ^ 0x646f_7261_6e64_6f6d,
                key[0] ^ 0x6c79_6765_6e65_7261,
                key[1] ^ 0x7465_6462_7974_6573,
            ],
            word: 0,
            len: 0,
        }
    }

    /// Adds a byte.
    pub fn push(&mut self, byte: u8) {
        self.word |= u64::from(byte) << (8 * (self.len % 8));
        self.len += 1;
        if self.len.is_multiple_of(8) {
            self.take();
        }
    }

    /// The hash of all bytes.
    #[must_use]
    pub fn finish(mut self) -> u64 {
        self.word |= self.len << 56;
        self.take();
        self.state[2] ^= 0xff;
        for _ in 0..4 {
            self.round();
        }
        let [a, b, c, d] = self.state;
        a ^ b ^ c ^ d
    }

    fn take(&mut self) {
        self.state[3] ^= self.word;
        self.round();
        self.round();
        self.state[0] ^= self.word;
        self.word = 0;
    }

    fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.state;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        self.state = [a, b, c, d];
    }
}
