//! One publisher's endpoint: the protocol machine, the list of local routes
//! and what late local joiners will want.
//!
//! Lock order within an endpoint: `state`, then a local reader's queue. No
//! lock is held while datagrams are sent.

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_msg::cdr::{DecodeError, Representation};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, Durability, XCDR2};
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::writer::{Writer, WriterEvent};

use crate::aside::{self, Stay};
use crate::changeable::WriterPolicies;
use crate::content_filter::FilterableType;
use crate::durable;
use crate::event::{EndpointEvent, Events};
use crate::flow::Place;
use crate::instance::{KeyHash, KeyReader, Keying, Lifecycle, Registry};
use crate::latch::Latch;
use crate::links::Chunk;
use crate::local::LocalRoute;
use crate::publisher_group::PublisherGroup;
use crate::room::Patience;
use crate::sample::{Body, Item, SharedValue};
use crate::store::Store;

/// A message on its way out: made into whichever form a reader needs, each at
/// most once.
pub trait Outgoing {
    /// The Rust type of [`Outgoing::shared`]'s value.
    fn message_type(&self) -> TypeId;

    /// The message as a shared value; `None` if it only exists as bytes.
    fn shared(&mut self) -> Option<Arc<dyn SharedValue>>;

    /// The message as CDR with its encapsulation header.
    fn serialized(&mut self) -> Bytes;

    /// Whether memory of [`Outgoing::offer_memory`] is of use: not to what lies
    /// in such memory already.
    fn wants_memory(&self) -> bool {
        true
    }

    /// Memory to write the CDR into, should it be asked for: of just its size,
    /// and shared with readers of other processes. What makes no use of it is
    /// copied for them.
    fn offer_memory(&mut self, _memory: Chunk) {}

    /// The serialized size in bytes, counted without serializing, once.
    fn serialized_len(&mut self) -> usize;

    /// Data, unless it ends an instance: then the bytes are the key's.
    fn kind(&self) -> ChangeKind {
        ChangeKind::Alive
    }

    /// The request it replies to, or where its own reply is to go
    /// ([`crate::service`]); sent along.
    fn related(&self) -> Option<SampleIdentity> {
        None
    }

    /// The only matched reader it is meant for; `None` is all of them.
    fn only_for(&self) -> Option<Guid> {
        None
    }

    /// The instance it is of; asked by publishers of keyed topics alone.
    ///
    /// # Errors
    /// The message is not of the type that `reader` reads.
    fn key_hash(&mut self, reader: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        reader.of_sample(&self.serialized())
    }

    /// The serialized key with its encapsulation header; asked once for each
    /// new instance.
    ///
    /// # Errors
    /// As [`Outgoing::key_hash`].
    fn key(&mut self, reader: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        reader.key_of(&self.serialized()).map(Bytes::from)
    }
}

/// The counters of a publisher. Totals since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterCounts {
    /// Messages published.
    pub published: u64,
    /// Times a message was turned into bytes.
    pub serialized: u64,
    /// Samples handed over within the process.
    pub delivered_locally: u64,
    /// Messages not sent to a subscription of another process whose content
    /// filter does not want them; once for each such subscription.
    pub kept_back: u64,
    /// Messages of an asynchronous publisher that KEEP_LAST replaced before its
    /// flow controller had sent them.
    pub replaced_unsent: u64,
}

/// A writer as the runtime knows it.
pub struct WriterEndpoint {
    /// What it was made with: names and the policies that never change. The
    /// others are as they are in [`WriterEndpoint::announced`].
    pub data: Arc<EndpointData>,
    pub(crate) policies: WriterPolicies,
    /// The largest serialized message, bytes.
    pub(crate) sample_bytes_max: usize,
    /// Its instances are told apart.
    pub(crate) is_keyed: bool,
    /// Its place at a flow controller, if it is asynchronous.
    pub(crate) place: Option<Place>,
    /// It is ranked there by itself, not by its TRANSPORT_PRIORITY.
    pub(crate) has_own_rank: bool,
    /// Its messages may wait for callbacks, see [`crate::aside`].
    pub(crate) may_put_aside: bool,
    /// It shares no values within its process, see [`crate::as_bytes`].
    pub(crate) as_bytes: bool,
    pub(crate) state: Mutex<WriterState>,
    remote: AtomicUsize,
    /// Those of them that are reached by shared memory.
    linked: AtomicUsize,
    /// Some of them ask for a link with the next message.
    seeks_links: AtomicBool,
    /// The publisher that it shares with others.
    pub(crate) group: Option<Arc<PublisherGroup>>,
    /// What its messages are made of, for its readers' filters.
    pub(crate) ty: FilterableType,
    /// What happens to it.
    pub events: Arc<Events>,
    /// Where its samples outlive it.
    pub(crate) store: Option<Store>,
    serialized: AtomicU64,
}

