//! TypeLookup service (XTypes 1.3 §7.6.3.3): TypeObjects of local types for peers,
//! and requests for those of remote types.
//!
//! Four built-in endpoints, reliable and volatile: requests and replies, each with
//! a writer and a reader. A reply goes to the requesting peer only. That peer is
//! matched, so its address is validated. A request of any size costs one reply of
//! at most [`lookup::OBJECTS_BYTES_MAX`] plus headers.
//!
//! TypeObjects of peers are requested only when the owner needs a type
//! (`TypeLookup::describe`). Others that arrive are ignored. Those that are kept are
//! charged to the peer's receive memory (`memory_budget.rs`).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::lookup::{
    self, LookupOperation, LookupRequest, SampleIdentity, decode_types, encode_dependencies,
    encode_types,
};
use pteros_msg::typeobject::{
    EquivalenceKind, TypeInformation, TypeObject, TypeObjectError, TypeObjectId, TypeObjects,
    type_description,
};

use crate::change::{CacheChange, ChangeKind};
use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic};
use crate::discovery::data::EndpointData;
use crate::discovery::spdp;
use crate::id::{EntityId, GuidPrefix};
use crate::memory_budget::{MemoryAccount, RecordCharge};
use crate::receiver::Source;
use crate::retransmission_window::RetransmissionWindow;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

/// TypeObjects of peers that are kept. When full, or without memory for another one,
/// all are dropped, and requested again if needed.
const RECEIVED_MAX: usize = 4096;

/// The memory of a kept TypeObject beside its bytes: its id and its entry.
const OBJECT_OVERHEAD_BYTES: usize = 64;

/// A type whose objects were dropped so often does not fit into the memory.
const DROPPED_MAX: u32 = 2;

/// The timeout of a request, and the number of attempts.
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);
const REQUESTS_MAX: u32 = 4;

/// Types requested at a time; when full, the oldest request is dropped.
const PENDING_MAX: usize = 64;

/// Unacknowledged replies to all peers: as many as sixteen peers request at a time.
/// When full, the oldest is dropped, and requested again.
const REPLIES_MAX: u32 = 16 * PENDING_MAX as u32;

/// The state of a remote type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteType {
    /// Requested from its participant. Call again after an event, at the latest
    /// after half a second.
    Requested,
    /// The complete type.
    Known(TypeDescription),
    /// The peer announces no TypeInformation, or has no TypeLookup service.
    NotAnnounced,
    /// Four requests got no answer, or there is no memory for the answer.
    TimedOut,
    /// The type is of an unsupported kind, or malformed.
    Unsupported(TypeObjectError),
}

/// Returns the description of a type.
type DescribeFn = fn() -> &'static TypeDescription;

struct PendingRequest {
    root: TypeObjectId,
    peer: GuidPrefix,
    wanted: BTreeSet<TypeObjectId>,
    requested_at: Instant,
    requests_sent: u32,
    /// How often objects were dropped meanwhile, because there was no memory.
    dropped: u32,
}

/// Both sides of the service.
pub(crate) struct TypeLookup {
    prefix: GuidPrefix,
    pub(crate) requests: BuiltinTopic,
    pub(crate) replies: BuiltinTopic,
    /// Local types, each with its dependencies.
    offered: BTreeMap<TypeObjectId, (TypeObject, Arc<[TypeObjectId]>)>,
    /// Local types whose TypeObjects are not built yet, by their TypeInformation;
    /// `None` once they are built.
    lazy: BTreeMap<&'static [u8], Option<DescribeFn>>,
    /// TypeObjects of peers.
    received: BTreeMap<TypeObjectId, Arc<[u8]>>,
    /// The memory that they take.
    charges: Vec<RecordCharge>,
    /// The accounts of the matched peers.
    accounts: BTreeMap<GuidPrefix, Arc<MemoryAccount>>,
    pending: Vec<PendingRequest>,
    /// TypeObjects arrived since the last call of [`Self::take_new_objects`].
    has_new_objects: bool,
    number: i64,
}

impl TypeLookup {
    pub(crate) fn new(prefix: GuidPrefix) -> Self {
        Self {
            prefix,
            requests: BuiltinTopic::volatile(
                prefix,
                BuiltinEndpoints {
                    writer: EntityId::TYPE_REQUEST_WRITER,
                    reader: EntityId::TYPE_REQUEST_READER,
                    writer_bit: spdp::TYPE_REQUEST_WRITER,
                    reader_bit: spdp::TYPE_REQUEST_READER,
                },
                PENDING_MAX as u32,
            ),
            replies: BuiltinTopic::volatile(
                prefix,
                BuiltinEndpoints {
                    writer: EntityId::TYPE_REPLY_WRITER,
                    reader: EntityId::TYPE_REPLY_READER,
                    writer_bit: spdp::TYPE_REPLY_WRITER,
                    reader_bit: spdp::TYPE_REPLY_READER,
                },
                REPLIES_MAX,
            ),
            offered: BTreeMap::new(),
            lazy: BTreeMap::new(),
            received: BTreeMap::new(),
            charges: Vec::new(),
            accounts: BTreeMap::new(),
            pending: Vec::new(),
            has_new_objects: false,
            number: 0,
        }
    }

