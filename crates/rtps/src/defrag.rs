//! Fragment reassembly: samples that arrive as DATA_FRAG (RTPS 2.5 §8.4.14).
//!
//! Each sample is assembled in one buffer. Fragments in order are appended, others are
//! written at their offset. The sizes come from the wire, so they alone never allocate
//! or fill memory. A buffer grows to at most [`GROWTH`] times the bytes in it.
//! Fragments far ahead are kept apart until it reaches them. The first accepted
//! fragment fixes sample size and fragment size. Later fragments that disagree are
//! refused, unless they are many or the sample makes no progress: then the first was
//! forged. A reliable sample whose missing fragments are requested in vain is dropped
//! as well, and requested whole. The announced size is charged to the participant
//! (`memory_budget.rs`).

use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

use crate::change::{Carrier, ChangeKind};
use crate::coherent_mark::CoherentMark;
use crate::interval::{IntervalSet, NumberRun};
use crate::memory_budget::{MemoryCharge, MemoryCharger, SampleCharge};
use crate::seq::{SampleIdentity, SequenceNumber};
use crate::time::{Duration, Instant, Timestamp};

/// The maximum ratio of a buffer to the bytes received into it.
const GROWTH: usize = 2;
/// Below this size growth is not limited: one datagram.
const GROWTH_FREE_BYTES: usize = 64 << 10;
/// The maximum ratio of the memory reserved for a buffer. Reserved memory takes no page
/// until bytes arrive. 64 fragments of 63 kB are a 4 MB camera image, so that one is
/// allocated at once.
const RESERVATION: usize = 64;
/// Below this size the reservation is not limited.
const RESERVATION_FREE_BYTES: usize = 1 << 20;
/// Runs of fragments received out of order, per sample.
const RUNS_MAX: usize = 256;
/// Fragments in a row that name other sizes prove the first ones forged if they are
/// more than those, and more than this number ...
const CONTRADICTIONS_MIN: u64 = 3;
/// ... or, whatever was received, more than this number. One is enough when nothing of
/// the sample was received for [`CONTRADICTED_AGE`].
const CONTRADICTIONS_MAX: u64 = 8;
/// How long a contradicted sample may make no progress.
pub(crate) const CONTRADICTED_AGE: Duration = Duration::from_millis(500);
/// Requests for missing fragments that have no effect before a sample may be dropped.
const VAIN_REQUESTS: u32 = 4;
/// A writer that is not heard for so long is silent: requests have no effect because the
/// network is cut, and a partial sample is kept.
const SILENCE_MIN: Duration = Duration::from_millis(500);
/// Each dropped sample doubles how long the next one may make no progress, so often.
const DOUBLINGS_MAX: u32 = 5;
/// From this size on, the buffer of a payload is reused after the application
/// dropped it: fresh pages cost more than copying.
const REUSE_MIN_BYTES: usize = 64 << 10;

/// Limits of fragment reassembly for one writer at a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefragLimits {
    /// Partial samples at a time. When full, a reliable reader keeps the lowest
    /// numbers and requests the others again; a best-effort reader keeps the
    /// highest.
    pub samples_max: usize,
    /// The largest sample assembled, bytes.
    pub sample_bytes_max: usize,
    /// Bytes over all partial samples.
    pub bytes_max: usize,
}

impl Default for DefragLimits {
    fn default() -> Self {
        Self {
            samples_max: 8,
            sample_bytes_max: 64 << 20,
            bytes_max: 128 << 20,
        }
    }
}

/// The properties of a sample besides its payload.
#[derive(Clone, Debug)]
pub(crate) struct SampleHead {
    pub sequence: SequenceNumber,
    pub kind: ChangeKind,
    /// Pteros sends it with the last fragment only.
    pub source_timestamp: Option<Timestamp>,
    pub carrier: Carrier,
    pub key_only: bool,
    pub key_hash: Option<[u8; 16]>,
    pub related_sample_identity: Option<SampleIdentity>,
    /// A peer may send it with the first fragment only.
    pub coherent_mark: Option<Box<CoherentMark>>,
    pub original_writer_info: Option<SampleIdentity>,
    /// The writer's result for our content filter; also in the first fragment only.
    pub filter_result: Option<bool>,
}

