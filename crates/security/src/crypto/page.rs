//! Memory that something protected is written into, front to back. What was
//! written once stays allocated and initialised, so a cipher can write into it
//! from elsewhere: nothing is copied or zeroed first.

/// Bytes written one behind the other; used again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    /// All that was ever written; what counts ends at `len`.
    bytes: Vec<u8>,
    len: usize,
}

impl Page {
    /// Goes on behind these bytes.
    pub fn behind(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self { bytes, len }
    }

    /// All that is written.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Forgets what stands behind so many bytes; the memory stays.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// What is written.
    pub fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// What is written from there on.
    pub fn written_from(&mut self, at: usize) -> &mut [u8] {
        let end = self.len;
        self.bytes.get_mut(at..end).unwrap_or_default()
    }

    /// The next so many bytes, which count as written: the caller fills all of
    /// them, there may be anything in it.
    pub fn room(&mut self, count: usize) -> &mut [u8] {
        let start = self.len;
        let end = start.saturating_add(count);
        if end > self.bytes.len() {
            self.grow(end);
        }
        self.len = end;
        self.bytes.get_mut(start..end).unwrap_or_default()
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    #[inline]
    pub fn put_array<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(room) = self.room(N).first_chunk_mut() {
            *room = bytes;
        }
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        let more = least.saturating_sub(self.bytes.len());
        self.bytes.reserve(more);
        self.bytes.resize(self.bytes.capacity(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_had_before_is_neither_read_nor_in_the_way() {
        let mut page = Page::behind(b"head ".to_vec());
        page.put(&[b'x'; 100]);
        page.truncate(5);
        page.put_array(*b"and ");
        page.room(4).copy_from_slice(b"tail");
        assert_eq!(page.written(), b"head and tail");
        assert_eq!(page.written_from(9), b"tail");
        page.truncate(100);
        assert_eq!(page.into_bytes(), b"head and tail");
    }
}
