//! Secured participants (DDS Security, SROS 2) among intruders: one without an
//! identity, one with an identity of another authority, and an attacker who replays,
//! changes and forges datagrams and floods the handshake with claims.
//!
//! Links lose and reorder, are cut, and processes start again. I24, *secrecy*: what
//! others than authenticated participants send is never delivered, nothing protected
//! is readable on the network, and no intruder is admitted. A reliable flow loses
//! nothing (I1), and a newcomer joins within a bound, during and after a flood (I6).
//! Every other run ends with a flood of packets at a flow (`flood.rs`, I19).

mod attacks;
mod flood;
mod keystore;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::sample::{SampleBody, SharedValue};
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};
use pteros_runtime::{Core, CoreOptions, EndpointSpec, SecurityOptions};
use pteros_security::governance::Protection;

use self::attacks::Attacker;
use self::keystore::{GovernanceKind, SimKeystore};
use super::world::{NodeWorld, REPAIR_MAX, SERVER};
use crate::harness::options::Fault;
use crate::network::link::Link;
use crate::network::watched_text::WatchedText;
use crate::simulation::contexts::StartOptions;

/// The publishing process.
const TALKER: usize = SERVER;
const LISTENER: usize = 1;
const NEWCOMER: usize = 2;
/// Processes with an identity of our keystore.
const MEMBERS: std::ops::Range<usize> = 0..3;
/// Has no identity.
const STRANGER: usize = 3;
/// Has a certificate of another authority in a member's name, and the member's
/// permissions, which are public.
const FOREIGNER: usize = 4;

const TOPIC: &str = "rt/secret";
const OPEN_TOPIC: &str = "rt/open";
/// In the topic's name and in each protected message.
const SECRET: &[u8] = b"secret";
/// Messages of one incarnation of the talker.
const MESSAGES_MAX: u32 = 150;
const STEPS: u32 = 60;
/// The longest time in which a newcomer joins while claims come.
const JOIN_MAX: Duration = Duration::from_secs(1);
/// Claims of the flood before the newcomer comes.
const CLAIMS_BEFORE: u32 = 500;

pub(super) fn run(world: &NodeWorld) {
    let mut story = Story::new(world);
    story.play();
    story.calm();
    story.flood();
}

/// A process and what it has taken.
#[derive(Default)]
struct Party {
    enclave: Option<PathBuf>,
    writer: Option<Arc<WriterEndpoint>>,
    reader: Option<Arc<ReaderEndpoint>>,
    /// Incarnation and number of each message, since it started.
    taken: Vec<(u32, u32)>,
    open_reader: Option<Arc<ReaderEndpoint>>,
    open_taken: u32,
}

struct Story<'w> {
    world: &'w NodeWorld,
    random: Rng,
    kind: GovernanceKind,
    parties: [Party; 5],
    /// Prefixes that members have had.
    members: BTreeSet<GuidPrefix>,
    attacker: Attacker,
    /// The incarnation of the talker, and its last message.
    incarnation: u32,
    number: u32,
    _keystores: [SimKeystore; 2],
}

impl<'w> Story<'w> {
    fn new(world: &'w NodeWorld) -> Self {
        let mut random = Rng::with_seed(world.seed());
        let rtps = [Protection::None, Protection::Sign, Protection::Encrypt];
        let rtps = rtps[random.usize(0..rtps.len())];
        let kind = GovernanceKind {
            rtps,
            signs_submessages: random.bool(),
            allows_unauthenticated: rtps == Protection::None && random.bool(),
        };
        let keystores = [SimKeystore::new(kind), SimKeystore::new(kind)];
        let [ours, foreign] = &keystores;
        let mut parties: [Party; 5] = Default::default();
        parties[TALKER].enclave = Some(ours.enclave("/talker"));
        parties[LISTENER].enclave = Some(ours.enclave("/listener"));
        parties[NEWCOMER].enclave = Some(ours.enclave("/newcomer"));
        let stolen = ours.enclave("/listener");
        parties[FOREIGNER].enclave = Some(foreign.enclave_with_documents("/listener", &stolen));
        let mut network = world.sim.event_loop().network();
        network.trace.omits_content = true;
        network.watched_text = Some(WatchedText::new(SECRET, MEMBERS));
        drop(network);
        world.sim.trace_line(format_args!("governance: {kind:?}"));
        Self {
            world,
            random,
            kind,
            parties,
            members: BTreeSet::new(),
            attacker: Attacker::default(),
            incarnation: 0,
            number: 0,
            _keystores: keystores,
        }
    }

