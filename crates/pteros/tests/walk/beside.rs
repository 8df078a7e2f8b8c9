//! Beside readers of other processes: the local ones are served before anybody
//! serializes, and it is serialized once, if at all.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::{DecodeError, Decoder, Encoder};
use pteros::msg::describe::TypeDescription;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::hash::TypeHash;
use pteros::msg::message::{Decode, Encode, Message};
use pteros::prelude::*;
use pteros::{ReaderCounts, SubscriptionOptions};

use crate::allocations::so_far;
use crate::{BATCHES, Heard, PATIENCE, Party, ROUNDS, allocations_of, until};

thread_local! {
    /// Asked whenever a message is turned into bytes.
    static LOCAL: RefCell<Option<Box<dyn Fn() -> ReaderCounts>>> = const { RefCell::new(None) };
    /// What the local subscription had received at each of those times.
    static RECEIVED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A text that notices when it is serialized.
#[derive(Clone, Debug, Default, PartialEq)]
struct Watched(Text);

impl Encode for Watched {
    fn encode(&self, out: &mut Encoder<'_>) {
        let now = LOCAL.with_borrow(|local| local.as_ref().map(|counts| counts().received));
        RECEIVED.with_borrow_mut(|list| list.extend(now));
        self.0.encode(out);
    }
}

impl Decode for Watched {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Text::decode(input).map(Self)
    }
}

impl Message for Watched {
    const TYPE_NAME: &'static str = Text::TYPE_NAME;
    const TYPE_HASH: TypeHash = Text::TYPE_HASH;

    fn type_description() -> &'static TypeDescription {
        Text::type_description()
    }
}

fn watched() -> Arc<Watched> {
    Arc::new(Watched(Text {
        data: "sixty-four bytes or so, as a status or a command may be".into(),
    }))
}

/// A publisher's context with a local subscription, and another context with a
/// remote one.
#[test]
fn local_readers_have_a_message_before_it_is_serialized_once_for_all_others() {
    let plain = QosProfile::default();
    let profiles = [
        plain.clone(),
        plain.clone().keep_all(),
        plain.clone().transient_local(),
        plain.clone().transient_local().keep_all(),
    ];
    for (domain, qos) in (220..).zip(profiles) {
        let (near, far) = (Party::new(domain), Party::new(domain));
        let publisher = near.node.create_publisher::<Watched>("t", &qos).unwrap();
        let local = near
            .node
            .create_polled_subscription::<Watched>("t", &qos)
            .unwrap();
        let heard: [Heard; 2] = Default::default();
        let others = heard.clone().map(|sink| {
            far.node
                .create_subscription::<Text>("t", &qos, move |_| sink.note())
                .unwrap()
        });
        until(&near, &far, || publisher.matched_count() == 3);
        until(&near, &far, || {
            others.iter().all(|o| o.matched_count() == 1)
        });

        LOCAL.set(Some(Box::new({
            let local = local.clone();
            move || local.counts()
        })));
        RECEIVED.take();
        let before = publisher.counts().serialized;
        publisher.publish_arc(watched()).unwrap();
        let serialized = publisher.counts().serialized - before;
        LOCAL.take();
        // First its size is counted, which decides whether it may be published.
        assert_eq!(RECEIVED.take(), [0, 1], "{qos:?}");
        assert_eq!(serialized, 1, "{qos:?}");
        until(&near, &far, || heard.iter().all(|h| h.count() == 1));
    }
}

#[test]
fn what_late_joiners_may_want_is_serialized_when_one_of_another_process_comes() {
    let (near, far) = (Party::new(225), Party::new(225));
    let latched = QosProfile::default().transient_local().keep_last(3);
    let publisher = near
        .node
        .create_publisher::<Watched>("t", &latched)
        .unwrap();
    let heard = Heard::default();
    let sink = heard.clone();
    let _local = near
        .node
        .create_subscription::<Watched>("t", &latched, move |_| sink.note())
        .unwrap();
    let message = watched();
    let round = || {
        publisher.publish_arc(message.clone()).unwrap();
        assert!(near.executor.spin_once(PATIENCE));
    };
    assert_eq!(allocations_of(round), 0);
    assert_eq!(publisher.counts().serialized, 0);
    let published = publisher.counts().published as i64;
    assert_eq!(heard.count() as i64, published);

    // Somebody outside: what is kept, once each, and from then on each message.
    let texts = far
        .node
        .create_polled_subscription::<Text>("t", &latched)
        .unwrap();
    let mut taken = Vec::new();
    until(&near, &far, || {
        taken.extend(texts.take().map(|text| text.info().sequence));
        taken.len() == 3
    });
    assert_eq!(taken, [published - 2, published - 1, published]);
    assert_eq!(publisher.counts().serialized, 3);
    publisher.publish_arc(watched()).unwrap();
    until(&near, &far, || texts.take().is_some());
    assert_eq!(publisher.counts().serialized, 4);

    // It goes again: what is published from now on is nobody's business.
    drop(texts);
    until(&near, &far, || publisher.matched_count() == 1);
    publisher.publish_arc(watched()).unwrap();
    assert_eq!(publisher.counts().serialized, 4);
    let texts = far
        .node
        .create_polled_subscription::<Text>("t", &latched)
        .unwrap();
    let mut taken = Vec::new();
    until(&near, &far, || {
        taken.extend(texts.take().map(|text| text.info().sequence));
        taken.len() == 3
    });
    assert_eq!(taken, [published, published + 1, published + 2]);
    assert_eq!(publisher.counts().serialized, 5, "two were bytes already");
}

#[test]
fn a_dynamic_message_is_shared_with_dynamic_readers_whatever_the_qos() {
    let ty = DynamicType::new(Text::type_description()).unwrap();
    let plain = QosProfile::default();
    let profiles = [
        plain.clone(),
        plain.clone().keep_all(),
        plain.clone().transient_local(),
        plain.clone().deadline(Duration::from_secs(3600)),
        plain.clone().lifespan(Duration::from_secs(3600)),
    ];
    for (domain, qos) in (226..).zip(profiles) {
        let party = Party::new(domain);
        let publisher = party.node.create_dynamic_publisher("t", &ty, &qos).unwrap();
        let at = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let sink = at.clone();
        let options = SubscriptionOptions::new(&qos).callback(move |sample| {
            let message: *const DynamicMessage = &*sample;
            sink.store(message as usize, std::sync::atomic::Ordering::Relaxed);
        });
        let _subscription = party
            .node
            .create_dynamic_subscription("t", &ty, options)
            .unwrap();
        let mut message = DynamicMessage::new(&ty);
        message.set("data", "known at run time").unwrap();
        let message = Arc::new(message);
        let round = || {
            publisher.publish_arc(message.clone()).unwrap();
            assert!(party.executor.spin_once(PATIENCE));
        };
        (0..20).for_each(|_| round());
        let batch = |_| {
            let (before, (allocated, _)) = (party.calls(), so_far());
            (0..ROUNDS).for_each(|_| round());
            let after = party.calls();
            [
                so_far().0 - allocated,
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