/// Consecutive fragments of one DATA_FRAG.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragments<'a> {
    /// Number of the first, from 1.
    pub first: u32,
    pub count: u16,
    pub fragment_size: u16,
    pub sample_size: u32,
    pub payload: &'a [u8],
}

/// The outcome of received fragments.
#[derive(Debug)]
pub(crate) enum ReassemblyOutcome {
    /// The sample is complete.
    Complete(SampleHead, Bytes, SampleCharge),
    /// Stored; more fragments are missing.
    Incomplete,
    /// All of them were received before.
    Duplicate,
    /// They contradict themselves or earlier fragments.
    Invalid,
    /// The buffer is full; they may be retransmitted.
    BufferFull,
    /// The participant or the context has no memory left; they may be retransmitted.
    NoMemory(Box<SampleHead>),
    /// The sample exceeds the reader's size limit.
    TooLarge,
}

/// A sample with missing fragments.
#[derive(Debug)]
struct PartialSample {
    head: SampleHead,
    fragment_size: u16,
    sample_size: u32,
    received: IntervalSet,
    /// Bytes received into the buffer.
    buffered_bytes: usize,
    buffer: BytesMut,
    /// Fragments too far ahead for the buffer, lowest first.
    ahead: Vec<FragmentRun>,
    last_progress: Instant,
    charge: MemoryCharge,
    /// The other sizes that fragments name, and how many did in a row.
    contradicted: (u16, u32, u32),
    /// Requests for missing fragments since the last progress.
    requests: u32,
    /// The writer was heard again after a silence, which counted as progress. Only once,
    /// since the heartbeats of some are seconds apart.
    is_renewed: bool,
}

/// Consecutive bytes of a sample.
#[derive(Debug)]
struct FragmentRun {
    start: usize,
    bytes: Vec<u8>,
}

impl FragmentRun {
    fn end(&self) -> usize {
        self.start.saturating_add(self.bytes.len())
    }
}

impl PartialSample {
    fn fragments_total(&self) -> u32 {
        self.sample_size
            .div_ceil(u32::from(self.fragment_size).max(1))
    }

    fn is_complete(&self) -> bool {
        matches!(self.received.runs(), [run]
            if run.first == 1 && run.last >= i64::from(self.fragments_total()))
    }

    /// The byte range in the sample that `fragments` must cover.
    fn byte_range(&self, fragments: &Fragments<'_>) -> Option<(usize, usize)> {
        let size = usize::from(self.fragment_size);
        let total = usize::try_from(self.sample_size).ok()?;
        let before = usize::try_from(fragments.first.checked_sub(1)?).ok()?;
        let start = before.checked_mul(size)?;
        let end = start
            .checked_add(usize::from(fragments.count).checked_mul(size)?)?
            .min(total);
        let last = fragments
            .first
            .checked_add(u32::from(fragments.count))?
            .checked_sub(1)?;
        (start < end
            && last <= self.fragments_total()
            && fragments.payload.len() >= end.saturating_sub(start))
        .then_some((start, end))
    }

    /// Notes fragments of another size. True when they outnumber those of this one, or
    /// this one makes no progress.
    fn is_outvoted(&mut self, now: Instant, fragments: &Fragments<'_>) -> bool {
        let sizes = (fragments.fragment_size, fragments.sample_size);
        let (fragment_size, sample_size, seen) = &mut self.contradicted;
        if (*fragment_size, *sample_size) != sizes {
            (*fragment_size, *sample_size, *seen) = (sizes.0, sizes.1, 0);
        }
        *seen = seen.saturating_add(1);
        let received = self.received.runs().iter().map(|run| run.count());
        let received = received.fold(0, u64::saturating_add);
        let enough = received.clamp(CONTRADICTIONS_MIN, CONTRADICTIONS_MAX);
        u64::from(*seen) > enough || self.is_idle(now, CONTRADICTED_AGE)
    }

    /// Whether nothing of it was received for `age`.
    fn is_idle(&self, now: Instant, age: Duration) -> bool {
        self.last_progress.after(age) <= now
    }

