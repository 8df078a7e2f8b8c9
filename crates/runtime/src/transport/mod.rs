//! Transports: the trait by which a wire protocol joins a context with other processes.
//!
//! The layers above are graph, QoS, history for local late joiners, local delivery,
//! executors, services, actions and parameters. A [`Transport`] announces local endpoints,
//! reports remote ones and their matches, and carries samples.
//!
//! RTPS is the first implementation (`rtps.rs`) and always present. It owns shared memory
//! between processes of a host as well. Its samples pass through the protocol machines
//! inside the endpoints, without a call through a trait. A further transport implements
//! [`SampleTransport`] and is opened with the context ([`OpenTransport`]). It receives and returns
//! whole samples; [`matcher`] matches for it.
//!
//! `docs/internals/transports.md` lists the callers of each method, and the locks that they
//! hold.

pub(crate) mod holds;
pub mod matcher;
pub(crate) mod routes;
pub(crate) mod rtps;
pub(crate) mod transports;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_msg::hash::TypeHash;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::{CacheChange, Carrier};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::participant::{ParticipantEvent, RemoteEndpoint};
use pteros_rtps::qos::Liveliness;
use pteros_rtps::time::Instant;

use crate::limits::Limits;
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::zenoh_settings::WireChoice;

/// A connection of a context with other processes. Thread-safe.
///
/// No call may block, publish, or call the context. Discovery calls are made one at a
/// time, in the order of matches. Queries are made by any thread.
pub trait Transport: Send + Sync {
    /// Name of the transport in messages, `rtps`.
    fn name(&self) -> &str;

    /// Why it cannot carry a local endpoint; `None` if it can. Such an endpoint is not
    /// announced on it, which is logged.
    fn why_not(&self, _endpoint: &EndpointData) -> Option<Cow<'static, str>> {
        None
    }

    /// Why no context can have such an endpoint on this transport; `None` if it can.
    /// [`Transport::why_not`] has further reasons.
    fn lacks(&self, _endpoint: &EndpointData) -> Option<&'static str> {
        None
    }

    /// Announces a local endpoint, or its changed QoS, content filter or USER_DATA.
    fn announce(&self, now: Instant, endpoint: &Arc<EndpointData>);

    /// Announces the end of a local endpoint, and reports the end of its matches. Unknown
    /// endpoints are ignored.
    fn withdraw(&self, now: Instant, endpoint: Guid);

    /// Asserts the liveliness of all local writers of a kind.
    fn assert_liveliness(&self, now: Instant, kind: Liveliness);

    /// Sends the output of discovery, appends new events to `events`, and schedules its
    /// next call. It is called again until it appends nothing. A sample is the last event
    /// of a call, so that [`SampleTransport::hold`] acts before the next one.
    fn poll(&self, now: Instant, events: &mut Vec<TransportEvent>);

    /// Calls `see` for every remote endpoint, matched or not. `see` must not call the
    /// context.
    fn for_each_endpoint(&self, see: &mut dyn FnMut(&dyn RemoteEndpointRecord));

    /// Calls `see` for the remote endpoints on a topic, given by its DDS name.
    fn for_each_endpoint_on(&self, topic: &str, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        self.for_each_endpoint(&mut |known| {
            if known.topic() == topic {
                see(known);
            }
        });
    }

    /// Calls `see` for one remote endpoint. Returns false if it is unknown.
    fn with_endpoint(&self, guid: Guid, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) -> bool {
        let mut found = false;
        self.for_each_endpoint(&mut |known| {
            if known.guid() == guid {
                found = true;
                see(known);
            }
        });
        found
    }

    /// The table that exceeds its limit: name, count and limit. `None`, unless there is a
    /// bug.
    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)>;

    /// Announces the end of the participant. Called once, as the last call.
    fn close(&self, now: Instant);
}

/// A transport beside RTPS that carries samples itself. Thread-safe.
pub trait SampleTransport: Transport {
    /// The delivery path of its samples.
    fn carrier(&self) -> Carrier {
        Carrier::OtherTransport
    }