    /// Answers requests for this type from now on, as long as the participant
    /// lives.
    pub(crate) fn register(&mut self, objects: &TypeObjects) {
        for form in [EquivalenceKind::Minimal, EquivalenceKind::Complete] {
            let all: Arc<[TypeObjectId]> = objects
                .referenced
                .iter()
                .map(|pair| pair.of(form).id)
                .collect();
            let own = objects.own.of(form);
            self.offered.insert(own.id, (own.clone(), all));
            for pair in &objects.referenced {
                let object = pair.of(form);
                // If it is used alone as well, it is registered with its own
                // dependencies then.
                self.offered
                    .entry(object.id)
                    .or_insert_with(|| (object.clone(), Arc::from([])));
            }
        }
    }

    /// As [`register`](Self::register), but the TypeObjects are built at the first
    /// request.
    pub(crate) fn register_lazily(&mut self, information: &'static [u8], description: DescribeFn) {
        self.lazy.entry(information).or_insert(Some(description));
    }

    /// Builds all lazily registered types: one request is rarely the last.
    fn build_lazy_types(&mut self) {
        let lazy = self.lazy.values_mut().filter_map(Option::take);
        let made: Vec<TypeObjects> = lazy
            .filter_map(|description| TypeObjects::new(description()))
            .collect();
        made.iter().for_each(|objects| self.register(objects));
    }

    /// Whether a submessage belongs to this service.
    pub(crate) fn is_type_lookup(message: &Submessage) -> bool {
        let ours = [EntityId::TYPE_REQUEST_WRITER, EntityId::TYPE_REPLY_WRITER];
        message
            .writer()
            .is_some_and(|writer| ours.contains(&writer))
    }

