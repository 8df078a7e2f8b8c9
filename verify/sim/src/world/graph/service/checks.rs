//! I13 checks of service calls in an idle graph, and for late clients.

use std::collections::BTreeSet;

use pteros_rtps::id::Guid;

use super::records::{
    CallKey, CallOutcome, CallRecord, ClientEnd, ClientRecord, SERVICES, ServerEnd, ServerRecord,
    ServiceEndKind, Services,
};
use crate::world::graph::world::GraphWorld;

const MILLI: u64 = 1_000_000;

/// Milliseconds until a new client is matched with its servers.
const MEETING_MILLIS: u64 = 3_000;

/// Milliseconds until its first reply. Longer than any reply delay and any
/// retransmission.
const FIRST_REPLY_MILLIS: u64 = 5_000;

/// Chance in 1/10000 of loss meanwhile, so that the discovery data of the client
/// arrives in any order.
const FIRST_REPLY_LOSS: u32 = 3_000;

impl Services {
    /// A call that was reported as abandoned has indeed lost its servers.
    pub(super) fn check_abandoned_call(&mut self, client: usize, key: CallKey) -> Option<String> {
        let Some(call) = self.clients[client].open.remove(&key) else {
            return Some(format!(
                "I13 c{client}: the end of {key:?}, which is not open"
            ));
        };
        self.calls[call].outcome = Some(CallOutcome::ServerGone);
        let request = self.calls[call].servers.iter();
        let mut living = request.filter_map(|guid| Some((*guid, self.living_server(*guid)?)));
        let requests = self.clients[client].end.requests().guid();
        living
            .find(|(guid, _)| !self.lost_matches.contains(&(requests, *guid)))
            .map(|(guid, _)| {
                format!(
                    "I13 c{client}: call {call} lost its servers, but the match with {guid} lasts"
                )
            })
    }

    /// The engine's count of open calls is correct.
    pub(super) fn check_open_count(&self, client: usize) -> Option<String> {
        let record = &self.clients[client];
        let ClientEnd::Engine(end) = &*record.end else {
            return None;
        };
        let (reported, open) = (end.open_count(), record.open.len());
        (reported != open)
            .then(|| format!("I13 c{client}: {open} calls are open, reported {reported}"))
    }

    fn living_server(&self, listener: Guid) -> Option<&ServerRecord> {
        let server = self.by_guid.get(&listener)?;
        self.servers.get(*server).filter(|server| !server.base.gone)
    }

    /// Whether a match between a client and a server has ended, so messages may be
    /// lost.
    fn lost_match_with(&self, client: &ClientRecord, server: &ServerRecord) -> bool {
        let pairs = [
            (
                client.end.requests().guid(),
                server.end.requests().data.guid,
            ),
            (client.end.replies().data.guid, server.end.replies().guid()),
        ];
        let is_broken = |pair: &(Guid, Guid)| {
            let (one, other) = *pair;
            self.lost_matches.contains(&(one, other)) || self.lost_matches.contains(&(other, one))
        };
        pairs.iter().any(is_broken)
    }

    /// Whether a server has dropped as many replies as its answered calls are open. Its
    /// clients' readers were discovered after more replies than it keeps (seed 9101000048).
    fn has_dropped_replies(&self, server: &ServerRecord) -> bool {
        let ServerEnd::Engine(end) = &*server.end else {
            return false;
        };
        let is_open = |call: &&usize| {
            let call = &self.calls[**call];
            call.outcome.is_none() && !self.clients[call.client].base.gone
        };
        let open = server.answered.iter().filter(is_open).count();
        u64::try_from(open).is_ok_and(|open| open <= end.counts().unanswerable)
    }

    /// Whether a call may still be open.
    fn may_stay_open(&self, client: &ClientRecord, number: usize, call: &CallRecord) -> bool {
        let is_cyclone = matches!(*client.end, ClientEnd::Cyclone(_));
        let mut any = false;
        for guid in &call.servers {
            if !self.by_guid.contains_key(guid) {
                // The attacker need not reply.
                return true;
            }
            let Some(server) = self.living_server(*guid) else {
                continue;
            };
            any = true;
            let keeps_all = client.base.keeps_all && server.base.keeps_all;
            // A reader gets only new samples of a foreign writer after the match.
            let is_strict = keeps_all && (!is_cyclone || server.taken.contains(&number));
            // A foreign server keeps no reply for a reader that it has not
            // discovered.
            let is_sent =
                matches!(*server.end, ServerEnd::Cyclone(_)) && server.answered.contains(&number);
            let is_dropped = server.answered.contains(&number) && self.has_dropped_replies(server);
            let is_ignored = is_sent || is_dropped || server.ignored.contains(&number);
            if !is_strict || self.lost_match_with(client, server) || is_ignored {
                return true;
            }
        }
        // A Cyclone DDS client gets no notification when its servers are gone.
        !any && is_cyclone
    }
}

