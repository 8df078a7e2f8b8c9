//! Built-in topics of a participant (RTPS 2.5 §8.5.4): SEDP, WLP, TypeLookup, and those of
//! secure discovery. A discovered participant is matched on all of them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::discovery::builtin_topic::{BuiltinTopic, earliest};
use crate::discovery::data::ParticipantData;
use crate::discovery::liveliness::Wlp;
use crate::discovery::question::{AskedEndpoints, Question};
use crate::discovery::sedp::Sedp;
use crate::discovery::type_lookup::TypeLookup;
use crate::id::{GuidPrefix, VendorId};
use crate::locator::Route;
use crate::memory_budget::MemoryAccount;
use crate::outbox::Outbox;
use crate::retransmission_window::RetransmissionWindow;
use crate::time::Instant;

use super::discovery_client::DiscoveryClient;
use super::peer::Peers;
use super::secure_discovery::SecureDiscovery;
use super::{ParticipantConfig, ParticipantEvent};

/// The built-in topics of one participant.
pub(super) struct BuiltinTopics {
    pub(super) sedp: Sedp,
    pub(super) wlp: Wlp,
    pub(super) types: TypeLookup,
    /// With DDS Security.
    pub(super) secured: Option<Box<SecureDiscovery>>,
    /// With discovery servers.
    pub(super) servers: Option<Box<DiscoveryClient>>,
}

impl BuiltinTopics {
    pub(super) fn new(now: Instant, config: &ParticipantConfig, data: &ParticipantData) -> Self {
        let own = config.security.as_ref();
        let mut sedp = Sedp::new(config.prefix, own.is_some());
        let servers = config.discovery_servers.as_ref().map(|servers| {
            sedp.announce_to_servers();
            Box::new(DiscoveryClient::new(now, config.prefix, servers))
        });
        Self {
            servers,
            secured: own.map(|own| {
                let max = config.limits.unvalidated_participants;
                Box::new(SecureDiscovery::new(now, own.clone(), data, max))
            }),
            sedp,
            wlp: Wlp::new(
                config.prefix,
                own.is_some(),
                own.is_none_or(|own| own.unprotected_liveliness),
            ),
            types: TypeLookup::new(config.prefix),
        }
    }

    /// Whether a participant is authenticated.
    pub(super) fn is_authenticated(&self, prefix: GuidPrefix) -> bool {
        let secured = self.secured.as_ref();
        secured.is_some_and(|own| own.is_authenticated(prefix))
    }

    /// Whether our built-in endpoints send nothing to one, since it could not
    /// decrypt it.
    pub(super) fn is_awaiting_keys(&self, prefix: GuidPrefix) -> bool {
        let secured = self.secured.as_ref();
        secured.is_some_and(|secured| secured.awaiting_keys.contains_key(&prefix))
    }

    /// Whether plain announcements of a participant are ignored.
    pub(super) fn ignores_plain_announcements(&self, prefix: GuidPrefix) -> bool {
        let secured = self.secured.as_ref();
        secured.is_some_and(|own| own.ignores_plain_announcements(prefix))
    }

    /// Matches a discovered participant.
    pub(super) fn match_peer(&mut self, now: Instant, data: &ParticipantData, at: &Route) {
        let is_authenticated = self.is_authenticated(data.prefix);
        if !self.is_awaiting_keys(data.prefix) {
            self.sedp.match_peer(now, data, at, is_authenticated);
            self.wlp.match_peer(now, data, at, is_authenticated);
        }
        if self.secured.is_none() {
            self.types.requests.match_peer(now, data, at);
            self.types.replies.match_peer(now, data, at);
        }
    }

    /// Matches a participant whose endpoints a discovery server relays.
    pub(super) fn match_relayed_peer(&mut self, now: Instant, data: &ParticipantData, at: &Route) {
        self.wlp.match_peer(now, data, at, false);
        self.types.requests.match_peer(now, data, at);
        self.types.replies.match_peer(now, data, at);
    }

    /// Matches an authenticated participant that has acknowledged our keys. False if it
    /// has not, or was matched before.
    pub(super) fn match_with_keys(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        peers: &Peers,
    ) -> bool {
        let Some(secured) = &mut self.secured else {
            return false;
        };
        let keys_sent = secured.awaiting_keys.get(&prefix) == Some(&true);
        let keys = secured.key_channels.get(&prefix);
        if !keys_sent || keys.is_some_and(|keys| !keys.is_acked()) {
            return false;
        }
        secured.awaiting_keys.remove(&prefix);
        let Some(peer) = peers.find(prefix) else {
            return false;
        };
        let at = &peer.metatraffic;
        secured.announcements.match_peer(now, &peer.data, at);
        self.sedp.match_peer(now, &peer.data, at, true);
        self.wlp.match_peer(now, &peer.data, at, true);
        true
    }

