//! A publisher's endpoint: protocol machine, intra-process routes and local
//! history.
//!
//! Its lock is not held while datagrams are sent.
//!
//! Some methods of `WriterEndpoint` read without its lock. The others join machine,
//! routes and history under it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use pteros_msg::cdr::Representation;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, Durability, XCDR2};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_rtps::writer::{Writer, WriterEvent};

pub use crate::outbound::OutboundMessage;

use crate::endpoints::changeable_qos::ChangeableWriterQos;
use crate::endpoints::content_filter::FilterableType;
use crate::endpoints::durable_store;
use crate::endpoints::event::{EndpointEvent, EndpointEvents};
use crate::endpoints::local_route::IntraProcessRoute;
use crate::endpoints::publisher_group::PublisherGroup;
use crate::endpoints::stall_report::StallReport;
use crate::instance::{TopicKey, WriterInstances};
use crate::lock::{Mutex, rank};
use crate::qos::DataLifecycle;
use crate::sample::{QueuedSample, SampleBody};
use crate::send::SendPath;
use crate::send::back_pressure::{BlockingBudget, next_send_retry};
use crate::send::deferred::{self, DeferredSlot};
use crate::send::flow_controller::FlowMembership;
use crate::store::Store;
use crate::transport::routes::TransportRoutes;
use pteros_dcps::history::LocalHistory;

/// Counters of a publisher since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterCounts {
    /// Messages published.
    pub published: u64,
    /// How often a message was serialized.
    pub serialized: u64,
    /// Samples delivered within the process.
    pub delivered_locally: u64,
    /// Messages not sent to a subscription of another process because of its
    /// content filter; counted once for each such subscription.
    pub content_filtered: u64,
    /// Messages of an asynchronous publisher that KEEP_LAST replaced before its
    /// flow controller sent them.
    pub replaced_before_send: u64,
}

/// A writer as the runtime knows it.
pub struct WriterEndpoint {
    /// The data it was created with: names and immutable policies. See
    /// [`WriterEndpoint::announced`] for the changeable ones.
    pub data: Arc<EndpointData>,
    pub(crate) policies: ChangeableWriterQos,
    pub(crate) stall_report: StallReport,
    /// A subscription that drops its messages as undecodable was logged.
    pub(crate) told_undecodable: AtomicBool,
    /// The largest serialized message, bytes.
    pub(crate) sample_bytes_max: usize,
    /// Whether its topic has a key.
    pub(crate) is_keyed: bool,
    /// Its membership at a flow controller, if it is asynchronous.
    pub(crate) flow_membership: Option<FlowMembership>,
    /// The flow controller uses the publisher's own priority instead of
    /// TRANSPORT_PRIORITY.
    pub(crate) has_own_priority: bool,
    /// Its remote sends may be deferred, see [`crate::send::deferred`].
    pub(crate) may_defer_send: bool,
    /// It shares no values within its process, see [`crate::endpoints::serialize_only`].
    pub(crate) serialize_only: bool,
    pub(crate) state: Mutex<WriterState, rank::WriterState>,
    remote: AtomicUsize,
    /// Number of routes on further transports.
    transport_routes: AtomicUsize,
    /// Number of remote readers that are reached by shared memory.
    connected: AtomicUsize,
    /// Some remote readers are to be connected with the next message.
    wants_connections: AtomicBool,
    /// Publisher group of the writer.
    pub(crate) group: Option<Arc<PublisherGroup>>,
    /// Its message type, for the content filters of its readers.
    pub(crate) ty: FilterableType,
    /// Its status events.
    pub events: Arc<EndpointEvents>,
    /// The durable store of its samples.
    pub(crate) store: Option<Store>,
    serialized: AtomicU64,
}

pub(crate) struct WriterState {
    pub(crate) machine: Writer,
    /// Its readers within the context.
    pub(crate) local: Vec<IntraProcessRoute>,
    /// Its readers on further transports.
    pub(crate) transports: TransportRoutes,
    pub(crate) history: LocalHistory,
    /// The remote send of its last message, if deferred.
    pub(crate) deferred: DeferredSlot,
    /// The instances it writes, if its topic has a key.
    pub(crate) instances: Option<Box<WriterInstances>>,
    /// Last source timestamp, if timestamps must not decrease.
    last_source_timestamp: Option<Timestamp>,
    /// Until when the driver does not send the remaining data: a publishing thread sends
    /// it, or the socket is full. See [`crate::send::back_pressure`].
    pub(crate) resumes_at: Option<Instant>,
    /// Its user has removed it, see [`crate::core`].
    pub(crate) is_lingering: bool,
    /// The first sequence number of the open coherent set.
    pub(crate) open_set_begin: Option<SequenceNumber>,
    pub(crate) published: u64,
    pub(crate) delivered_locally: u64,
}

