//! Messages and changes that leave a context, and when: memory for the next large message, a message
//! before the announcement of its writer, deferred remote sends, accesses of a group.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::{Encode, Encoder, Representation};
use pteros_runtime::EndpointSpec;
use pteros_runtime::flow_controller::{AsyncPublishMode, FlowController};
use pteros_runtime::reader::DeliveryForm;
use pteros_runtime::rtps::qos::{Durability, EndpointQos, History, Presentation, XCDR1, XCDR2};
use pteros_runtime::sample::{SampleBody, SharedValue};
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};

use crate::flow_control::harness::{Callback, ContextPair, queue_of, spec};
use crate::flow_control::{best_effort, last, message};

/// A message that exists as a value of this process, too.
struct Value(Arc<Mark>);

struct Mark(u32);

impl Encode for Mark {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.u32(self.0);
    }
}

impl OutboundMessage for Value {
    fn message_type(&self) -> TypeId {
        TypeId::of::<Mark>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        Some(self.0.clone())
    }

    fn serialized(&mut self) -> Bytes {
        self.0.payload(Representation::Xcdr1)
    }

    fn serialized_len(&mut self) -> usize {
        self.serialized().len()
    }
}

#[test]
fn a_publisher_that_keeps_large_messages_prefaults_memory_from_the_second_on() {
    let mut pair = ContextPair::of_one_host();
    let kept = EndpointQos {
        history: History::KeepAll,
        durability: Durability::TransientLocal,
        ..EndpointQos::default()
    };
    let writer = pair.plain_writer("t", kept.clone());
    let reader = pair.reader("t", kept);
    pair.run_ms(200);
    pair.publish(&writer, message(100_000, 1));
    assert_eq!(pair.prefaulted(), [0; 0], "it may stay the only one");
    pair.publish(&writer, message(100_000, 2));
    assert_eq!(pair.prefaulted(), [100_000]);
    pair.publish(&writer, message(1_000, 3));
    assert_eq!(pair.prefaulted(), [100_000], "a small one is not worth it");
    pair.run_ms(10);
    assert_eq!(pair.taken(&reader), [1, 2, 3]);
    // One that overwrites its messages uses their memory again.
    let overwriting = pair.plain_writer("u", last(5));
    let _reader = pair.reader("u", last(5));
    pair.run_ms(200);
    (0..5).for_each(|mark| pair.publish(&overwriting, message(100_000, mark)));
    assert_eq!(pair.prefaulted(), [100_000]);
}

#[test]
fn a_message_by_shared_memory_waits_for_the_announcement_of_its_writer() {
    let mut pair = ContextPair::of_one_host();
    let _connected = (pair.plain_writer("a", last(1)), pair.reader("a", last(1)));
    let reader = pair.reader("late", best_effort(10));
    // Until the connection is settled, sockets go first anyway.
    pair.run_ms(500);
    let writer = pair.plain_writer("late", best_effort(10));
    let announced = pair.network().sent.len();
    pair.publish(&writer, message(100, 7));
    assert_eq!(pair.network().sent.len(), announced, "no socket carries it");
    pair.fill_sockets();
    pair.run_ms(10);
    assert_eq!(pair.taken(&reader), [7]);
}

/// Three messages wait in the sockets of a stopped process, and what ends their writer
/// afterwards. Returns the messages that its callbacks get.
fn heard_after_stop(
    mut pair: ContextPair,
    qos: &EndpointQos,
    (stopped_ms, callback_ms): (u64, u64),
    end: impl FnOnce(&ContextPair, &WriterEndpoint),
) -> Vec<u8> {
    pair.network().group_first = true;
    let writer = pair.plain_writer("t", qos.clone());
    let reader = pair.reader("t", qos.clone());
    // The connection by shared memory has settled.
    pair.run_ms(500);
    let task = Arc::new(Callback);
    let queue = queue_of(&reader.slot, &task);
    (1..=3).for_each(|mark| pair.publish(&writer, message(100, mark)));
    pair.stop_listener_ms(stopped_ms);
    end(&pair, &writer);
    pair.fill_sockets();
    pair.spin_listener(&reader, &queue, callback_ms)
}

#[test]
fn what_arrived_before_an_end_is_delivered_before_it() {
    let reliable = last(10);
    for qos in [best_effort(10), reliable] {
        // A stop for a moment, with fast callbacks and with slower ones than an end may
        // wait, and one for longer than the lease of the writer's participant.
        for times in [(0, 0), (0, 60), (0, 250), (25_000, 0)] {
            for new in [|| ContextPair::new(Vec::new()), ContextPair::of_one_host] {
                let heard = heard_after_stop(new(), &qos, times, |pair, _| {
                    pair.talker().close();
                });
                assert_eq!(heard, [1, 2, 3], "its process ended: {times:?}");
                let heard = heard_after_stop(new(), &qos, times, |pair, writer| {
                    pair.talker().remove_writer(writer);
                });
                assert_eq!(heard, [1, 2, 3], "it was deleted: {times:?}");
            }
        }
        let heard = heard_after_stop(ContextPair::of_one_host(), &qos, (25_000, 0), |_, _| {});
        assert_eq!(heard, [1, 2, 3], "nothing ended");
    }
}

