//! Questions: what a participant is asked to prove that it receives our datagrams
//! (protection against reflection and amplification).
//!
//! A HEARTBEAT asks an SEDP reader for an ACKNACK. A participant may announce SEDP
//! writers only, as those of OpenSplice do by default. An ACKNACK without the final flag
//! asks such a writer for a HEARTBEAT (RTPS 2.5 §8.3.8.1). Both are small, so that a
//! forged announcement causes little traffic.

use crate::discovery::data::ParticipantData;
use crate::discovery::spdp;
use crate::id::{EntityId, VendorId};
use crate::outbox::MessageBuilder;
use crate::wire::{AckNack, Heartbeat, Submessage};

/// After so many questions to SEDP readers the writers are asked, too.
const READERS_ONLY_MAX: u32 = 1;

/// The built-in endpoints of a participant that questions have asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AskedEndpoints {
    /// An SEDP reader, by a HEARTBEAT.
    pub(crate) reader: bool,
    /// The SEDP writer of publications, by an ACKNACK.
    pub(crate) publications_writer: bool,
    /// The SEDP writer of subscriptions, by an ACKNACK.
    pub(crate) subscriptions_writer: bool,
}

impl AskedEndpoints {
    /// The endpoints to ask after `unanswered` questions: a reader if there is one. An
    /// ACKNACK of a reader that another stack does not know yet is harmless, but it makes
    /// a Pteros peer think that we restarted.
    pub(crate) fn of(peer: &ParticipantData, unanswered: u32) -> Self {
        let has = |bit| peer.builtin_endpoints & bit != 0;
        let has_reader = has(spdp::PUBLICATIONS_DETECTOR) || has(spdp::SUBSCRIPTIONS_DETECTOR);
        let has_writer = has(spdp::PUBLICATIONS_ANNOUNCER) || has(spdp::SUBSCRIPTIONS_ANNOUNCER);
        let insists = unanswered >= READERS_ONLY_MAX && peer.vendor != VendorId::PTEROS;
        let asks_writers = !has_reader || insists;
        Self {
            reader: has_reader || !has_writer,
            publications_writer: asks_writers && has(spdp::PUBLICATIONS_ANNOUNCER),
            subscriptions_writer: asks_writers && has(spdp::SUBSCRIPTIONS_ANNOUNCER),
        }
    }

    /// Whether a participant has an SEDP endpoint, which must answer a question. One
    /// without has no endpoints to discover, and need not answer.
    pub(crate) fn can_answer(peer: &ParticipantData) -> bool {
        let sedp = spdp::PUBLICATIONS_ANNOUNCER
            | spdp::PUBLICATIONS_DETECTOR
            | spdp::SUBSCRIPTIONS_ANNOUNCER
            | spdp::SUBSCRIPTIONS_DETECTOR;
        peer.builtin_endpoints & sedp != 0
    }

    /// The endpoints that were asked now or before.
    pub(crate) const fn or(self, before: Self) -> Self {
        Self {
            reader: self.reader || before.reader,
            publications_writer: self.publications_writer || before.publications_writer,
            subscriptions_writer: self.subscriptions_writer || before.subscriptions_writer,
        }
    }

    /// Bytes of the question's submessages.
    pub(crate) fn size_bytes(self) -> usize {
        let of = |is_asked: bool, bytes: usize| if is_asked { bytes } else { 0 };
        of(self.reader, Heartbeat::SIZE_BYTES)
            .saturating_add(of(self.publications_writer, AckNack::EMPTY_SIZE_BYTES))
            .saturating_add(of(self.subscriptions_writer, AckNack::EMPTY_SIZE_BYTES))
    }

    /// Whether a submessage without INFO_DST answers the question.
    ///
    /// Only INFO_DST shows that its sender knows our GUID prefix. A forger of a source
    /// address receives nothing there, and cannot send it. So a participant with SEDP
    /// readers must send it. It would get all of our SEDP, and the multicast of its
    /// writers to others says nothing about us. OpenSplice has no SEDP readers by
    /// default and sends no INFO_DST.
    pub(crate) fn is_answered_by(self, message: &Submessage<'_>) -> bool {
        if self.reader {
            return false;
        }
        let writer = message.writer();
        match message {
            Submessage::Data(_)
            | Submessage::DataFrag(_)
            | Submessage::Heartbeat(_)
            | Submessage::Gap(_) => {
                self.publications_writer && writer == Some(EntityId::SEDP_PUBLICATIONS_WRITER)
                    || self.subscriptions_writer
                        && writer == Some(EntityId::SEDP_SUBSCRIPTIONS_WRITER)
            }
            _ => false,
        }
    }
}

/// The submessages of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Question {
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) acknacks: [Option<AckNack>; 2],
}

impl Question {
    /// Appends its submessages to a datagram.
    pub(crate) fn write(&self, message: &mut MessageBuilder<'_>) {
        if let Some(heartbeat) = &self.heartbeat {
            message.heartbeat(heartbeat);
        }
        for acknack in self.acknacks.iter().flatten() {
            message.acknack(acknack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::GuidPrefix;

    fn asked(endpoints: u32, vendor: VendorId, unanswered: u32) -> [bool; 3] {
        let mut peer = ParticipantData::new(GuidPrefix([1; 12]));
        (peer.builtin_endpoints, peer.vendor) = (endpoints, vendor);
        let asked = AskedEndpoints::of(&peer, unanswered);
        [
            asked.reader,
            asked.publications_writer,
            asked.subscriptions_writer,
        ]
    }

    #[test]
    fn writers_are_asked_where_no_reader_is_announced_or_none_answers() {
        let other = VendorId::CYCLONE;
        for (endpoints, at_first, later) in [
            (0x3f, [true, false, false], [true, true, true]),
            (0x415, [false, true, true], [false, true, true]),
            (0x5, [false, true, false], [false, true, false]),
            (0x11, [false, false, true], [false, false, true]),
            // A reader of one kind, and the writer of the other one.
            (0x25, [true, false, false], [true, true, false]),
            (0x3, [true, false, false], [true, false, false]),
        ] {
            assert_eq!(asked(endpoints, other, 0), at_first, "{endpoints:x}");
            assert_eq!(asked(endpoints, other, 1), later, "{endpoints:x}");
            assert_eq!(asked(endpoints, VendorId::PTEROS, 1), at_first);
        }
    }
}
