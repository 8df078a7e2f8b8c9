//! Random runs of one writer and a few readers, each from a seed: first faults
//! (loss, duplication, reordering, pauses), then a healed network in which all
//! traffic must end.
//!
//! Checked: the samples of reliable readers, the account of every sample, the
//! content of every byte, and quiet at the end. A failure prints its seed;
//! `one_seed` runs it alone.

use pteros_test_support::rtps::pair;

use bytes::Bytes;
use pair::net::Faults;
use pair::{Pair, R, W};
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability, ResourceLimits};
use pteros_rtps::time::Duration;
use pteros_rtps::writer::{NewChange, WriteError, WriterEvent};
use pteros_test_support::random::Random;

#[test]
fn five_hundred_random_runs() {
    for seed in 0..500 {
        SoakRun::run(seed);
    }
}

#[test]
#[ignore = "minutes; for nightly runs"]
fn a_hundred_thousand_random_runs() {
    for seed in 500..100_500 {
        SoakRun::run(seed);
    }
}

// Found by the nightly run: a reader whose set of runs was full refused the next
// missing sample, in run 22348 for ever.
#[test]
fn seeds_with_few_number_runs() {
    for seed in [1_109, 1_810, 15_301, 18_025, 22_348] {
        SoakRun::run(seed);
    }
}

#[test]
fn one_seed() {
    SoakRun::run(1);
}

/// One reader and the samples it must get.
struct Endpoint {
    r: R,
    reliable: bool,
    /// It matched without faults. A reader that joins under faults cannot tell
    /// overwritten samples before its match from later ones.
    settled: bool,
    /// Numbers written for it since its match.
    due: Vec<i64>,
}

struct SoakRun {
    seed: u64,
    random: Random,
    pair: Pair,
    w: W,
    keep_all: bool,
    parties: Vec<Endpoint>,
    /// Numbers may be missing for a reader: directed writes or skipped ones.
    sparse: bool,
}

