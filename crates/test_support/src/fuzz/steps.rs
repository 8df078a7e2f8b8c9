//! Bytes as a script: numbers taken one after another, small and extreme ones more
//! likely than others. The script ends with its bytes.

/// The rest of the script.
pub struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The available bytes, up to this many.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn fixed<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let taken = self.bytes(N);
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.fixed())
    }

    /// One byte for small numbers, five for others.
    pub fn u32(&mut self) -> u32 {
        match self.byte().unwrap_or(0) {
            255 => u32::from_le_bytes(self.fixed()),
            254 => u32::MAX,
            small => u32::from(small),
        }
    }

    /// One byte for small numbers, nine for others.
    pub fn i64(&mut self) -> i64 {
        match self.byte().unwrap_or(0) {
            255 => i64::from_le_bytes(self.fixed()),
            254 => i64::MAX - i64::from(self.byte().unwrap_or(0)),
            253 => (1 << 32) + i64::from(self.byte().unwrap_or(0)),
            small => i64::from(small),
        }
    }

    /// Bits of a number set and its words.
    pub fn set(&mut self) -> (u32, Vec<u32>) {
        let bits = self.u32();
        let words = usize::from(self.byte().unwrap_or(0) % 9);
        let words = (0..words).map(|_| u32::from_le_bytes(self.fixed()));
        (bits, words.collect())
    }
}
