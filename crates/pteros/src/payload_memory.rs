//! The memory of large payloads, kept by their publisher to be used again.
//!
//! Fresh pages cost more than the copying they are for: a megabyte that the
//! allocator gave back to the system and gets anew faults 256 times. So a
//! publisher keeps a hand on its last payloads and writes the next one there,
//! as soon as history and subscriptions have let go of them.

use bytes::Bytes;
use parking_lot::Mutex;

/// Smaller payloads are left to the allocator, which has such memory at hand.
const PAYLOAD_BYTES_MIN: usize = 32 << 10;

/// Payloads kept per publisher: one on its way and one being filled.
const PAYLOADS_MAX: usize = 2;

/// The last large payloads of one publisher.
#[derive(Default)]
pub(crate) struct PayloadMemory {
    kept: Mutex<[Option<Bytes>; PAYLOADS_MAX]>,
}

impl PayloadMemory {
    /// Empty memory with room for a payload of that size: an earlier one's
    /// that nobody reads any more, else new.
    pub(crate) fn take(&self, size: usize) -> Vec<u8> {
        if size < PAYLOAD_BYTES_MIN {
            return Vec::with_capacity(size);
        }
        let mut kept = self.kept.lock();
        let free = kept
            .iter_mut()
            .find_map(|slot| slot.take_if(|payload| payload.is_unique()));
        drop(kept);
        // Nobody else has it, so these are its own bytes, not a copy.
        let mut memory = free.map_or_else(Vec::new, Vec::from);
        memory.clear();
        memory.reserve_exact(size);
        memory
    }

    /// Remembers a payload. The older one that is still read elsewhere is
    /// forgotten when there is no place.
    pub(crate) fn keep(&self, payload: &Bytes) {
        if payload.len() < PAYLOAD_BYTES_MIN {
            return;
        }
        let mut kept = self.kept.lock();
        kept.rotate_right(1);
        kept[0] = Some(payload.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(memory: &PayloadMemory, size: usize) -> Bytes {
        let mut payload = memory.take(size);
        payload.resize(size, 7);
        let payload = Bytes::from(payload);
        memory.keep(&payload);
        payload
    }

    #[test]
    fn a_payload_that_nobody_holds_gives_its_memory_to_the_next() {
        let memory = PayloadMemory::default();
        let first = written(&memory, 100_000);
        let place = first.as_ptr();
        let second = written(&memory, 100_000);
        assert_ne!(second.as_ptr(), place, "the first one is still read");
        drop(first);
        assert_eq!(written(&memory, 90_000).as_ptr(), place);
    }

    #[test]
    fn small_payloads_are_not_kept() {
        let memory = PayloadMemory::default();
        let payload = written(&memory, 100);
        assert!(payload.is_unique());
    }
}