impl SoakRun {
    fn run(seed: u64) {
        let mut world = Self::new(seed);
        let actions = 20 + world.random.below(60);
        for _ in 0..actions {
            world.random_action();
        }
        world.heal();
        world.check();
    }

    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let keep_all = random.percent(60);
        let history = if keep_all {
            History::KeepAll
        } else {
            History::KeepLast(1 + u32::try_from(random.below(12)).unwrap())
        };
        let qos = EndpointQos {
            history,
            resource_limits: ResourceLimits {
                max_samples: keep_all.then_some(4 + u32::try_from(random.below(40)).unwrap()),
                ..ResourceLimits::default()
            },
            ..EndpointQos::default()
        };
        let mut pair = Pair::with_seed(seed);
        pair.net.latency = Duration::from_micros(20 + i64::try_from(random.below(3_000)).unwrap());
        let fragment = 64 + u16::try_from(random.below(1_300)).unwrap();
        let w = pair.writer_with(0, qos, |config| {
            config.fragment_size.network = fragment;
            config.burst.datagrams = 5 + usize::from(fragment % 60);
        });
        let mut world = Self {
            seed,
            sparse: keep_all && random.percent(40),
            random,
            pair,
            w,
            keep_all,
            parties: Vec::new(),
        };
        for _ in 0..=world.random.below(3) {
            world.join();
        }
        world.pair.run_ms(50);
        for party in &mut world.parties {
            party.settled = true;
        }
        world.pair.net.faults = Faults {
            loss_percent: world.random.below(31),
            duplicate_percent: world.random.below(51),
            jitter: Duration::from_micros(i64::try_from(world.random.below(6_000)).unwrap()),
        };
        world
    }

    fn join(&mut self) {
        let reliable = self.random.percent(80);
        let depth = 1 + u32::try_from(self.random.below(10)).unwrap();
        let qos = EndpointQos {
            reliability: if reliable {
                Reliability::Reliable
            } else {
                Reliability::BestEffort
            },
            durability: Durability::Volatile,
            history: History::KeepLast(depth),
            ..EndpointQos::default()
        };
        let node = 1 + usize::try_from(self.random.below(3)).unwrap();
        let reorder = 2 + usize::try_from(self.random.below(40)).unwrap();
        let r = self.pair.reader_with(node, qos, |config| {
            config.limits.reorder_samples_max = reorder;
            config.limits.intervals_max = reorder;
            config.limits.defrag.samples_max = 1 + reorder % 8;
        });
        if self.random.percent(50) {
            self.pair.join(self.w, r);
        } else {
            self.pair.match_writer_only(r, self.w);
            self.pair.run_ms(3);
            self.pair.match_reader_only(self.w, r);
        }
        self.parties.push(Endpoint {
            r,
            reliable,
            settled: false,
            due: Vec::new(),
        });
    }

    fn random_action(&mut self) {
        match self.random.below(20) {
            0 if self.parties.len() < 5 => self.join(),
            1 if self.sparse => {
                let now = self.pair.now();
                self.pair.writers[self.w.0]
                    .machine
                    .skip_sequence_number(now);
            }
            2 if self.random.percent(30) => {
                let at = usize::try_from(self.random.below(self.parties.len() as u64)).unwrap();
                let reader = &mut self.pair.readers[self.parties[at].r.0];
                reader.paused = !reader.paused;
            }
            3 | 4 => {
                let micros = i64::try_from(self.random.below(60_000)).unwrap();
                self.pair.run(Duration::from_micros(micros));
            }
            _ => {
                for _ in 0..1 + self.random.below(4) {
                    self.write();
                }
                let micros = i64::try_from(self.random.below(2_000)).unwrap();
                self.pair.run(Duration::from_micros(micros));
            }
        }
    }

    fn write(&mut self) {
        let number = self.pair.writers[self.w.0].machine.next_sequence().0;
        let only = (self.sparse && self.random.percent(30))
            .then(|| usize::try_from(self.random.below(self.parties.len() as u64)).unwrap());
        let bytes = match self.random.below(10) {
            0 => 0,
            1 => self.random.below(12_000),
            _ => self.random.below(300),
        };
        let change = NewChange {
            payload: content(number, usize::try_from(bytes).unwrap() / 4 * 4),
            directed_to: only.map(|at| self.pair.guid(self.parties[at].r)),
            ..NewChange::default()
        };
        match self.pair.try_write(self.w, change) {
            Ok(sequence) => {
                assert_eq!(sequence.0, number);
                for (at, party) in self.parties.iter_mut().enumerate() {
                    if only.is_none_or(|only| only == at) {
                        party.due.push(number);
                    }
                }
            }
            Err(WriteError::WouldBlock { .. }) => assert!(self.keep_all, "seed {}", self.seed),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// Ends all faults. All traffic must end within a few heartbeats.
    fn heal(&mut self) {
        self.pair.net.heal();
        for reader in &mut self.pair.readers {
            reader.paused = false;
        }
        // One more for all: best effort detects its losses by it.
        for _ in 0..100 {
            self.pair.run_ms(20);
            let number = self.pair.writers[self.w.0].machine.next_sequence().0;
            let change = NewChange {
                payload: content(number, 16),
                ..NewChange::default()
            };
            if self.pair.try_write(self.w, change).is_ok() {
                for party in &mut self.parties {
                    party.due.push(number);
                }
                break;
            }
        }
        self.pair.run_ms(700);
    }

    fn check(&mut self) {
        let seed = self.seed;
        let writer = &self.pair.writers[self.w.0];
        assert!(
            writer.machine.readers().is_acked_by_all(),
            "seed {seed}: not acknowledged"
        );
        assert_eq!(
            writer.machine.cached_samples(),
            0,
            "seed {seed}: samples kept"
        );
        for party in &self.parties {
            let reader = &self.pair.readers[party.r.0];
            let mut got = self.pair.numbers(party.r);
            assert!(
                got.is_sorted_by(|a, b| a < b),
                "seed {seed}: out of order or twice"
            );
            for change in &reader.received {
                assert_eq!(
                    change.payload,
                    content(change.sequence.0, change.payload.len()),
                    "seed {seed}: bytes of {}",
                    change.sequence
                );
            }
            // Datagrams in transit to its process when it matched may reach it as
            // well.
            let first = party.due.first().copied().unwrap_or(i64::MAX);
            got.retain(|number| *number >= first);
            let lost = reader.machine.stats().lost;
            if party.reliable && self.keep_all {
                assert_eq!(got, party.due, "seed {seed}: {:?}", party.r);
                assert_eq!(lost, 0, "seed {seed}");
            } else if party.reliable && party.settled && !self.sparse {
                let due = party.due.len() as u64;
                assert_eq!(got.len() as u64 + lost, due, "seed {seed}: account");
            }
        }
        self.quiet();
    }

    /// Everything is acknowledged: no datagram, no timer.
    fn quiet(&mut self) {
        let seed = self.seed;
        self.pair.run_ms(3_000);
        self.pair.net.log.clear();
        self.pair.run_ms(10_000);
        assert!(
            self.pair.net.log.is_empty(),
            "seed {seed}: {:?}",
            self.pair.net.log.first()
        );
        let events = &self.pair.writers[self.w.0].events;
        let any_reliable = self.parties.iter().any(|party| party.reliable);
        assert!(
            !any_reliable || events.contains(&WriterEvent::AllAcknowledged),
            "seed {seed}"
        );
    }
}

fn content(number: i64, bytes: usize) -> Bytes {
    let mut random = Random::new(number.unsigned_abs());
    let mut payload = Vec::with_capacity(bytes + 8);
    // Never empty: without an encapsulation header it is no sample.
    while payload.len() < bytes.max(4) {
        payload.extend_from_slice(&random.next().to_le_bytes());
    }
    payload.truncate(bytes.max(4));
    Bytes::from(payload)
}
