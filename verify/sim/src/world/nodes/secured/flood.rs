//! A flood at secured participants: 100 000 packets a second of one kind for two seconds.
//! None of its senders has a key.
//!
//! I19, fairness: each of 200 messages arrives, and 99 of 100 within 20 ms beside the
//! time on the link. Each packet takes computing time of its receiver.

use std::time::Duration;

use super::super::flood::COST;
use super::super::flow::{Flow, LATE_MAX};
use super::{LISTENER, Story, TALKER};

/// A kind of packet.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Samples in the talker's name, without protection.
    PlainData,
    /// Datagrams that were sent lately, again.
    Replays,
    /// The same with a changed byte.
    Changed,
    /// Claims of an identity, each under another name.
    Claims,
}

impl Kind {
    /// Packets of one turn. A claim has a proof of its address behind it.
    const fn packets(self) -> u32 {
        match self {
            Self::Claims => 2,
            _ => 1,
        }
    }
}

const KINDS: [Kind; 4] = [Kind::PlainData, Kind::Replays, Kind::Changed, Kind::Claims];
/// One run in so many has a flood.
const RUNS: u64 = 2;
/// Milliseconds of the flood, packets in each, and between two messages.
const MILLIS: u64 = 2_000;
const PACKETS_PER_MILLI: u32 = 100;
const MILLIS_PER_MESSAGE: u64 = 10;
/// Time on the link.
const LINK_DELAY: Duration = Duration::from_micros(100);

impl Story<'_> {
    /// Floods the talker and the listener with one kind, if it is the run's turn.
    pub(super) fn flood(&mut self) {
        let run = self.world.run;
        if !run.is_multiple_of(RUNS) || self.parties[TALKER].writer.is_none() {
            return;
        }
        let at = usize::try_from(run / RUNS).unwrap_or(0) % KINDS.len();
        let kind = KINDS[at];
        self.world
            .sim
            .trace_line(format_args!("a flood of {kind:?}"));
        self.world.sim.set_processing_cost(COST);
        let mut flow = Flow::default();
        let first = self.number + 1;
        let mut seen = self.parties[LISTENER].taken.len();
        let after = u64::try_from(LATE_MAX.as_millis()).unwrap_or(0) + 5;
        for milli in 0..MILLIS + after {
            if self.world.sim.event_loop().has_failed() {
                return;
            }
            if milli < MILLIS {
                for turn in 0..PACKETS_PER_MILLI / kind.packets() {
                    let to = [TALKER, LISTENER][usize::from(turn.is_multiple_of(2))];
                    self.send_flood(kind, to);
                }
                if milli.is_multiple_of(MILLIS_PER_MESSAGE) {
                    flow.note_published(self.world.sim.now());
                    self.number += 1;
                    let text = format!("secret {} {} x", self.incarnation, self.number);
                    self.publish(TALKER, &text);
                }
            }
            self.world.sim.advance(Duration::from_millis(1));
            self.take(LISTENER);
            for (incarnation, number) in &self.parties[LISTENER].taken[seen..] {
                // A replay may bring what an earlier talker sent into a cut (seed 770).
                if *incarnation == self.incarnation {
                    let at = usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX);
                    flow.note_taken(at, self.world.sim.now());
                }
            }
            seen = self.parties[LISTENER].taken.len();
        }
        let counts = flow.take_counts(LINK_DELAY);
        let wrong = counts.violation(&format!("a flood of {kind:?} at secured participants"));
        if let Some(wrong) = wrong {
            self.world.report.violation(wrong);
        }
        self.pass(1);
    }

    fn send_flood(&mut self, kind: Kind, to: usize) {
        let writer = self.parties[TALKER].writer.as_ref().map(|w| w.guid());
        let number = i64::from(self.number);
        let Self {
            world,
            random,
            attacker,
            ..
        } = self;
        match kind {
            Kind::Claims => attacker.claim(world, to),
            _ => attacker.flood(world, random, kind, to, writer, number),
        }
    }
}
