//! Output buffer that is written front to back. Written bytes stay allocated and
//! initialised, so a cipher can write into it from elsewhere: nothing is copied or
//! zeroed first.

/// Bytes written one after another; reused.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputBuffer {
    /// All bytes ever written; the valid ones end at `len`.
    bytes: Vec<u8>,
    len: usize,
}

impl OutputBuffer {
    /// Appends to these bytes.
    pub fn appending_to(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self { bytes, len }
    }

    /// The written bytes.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Discards everything after `len` bytes. The memory stays.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The written bytes.
    pub fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The written bytes from `at` on.
    pub fn written_from(&mut self, at: usize) -> &mut [u8] {
        let end = self.len;
        self.bytes.get_mut(at..end).unwrap_or_default()
    }

    /// Reserves the next `count` bytes, which count as written. Their content is
    /// arbitrary: the caller fills all of them.
    pub fn reserve(&mut self, count: usize) -> &mut [u8] {
        let start = self.len;
        let end = start.saturating_add(count);
        if self.bytes.get(start..end).is_none() {
            self.grow(end);
        }
        self.len = end;
        self.bytes.get_mut(start..end).unwrap_or_default()
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len()).copy_from_slice(bytes);
    }

    #[inline]
    pub fn put_array<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(room) = self.reserve(N).first_chunk_mut() {
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
    fn former_content_of_an_output_buffer_is_never_visible() {
        let mut output_buffer = OutputBuffer::appending_to(b"head ".to_vec());
        output_buffer.put(&[b'x'; 100]);
        output_buffer.truncate(5);
        output_buffer.put_array(*b"and ");
        output_buffer.reserve(4).copy_from_slice(b"tail");
        assert_eq!(output_buffer.written(), b"head and tail");
        assert_eq!(output_buffer.written_from(9), b"tail");
        output_buffer.truncate(100);
        assert_eq!(output_buffer.into_bytes(), b"head and tail");
    }
}