    fn core(&self, process: usize) -> Option<Arc<Core>> {
        self.world.sim.event_loop().core(process)
    }

    fn start(&mut self, process: usize) {
        let enclave = self.parties[process].enclave.clone();
        let mut options = CoreOptions {
            security: enclave.map(|enclave| SecurityOptions { enclave }),
            ..CoreOptions::default()
        };
        options.shared_memory.enabled = false;
        let event_loop = self.world.sim.event_loop();
        event_loop.start(process, StartOptions::default(), options);
        let Some(core) = self.core(process) else {
            return;
        };
        if MEMBERS.contains(&process) {
            self.members.insert(core.prefix());
        }
        let read = |topic| core.create_reader(spec(topic), DeliveryForm::Bytes, false);
        let write = |topic| core.create_writer(spec(topic));
        let party = &mut self.parties[process];
        party.taken.clear();
        party.open_taken = 0;
        party.reader = (process != TALKER).then(|| read(TOPIC).expect("a reader"));
        let writes = ![LISTENER, NEWCOMER].contains(&process);
        party.writer = writes.then(|| write(TOPIC).expect("a writer"));
        if self.kind.allows_unauthenticated && process == LISTENER {
            party.open_reader = Some(read(OPEN_TOPIC).expect("a reader"));
        }
        if process == TALKER {
            self.incarnation += 1;
            self.number = 0;
        }
        self.world.sim.trace_line(format_args!("p{process} starts"));
    }

    fn stop(&mut self, process: usize) {
        let gracefully = self.random.bool();
        let party = &mut self.parties[process];
        (party.writer, party.reader, party.open_reader) = (None, None, None);
        self.world.sim.event_loop().end(process, gracefully);
        self.world.sim.trace_line(format_args!("p{process} ends"));
    }

    fn play(&mut self) {
        let lossy = Link {
            loss: self.draw(Fault::Loss, 1_000),
            duplicate: self.draw(Fault::Duplicate, 1_000),
            jitter: u64::from(self.draw(Fault::Reorder, 5_000_000)),
            ..Link::perfect(200_000)
        };
        self.world.sim.set_links(lossy);
        for process in [TALKER, LISTENER, STRANGER, FOREIGNER] {
            self.start(process);
            let pause = self.random.u64(0..200);
            self.pass(pause);
        }
        let newcomer_at = self.random.u32(10..STEPS);
        let mut ended: Option<(usize, u32)> = None;
        let mut cut_until = 0;
        for step in 0..STEPS {
            if self.world.sim.event_loop().has_failed() {
                return;
            }
            if step == newcomer_at {
                self.set_cut(lossy, false);
                if let Some((process, _)) = ended.take() {
                    self.start(process);
                }
                self.join_during_flood();
            }
            self.publish_all();
            for _ in 0..self.random.u32(0..4) {
                self.attack();
            }
            match self.random.u32(0..40) {
                0 if ended.is_none() && self.world.has_fault(Fault::Crash) => {
                    let process = self.random.usize(TALKER..=LISTENER);
                    self.stop(process);
                    ended = Some((process, step + self.random.u32(0..20)));
                }
                1 if cut_until == 0 && self.world.has_fault(Fault::Cut) => {
                    cut_until = step + self.random.u32(1..25);
                    self.set_cut(lossy, true);
                }
                _ => {}
            }
            if cut_until == step {
                cut_until = 0;
                self.set_cut(lossy, false);
            }
            if let Some((process, until)) = ended
                && until <= step
            {
                ended = None;
                self.start(process);
            }
            let pause = self.random.u64(20..150);
            self.pass(pause);
        }
        if let Some((process, _)) = ended {
            self.start(process);
        }
    }

