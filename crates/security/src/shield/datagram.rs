//! A datagram in the parts that a gathering send would take, read from front to
//! back without putting it together first.

use std::ops::Deref;

#[derive(Debug)]
pub(super) struct Gather<'a, P> {
    parts: &'a [P],
    /// Bytes of the first part that are done with.
    at: usize,
}

impl<P> Clone for Gather<'_, P> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'a, P: Deref<Target = [u8]>> Gather<'a, P> {
    pub fn new(parts: &'a [P]) -> Self {
        let mut gather = Self { parts, at: 0 };
        gather.settle();
        gather
    }

    /// What is left of the first part that has something left.
    pub fn front(&self) -> &'a [u8] {
        let first = self.parts.first();
        first
            .and_then(|part| part.get(self.at..))
            .unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        let all: usize = self.parts.iter().map(|part| part.len()).sum();
        all.saturating_sub(self.at)
    }

    /// The next bytes, wherever they lie, as far as there are so many.
    pub fn peek<const N: usize>(&self) -> Option<[u8; N]> {
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
    pub fn copy(&mut self, count: usize, out: &mut Vec<u8>) {
        self.advance(count, |bytes| out.extend_from_slice(bytes));
    }

    fn advance(&mut self, mut count: usize, mut see: impl FnMut(&[u8])) {
        while count > 0 {
            let front = self.front();
            let now = front.get(..count.min(front.len())).unwrap_or_default();
            if now.is_empty() {
                return;
            }
            see(now);
            count = count.saturating_sub(now.len());
            self.at = self.at.saturating_add(now.len());
            self.settle();
        }
    }

    /// Goes on to the next part that has something.
    fn settle(&mut self) {
        while let Some((first, rest)) = self.parts.split_first()
            && self.at >= first.len()
        {
            self.parts = rest;
            self.at = 0;
        }
    }
}
