//! SEDP, the simple endpoint discovery protocol (RTPS 2.5 §8.5.4).
//!
//! Our writers and readers are announced to every participant, each as one keyed
//! change of a reliable, transient-local built-in topic. Those of protected topics
//! are announced to authenticated participants only, on separate topics (DDS
//! Security 1.1 §7.4.1.1).

use alloc::boxed::Box;

use crate::change::{CacheChange, ChangeKind};
use crate::discovery::builtin_topic::{BuiltinEndpoints, BuiltinTopic, TopicReset, earliest};
use crate::discovery::data::{DataLimits, EndpointData, ParticipantData};
use crate::discovery::question::{AskedEndpoints, Question};
use crate::discovery::spdp;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Route;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::{AckNack, Submessage};

/// The content of one received change.
pub(crate) enum SedpChange {
    /// An endpoint was added, or changed.
    Endpoint(Box<EndpointData>, ReceivedVia),
    /// An endpoint was removed.
    Removed(Guid, ReceivedVia),
    /// The parameter list cannot be read, or lacks what is required.
    Malformed,
    /// As announced by `by`, it concerns an endpoint of the participant `of`.
    Relayed {
        by: GuidPrefix,
        of: GuidPrefix,
        change: Box<SedpChange>,
    },
    /// A writer among the readers, or the reverse.
    Impersonation,
}

/// The topics on which a change was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReceivedVia {
    /// The secured ones.
    pub(crate) secured: bool,
    /// Publications, not subscriptions.
    pub(crate) is_publications: bool,
}

/// A participant whose SEDP contradicts what was received before.
pub(crate) enum SedpReset {
    /// It restarted with the same GUID.
    Restarted(GuidPrefix),
    /// It restarted with the same GUID, or counts were forged in its name.
    CountsAnew(GuidPrefix),
    /// Its received announcements may be forged: all on this topic come again.
    Reread(GuidPrefix, ReceivedVia),
}

/// The topics in the order of [`Sedp::channels`].
const TOPICS: [ReceivedVia; 4] = [
    ReceivedVia {
        secured: false,
        is_publications: true,
    },
    ReceivedVia {
        secured: false,
        is_publications: false,
    },
    ReceivedVia {
        secured: true,
        is_publications: true,
    },
    ReceivedVia {
        secured: true,
        is_publications: false,
    },
];

/// The SEDP topics: publications and subscriptions, and both again for
/// authenticated participants only.
pub(crate) struct Sedp {
    publications: BuiltinTopic,
    subscriptions: BuiltinTopic,
    secured: Option<Box<[BuiltinTopic; 2]>>,
    /// Discovery servers relay what is announced.
    is_relayed: bool,
}

impl Sedp {
    pub(crate) fn new(prefix: GuidPrefix, is_secured: bool) -> Self {
        Self {
            is_relayed: false,
            publications: BuiltinTopic::with_reset_detection(
                prefix,
                BuiltinEndpoints {
                    writer: EntityId::SEDP_PUBLICATIONS_WRITER,
                    reader: EntityId::SEDP_PUBLICATIONS_READER,
                    writer_bit: spdp::PUBLICATIONS_ANNOUNCER,
                    reader_bit: spdp::PUBLICATIONS_DETECTOR,
                },
            ),
            subscriptions: BuiltinTopic::with_reset_detection(
                prefix,
                BuiltinEndpoints {
                    writer: EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                    reader: EntityId::SEDP_SUBSCRIPTIONS_READER,
                    writer_bit: spdp::SUBSCRIPTIONS_ANNOUNCER,
                    reader_bit: spdp::SUBSCRIPTIONS_DETECTOR,
                },
            ),
            secured: is_secured.then(|| {
                Box::new([
                    BuiltinTopic::new(
                        prefix,
                        BuiltinEndpoints {
                            writer: EntityId::SECURE_PUBLICATIONS_WRITER,
                            reader: EntityId::SECURE_PUBLICATIONS_READER,
                            writer_bit: spdp::SECURE_PUBLICATIONS_WRITER,
                            reader_bit: spdp::SECURE_PUBLICATIONS_READER,
                        },
                    ),
                    BuiltinTopic::new(
                        prefix,
                        BuiltinEndpoints {
                            writer: EntityId::SECURE_SUBSCRIPTIONS_WRITER,
                            reader: EntityId::SECURE_SUBSCRIPTIONS_READER,
                            writer_bit: spdp::SECURE_SUBSCRIPTIONS_WRITER,
                            reader_bit: spdp::SECURE_SUBSCRIPTIONS_READER,
                        },
                    ),
                ])
            }),
        }
    }