/// Parameters of a new [`WriterEndpoint`].
pub(crate) struct WriterEndpointConfig<'k> {
    pub(crate) data: Arc<EndpointData>,
    pub(crate) machine: Writer,
    pub(crate) sample_bytes_max: usize,
    pub(crate) topic_key: &'k TopicKey,
    pub(crate) lifecycle: DataLifecycle,
    pub(crate) group: Option<Arc<PublisherGroup>>,
    pub(crate) events: Arc<EndpointEvents>,
    pub(crate) store: Option<Store>,
}

impl WriterEndpoint {
    pub(crate) fn new(config: WriterEndpointConfig<'_>) -> Self {
        let WriterEndpointConfig {
            data,
            machine,
            sample_bytes_max,
            topic_key,
            lifecycle,
            group,
            events,
            store,
        } = config;
        let key = topic_key.reader();
        let history = match store {
            None => LocalHistory::new(&data.qos, key.is_some()),
            Some(_) => LocalHistory::new(&durable_store::late_joiner_qos(&data.qos), key.is_some()),
        };
        let instances = key.map(|key| Box::new(WriterInstances::new(key.clone(), &data.qos)));
        let by_source = data.qos.destination_order == DestinationOrder::BySource;
        let stamped = by_source.then_some(Timestamp::from_nanos(i64::MIN));
        let always_needs_clock = key.is_some() || group.is_some();
        let may_defer_send =
            !always_needs_clock && store.is_none() && deferred::may_defer(&data.qos);
        Self {
            policies: ChangeableWriterQos::new(&data, lifecycle, always_needs_clock),
            stall_report: StallReport::default(),
            told_undecodable: AtomicBool::new(false),
            data,
            sample_bytes_max,
            is_keyed: key.is_some(),
            may_defer_send,
            serialize_only: false,
            flow_membership: None,
            has_own_priority: false,
            state: Mutex::new(WriterState {
                machine,
                local: Vec::new(),
                transports: TransportRoutes::default(),
                history,
                deferred: DeferredSlot::default(),
                instances,
                last_source_timestamp: stamped,
                resumes_at: None,
                is_lingering: false,
                open_set_begin: None,
                published: 0,
                delivered_locally: 0,
            }),
            remote: AtomicUsize::new(0),
            transport_routes: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
            wants_connections: AtomicBool::new(false),
            group,
            ty: FilterableType::default(),
            events,
            store,
            serialized: AtomicU64::new(0),
        }
    }

    /// The writer's GUID.
    pub fn guid(&self) -> Guid {
        self.data.guid
    }

    /// Its membership at a flow controller, with the present priority.
    pub(crate) fn flow_membership(&self) -> Option<FlowMembership> {
        let membership = self.flow_membership?;
        Some(if self.has_own_priority {
            membership
        } else {
            FlowMembership {
                priority: self.transport_priority(),
                ..membership
            }
        })
    }

    /// Number of matched subscriptions, local ones included.
    pub fn matched_count(&self) -> usize {
        self.events.matched_count()
    }

    /// Number of matched subscriptions if all of them are in this context, else 0.
    /// Subscriptions may join or leave meanwhile. So a publisher may use it to choose
    /// what to prepare, not what to deliver. Does not allocate; any thread may call it.
    pub fn intra_process_count(&self) -> usize {
        if self.remote_count() > 0 || self.has_transport_routes() {
            return 0;
        }
        self.matched_count()
    }

    /// The matched subscriptions, local ones included.
    pub fn matched(&self) -> Vec<Guid> {
        let state = self.state.lock();
        let local = state.local.iter().map(|route| route.reader.data.guid);
        let on_transports = state.transports.readers();
        state
            .machine
            .readers()
            .guids()
            .chain(on_transports)
            .chain(local)
            .collect()
    }

    /// Number of matched readers of other processes that RTPS reaches.
    pub fn remote_count(&self) -> usize {
        self.remote.load(Ordering::Acquire)
    }