/// The writer's process was killed, and its lease expired while the reader was stopped.
#[test]
fn a_lease_that_expired_during_a_stop_ends_after_the_messages() {
    for new in [|| ContextPair::new(Vec::new()), ContextPair::of_one_host] {
        let mut pair = new();
        let writer = pair.plain_writer("t", best_effort(10));
        let reader = pair.reader("t", best_effort(10));
        pair.run_ms(500);
        let task = Arc::new(Callback);
        let queue = queue_of(&reader.slot, &task);
        (1..=3).for_each(|mark| pair.publish(&writer, message(100, mark)));
        pair.fill_sockets();
        pair.network().now += 60_000_000_000;
        assert_eq!(pair.spin_listener(&reader, &queue, 1), [1, 2, 3]);
        // They were the last sign of it.
        pair.network().now += 60_000_000_000;
        pair.spin_listener(&reader, &queue, 0);
        assert_eq!(reader.matched().len(), 0);
    }
}

/// A participant that was heard while this process was stopped is not lost.
#[test]
fn a_stop_longer_than_the_lease_loses_no_living_participant() {
    let mut pair = ContextPair::new(Vec::new());
    let writer = pair.plain_writer("t", best_effort(10));
    let reader = pair.reader("t", best_effort(10));
    pair.run_ms(500);
    pair.stop_listener_ms(25_000);
    let task = Arc::new(Callback);
    let queue = queue_of(&reader.slot, &task);
    pair.spin_listener(&reader, &queue, 0);
    assert_eq!(reader.matched(), [writer.guid()]);
}

/// A burst of 50 messages waits in the sockets of a reader of depth 10, and then `happens`.
/// Each callback takes `callback_ms`. Returns the messages that they get, and how many
/// writers are matched afterwards.
fn heard_of_burst(
    pair: &mut ContextPair,
    qos: &EndpointQos,
    callback_ms: u64,
    happens: impl FnOnce(&mut ContextPair, &WriterEndpoint),
) -> (Vec<u8>, usize) {
    pair.network().group_first = true;
    let writer = pair.plain_writer("t", qos.clone());
    let reader = pair.reader("t", qos.clone());
    // Just before the lease of each participant would end, had it not been heard since.
    let start = pair.network().now;
    pair.run_ms(19_850 - start / 1_000_000);
    let task = Arc::new(Callback);
    let queue = queue_of(&reader.slot, &task);
    (1..=50).for_each(|mark| pair.publish(&writer, message(100, mark)));
    happens(pair, &writer);
    pair.fill_sockets();
    let heard = pair.spin_listener(&reader, &queue, callback_ms);
    (heard, reader.matched_count())
}

/// The SPDP dispose of a participant.
fn dispose_of(prefix: [u8; 12]) -> Vec<u8> {
    let header = [b'R', b'T', b'P', b'S', 2, 3, 1, 15];
    // DATA with inline QoS and key: from the SPDP writer, number 1.
    let data = [
        0x15, 0x0b, 60, 0, 0, 0, 16, 0, 0, 1, 0, 0xc7, 0, 1, 0, 0xc2, 0, 0, 0, 0, 1, 0, 0, 0,
    ];
    let status = [0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0];
    let key = [0, 3, 0, 0, 0x50, 0, 16, 0];
    let end = [0, 0, 1, 0xc1, 1, 0, 0, 0];
    let parts: [&[u8]; 7] = [&header, &prefix, &data, &status, &key, &prefix, &end];
    parts.concat()
}

#[test]
fn no_end_makes_a_busy_reader_lose_samples_of_its_history() {
    let [all, all_of_ended] = [1, 0].map(|matched| ((1..=50).collect::<Vec<u8>>(), matched));
    for (qos, callback_ms) in [
        (best_effort(10), 10),
        (last(10), 10),
        (best_effort(10), 100),
        (best_effort(10), 250),
    ] {
        let of = |pair: &mut ContextPair, happens: &dyn Fn(&mut ContextPair, &WriterEndpoint)| {
            heard_of_burst(pair, &qos, callback_ms, happens)
        };
        let mut pair = ContextPair::and_bystander();
        let heard = of(&mut pair, &|pair, _| pair.bystander().close());
        assert_eq!(
            heard, all,
            "an unrelated participant left: {callback_ms} ms"
        );

        let mut pair = ContextPair::and_bystander();
        let other = pair.bystander().create_writer(spec("t", qos.clone()));
        let heard = of(&mut pair, &|pair, _| pair.bystander().close());
        assert_eq!(heard, all, "another publisher left: {callback_ms} ms");
        drop(other);

        let mut pair = ContextPair::new(Vec::new());
        let heard = of(&mut pair, &|pair, _| {
            (0..100).for_each(|n| pair.forge(dispose_of([n; 12])));
        });
        assert_eq!(heard, all, "forged disposes came: {callback_ms} ms");

        for new in [|| ContextPair::new(Vec::new()), ContextPair::of_one_host] {
            let heard = of(&mut new(), &|_, _| {});
            assert_eq!(heard, all, "time passed: {callback_ms} ms");

            let heard = of(&mut new(), &|pair, _| pair.talker().close());
            assert_eq!(heard, all_of_ended, "its process ended: {callback_ms} ms");

            let heard = of(&mut new(), &|pair, writer| {
                pair.talker().remove_writer(writer);
            });
            assert_eq!(heard, all_of_ended, "it was deleted: {callback_ms} ms");
        }
    }
}

