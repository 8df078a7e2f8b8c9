//! Floods: attackers of a few addresses send 100 000 packets a second, of one kind after
//! another, to both ends of a flow. A newcomer far away comes meanwhile.
//!
//! I19, fairness: each message of the flow arrives within 20 ms beside the time on the
//! link. Tables and memory stay within their limits, and the newcomer gets in within a
//! second. I20, amplification: the attackers get at most three times what they sent, also
//! those that send little and wait.
//!
//! Each packet takes computing time of the attacked process ([`COST`]), so that one kind
//! that costs too much starves the flow.

use std::time::Duration;

use bytes::Bytes;
use pteros::interfaces::std_msgs::msg::UInt32;
use pteros::limits::Limits;
use pteros::prelude::*;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::discovery::spdp;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::seq::{FragmentNumber, SequenceNumber};
use pteros_rtps::wire::{DataFragHead, DataHead, Gap, Heartbeat, InlineQosHead};

use super::attacker::{acknack, datagram};
use super::world::{ExecutorKind, NodeWorld, SERVER};
use crate::network::link::Link;
use crate::network::processing::ProcessingCost;

/// The process with the subscription.
const LISTENER: usize = 1;
/// The process that comes meanwhile.
const NEWCOMER: usize = 2;
/// 100 000 packets a second.
const STEP: Duration = Duration::from_micros(100);
const PACKETS_PER_STEP: u32 = 10;
/// Steps per kind, and between two messages of the flow.
const STEPS: u32 = 500;
const STEPS_PER_MESSAGE: u32 = 50;
/// Time on the link.
const LINK_DELAY: Duration = Duration::from_millis(8);
/// How late a message may be beside that.
const LATE_MAX: Duration = Duration::from_millis(20);
/// How long a newcomer may take, a hundred times the time on the link.
const NEWCOMER_MAX: Duration = Duration::from_secs(1);
/// The longest wait for a match without a flood.
const SOON: Duration = Duration::from_secs(4);
/// The computing time of a packet: a system call with the look at its head, and each step
/// of work. An announcement takes 12 µs with them, a little less than measured.
const COST: ProcessingCost = ProcessingCost {
    datagram: 3_000,
    step: 1_000,
};
/// An address that announces a few participants, none of which answers.
const QUIET_ATTACKER: u8 = 220;
const QUIET_ANNOUNCEMENTS: u32 = 10;
/// As long as an unvalidated participant is kept.
const QUIET_SPAN: Duration = Duration::from_secs(6);
/// The attackers' addresses end in these numbers.
const ATTACKERS: std::ops::Range<u8> = 200..203;
/// A forged fragment, and the sample that it is to be of.
const FRAGMENT_BYTES: u16 = 1_000;
const LARGE_SAMPLE_BYTES: u32 = 1 << 20;
/// Numbers of hosts.
const HOSTS: usize = 256;
/// Bytes to an address for each byte that it sent.
const AMPLIFICATION_MAX: u64 = 3;

/// A kind of packet.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Random bytes, half of them behind the head of an RTPS message.
    Garbage,
    /// DATA of participants that nobody knows.
    UnknownData,
    /// Announcements, each of another participant that does not exist.
    Announcements,
    /// The same announcement again and again.
    Duplicates,
    /// Requests for the whole history in the listener's name.
    Requests,
    /// Heartbeats in the talker's name, far ahead of it.
    Heartbeats,
    /// GAPs in the talker's name, over everything.
    Gaps,
    /// First fragments of large samples, in the talker's name and in a stranger's.
    Fragments,
}

const KINDS: [Kind; 8] = [
    Kind::Garbage,
    Kind::UnknownData,
    Kind::Announcements,
    Kind::Duplicates,
    Kind::Requests,
    Kind::Heartbeats,
    Kind::Gaps,
    Kind::Fragments,
];

