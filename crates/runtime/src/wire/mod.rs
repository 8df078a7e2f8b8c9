//! The wire seam: what joins a context with other processes, behind one trait.
//!
//! Above it are graph, QoS, history for local late joiners, local delivery, executors,
//! services, actions and parameters. Below it a [`Wire`] announces local endpoints,
//! reports remote ones and their matches, and carries samples.
//!
//! RTPS is the first implementation (`rtps.rs`), always present: it owns shared memory
//! between processes of a host, too. Its samples pass through the protocol machines
//! inside the endpoints, so they cost no call through a trait. A further wire
//! implements [`SampleWire`] and is opened with the context ([`OpenWire`]). It gets
//! whole samples and gives whole samples; [`matcher`] matches for it.
//!
//! `docs/internals/wires.md` says who calls what, under which locks.

pub(crate) mod holds;
pub mod matcher;
pub(crate) mod routes;
pub(crate) mod rtps;
pub(crate) mod wires;

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

/// A wire joins a context with other processes. Thread-safe.
///
/// No call may block, publish, or call the context. Discovery calls come one at a
/// time, in the order of matches. Queries come from any thread.
pub trait Wire: Send + Sync {
    /// Its name in messages, `rtps`.
    fn name(&self) -> &str;

    /// Why it cannot carry a local endpoint; `None` if it can. Such an endpoint is not
    /// announced on it, and the user is told in the log.
    fn why_not(&self, _endpoint: &EndpointData) -> Option<Cow<'static, str>> {
        None
    }

    /// The reason why no context has such an endpoint on this wire; `None` if it can be
    /// there. [`Wire::why_not`] has further reasons.
    fn lacks(&self, _endpoint: &EndpointData) -> Option<&'static str> {
        None
    }

    /// Announces a local endpoint, or its changed QoS, content filter or USER_DATA.
    fn announce(&self, now: Instant, endpoint: &Arc<EndpointData>);

    /// Announces the end of a local endpoint, and reports the end of its matches.
    /// Unknown ones are ignored.
    fn withdraw(&self, now: Instant, endpoint: Guid);

    /// Asserts the liveliness of all local writers of a kind.
    fn assert_liveliness(&self, now: Instant, kind: Liveliness);

    /// Sends what discovery has to send, appends what has happened to `events`, and
    /// schedules its next call. Called again until nothing has happened. A sample is
    /// the last event of a call, so that [`SampleWire::hold`] acts before the next.
    fn poll(&self, now: Instant, events: &mut Vec<WireEvent>);

    /// Shows every remote endpoint, matched or not. `see` must not call the context.
    fn for_each_endpoint(&self, see: &mut dyn FnMut(&dyn RemoteEndpointRecord));

    /// Shows the remote endpoints on a topic, given by its DDS name.
    fn for_each_endpoint_on(&self, topic: &str, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        self.for_each_endpoint(&mut |known| {
            if known.topic() == topic {
                see(known);
            }
        });
    }

    /// Shows one remote endpoint. Returns false if it is unknown.
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

    /// The table that has outgrown its limit: name, count and limit. `None`, unless
    /// there is a bug.
    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)>;

    /// Announces the end of the participant. Called once, at last.
    fn close(&self, now: Instant);
}

/// A wire that carries samples itself, beside RTPS. Thread-safe.
pub trait SampleWire: Wire {
    /// The delivery path of its samples.
    fn carrier(&self) -> Carrier {
        Carrier::OtherWire
    }

    /// Whether it encrypts and authenticates as a secured context needs. A secured
    /// context does not open with another wire.
    fn is_protected(&self) -> bool {
        false
    }

    /// Whether it keeps samples for late joiners itself. Otherwise the context writes
    /// the kept ones again for each, directed to it.
    fn keeps_history(&self) -> bool {
        false
    }