    /// Whether it encrypts and authenticates as a secured context requires. A secured
    /// context does not open with another transport.
    fn is_protected(&self) -> bool {
        false
    }

    /// Whether it keeps samples for late joiners itself. Otherwise the context writes the
    /// kept samples again for each late joiner, directed to it.
    fn keeps_history(&self) -> bool {
        false
    }

    /// Notes the node of a local endpoint. Called once, after
    /// [`announce`](Transport::announce) and before the endpoint is used. For transports that
    /// announce an endpoint together with its node.
    fn attach_endpoint(&self, _now: Instant, _endpoint: Guid, _node: &NodeName<'_>) {}

    /// Notes the type hash of the service of a client's or server's endpoint. Called
    /// before [`attach_endpoint`](SampleTransport::attach_endpoint), and only if the hash is
    /// known.
    fn note_service_hash(&self, _endpoint: Guid, _hash: &TypeHash) {}

    /// Notes the content filter of a local reader: before it is announced, and when it
    /// changes. Not called for a reader that never had one. A transport that keeps samples for
    /// late joiners needs the filter, because only samples that pass count towards the
    /// reader's depth.
    fn note_content_filter(&self, _reader: Guid, _filter: Option<&Arc<ContentFilter>>) {}

    /// Waits until a writer with a history can send. So a reader that joins after
    /// `publish` has returned gets the writer's samples only from the history. Called
    /// before [`SampleTransport::flush`] by a publishing thread, under no lock of the context.
    fn await_readiness(&self, _writer: Guid) {}

    /// Notes whether RTPS reaches a participant. Between the calls with `true` and with
    /// `false`, the transport reports and delivers nothing of the participant. So no message
    /// arrives twice. Its earlier reports end: the context
    /// polls the transport right after the call. Called for every participant of RTPS. A transport
    /// with other peers than RTPS ignores it.
    fn note_rtps_participant(&self, _now: Instant, _prefix: GuidPrefix, _is_reached: bool) {}

    /// Announces the whole list of local nodes, on every change.
    fn announce_nodes(&self, now: Instant, nodes: &ParticipantEntitiesInfo);

    /// Totals of dropped or refused data since it was opened, by name. For diagnostics.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Asserts the liveliness of one MANUAL_BY_TOPIC writer.
    fn assert_writer(&self, now: Instant, writer: Guid);

    /// Queues a sample for its readers. Called under the writer's lock, in the
    /// order of sequence numbers. Must not block: [`SampleTransport::flush`] sends.
    fn write(&self, now: Instant, sample: &TransportSample);

    /// Sends what was queued for a writer. Called under no lock of the context; may
    /// block for as long as a publisher may.
    fn flush(&self, now: Instant, writer: Guid);

    /// Holds a remote writer's samples back for one KEEP_ALL reader without space, or
    /// releases them. The transport counts the holds: the samples are released after the last
    /// one. Later samples of the writer are held behind them. The transport schedules its next
    /// poll on a release. Releasing a writer that is not held has no effect.
    fn hold(&self, writer: Guid, holds: bool);

    /// Whether a KEEP_ALL writer may write `bytes` now. When that changes, the transport
    /// reports [`TransportEvent::SpaceFreed`].
    fn has_space(&self, writer: Guid, bytes: usize) -> bool;

    /// Whether all samples of a writer have reached its reliable readers. A transport without
    /// acknowledgements returns true.
    fn is_acknowledged(&self, writer: Guid) -> bool;
}

/// A sample as a transport carries it: serialized, with writer, sequence number and stamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportSample {
    /// The sample. A reply names its request in `related_sample_identity`.
    pub change: CacheChange,
    /// The receiving readers: those matched with the writer, or only a client's reader of
    /// replies (directed write). A received sample without readers is for all that are
    /// matched with the writer. A written one without readers is for a transport that wants
    /// every sample ([`TransportEvent::WriterWanted`]).
    pub readers: Vec<Guid>,
}