    /// Number of matched readers that are reached by shared memory.
    pub fn connected_count(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// Notes that the next message requests a connection to some reader's process.
    pub(crate) fn note_on_demand_peer(&self) {
        self.wants_connections.store(true, Ordering::Relaxed);
    }

    /// Whether such a connection is to be requested. Clears the flag.
    pub(crate) fn take_wants_connections(&self) -> bool {
        // Usually none is, which costs one load.
        self.wants_connections.load(Ordering::Relaxed)
            && self.wants_connections.swap(false, Ordering::Relaxed)
    }

    /// Updates the number of readers reached by shared memory.
    pub(crate) fn update_connected_count(&self, machine: &Writer) {
        // Relaxed: for a message published meanwhile, either value is correct.
        self.connected
            .store(machine.readers().shared_memory_count(), Ordering::Relaxed);
    }

    /// Whether a reader of another participant is matched by RTPS.
    pub(crate) fn is_matched_with(&self, reader: Guid) -> bool {
        self.state.lock().machine.readers().contains(reader)
    }

    /// The counters.
    pub fn counts(&self) -> WriterCounts {
        let state = self.state.lock();
        let stats = state.machine.stats();
        WriterCounts {
            content_filtered: stats.filtered,
            published: state.published,
            serialized: self.serialized.load(Ordering::Relaxed),
            delivered_locally: state.delivered_locally,
            replaced_before_send: stats.replaced_unsent,
        }
    }

    /// Whether every reliable reader has acknowledged everything, and an
    /// asynchronous writer has sent everything.
    pub fn is_acknowledged(&self) -> bool {
        self.is_fully_acknowledged(&self.state.lock())
    }

    /// Whether this reader has acknowledged everything that was sent to it.
    pub fn is_acknowledged_by(&self, reader: Guid) -> bool {
        self.state.lock().machine.readers().is_acked_by(reader)
    }

    /// The lowest number that this reader of another process has not acknowledged.
    /// `None` if it is not matched or has acknowledged nothing since its match.
    pub fn first_unacknowledged(&self, reader: Guid) -> Option<SequenceNumber> {
        self.state.lock().machine.readers().first_unacked(reader)
    }

    pub(crate) fn is_fully_acknowledged(&self, state: &WriterState) -> bool {
        let machine = &state.machine;
        state.deferred.is_empty()
            && machine.readers().is_acked_by_all()
            && state.transports.are_acknowledged(self.guid())
            && (self.flow_membership.is_none() || !machine.has_output())
    }

    /// Samples of an asynchronous writer that are not sent yet.
    pub fn unsent_count(&self) -> usize {
        match self.flow_membership {
            Some(_) => self.state.lock().machine.unsent_count(),
            None => 0,
        }
    }

    /// Whether the heartbeat after a write is soon enough: within the first period
    /// (`HeartbeatConfig::first`).
    pub fn heartbeat_follows(&self, now: Instant) -> bool {
        let machine = &self.state.lock().machine;
        let latest = now.after(machine.heartbeat_period());
        machine.next_heartbeat().is_none_or(|due| due <= latest)
    }

    /// Whether readers of other processes, or late joiners, need a message.
    pub(crate) fn leaves_process(&self) -> bool {
        self.remote_count() > 0 || self.keeps_local_history() || self.has_transport_routes()
    }

    /// How long a publisher may block for space in the socket.
    pub(crate) fn blocking_budget(&self) -> BlockingBudget {
        BlockingBudget::for_publish(self.data.qos.max_blocking_time)
    }

    /// Whether some of its readers are reached by a socket.
    pub(crate) fn uses_socket(&self) -> bool {
        self.remote_count() > self.connected_count()
    }

    /// Whether the driver, or a non-blocking publisher, may send for it now: no other
    /// thread is sending, and there is space.
    pub(crate) fn may_send(&self, send: &SendPath, now: Instant, state: &mut WriterState) -> bool {
        if state.resumes_at.is_some_and(|at| at > now) {
            return false;
        }
        let is_held_up =
            state.machine.has_output() && self.uses_socket() && !send.has_socket_space();
        state.resumes_at = is_held_up.then(|| next_send_retry(now));
        !is_held_up
    }

    pub(crate) fn keeps_local_history(&self) -> bool {
        self.data.qos.durability != Durability::Volatile
    }

    pub(crate) fn note_serialized(&self) {
        self.serialized.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether some further transport carries its samples.
    pub fn has_transport_routes(&self) -> bool {
        self.transport_routes.load(Ordering::Relaxed) > 0
    }

    /// Updates the number of routes on further transports.
    pub(crate) fn update_transport_routes(&self, state: &WriterState) {
        // Release: the routes were changed before, under the lock.
        let count = state.transports.count();
        self.transport_routes.store(count, Ordering::Release);
    }

    pub(crate) fn note_remote(&self, change: i32) {
        if change > 0 {
            self.remote.fetch_add(1, Ordering::AcqRel);
        } else {
            self.remote.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The representation in which it serializes.
    pub(crate) fn representation(&self) -> Representation {
        match self.data.qos.representation.first() {
            Some(&XCDR2) => Representation::Xcdr2,
            _ => Representation::Xcdr1,
        }
    }

    /// Serializes samples that are kept as values only, because a reader needs
    /// bytes now. The bytes replace the values: a sample is kept once.
    pub(crate) fn serialize_pending(&self, state: &mut WriterState) {
        let WriterState {
            machine, history, ..
        } = state;
        machine.provide_deferred_payloads(|sequence| {
            let body = &mut history.find_mut(sequence.0)?.body;
            if matches!(body, SampleBody::Shared(_)) {
                self.note_serialized();
            }
            Some(body.serialize(self.representation()))
        });
    }

    /// The bytes of a kept sample.
    pub(crate) fn kept_payload(&self, machine: &Writer, item: &QueuedSample) -> Bytes {
        match &item.body {
            SampleBody::Serialized(payload) => payload.clone(),
            SampleBody::Shared(value) => {
                let kept = machine.cached_payload(SequenceNumber(item.meta.sequence));
                let kept = kept.cloned();
                kept.unwrap_or_else(|| value.payload(self.representation()))
            }
        }
    }

    /// Handles due timeouts.
    pub(crate) fn handle_timeout(&self, now: Instant) {
        let mut state = self.state.lock();
        state.machine.handle_timeout(now);
        let missed = state.instances.as_mut().and_then(|r| r.handle_timeout(now));
        drop(state);
        if let Some(total) = missed {
            self.events.push(EndpointEvent::DeadlineMissed { total });
        }
    }

    /// Moves events of the machine to the event queue and notifies user code.
    pub(crate) fn collect(&self, machine: &mut Writer) {
        while let Some(event) = machine.poll_event() {
            match event {
                WriterEvent::DeadlineMissed { total } => {
                    self.events.push(EndpointEvent::DeadlineMissed { total });
                }
                WriterEvent::LivelinessLost { total } => {
                    self.events.push(EndpointEvent::LivelinessLost { total });
                }
                WriterEvent::ReaderStalled { reader } => self.note_stall(reader, 1),
                WriterEvent::StallEnded { reader } => self.note_stall(reader, -1),
                // The last one concerns only discovery's writers.
                WriterEvent::AllAcknowledged
                | WriterEvent::SpaceFreed
                | WriterEvent::ReaderReset { .. } => {}
            }
        }
    }
}

impl WriterEndpoint {
    fn note_stall(&self, reader: Guid, change: i32) {
        let current = self.stall_report.note(change);
        self.events.push(EndpointEvent::ReaderStalled {
            current,
            change,
            reader,
        });
    }

    /// The data that discovery announces now, with changed policies.
    pub fn announced(&self) -> Arc<EndpointData> {
        self.policies.announced.lock().clone()
    }

    /// LIFESPAN. Read it under `state`, so that each message is created with its
    /// time of publication.
    pub(crate) fn lifespan(&self) -> Duration {
        Duration::from_nanos(self.policies.lifespan.load(Ordering::Relaxed))
    }

    /// TRANSPORT_PRIORITY as datagrams carry it (DSCP), 0 to 63.
    pub fn code_point(&self) -> u8 {
        self.policies.code_point.load(Ordering::Relaxed)
    }

    /// TRANSPORT_PRIORITY as it orders flow-controlled writers.
    pub(crate) fn transport_priority(&self) -> i32 {
        self.policies.transport_priority.load(Ordering::Relaxed)
    }

    /// Whether its machine monitors DEADLINE or LIVELINESS. Then a write moves its
    /// next timeout even if nothing is sent.
    pub(crate) fn has_deadline_or_lease(&self) -> bool {
        self.policies.has_deadline_or_lease.load(Ordering::Relaxed)
    }

    /// Whether some policy reads the clock when a message is published. Read it
    /// under `state`, as [`WriterEndpoint::lifespan`].
    pub(crate) fn needs_clock(&self) -> bool {
        self.policies.needs_clock.load(Ordering::Relaxed)
    }

    /// Whether unregistering an instance disposes of it, too.
    pub(crate) fn autodisposes(&self) -> bool {
        self.policies.autodisposes.load(Ordering::Relaxed)
    }
}

impl WriterState {
    /// Whether no local reader uses the time of a message.
    pub(crate) fn is_timeless(&self) -> bool {
        !self.local.iter().any(IntraProcessRoute::is_watched)
    }

    /// The source timestamp to send. If readers order by it, it never decreases.
    /// Otherwise, after a wall clock was set back, readers would drop the writer's
    /// samples until the clock caught up.
    pub(crate) fn stamp(&mut self, source: Timestamp) -> Timestamp {
        let Some(last) = &mut self.last_source_timestamp else {
            return source;
        };
        *last = source.max(*last);
        *last
    }

    /// The next timeout of the machine or an instance.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let machine = match self.resumes_at {
            None => self.machine.next_timeout(),
            Some(at) => self.machine.next_timer().into_iter().chain([at]).min(),
        };
        let instances = self.instances.as_ref().and_then(|r| r.next_timeout());
        [machine, instances].into_iter().flatten().min()
    }
}
