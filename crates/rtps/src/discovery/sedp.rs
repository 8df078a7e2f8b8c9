//! Simple endpoint discovery (RTPS 2.5 §8.5.4): our writers and readers told to
//! every participant, and theirs told to us, each as one keyed change over a
//! reliable transient-local channel. Those of protected topics are told to
//! authenticated participants alone, by channels of their own (DDS Security 1.1
//! §7.4.1.1).

use alloc::boxed::Box;

use crate::discovery::channel::{Channel, earliest};
use crate::discovery::data::{DataLimits, EndpointData, ParticipantData};
use crate::discovery::spdp;
use crate::history::{CacheChange, ChangeKind};
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Route;
use crate::receiver::Source;
use crate::time::Instant;
use crate::wire::Submessage;

/// What one received change says.
pub(crate) enum News {
    /// An endpoint exists, or changed.
    Endpoint(Box<EndpointData>, By),
    /// An endpoint is gone.
    Gone(Guid, By),
    /// Not readable.
    Malformed,
    /// The sender speaks for somebody else's endpoint.
    Impersonation,
}

/// By which channels something was told.
#[derive(Clone, Copy)]
pub(crate) struct By {
    /// By the secured ones.
    pub(crate) secured: bool,
    of_writers: bool,
}

/// The SEDP channels: of writers and of readers, and both once more for those
/// that only authenticated participants hear of.
pub(crate) struct Sedp {
    pub(crate) publications: Channel,
    subscriptions: Channel,
    secured: Option<Box<[Channel; 2]>>,
}

impl Sedp {
    pub(crate) fn new(prefix: GuidPrefix, is_secured: bool) -> Self {
        Self {
            publications: Channel::doubting(
                prefix,
                EntityId::SEDP_PUBLICATIONS_WRITER,
                EntityId::SEDP_PUBLICATIONS_READER,
                (spdp::PUBLICATIONS_ANNOUNCER, spdp::PUBLICATIONS_DETECTOR),
            ),
            subscriptions: Channel::doubting(
                prefix,
                EntityId::SEDP_SUBSCRIPTIONS_WRITER,
                EntityId::SEDP_SUBSCRIPTIONS_READER,
                (spdp::SUBSCRIPTIONS_ANNOUNCER, spdp::SUBSCRIPTIONS_DETECTOR),
            ),
            secured: is_secured.then(|| {
                Box::new([
                    Channel::new(
                        prefix,
                        EntityId::SECURE_PUBLICATIONS_WRITER,
                        EntityId::SECURE_PUBLICATIONS_READER,
                        (
                            spdp::SECURE_PUBLICATIONS_WRITER,
                            spdp::SECURE_PUBLICATIONS_READER,
                        ),
                    ),
                    Channel::new(
                        prefix,
                        EntityId::SECURE_SUBSCRIPTIONS_WRITER,
                        EntityId::SECURE_SUBSCRIPTIONS_READER,
                        (
                            spdp::SECURE_SUBSCRIPTIONS_WRITER,
                            spdp::SECURE_SUBSCRIPTIONS_READER,
                        ),
                    ),
                ])
            }),
        }
    }

    /// All of them.
    pub(crate) fn channels(&mut self) -> impl Iterator<Item = &mut Channel> {
        let open = [&mut self.publications, &mut self.subscriptions];
        let secured = self.secured.iter_mut().flat_map(|pair| pair.iter_mut());
        open.into_iter().chain(secured)
    }

    /// Starts talking to a peer; by the secured channels to one that has proved
    /// who it is.
    pub(crate) fn meet(&mut self, now: Instant, peer: &ParticipantData, at: &Route, is_in: bool) {
        self.publications.meet(now, peer, at);
        self.subscriptions.meet(now, peer, at);
        if is_in {
            for channel in self.secured.iter_mut().flat_map(|pair| pair.iter_mut()) {
                channel.meet(now, peer, at);
            }
        }
    }

    /// Gives a submessage to the machine that it concerns; false if it is of
    /// another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        self.channels()
            .any(|channel| channel.handle(now, source, message))
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let open = [&self.publications, &self.subscriptions];
        let secured = self.secured.iter().flat_map(|pair| pair.iter());
        let all = open.into_iter().chain(secured).map(Channel::next_timeout);
        all.fold(None, earliest)
    }

    /// Tells everybody of our endpoint, or of its new state.
    pub(crate) fn publish(&mut self, now: Instant, data: &EndpointData) {
        let key = data.guid.to_bytes();
        self.channel_of(data).put(now, key, data.encode());
    }

    /// Tells everybody that our endpoint is gone.
    pub(crate) fn retract(&mut self, now: Instant, data: &EndpointData) {
        if fault!("endings-not-told") {
            return;
        }
        let key_only = EndpointData::encode_key(data.guid);
        self.channel_of(data)
            .dispose(now, data.guid.to_bytes(), key_only);
    }

    /// Keeps what is gone for those who may come back and still believe in it.
    pub(crate) fn hold_endings(&mut self, hold: bool) {
        let hold = hold && !fault!("endings-not-held");
        for channel in self.channels() {
            channel.hold_endings(hold);
        }
    }

    /// A participant that began anew with the same GUID.
    pub(crate) fn poll_began_anew(&mut self) -> Option<GuidPrefix> {
        let publications = self.publications.poll_began_anew();
        publications.or_else(|| self.subscriptions.poll_began_anew())
    }

    fn channel_of(&mut self, data: &EndpointData) -> &mut Channel {
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

    /// The next change that arrived in order on some channel.
    pub(crate) fn poll_news(&mut self, within: &DataLimits) -> Option<News> {
        let kinds = [(true, false), (false, false), (true, true), (false, true)];
        for (channel, (of_writers, secured)) in self.channels().zip(kinds) {
            if let Some(change) = channel.poll_change() {
                let by = By {
                    secured,
                    of_writers,
                };
                return Some(read(&change, by, within));
            }
        }
        None
    }
}

/// Reads one change of a peer's SEDP writer.
fn read(change: &CacheChange, by: By, within: &DataLimits) -> News {
    let speaker = change.writer.prefix;
    let ours_to_tell =
        |guid: Guid| guid.prefix == speaker && guid.entity.is_writer() == by.of_writers;
    if change.kind == ChangeKind::Alive {
        return match EndpointData::parse_within(&change.payload, within) {
            Ok(data) if ours_to_tell(data.guid) => News::Endpoint(Box::new(data), by),
            Ok(_) => News::Impersonation,
            Err(_) => News::Malformed,
        };
    }
    // Cyclone sends the key as payload, Fast DDS as PID_KEY_HASH.
    let key =
        EndpointData::parse_key(&change.payload).or_else(|| change.key_hash.map(Guid::from_bytes));
    match key {
        Some(guid) if ours_to_tell(guid) => News::Gone(guid, by),
        Some(_) => News::Impersonation,
        None => News::Malformed,
    }
}