    fn store(&mut self, now: Instant, fragments: &Fragments<'_>) -> ReassemblyOutcome {
        let Some((start, end)) = self.byte_range(fragments) else {
            return ReassemblyOutcome::Invalid;
        };
        let Some(bytes) = fragments.payload.get(..end.saturating_sub(start)) else {
            return ReassemblyOutcome::Invalid;
        };
        let first = i64::from(fragments.first);
        let last = first
            .saturating_add(i64::from(fragments.count))
            .saturating_sub(1);
        if self.received.count_missing(first, last) == 0 {
            return ReassemblyOutcome::Duplicate;
        }
        if !self.received.insert(first, last) {
            return ReassemblyOutcome::BufferFull;
        }
        self.last_progress = now;
        if self.is_within_reach(start, bytes.len()) {
            self.write(start, bytes);
            self.take_up_ahead();
        } else {
            self.keep_ahead(start, bytes);
        }
        ReassemblyOutcome::Incomplete
    }

    /// Whether the buffer may grow to the end of these bytes.
    fn is_within_reach(&self, start: usize, count: usize) -> bool {
        let max = buffer_bytes_max(self.buffered_bytes.saturating_add(count));
        start.saturating_add(count) <= max
    }

    fn write(&mut self, start: usize, bytes: &[u8]) {
        let end = start.saturating_add(bytes.len());
        self.buffered_bytes = self.buffered_bytes.saturating_add(bytes.len());
        let total = usize::try_from(self.sample_size).unwrap_or(usize::MAX);
        if end > self.buffer.capacity() {
            let wanted = self.buffered_bytes.saturating_mul(RESERVATION);
            let wanted = wanted.max(RESERVATION_FREE_BYTES).min(total);
            self.buffer
                .reserve(wanted.max(end).saturating_sub(self.buffer.len()));
        }
        if start >= self.buffer.len() {
            // Only a hole left by missing fragments is filled with zeros.
            self.buffer.resize(start, 0);
            self.buffer.extend_from_slice(bytes);
        } else {
            let there = self.buffer.len().saturating_sub(start).min(bytes.len());
            let (over, append) = bytes.split_at(there);
            if let Some(overlap) = self.buffer.get_mut(start..start.saturating_add(there)) {
                overlap.copy_from_slice(over);
            }
            self.buffer.extend_from_slice(append);
        }
    }

    /// Keeps bytes apart, appended to a run where they follow one. There are at most
    /// as many runs as `received` has.
    fn keep_ahead(&mut self, start: usize, bytes: &[u8]) {
        let at = self.ahead.partition_point(|run| run.start <= start);
        let before = at.checked_sub(1).and_then(|at| self.ahead.get_mut(at));
        match before.filter(|run| run.end() >= start) {
            Some(run) => {
                let there = run.end().saturating_sub(start);
                let append = bytes.get(there..).unwrap_or_default();
                run.bytes.extend_from_slice(append);
            }
            None => self.ahead.insert(
                at,
                FragmentRun {
                    start,
                    bytes: bytes.to_vec(),
                },
            ),
        }
    }

    /// Moves runs into the buffer that it has reached.
    fn take_up_ahead(&mut self) {
        while let Some(run) = self.ahead.first()
            && self.is_within_reach(run.start, run.bytes.len())
        {
            let run = self.ahead.remove(0);
            self.write(run.start, &run.bytes);
        }
    }

    /// Bytes of memory that it takes.
    fn memory_bytes(&self) -> usize {
        let ahead = self.ahead.iter().map(|run| run.bytes.len());
        ahead.fold(self.buffer.len(), usize::saturating_add)
    }
}

fn buffer_bytes_max(arrived_bytes: usize) -> usize {
    arrived_bytes.saturating_mul(GROWTH).max(GROWTH_FREE_BYTES)
}

/// The partial samples of one writer. In steady state it allocates nothing but
/// payload buffers, and those only while the application holds the last one.
#[derive(Debug)]
pub(crate) struct Defragmenter {
    limits: DefragLimits,
    reliable: bool,
    charger: MemoryCharger,
    /// Sorted by sequence number.
    partials: Vec<PartialSample>,
    /// How often partial samples were dropped since one was completed, see
    /// [`Self::remove_hopeless`].
    in_vain: u32,
    /// When a HEARTBEAT of the writer arrived last.
    heard_at: Instant,
    /// The emptied set of a completed sample, to save its allocation.
    spare_set: Option<IntervalSet>,
    /// The last large payload delivered, to reuse its memory.
    spare_buffer: Option<(Bytes, MemoryCharge)>,
}