/// An event of a transport. Events are reported in the order in which they happened.
#[derive(Clone, PartialEq, Debug)]
pub enum TransportEvent {
    /// Discovery: participants, endpoints, matches, mismatches, liveliness.
    Discovery(ParticipantEvent),
    /// The whole list of a participant's nodes.
    Nodes {
        /// GUID prefix of the session or participant.
        participant: GuidPrefix,
        /// The complete list, which replaces the previous one.
        nodes: ParticipantEntitiesInfo,
    },
    /// A sample of a matched writer.
    Sample(Box<TransportSample>),
    /// A matched MANUAL_BY_TOPIC writer asserted its liveliness.
    WriterAsserted(Guid),
    /// Samples of a matched writer that will not arrive.
    SamplesLost {
        /// GUID of the remote writer.
        writer: Guid,
        /// The reader that misses them. `None`: every reader matched with the writer.
        reader: Option<Guid>,
        /// Number of lost samples.
        count: u64,
    },
    /// A KEEP_ALL writer without space may have some, or acknowledgements arrived.
    SpaceFreed,
    /// Whether the transport needs every sample of a local writer, even without matched
    /// readers. It may keep a history, or have readers that are not announced.
    WriterWanted {
        /// The local writer.
        writer: Guid,
        /// Whether it does from now on.
        is_wanted: bool,
    },
}

/// The name of a local node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeName<'a> {
    /// Namespace, `/` for the root.
    pub namespace: &'a str,
    /// Name without namespace.
    pub name: &'a str,
}

/// A remote endpoint in a transport's tables.
pub trait RemoteEndpointRecord {
    /// GUID. The entity kind distinguishes writers from readers.
    fn guid(&self) -> Guid;
    /// DDS topic name.
    fn topic(&self) -> &str;
    /// DDS type name.
    fn type_name(&self) -> &str;
    /// Publisher group, if it announced one.
    fn group(&self) -> Option<Guid>;
    /// USER_DATA. Allocates.
    fn user_data(&self) -> Vec<u8>;
    /// All announced data. Allocates.
    fn to_data(&self) -> EndpointData;
}

impl RemoteEndpointRecord for RemoteEndpoint<'_> {
    fn guid(&self) -> Guid {
        RemoteEndpoint::guid(*self)
    }
    fn topic(&self) -> &str {
        RemoteEndpoint::topic(*self)
    }
    fn type_name(&self) -> &str {
        RemoteEndpoint::type_name(*self)
    }
    fn group(&self) -> Option<Guid> {
        RemoteEndpoint::group(*self)
    }
    fn user_data(&self) -> Vec<u8> {
        RemoteEndpoint::user_data(*self)
    }
    fn to_data(&self) -> EndpointData {
        self.data()
    }
}

impl RemoteEndpointRecord for EndpointData {
    fn guid(&self) -> Guid {
        self.guid
    }
    fn topic(&self) -> &str {
        &self.topic
    }
    fn type_name(&self) -> &str {
        &self.type_name
    }
    fn group(&self) -> Option<Guid> {
        self.group
    }
    fn user_data(&self) -> Vec<u8> {
        self.qos.user_data.clone()
    }
    fn to_data(&self) -> EndpointData {
        self.clone()
    }
}

/// Which processes RTPS reaches. A further transport may reach others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtpsReach {
    /// Every participant of the domain, as the discovery options allow.
    #[default]
    Network,
    /// Processes of this host in the same group, found by their discovery logs and
    /// reached by shared memory. Nothing is announced on the network, and announcements
    /// there are ignored. Without shared memory it is [`RtpsReach::Off`].
    Host {
        /// Number of the group, which differs from every domain id.
        group: u32,
    },
    /// No process.
    Off,
}

