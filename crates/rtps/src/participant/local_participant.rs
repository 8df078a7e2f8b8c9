//! The local participant: what it is configured to be, its own endpoints and built-in
//! topics, and what it reports.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::discovery::data::EndpointData;
use crate::time::Instant;

use super::builtin_topics::BuiltinTopics;
use super::config::{ParticipantConfig, ParticipantStats};
use super::endpoints::{Endpoints, MatchReport};
use super::event::ParticipantEvent;
use super::path_evidence::Paths;
use super::peer::Peers;
use super::same_host_announcement::Announcement;
use super::spdp_writer::SpdpWriter;

/// Our side of discovery.
pub(super) struct LocalParticipant {
    pub(super) config: ParticipantConfig,
    pub(super) spdp: SpdpWriter,
    pub(super) builtin: BuiltinTopics,
    pub(super) endpoints: Endpoints,
    pub(super) events: VecDeque<ParticipantEvent>,
    pub(super) stats: ParticipantStats,
    /// The last `now` passed in.
    pub(super) clock: Instant,
}

impl LocalParticipant {
    pub(super) fn new(now: Instant, config: ParticipantConfig) -> Self {
        let spdp = SpdpWriter::new(now, &config);
        Self {
            builtin: BuiltinTopics::new(now, &config, &spdp.data),
            spdp,
            endpoints: Endpoints::default(),
            events: VecDeque::new(),
            stats: ParticipantStats::default(),
            clock: now,
            config,
        }
    }

    /// Adds and announces an endpoint, and matches it.
    pub(super) fn add_endpoint(
        &mut self,
        now: Instant,
        data: Arc<EndpointData>,
        peers: &Peers,
        paths: &mut Paths,
    ) {
        debug_assert_eq!(data.guid.prefix, self.config.prefix);
        let old = self.endpoints.locals.insert(data.clone());
        if old.is_some_and(|old| old.topic != data.topic) {
            self.endpoints.unmatch_local(data.guid, &mut self.events);
        }
        self.builtin.sedp.publish(now, &data);
        if self.config.is_announced_on_host(&data) {
            self.spdp
                .on_host
                .push(|| Announcement::Endpoint(data.encode()));
        }
        let shortest = self.endpoints.shortest_automatic_lease();
        self.builtin.wlp.set_automatic_lease(now, shortest);
        let mut report = MatchReport {
            peers,
            network: &self.config.network,
            paths,
            events: &mut self.events,
        };
        self.endpoints.match_local(&data, &mut report);
    }
}
