//! Sets of up to 256 numbers above a base, as ACKNACK, GAP and NACK_FRAG carry
//! them (RTPS 2.5 §8.3.5.5, §8.3.5.7, §9.4.2.6, §9.4.2.8).

use alloc::vec::Vec;
use core::fmt;

use super::{Cursor, WireError};
use crate::seq::{FragmentNumber, SequenceNumber};

/// The bits of a set; bit 0 is the base itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Bitmap {
    count: u32,
    words: [u32; 8],
}

/// Bit 0 of a word, which is sent first.
const HIGHEST: u32 = 1 << 31;

impl Bitmap {
    const COUNT_MAX: u32 = 256;

    fn parse(at: &mut Cursor<'_>) -> Result<Self, WireError> {
        let count = at.u32()?;
        if count > Self::COUNT_MAX {
            return Err(WireError::InvalidSet);
        }
        let mut words = [0; 8];
        for word in words.iter_mut().take(count.div_ceil(32) as usize) {
            *word = at.u32()?;
        }
        // Bits past the count have no meaning, whatever the sender left there.
        if let Some(word) = words.get_mut((count / 32) as usize) {
            *word &= !(u32::MAX >> (count % 32));
        }
        Ok(Self { count, words })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_le_bytes());
        for word in self.words.iter().take(self.count.div_ceil(32) as usize) {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn insert(&mut self, bit: u32) -> bool {
        let Some(word) = self.words.get_mut((bit / 32) as usize) else {
            return false;
        };
        *word |= HIGHEST >> (bit % 32);
        self.count = self.count.max(bit.saturating_add(1));
        true
    }

    fn remove(&mut self, bit: u32) {
        if let Some(word) = self.words.get_mut((bit / 32) as usize) {
            *word &= !(HIGHEST >> (bit % 32));
        }
    }

    fn contains(&self, bit: u32) -> bool {
        self.words
            .get((bit / 32) as usize)
            .is_some_and(|word| word & (HIGHEST >> (bit % 32)) != 0)
    }

    fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Positions of the bits that are set, lowest first; skips empty words.
    fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let words = self.words;
        (0..8u32).zip(words).flat_map(|(index, word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                let bit = rest.leading_zeros();
                rest &= !HIGHEST.checked_shr(bit)?;
                Some(index.saturating_mul(32).saturating_add(bit))
            })
        })
    }
}

/// A number that a set holds: a sequence number or a fragment number.
pub trait SetNumber: Copy {
    /// How far it lies above `base`, if it does.
    fn offset_from(self, base: Self) -> Option<u32>;

    /// The number `offset` above this one.
    fn above(self, offset: u32) -> Self;
}

impl SetNumber for SequenceNumber {
    fn offset_from(self, base: Self) -> Option<u32> {
        u32::try_from(self.0.checked_sub(base.0)?).ok()
    }

    fn above(self, offset: u32) -> Self {
        Self(self.0.saturating_add(i64::from(offset)))
    }
}

impl SetNumber for FragmentNumber {
    fn offset_from(self, base: Self) -> Option<u32> {
        self.0.checked_sub(base.0)
    }

    fn above(self, offset: u32) -> Self {
        Self(self.0.saturating_add(offset))
    }
}

/// Numbers from `base` to `base + 255`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberSet<N> {
    base: N,
    bits: Bitmap,
}

/// Sequence numbers from `base` to `base + 255`.
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | base, high    | base, low     |
/// +---------------+---------------+
/// | number of bits| 0 to 8 words, first number in the highest bit …
/// +---------------+---------------+
/// ```
pub type SequenceSet = NumberSet<SequenceNumber>;

/// Fragment numbers from `base` to `base + 255`.
///
/// ```text
/// 0               4               8
/// +---------------+---------------+
/// | base          | number of bits|
/// +---------------+---------------+
/// | 0 to 8 words, first number in the highest bit …
/// +-------------------------------+
/// ```
pub type FragmentSet = NumberSet<FragmentNumber>;

impl<N: SetNumber> NumberSet<N> {
    /// How many numbers a set spans at most.
    pub const SPAN_MAX: u32 = Bitmap::COUNT_MAX;

    /// An empty set. In an ACKNACK it acknowledges everything below `base`.
    pub fn empty(base: N) -> Self {
        Self {
            base,
            bits: Bitmap::default(),
        }
    }

    /// A set of those `numbers` that lie in the 256 from `base` on.
    pub fn from_numbers(base: N, numbers: impl IntoIterator<Item = N>) -> Self {
        let mut set = Self::empty(base);
        for number in numbers {
            set.insert(number);
        }
        set
    }

    /// The number of the first bit.
    pub fn base(&self) -> N {
        self.base
    }

    /// How many numbers the bitmap spans, set or not.
    pub fn span(&self) -> u32 {
        self.bits.count
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.bits.len() as usize
    }

    /// Whether no number is in the set.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Adds a number; false if it lies outside of `base ..= base + 255`.
    pub fn insert(&mut self, number: N) -> bool {
        let bit = number.offset_from(self.base);
        bit.is_some_and(|bit| self.bits.insert(bit))
    }

    /// Removes a number; the span of the set stays the same.
    pub(crate) fn remove(&mut self, number: N) {
        if let Some(bit) = number.offset_from(self.base) {
            self.bits.remove(bit);
        }
    }

