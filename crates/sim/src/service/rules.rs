//! I13 when all is at rest, and for clients that come late.

use std::collections::BTreeSet;

use pteros_rtps::id::Guid;

use super::{
    Asker, CallRole, ClientRole, Ending, Key, Kind, Replier, SERVICES, ServerRole, Services,
};
use crate::world::World;

const MILLI: u64 = 1_000_000;

/// Milliseconds in which a new client knows its servers.
const MEETING_MILLIS: u64 = 3_000;

/// Milliseconds in which it has its first reply: no server thinks so long, nor
/// takes repair so long.
const FIRST_REPLY_MILLIS: u64 = 5_000;

/// Chance in 1/10000 that a datagram is lost meanwhile, so that what tells of the
/// client comes in any order.
const FIRST_REPLY_LOSS: u32 = 3_000;

impl Services {
    /// A call is said to have lost its servers: so it has.
    pub(super) fn judge_abandoned(&mut self, client: usize, key: Key) -> Option<String> {
        let Some(call) = self.clients[client].open.remove(&key) else {
            return Some(format!(
                "I13 c{client}: the end of {key:?}, which is not open"
            ));
        };
        self.calls[call].ending = Some(Ending::ServerGone);
        let asked = self.calls[call].asked.iter();
        let mut living = asked.filter_map(|guid| Some((*guid, self.living(*guid)?)));
        let requests = self.clients[client].asker.requests().guid();
        living
            .find(|(guid, _)| !self.breaks.contains(&(requests, *guid)))
            .map(|(guid, _)| {
                format!("I13 c{client}: call {call} lost its servers, but {guid} was never lost")
            })
    }

    /// The engine knows of as many open calls as there are.
    pub(super) fn judge_open(&self, client: usize) -> Option<String> {
        let role = &self.clients[client];
        let Asker::Engine(asker) = &*role.asker else {
            return None;
        };
        let (told, open) = (asker.open_count(), role.open.len());
        (told != open).then(|| format!("I13 c{client}: {open} calls are open, told {told}"))
    }

    fn living(&self, listener: Guid) -> Option<&ServerRole> {
        let server = self.by_guid.get(&listener)?;
        self.servers.get(*server).filter(|server| !server.gone)
    }

    /// Whether what a client and a server told each other may be lost.
    fn is_parted(&self, client: &ClientRole, server: &ServerRole) -> bool {
        let pairs = [
            (
                client.asker.requests().guid(),
                server.replier.requests().data.guid,
            ),
            (
                client.asker.replies().data.guid,
                server.replier.replies().guid(),
            ),
        ];
        let is_broken = |pair: &(Guid, Guid)| {
            let (one, other) = *pair;
            self.breaks.contains(&(one, other)) || self.breaks.contains(&(other, one))
        };
        pairs.iter().any(is_broken)
    }

    /// Why a call may have no end yet.
    fn may_wait(&self, client: &ClientRole, number: usize, call: &CallRole) -> bool {
        let is_headed = matches!(*client.asker, Asker::Headed(_));
        let mut any = false;
        for guid in &call.asked {
            if !self.by_guid.contains_key(guid) {
                // A stranger, who need not answer.
                return true;
            }
            let Some(server) = self.living(*guid) else {
                continue;
            };
            any = true;
            let keeps_all = client.keeps_all && server.keeps_all;
            // Of a foreign writer a reader hears what is new when they meet.
            let is_strict = keeps_all && (!is_headed || server.taken.contains(&number));
            // A foreign server keeps no reply for a reader that it has not met.
            let is_sent =
                matches!(*server.replier, Replier::Headed(_)) && server.answered.contains(&number);
            let is_ignored = is_sent || server.ignored.contains(&number);
            if !is_strict || self.is_parted(client, server) || is_ignored {
                return true;
            }
        }
        // Who speaks Cyclone's dialect is not told that its servers are gone.
        !any && is_headed
    }
}

impl World {
    /// I13 of all calls, and who serves whom.
    pub(crate) fn check_services(&self) {
        if self.has_failed() || !self.plan.services {
            return;
        }
        let services = self.services.lock();
        let mut wrong = Vec::new();
        let is_haunted = !self.cast.lock().strangers.is_empty();
        for (c, client) in services.clients.iter().enumerate().filter(|(_, c)| !c.gone) {
            for call in client.open.values() {
                let role = &services.calls[*call];
                if !services.may_wait(client, *call, role) {
                    wrong.push(format!(
                        "I13 c{c}: call {call} to {:?} was not answered and has not ended",
                        role.asked
                    ));
                }
            }
            let living = services.servers.iter().filter(|s| !s.gone);
            let serving = living.filter(|s| s.service == client.service).count();
            let core = self.core(client.home.place);
            let told = core.map_or(0, |core| client.asker.server_count(&core));
            // One process may have two, of which a foreign client counts one.
            let counts = matches!(*client.asker, Asker::Engine(_)) && !is_haunted;
            if told != serving && counts {
                wrong.push(format!("I13 c{c}: {serving} servers, told {told}"));
            }
        }
        drop(services);
        let mut cast = self.cast.lock();
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }

    /// I13: a client that comes now and calls as soon as there is a server gets
    /// its first reply, though the server may not know it yet.
    pub(crate) fn check_first_replies(&self) {
        let is_blurred = {
            let cast = self.cast.lock();
            cast.lenient || cast.blurred || !cast.strangers.is_empty()
        };
        if self.has_failed() || !self.plan.services || is_blurred {
            return;
        }
        for link in self.network().links_mut() {
            link.loss = FIRST_REPLY_LOSS;
        }
        let places = 0..self.plan.hosts.len();
        let living: Vec<usize> = places.filter(|p| self.core(*p).is_some()).collect();
        let mut called = Vec::new();
        let pairs = living.iter().flat_map(|p| (0..SERVICES).map(|s| (*p, s)));
        for (place, service) in pairs {
            let is_served = {
                let services = self.services.lock();
                let mut servers = services.servers.iter().filter(|s| !s.gone);
                servers.any(|s| s.service == service && matches!(*s.replier, Replier::Engine(_)))
            };
            if !is_served {
                continue;
            }
            let Some(client) = self.add_end(place, Kind::Client, service, true) else {
                continue;
            };
            let mut call = None;
            for _ in 0..MEETING_MILLIS * 10 {
                if self.has_servers(client) {
                    call = self.call(client, true);
                    break;
                }
                self.run_until(self.now() + MILLI / 10);
            }
            match call {
                Some(call) => called.push((client, call)),
                None => self.fail(format!("I13 c{client} at p{place} never met its server")),
            }
        }
        self.run_until(self.now() + FIRST_REPLY_MILLIS * MILLI);
        let services = self.services.lock();
        let unanswered = called
            .iter()
            .filter(|(_, call)| services.calls[*call].ending != Some(Ending::Answered));
        let unanswered: BTreeSet<_> = unanswered.collect();
        let wrong = (!unanswered.is_empty()).then(|| {
            format!("I13 new clients and their first calls without reply: {unanswered:?}")
        });
        drop(services);
        let mut cast = self.cast.lock();
        cast.fail_all(wrong);
        self.note_failure(&cast);
    }

    fn has_servers(&self, client: usize) -> bool {
        let services = self.services.lock();
        let role = &services.clients[client];
        let core = self.core(role.home.place);
        core.is_some_and(|core| role.asker.server_count(&core) > 0)
    }

    /// Calls made, and answered.
    pub(crate) fn call_counts(&self) -> (u64, u64) {
        let services = self.services.lock();
        (services.calls.len() as u64, services.answered)
    }
}
