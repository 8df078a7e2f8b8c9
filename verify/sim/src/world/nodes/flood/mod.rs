//! Floods: attackers of a few addresses, or an accepted peer, send 100 000 packets a
//! second, of one kind after another, to both ends of a flow. Each kind goes on for two
//! seconds and 200 messages of the flow. A newcomer far away comes meanwhile.
//!
//! I19, fairness: each message of the flow arrives, and 99 of 100 within 20 ms beside
//! the time on the link. Tables and memory stay within their limits, and the newcomer
//! gets in within a second. I20, amplification: the attackers get at most three times
//! what they sent, also those that send little and wait. The peer that requests again
//! and again gets no more than three times what its flow has, and the initial window.
//!
//! Each packet takes computing time of the attacked process ([`COST`]), so that one kind
//! that costs too much starves the flow. A run has two kinds; consecutive seeds have all.

mod packets;

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::UInt32;
use pteros::limits::Limits;
use pteros::prelude::*;
use pteros_rtps::id::Guid;
use pteros_rtps::locator::Locator;

use self::packets::{Endpoints, Kind, announcement, stranger};
use super::flow::{Flow, LATE_MAX};
use super::world::{ExecutorKind, NodeWorld, SERVER};
use crate::network::link::Link;
use crate::network::processing::ProcessingCost;

/// The process with the subscription.
const LISTENER: usize = 1;
/// The process that comes meanwhile.
const NEWCOMER: usize = 2;
/// The accepted peer: it hears the flow, and the listener hears its noise.
const PEER: usize = 3;
/// Readers of the flow before the newcomer.
const READERS: usize = 2;
/// 100 000 packets a second.
const STEP: Duration = Duration::from_micros(100);
const PACKETS_PER_STEP: u32 = 10;
/// Steps per kind, two seconds, and between two messages of the flow.
const STEPS: u32 = 20_000;
const STEPS_PER_MESSAGE: u32 = 100;
const KINDS_PER_RUN: usize = 2;
/// Steps of announcements before the newcomer comes.
const STEPS_BEFORE_NEWCOMER: u32 = 1_000;
/// Time on the link.
const LINK_DELAY: Duration = Duration::from_millis(8);
/// How long a newcomer may take, a hundred times the time on the link.
const NEWCOMER_MAX: Duration = Duration::from_secs(1);
/// The longest wait for a match without a flood.
const SOON: Duration = Duration::from_secs(4);
/// The computing time of a packet: a system call with the look at its head, and each step
/// of work. An announcement takes 12 µs with them, a little less than measured.
pub(super) const COST: ProcessingCost = ProcessingCost {
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
/// Numbers of hosts.
const HOSTS: usize = 256;
/// Bytes to an address for each byte that it sent, or proved to receive.
const AMPLIFICATION_MAX: u64 = 3;
/// Retransmissions that need no proof, and heartbeats and GAPs that answer requests.
const FREE_BYTES: u64 = (1 << 20) + (512 << 10);

/// The flow, and what the attackers have sent.
struct Flood<'w> {
    world: &'w NodeWorld,
    publisher: Publisher<UInt32>,
    subscription: Subscription<UInt32>,
    noise: Subscription<UInt32>,
    endpoints: Endpoints,
    peer_address: Locator,
    flow: Flow,
    packets: u32,
    /// The attacked process, for the kinds that may attack both.
    attacked: usize,
    /// Bytes by attacked process and attacker.
    bytes: [[u64; HOSTS]; 2],
}

pub(super) fn run(world: &NodeWorld) {
    let mut server = world.process(SERVER);
    let mut listener = world.process(LISTENER);
    let mut peer = world.process(PEER);
    let nanos = u64::try_from(LINK_DELAY.as_nanos()).unwrap_or(0);
    world.sim.set_links(Link::perfect(nanos));
    world.sim.set_processing_cost(COST);
    let talking = server.context.create_node("talker").expect("a node");
    let listening = listener.context.create_node("listener").expect("a node");
    let beside = peer.context.create_node("beside").expect("a node");
    let subscribe = |node: &Node, topic: &str| -> Subscription<UInt32> {
        let subscription = node.create_polled_subscription(topic.keep_last(20));
        subscription.expect("a subscription")
    };
    let publish = |node: &Node, topic: &str| -> Publisher<UInt32> {
        let publisher = node.create_publisher(topic.keep_last(20));
        publisher.expect("a publisher")
    };
    let publisher = publish(&talking, "chatter");
    let subscription = subscribe(&listening, "chatter");
    let noise = subscribe(&listening, "noise");
    let of_peer = (subscribe(&beside, "chatter"), publish(&beside, "noise"));
    world.spin(&mut server, ExecutorKind::Single, &[&talking]);
    world.spin(&mut listener, ExecutorKind::Single, &[&listening]);
    world.spin(&mut peer, ExecutorKind::Single, &[&beside]);
    let graph = server.context.graph();
    let is_matched = graph.wait_until(SOON, || {
        publisher.matched_count() == READERS
            && subscription.matched_count() == 1
            && of_peer.1.matched_count() == 1
            && graph.subscriptions("/chatter").len() == READERS
            && !graph.publishers("/chatter").is_empty()
            && !graph.publishers("/noise").is_empty()
    });
    let gid = |list: Vec<pteros::graph::EndpointInfo>, owner: &Context| {
        let mut of_owner = list.into_iter().map(|one| one.gid);
        of_owner.find(|gid: &Guid| gid.prefix == owner.guid().prefix)
    };
    let (true, Some(writer), Some(reader), Some(peer_reader), Some(peer_writer)) = (
        is_matched,
        gid(graph.publishers("/chatter"), &server.context),
        gid(graph.subscriptions("/chatter"), &listener.context),
        gid(graph.subscriptions("/chatter"), &peer.context),
        gid(graph.publishers("/noise"), &peer.context),
    ) else {
        world.report.violation("I6 no match".into());
        return;
    };
    let mut flood = Flood {
        world,
        publisher,
        subscription,
        noise,
        endpoints: Endpoints {
            writer,
            reader,
            peer_writer,
            peer_reader,
            talker: world.sim.address(SERVER),
        },
        peer_address: world.sim.address(PEER),
        flow: Flow::default(),
        packets: 0,
        attacked: SERVER,
        bytes: [[0; HOSTS]; 2],
    };
    // Until the reader has answered for the first time, samples may be sent twice.
    world.sim.advance(Duration::from_secs(1));
    let contexts = [&server.context, &listener.context];
    flood.announce_quietly();
    flood.check("a few announcements", contexts);
    let first = usize::try_from(world.run).unwrap_or(0) * KINDS_PER_RUN;
    for at in first..first + KINDS_PER_RUN {
        flood.play(Kind::ALL[at % Kind::ALL.len()], contexts);
    }
    flood.meet_newcomer(contexts);
    world.caller(LISTENER).mark_done();
}