impl Defragmenter {
    pub fn new(limits: DefragLimits, reliable: bool) -> Self {
        Self {
            limits,
            reliable,
            charger: MemoryCharger::default(),
            partials: Vec::new(),
            in_vain: 0,
            heard_at: Instant::ZERO,
            spare_set: None,
            spare_buffer: None,
        }
    }

    /// Charges this account from now on.
    pub fn set_charger(&mut self, charger: MemoryCharger) {
        self.charger = charger;
    }

    /// The account to which the buffers are charged.
    pub fn charger(&self) -> &MemoryCharger {
        &self.charger
    }

    /// Charges a sample that came whole.
    pub fn reserve_sample(&mut self, bytes: usize) -> Option<SampleCharge> {
        self.charger.reserve_sample(bytes)
    }

    /// Handles fragments of a sample that has not been delivered.
    pub fn handle(
        &mut self,
        now: Instant,
        head: SampleHead,
        fragments: &Fragments<'_>,
    ) -> ReassemblyOutcome {
        if fragments.fragment_size == 0 || fragments.count == 0 || fragments.sample_size == 0 {
            return ReassemblyOutcome::Invalid;
        }
        let found = self
            .partials
            .binary_search_by_key(&head.sequence, |partial| partial.head.sequence);
        // The size of a partial sample is known: another one is false, and must not
        // discard the received fragments.
        let size = usize::try_from(fragments.sample_size).unwrap_or(usize::MAX);
        if found.is_err() && size > self.limits.sample_bytes_max {
            return ReassemblyOutcome::TooLarge;
        }
        let at = match found {
            Ok(at) => {
                if let Some(partial) = self.partials.get_mut(at) {
                    let known = &mut partial.head;
                    known.filter_result = known.filter_result.or(head.filter_result);
                    known.source_timestamp = known.source_timestamp.or(head.source_timestamp);
                    if known.coherent_mark.is_none() {
                        known.coherent_mark = head.coherent_mark;
                    }
                }
                at
            }
            Err(at) => match self.start_sample(now, at, head, fragments) {
                Ok(at) => at,
                Err(None) => return ReassemblyOutcome::BufferFull,
                Err(Some(head)) => return ReassemblyOutcome::NoMemory(head),
            },
        };
        let Some(partial) = self.partials.get_mut(at) else {
            return ReassemblyOutcome::BufferFull;
        };
        if partial.fragment_size != fragments.fragment_size
            || partial.sample_size != fragments.sample_size
        {
            if size > self.limits.sample_bytes_max || !partial.is_outvoted(now, fragments) {
                return ReassemblyOutcome::Invalid;
            }
            // The fragments so far were forged.
            let head = partial.head.clone();
            self.discard(at);
            return self.handle(now, head, fragments);
        }
        let outcome = partial.store(now, fragments);
        if matches!(outcome, ReassemblyOutcome::Incomplete) {
            partial.contradicted.2 = 0;
            partial.requests = 0;
            partial.is_renewed = false;
        }
        if partial.received.is_empty() {
            // No valid fragment: it must not occupy an entry.
            self.discard(at);
            return outcome;
        }
        if !partial.is_complete() {
            return outcome;
        }
        let (head, payload, charge) = self.complete(at);
        ReassemblyOutcome::Complete(head, payload, charge)
    }