pub(crate) struct WriterState {
    pub(crate) machine: Writer,
    /// Its readers within the context.
    pub(crate) local: Vec<LocalRoute>,
    pub(crate) latched: Latch,
    /// What of it goes to other processes in a moment.
    pub(crate) stay: Stay,
    /// The instances it writes, if its topic has a key.
    pub(crate) registry: Option<Box<Registry>>,
    /// The last source stamp, where stamps must not run back.
    stamped: Option<Timestamp>,
    /// Until when the driver leaves what it has to send: a publishing thread is at
    /// it, or the socket is full. See [`crate::room`].
    pub(crate) resumes_at: Option<Instant>,
    /// It is gone for its user, see [`crate::departure`].
    pub(crate) lingers: bool,
    /// The first number of the open coherent set.
    pub(crate) set: Option<SequenceNumber>,
    pub(crate) published: u64,
    pub(crate) delivered_locally: u64,
}

impl WriterEndpoint {
    pub(crate) fn new(
        data: Arc<EndpointData>,
        machine: Writer,
        sample_bytes_max: usize,
        keying: (&Keying, Lifecycle),
        group: Option<Arc<PublisherGroup>>,
        (events, store): (Arc<Events>, Option<Store>),
    ) -> Self {
        let key = keying.0.reader();
        let latched = match store {
            None => Latch::new(&data.qos, key.is_some()),
            Some(_) => Latch::new(&durable::late_joiners_qos(&data.qos), key.is_some()),
        };
        let registry = key.map(|key| Box::new(Registry::new(key.clone(), &data.qos)));
        let by_source = data.qos.destination_order == DestinationOrder::BySource;
        let stamped = by_source.then_some(Timestamp::from_nanos(i64::MIN));
        let is_timed = key.is_some() || group.is_some();
        let may_put_aside = !is_timed && store.is_none() && aside::suits(&data.qos);
        Self {
            policies: WriterPolicies::new(&data, keying.1, is_timed),
            data,
            sample_bytes_max,
            is_keyed: key.is_some(),
            may_put_aside,
            as_bytes: false,
            place: None,
            has_own_rank: false,
            state: Mutex::new(WriterState {
                machine,
                local: Vec::new(),
                latched,
                stay: Stay::default(),
                registry,
                stamped,
                resumes_at: None,
                lingers: false,
                set: None,
                published: 0,
                delivered_locally: 0,
            }),
            remote: AtomicUsize::new(0),
            linked: AtomicUsize::new(0),
            seeks_links: AtomicBool::new(false),
            group,
            ty: FilterableType::default(),
            events,
            store,
            serialized: AtomicU64::new(0),
        }
    }

    /// The writer's identity.
    pub fn guid(&self) -> Guid {
        self.data.guid
    }

    /// Its place at a flow controller, as it is ranked now.
    pub(crate) fn place(&self) -> Option<Place> {
        let place = self.place?;
        Some(match self.has_own_rank {
            true => place,
            false => Place {
                priority: self.transport_priority(),
                ..place
            },
        })
    }

    /// Subscriptions matched now, local ones included.
    pub fn matched_count(&self) -> usize {
        self.events.matched_count()
    }

    /// The subscriptions matched now, local ones included.
    pub fn matched(&self) -> Vec<Guid> {
        let state = self.state.lock();
        let local = state.local.iter().map(|route| route.reader.data.guid);
        state.machine.matched().chain(local).collect()
    }

    /// Readers of other processes matched now.
    pub fn remote_count(&self) -> usize {
        self.remote.load(Ordering::Acquire)
    }

    /// Readers of other processes reached by shared memory now.
    pub fn linked_count(&self) -> usize {
        self.linked.load(Ordering::Relaxed)
    }

    /// A reader's process is to be asked for a link with the next message.
    pub(crate) fn note_unasked(&self) {
        self.seeks_links.store(true, Ordering::Relaxed);
    }

    /// Whether there are such, once.
    pub(crate) fn take_seeking(&self) -> bool {
        // Most often there are none, and that costs one load.
        self.seeks_links.load(Ordering::Relaxed) && self.seeks_links.swap(false, Ordering::Relaxed)
    }

    /// Brings that up to date.
    pub(crate) fn note_links(&self, machine: &Writer) {
        // Relaxed: whoever publishes meanwhile is right either way.
        self.linked.store(machine.linked_count(), Ordering::Relaxed);
    }

    /// The counters.
    pub fn counts(&self) -> WriterCounts {
        let state = self.state.lock();
        let stats = state.machine.stats();
        WriterCounts {
            kept_back: stats.filtered,
            published: state.published,
            serialized: self.serialized.load(Ordering::Relaxed),
            delivered_locally: state.delivered_locally,
            replaced_unsent: stats.replaced_unsent,
        }
    }