    /// Unmatches a participant.
    pub(super) fn unmatch_peer(&mut self, now: Instant, prefix: GuidPrefix) {
        if let Some(servers) = &mut self.servers {
            servers.remove_peer(now, prefix);
        }
        for channel in self.sedp.channels().chain(self.wlp.channels()) {
            channel.unmatch_peer(prefix);
        }
        self.types.remove_peer(prefix);
        if let Some(secured) = &mut self.secured {
            secured.remove_peer(prefix);
        }
    }

    /// Changes the route to a participant.
    pub(super) fn reroute(&mut self, prefix: GuidPrefix, route: &Route) {
        let types = [&mut self.types.requests, &mut self.types.replies];
        let servers = self.servers.iter_mut().map(|servers| servers.topic());
        let channels = self.sedp.channels().chain(self.wlp.channels());
        for channel in channels.chain(types).chain(servers) {
            channel.reroute(prefix, route);
        }
        if let Some(secured) = &mut self.secured {
            secured.reroute(prefix, route);
        }
    }

    /// Lets the writers that are matched with a participant share its window, and its
    /// readers charge its account.
    pub(super) fn share(
        &mut self,
        prefix: GuidPrefix,
        window: &Arc<RetransmissionWindow>,
        account: &Arc<MemoryAccount>,
    ) {
        let servers = self.servers.iter_mut().map(|servers| servers.topic());
        let channels = self.sedp.channels().chain(self.wlp.channels());
        for topic in channels.chain(servers) {
            topic.share_retransmission_window(prefix, window);
            topic.limit_memory(prefix, account);
        }
        for topic in self.secure_topics_of(prefix) {
            topic.share_retransmission_window(prefix, window);
            topic.limit_memory(prefix, account);
        }
        self.types.share_retransmission_window(prefix, window);
        self.types.limit_memory(prefix, account);
    }

    /// The built-in topics of authenticated participants that a participant is matched
    /// on, without SEDP and WLP.
    fn secure_topics_of(&mut self, prefix: GuidPrefix) -> impl Iterator<Item = &mut BuiltinTopic> {
        let secured = self.secured.iter_mut();
        secured.flat_map(move |secured| {
            let keys = secured.key_channels.get_mut(&prefix);
            keys.into_iter().chain([&mut secured.announcements])
        })
    }

    /// The question whose answer shows that a discovered participant receives.
    pub(super) fn question_to(&mut self, prefix: GuidPrefix, peers: &Peers) -> Question {
        let Some(data) = peers.data(prefix) else {
            return Question::default();
        };
        self.sedp.question(data, AskedEndpoints::of(data, 0))
    }

    /// Reports the liveliness assertions of peers.
    pub(super) fn report_assertions(&mut self, events: &mut VecDeque<ParticipantEvent>) {
        while let Some((prefix, kind)) = self.wlp.poll_assertion() {
            events.push_back(ParticipantEvent::LivelinessAsserted { prefix, kind });
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        [
            self.wlp.next_timeout(),
            self.sedp.next_timeout(),
            self.wlp.next_timeout_of_channels(),
            self.secured.as_ref().and_then(|own| own.next_timeout()),
            self.servers.as_ref().and_then(|own| own.next_timeout()),
            self.types.requests.next_timeout(),
            self.types.replies.next_timeout(),
        ]
        .into_iter()
        .fold(None, earliest)
    }

    /// Names the vendor that discovery servers accept, where there are some: Fast DDS 2 looks
    /// for it in the announcement, Fast DDS 3.2 in the header.
    pub(super) fn name_vendor(&self, out: &mut Outbox) {
        if self.servers.is_some() {
            out.name_vendor(VendorId::FAST_DDS);
        }
    }

    /// Puts datagrams into `out`; true if there are more.
    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let secured = self.secured.as_mut();
        let mut more = secured.is_some_and(|own| own.poll_transmit(now, out));
        let servers = self.servers.iter_mut().map(|servers| servers.topic());
        let channels = self.sedp.channels().chain(self.wlp.channels());
        for channel in channels.chain(servers) {
            more |= channel.poll_transmit(now, out);
        }
        more |= self.types.requests.poll_transmit(now, out);
        more |= self.types.replies.poll_transmit(now, out);
        more
    }
}
