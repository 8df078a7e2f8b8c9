//! A datagram in the parts of a gathering send (iovec), read from front to back
//! without copying it together.

use std::ops::Deref;

use crate::crypto::OutputBuffer;

#[derive(Debug)]
pub(super) struct Gather<'a, P> {
    /// The unread rest of the current part; empty only at the end.
    front: &'a [u8],
    /// The parts after it.
    parts: &'a [P],
    /// Unread bytes in all parts.
    left: usize,
}

impl<P> Clone for Gather<'_, P> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, P: Deref<Target = [u8]>> Gather<'a, P> {
    pub fn new(parts: &'a [P]) -> Self {
        let mut gather = Self {
            front: &[],
            parts,
            left: parts.iter().map(|part| part.len()).sum(),
        };
        gather.settle();
        gather
    }

    /// The unread rest of the first part that is not empty.
    pub fn front(&self) -> &'a [u8] {
        self.front
    }

    pub fn len(&self) -> usize {
        self.left
    }

    /// The next `N` bytes, if there are as many, across part borders.
    pub fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        // The usual case: all bytes are in the first part.
        if let Some(bytes) = self.front.first_chunk() {
            return Some(*bytes);
        }
        let mut bytes = [0; N];
        let mut gather = self.clone();
        let mut rest = bytes.as_mut_slice();
        while !rest.is_empty() {
            let front = gather.front();
            let count = front.len().min(rest.len());
            if count == 0 {
                return None;
            }
            let (now, later) = rest.split_at_mut_checked(count)?;
            now.copy_from_slice(front.get(..count)?);
            rest = later;
            gather.skip(count);
        }
        Some(bytes)
    }

    pub fn skip(&mut self, count: usize) {
        self.advance(count, |_| {});
    }

    /// Appends the next bytes to `out`.
    pub fn copy(&mut self, count: usize, out: &mut OutputBuffer) {
        self.advance(count, |bytes| out.put(bytes));
    }

    fn advance(&mut self, mut count: usize, mut see: impl FnMut(&[u8])) {
        while count > 0 && !self.front.is_empty() {
            let now = count.min(self.front.len());
            let (seen, rest) = self.front.split_at_checked(now).unwrap_or_default();
            see(seen);
            count = count.saturating_sub(now);
            self.left = self.left.saturating_sub(now);
            self.front = rest;
            self.settle();
        }
    }

    /// Advances to the next part that is not empty.
    fn settle(&mut self) {
        while self.front.is_empty()
            && let Some((first, rest)) = self.parts.split_first()
        {
            (self.front, self.parts) = (first, rest);
        }
    }
}