    /// All topics.
    pub(crate) fn channels(&mut self) -> impl Iterator<Item = &mut BuiltinTopic> {
        let open = [&mut self.publications, &mut self.subscriptions];
        let secured = self.secured.iter_mut().flat_map(|pair| pair.iter_mut());
        open.into_iter().chain(secured)
    }

    /// Announces for discovery servers, see [`BuiltinTopic::name_samples`].
    pub(crate) fn announce_to_servers(&mut self) {
        self.is_relayed = true;
        self.publications.name_samples();
        self.subscriptions.name_samples();
    }

    /// Matches a peer; on the secured topics if it is authenticated.
    pub(crate) fn match_peer(
        &mut self,
        now: Instant,
        peer: &ParticipantData,
        at: &Route,
        is_authenticated: bool,
    ) {
        self.publications.match_peer(now, peer, at);
        self.subscriptions.match_peer(now, peer, at);
        if is_authenticated {
            for channel in self.secured.iter_mut().flat_map(|pair| pair.iter_mut()) {
                channel.match_peer(now, peer, at);
            }
        }
    }

    /// Gives a submessage to the machine that it concerns; false if it is of
    /// another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        self.channels()
            .any(|channel| channel.handle(now, source, message))
    }

    /// Whether a participant has acknowledged an announcement of ours, or there is
    /// none.
    pub(crate) fn has_acknowledged(&self, prefix: GuidPrefix) -> bool {
        let open = [&self.publications, &self.subscriptions];
        let secured = self.secured.iter().flat_map(|pair| pair.iter());
        let mut all = open.into_iter().chain(secured);
        all.clone().any(|topic| topic.has_acknowledged(prefix))
            || all.all(|topic| topic.has_no_announcement())
    }

    /// Whether a participant has acknowledged an open announcement of ours.
    pub(crate) fn has_acknowledged_some(&self, prefix: GuidPrefix) -> bool {
        let mut open = [&self.publications, &self.subscriptions].into_iter();
        open.any(|topic| topic.has_acknowledged(prefix))
    }

    /// Whether an ACKNACK acknowledges all open announcements of its topic, and there are
    /// some.
    pub(crate) fn is_acknowledged_by(&self, acknack: &AckNack) -> bool {
        let mut open = [&self.publications, &self.subscriptions].into_iter();
        open.any(|topic| topic.is_acknowledged_by(acknack))
    }

    /// Asks endpoints of a participant to answer. A reader is asked on a topic of which it
    /// has acknowledged something, if there is one.
    pub(crate) fn question(&mut self, peer: &ParticipantData, asked: AskedEndpoints) -> Question {
        let (prefix, vendor) = (peer.prefix, peer.vendor);
        let has_only_subscriptions_reader = peer.builtin_endpoints & spdp::PUBLICATIONS_DETECTOR
            == 0
            && peer.builtin_endpoints & spdp::SUBSCRIPTIONS_DETECTOR != 0;
        let acknowledges_subscriptions_only = self.subscriptions.has_acknowledged(prefix)
            && !self.publications.has_acknowledged(prefix);
        let asked_topic = if has_only_subscriptions_reader || acknowledges_subscriptions_only {
            &mut self.subscriptions
        } else {
            &mut self.publications
        };
        let heartbeat = asked.reader.then(|| asked_topic.probe(prefix));
        let publications = &mut self.publications;
        let subscriptions = &mut self.subscriptions;
        Question {
            heartbeat,
            acknacks: [
                asked
                    .publications_writer
                    .then(|| publications.probe_writer(prefix, vendor)),
                asked
                    .subscriptions_writer
                    .then(|| subscriptions.probe_writer(prefix, vendor)),
            ],
        }
    }

    /// Requests the open announcements of a participant again.
    pub(crate) fn reread(&mut self, now: Instant, prefix: GuidPrefix) {
        self.publications.reread(now, prefix);
        self.subscriptions.reread(now, prefix);
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let open = [&self.publications, &self.subscriptions];
        let secured = self.secured.iter().flat_map(|pair| pair.iter());
        let all = open
            .into_iter()
            .chain(secured)
            .map(BuiltinTopic::next_timeout);
        all.fold(None, earliest)
    }

    /// Announces a new or changed local endpoint.
    pub(crate) fn publish(&mut self, now: Instant, data: &EndpointData) {
        let key = data.guid.to_bytes();
        let payload = match self.is_relayed {
            false => data.encode(),
            true => without_type_information(data).encode(),
        };
        self.channel_of(data).publish(now, key, payload);
    }

    /// Announces the removal of a local endpoint (dispose).
    pub(crate) fn retract(&mut self, now: Instant, data: &EndpointData) {
        let key_only = EndpointData::encode_key(data.guid);
        self.channel_of(data)
            .dispose(now, data.guid.to_bytes(), key_only);
    }

    /// Keeps dispose changes for peers that may return with stale state
    /// (tombstones).
    pub(crate) fn retain_disposed(&mut self, hold: bool) {
        for channel in self.channels() {
            channel.retain_disposed(hold);
        }
    }

    /// The next participant that restarted with the same GUID, or whose
    /// announcements are read again.
    pub(crate) fn poll_reset(&mut self) -> Option<SedpReset> {
        for (channel, by) in self.channels().zip(TOPICS) {
            match channel.poll_reset() {
                None => {}
                Some(TopicReset::Restarted(prefix) | TopicReset::CountsAnew(prefix))
                    if by.secured =>
                {
                    // Keys protect it: it authenticates again instead.
                    let _ = prefix;
                }
                Some(TopicReset::Restarted(prefix)) => return Some(SedpReset::Restarted(prefix)),
                Some(TopicReset::CountsAnew(prefix)) => return Some(SedpReset::CountsAnew(prefix)),
                Some(TopicReset::Reread(prefix)) => return Some(SedpReset::Reread(prefix, by)),
            }
        }
        None
    }

    /// Whether everything that a participant has announced on a topic was received.
    pub(crate) fn has_everything_of(&mut self, prefix: GuidPrefix, by: ReceivedVia) -> bool {
        let mut channels = self.channels().zip(TOPICS);
        channels.any(|(channel, of)| of == by && channel.has_everything_of(prefix))
    }

    fn channel_of(&mut self, data: &EndpointData) -> &mut BuiltinTopic {
        let is_writer = data.guid.entity.is_writer();
        match &mut self.secured {
            Some(pair) if data.is_discovery_protected() => {
                let [publications, subscriptions] = &mut **pair;
                if is_writer {
                    publications
                } else {
                    subscriptions
                }
            }
            _ if is_writer => &mut self.publications,
            _ => &mut self.subscriptions,
        }
    }

    /// The next received change of any topic.
    pub(crate) fn poll_change(&mut self, within: &DataLimits) -> Option<SedpChange> {
        for (channel, by) in self.channels().zip(TOPICS) {
            if let Some(change) = channel.poll_change() {
                return Some(read(&change, by, within));
            }
        }
        None
    }
}

