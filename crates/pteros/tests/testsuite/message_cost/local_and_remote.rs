//! Local and remote readers: intra-process readers are served before serialization,
//! and a message is serialized at most once.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use pteros::PublisherOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::{DecodeError, Decoder, Encoder};
use pteros::msg::describe::TypeDescription;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::hash::TypeHash;
use pteros::msg::message::{Decode, Encode, Message};
use pteros::prelude::*;
use pteros::{SubscriptionOptions, subscription::ReaderCounts};

use crate::message_cost::{
    BATCHES, CallbackCounter, CountingProcess, ROUNDS, TIMEOUT, allocations_of, spin_both_until,
    unused_domain,
};
use pteros_test_support::allocations::snapshot;

thread_local! {
    /// Called whenever a message is serialized.
    static LOCAL: RefCell<Option<Box<dyn Fn() -> ReaderCounts>>> = const { RefCell::new(None) };
    /// Samples that the local subscription had received at each of those times.
    static RECEIVED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A text that records its serializations.
#[derive(Clone, Debug, Default, PartialEq)]
struct CountingMessage(Text);

impl Encode for CountingMessage {
    fn encode(&self, out: &mut Encoder<'_>) {
        let now = LOCAL.with_borrow(|local| local.as_ref().map(|counts| counts().received));
        RECEIVED.with_borrow_mut(|list| list.extend(now));
        self.0.encode(out);
    }
}

impl Decode for CountingMessage {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Text::decode(input).map(Self)
    }
}

impl Message for CountingMessage {
    const TYPE_NAME: &'static str = Text::TYPE_NAME;
    const TYPE_HASH: TypeHash = Text::TYPE_HASH;

    fn type_description() -> &'static TypeDescription {
        Text::type_description()
    }
}

fn counting_message() -> Arc<CountingMessage> {
    Arc::new(CountingMessage(Text {
        data: "sixty-four bytes or so, as a status or a command may be".into(),
    }))
}

/// A publisher's context with a local subscription, and another context with a
/// remote one.
#[test]
fn intra_process_readers_get_a_message_before_it_is_serialized_once_for_others() {
    let plain = QosProfile::default();
    let profiles = [
        plain.clone(),
        plain.clone().keep_all(),
        plain.clone().transient_local(),
        plain.clone().transient_local().keep_all(),
    ];
    for qos in profiles {
        let [near, far] = CountingProcess::two();
        let publisher = near
            .node
            .create_publisher::<CountingMessage>("t".qos(&qos))
            .unwrap();
        let local = near
            .node
            .create_polled_subscription::<CountingMessage>("t".qos(&qos))
            .unwrap();
        let callbacks: [CallbackCounter; 2] = Default::default();
        let others = callbacks.clone().map(|sink| {
            far.node
                .create_subscription::<Text>("t".qos(&qos), move |_| sink.note())
                .unwrap()
        });
        spin_both_until(&near, &far, || publisher.matched_count() == 3);
        spin_both_until(&near, &far, || {
            others.iter().all(|o| o.matched_count() == 1)
        });

        LOCAL.set(Some(Box::new({
            let local = local.clone();
            move || local.counts()
        })));
        RECEIVED.take();
        let before = publisher.counts().serialized;
        publisher.publish_arc(counting_message()).unwrap();
        let serialized = publisher.counts().serialized - before;
        LOCAL.take();
        // First its size is computed, which decides whether it may be published.
        assert_eq!(RECEIVED.take(), [0, 1], "{qos:?}");
        assert_eq!(serialized, 1, "{qos:?}");
        spin_both_until(&near, &far, || callbacks.iter().all(|h| h.count() == 1));
    }
}

