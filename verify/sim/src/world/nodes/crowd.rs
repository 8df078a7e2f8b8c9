//! Crowds of accepted peers: fake participants of a few hosts fill a small table,
//! requests are forged in a reader's name, and a peer leaves many samples unfinished.
//!
//! I19, fairness: no source takes more than its share of table places and memory, and
//! newcomers get in. I20, amplification: what is sent to an address stays within three
//! times what it proved to receive, beside the first MiB.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::limits::Limits;
use pteros::prelude::*;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::discovery::spdp;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Duration as Span;
use pteros_rtps::wire::DataHead;

use super::attacker::{acknack, datagram};
use super::world::{NodeWorld, SERVER};
use crate::network::link::Link;

/// Places for participants.
const PLACES: usize = 16;
/// Unfinished samples of one participant, bytes.
const MEMORY_BYTES: usize = 1 << 20;
/// The process of the listener in whose name requests are forged.
const LISTENER: usize = 1;
/// The process that comes late.
const NEWCOMER: usize = 2;
/// The process that leaves samples unfinished.
const SENDER: usize = 3;
/// Messages of the talker, and their size.
const MESSAGES: usize = 40;
const MESSAGE_BYTES: usize = 5_000;
/// Topics of the sender, and the size of their messages.
const TOPICS: usize = 6;
const LARGE_BYTES: usize = 200_000;
/// The longest wait for a match or a message without faults.
const SOON: Duration = Duration::from_secs(4);
/// Longer than the lease of a participant that was never useful.
const PROBATION: Duration = Duration::from_secs(26);
/// Retransmissions that need no proof, and what is sent beside retransmissions in two
/// seconds.
const FREE_BYTES: u64 = (1 << 20) + (128 << 10);

pub(super) fn run(world: &NodeWorld) {
    let limits = Limits {
        remote_participants: PLACES,
        sample_bytes: 256 << 10,
        participant_memory_bytes: MEMORY_BYTES,
        receive_memory_bytes: 4 * MEMORY_BYTES,
        ..Limits::default()
    };
    let server = world.process_with_limits(SERVER, limits);
    let node = server.context.create_node("server").expect("a node");
    let latched = || "chatter".keep_last(MESSAGES).transient_local();
    let publisher: Publisher<Text> = node.create_publisher(latched()).expect("a publisher");
    let listener = world.process(LISTENER);
    let listening = listener.context.create_node("listener").expect("a node");
    let subscription: Subscription<Text> = listening
        .create_polled_subscription(latched())
        .expect("a subscription");
    let graph = server.context.graph();
    let soon = |done: &mut dyn FnMut() -> bool| graph.wait_until(SOON, done);
    let is_matched = soon(&mut || publisher.matched_count() == 1);
    world.report.expect(is_matched, || "I6 no match".into());
    for number in 0..MESSAGES {
        let _ = publisher.publish(&text(number, MESSAGE_BYTES));
        world.sim.advance(Duration::from_millis(2));
    }
    let mut taken = 0;
    let is_received = soon(&mut || {
        while subscription.take().is_some() {
            taken += 1;
        }
        taken == MESSAGES
    });
    world
        .report
        .expect(is_received, || format!("I1 {taken} of {MESSAGES} messages"));

    check_amplification(world, &server.context, &listener.context);
    let crowd = check_crowd(world, &server.context, &publisher);
    check_memory(world, &server.context, &node);
    world.sim.advance(PROBATION);
    let known = graph.participants();
    let left = known.iter().filter(|one| crowd.contains(&one.guid.prefix));
    let left = left.count();
    world.report.expect(left == 0, || {
        format!("I19 {left} participants that were never useful keep their places")
    });
    world.caller(LISTENER).mark_done();
}

fn text(number: usize, bytes: usize) -> Text {
    Text {
        data: format!("{number}{}", "x".repeat(bytes)),
    }
}

/// I20: the listener's name, and its address, request the whole history again and
/// again.
fn check_amplification(world: &NodeWorld, server: &Context, listener: &Context) {
    let graph = server.graph();
    let guid_on = |list: Vec<pteros::graph::EndpointInfo>, owner: Guid| {
        let mut of_owner = list.iter().filter(|one| one.gid.prefix == owner.prefix);
        of_owner.next().map(|one| one.gid)
    };
    let writer = guid_on(graph.publishers("/chatter"), server.guid());
    let reader = guid_on(graph.subscriptions("/chatter"), listener.guid());
    let (Some(writer), Some(reader)) = (writer, reader) else {
        world
            .report
            .violation("I12 the pair is not in the graph".into());
        return;
    };
    let proved = world.sim.bytes_sent(SERVER, LISTENER);
    let from = world.sim.address(LISTENER);
    let (pause, rounds) = {
        let mut random = world.random.lock();
        (random.u64(500..3_000), random.u32(300..500))
    };
    let history: Vec<i64> = (1..=i64::try_from(MESSAGES).unwrap_or(0)).collect();
    for count in 0..rounds {
        let request = acknack(reader.entity, writer.entity, &history, 1, 50_000 + count);
        let bytes = datagram(reader.prefix, writer.prefix, |message| {
            message.acknack(&request);
        });
        world.sim.inject(from, SERVER, bytes);
        world.sim.advance(Duration::from_micros(pause));
    }
    let sent = world.sim.bytes_sent(SERVER, LISTENER);
    world.report.expect(sent <= 3 * proved + FREE_BYTES, || {
        format!("I20 {sent} bytes to a listener that proved {proved}, by {rounds} requests")
    });
}

