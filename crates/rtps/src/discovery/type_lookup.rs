//! The TypeLookup service (XTypes 1.3 §7.6.3.3): the TypeObjects of our types
//! handed to whoever asks, and those of peers' types asked for.
//!
//! Four built-in endpoints, reliable and volatile: requests and replies, each
//! with a writer and a reader. A reply goes to the asker alone. Who asks has
//! been met, so its address is proven; a request of any size costs one reply
//! of at most [`lookup::OBJECTS_BYTES_MAX`] and headers.
//!
//! Objects of peers are learned only when the owner wants a type
//! (`TypeLookup::describe`), and only those that were asked for.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use pteros_msg::describe::TypeDescription;
use pteros_msg::typeobject::lookup::{
    self, Identity, Operation, Request, decode_types, encode_dependencies, encode_types,
};
use pteros_msg::typeobject::{
    Foreign, Form, ObjectId, TypeInformation, TypeObject, TypeObjects, described,
};

use crate::discovery::channel::Channel;
use crate::discovery::data::EndpointData;
use crate::discovery::spdp;
use crate::history::{CacheChange, ChangeKind};
use crate::id::{EntityId, GuidPrefix};
use crate::receiver::Source;
use crate::time::{Duration, Instant};
use crate::wire::Submessage;

/// Objects of peers that are kept; when full, all are forgotten, and asked for
/// again where they are wanted.
const LEARNED_MAX: usize = 4096;

/// How long a question waits for its reply, and how often it is put.
const PATIENCE: Duration = Duration::from_millis(500);
const QUESTIONS_MAX: u32 = 4;

/// Types that are asked for at a time; when full, the oldest question goes.
const PENDING_MAX: usize = 64;

/// Replies to all peers that are not acknowledged yet: as many as sixteen peers
/// ask for at a time. When full, the oldest goes, and is asked for again.
const REPLIES_MAX: u32 = 16 * PENDING_MAX as u32;

/// What is known of a peer's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignType {
    /// Its participant was asked; see again when there is news, at the latest
    /// after half a second.
    Asked,
    /// All of it.
    Known(TypeDescription),
    /// The peer announces no type information, or has no service.
    Silent,
    /// It was asked four times and did not say.
    NoAnswer,
    /// The type is of a kind that is not spoken here, or malformed.
    Refused(Foreign),
}

/// Tells what a type is made of.
type Describe = fn() -> &'static TypeDescription;

struct Pending {
    root: ObjectId,
    peer: GuidPrefix,
    wanted: BTreeSet<ObjectId>,
    asked_at: Instant,
    questions: u32,
}

/// Both sides of the service.
pub(crate) struct TypeLookup {
    prefix: GuidPrefix,
    pub(crate) requests: Channel,
    pub(crate) replies: Channel,
    /// Our types, and what each refers to.
    offered: BTreeMap<ObjectId, (TypeObject, Arc<[ObjectId]>)>,
    /// Types of ours whose objects nobody has asked for, by what is announced of
    /// them; `None` once they are among the offered.
    promised: BTreeMap<&'static [u8], Option<Describe>>,
    /// Peers' types.
    learned: BTreeMap<ObjectId, Arc<[u8]>>,
    pending: Vec<Pending>,
    /// Objects came since the owner last asked.
    news: bool,
    number: i64,
}

impl TypeLookup {
    pub(crate) fn new(prefix: GuidPrefix) -> Self {
        Self {
            prefix,
            requests: Channel::volatile(
                prefix,
                (EntityId::TYPE_REQUEST_WRITER, EntityId::TYPE_REQUEST_READER),
                (spdp::TYPE_REQUEST_WRITER, spdp::TYPE_REQUEST_READER),
                PENDING_MAX as u32,
            ),
            replies: Channel::volatile(
                prefix,
                (EntityId::TYPE_REPLY_WRITER, EntityId::TYPE_REPLY_READER),
                (spdp::TYPE_REPLY_WRITER, spdp::TYPE_REPLY_READER),
                REPLIES_MAX,
            ),
            offered: BTreeMap::new(),
            promised: BTreeMap::new(),
            learned: BTreeMap::new(),
            pending: Vec::new(),
            news: false,
            number: 0,
        }
    }

    /// Answers for this type from now on, for as long as the participant lives.
    pub(crate) fn offer(&mut self, objects: &TypeObjects) {
        for form in [Form::Minimal, Form::Complete] {
            let all: Arc<[ObjectId]> = objects
                .referenced
                .iter()
                .map(|pair| pair.of(form).id)
                .collect();
            let own = objects.own.of(form);
            self.offered.insert(own.id, (own.clone(), all));
            for pair in &objects.referenced {
                let object = pair.of(form);
                // Its own dependencies, should it be used alone as well, are
                // told then.
                self.offered
                    .entry(object.id)
                    .or_insert_with(|| (object.clone(), Arc::from([])));
            }
        }
    }

    /// As [`offer`](Self::offer), but the objects are made when somebody asks.
    pub(crate) fn promise(&mut self, information: &'static [u8], description: Describe) {
        self.promised
            .entry(information)
            .or_insert(Some(description));
    }

