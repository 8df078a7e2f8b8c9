//! Write-ahead log of a database: pages that a killed recorder has committed and not yet
//! moved into the database.

use std::collections::BTreeMap;

/// Size of the log's head, and of each frame's head.
const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;
/// Magic number of the log. Its last bit is the byte order of the checksums.
const MAGIC: u32 = 0x377f_0682;

/// Committed pages of a log.
#[derive(Debug, Default)]
pub(crate) struct CommittedPages {
    /// Offset of the latest content of each page in the log.
    pub offsets: BTreeMap<u32, u64>,
    /// Pages of the database after the last commit; `None` without a commit.
    pub page_count: Option<u32>,
}

/// Reads a log in parts: its head, then each frame.
pub(crate) struct LogReader {
    page_bytes: usize,
    salts: [u8; 8],
    is_big_endian: bool,
    checksum: [u32; 2],
    pending: BTreeMap<u32, u64>,
    at: u64,
    committed: CommittedPages,
}

impl LogReader {
    /// Parses the head. `None` if it is invalid, or does not fit the database.
    pub(crate) fn new(head: &[u8], page_bytes: usize) -> Option<Self> {
        let word = |at: usize| be32(head, at);
        let magic = word(0)?;
        let checked = head.get(..24)?;
        if magic & !1 != MAGIC || usize::try_from(word(8)?).ok()? != page_bytes {
            return None;
        }
        let mut reader = Self {
            page_bytes,
            salts: head.get(16..24)?.try_into().ok()?,
            is_big_endian: magic & 1 == 1,
            checksum: [0; 2],
            pending: BTreeMap::new(),
            at: HEAD_BYTES as u64,
            committed: CommittedPages::default(),
        };
        reader.add_to_checksum(checked);
        (reader.checksum == [word(24)?, word(28)?]).then_some(reader)
    }

    /// Size of the head.
    pub(crate) fn head_bytes() -> usize {
        HEAD_BYTES
    }

    /// Size of a frame with its page.
    pub(crate) fn frame_bytes(&self) -> usize {
        FRAME_HEAD_BYTES + self.page_bytes
    }

    /// Adds a frame. Returns false at the first invalid one, which ends the log.
    pub(crate) fn take_frame(&mut self, frame: &[u8]) -> bool {
        let parts = frame.split_at_checked(FRAME_HEAD_BYTES);
        let Some((head, page)) = parts.filter(|(_, page)| page.len() == self.page_bytes) else {
            return false;
        };
        let word = |at: usize| be32(head, at).unwrap_or(0);
        if head.get(8..16) != Some(&self.salts[..]) {
            return false;
        }
        self.add_to_checksum(head.get(..8).unwrap_or_default());
        self.add_to_checksum(page);
        if self.checksum != [word(16), word(20)] {
            return false;
        }
        self.pending
            .insert(word(0), self.at + FRAME_HEAD_BYTES as u64);
        self.at += frame.len() as u64;
        let page_count = word(4);
        if page_count > 0 {
            self.committed.offsets.append(&mut self.pending);
            self.committed.page_count = Some(page_count);
        }
        true
    }

    /// The committed pages.
    pub(crate) fn finish(self) -> CommittedPages {
        self.committed
    }

    /// SQLite's checksum: two sums over pairs of words.
    fn add_to_checksum(&mut self, bytes: &[u8]) {
        let [mut first, mut second] = self.checksum;
        for pair in bytes.as_chunks::<8>().0 {
            let [a, b, c, d, e, f, g, h] = *pair;
            let word = if self.is_big_endian {
                u32::from_be_bytes
            } else {
                u32::from_le_bytes
            };
            first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
            second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
        }
        self.checksum = [first, second];
    }
}

/// A big-endian word.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    word.try_into().ok().map(u32::from_be_bytes)
}