impl GraphWorld {
    /// I13: checks all calls, and the number of servers of each client.
    pub fn check_services(&self) -> Vec<String> {
        let services = self.services.lock();
        let mut wrong = Vec::new();
        let knows_attacker = !self.model.lock().attackers.is_empty();
        for (c, client) in services
            .clients
            .iter()
            .enumerate()
            .filter(|(_, c)| !c.base.gone)
        {
            for call in client.open.values() {
                let record = &services.calls[*call];
                if !services.may_stay_open(client, *call, record) {
                    wrong.push(format!(
                        "I13 c{c}: call {call} to {:?} was not answered and has not ended",
                        record.servers
                    ));
                }
            }
            let living = services.servers.iter().filter(|s| !s.base.gone);
            let serving = living
                .filter(|s| s.base.service == client.base.service)
                .count();
            let core = self.sim.core(client.base.location.process);
            let reported = core.map_or(0, |core| client.end.server_count(&core));
            // A process may have two servers, of which a foreign client counts one.
            let counts = matches!(*client.end, ClientEnd::Engine(_)) && !knows_attacker;
            if reported != serving && counts {
                wrong.push(format!("I13 c{c}: {serving} servers, reported {reported}"));
            }
        }
        wrong
    }

    /// I13: a new client that calls as soon as it has a server gets its first
    /// reply, even if the server has not discovered the client yet.
    pub fn check_first_replies(&self) -> Vec<String> {
        let is_unreliable = {
            let model = self.model.lock();
            model.lenient || model.guid_reused || !model.attackers.is_empty()
        };
        if !self.plan.services || is_unreliable {
            return Vec::new();
        }
        for link in self.sim.network().links_mut() {
            link.loss = FIRST_REPLY_LOSS;
        }
        let processes = 0..self.plan.hosts.len();
        let living: Vec<usize> = processes.filter(|p| self.sim.core(*p).is_some()).collect();
        let mut called = Vec::new();
        let pairs = living.iter().flat_map(|p| (0..SERVICES).map(|s| (*p, s)));
        for (process, service) in pairs {
            let is_served = {
                let services = self.services.lock();
                let mut servers = services.servers.iter().filter(|s| !s.base.gone);
                servers.any(|s| s.base.service == service && matches!(*s.end, ServerEnd::Engine(_)))
            };
            if !is_served {
                continue;
            }
            let Some(client) = self.add_end(process, ServiceEndKind::Client, service, true) else {
                continue;
            };
            let mut call = None;
            for _ in 0..MEETING_MILLIS * 10 {
                if self.has_servers(client) {
                    call = self.call(client, true);
                    break;
                }
                self.sim.run_until(self.sim.now() + MILLI / 10);
            }
            match call {
                Some(call) => called.push((client, call)),
                None => self.fail(format!("I13 c{client} at p{process} never met its server")),
            }
        }
        self.sim
            .run_until(self.sim.now() + FIRST_REPLY_MILLIS * MILLI);
        let services = self.services.lock();
        let unanswered = called
            .iter()
            .filter(|(_, call)| services.calls[*call].outcome != Some(CallOutcome::Answered));
        let unanswered: BTreeSet<_> = unanswered.collect();
        let wrong = (!unanswered.is_empty()).then(|| {
            format!("I13 new clients and their first calls without reply: {unanswered:?}")
        });
        wrong.into_iter().collect()
    }

    fn has_servers(&self, client: usize) -> bool {
        let services = self.services.lock();
        let record = &services.clients[client];
        let core = self.sim.core(record.base.location.process);
        core.is_some_and(|core| record.end.server_count(&core) > 0)
    }

    /// Number of calls made and of calls answered.
    pub fn call_counts(&self) -> (u64, u64) {
        let services = self.services.lock();
        (services.calls.len() as u64, services.answered)
    }
}