/// The flow, and what the attackers have sent.
struct Flood<'w> {
    world: &'w NodeWorld,
    publisher: Publisher<UInt32>,
    subscription: Subscription<UInt32>,
    writer: Guid,
    reader: Guid,
    /// When each message was published.
    published: Vec<Duration>,
    taken: usize,
    latest: Duration,
    packets: u32,
    /// The attacked process, for the kinds that may attack both.
    attacked: usize,
    /// Bytes by attacked process and attacker.
    bytes: [[u64; HOSTS]; 2],
}

pub(super) fn run(world: &NodeWorld) {
    let mut server = world.process(SERVER);
    let mut listener = world.process(LISTENER);
    let nanos = u64::try_from(LINK_DELAY.as_nanos()).unwrap_or(0);
    world.sim.set_links(Link::perfect(nanos));
    world.sim.set_processing_cost(COST);
    let talking = server.context.create_node("talker").expect("a node");
    let listening = listener.context.create_node("listener").expect("a node");
    let publisher = talking.create_publisher("chatter".keep_last(20));
    let subscription = listening.create_polled_subscription("chatter".keep_last(20));
    let (publisher, subscription) = (
        publisher.expect("a publisher"),
        subscription.expect("a subscription"),
    );
    world.spin(&mut server, ExecutorKind::Single, &[&talking]);
    world.spin(&mut listener, ExecutorKind::Single, &[&listening]);
    let graph = server.context.graph();
    let soon = |done: &mut dyn FnMut() -> bool| graph.wait_until(SOON, done);
    let is_matched = soon(&mut || {
        publisher.matched_count() == 1
            && subscription.matched_count() == 1
            && !graph.subscriptions("/chatter").is_empty()
            && !graph.publishers("/chatter").is_empty()
    });
    let gid = |list: Vec<pteros::graph::EndpointInfo>| list.first().map(|one| one.gid);
    let writer = gid(graph.publishers("/chatter"));
    let reader = gid(graph.subscriptions("/chatter"));
    let (true, Some(writer), Some(reader)) = (is_matched, writer, reader) else {
        world.report.violation("I6 no match".into());
        return;
    };
    let mut flood = Flood {
        world,
        publisher,
        subscription,
        writer,
        reader,
        published: Vec::new(),
        taken: 0,
        latest: Duration::ZERO,
        packets: 0,
        attacked: SERVER,
        bytes: [[0; HOSTS]; 2],
    };
    // Until the reader has answered for the first time, samples may be sent twice.
    world.sim.advance(Duration::from_secs(1));
    flood.announce_quietly();
    flood.check("a few announcements", [&server.context, &listener.context]);
    let first = world.random.lock().usize(0..KINDS.len());
    for at in 0..KINDS.len() {
        let kind = KINDS[(first + at) % KINDS.len()];
        flood.attacked = [SERVER, LISTENER][world.random.lock().usize(0..2)];
        for step in 0..STEPS {
            flood.step(kind, step);
        }
        let what = format!("a flood of {kind:?}");
        flood.check(&what, [&server.context, &listener.context]);
    }
    // The newcomer, when announcements have come for a while.
    for step in 0..2 * STEPS {
        flood.step(Kind::Announcements, step);
    }
    let mut late = world.process(NEWCOMER);
    let node = late.context.create_node("newcomer").expect("a node");
    let qos = "chatter".keep_last(20);
    let newcomer: Subscription<UInt32> = node
        .create_polled_subscription(qos)
        .expect("a subscription");
    world.spin(&mut late, ExecutorKind::Single, &[&node]);
    let until = world.sim.now() + NEWCOMER_MAX;
    let mut step = 0;
    while flood.publisher.matched_count() < 2 && world.sim.now() < until {
        flood.step(Kind::Announcements, step);
        step += 1;
    }
    world
        .report
        .expect(flood.publisher.matched_count() == 2, || {
            format!("I19 a newcomer is not heard for {NEWCOMER_MAX:?} of a flood of announcements")
        });
    let what = "a flood of announcements beside a newcomer";
    flood.check(what, [&server.context, &listener.context]);
    drop(newcomer);
    world.caller(LISTENER).mark_done();
}

