//! Simple endpoint discovery (RTPS 2.5 §8.5.4): our writers and readers told to
//! every participant, and theirs told to us, each as one keyed change over a
//! reliable transient-local channel.

use alloc::boxed::Box;

use crate::discovery::channel::Channel;
use crate::discovery::data::{DataLimits, EndpointData};
use crate::discovery::spdp;
use crate::history::{CacheChange, ChangeKind};
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::time::Instant;

/// What one received change says.
pub(crate) enum News {
    /// An endpoint exists, or changed.
    Endpoint(Box<EndpointData>),
    /// An endpoint is gone.
    Gone(Guid),
    /// Not readable.
    Malformed,
    /// The sender speaks for somebody else's endpoint.
    Impersonation,
}

/// Both SEDP channels.
pub(crate) struct Sedp {
    pub(crate) publications: Channel,
    pub(crate) subscriptions: Channel,
}

impl Sedp {
    pub(crate) fn new(prefix: GuidPrefix) -> Self {
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
        }
    }

    /// Tells everybody of our endpoint, or of its new state.
    pub(crate) fn publish(&mut self, now: Instant, data: &EndpointData) {
        let key = data.guid.to_bytes();
        self.channel_of(data.guid).put(now, key, data.encode());
    }

    /// Tells everybody that our endpoint is gone.
    pub(crate) fn retract(&mut self, now: Instant, guid: Guid) {
        if fault!("endings-not-told") {
            return;
        }
        let key_only = EndpointData::encode_key(guid);
        self.channel_of(guid)
            .dispose(now, guid.to_bytes(), key_only);
    }

    /// Keeps what is gone for those who may come back and still believe in it.
    pub(crate) fn hold_endings(&mut self, hold: bool) {
        let hold = hold && !fault!("endings-not-held");
        self.publications.hold_endings(hold);
        self.subscriptions.hold_endings(hold);
    }

    /// A participant that began anew with the same GUID.
    pub(crate) fn poll_began_anew(&mut self) -> Option<GuidPrefix> {
        let publications = self.publications.poll_began_anew();
        publications.or_else(|| self.subscriptions.poll_began_anew())
    }

    fn channel_of(&mut self, guid: Guid) -> &mut Channel {
        if guid.entity.is_writer() {
            &mut self.publications
        } else {
            &mut self.subscriptions
        }
    }

    /// The next change that arrived in order on either channel.
    pub(crate) fn poll_news(&mut self, within: &DataLimits) -> Option<News> {
        if let Some(change) = self.publications.poll_change() {
            return Some(read(&change, true, within));
        }
        let change = self.subscriptions.poll_change()?;
        Some(read(&change, false, within))
    }
}

/// Reads one change of a peer's SEDP writer.
fn read(change: &CacheChange, of_writers: bool, within: &DataLimits) -> News {
    let speaker = change.writer.prefix;
    let ours_to_tell = |guid: Guid| guid.prefix == speaker && guid.entity.is_writer() == of_writers;
    if change.kind == ChangeKind::Alive {
        return match EndpointData::parse_within(&change.payload, within) {
            Ok(data) if ours_to_tell(data.guid) => News::Endpoint(Box::new(data)),
            Ok(_) => News::Impersonation,
            Err(_) => News::Malformed,
        };
    }
    // Cyclone sends the key as payload, Fast DDS as PID_KEY_HASH.
    let key =
        EndpointData::parse_key(&change.payload).or_else(|| change.key_hash.map(Guid::from_bytes));
    match key {
        Some(guid) if ours_to_tell(guid) => News::Gone(guid),
        Some(_) => News::Impersonation,
        None => News::Malformed,
    }
}
