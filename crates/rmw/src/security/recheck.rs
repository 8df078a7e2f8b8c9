//! What held when a peer was let in need not hold for good: certificates and
//! permissions end, are taken back, or others take their place. Looked at every
//! five seconds, and when the first of them ends.
//!
//! DDS Security 1.1 has no word for permissions that have changed. Who has others
//! takes leave of its peers and meets them anew, with a handshake that has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::matching::{self, Verdict};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::time::{Duration, Instant};
use pteros_security::certificate::Certificate;
use pteros_security::date::UnixTime;
use pteros_security::identity::Authority;
use pteros_security::permissions::access::Access;

use super::opening::{may_be, unix};
use super::permits::judge;
use super::{Security, State};
use crate::core::{Core, GOODBYE_WAIT};
use crate::room::Patience;

/// How long something may hold on that was taken back.
const PERIOD: Duration = Duration::from_secs(5);

impl Core {
    /// Takes up what our files say now, and expels those who may be here no longer;
    /// all, where it is we who may not. True if we may do other things now.
    pub(super) fn recheck(&self, now: Instant, security: &Security, state: &mut State) -> bool {
        if now < state.next_check {
            return false;
        }
        state.next_check = now + PERIOD;
        let wall = unix(self.env.wall());
        let others = state.watch.has_changed() && self.read_again(now, wall, security, state);
        let access = security.access();
        let enclave = &state.handshakes.own().enclave;
        let authority = &enclave.identity_authority;
        let own = still_holds(authority, &enclave.identity.chain, &access, wall)
            .and_then(|()| may_be(&access, wall));
        let mut over = Vec::new();
        for (prefix, peer) in &state.peers {
            let theirs = || still_holds(authority, &peer.chain, &peer.access, wall);
            if let Err(why) = own.clone().and_then(|()| theirs()) {
                over.push((*prefix, why));
            }
        }
        if let Some(end) = state.first_end(&access, wall) {
            let seconds = end.0.saturating_sub(wall.0).saturating_add(1);
            let soon = now + Duration::from_secs(seconds.max(0));
            state.next_check = state.next_check.min(soon);
        }
        if let Err(why) = own {
            state.tell_of_ourselves(why);
        }
        for (prefix, why) in over {
            state.expel(prefix, why);
            security.shield.forget(prefix);
            self.participant.lock().expel(prefix);
        }
        others
    }

    /// Reads our files again, since they have changed. True if others are to know
    /// us by what they say now.
    fn read_again(
        &self,
        now: Instant,
        wall: UnixTime,
        security: &Security,
        state: &mut State,
    ) -> bool {
        let renewal = match state.handshakes.renew(wall) {
            Ok(renewal) => renewal,
            Err(faults) => {
                for fault in faults {
                    tracing::warn!("a changed file is not taken up: {fault}");
                }
                // Of several files the list may be whole; else it was told just now.
                let _ = state.handshakes.renew_revocations();
                return false;
            }
        };
        for fault in &renewal.kept {
            tracing::warn!("a changed file is not taken up: {fault}");
        }
        let access = state
            .handshakes
            .own()
            .enclave
            .access(self.options.domain_id);
        let Ok(access) = access.map_err(|fault| state.tell_of_ourselves(fault.to_string())) else {
            return false;
        };
        let access = Arc::new(access);
        *security.access.write() = access;
        if renewal.is_news {
            tracing::info!("certificate or permissions have changed; peers are met anew with them");
            self.part_with_all(now, security, state);
        }
        renewal.is_news
    }

    /// Ends what there is with those who are in.
    fn part_with_all(&self, now: Instant, security: &Security, state: &mut State) {
        let all: Vec<GuidPrefix> = state.peers.keys().copied().collect();
        for prefix in all {
            self.keep_last_word(security, state, prefix);
        }
        let mut outbox = Outbox::new();
        self.participant.lock().take_leave(now, &mut outbox);
        self.send(&outbox, 0, &Patience::of(GOODBYE_WAIT));
        for prefix in self.participant.lock().begin_anew(now) {
            security.shield.forget(prefix);
            state.peers.remove(&prefix);
            state.handshakes.forget(prefix);
        }
        state.told.clear();
    }