/// I19: participants of a few hosts that answer once, more than there are places.
/// Returns their prefixes.
fn check_crowd(
    world: &NodeWorld,
    server: &Context,
    publisher: &Publisher<Text>,
) -> Vec<GuidPrefix> {
    let own = server.guid().prefix;
    let (hosts, count) = {
        let mut random = world.random.lock();
        (random.u8(1..5), random.u8(24..48))
    };
    let mut crowd = Vec::new();
    for number in 0..count {
        let at = Locator::udp_v4([10, 0, 0, 100 + number % hosts], 7410 + u16::from(number));
        let mut prefix = GuidPrefix([0x01, 0x50, 0xcc, 0, 0, 0, 0, 0, 0, 0, 0, number]);
        prefix.0[3] = world.random.lock().u8(..);
        let mut data = ParticipantData::new(prefix);
        data.metatraffic_unicast = vec![at];
        data.default_unicast = vec![at];
        data.builtin_endpoints = spdp::OUR_ENDPOINTS;
        data.lease = Span::from_secs(1_000);
        let head = DataHead {
            reader: EntityId::SPDP_READER,
            writer: EntityId::SPDP_WRITER,
            sequence: SequenceNumber::FIRST,
            ..DataHead::default()
        };
        let announcement = datagram(prefix, own, |message| {
            message.data(&head, &data.encode());
        });
        let (reader, writer) = (
            EntityId::SEDP_PUBLICATIONS_READER,
            EntityId::SEDP_PUBLICATIONS_WRITER,
        );
        let answer = datagram(prefix, own, |message| {
            message.acknack(&acknack(reader, writer, &[], 1, 1));
        });
        world.sim.inject(at, SERVER, announcement);
        world.sim.advance(Duration::from_millis(1));
        world.sim.inject(at, SERVER, answer);
        world.sim.advance(Duration::from_millis(1));
        crowd.push(prefix);
    }
    let participants = &server.table_uses()[0];
    let (held, limit) = (participants.held, participants.limit);
    world.report.expect(held == limit, || {
        format!("the crowd does not fill the table: {held} of {limit}")
    });
    let late = world.process(NEWCOMER);
    let node = late.context.create_node("newcomer").expect("a node");
    let qos = "chatter".keep_last(MESSAGES).transient_local();
    let subscription: Subscription<Text> = node
        .create_polled_subscription(qos)
        .expect("a subscription");
    let got_in = server
        .graph()
        .wait_until(SOON, || publisher.matched_count() == 2);
    world.report.expect(got_in, || {
        format!("I19 {held} of {limit} places are taken, and a newcomer is not heard")
    });
    drop(subscription);
    crowd
}

/// I19: a sender whose fragments are lost takes no more than its share of memory, and
/// is heard again afterwards.
fn check_memory(world: &NodeWorld, server: &Context, node: &Node) {
    let names: Vec<String> = (0..TOPICS).map(|n| format!("large{n}")).collect();
    let best_effort = |name: &String| name.as_str().keep_last(1).best_effort();
    let subscriptions: Vec<Subscription<Text>> = names
        .iter()
        .map(|name| node.create_polled_subscription(best_effort(name)))
        .collect::<Result<_, _>>()
        .expect("subscriptions");
    let sender = world.process(SENDER);
    let sending = sender.context.create_node("sender").expect("a node");
    let publishers: Vec<Publisher<Text>> = names
        .iter()
        .map(|name| sending.create_publisher(best_effort(name)))
        .collect::<Result<_, _>>()
        .expect("publishers");
    let graph = server.graph();
    let is_matched = graph.wait_until(SOON, || publishers.iter().all(|p| p.matched_count() == 1));
    world
        .report
        .expect(is_matched, || "I6 no match of the sender".into());
    let lossy = Link {
        loss: 3_000,
        ..Link::perfect(100_000)
    };
    world.sim.set_link(SENDER, SERVER, lossy);
    for number in 0..4 {
        for publisher in &publishers {
            let _ = publisher.publish(&text(number, LARGE_BYTES));
            world.sim.advance(Duration::from_millis(3));
        }
        let used = server.receive_memory_use();
        let largest = used.largest.map_or(0, |of| of.reserved);
        // Records of discovery find an eighth beside samples.
        world
            .report
            .expect(largest <= MEMORY_BYTES + MEMORY_BYTES / 8, || {
                format!("I19 a sender holds {largest} bytes of {MEMORY_BYTES}")
            });
    }
    world.sim.set_link(SENDER, SERVER, Link::perfect(100_000));
    world.sim.advance(Duration::from_secs(5));
    for (publisher, subscription) in publishers.iter().zip(&subscriptions) {
        while subscription.take().is_some() {}
        let _ = publisher.publish(&text(9, LARGE_BYTES));
        let is_heard = graph.wait_until(SOON, || subscription.take().is_some());
        world.report.expect(is_heard, || {
            "I19 a sender is not heard after its losses".into()
        });
    }
}
