//! Announcements to the participants of the same host, which share one discovery
//! log: the records and their bounded queue. [`super::same_host`] writes and reads
//! them.

use alloc::vec::Vec;
use bytes::Bytes;

use crate::discovery::liveliness::Wlp;
use crate::id::Guid;
use crate::qos::Liveliness;

/// One on-host announcement of a participant.
///
/// ```text
/// 0      1
/// +------+----------------------------------------------+
/// | kind | payload: as of SPDP or SEDP, with its        |
/// |      | encapsulation; a GUID; or a liveliness kind  |
/// +------+----------------------------------------------+
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Announcement {
    /// The participant's own announcement; comes first.
    Participant(Bytes),
    /// One of its writers or readers was added, or changed.
    Endpoint(Bytes),
    /// One of its endpoints was removed.
    EndpointRemoved(Guid),
    /// A liveliness assertion for its writers of this kind: automatic or manual by
    /// participant.
    LivelinessAsserted(Liveliness),
}

const PARTICIPANT: u8 = 1;

const ENDPOINT: u8 = 2;

const ENDPOINT_REMOVED: u8 = 3;

const ALIVE_AUTOMATIC: u8 = 4;

const ALIVE_MANUAL: u8 = 5;

impl Announcement {
    /// Its form in the discovery log. Allocates.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, payload): (u8, &[u8]) = match self {
            Self::Participant(payload) => (PARTICIPANT, payload),
            Self::Endpoint(payload) => (ENDPOINT, payload),
            Self::EndpointRemoved(guid) => {
                let mut out = Vec::from([ENDPOINT_REMOVED]);
                out.extend_from_slice(&guid.to_bytes());
                return out;
            }
            Self::LivelinessAsserted(Liveliness::ManualByParticipant) => (ALIVE_MANUAL, &[]),
            Self::LivelinessAsserted(_) => (ALIVE_AUTOMATIC, &[]),
        };
        let mut out = Vec::with_capacity(payload.len().saturating_add(1));
        out.push(kind);
        out.extend_from_slice(payload);
        out
    }

    /// Parses its form in the discovery log; `None` if malformed, or of a later
    /// version.
    pub fn parse(encoded: &[u8]) -> Option<Self> {
        let (kind, payload) = encoded.split_first()?;
        Some(match *kind {
            PARTICIPANT => Self::Participant(Bytes::copy_from_slice(payload)),
            ENDPOINT => Self::Endpoint(Bytes::copy_from_slice(payload)),
            ENDPOINT_REMOVED => Self::EndpointRemoved(Guid::from_bytes(payload.try_into().ok()?)),
            ALIVE_AUTOMATIC => Self::LivelinessAsserted(Liveliness::Automatic),
            ALIVE_MANUAL => Self::LivelinessAsserted(Liveliness::ManualByParticipant),
            _ => return None,
        })
    }
}

/// The result of [`Participant::take_announcements`](super::Participant::take_announcements).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Announcements {
    /// All announcements; earlier ones are obsolete.
    Full(Vec<Announcement>),
    /// The new announcements.
    New(Vec<Announcement>),
}

/// Queued announcements for the owner. Beyond this limit the queue is dropped, and
/// all announcements are given again.
const ANNOUNCEMENTS_MAX: usize = 1024;

/// Announcements to append.
pub(super) struct AnnouncementQueue {
    is_enabled: bool,
    is_full_due: bool,
    queued: Vec<Announcement>,
}

impl AnnouncementQueue {
    pub(super) fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled,
            is_full_due: is_enabled,
            queued: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, announcement: impl FnOnce() -> Announcement) {
        if !self.is_enabled || self.is_full_due {
            return;
        }
        if self.queued.len() >= ANNOUNCEMENTS_MAX {
            self.is_full_due = true;
            self.queued = Vec::new();
            return;
        }
        self.queued.push(announcement());
    }

    /// Adds the liveliness assertions that were just sent.
    pub(super) fn push_assertions(&mut self, wlp: &mut Wlp) {
        while let Some(kind) = wlp.take_asserted() {
            self.push(|| Announcement::LivelinessAsserted(kind));
        }
    }

    /// The new ones; `Some(None)`: all.
    pub(super) fn take(&mut self) -> Option<Option<Vec<Announcement>>> {
        if core::mem::take(&mut self.is_full_due) {
            return Some(None);
        }
        let queued = core::mem::take(&mut self.queued);
        (!queued.is_empty()).then_some(Some(queued))
    }
}
