//! Outbox: the send buffer between the state machines and the sockets.
//!
//! An outbox is reused: its memory is kept, and a large payload is shared, not
//! copied. So in steady state no datagram allocates. A datagram has three parts for
//! a gathering send: head, payload, tail.

mod coalesce;

use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

use crate::id::{GuidPrefix, VendorId};
use crate::locator::Locator;
use crate::time::Timestamp;
use crate::wire::{
    AckNack, DataFragHead, DataHead, Gap, Header, Heartbeat, NackFrag, end_submessage,
    write_info_destination, write_info_timestamp,
};

/// Datagrams to send, in order.
#[derive(Debug)]
pub struct Outbox {
    /// Heads and tails of all datagrams, one after another.
    bytes: Vec<u8>,
    entries: Vec<QueuedDatagram>,
    datagrams_max: usize,
}

#[derive(Clone, Debug)]
struct QueuedDatagram {
    source: GuidPrefix,
    to: Arc<[Locator]>,
    /// The participant of an INFO_DST at its start, if all of it is for that one.
    destination: Option<GuidPrefix>,
    /// A timestamp (INFO_TS) is in effect at its end.
    has_timestamp: bool,
    /// `bytes[start..split]` is the head, `bytes[split..end]` the tail.
    start: usize,
    split: usize,
    end: usize,
    body: Bytes,
    is_deferrable: bool,
}

/// One finished datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Every destination.
    pub to: &'a [Locator],
    /// Head, payload and tail; payload and tail may be empty.
    pub parts: [&'a [u8]; 3],
    /// The payload among the parts, for a transport that can share it.
    pub body: &'a Bytes,
    /// It needs no wake-up of the receiver, which reads it at its next poll.
    pub is_deferrable: bool,
}

impl Datagram<'_> {
    /// Size of the whole datagram, bytes.
    pub fn size_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// The whole datagram in one buffer. Allocates; for tests and diagnostics.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts.concat()
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Outbox {
    /// The default limit of datagrams; four times the burst of one `poll_transmit`.
    pub const DATAGRAMS_MAX: usize = 256;
    /// Payloads up to this size are copied into the head, so that several
    /// submessages share a datagram.
    pub const INLINE_PAYLOAD_MAX_BYTES: usize = 512;

    /// An empty outbox with the default limit.
    pub fn new() -> Self {
        Self::with_limit(Self::DATAGRAMS_MAX)
    }

    /// An empty outbox for at most `datagrams_max` datagrams.
    pub fn with_limit(datagrams_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            datagrams_max,
        }
    }

    /// Removes all datagrams; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the limit of datagrams is reached; send and clear first.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.datagrams_max
    }

    /// Bytes of all datagrams, payloads included.
    pub fn size_bytes(&self) -> usize {
        let bodies: usize = self.entries.iter().map(|entry| entry.body.len()).sum();
        self.committed().saturating_add(bodies)
    }

    /// Begins a datagram of at most `budget_bytes` from participant `source` to all
    /// of `to`. It counts once finished; dropping the builder abandons it.
    pub fn begin(
        &mut self,
        source: GuidPrefix,
        to: &Arc<[Locator]>,
        budget_bytes: usize,
    ) -> MessageBuilder<'_> {
        let start = self.committed();
        self.bytes.truncate(start);
        Header::ours(source).write(&mut self.bytes);
        MessageBuilder {
            source,
            start,
            budget_bytes,
            destination: GuidPrefix::UNKNOWN,
            has_one_destination: false,
            timestamp: None,
            split: None,
            body: Bytes::new(),
            has_content: false,
            is_deferrable: false,
            via_shared_memory: to.iter().all(|to| to.to_connection().is_some()),
            to: Arc::clone(to),
            outbox: self,
        }
    }

    /// Names this vendor in the headers of all datagrams.
    pub(crate) fn name_vendor(&mut self, vendor: VendorId) {
        for entry in &self.entries {
            let at = entry.start.saturating_add(Header::VENDOR_OFFSET);
            let named = self.bytes.get_mut(at..at.saturating_add(vendor.0.len()));
            if let Some(named) = named {
                named.copy_from_slice(&vendor.0);
            }
        }
    }

    /// The datagrams in their order.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.entries.iter().map(|entry| Datagram {
            to: &entry.to,
            parts: [
                self.bytes.get(entry.start..entry.split).unwrap_or_default(),
                &entry.body,
                self.bytes.get(entry.split..entry.end).unwrap_or_default(),
            ],
            body: &entry.body,
            is_deferrable: entry.is_deferrable,
        })
    }

    /// Where the last finished datagram ends.
    fn committed(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.end)
    }
}

/// A datagram under construction.
///
/// Each method that adds a submessage returns false, and adds nothing, when it
/// would exceed the budget. Begin another datagram then.
#[derive(Debug)]
#[must_use = "a datagram that is not finished is not sent"]
pub struct MessageBuilder<'a> {
    outbox: &'a mut Outbox,
    source: GuidPrefix,
    start: usize,
    budget_bytes: usize,
    destination: GuidPrefix,
    /// INFO_DST came first, and only once.
    has_one_destination: bool,
    timestamp: Option<Timestamp>,
    /// Where the head ends, once there is a body.
    split: Option<usize>,
    body: Bytes,
    has_content: bool,
    is_deferrable: bool,
    /// All its locators are shared-memory connections.
    via_shared_memory: bool,
    to: Arc<[Locator]>,
}