impl RtpsReach {
    /// The reach of a context with these transports. `has_discovery`: its discovery range
    /// allows it to find others. `beside_zenoh`: the reach of shared memory if Zenoh is
    /// the only network.
    pub fn of(
        choice: WireChoice,
        has_discovery: bool,
        has_shared_memory: bool,
        beside_zenoh: impl FnOnce() -> Self,
    ) -> Self {
        match choice {
            _ if !has_discovery => Self::Off,
            WireChoice::Rtps | WireChoice::Both => Self::Network,
            WireChoice::Zenoh if has_shared_memory => beside_zenoh(),
            WireChoice::Zenoh => Self::Off,
        }
    }
}

/// Parameters of a further transport, from the context that opens it.
#[derive(Clone)]
pub struct TransportSetup {
    /// ROS_DOMAIN_ID.
    pub domain_id: u32,
    /// The GUID prefix of the context, which its endpoints' GUIDs begin with.
    pub prefix: GuidPrefix,
    /// The security enclave, `/` without one.
    pub enclave: String,
    /// Restricts the context to this host.
    pub local_only: bool,
    /// Which processes RTPS reaches. The transport may reach them, too: see
    /// [`SampleTransport::note_rtps_participant`].
    pub rtps_reach: RtpsReach,
    /// Limits of the context: what remote peers may fill.
    pub limits: Limits,
    /// Schedules calls of [`Transport::poll`].
    pub scheduler: TransportScheduler,
}

/// Schedules [`Transport::poll`] of one transport. Thread-safe, does not block; takes a lock of
/// the innermost ranks only.
#[derive(Clone)]
pub struct TransportScheduler {
    scheduler: Arc<Scheduler>,
    owner: TimeoutOwner,
}

impl TransportScheduler {
    pub(crate) fn new(scheduler: Arc<Scheduler>, owner: TimeoutOwner) -> Self {
        Self { scheduler, owner }
    }

    /// Schedules the next poll (`None`: none), and replaces an earlier time. A transport calls
    /// it under the lock of its queues, so that a later time never replaces that of a new
    /// arrival. [`Instant::ZERO`] means at once: it wakes the thread that sleeps in the
    /// context's sockets.
    pub fn schedule(&self, at: Option<Instant>) {
        self.scheduler.schedule(self.owner, at);
    }
}

/// Opens a further transport with a context.
#[derive(Clone)]
pub struct OpenTransport {
    name: &'static str,
    open: Arc<OpenFn>,
}

type OpenFn = dyn Fn(TransportSetup) -> Result<Arc<dyn SampleTransport>, String> + Send + Sync;

impl OpenTransport {
    /// `open` may block while the context opens. Its error names the failure and the
    /// remedy.
    pub fn new(
        name: &'static str,
        open: impl Fn(TransportSetup) -> Result<Arc<dyn SampleTransport>, String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name,
            open: Arc::new(open),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn open(&self, setup: TransportSetup) -> Result<Arc<dyn SampleTransport>, String> {
        (self.open)(setup)
    }
}

impl fmt::Debug for OpenTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenTransport").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtps_reaches_others_over_the_network_or_by_shared_memory_beside_zenoh() {
        const HOST: RtpsReach = RtpsReach::Host { group: 1_000 };
        let reach = |transport, has_discovery, has_shared_memory| {
            RtpsReach::of(transport, has_discovery, has_shared_memory, || HOST)
        };
        for has_shared_memory in [true, false] {
            for transport in [WireChoice::Rtps, WireChoice::Both] {
                assert_eq!(
                    reach(transport, true, has_shared_memory),
                    RtpsReach::Network
                );
                assert_eq!(reach(transport, false, has_shared_memory), RtpsReach::Off);
            }
            let hidden = reach(WireChoice::Zenoh, false, has_shared_memory);
            assert_eq!(hidden, RtpsReach::Off);
        }
        assert_eq!(reach(WireChoice::Zenoh, true, true), HOST);
        assert_eq!(reach(WireChoice::Zenoh, true, false), RtpsReach::Off);
    }
}
