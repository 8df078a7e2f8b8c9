//! What held when a peer was let in need not hold for good: certificates and
//! permissions end, and are taken back. Looked at every five seconds, and when
//! the first of them ends.

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::time::{Duration, Instant};
use pteros_security::certificate::Certificate;
use pteros_security::date::UnixTime;
use pteros_security::identity::Authority;
use pteros_security::permissions::access::Access;

use super::opening::unix;
use super::{Security, State};
use crate::core::Core;

/// How long something may hold on that was taken back.
const PERIOD: Duration = Duration::from_secs(5);

impl Core {
    /// Expels those who may be here no longer; all, where it is we who may not.
    pub(super) fn recheck(&self, now: Instant, security: &Security, state: &mut State) {
        if now < state.next_check {
            return;
        }
        state.next_check = now + PERIOD;
        let wall = unix(self.env.wall());
        if let Err(fault) = state.handshakes.renew_revocations() {
            // The list that was read before holds.
            state.tell_of_ourselves(fault.to_string());
        }
        let enclave = &state.handshakes.own().enclave;
        let authority = &enclave.identity_authority;
        let own = &enclave.identity.chain;
        let own = still_holds(authority, own, &security.access, wall);
        let mut over = Vec::new();
        for (prefix, peer) in &state.peers {
            let theirs = || still_holds(authority, &peer.chain, &peer.access, wall);
            if let Err(why) = own.clone().and_then(|()| theirs()) {
                over.push((*prefix, why));
            }
        }
        if let Some(end) = state.first_end(security, wall) {
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
    }
}

impl State {
    /// When the first certificate or grant ends that holds now.
    fn first_end(&self, security: &Security, wall: UnixTime) -> Option<UnixTime> {
        let own = &self.handshakes.own().enclave.identity.chain;
        let peers = self.peers.values();
        let peers = peers.map(|peer| (peer.chain.as_slice(), &peer.access));
        let all = peers.chain([(own.as_slice(), &security.access)]);
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
