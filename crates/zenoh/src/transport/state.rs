//! State of the transport, under one lock: discovery, reception and publishing, and the
//! steps that concern several of them.

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::transport::TransportEvent;

use super::discovery::Discovery;
use super::publishing::Publishing;
use super::reception::Reception;
use crate::gid::Gid;
use crate::inbox::Arrival;
use crate::peers::Peers;

/// The three parts, each with its own fields.
pub struct State {
    pub discovery: Discovery,
    pub reception: Reception,
    pub publishing: Publishing,
}

impl State {
    pub fn new(peers: Peers) -> Self {
        Self {
            discovery: Discovery::new(peers),
            reception: Reception::default(),
            publishing: Publishing::new(),
        }
    }

    /// When the next poll is due; [`Instant::ZERO`] for at once.
    pub fn next_poll(&self) -> Option<Instant> {
        let peers = &self.discovery.peers;
        if self.publishing.is_due() || self.reception.is_due() || peers.has_events() {
            return Some(Instant::ZERO);
        }
        let early = self.reception.early.next_expiry();
        let waiting = early
            .into_iter()
            .chain(self.discovery.undeclared.next_end());
        waiting.chain(peers.next_expiry()).min()
    }

    /// Appends discovery events, and counts samples per match.
    pub fn take_discovery(&mut self, events: &mut Vec<TransportEvent>) {
        self.reception.take_losses(events);
        let before = events.len();
        self.discovery.peers.take_discovery(events);
        for event in events.iter().skip(before) {
            match event {
                TransportEvent::Discovery(ParticipantEvent::Matched { local, remote, .. }) => {
                    self.reception.note_match(remote.guid, *local);
                }
                TransportEvent::Discovery(ParticipantEvent::Unmatched { local, remote }) => {
                    self.reception.note_unmatch(*remote, *local);
                }
                TransportEvent::Discovery(ParticipantEvent::EndpointLost(guid)) => {
                    self.reception.remove_remote(*guid);
                    self.publishing.requests.remove_client(*guid);
                }
                _ => {}
            }
        }
        self.publishing.take_events(events);
    }

    /// A token was declared or undeclared.
    pub fn note_token(&mut self, now: Instant, key: String, is_alive: bool) {
        self.publishing.note_readers();
        let Discovery {
            peers, undeclared, ..
        } = &mut self.discovery;
        let remote = peers.remote_of_token(&key);
        let held = remote.and_then(|remote| self.reception.held.writer_mut(remote.main));
        if let Some(held) = held {
            held.set_token(key, is_alive);
        } else if !is_alive && !undeclared.is_full() && peers.is_publisher(&key) {
            undeclared.push(now, key);
        } else if !is_alive {
            peers.remove(&key);
        } else if undeclared.take_back(&key) {
            // The publisher is still announced.
        } else if let Some(gid) = peers.add(now, &key) {
            self.take_early(gid);
        }
    }

    /// Removes the publishers whose wait ended at least `for_long` ago. A publisher with
    /// held samples is removed after them. Returns whether any was due.
    pub fn end_undeclared(&mut self, now: Instant, for_long: Duration) -> bool {
        let mut any = false;
        let Discovery {
            peers, undeclared, ..
        } = &mut self.discovery;
        while let Some(key) = undeclared.pop_ended(now, for_long) {
            any = true;
            self.publishing.note_readers();
            let remote = peers.remote_of_token(&key);
            let held = remote.and_then(|remote| self.reception.held.writer_mut(remote.main));
            match held {
                Some(held) => held.set_token(key, false),
                None => peers.remove(&key),
            }
        }
        any
    }

    /// See [`Reception::deliver`].
    pub fn deliver(
        &mut self,
        now: Instant,
        writer: Guid,
        arrival: Arrival,
        events: &mut Vec<TransportEvent>,
    ) -> bool {
        let peers = &self.discovery.peers;
        self.reception.deliver(now, peers, writer, arrival, events)
    }

    /// Keeps an arrival until its token has come. Returns false: it is no event.
    pub fn keep_early(&mut self, now: Instant, arrival: Arrival) -> bool {
        if self.reception.early.push(now, arrival) {
            // The wait for RTPS is cut short.
            self.go_on_with_waiting(Instant::FAR_FUTURE);
        }
        self.reception.drop_early_above_limits();
        false
    }