    /// Frees an entry for a new partial sample. Returns its index. If there is no
    /// memory, it gives the head back.
    fn start_sample(
        &mut self,
        now: Instant,
        at: usize,
        head: SampleHead,
        fragments: &Fragments<'_>,
    ) -> Result<usize, Option<Box<SampleHead>>> {
        let size = usize::try_from(fragments.sample_size).unwrap_or(usize::MAX);
        let mut at = at;
        let charge = loop {
            let is_full = self.partials.len() >= self.limits.samples_max
                || self.announced_bytes().saturating_add(size) > self.limits.bytes_max;
            let reserved = if is_full {
                None
            } else {
                self.charger.reserve(size)
            };
            if let Some(charge) = reserved {
                break charge;
            }
            if !is_full && self.spare_buffer.take().is_some() {
                continue;
            }
            // A reliable reader keeps the lowest numbers, a best-effort one the highest.
            let is_evictable = if self.reliable {
                at < self.partials.len()
            } else {
                at > 0
            };
            if !is_evictable {
                return Err((!is_full).then(|| Box::new(head)));
            }
            if self.reliable {
                self.discard(self.partials.len().saturating_sub(1));
            } else {
                self.discard(0);
                at = at.saturating_sub(1);
            }
        };
        let buffer = self.reuse(size);
        self.partials.insert(
            at,
            PartialSample {
                head,
                fragment_size: fragments.fragment_size,
                sample_size: fragments.sample_size,
                received: self
                    .spare_set
                    .take()
                    .unwrap_or_else(|| IntervalSet::new(RUNS_MAX)),
                buffered_bytes: 0,
                buffer,
                ahead: Vec::new(),
                last_progress: now,
                charge,
                contradicted: (0, 0, 0),
                requests: 0,
                is_renewed: false,
            },
        );
        Ok(at)
    }

    /// The last payload's memory, if it is large enough and no longer used.
    fn reuse(&mut self, size: usize) -> BytesMut {
        if size < REUSE_MIN_BYTES {
            return BytesMut::new();
        }
        let spare = self.spare_buffer.take().map(|(payload, _)| payload);
        match spare.map(Bytes::try_into_mut) {
            Some(Ok(mut buffer)) if buffer.capacity() >= size => {
                buffer.clear();
                buffer
            }
            _ => BytesMut::new(),
        }
    }

    fn announced_bytes(&self) -> usize {
        self.partials.iter().fold(0, |sum: usize, partial| {
            sum.saturating_add(usize::try_from(partial.sample_size).unwrap_or(usize::MAX))
        })
    }

    fn discard(&mut self, at: usize) {
        if at < self.partials.len() {
            let mut partial = self.partials.remove(at);
            partial.received.clear();
            self.spare_set = Some(partial.received);
        }
    }

    fn complete(&mut self, at: usize) -> (SampleHead, Bytes, SampleCharge) {
        self.in_vain = 0;
        let mut partial = self.partials.remove(at);
        partial.received.clear();
        self.spare_set = Some(partial.received);
        let payload = partial.buffer.freeze();
        if payload.len() >= REUSE_MIN_BYTES {
            let charge = self.charger.reserve_from_half(payload.len());
            self.spare_buffer = charge.map(|charge| (payload.clone(), charge));
        }
        let charge = self.charger.complete(partial.charge);
        (partial.head, payload, charge)
    }

    /// Drops partial samples below `sequence`; returns how many.
    pub fn remove_below(&mut self, sequence: SequenceNumber) -> usize {
        let count_below = self
            .partials
            .partition_point(|partial| partial.head.sequence < sequence);
        for _ in 0..count_below {
            self.discard(0);
        }
        count_below
    }

    /// Drops the partial samples of `first..=last`.
    pub fn remove(&mut self, first: SequenceNumber, last: SequenceNumber) {
        let from = self
            .partials
            .partition_point(|partial| partial.head.sequence < first);
        while self
            .partials
            .get(from)
            .is_some_and(|partial| partial.head.sequence <= last)
        {
            self.discard(from);
        }
    }

    /// Drops the partial samples of which nothing was received for `age`.
    pub fn remove_older(&mut self, now: Instant, age: Duration) {
        self.partials.retain(|partial| !partial.is_idle(now, age));
    }

    /// Drops samples of a reliable writer that cannot become whole: other sizes
    /// contradict them, or requests for the rest have no effect, and nothing was
    /// received for a while. `age` is that while for the latter. It does not pass while
    /// the writer is silent.
    pub fn remove_hopeless(&mut self, now: Instant, age: Duration) {
        let before = self.partials.len();
        let age = age.times(1 << self.in_vain.min(DOUBLINGS_MAX));
        let is_silent = self.is_silent(now);
        self.partials.retain(|partial| {
            let is_contradicted = partial.contradicted.2 > 0;
            let is_in_vain =
                !is_silent && partial.requests >= VAIN_REQUESTS && partial.is_idle(now, age);
            !(is_in_vain || is_contradicted && partial.is_idle(now, CONTRADICTED_AGE))
        });
        if self.partials.len() < before {
            self.in_vain = self.in_vain.saturating_add(1);
        }
    }

