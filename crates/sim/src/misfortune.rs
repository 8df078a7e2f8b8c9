//! What happens to links while a run is disturbed: cuts in single directions
//! or of whole places, clogs, narrow links, full sockets; and what a stranger
//! sends.

use bytes::Bytes;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::Locator;

use crate::plan::Fault;
use crate::script::Step;
use crate::world::World;

const MILLI: u64 = 1_000_000;

/// An address where nobody is, to which an attacker redirects answers.
pub(crate) const VICTIM: [u8; 4] = [10, 0, 0, 77];

/// Where the attacker is.
const ATTACKER: [u8; 4] = [10, 0, 0, 66];

/// GUID prefixes that the attacker speaks for.
const GHOSTS: u8 = 3;

impl World {
    /// Changes one thing about the links, and plans the next change.
    pub(crate) fn disturb(&self) {
        let now = self.now();
        let places = self.plan.hosts.len();
        let mut script = self.script.lock();
        let next = now + script.around(700 * MILLI);
        script.plan(next, Step::Disturb);
        let from = script.random.usize(0..places);
        let to = script.random.usize(0..places);
        let whole = script.random.u8(0..3) == 0;
        let heals = script.random.u8(0..5) < 2;
        let clog = script.around(1_500 * MILLI);
        let mtu = script.random.usize(600..20_000);
        let full = script.random.u32(0..2_000);
        let kinds = [Fault::Cut, Fault::Clog, Fault::Mtu, Fault::Full];
        let kind = kinds[script.random.usize(0..kinds.len())];
        drop(script);
        if !self.plan.has(kind) {
            return;
        }
        let base = self.plan.link;
        let mut network = self.network();
        if kind == Fault::Full {
            network.full = if heals { 0 } else { full };
            return;
        }
        for other in 0..places {
            let both = [(from, other), (other, from)];
            let pairs: &[(usize, usize)] = match whole {
                true => &both,
                false if other == to => &both[..1],
                false => &[],
            };
            for (a, b) in pairs.iter().copied().filter(|(a, b)| a != b) {
                let link = network.link_mut(a, b);
                match kind {
                    Fault::Cut => link.cut = !heals,
                    Fault::Clog => link.clogged_until = now + clog,
                    _ => link.mtu = if heals { base.mtu } else { mtu },
                }
            }
        }
        drop(network);
        self.say(format_args!(
            "{kind:?} p{from} -> p{to}, whole {whole}, heals {heals}"
        ));
    }

    /// Cuts one direction for longer than the lease, and plans the next.
    pub(crate) fn deafen(&self, place: usize) {
        let places = self.plan.hosts.len();
        let lease = u64::try_from(self.plan.lease.as_nanos()).unwrap_or(u64::MAX);
        let mut script = self.script.lock();
        let from = script.random.usize(0..places);
        let end = self.now() + lease + script.around(1_000 * MILLI);
        script.plan(end, Step::Hear(from, place));
        let next = end + script.around(2_000 * MILLI);
        script.plan(next, Step::Deafen(place));
        drop(script);
        if from != place {
            self.network().link_mut(from, place).cut = true;
        }
    }

    /// Sends something hostile, and plans the next.
    pub(crate) fn attack(&self) {
        let now = self.now();
        let prefixes: Vec<Option<GuidPrefix>> = {
            let places = self.places();
            let prefix = |place: &crate::world::Place| Some(place.life.as_ref()?.core.prefix());
            places.iter().map(prefix).collect()
        };
        let mut script = self.script.lock();
        let next = now + script.around(self.plan.attack_pause);
        script.plan(next, Step::Attack);
        let random = &mut script.random;
        let mut network = self.network();
        let open: Vec<usize> = (0..network.sockets.len())
            .filter(|n| network.sockets[*n].open)
            .collect();
        if open.is_empty() {
            return;
        }
        let to = open[random.usize(0..open.len())];
        let ghost = ghost(random.u8(0..GHOSTS));
        let overheard = network.overheard.len();
        let mut bytes = match random.u8(0..8) {
            0 => (0..random.usize(0..200)).map(|_| random.u8(..)).collect(),
            _ if overheard == 0 => Vec::new(),
            _ => network.overheard[random.usize(0..overheard)].to_vec(),
        };
        let original = bytes.get(8..20).map(<[u8]>::to_vec);
        if let Some(original) = original {
            replace(&mut bytes, &original, &ghost.0);
        }
        if self.plan.has(Fault::Insider) {
            // The answers come to the attacker, who may then be met.
            for host in 1..=9 {
                replace(&mut bytes, &[10, 0, 0, host], &ATTACKER);
            }
            let own = prefixes.get(network.sockets[to].place).copied().flatten();
            address(&mut bytes, own);
        } else if random.bool() {
            // The answers shall go to a victim.
            for host in 1..=9 {
                replace(&mut bytes, &[10, 0, 0, host], &VICTIM);
            }
        }
        if random.bool() && bytes.len() > 24 {
            for _ in 0..random.usize(1..8) {
                let at = random.usize(20..bytes.len());
                bytes[at] = match random.u8(0..4) {
                    0 => 0xff,
                    1 => 0x7f,
                    2 => 0,
                    _ => random.u8(..),
                };
            }
        }
        let from = Locator::udp_v4(ATTACKER, random.u16(1..));
        network.inject(now, from, to, Bytes::from(bytes));
        drop(network);
        drop(script);
        let mut cast = self.cast.lock();
        if cast.strangers.is_empty() {
            cast.strangers = (0..GHOSTS).map(self::ghost).collect();
        }
    }
}

fn ghost(number: u8) -> GuidPrefix {
    GuidPrefix([0x01, 0x50, 0xee, 0xee, 0xee, 0xee, 0, 0, 0, 0, 0, number])
}

/// Makes an INFO_DST at the beginning name `own`.
fn address(bytes: &mut [u8], own: Option<GuidPrefix>) {
    if let Some(own) = own
        && bytes.get(20) == Some(&0x0e)
        && let Some(place) = bytes.get_mut(24..36)
    {
        place.copy_from_slice(&own.0);
    }
}

/// Replaces every occurrence of `old` by `new`, which is as long.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
    let mut at = 0;
    while at + old.len() <= bytes.len() {
        if &bytes[at..at + old.len()] == old {
            bytes[at..at + old.len()].copy_from_slice(new);
            at += old.len();
        } else {
            at += 1;
        }
    }
}