impl MessageBuilder<'_> {
    /// Bytes left in the budget.
    pub fn remaining_bytes(&self) -> usize {
        self.budget_bytes.saturating_sub(self.size_bytes())
    }

    /// Bytes written so far, the header included.
    pub fn size_bytes(&self) -> usize {
        self.outbox
            .bytes
            .len()
            .saturating_sub(self.start)
            .saturating_add(self.body.len())
    }

    /// Bytes that the transport copies: all, except a large payload on shared
    /// memory.
    pub fn copied_bytes(&self) -> usize {
        if self.via_shared_memory {
            self.size_bytes().saturating_sub(self.body.len())
        } else {
            self.size_bytes()
        }
    }

    /// Sets the destination participant of the following submessages (INFO_DST).
    /// Written only if it changes.
    pub fn info_destination(&mut self, prefix: GuidPrefix) -> bool {
        if prefix == self.destination {
            return true;
        }
        if self.remaining_bytes() < INFO_DST_BYTES {
            return false;
        }
        self.has_one_destination = self.size_bytes() == Header::SIZE_BYTES;
        write_info_destination(&mut self.outbox.bytes, prefix);
        self.destination = prefix;
        true
    }

    /// Sets the timestamp of the following changes (INFO_TS); `None` invalidates
    /// it. Written only if it changes.
    pub fn info_timestamp(&mut self, timestamp: Option<Timestamp>) -> bool {
        if timestamp == self.timestamp {
            return true;
        }
        if self.remaining_bytes() < INFO_TS_BYTES {
            return false;
        }
        write_info_timestamp(&mut self.outbox.bytes, timestamp);
        self.timestamp = timestamp;
        true
    }

    /// Adds a DATA.
    ///
    /// A payload over [`Outbox::INLINE_PAYLOAD_MAX_BYTES`] is shared; a datagram
    /// can have one. On shared memory it may exceed the 16-bit submessage length,
    /// which is 0 then: see
    /// [`MessageReader::in_parts`](crate::receiver::MessageReader::in_parts). The
    /// payload begins with its encapsulation header; an empty one means no payload.
    pub fn data(&mut self, head: &DataHead<'_>, payload: &Bytes) -> bool {
        let inline = payload.len() <= Outbox::INLINE_PAYLOAD_MAX_BYTES;
        if !self.fits_payload(head.size_bytes(), payload.len(), inline) {
            return false;
        }
        let at = head.write(&mut self.outbox.bytes, !payload.is_empty());
        self.append_payload(at, payload.clone(), inline);
        true
    }

    /// Adds a DATA_FRAG; the fragments are shared, unless small.
    pub fn data_frag(&mut self, head: &DataFragHead<'_>, body: Bytes) -> bool {
        let inline = body.len() <= Outbox::INLINE_PAYLOAD_MAX_BYTES;
        if !self.fits_payload(head.size_bytes(), body.len(), inline) {
            return false;
        }
        let at = head.write(&mut self.outbox.bytes);
        self.append_payload(at, body, inline);
        true
    }

    /// Adds a HEARTBEAT.
    pub fn heartbeat(&mut self, heartbeat: &Heartbeat) -> bool {
        self.append(|out| heartbeat.write(out))
    }

    /// Adds an ACKNACK.
    pub fn acknack(&mut self, acknack: &AckNack) -> bool {
        self.append(|out| acknack.write(out))
    }

    /// Adds a NACK_FRAG.
    pub fn nack_frag(&mut self, nack: &NackFrag) -> bool {
        self.append(|out| nack.write(out))
    }

    /// Adds a GAP.
    pub fn gap(&mut self, gap: &Gap) -> bool {
        self.append(|out| gap.write(out))
    }

    /// Marks the datagram as needing no wake-up of the receiver. A UDP socket
    /// always wakes.
    pub fn set_deferrable(&mut self) {
        self.is_deferrable = true;
    }

    /// Adds the datagram to the outbox. Returns false, and adds nothing, if it has
    /// no submessage or the outbox is full.
    pub fn finish(self) -> bool {
        let end = self.outbox.bytes.len();
        if !self.has_content || self.outbox.is_full() {
            self.outbox.bytes.truncate(self.start);
            return false;
        }
        let destination = self.has_one_destination && !self.via_shared_memory;
        self.outbox.entries.push(QueuedDatagram {
            source: self.source,
            to: self.to,
            destination: destination.then_some(self.destination),
            has_timestamp: self.timestamp.is_some(),
            start: self.start,
            split: self.split.unwrap_or(end),
            end,
            body: self.body,
            is_deferrable: self.is_deferrable,
        });
        true
    }

    fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.outbox.bytes.len();
        write(&mut self.outbox.bytes);
        if self.size_bytes() > self.budget_bytes {
            self.outbox.bytes.truncate(before);
            return false;
        }
        self.has_content = true;
        true
    }

    fn fits_payload(&self, head_bytes: usize, payload_bytes: usize, inline: bool) -> bool {
        let total = head_bytes.saturating_add(payload_bytes.next_multiple_of(4));
        let is_expressible = total <= usize::from(u16::MAX) || self.via_shared_memory;
        is_expressible && total <= self.remaining_bytes() && (inline || self.split.is_none())
    }

    /// Appends the payload of the submessage begun at `at`, padded to four
    /// bytes, and fills in the submessage's length.
    fn append_payload(&mut self, at: usize, payload: Bytes, inline: bool) {
        let padding = payload.len().wrapping_neg() & 3;
        let bytes = &mut self.outbox.bytes;
        if inline {
            bytes.extend_from_slice(&payload);
            bytes.resize(bytes.len().saturating_add(padding), 0);
            end_submessage(bytes, at, 0);
        } else {
            end_submessage(bytes, at, payload.len().saturating_add(padding));
            self.split = Some(bytes.len());
            bytes.resize(bytes.len().saturating_add(padding), 0);
            self.body = payload;
        }
        self.has_content = true;
    }
}

const INFO_DST_BYTES: usize = 16;
const INFO_TS_BYTES: usize = 12;