    /// Notes the node of a local endpoint. Called once, after
    /// [`announce`](Wire::announce) and before the endpoint is used. For wires that
    /// announce an endpoint together with its node.
    fn attach_endpoint(&self, _now: Instant, _endpoint: Guid, _node: &NodeName<'_>) {}

    /// Notes the type hash of the service that an endpoint of a client or server belongs
    /// to. Called before [`attach_endpoint`](SampleWire::attach_endpoint),
    /// and not at all where the hash is unknown.
    fn note_service_hash(&self, _endpoint: Guid, _hash: &TypeHash) {}

    /// Notes the content filter in force at a local reader: before it is announced, and
    /// when it changes. Not called for a reader that has never had one. For wires that keep
    /// samples for late joiners themselves: what does not pass is none of the reader's depth.
    fn note_content_filter(&self, _reader: Guid, _filter: Option<&Arc<ContentFilter>>) {}

    /// Waits until a writer with a history can send, so that who joins after `publish` has
    /// returned gets its samples from the history alone. Called before
    /// [`SampleWire::flush`] by a thread that publishes, under no lock of the context.
    fn await_readiness(&self, _writer: Guid) {}

    /// Notes whether RTPS reaches a participant. From the call with `true` to the one
    /// with `false`, the wire reports nothing of it and delivers nothing from it, so
    /// that no message comes twice. What it has reported before ends: the context polls
    /// it right after the call. Called for every participant of RTPS. A wire that reaches
    /// other peers than RTPS does needs nothing here.
    fn note_rtps_participant(&self, _now: Instant, _prefix: GuidPrefix, _is_reached: bool) {}

    /// Announces the whole list of local nodes, on every change.
    fn announce_nodes(&self, now: Instant, nodes: &ParticipantEntitiesInfo);

    /// Totals of what it dropped or refused since it was opened, by name. For
    /// diagnostics.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Asserts the liveliness of one MANUAL_BY_TOPIC writer.
    fn assert_writer(&self, now: Instant, writer: Guid);

    /// Queues a sample for its readers. Called under the writer's lock, in the
    /// order of sequence numbers. Must not block: [`SampleWire::flush`] sends.
    fn write(&self, now: Instant, sample: &WireSample);

    /// Sends what was queued for a writer. Called under no lock of the context; may
    /// block for as long as a publisher may.
    fn flush(&self, now: Instant, writer: Guid);

    /// Holds a remote writer's samples back for one KEEP_ALL reader without space, or
    /// lets them go on. The wire counts: they go on when every such reader has let go.
    /// What the writer reports later waits behind them. The wire schedules its next poll
    /// when they go on. To let go of a writer that is not held does nothing.
    fn hold(&self, writer: Guid, holds: bool);

    /// Whether a KEEP_ALL writer may write so many bytes now. When that changes, the
    /// wire reports [`WireEvent::SpaceFreed`].
    fn has_space(&self, writer: Guid, bytes: usize) -> bool;

    /// Whether all that a writer wrote has reached its reliable readers. A wire
    /// without acknowledgements returns true.
    fn is_acknowledged(&self, writer: Guid) -> bool;
}

/// A sample as a wire carries it: serialized, with writer, sequence number and stamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireSample {
    /// The sample. A reply names its request in `related_sample_identity`.
    pub change: CacheChange,
    /// The readers that get it: those that the writer is matched with, or a client's
    /// reader of replies alone (directed write). A received sample without readers is for
    /// all that are matched with the writer. A written one without them is for a wire
    /// that wants every sample ([`WireEvent::WriterWanted`]).
    pub readers: Vec<Guid>,
}

/// An event of a wire. Events come in the order in which they happened.
#[derive(Clone, PartialEq, Debug)]
pub enum WireEvent {
    /// Discovery: participants, endpoints, matches, mismatches, liveliness.
    Discovery(ParticipantEvent),
    /// The whole list of a participant's nodes.
    Nodes {
        /// The participant.
        participant: GuidPrefix,
        /// Its nodes.
        nodes: ParticipantEntitiesInfo,
    },
    /// A sample of a matched writer.
    Sample(Box<WireSample>),
    /// A matched MANUAL_BY_TOPIC writer asserted its liveliness.
    WriterAsserted(Guid),
    /// Samples of a matched writer that will not arrive.
    SamplesLost {
        /// The writer.
        writer: Guid,
        /// The reader that misses them. `None`: every one that is matched with the writer.
        reader: Option<Guid>,
        /// How many.
        count: u64,
    },
    /// A KEEP_ALL writer that had no space may have some, or acknowledgements came.
    SpaceFreed,
    /// Whether the wire takes every sample of a local writer, matched readers or not:
    /// it keeps a history, or has readers that announce nothing.
    WriterWanted {
        /// The local writer.
        writer: Guid,
        /// From now on.
        is_wanted: bool,
    },
}

/// The name of a local node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeName<'a> {
    /// Its namespace, `/` for the root.
    pub namespace: &'a str,
    /// Its name without namespace.
    pub name: &'a str,
}