    /// Passes a submessage to its endpoint; false if it belongs to another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        if self.requests.handle(now, source, message) {
            while let Some(change) = self.requests.poll_change() {
                self.reply(now, &change);
            }
            return true;
        }
        if self.replies.handle(now, source, message) {
            while let Some(change) = self.replies.poll_change() {
                self.store_reply(&change);
            }
            return true;
        }
        false
    }

    fn reply(&mut self, now: Instant, change: &CacheChange) {
        if change.kind != ChangeKind::Alive {
            return;
        }
        let Ok(Some(request)) = LookupRequest::decode(&change.payload) else {
            return;
        };
        self.build_lazy_types();
        let requested: BTreeSet<TypeObjectId> = request.ids.into_iter().collect();
        let known = |id: &TypeObjectId| self.offered.get(id);
        let payload = match request.operation {
            LookupOperation::Types => {
                let objects = requested.iter().filter_map(known).map(|(object, _)| object);
                encode_types(&request.identity, objects)
            }
            LookupOperation::Dependencies => {
                let all: BTreeSet<TypeObjectId> = requested
                    .iter()
                    .filter_map(known)
                    .flat_map(|(_, dependencies)| dependencies.iter().copied())
                    .collect();
                let objects = all.iter().filter_map(known).map(|(object, _)| object);
                encode_dependencies(&request.identity, objects)
            }
        };
        self.replies.send(now, change.writer.prefix, payload.into());
    }

    /// Stores the TypeObjects that were requested from this peer.
    fn store_reply(&mut self, change: &CacheChange) {
        if change.kind != ChangeKind::Alive {
            return;
        }
        let Ok(Some((identity, objects))) = decode_types(&change.payload) else {
            return;
        };
        if identity.writer != self.writer_bytes() {
            return;
        }
        for object in objects {
            let is_requested = self.pending.iter().any(|pending| {
                pending.peer == change.writer.prefix && pending.wanted.contains(&object.id)
            });
            if !is_requested {
                continue;
            }
            if self.received.contains_key(&object.id) {
                continue;
            }
            if self.received.len() >= RECEIVED_MAX {
                self.drop_received();
            }
            if self.charge(change.writer.prefix, object.bytes.len()) {
                self.received.insert(object.id, object.bytes);
                self.has_new_objects = true;
            }
        }
    }

    /// Charges a TypeObject to the account of its peer. When there is no memory, all
    /// others make room. False when that was not enough.
    fn charge(&mut self, peer: GuidPrefix, bytes: usize) -> bool {
        let Some(account) = self.accounts.get(&peer).cloned() else {
            return true;
        };
        let bytes = bytes.saturating_add(OBJECT_OVERHEAD_BYTES);
        let mut charge = account.reserve_record(bytes);
        if charge.is_none() {
            self.drop_received();
            charge = account.reserve_record(bytes);
        }
        let is_charged = charge.is_some();
        self.charges.extend(charge);
        is_charged
    }

    fn drop_received(&mut self) {
        self.received.clear();
        self.charges.clear();
        for pending in &mut self.pending {
            pending.dropped = pending.dropped.saturating_add(1);
        }
    }

    fn writer_bytes(&self) -> [u8; 16] {
        self.prefix.with(EntityId::TYPE_REQUEST_WRITER).to_bytes()
    }

    /// Whether TypeObjects arrived since the last call.
    pub(crate) fn take_new_objects(&mut self) -> bool {
        core::mem::take(&mut self.has_new_objects)
    }

    /// The type of a peer's endpoint; requests missing TypeObjects from the peer.
    /// `serves`: the peer has the service.
    pub(crate) fn describe(
        &mut self,
        now: Instant,
        endpoint: &EndpointData,
        serves: bool,
    ) -> RemoteType {
        let information = endpoint.type_information.as_deref();
        let Some(Ok(information)) = information.map(TypeInformation::decode) else {
            return RemoteType::NotAnnounced;
        };
        let Some(complete) = information.complete else {
            return RemoteType::NotAnnounced;
        };
        match type_description(complete.id, &self.received) {
            Ok(description) => {
                self.pending.retain(|pending| pending.root != complete.id);
                RemoteType::Known(description)
            }
            Err(TypeObjectError::Missing(_)) if !serves => RemoteType::NotAnnounced,
            Err(TypeObjectError::Missing(missing)) => {
                let listed = information.dependencies.iter().map(|d| d.id);
                let wanted = listed
                    .chain([complete.id, missing])
                    .filter(|id| !self.received.contains_key(id))
                    .take(lookup::IDS_MAX)
                    .collect();
                self.request(now, endpoint.guid.prefix, complete.id, wanted)
            }
            Err(other) => RemoteType::Unsupported(other),
        }
    }

    fn request(
        &mut self,
        now: Instant,
        peer: GuidPrefix,
        root: TypeObjectId,
        wanted: BTreeSet<TypeObjectId>,
    ) -> RemoteType {
        let of_it = |pending: &PendingRequest| pending.root == root && pending.peer == peer;
        let (mut requests_sent, mut dropped) = (0, 0);
        if let Some(at) = self.pending.iter().position(of_it) {
            let Some(pending) = self.pending.get(at) else {
                return RemoteType::TimedOut;
            };
            let progressed = !wanted.is_superset(&pending.wanted);
            if !progressed && now < pending.requested_at + REPLY_TIMEOUT {
                return RemoteType::Requested;
            }
            let is_repeated = !progressed && pending.requests_sent >= REQUESTS_MAX;
            if is_repeated || pending.dropped >= DROPPED_MAX {
                self.pending.remove(at);
                return RemoteType::TimedOut;
            }
            dropped = pending.dropped;
            requests_sent = if progressed { 0 } else { pending.requests_sent };
            self.pending.remove(at);
        }
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
        }
        self.number = self.number.wrapping_add(1);
        let request = LookupRequest {
            identity: SampleIdentity {
                writer: self.writer_bytes(),
                number: self.number,
            },
            instance: instance_name(peer),
            operation: LookupOperation::Types,
            ids: wanted.iter().copied().collect(),
        };
        self.requests.send(now, peer, request.encode().into());
        self.pending.push(PendingRequest {
            root,
            peer,
            wanted,
            requested_at: now,
            requests_sent: requests_sent.saturating_add(1),
            dropped,
        });
        RemoteType::Requested
    }

    /// Charges what a matched peer sends to its account.
    pub(crate) fn limit_memory(&mut self, prefix: GuidPrefix, account: &Arc<MemoryAccount>) {
        self.requests.limit_memory(prefix, account);
        self.replies.limit_memory(prefix, account);
        self.accounts.insert(prefix, account.clone());
    }

    /// Lets its writers share the peer's retransmission window with the other writers.
    pub(crate) fn share_retransmission_window(
        &mut self,
        prefix: GuidPrefix,
        window: &Arc<RetransmissionWindow>,
    ) {
        self.requests.share_retransmission_window(prefix, window);
        self.replies.share_retransmission_window(prefix, window);
    }

    /// Drops the requests to a lost participant.
    pub(crate) fn remove_peer(&mut self, prefix: GuidPrefix) {
        self.requests.unmatch_peer(prefix);
        self.replies.unmatch_peer(prefix);
        self.accounts.remove(&prefix);
        self.pending.retain(|pending| pending.peer != prefix);
    }
}

/// The service's instance of one participant (XTypes 1.3 §7.6.3.3.4).
fn instance_name(peer: GuidPrefix) -> String {
    let guid = peer.with(EntityId::PARTICIPANT).to_bytes();
    let mut name = String::from("dds.builtin.TOS.");
    for byte in guid {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}