/// An announcement that Fast DDS matches at once. It matches an endpoint with type
/// information only after TypeLookup, if the participant names its vendor as clients of
/// discovery servers must, and it asks the server, which does not answer for others' types.
fn without_type_information(data: &EndpointData) -> EndpointData {
    EndpointData {
        type_information: None,
        ..data.clone()
    }
}

/// Parses one change of a peer's SEDP writer.
fn read(change: &CacheChange, by: ReceivedVia, within: &DataLimits) -> SedpChange {
    let sender = change.writer.prefix;
    let of_sender = |guid: Guid, change: SedpChange| {
        if guid.entity.is_writer() != by.is_publications {
            return SedpChange::Impersonation;
        }
        if guid.prefix == sender {
            return change;
        }
        SedpChange::Relayed {
            by: sender,
            of: guid.prefix,
            change: Box::new(change),
        }
    };
    if change.kind == ChangeKind::Alive {
        return match EndpointData::parse_within(&change.payload, within) {
            Ok(data) => of_sender(data.guid, SedpChange::Endpoint(Box::new(data), by)),
            Err(_) => SedpChange::Malformed,
        };
    }
    // Cyclone DDS sends the key as payload, Fast DDS as PID_KEY_HASH.
    let key =
        EndpointData::parse_key(&change.payload).or_else(|| change.key_hash.map(Guid::from_bytes));
    match key {
        Some(guid) => of_sender(guid, SedpChange::Removed(guid, by)),
        None => SedpChange::Malformed,
    }
}