impl Flood<'_> {
    /// Sends the packets of one step, and perhaps a message of the flow.
    fn step(&mut self, kind: Kind, step: u32) {
        for _ in 0..PACKETS_PER_STEP {
            self.send(kind);
        }
        let sim = &self.world.sim;
        if step.is_multiple_of(STEPS_PER_MESSAGE) {
            let data = u32::try_from(self.published.len()).unwrap_or(u32::MAX);
            self.published.push(sim.now());
            let _ = self.publisher.publish(&UInt32 { data });
        }
        sim.advance(STEP);
        self.take();
    }

    /// Announces participants that do not exist, in few bytes, and waits.
    fn announce_quietly(&mut self) {
        for _ in 0..QUIET_ANNOUNCEMENTS {
            self.packets += 1;
            let number = self.world.random.lock().u64(..);
            let from = Locator::udp_v4([10, 0, 0, QUIET_ATTACKER], 7410);
            let bytes = announcement(stranger(number), from);
            self.bytes[SERVER][usize::from(QUIET_ATTACKER)] += bytes.len() as u64;
            self.world.sim.inject(from, SERVER, bytes);
        }
        self.world.sim.advance(QUIET_SPAN);
    }

    fn take(&mut self) {
        while let Some(sample) = self.subscription.take() {
            let number = usize::try_from(sample.data).unwrap_or(usize::MAX);
            let Some(at) = self.published.get(number) else {
                self.world.report.violation(format!("I2 message {number}"));
                continue;
            };
            self.latest = self.latest.max(self.world.sim.now() - *at);
            self.taken += 1;
        }
    }

    fn send(&mut self, kind: Kind) {
        self.packets += 1;
        let (host, to, port, number) = {
            let mut random = self.world.random.lock();
            let to = match kind {
                Kind::Requests => SERVER,
                Kind::Heartbeats | Kind::Gaps | Kind::Fragments => LISTENER,
                _ => self.attacked,
            };
            (random.u8(ATTACKERS), to, random.u16(1024..), random.u64(..))
        };
        let from = Locator::udp_v4([10, 0, 0, host], port);
        let bytes = self.packet(kind, from, number);
        self.bytes[to][usize::from(host)] += bytes.len() as u64;
        self.world.sim.inject(from, to, bytes);
    }

    fn packet(&self, kind: Kind, from: Locator, number: u64) -> Bytes {
        let (talker, listener) = (self.writer.prefix, self.reader.prefix);
        let stranger = stranger(number);
        let count = 50_000 + self.packets;
        let far = SequenceNumber(1 << 40);
        match kind {
            Kind::Garbage => {
                let length = 1 + usize::try_from(number % 180).unwrap_or(0);
                let mut random = fastrand::Rng::with_seed(number);
                let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                if random.bool() {
                    bytes.splice(0..0, *b"RTPS\x02\x05\x01\x50");
                }
                bytes.into()
            }
            Kind::UnknownData => datagram(stranger, talker, |message| {
                let writer = EntityId::new([0, 0, 3], EntityId::KIND_WRITER_NO_KEY);
                let head = DataHead {
                    writer,
                    sequence: SequenceNumber::FIRST,
                    ..DataHead::default()
                };
                message.data(&head, &Bytes::from_static(&[0; 100]));
            }),
            Kind::Announcements => announcement(stranger, from),
            Kind::Duplicates => announcement(GuidPrefix([0xdd; 12]), from),
            Kind::Requests => datagram(listener, talker, |message| {
                let all: Vec<i64> = (1..=20).collect();
                let (reader, writer) = (self.reader.entity, self.writer.entity);
                message.acknack(&acknack(reader, writer, &all, 1, count));
            }),
            Kind::Heartbeats => datagram(talker, listener, |message| {
                message.heartbeat(&Heartbeat {
                    reader: EntityId::UNKNOWN,
                    writer: self.writer.entity,
                    first: far,
                    last: far,
                    count,
                    is_final: false,
                    liveliness: false,
                    group_info: None,
                });
            }),
            Kind::Gaps => datagram(talker, listener, |message| {
                let (reader, writer) = (EntityId::UNKNOWN, self.writer.entity);
                message.gap(&Gap::range(reader, writer, SequenceNumber::FIRST, far));
            }),
            Kind::Fragments => {
                let sender = if number.is_multiple_of(2) {
                    talker
                } else {
                    stranger
                };
                datagram(sender, listener, |message| {
                    let head = DataFragHead {
                        reader: EntityId::UNKNOWN,
                        writer: self.writer.entity,
                        sequence: SequenceNumber(1 + i64::from(self.packets)),
                        first_fragment: FragmentNumber(1),
                        fragment_count: 1,
                        fragment_size: FRAGMENT_BYTES,
                        sample_size: LARGE_SAMPLE_BYTES,
                        inline_qos: InlineQosHead::NONE,
                        key_only: false,
                    };
                    message.data_frag(&head, Bytes::from_static(&[0; FRAGMENT_BYTES as usize]));
                })
            }
        }
    }

    /// Checks the rules after one kind of attack.
    fn check(&mut self, what: &str, contexts: [&Context; 2]) {
        let until = self.world.sim.now() + LINK_DELAY + LATE_MAX;
        while self.world.sim.now() < until {
            self.world.sim.advance(STEP);
            self.take();
        }
        let report = &self.world.report;
        let (taken, published) = (self.taken, self.published.len());
        report.expect(taken == published, || {
            format!("I19 {taken} of {published} messages arrive in {what}")
        });
        let late = std::mem::take(&mut self.latest).saturating_sub(LINK_DELAY);
        report.expect(late <= LATE_MAX, || {
            format!("I19 a message is {late:?} late in {what}")
        });
        let limits = Limits::default();
        for (process, context) in contexts.into_iter().enumerate() {
            for table in context.table_uses() {
                report.expect(table.held <= table.limit, || {
                    format!("I19 {} of {} places in {what}", table.held, table.limit)
                });
            }
            let used = context.receive_memory_use().largest;
            let used = used.map_or(0, |of| of.reserved);
            report.expect(used <= limits.participant_memory_bytes, || {
                format!("I19 a participant holds {used} bytes in {what}")
            });
            for host in ATTACKERS.chain([QUIET_ATTACKER]) {
                let own = self.bytes[process][usize::from(host)];
                let sent = self.world.sim.bytes_to_nobody(process, [10, 0, 0, host]);
                report.expect(sent <= AMPLIFICATION_MAX * own, || {
                    format!("I20 p{process} sent {sent} bytes to an attacker who sent {own}")
                });
            }
        }
    }
}

/// A participant that does not exist.
fn stranger(number: u64) -> GuidPrefix {
    let mut prefix = GuidPrefix([0x01, 0x50, 0xee, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    prefix.0[4..].copy_from_slice(&number.to_be_bytes());
    prefix
}

/// The announcement of a participant that does not exist, at the attacker's address.
fn announcement(prefix: GuidPrefix, at: Locator) -> Bytes {
    let mut data = ParticipantData::new(prefix);
    data.metatraffic_unicast = vec![at];
    data.default_unicast = vec![at];
    data.builtin_endpoints = spdp::OUR_ENDPOINTS;
    let head = DataHead {
        reader: EntityId::SPDP_READER,
        writer: EntityId::SPDP_WRITER,
        sequence: SequenceNumber::FIRST,
        ..DataHead::default()
    };
    datagram(prefix, GuidPrefix::UNKNOWN, |message| {
        message.data(&head, &data.encode());
    })
}