    fn draw(&mut self, fault: Fault, most: u32) -> u32 {
        let drawn = self.random.u32(0..most);
        if self.world.has_fault(fault) {
            drawn
        } else {
            0
        }
    }

    fn set_cut(&self, lossy: Link, cut: bool) {
        let link = Link { cut, ..lossy };
        self.world.sim.set_links_between(TALKER, LISTENER, link);
    }

    /// A newcomer comes while a thousand claims a second come from ten addresses.
    fn join_during_flood(&mut self) {
        for _ in 0..CLAIMS_BEFORE {
            self.claim();
        }
        self.start(NEWCOMER);
        let began = self.world.sim.now();
        while !self.has_joined() && self.world.sim.now() < began + JOIN_MAX {
            self.claim();
            if self.world.sim.event_loop().has_failed() {
                return;
            }
        }
        let (joined, took) = (self.has_joined(), self.world.sim.now() - began);
        self.world
            .sim
            .trace_line(format_args!("newcomer after {took:?}: {joined}"));
        self.world.report.expect(joined, || {
            format!("I6 a newcomer has not joined {took:?} after its start, in a flood of claims")
        });
    }

    fn claim(&mut self) {
        let Self {
            world, attacker, ..
        } = self;
        attacker.claim(world, TALKER);
        self.pass(1);
    }

    fn has_joined(&self) -> bool {
        let knows = |one: usize, other: usize| {
            let other = self.core(other).map(|core| core.prefix());
            let known = self.core(one).map(|core| core.security().authenticated());
            let mut known = known.into_iter().flatten();
            known.any(|(prefix, _)| Some(prefix) == other)
        };
        knows(TALKER, NEWCOMER) && knows(NEWCOMER, TALKER)
    }

    fn attack(&mut self) {
        let last = self.random.usize(TALKER..=NEWCOMER);
        let writer = self.parties[TALKER].writer.as_ref().map(|w| w.guid());
        let number = i64::from(self.number);
        self.attacker
            .strike(self.world, &mut self.random, last, writer, number);
    }

    /// Members publish secrets, the others forged messages.
    fn publish_all(&mut self) {
        if self.number < MESSAGES_MAX && self.parties[TALKER].writer.is_some() {
            self.number += 1;
            let padding = "x".repeat(self.random.usize(0..4_000));
            let text = format!("secret {} {} {padding}", self.incarnation, self.number);
            self.publish(TALKER, &text);
        }
        for process in [STRANGER, FOREIGNER] {
            self.publish(process, "forged");
        }
    }

    fn publish(&self, process: usize, text: &str) {
        let (Some(core), Some(writer)) = (self.core(process), &self.parties[process].writer) else {
            return;
        };
        let mut message = Payload([&[0, 1, 0, 0], text.as_bytes()].concat().into());
        let stamp = core.platform.wall_clock();
        if let Err(error) = core.publish(writer, &mut message, stamp) {
            self.world
                .report
                .violation(format!("I2 p{process} cannot publish: {error}"));
        }
    }

    /// Lets time pass, then takes what has arrived and checks who was admitted.
    fn pass(&mut self, millis: u64) {
        self.world.sim.advance(Duration::from_millis(millis));
        self.attacker.record(self.world, self.core(TALKER));
        for process in LISTENER..=FOREIGNER {
            self.take(process);
        }
        for process in MEMBERS {
            let Some(core) = self.core(process) else {
                continue;
            };
            for (prefix, subject) in core.security().authenticated() {
                self.world
                    .report
                    .expect(self.members.contains(&prefix), || {
                        format!("I24 p{process} has admitted {prefix}, who says to be {subject}")
                    });
            }
        }
    }