#[test]
fn transient_local_samples_are_serialized_when_a_remote_late_joiner_matches() {
    let [near, far] = CountingProcess::two();
    let latched = QosProfile::default().transient_local().keep_last(3);
    let publisher = near
        .node
        .create_publisher::<CountingMessage>("t".qos(&latched))
        .unwrap();
    let callbacks = CallbackCounter::default();
    let sink = callbacks.clone();
    let _local = near
        .node
        .create_subscription::<CountingMessage>("t".qos(&latched), move |_| sink.note())
        .unwrap();
    let message = counting_message();
    let round = || {
        publisher.publish_arc(message.clone()).unwrap();
        assert!(near.executor.spin_once(TIMEOUT));
    };
    assert_eq!(allocations_of(round), 0);
    assert_eq!(publisher.counts().serialized, 0);
    let published = publisher.counts().published as i64;
    assert_eq!(callbacks.count() as i64, published);

    // A remote reader: kept samples are serialized once each, and from then on each
    // message.
    let texts = far
        .node
        .create_polled_subscription::<Text>("t".qos(&latched))
        .unwrap();
    let mut taken = Vec::new();
    spin_both_until(&near, &far, || {
        taken.extend(texts.take().map(|text| text.info().sequence));
        taken.len() == 3
    });
    assert_eq!(taken, [published - 2, published - 1, published]);
    assert_eq!(publisher.counts().serialized, 3);
    publisher.publish_arc(counting_message()).unwrap();
    spin_both_until(&near, &far, || texts.take().is_some());
    assert_eq!(publisher.counts().serialized, 4);

    // The reader leaves: messages from now on are not serialized.
    drop(texts);
    spin_both_until(&near, &far, || publisher.matched_count() == 1);
    publisher.publish_arc(counting_message()).unwrap();
    assert_eq!(publisher.counts().serialized, 4);
    let texts = far
        .node
        .create_polled_subscription::<Text>("t".qos(&latched))
        .unwrap();
    let mut taken = Vec::new();
    spin_both_until(&near, &far, || {
        taken.extend(texts.take().map(|text| text.info().sequence));
        taken.len() == 3
    });
    assert_eq!(taken, [published, published + 1, published + 2]);
    assert_eq!(publisher.counts().serialized, 5, "two were bytes already");
}

#[test]
fn a_latched_message_is_kept_once_when_a_remote_late_joiner_has_its_bytes() {
    let [near, far] = CountingProcess::two();
    let latched = QosProfile::default().transient_local();
    let publisher = near
        .node
        .create_publisher::<CountingMessage>("t".qos(&latched))
        .unwrap();
    let local = near
        .node
        .create_polled_subscription::<CountingMessage>("t".qos(&latched))
        .unwrap();
    let message = counting_message();
    let value = Arc::downgrade(&message);
    publisher.publish_arc(message).unwrap();
    drop(local.take().unwrap());
    assert_eq!(value.strong_count(), 1, "kept as the value");
    let remote = far
        .node
        .create_polled_subscription::<Text>("t".qos(&latched))
        .unwrap();
    spin_both_until(&near, &far, || remote.take().is_some());
    assert_eq!(value.strong_count(), 0, "kept as bytes instead");
    let late = near
        .node
        .create_polled_subscription::<CountingMessage>("t".qos(&latched))
        .unwrap();
    assert_eq!(*late.take().unwrap(), *counting_message());
    assert_eq!(publisher.counts().serialized, 1);
}

#[test]
fn a_dynamic_message_is_shared_with_dynamic_readers_for_any_qos() {
    let ty = DynamicType::new(Text::type_description()).unwrap();
    let plain = QosProfile::default();
    let profiles = [
        plain.clone(),
        plain.clone().keep_all(),
        plain.clone().transient_local(),
        plain.clone().deadline(Duration::from_secs(3600)),
        plain.clone().lifespan(Duration::from_secs(3600)),
    ];
    for qos in profiles {
        let party = CountingProcess::new(unused_domain());
        let publisher = party
            .node
            .create_publisher::<DynamicMessage>(PublisherOptions::of_type(&ty, "t".qos(&qos)))
            .unwrap();
        let at = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let sink = at.clone();
        let callback = move |sample: Sample<DynamicMessage>| {
            let message: *const DynamicMessage = &*sample;
            sink.store(message as usize, std::sync::atomic::Ordering::Relaxed);
        };
        let options = SubscriptionOptions::of_type(&ty, "t".qos(&qos));
        let _subscription = party.node.create_subscription(options, callback).unwrap();
        let mut message = DynamicMessage::new(&ty);
        message.set("data", "known at run time").unwrap();
        let message = Arc::new(message);
        let round = || {
            publisher.publish_arc(message.clone()).unwrap();
            assert!(party.executor.spin_once(TIMEOUT));
        };
        (0..20).for_each(|_| round());
        let batch = |_| {
            let (before, (allocated, _)) = (party.system_calls(), snapshot());
            (0..ROUNDS).for_each(|_| round());
            let after = party.system_calls();
            [
                snapshot().0 - allocated,
                after.sends - before.sends,
                after.waits - before.waits,
                after.wakes - before.wakes,
            ]
        };
        let least = (0..BATCHES)
            .map(batch)
            .min_by_key(|batch| batch.iter().sum::<u64>());
        assert_eq!(least, Some([0; 4]), "{qos:?}");
        assert_eq!(publisher.counts().serialized, 0, "{qos:?}");
        let seen = at.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(seen, Arc::as_ptr(&message) as usize, "{qos:?}");
    }
}
