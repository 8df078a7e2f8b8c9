//! Payload memory: buffers of large payloads, reused by their publisher.
//!
//! Fresh pages cost more than the copy into them: a megabyte that the allocator
//! returned to the system and maps again causes 256 page faults. So a publisher
//! keeps its last payloads and writes the next one there, once history and
//! subscriptions have released them.

use bytes::Bytes;
use parking_lot::Mutex;

/// Smaller payloads are left to the allocator, which has such memory at hand.
const PAYLOAD_BYTES_MIN: usize = 32 << 10;

/// Payloads kept per publisher: one in transmission and one being written.
const PAYLOADS_MAX: usize = 2;

/// The last large payloads of one publisher.
#[derive(Default)]
pub struct PayloadMemory {
    kept: Mutex<[Option<Bytes>; PAYLOADS_MAX]>,
}

impl PayloadMemory {
    /// Empty memory with capacity for a payload of that size: a released buffer,
    /// else new.
    pub fn take(&self, size: usize) -> Vec<u8> {
        if size < PAYLOAD_BYTES_MIN {
            return Vec::with_capacity(size);
        }
        let mut kept = self.kept.lock();
        let free = kept
            .iter_mut()
            .find_map(|slot| slot.take_if(|payload| payload.is_unique()));
        drop(kept);
        // The only reference, so this takes the bytes over without a copy.
        let mut memory = free.map_or_else(Vec::new, Vec::from);
        memory.clear();
        memory.reserve_exact(size);
        memory
    }

    /// Keeps a payload for reuse. If there is no place, it replaces an older one
    /// that is still read elsewhere.
    pub fn keep(&self, payload: &Bytes) {
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
    fn a_released_payload_buffer_is_reused() {
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