    /// Announces the sessions that RTPS did not reach in time, and releases their data.
    pub fn go_on_with_waiting(&mut self, now: Instant) {
        for gid in self.discovery.peers.expire(now) {
            self.take_early(gid);
            self.publishing.note_readers();
        }
    }

    /// RTPS reaches a participant from now on, or no longer. Its held and early data is
    /// dropped. Samples owed to a reader count as lost.
    pub fn note_rtps_participant(&mut self, now: Instant, prefix: GuidPrefix, is_reached: bool) {
        self.publishing.note_readers();
        let peers = &mut self.discovery.peers;
        if is_reached {
            self.reception.lose_waiting(peers, prefix);
        }
        for gid in peers.note_rtps_participant(now, prefix, is_reached) {
            self.take_early(gid);
        }
        let peers = &self.discovery.peers;
        let is_on_rtps =
            |arrival: &Arrival| arrival.sender().is_some_and(|gid| peers.is_on_rtps(gid));
        drop(self.reception.early.take(is_on_rtps));
    }

    /// Releases the early data of an endpoint whose token has arrived.
    fn take_early(&mut self, gid: Gid) {
        let peers = &self.discovery.peers;
        let is_its = |arrival: &Arrival| {
            let sender = arrival.sender();
            sender.is_some_and(|sender| peers.gid_of_token(sender) == gid)
        };
        let taken = self.reception.early.take(is_its);
        self.reception.ready.extend(taken);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pteros_rtps::discovery::data::EndpointData;
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;
    use pteros_runtime::limits::Limits;
    use pteros_runtime::transport::RtpsReach;

    use super::super::ARRIVALS_PER_POLL;
    use super::super::early::EARLY_MAX;
    use super::super::held::HELD_BYTES_MAX;
    use super::*;
    use crate::attachment::Attachment;
    use crate::session_id::SessionId;
    use crate::undeclared_publishers::UNDECLARED_WAIT;

    const TOKEN: &str = "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/1/MP/%/%/talker/%chatter/\
        std_msgs::msg::dds_::String_/RIHS01_ab/::,7:,:,:3,1,0";

    /// A state with one discovered writer.
    fn state() -> (State, Guid) {
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let mut state = State::new(Peers::new(own, 0, Limits::default(), RtpsReach::Off));
        state.note_token(Instant::ZERO, TOKEN.into(), true);
        let writer = state.discovery.peers.remote_of_token(TOKEN).unwrap().main;
        (state, writer)
    }

    fn sample(sequence: i64, bytes: usize) -> Arrival {
        Arrival::Sample {
            reader: GuidPrefix([7; 12]).with(EntityId::PARTICIPANT),
            attachment: Attachment {
                sequence,
                source_timestamp: 0,
                gid: Gid::of_token(TOKEN),
            },
            payload: vec![0; bytes].into(),
        }
    }

    #[test]
    fn tokens_between_samples_make_few_node_lists() {
        let (mut state, _) = state();
        let mut events = Vec::new();
        for number in 0..256 {
            let token = TOKEN.replacen("/0/1/", &format!("/0/{}/", number + 2), 1);
            state.take_discovery(&mut events);
            state.discovery.take_node_lists(false, &mut events);
            state.note_token(Instant::ZERO, token, true);
        }
        let lists = |events: &[TransportEvent]| {
            let is_list = |event: &&TransportEvent| matches!(event, TransportEvent::Nodes { .. });
            events.iter().filter(is_list).count()
        };
        assert_eq!(lists(&events), 256 / ARRIVALS_PER_POLL - 1);
        state.discovery.take_node_lists(true, &mut events);
        assert_eq!(lists(&events), 256 / ARRIVALS_PER_POLL);
    }

    /// The transport counts per reader: one reader may miss a sample that another one gets.
    #[test]
    fn a_loss_is_reported_to_the_reader_that_has_it() {
        let (mut state, writer) = state();
        let readers = [1, 2].map(|number| {
            let entity = EntityId::new([0, 0, number], EntityId::KIND_READER_NO_KEY);
            let guid = GuidPrefix([7; 12]).with(entity);
            let qos = EndpointQos {
                user_data: b"typehash=RIHS01_ab;".to_vec(),
                ..EndpointQos::default()
            };
            let ty = "std_msgs::msg::dds_::String_";
            let data = EndpointData::new(guid, "rt/chatter", ty, qos);
            state
                .discovery
                .peers
                .matcher_mut()
                .add_local(&Arc::new(data));
            guid
        });
        state.take_discovery(&mut Vec::new());
        let mut events = Vec::new();
        for (sequence, to) in [
            (1, &readers[..]),
            (2, &readers[..1]),
            (3, &readers[..1]),
            (4, &readers[..]),
        ] {
            for of in to {
                let Arrival::Sample {
                    attachment,
                    payload,
                    ..
                } = sample(sequence, 8)
                else {
                    unreachable!()
                };
                let arrival = Arrival::Sample {
                    reader: *of,
                    attachment,
                    payload,
                };
                assert!(state.deliver(Instant::ZERO, writer, arrival, &mut events));
            }
        }
        let lost: Vec<_> = events
            .into_iter()
            .filter(|event| matches!(event, TransportEvent::SamplesLost { .. }))
            .collect();
        let expected = TransportEvent::SamplesLost {
            writer,
            reader: Some(readers[1]),
            count: 2,
        };
        assert_eq!(lost, [expected]);
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        state.take_discovery(&mut Vec::new());
        assert_eq!(state.reception.last.len(), 2, "its last samples may follow");
        state.end_undeclared(Instant::ZERO.after(UNDECLARED_WAIT), Duration::ZERO);
        state.take_discovery(&mut Vec::new());
        assert!(state.reception.last.is_empty());
    }

    /// A state with both transports, and the token of a publisher of another such context.
    fn both() -> (State, GuidPrefix, String) {
        let own = SessionId::of_context(GuidPrefix([7; 12]));
        let prefix = GuidPrefix([9; 12]);
        let session = SessionId::of_context(prefix).to_string();
        let token = TOKEN.replace("aac3178e146ba6f1fc6e6a4085e77f21", &session);
        let peers = Peers::new(own, 0, Limits::default(), RtpsReach::Network);
        (State::new(peers), prefix, token)
    }

    fn from(token: &str, sequence: i64) -> Arrival {
        let mut arrival = sample(sequence, 8);
        if let Arrival::Sample { attachment, .. } = &mut arrival {
            attachment.gid = Gid::of_token(token);
        }
        arrival
    }

    #[test]
    fn a_session_waits_for_rtps_only_while_its_data_has_space() {
        let (mut state, _, token) = both();
        let gid = Gid::of_token(&token);
        state.note_token(Instant::ZERO, token.clone(), true);
        let mut direct = 0;
        for sequence in 1..=300 {
            if state.discovery.peers.remote(gid).is_some() {
                direct += 1;
            } else {
                state.keep_early(Instant::ZERO, from(&token, sequence));
            }
        }
        assert_eq!(state.reception.ready.len(), EARLY_MAX + 1);
        assert_eq!(
            (direct, state.reception.unannounced_count()),
            (300 - EARLY_MAX - 1, 0)
        );
        assert!(state.reception.early.queue.is_empty() && state.reception.early.bytes == 0);
    }

    #[test]
    fn early_data_of_a_session_that_rtps_reaches_is_dropped_uncounted() {
        let (mut state, prefix, token) = both();
        state.note_token(Instant::ZERO, token.clone(), true);
        state.keep_early(Instant::ZERO, from(&token, 1));
        state.keep_early(Instant::ZERO, from(TOKEN, 1));
        state.note_rtps_participant(Instant::ZERO, prefix, true);
        assert_eq!(
            (
                state.reception.early.queue.len(),
                state.reception.early.bytes
            ),
            (1, 8)
        );
        assert!(state.reception.ready.is_empty());
        assert_eq!(state.reception.unannounced_count(), 0);
    }

    #[test]
    fn samples_that_wait_for_space_are_lost_when_rtps_goes_on() {
        let (mut state, prefix, token) = both();
        state.note_token(Instant::ZERO, token.clone(), true);
        state.go_on_with_waiting(Instant::FAR_FUTURE);
        let writer = state.discovery.peers.remote_of_token(&token).unwrap().main;
        assert_eq!(writer.prefix, prefix);
        state.take_discovery(&mut Vec::new());
        state.reception.hold(writer, true);
        for sequence in 1..=3 {
            assert!(!state.deliver(
                Instant::ZERO,
                writer,
                from(&token, sequence),
                &mut Vec::new()
            ));
        }
        state.note_rtps_participant(Instant::ZERO, prefix, true);
        let mut events = Vec::new();
        state.take_discovery(&mut events);
        let lost = TransportEvent::SamplesLost {
            writer,
            reader: Some(GuidPrefix([7; 12]).with(EntityId::PARTICIPANT)),
            count: 3,
        };
        assert_eq!(events.first(), Some(&lost), "before the match ends");
        assert!(matches!(
            events[1..],
            [
                TransportEvent::Discovery(ParticipantEvent::EndpointLost(_)),
                TransportEvent::Discovery(ParticipantEvent::ParticipantLost { .. })
            ]
        ));
        assert_eq!(state.reception.held.bytes, 0);
        // The reader has space again.
        state.reception.hold(writer, false);
        assert!(state.reception.held.writers.is_empty() && state.reception.ready.is_empty());
    }

    /// Handles released data. Returns the number of delivered samples.
    fn go_on(state: &mut State, writer: Guid) -> usize {
        let mut events = Vec::new();
        let mut delivered = 0;
        while let Some(arrival) = state.reception.ready.pop_front() {
            match arrival {
                Arrival::Token { key, is_alive } => state.note_token(Instant::ZERO, key, is_alive),
                sample => {
                    delivered +=
                        usize::from(state.deliver(Instant::ZERO, writer, sample, &mut events))
                }
            }
        }
        delivered
    }

    #[test]
    fn a_held_writer_whose_token_comes_back_stays() {
        let (mut state, writer) = state();
        state.reception.hold(writer, true);
        assert!(!state.deliver(Instant::ZERO, writer, sample(1, 8), &mut Vec::new()));
        for _ in 0..100 {
            state.note_token(Instant::ZERO, TOKEN.into(), false);
            state.note_token(Instant::ZERO, TOKEN.into(), true);
        }
        state.reception.hold(writer, false);
        assert_eq!(state.reception.ready.len(), 2, "one token, whatever came");
        assert_eq!(go_on(&mut state, writer), 1);
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_some());
    }