    /// Whether the number is in the set.
    pub fn contains(&self, number: N) -> bool {
        let bit = number.offset_from(self.base);
        bit.is_some_and(|bit| self.bits.contains(bit))
    }

    /// The numbers in the set, lowest first. At most 256.
    pub fn iter(&self) -> impl Iterator<Item = N> + use<N> {
        let base = self.base;
        self.bits.iter().map(move |bit| base.above(bit))
    }
}

impl SequenceSet {
    /// Reads a set. A base of zero with an empty set is accepted, although §8.3.5.5
    /// requires at least one: Fast DDS sends it before the first HEARTBEAT of a
    /// writer.
    pub fn parse(at: &mut Cursor<'_>) -> Result<Self, WireError> {
        let base = at.sequence()?;
        let bits = Bitmap::parse(at)?;
        let end = base.0.checked_add(i64::from(bits.count));
        if base.0 < 0 || end.is_none() {
            return Err(WireError::InvalidSet);
        }
        Ok(Self { base, bits })
    }

    /// Appends the set.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_sequence(out, self.base);
        self.bits.write(out);
    }
}

impl<N: SetNumber + fmt::Debug> fmt::Debug for NumberSet<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{}", self.base, self.bits.count)?;
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FragmentSet {
    /// Reads a set with a base of at least one.
    pub fn parse(at: &mut Cursor<'_>) -> Result<Self, WireError> {
        let base = at.u32()?;
        let bits = Bitmap::parse(at)?;
        if base == 0 || base.checked_add(bits.count).is_none() {
            return Err(WireError::InvalidSet);
        }
        Ok(Self {
            base: FragmentNumber(base),
            bits,
        })
    }

    /// Appends the set.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.base.0.to_le_bytes());
        self.bits.write(out);
    }
}

/// Appends a sequence number, high word first.
pub(crate) fn write_sequence(out: &mut Vec<u8>, sequence: SequenceNumber) {
    let (high, low) = sequence.to_wire();
    out.extend_from_slice(&high.to_le_bytes());
    out.extend_from_slice(&low.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::Endianness;
    use super::*;

    /// RTPS 2.5 §9.4.2.6: "1234/12:00110" means that 1236 and 1237 are set.
    #[test]
    fn the_example_of_the_specification_reads_as_it_says() {
        let bytes = [
            0, 0, 0, 0, 0, 0, 0x04, 0xd2, // base 1234
            0, 0, 0, 12, // bits
            0x30, 0x00, 0x00, 0x00,
        ];
        let set = SequenceSet::parse(&mut Cursor::new(&bytes, Endianness::Big)).unwrap();
        let numbers: Vec<i64> = set.iter().map(|number| number.0).collect();
        assert_eq!(numbers, [1236, 1237]);
        assert_eq!((set.base().0, set.span(), set.len()), (1234, 12, 2));
    }

    #[test]
    fn the_whole_span_survives_and_no_number_beyond_it_is_added() {
        let base = SequenceNumber(7);
        let mut set = SequenceSet::empty(base);
        assert!(!set.insert(SequenceNumber(6)));
        assert!(!set.insert(SequenceNumber(7 + 256)));
        for number in 7..7 + 256 {
            assert!(set.insert(SequenceNumber(number)));
        }
        let mut out = Vec::new();
        set.write(&mut out);
        let read = SequenceSet::parse(&mut Cursor::new(&out, Endianness::Little)).unwrap();
        assert_eq!(read, set);
        assert_eq!(read.iter().count(), 256);
        assert_eq!(read.iter().last(), Some(SequenceNumber(7 + 255)));
    }

    #[test]
    fn bits_past_the_count_are_ignored() {
        let bytes = [1, 0, 0, 0, 3, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
        let set = FragmentSet::parse(&mut Cursor::new(&bytes, Endianness::Little)).unwrap();
        let numbers: Vec<u32> = set.iter().map(|number| number.0).collect();
        assert_eq!(numbers, [1, 2, 3]);
    }

    #[test]
    fn impossible_sets_are_refused() {
        let parse = |high: i32, low: u32, count: u32| {
            let mut bytes = Vec::new();
            bytes.extend_from_slice(&high.to_le_bytes());
            bytes.extend_from_slice(&low.to_le_bytes());
            bytes.extend_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(&[0xff; 32]);
            SequenceSet::parse(&mut Cursor::new(&bytes, Endianness::Little)).map(|_| ())
        };
        assert_eq!(parse(0, 1, 256), Ok(()));
        assert_eq!(parse(0, 1, 257), Err(WireError::InvalidSet));
        assert_eq!(parse(0, 1, u32::MAX), Err(WireError::InvalidSet));
        assert_eq!(parse(-1, 0, 0), Err(WireError::InvalidSet));
        assert_eq!(parse(i32::MAX, u32::MAX, 10), Err(WireError::InvalidSet));
    }

    #[test]
    fn fragment_sets_begin_at_one_and_end_within_their_numbers() {
        let parse = |base: u32, bits: u32| {
            let words = [base, bits, 0];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            FragmentSet::parse(&mut Cursor::new(&bytes, Endianness::Little))
        };
        assert!(parse(1, 32).is_ok() && parse(u32::MAX - 32, 32).is_ok());
        for (base, bits) in [(0, 0), (0, 32), (u32::MAX, 1), (u32::MAX - 31, 32)] {
            assert!(parse(base, bits).is_err(), "{base} {bits}");
        }
    }
}
