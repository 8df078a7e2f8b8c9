//! Fault injection: network faults and the attacker.
//!
//! Network faults are cuts of single directions or of whole processes, stalls,
//! small MTUs and full sockets. The attacker sends garbage, and modified copies of
//! real datagrams with spoofed GUID prefixes.

use bytes::Bytes;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::Locator;

use super::schedule::SimEvent;
use super::world::GraphWorld;
use crate::harness::options::Fault;
use crate::simulation::process::SimProcess;

const MILLI: u64 = 1_000_000;

/// Address of a victim, to which the attacker redirects replies.
pub const VICTIM: [u8; 4] = [10, 0, 0, 77];

/// Address of the attacker.
pub const ATTACKER: [u8; 4] = [10, 0, 0, 66];

/// Number of GUID prefixes that the attacker spoofs.
const SPOOFED_PREFIXES: u8 = 3;

impl GraphWorld {
    /// Changes one network fault, and schedules the next change.
    pub fn change_network_fault(&self) {
        let now = self.sim.now();
        let processes = self.plan.hosts.len();
        let mut schedule = self.schedule.lock();
        let next = now + schedule.around(700 * MILLI);
        schedule.add(next, SimEvent::ChangeNetworkFault);
        let from = schedule.random.usize(0..processes);
        let to = schedule.random.usize(0..processes);
        let whole = schedule.random.u8(0..3) == 0;
        let heals = schedule.random.u8(0..5) < 2;
        let stall = schedule.around(1_500 * MILLI);
        let mtu = schedule.random.usize(600..20_000);
        let full = schedule.random.u32(0..2_000);
        let kinds = [Fault::Cut, Fault::Stall, Fault::Mtu, Fault::SocketFull];
        let kind = kinds[schedule.random.usize(0..kinds.len())];
        drop(schedule);
        if !self.plan.has(kind) {
            return;
        }
        let base = self.plan.link;
        let mut network = self.sim.network();
        if kind == Fault::SocketFull {
            network.send_full_rate = if heals { 0 } else { full };
            return;
        }
        for other in 0..processes {
            let both = [(from, other), (other, from)];
            let pairs: &[(usize, usize)] = if whole {
                &both
            } else if other == to {
                &both[..1]
            } else {
                &[]
            };
            for (a, b) in pairs.iter().copied().filter(|(a, b)| a != b) {
                let link = network.link_mut(a, b);
                match kind {
                    Fault::Cut => link.cut = !heals,
                    Fault::Stall => link.stalled_until = now + stall,
                    _ => link.mtu = if heals { base.mtu } else { mtu },
                }
            }
        }
        drop(network);
        self.sim.trace_line(format_args!(
            "{kind:?} p{from} -> p{to}, whole process {whole}, heals {heals}"
        ));
    }

    /// Cuts one direction for longer than the lease, and schedules the next outage.
    pub fn start_one_way_outage(&self, process: usize) {
        let processes = self.plan.hosts.len();
        let lease = self.plan.lease_nanos();
        let mut schedule = self.schedule.lock();
        let from = schedule.random.usize(0..processes);
        let end = self.sim.now() + lease + schedule.around(1_000 * MILLI);
        schedule.add(end, SimEvent::EndOneWayOutage(from, process));
        let next = end + schedule.around(2_000 * MILLI);
        schedule.add(next, SimEvent::StartOneWayOutage(process));
        drop(schedule);
        if from != process {
            self.sim.network().link_mut(from, process).cut = true;
        }
    }

    /// Sends a hostile datagram, and schedules the next.
    pub fn attack(&self) {
        let now = self.sim.now();
        let prefixes: Vec<Option<GuidPrefix>> = {
            let processes = self.sim.processes();
            let prefix = |process: &SimProcess| Some(process.running.as_ref()?.core.prefix());
            processes.iter().map(prefix).collect()
        };
        let mut schedule = self.schedule.lock();
        let next = now + schedule.around(self.plan.attack_pause);
        schedule.add(next, SimEvent::Attack);
        let random = &mut schedule.random;
        let mut network = self.sim.network();
        let open: Vec<usize> = (0..network.sockets.len())
            .filter(|n| network.sockets[*n].open)
            .collect();
        if open.is_empty() {
            return;
        }
        let to = open[random.usize(0..open.len())];
        let spoofed_prefix = spoofed_prefix(random.u8(0..SPOOFED_PREFIXES));
        let captured = network.captured.len();
        let mut bytes = match random.u8(0..8) {
            0 => (0..random.usize(0..200)).map(|_| random.u8(..)).collect(),
            _ if captured == 0 => Vec::new(),
            _ => network.captured[random.usize(0..captured)].to_vec(),
        };
        let original = bytes.get(8..20).map(<[u8]>::to_vec);
        if let Some(original) = original {
            replace(&mut bytes, &original, &spoofed_prefix.0);
        }
        if self.plan.has(Fault::MatchedAttacker) {
            // Replies go to the attacker, who may then be discovered.
            for host in 1..=9 {
                replace(&mut bytes, &[10, 0, 0, host], &ATTACKER);
            }
            let own = prefixes.get(network.sockets[to].process).copied().flatten();
            address(&mut bytes, own);
        } else if random.bool() {
            // Replies go to the victim.
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
        drop(schedule);
        let mut model = self.model.lock();
        if model.attackers.is_empty() {
            model.attackers = (0..SPOOFED_PREFIXES).map(self::spoofed_prefix).collect();
        }
    }
}

fn spoofed_prefix(number: u8) -> GuidPrefix {
    GuidPrefix([0x01, 0x50, 0xee, 0xee, 0xee, 0xee, 0, 0, 0, 0, 0, number])
}

/// Sets the destination of a leading INFO_DST to `own`.
fn address(bytes: &mut [u8], own: Option<GuidPrefix>) {
    if let Some(own) = own
        && bytes.get(20) == Some(&0x0e)
        && let Some(destination) = bytes.get_mut(24..36)
    {
        destination.copy_from_slice(&own.0);
    }
}

/// Replaces every occurrence of `old` by `new`, which has the same length.
pub fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) {
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