#[test]
fn a_message_leaves_the_process_after_the_callbacks_that_it_made_ready() {
    let mut pair = ContextPair::new(Vec::new());
    // A writer that offers several representations sends the first.
    let offer = EndpointQos {
        representation: vec![XCDR2, XCDR1],
        ..last(10)
    };
    let writer = pair.plain_writer("t", offer);
    let remote = pair.reader("t", last(10));
    let local = pair
        .talker()
        .create_reader(
            spec("t", last(10)),
            DeliveryForm::Type(TypeId::of::<Mark>()),
            false,
        )
        .unwrap();
    pair.run_ms(200);
    let task = Arc::new(Callback);
    let queue = queue_of(&local.slot, &task);
    let talker = pair.talker();
    let spinning = talker.driver().begin_spin(&queue);
    let sent = || pair.network().sent.len();
    let before = sent();
    let source = talker.platform.wall_clock();
    talker
        .publish(&writer, &mut Value(Arc::new(Mark(7))), source)
        .unwrap();
    assert_eq!(sent(), before, "its callback goes first");
    assert!(queue.pop().is_some());
    assert!(talker.taking().take(&local).is_some());
    assert!(!talker.driver().end_round(&queue));
    assert!(sent() > before);
    drop(spinning);
    pair.run_ms(10);
    let arrived = pair.listener().taking().take(&remote).unwrap();
    let SampleBody::Serialized(bytes) = arrived.body else {
        panic!("bytes were asked for");
    };
    // PLAIN_CDR2, little-endian.
    assert_eq!(bytes[..], [0, 7, 0, 0, 7, 0, 0, 0]);
}

#[test]
fn an_asynchronous_message_is_handed_to_its_controller_before_the_callbacks() {
    let mut pair = ContextPair::new(vec![FlowController::new("free")]);
    let writer = pair.writer("t", last(10), AsyncPublishMode::new("free"));
    let _remote = pair.reader("t", last(10));
    let form = DeliveryForm::Type(TypeId::of::<Mark>());
    let local = pair
        .talker()
        .create_reader(spec("t", last(10)), form, false)
        .unwrap();
    pair.run_ms(200);
    let task = Arc::new(Callback);
    let queue = queue_of(&local.slot, &task);
    let talker = pair.talker();
    let _spinning = talker.driver().begin_spin(&queue);
    let source = talker.platform.wall_clock();
    let mut value = Value(Arc::new(Mark(7)));
    talker.publish(&writer, &mut value, source).unwrap();
    assert_eq!((queue.len(), writer.unsent_count()), (1, 1));
}

#[test]
fn samples_that_came_during_an_access_are_reported_at_its_end() {
    let pair = ContextPair::new(Vec::new());
    let core = pair.talker();
    let presentation = Presentation {
        access_scope: 2,
        coherent: false,
        ordered: true,
    };
    let publishers = core.create_publisher_group(presentation);
    let group = core.create_subscription_group(presentation);
    let writer_spec = EndpointSpec {
        group: Some(publishers),
        ..spec("t", last(10))
    };
    let reader_spec = EndpointSpec {
        subscription_group: Some(group.clone()),
        ..spec("t", last(10))
    };
    let writer = core.create_writer(writer_spec).unwrap();
    let reader = core.create_reader(reader_spec, DeliveryForm::Bytes, false);
    let reader = reader.unwrap();
    let task = Arc::new(Callback);
    let of_group = queue_of(&group.slot, &task);
    let take = || {
        let (from, item) = core.taking().take_of_group(&group, |_| true)?;
        assert_eq!(from, reader.data.guid);
        let SampleBody::Serialized(bytes) = item.body else {
            panic!("bytes were asked for");
        };
        Some(bytes[4])
    };

    // An inner access ends nothing.
    core.taking().begin_access(&group);
    core.taking().begin_access(&group);
    pair.publish(&writer, message(10, 1));
    while of_group.pop().is_some() {
        group.slot.begin_take();
    }
    assert_eq!(take(), None, "it came after the access began");
    group.end_access();
    assert!(of_group.is_empty() && group.is_open());
    group.end_access();
    assert!(of_group.pop().is_some(), "the sample shows now");
    group.slot.begin_take();
    core.taking().begin_access(&group);
    assert_eq!(take(), Some(1));
    group.end_access();
    assert!(of_group.is_empty(), "nothing is left");
    // Without an access, nothing ends.
    group.end_access();
    assert!(!group.is_open());
}