    #[test]
    fn a_held_writer_whose_token_has_gone_goes_after_its_samples() {
        let (mut state, writer) = state();
        state.reception.hold(writer, true);
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        assert!(!state.deliver(Instant::ZERO, writer, sample(1, 8), &mut Vec::new()));
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_some());
        state.reception.hold(writer, false);
        assert_eq!(go_on(&mut state, writer), 1);
        state.end_undeclared(Instant::ZERO.after(UNDECLARED_WAIT), Duration::ZERO);
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_none());
    }

    /// Regression: its samples waited for a reader that filled up after the token was
    /// undeclared, and were dropped without a report.
    #[test]
    fn an_undeclared_writer_that_is_held_ends_after_its_samples() {
        let (mut state, writer) = state();
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        state.reception.hold(writer, true);
        assert!(!state.deliver(Instant::ZERO, writer, sample(1, 8), &mut Vec::new()));
        state.end_undeclared(Instant::ZERO.after(UNDECLARED_WAIT), Duration::ZERO);
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_some());
        state.reception.hold(writer, false);
        assert_eq!(go_on(&mut state, writer), 1);
        state.end_undeclared(Instant::FAR_FUTURE, Duration::ZERO);
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_none());
    }

    /// Regression: early data of unknown publishers removed all undeclared ones.
    #[test]
    fn too_much_early_data_ends_no_undeclared_writer() {
        let (mut state, _) = state();
        state.note_token(Instant::ZERO, TOKEN.into(), false);
        for number in 0..=EARLY_MAX {
            state.keep_early(Instant::ZERO, sample(number as i64, 8));
        }
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_some());
    }

    #[test]
    fn a_token_that_is_back_leaves_no_second_end_behind() {
        let (mut state, _) = state();
        for is_alive in [false, false, true] {
            state.note_token(Instant::ZERO, TOKEN.into(), is_alive);
        }
        state.end_undeclared(Instant::FAR_FUTURE, Duration::ZERO);
        assert!(state.discovery.peers.remote_of_token(TOKEN).is_some());
    }

    #[test]
    fn held_data_has_a_limit_of_bytes() {
        let (mut state, writer) = state();
        state.reception.hold(writer, true);
        let bytes = HELD_BYTES_MAX / 4;
        for sequence in 1..=9 {
            state.deliver(
                Instant::ZERO,
                writer,
                sample(sequence, bytes),
                &mut Vec::new(),
            );
        }
        assert_eq!(state.reception.held.bytes, HELD_BYTES_MAX);
        state.reception.hold(writer, false);
        assert_eq!(state.reception.held.bytes, 0);
        assert_eq!(go_on(&mut state, writer), 4);
    }
}