/// A remote endpoint in a wire's tables.
pub trait RemoteEndpointRecord {
    /// Its GUID. The entity kind tells a writer from a reader.
    fn guid(&self) -> Guid;
    /// Its DDS topic name.
    fn topic(&self) -> &str;
    /// Its DDS type name.
    fn type_name(&self) -> &str;
    /// Its publisher group, if it announced one.
    fn group(&self) -> Option<Guid>;
    /// Its USER_DATA. Allocates.
    fn user_data(&self) -> Vec<u8>;
    /// Everything that it announced. Allocates.
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

/// Which processes RTPS reaches. A further wire may reach others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtpsReach {
    /// Every participant of the domain, as the discovery options say.
    #[default]
    Network,
    /// Processes of this host whose group is the same, found by their discovery logs and
    /// reached by shared memory. Announcements on the network are neither sent nor heard.
    /// Without shared memory it is [`RtpsReach::Off`].
    Host {
        /// Differs from every domain id.
        group: u32,
    },
    /// None.
    Off,
}

impl RtpsReach {
    /// The reach of a context with these wires. `has_discovery`: its discovery range lets it
    /// find others. `beside_zenoh`: whom shared memory may reach where Zenoh is the only
    /// network.
    pub fn of(
        wire: WireChoice,
        has_discovery: bool,
        has_shared_memory: bool,
        beside_zenoh: impl FnOnce() -> Self,
    ) -> Self {
        match wire {
            _ if !has_discovery => Self::Off,
            WireChoice::Rtps | WireChoice::Both => Self::Network,
            WireChoice::Zenoh if has_shared_memory => beside_zenoh(),
            WireChoice::Zenoh => Self::Off,
        }
    }
}

/// What a further wire knows about the context that opens it.
#[derive(Clone)]
pub struct WireSetup {
    /// ROS_DOMAIN_ID.
    pub domain_id: u32,
    /// The GUID prefix of the context, which its endpoints' GUIDs begin with.
    pub prefix: GuidPrefix,
    /// The security enclave, `/` without one.
    pub enclave: String,
    /// Whether to stay on this host.
    pub local_only: bool,
    /// Which processes RTPS reaches. The wire may reach them, too: see
    /// [`SampleWire::note_rtps_participant`].
    pub rtps_reach: RtpsReach,
    /// Limits of the context: what remote peers may fill.
    pub limits: Limits,
    /// Calls the wire again.
    pub scheduler: WireScheduler,
}

/// Schedules [`Wire::poll`] of one wire. Thread-safe, does not block; takes a lock of
/// the innermost ranks only.
#[derive(Clone)]
pub struct WireScheduler {
    scheduler: Arc<Scheduler>,
    owner: TimeoutOwner,
}

impl WireScheduler {
    pub(crate) fn new(scheduler: Arc<Scheduler>, owner: TimeoutOwner) -> Self {
        Self { scheduler, owner }
    }

    /// Schedules the next poll (`None`: none), instead of an earlier choice. A wire
    /// calls it under the lock of its queues, so that a later time never replaces the
    /// time of something that has just arrived. [`Instant::ZERO`] is at once: it wakes
    /// the thread that sleeps in the context's sockets.
    pub fn schedule(&self, at: Option<Instant>) {
        self.scheduler.schedule(self.owner, at);
    }
}

/// Opens a further wire with a context.
#[derive(Clone)]
pub struct OpenWire {
    name: &'static str,
    open: Arc<OpenFn>,
}

type OpenFn = dyn Fn(WireSetup) -> Result<Arc<dyn SampleWire>, String> + Send + Sync;

impl OpenWire {
    /// `open` may block while the context opens. Its error says what failed and what
    /// mends it.
    pub fn new(
        name: &'static str,
        open: impl Fn(WireSetup) -> Result<Arc<dyn SampleWire>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            open: Arc::new(open),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn open(&self, setup: WireSetup) -> Result<Arc<dyn SampleWire>, String> {
        (self.open)(setup)
    }
}

impl fmt::Debug for OpenWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenWire").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtps_reaches_others_over_the_network_or_by_shared_memory_beside_zenoh() {
        const HOST: RtpsReach = RtpsReach::Host { group: 1_000 };
        let reach = |wire, has_discovery, has_shared_memory| {
            RtpsReach::of(wire, has_discovery, has_shared_memory, || HOST)
        };
        for has_shared_memory in [true, false] {
            for wire in [WireChoice::Rtps, WireChoice::Both] {
                assert_eq!(reach(wire, true, has_shared_memory), RtpsReach::Network);
                assert_eq!(reach(wire, false, has_shared_memory), RtpsReach::Off);
            }
            let hidden = reach(WireChoice::Zenoh, false, has_shared_memory);
            assert_eq!(hidden, RtpsReach::Off);
        }
        assert_eq!(reach(WireChoice::Zenoh, true, true), HOST);
        assert_eq!(reach(WireChoice::Zenoh, true, false), RtpsReach::Off);
    }
}