    fn is_silent(&self, now: Instant) -> bool {
        self.heard_at.after(SILENCE_MIN) <= now
    }

    /// Notes a HEARTBEAT of the writer.
    pub fn note_heartbeat(&mut self, now: Instant) {
        if self.is_silent(now) {
            for partial in self.partials.iter_mut().filter(|of| !of.is_renewed) {
                partial.is_renewed = true;
                partial.requests = 0;
                partial.last_progress = now;
            }
        }
        self.heard_at = now;
    }

    /// Notes a request for missing fragments.
    pub fn note_requested(&mut self, sequence: SequenceNumber) {
        let mut partials = self.partials.iter_mut();
        if let Some(partial) = partials.find(|partial| partial.head.sequence == sequence) {
            partial.requests = partial.requests.saturating_add(1);
        }
    }

    /// Numbers of the partial samples, lowest first.
    pub fn sequences(&self) -> impl Iterator<Item = SequenceNumber> + '_ {
        self.partials.iter().map(|partial| partial.head.sequence)
    }

    /// The number of partial samples.
    pub fn len(&self) -> usize {
        self.partials.len()
    }

    /// The limit of partial samples.
    pub fn samples_max(&self) -> usize {
        self.limits.samples_max.max(1)
    }

    /// Bytes reserved for samples of which fragments are missing.
    pub fn buffered_bytes(&self) -> usize {
        let held = self.partials.iter().map(PartialSample::memory_bytes);
        held.fold(0, usize::saturating_add)
    }

    /// Whether the sample is partial.
    pub fn contains(&self, sequence: SequenceNumber) -> bool {
        self.partials
            .binary_search_by_key(&sequence, |partial| partial.head.sequence)
            .is_ok()
    }

    /// The highest received fragment of the sample.
    pub fn last_received(&self, sequence: SequenceNumber) -> Option<u32> {
        let at = self
            .partials
            .binary_search_by_key(&sequence, |partial| partial.head.sequence)
            .ok()?;
        let run = self.partials.get(at)?.received.runs().last()?;
        u32::try_from(run.last).ok()
    }

    /// The missing runs of fragments up to `last` of the sample.
    pub fn missing(
        &self,
        sequence: SequenceNumber,
        last: Option<u32>,
    ) -> impl Iterator<Item = NumberRun> + '_ {
        self.partials
            .binary_search_by_key(&sequence, |partial| partial.head.sequence)
            .ok()
            .and_then(|at| self.partials.get(at))
            .into_iter()
            .flat_map(move |partial| {
                let total = partial.fragments_total();
                let last = last.unwrap_or(total).min(total);
                partial.received.missing(1, i64::from(last))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(sequence: i64) -> SampleHead {
        SampleHead {
            sequence: SequenceNumber(sequence),
            kind: ChangeKind::Alive,
            source_timestamp: None,
            carrier: Carrier::Datagrams,
            key_only: false,
            key_hash: None,
            related_sample_identity: None,
            coherent_mark: None,
            original_writer_info: None,
            filter_result: None,
        }
    }

    fn fragment(first: u32, total: u32, payload: &[u8]) -> Fragments<'_> {
        Fragments {
            first,
            count: 1,
            fragment_size: 4,
            sample_size: total,
            payload,
        }
    }

    fn defragmenter(reliable: bool) -> Defragmenter {
        Defragmenter::new(DefragLimits::default(), reliable)
    }

    #[test]
    fn fragments_in_any_order_make_the_same_sample() {
        let whole = b"abcdefghij";
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 1, 2]] {
            let mut d = defragmenter(true);
            let mut got = None;
            for number in order {
                let from = (number as usize - 1) * 4;
                let bytes = &whole[from..(from + 4).min(10)];
                if let ReassemblyOutcome::Complete(_, payload, _) =
                    d.handle(Instant::ZERO, head(1), &fragment(number, 10, bytes))
                {
                    got = Some(payload);
                }
            }
            assert_eq!(got.as_deref(), Some(&whole[..]));
        }
    }

    fn at_ms(ms: i64) -> Instant {
        Instant::ZERO.after(Duration::from_millis(ms))
    }

    /// A fragment of a sample of ten bytes, and one of the sample of 100 bytes that was
    /// forged before.
    fn forged_and_real() -> (Defragmenter, Fragments<'static>) {
        let mut d = defragmenter(true);
        for number in 1..25 {
            let forged = fragment(number, 100, b"ffff");
            let outcome = d.handle(at_ms(0), head(1), &forged);
            assert!(matches!(outcome, ReassemblyOutcome::Incomplete));
        }
        (d, fragment(1, 10, b"abcd"))
    }

    #[test]
    fn a_sample_without_progress_gives_way_to_one_of_another_size() {
        let (mut d, real) = forged_and_real();
        let refused = d.handle(at_ms(499), head(1), &real);
        assert!(matches!(refused, ReassemblyOutcome::Invalid));
        // It is contradicted and idle, so it need not wait for another fragment.
        d.remove_hopeless(at_ms(499), Duration::from_secs(2));
        assert!(d.contains(SequenceNumber(1)));
        d.remove_hopeless(at_ms(500), Duration::from_secs(2));
        assert!(!d.contains(SequenceNumber(1)));

        let (mut d, real) = forged_and_real();
        let taken = d.handle(at_ms(500), head(1), &real);
        assert!(matches!(taken, ReassemblyOutcome::Incomplete));
        assert_eq!(d.last_received(SequenceNumber(1)), Some(1));
    }

    #[test]
    fn a_sample_whose_rest_is_requested_in_vain_is_dropped_later_each_time() {
        let age = Duration::from_secs(2);
        let mut d = defragmenter(true);
        let mut at = 0;
        for round in 0..8 {
            let begun = fragment(1, 100, b"ffff");
            d.handle(at_ms(at), head(1), &begun);
            d.heard_at = Instant::ZERO;
            (0..VAIN_REQUESTS - 1).for_each(|_| d.note_requested(SequenceNumber(1)));
            d.remove_hopeless(at_ms(at + 1_000_000), age);
            assert!(d.contains(SequenceNumber(1)), "requested too seldom");
            d.note_requested(SequenceNumber(1));
            let idle = 2_000 << round.min(5);
            d.remove_hopeless(at_ms(at + idle), age);
            assert!(d.contains(SequenceNumber(1)), "the writer is silent");
            d.heard_at = at_ms(at + idle - 1);
            d.remove_hopeless(at_ms(at + idle - 1), age);
            assert!(d.contains(SequenceNumber(1)), "{round}");
            d.remove_hopeless(at_ms(at + idle), age);
            assert!(!d.contains(SequenceNumber(1)), "{round}");
            at += idle;
        }
        // A whole sample ends that.
        for (number, bytes) in [(1, &b"abcd"[..]), (2, b"efgh"), (3, b"ij")] {
            d.handle(at_ms(at), head(1), &fragment(number, 10, bytes));
        }
        assert_eq!(d.in_vain, 0);
        // Progress does as well.
        d.handle(at_ms(at), head(2), &fragment(1, 100, b"ffff"));
        (0..VAIN_REQUESTS).for_each(|_| d.note_requested(SequenceNumber(2)));
        d.handle(at_ms(at), head(2), &fragment(2, 100, b"ffff"));
        d.remove_hopeless(at_ms(at + 1_000_000), age);
        assert!(d.contains(SequenceNumber(2)));
    }

    #[test]
    fn a_partial_sample_outlives_a_cut_and_one_period_of_rare_heartbeats() {
        let age = Duration::from_millis(1_250);
        let mut d = defragmenter(true);
        d.note_heartbeat(at_ms(1_000));
        d.handle(at_ms(1_000), head(1), &fragment(1, 100, b"ffff"));
        let request = |d: &mut Defragmenter| {
            (0..VAIN_REQUESTS).for_each(|_| d.note_requested(SequenceNumber(1)));
        };
        request(&mut d);
        d.remove_hopeless(at_ms(60_000), age);
        d.note_heartbeat(at_ms(60_000));
        request(&mut d);
        d.remove_hopeless(at_ms(60_400), age);
        assert!(
            d.contains(SequenceNumber(1)),
            "requested again a moment ago"
        );
        // Heard every 3 s: the second time is no surprise.
        d.note_heartbeat(at_ms(63_000));
        d.remove_hopeless(at_ms(63_100), age);
        assert!(!d.contains(SequenceNumber(1)));
    }

    #[test]
    fn contradictory_sizes_are_refused() {
        let mut d = defragmenter(true);
        let bad = |d: &mut Defragmenter, f| {
            matches!(
                d.handle(Instant::ZERO, head(1), &f),
                ReassemblyOutcome::Invalid
            )
        };
        let zero = Fragments {
            fragment_size: 0,
            ..fragment(1, 10, b"abcd")
        };
        assert!(bad(&mut d, zero));
        assert!(bad(&mut d, fragment(0, 10, b"abcd")));
        assert!(bad(&mut d, fragment(4, 10, b"abcd")));
        assert!(bad(&mut d, fragment(u32::MAX, 10, b"abcd")));
        assert!(bad(&mut d, fragment(1, 10, b"abc")));
        assert_eq!(d.sequences().count(), 0, "refused pieces hold no place");
        assert!(matches!(
            d.handle(Instant::ZERO, head(1), &fragment(1, u32::MAX, b"abcd")),
            ReassemblyOutcome::TooLarge
        ));
        assert!(matches!(
            d.handle(Instant::ZERO, head(1), &fragment(1, 10, b"abcd")),
            ReassemblyOutcome::Incomplete
        ));
        assert!(
            bad(&mut d, fragment(2, 12, b"efgh")),
            "total size is fixed by the first"
        );
        assert!(matches!(
            d.handle(Instant::ZERO, head(1), &fragment(1, 10, b"abcd")),
            ReassemblyOutcome::Duplicate
        ));
    }

    #[test]
    fn one_small_packet_cannot_make_a_large_buffer() {
        let mut d = defragmenter(true);
        let total = 60 << 20;
        assert!(matches!(
            d.handle(Instant::ZERO, head(1), &fragment(total / 4, total, b"abcd")),
            ReassemblyOutcome::Incomplete
        ));
        assert!(matches!(
            d.handle(Instant::ZERO, head(1), &fragment(1, total, b"abcd")),
            ReassemblyOutcome::Incomplete
        ));
        assert!(d.partials[0].buffer.capacity() <= 2 << 20);
    }

    #[test]
    fn when_full_a_reliable_reader_keeps_the_lowest_and_a_best_effort_one_the_newest() {
        for reliable in [true, false] {
            let mut d = defragmenter(reliable);
            for sequence in 10..30 {
                d.handle(Instant::ZERO, head(sequence), &fragment(1, 8, b"abcd"));
            }
            d.handle(Instant::ZERO, head(1), &fragment(1, 8, b"abcd"));
            let kept: Vec<i64> = d.sequences().map(|s| s.0).collect();
            let expected: Vec<i64> = if reliable {
                core::iter::once(1).chain(10..17).collect()
            } else {
                (22..30).collect()
            };
            assert_eq!(kept, expected);
        }
    }

    #[test]
    fn the_buffer_of_a_large_sample_is_reused_after_release() {
        let mut d = defragmenter(true);
        let bytes = [7; 50_000];
        let mut run = |sequence| {
            let mut last = None;
            for first in 1..=3 {
                let f = Fragments {
                    first,
                    count: 1,
                    fragment_size: 50_000,
                    sample_size: 150_000,
                    payload: &bytes,
                };
                if let ReassemblyOutcome::Complete(_, payload, _) =
                    d.handle(Instant::ZERO, head(sequence), &f)
                {
                    last = Some(payload);
                }
            }
            last.expect("whole")
        };
        let first = run(1);
        let held = first.as_ptr();
        let second = run(2);
        assert_ne!(second.as_ptr(), held, "still read by the application");
        let at = second.as_ptr();
        drop((first, second));
        assert_eq!(run(3).as_ptr(), at);
    }
}