    /// Judges our own endpoints anew. Those that are allowed no longer lose their
    /// matches, within the process too, and those that are again get them.
    pub(super) fn rejudge_own(&self, now: Instant, security: &Security) {
        let order = self.match_order.lock();
        let (writers, readers): (Vec<_>, Vec<_>) = {
            let table = self.table.read();
            let writers = table.writers.values().cloned().collect();
            (writers, table.readers.values().cloned().collect())
        };
        let (access, wall) = (security.access(), unix(self.env.wall()));
        let all = writers.iter().map(|writer| writer.announced());
        let all = all.chain(readers.iter().map(|reader| reader.announced()));
        let all: Vec<_> = all.collect();
        let mut barred = BTreeMap::new();
        for own in &all {
            let verdict = judge(&access, own, wall);
            if !verdict.allowed {
                let (topic, why) = (&own.topic, verdict.to_string());
                tracing::warn!(own = %own.guid, "topic \"{topic}\": has no matches any longer, {why}");
                barred.insert(own.guid, why);
            }
        }
        let before = std::mem::replace(&mut security.state.lock().barred, barred.clone());
        let was = |guid: Guid| before.contains_key(&guid);
        let is = |guid: Guid| barred.contains_key(&guid);
        for own in all {
            match (was(own.guid), barred.get(&own.guid)) {
                (false, Some(why)) => self.end_matches(now, security, own.guid, why),
                (true, None) => {
                    // Whoever knows it still hears of it as of a new one.
                    let mut participant = self.participant.lock();
                    participant.remove_endpoint(now, own.guid);
                    match own.is_writer() {
                        true => participant.add_writer(now, own),
                        false => participant.add_reader(now, own),
                    }
                }
                _ => {}
            }
        }
        for writer in &writers {
            for reader in readers.iter().filter(|reader| writer.may_meet(reader)) {
                let pair = [writer.guid(), reader.data.guid];
                let verdict = matching::judge(&writer.announced(), &reader.announced());
                match (pair.into_iter().any(was), pair.into_iter().any(is)) {
                    (false, true) if verdict == Verdict::Matched => self.part(now, writer, reader),
                    (true, false) => self.carry_out(now, writer, reader, verdict),
                    _ => {}
                }
            }
        }
        drop(order);
        self.note_progress();
    }

    /// Ends the matches that an endpoint of ours has with those who are still in.
    /// It stays announced, so that they can tell why, too.
    fn end_matches(&self, now: Instant, security: &Security, own: Guid, why: &str) {
        let matched: Vec<Guid> = {
            let participant = self.participant.lock();
            let verdicts = participant.verdicts(own);
            let matched = verdicts.filter(|(_, verdict)| **verdict == Verdict::Matched);
            matched.map(|(remote, _)| remote).collect()
        };
        for remote in matched {
            if self.was_open(own, remote) {
                self.apply_unmatch(now, own, remote);
            }
            let why = format!("{why} (permissions of this context)");
            security.state.lock().deny((own, remote), why);
        }
    }
}

impl State {
    /// When the first certificate or grant ends that holds now.
    fn first_end(&self, access: &Access, wall: UnixTime) -> Option<UnixTime> {
        let own = &self.handshakes.own().enclave.identity.chain;
        let peers = self.peers.values();
        let peers = peers.map(|peer| (peer.chain.as_slice(), &peer.access));
        let all = peers.chain([(own.as_slice(), access)]);
        let ends = all.flat_map(|(chain, access)| {
            let chain = chain.iter().map(|one| one.validity().not_after);
            chain.chain([access.expires()])
        });
        ends.filter(|end| *end >= wall).min()
    }

    fn expel(&mut self, prefix: GuidPrefix, why: String) {
        self.peers.remove(&prefix);
        self.handshakes.forget(prefix);
        self.tell(prefix, why);
    }

    fn tell_of_ourselves(&mut self, why: String) {
        let own = self.handshakes.own().prefix;
        if self.told.get(&own) != Some(&why) {
            tracing::error!("this context: {why}");
            self.told.insert(own, why);
        }
    }
}

fn still_holds(
    authority: &Authority,
    chain: &[Certificate],
    access: &Access,
    wall: UnixTime,
) -> Result<(), String> {
    authority
        .admit(chain, wall)
        .map_err(|refusal| refusal.to_string())?;
    let end = access.expires();
    match wall <= end {
        true => Ok(()),
        false => Err(format!("its permissions expired at {end}")),
    }
}