    /// Whether every reliable reader has acknowledged everything, and an
    /// asynchronous writer has sent everything to whoever reads.
    pub fn is_acknowledged(&self) -> bool {
        self.has_arrived(&self.state.lock())
    }

    pub(crate) fn has_arrived(&self, state: &WriterState) -> bool {
        let machine = &state.machine;
        state.stay.is_empty()
            && machine.is_acked_by_all()
            && (self.place.is_none() || !machine.has_output())
    }

    /// Samples of an asynchronous writer that were not sent yet.
    pub fn unsent_count(&self) -> usize {
        match self.place {
            Some(_) => self.state.lock().machine.unsent_count(),
            None => 0,
        }
    }

    /// Whether the heartbeat that follows a write comes in time: as soon as a
    /// writer may wait after one (`HeartbeatConfig::first`).
    pub fn heartbeat_follows(&self, now: Instant) -> bool {
        let machine = &self.state.lock().machine;
        let latest = now.after(machine.heartbeat_pause_max());
        machine.heartbeat_due().is_none_or(|due| due <= latest)
    }

    /// Whether a message is wanted outside this process, or may yet be.
    pub(crate) fn leaves_process(&self) -> bool {
        self.remote_count() > 0 || self.is_latching()
    }

    /// How long who publishes may wait for room in the socket.
    pub(crate) fn patience(&self) -> Patience {
        Patience::of(self.data.qos.max_blocking_time)
    }

    pub(crate) fn is_latching(&self) -> bool {
        self.data.qos.durability != Durability::Volatile
    }

    pub(crate) fn note_serialized(&self) {
        self.serialized.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_remote(&self, change: i32) {
        if change > 0 {
            self.remote.fetch_add(1, Ordering::AcqRel);
        } else {
            self.remote.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// How its messages are serialized.
    pub(crate) fn representation(&self) -> Representation {
        match self.data.qos.representation.first() {
            Some(&XCDR2) => Representation::Xcdr2,
            _ => Representation::Xcdr1,
        }
    }

    /// Serializes what is kept as values alone: somebody reads it now.
    pub(crate) fn supply(&self, state: &mut WriterState) {
        let WriterState {
            machine, latched, ..
        } = state;
        machine.supply(|sequence| match &latched.find(sequence.0)?.body {
            Body::Shared(value) => {
                self.note_serialized();
                Some(value.payload(self.representation()))
            }
            Body::Serialized(payload) => Some(payload.clone()),
        });
    }

    /// The bytes of a kept sample.
    pub(crate) fn kept_payload(&self, machine: &Writer, item: &Item) -> Bytes {
        match &item.body {
            Body::Serialized(payload) => payload.clone(),
            Body::Shared(value) => {
                let kept = machine.kept(SequenceNumber(item.meta.sequence));
                let kept = kept.cloned();
                kept.unwrap_or_else(|| value.payload(self.representation()))
            }
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&self, now: Instant) {
        let mut state = self.state.lock();
        state.machine.handle_timeout(now);
        let missed = state.registry.as_mut().and_then(|r| r.handle_timeout(now));
        drop(state);
        if let Some(total) = missed {
            self.events.note(EndpointEvent::DeadlineMissed { total });
        }
    }

    /// Moves the machine's events to the queue and tells user code.
    pub(crate) fn collect(&self, machine: &mut Writer) {
        while let Some(event) = machine.poll_event() {
            match event {
                WriterEvent::DeadlineMissed { total } => {
                    self.events.note(EndpointEvent::DeadlineMissed { total });
                }
                WriterEvent::LivelinessLost { total } => {
                    self.events.note(EndpointEvent::LivelinessLost { total });
                }
                // The last is of discovery's writers only.
                WriterEvent::AllAcknowledged
                | WriterEvent::SpaceFreed
                | WriterEvent::ReaderBeganAnew { .. } => {}
            }
        }
    }
}

impl WriterState {
    /// Whether nobody within the process looks at the time of a message.
    pub(crate) fn is_timeless(&self) -> bool {
        !self.local.iter().any(LocalRoute::is_watched)
    }

    /// The stamp to send. Where readers order by it, it never runs back: else
    /// a wall clock set back would silence the writer until it caught up.
    pub(crate) fn stamp(&mut self, source: Timestamp) -> Timestamp {
        let Some(last) = &mut self.stamped else {
            return source;
        };
        *last = source.max(*last);
        *last
    }

    /// When the machine, or an instance, is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let machine = match self.resumes_at {
            None => self.machine.next_timeout(),
            Some(at) => self.machine.next_timer().into_iter().chain([at]).min(),
        };
        let instances = self.registry.as_ref().and_then(|r| r.next_timeout());
        [machine, instances].into_iter().flatten().min()
    }
}