    /// Makes what was promised: one question is rarely the last.
    fn keep_promises(&mut self) {
        let promised = self.promised.values_mut().filter_map(Option::take);
        let made: Vec<TypeObjects> = promised
            .filter_map(|description| TypeObjects::new(description()))
            .collect();
        made.iter().for_each(|objects| self.offer(objects));
    }

    /// Whether a submessage is of this service.
    pub(crate) fn is_concerned(message: &Submessage) -> bool {
        let ours = [EntityId::TYPE_REQUEST_WRITER, EntityId::TYPE_REPLY_WRITER];
        message
            .writer()
            .is_some_and(|writer| ours.contains(&writer))
    }

    /// Gives a submessage to the endpoint that it concerns; false if it
    /// concerns none.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        if self.requests.handle(now, source, message) {
            while let Some(change) = self.requests.poll_change() {
                self.answer(now, &change);
            }
            return true;
        }
        if self.replies.handle(now, source, message) {
            while let Some(change) = self.replies.poll_change() {
                self.learn(&change);
            }
            return true;
        }
        false
    }

    fn answer(&mut self, now: Instant, change: &CacheChange) {
        if change.kind != ChangeKind::Alive {
            return;
        }
        let Ok(Some(request)) = Request::decode(&change.payload) else {
            return;
        };
        self.keep_promises();
        let asked: BTreeSet<ObjectId> = request.ids.into_iter().collect();
        let known = |id: &ObjectId| self.offered.get(id);
        let payload = match request.operation {
            Operation::Types => {
                let objects = asked.iter().filter_map(known).map(|(object, _)| object);
                encode_types(&request.identity, objects)
            }
            Operation::Dependencies => {
                let all: BTreeSet<ObjectId> = asked
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

    /// Keeps the objects that were asked for, from whom they were asked.
    fn learn(&mut self, change: &CacheChange) {
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
            let is_wanted = self.pending.iter().any(|pending| {
                pending.peer == change.writer.prefix && pending.wanted.contains(&object.id)
            });
            if !is_wanted {
                continue;
            }
            if self.learned.len() >= LEARNED_MAX {
                self.learned.clear();
            }
            self.learned.insert(object.id, object.bytes);
            self.news = true;
        }
    }

    fn writer_bytes(&self) -> [u8; 16] {
        self.prefix.with(EntityId::TYPE_REQUEST_WRITER).to_bytes()
    }

    /// Whether objects came since this was last asked.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.news)
    }

    /// What a peer's endpoint is made of, as far as it is known; asks the peer
    /// for what is missing. `serves`: the peer has the service.
    pub(crate) fn describe(
        &mut self,
        now: Instant,
        endpoint: &EndpointData,
        serves: bool,
    ) -> ForeignType {
        let information = endpoint.type_information.as_deref();
        let Some(Ok(information)) = information.map(TypeInformation::decode) else {
            return ForeignType::Silent;
        };
        let Some(complete) = information.complete else {
            return ForeignType::Silent;
        };
        match described(complete.id, &self.learned) {
            Ok(description) => {
                self.pending.retain(|pending| pending.root != complete.id);
                ForeignType::Known(description)
            }
            Err(Foreign::Missing(_)) if !serves => ForeignType::Silent,
            Err(Foreign::Missing(missing)) => {
                let listed = information.dependencies.iter().map(|d| d.id);
                let wanted = listed
                    .chain([complete.id, missing])
                    .filter(|id| !self.learned.contains_key(id))
                    .take(lookup::IDS_MAX)
                    .collect();
                self.ask(now, endpoint.guid.prefix, complete.id, wanted)
            }
            Err(other) => ForeignType::Refused(other),
        }
    }

    fn ask(
        &mut self,
        now: Instant,
        peer: GuidPrefix,
        root: ObjectId,
        wanted: BTreeSet<ObjectId>,
    ) -> ForeignType {
        let of_it = |pending: &Pending| pending.root == root && pending.peer == peer;
        let mut questions = 0;
        if let Some(at) = self.pending.iter().position(of_it) {
            let Some(pending) = self.pending.get(at) else {
                return ForeignType::NoAnswer;
            };
            let progressed = !wanted.is_superset(&pending.wanted);
            if !progressed && now < pending.asked_at + PATIENCE {
                return ForeignType::Asked;
            }
            if !progressed && pending.questions >= QUESTIONS_MAX {
                self.pending.remove(at);
                return ForeignType::NoAnswer;
            }
            questions = if progressed { 0 } else { pending.questions };
            self.pending.remove(at);
        }
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
        }
        self.number = self.number.wrapping_add(1);
        let request = Request {
            identity: Identity {
                writer: self.writer_bytes(),
                number: self.number,
            },
            instance: instance_name(peer),
            operation: Operation::Types,
            ids: wanted.iter().copied().collect(),
        };
        self.requests.send(now, peer, request.encode().into());
        self.pending.push(Pending {
            root,
            peer,
            wanted,
            asked_at: now,
            questions: questions.saturating_add(1),
        });
        ForeignType::Asked
    }

    /// Forgets the questions to a participant that is gone.
    pub(crate) fn part(&mut self, prefix: GuidPrefix) {
        self.requests.part(prefix);
        self.replies.part(prefix);
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