    fn take(&mut self, process: usize) {
        let Some(core) = self.core(process) else {
            return;
        };
        let report = &self.world.report;
        let party = &mut self.parties[process];
        let Some(reader) = party.reader.clone() else {
            return;
        };
        while let Some(sample) = core.taking().take(&reader) {
            let SampleBody::Serialized(bytes) = sample.body else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes[4..]).into_owned();
            if !MEMBERS.contains(&process) {
                // The intruders are of no use to each other.
                report.expect(text.starts_with("forged"), || {
                    format!("I24 the intruder p{process} has got {text:.40?}")
                });
                continue;
            }
            match parse(&text) {
                Some(of) => party.taken.push(of),
                None => report.violation(format!("I24 p{process} has got {text:.40?}")),
            }
        }
    }

    /// No more faults and attacks: everything is whole within a bound.
    fn calm(&mut self) {
        self.world.sim.set_links(Link::perfect(100_000));
        self.world.sim.trace_line(format_args!("calm"));
        self.publish_all();
        let until = self.world.sim.now() + REPAIR_MAX;
        while !self.is_whole() && self.world.sim.now() < until {
            if self.world.sim.event_loop().has_failed() {
                return;
            }
            self.pass(50);
        }
        let report = &self.world.report;
        for process in [LISTENER, NEWCOMER] {
            let party = &self.parties[process];
            let taken = &party.taken;
            let mut expected = (0, 0);
            // A talker that crashes repeats nothing; the reader reports such losses.
            let reader = party.reader.as_ref();
            let mut may_be_lost = reader.map_or(0, |reader| reader.counts().lost);
            for (incarnation, number) in taken {
                expected = match expected {
                    (last, number) if last == *incarnation => (last, number + 1),
                    _ => (*incarnation, 1),
                };
                let crashed = *incarnation < self.incarnation;
                while crashed && may_be_lost > 0 && expected.1 < *number {
                    may_be_lost -= 1;
                    expected.1 += 1;
                }
                report.expect(expected == (*incarnation, *number), || {
                    format!("I1 p{process} got {incarnation}/{number} instead of {expected:?}")
                });
            }
            let last = (self.incarnation, self.number);
            report.expect(expected == last, || {
                format!(
                    "I1 p{process} has {expected:?} of {last:?}, {REPAIR_MAX:?} after all attacks"
                )
            });
        }
        let network = self.world.sim.event_loop().network();
        if let Some(watched) = &network.watched_text {
            report.expect(watched.readable == 0, || {
                format!("I24 {} datagrams have secrets in clear", watched.readable)
            });
            report.expect(watched.looked_at > 100, || "nothing was sent".into());
        }
        drop(network);
        self.world.caller(LISTENER).mark_done();
    }

    fn is_whole(&self) -> bool {
        let last = Some((self.incarnation, self.number));
        let mut readers = [LISTENER, NEWCOMER].into_iter();
        readers.all(|process| self.parties[process].taken.last().copied() == last)
    }
}

/// Incarnation and number of a message.
fn parse(text: &str) -> Option<(u32, u32)> {
    let mut words = text.strip_prefix("secret ")?.split(' ');
    let incarnation = words.next()?.parse().ok()?;
    Some((incarnation, words.next()?.parse().ok()?))
}

fn spec(topic: &str) -> EndpointSpec {
    EndpointSpec {
        topic: topic.into(),
        type_name: "test::Bytes".into(),
        qos: EndpointQos {
            durability: Durability::TransientLocal,
            history: History::KeepLast(MESSAGES_MAX),
            ..EndpointQos::default()
        },
        ..EndpointSpec::default()
    }
}

/// A serialized message.
struct Payload(Bytes);

impl OutboundMessage for Payload {
    fn message_type(&self) -> std::any::TypeId {
        std::any::TypeId::of::<Bytes>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.0.len()
    }
}