impl Flood<'_> {
    /// Two seconds of one kind.
    fn play(&mut self, kind: Kind, contexts: [&Context; 2]) {
        self.attacked = [SERVER, LISTENER][self.world.random.lock().usize(0..2)];
        let sent_to = |process| self.world.sim.bytes_sent(SERVER, process);
        let before = (sent_to(LISTENER), sent_to(PEER));
        for step in 0..STEPS {
            self.step(kind, step);
        }
        let what = format!("a flood of {kind:?}");
        self.check(&what, contexts);
        let sent_to = |process| self.world.sim.bytes_sent(SERVER, process);
        let (flow, peer) = (sent_to(LISTENER) - before.0, sent_to(PEER) - before.1);
        let max = AMPLIFICATION_MAX * flow + FREE_BYTES;
        let is_bounded = kind != Kind::PeerRequests || peer <= max;
        self.world.report.expect(is_bounded, || {
            format!("I20 {peer} bytes to a peer that requests again and again, of {max}")
        });
    }

    /// The newcomer, when announcements have come for a while.
    fn meet_newcomer(&mut self, contexts: [&Context; 2]) {
        let world = self.world;
        for step in 0..STEPS_BEFORE_NEWCOMER {
            self.step(Kind::Announcements, step);
        }
        let mut late = world.process(NEWCOMER);
        let node = late.context.create_node("newcomer").expect("a node");
        let qos = "chatter".keep_last(20);
        let newcomer: Subscription<UInt32> = node
            .create_polled_subscription(qos)
            .expect("a subscription");
        world.spin(&mut late, ExecutorKind::Single, &[&node]);
        let until = world.sim.now() + NEWCOMER_MAX;
        let is_heard = |flood: &Self| flood.publisher.matched_count() > READERS;
        let mut step = 0;
        while !is_heard(self) && world.sim.now() < until {
            self.step(Kind::Announcements, step);
            step += 1;
        }
        world.report.expect(is_heard(self), || {
            format!("I19 a newcomer is not heard for {NEWCOMER_MAX:?} of a flood of announcements")
        });
        self.check("a flood of announcements beside a newcomer", contexts);
        drop(newcomer);
    }

    /// Sends the packets of one step, and perhaps a message of the flow.
    fn step(&mut self, kind: Kind, step: u32) {
        for _ in 0..PACKETS_PER_STEP {
            self.send(kind);
        }
        let sim = &self.world.sim;
        if step.is_multiple_of(STEPS_PER_MESSAGE) {
            let number = self.flow.note_published(sim.now());
            let data = u32::try_from(number).unwrap_or(u32::MAX);
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
        while self.noise.take().is_some() {}
        while let Some(sample) = self.subscription.take() {
            let number = usize::try_from(sample.data).unwrap_or(usize::MAX);
            let is_known = self.flow.note_taken(number, self.world.sim.now());
            self.world
                .report
                .expect(is_known, || format!("I2 message {number}"));
        }
    }

    fn send(&mut self, kind: Kind) {
        self.packets += 1;
        let (host, port, number) = {
            let mut random = self.world.random.lock();
            (random.u8(ATTACKERS), random.u16(1024..), random.u64(..))
        };
        let to = match kind {
            Kind::Requests | Kind::PeerRequests => SERVER,
            Kind::Garbage | Kind::UnknownData | Kind::Announcements | Kind::Duplicates => {
                self.attacked
            }
            _ => LISTENER,
        };
        let is_spoofed = kind == Kind::LivingAnnouncements && number.is_multiple_of(2);
        let from = match kind {
            _ if is_spoofed => self.endpoints.talker,
            kind if kind.is_of_peer() => self.peer_address,
            _ => Locator::udp_v4([10, 0, 0, host], port),
        };
        let bytes = self.endpoints.packet(kind, from, number, self.packets);
        self.bytes[to][usize::from(from.address[15])] += bytes.len() as u64;
        self.world.sim.inject(from, to, bytes);
    }

    /// Checks the rules after one kind of attack.
    fn check(&mut self, what: &str, contexts: [&Context; 2]) {
        let until = self.world.sim.now() + LINK_DELAY + LATE_MAX;
        while self.world.sim.now() < until {
            self.world.sim.advance(STEP);
            self.take();
        }
        let report = &self.world.report;
        let counts = self.flow.take_counts(LINK_DELAY);
        if counts.published > 0
            && let Some(wrong) = counts.violation(what)
        {
            report.violation(wrong);
        }
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
