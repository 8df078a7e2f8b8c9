//! Data in the name of a living publisher or client: its gid, its numbers in the attachment
//! and in Zenoh's own header, its timestamp. What is forged may be delivered, and readers are
//! whole again. Unit tests say how soon, on fake time.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::Message;
use pteros::msg::cdr::{Representation, to_payload};
use pteros::prelude::*;
use pteros::subscription::Subscription;
use zenoh::Wait as _;
use zenoh::sample::{Locality, Sample as ZenohSample, SourceInfo};
use zenoh::time::{NTP64, Timestamp};

use crate::harness::{Net, SOON, add_two_ints, text};
use pteros_test_support::spin_thread::SpinThread;

const FORGED: &str = "forged";
/// Sequence number to forge, from the publisher's last one.
type Forgery = fn(i64) -> i64;
const FORGERIES: [Forgery; 6] = [
    |last| last + 300,
    |last| last + (1 << 40),
    |_| i64::MAX,
    |_| 0,
    |last| last - 3,
    |last| last,
];

fn payload<M: Message>(message: &M) -> Vec<u8> {
    to_payload(message, Representation::Xcdr1)
}

/// An attachment with another sequence number.
fn forged_attachment(of: &[u8], forgery: Forgery) -> Vec<u8> {
    let mut attachment = of.to_vec();
    let (number, _) = attachment.split_first_chunk_mut::<8>().unwrap();
    *number = forgery(i64::from_le_bytes(*number)).to_le_bytes();
    attachment
}

/// Repeats a sample with another number, and with another time if time orders it.
fn forge(session: &zenoh::Session, of: &ZenohSample, forgery: Forgery) {
    let attachment = of.attachment().unwrap().to_bytes();
    let mut put = session
        .put(of.key_expr().clone(), payload(&text(FORGED)))
        .attachment(forged_attachment(&attachment, forgery));
    if let Some(info) = of.source_info() {
        // Zenoh's numbers begin with 0.
        let number = forgery(i64::from(info.source_sn()) + 1) - 1;
        let number = u32::try_from(number.max(0)).unwrap_or(u32::MAX / 3);
        put = put.source_info(SourceInfo::new(*info.source_id(), number));
    } else if let Some(timestamp) = of.timestamp() {
        let ahead = timestamp.get_time().as_u64() + (1 << 32) / 4;
        put = put.timestamp(Timestamp::new(NTP64(ahead), *timestamp.get_id()));
    }
    put.wait().unwrap();
}

/// A publisher that an attacker imitates, and its reader.
struct Victim {
    publisher: Publisher<Text>,
    subscription: Subscription<Text>,
    heard: mpsc::Receiver<ZenohSample>,
    _spy: zenoh::pubsub::Subscriber<()>,
    published: u32,
}

impl Victim {
    fn new([here, there]: [&Node; 2], attacker: &zenoh::Session, qos: &QosProfile) -> Self {
        let name = format!("topic_{}", here.context().graph().topics().len());
        let profile = || name.as_str().qos(qos.clone());
        let publisher = here.create_publisher(profile()).unwrap();
        let subscription = there.create_polled_subscription(profile()).unwrap();
        let (send, heard) = mpsc::channel();
        let spy = attacker
            .declare_subscriber(format!("*/{name}/**"))
            .callback(move |sample| drop(send.send(sample)));
        let victim = Self {
            publisher,
            subscription,
            heard,
            _spy: spy.wait().unwrap(),
            published: 0,
        };
        assert!(victim.publisher.wait_for_matched(1, SOON));
        assert!(victim.subscription.wait_for_matched(1, SOON));
        victim
    }

    /// Publishes until ten messages in a row have arrived, and returns what the attacker
    /// heard last. A forged sample that is still on its way may interrupt them.
    fn expect_all(&mut self) -> ZenohSample {
        const PERIOD: Duration = Duration::from_millis(20);
        let (began, mut heard, mut in_a_row) = (Instant::now(), None, 0);
        let mut last = 0;
        while in_a_row < 10 || last < self.published || heard.is_none() {
            let counts = self.subscription.counts();
            assert!(began.elapsed() < SOON, "{in_a_row} in a row: {counts:?}");
            self.published += 1;
            self.publisher.publish(&text(self.published)).unwrap();
            heard = self.heard.try_iter().last().or(heard);
            while let Some(sample) = self.subscription.take_timeout(PERIOD) {
                let Ok(number) = sample.data.parse::<u32>() else {
                    continue;
                };
                let is_next = number == last + 1;
                in_a_row = if is_next { in_a_row + 1 } else { 1 };
                last = number;
                if last == self.published {
                    break;
                }
            }
        }
        heard.unwrap()
    }
}

#[test]
fn readers_are_whole_again_after_samples_in_the_name_of_their_publishers() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let attacker = net.plain_session();
    let plain = QosProfile::default;
    let latched = || plain().transient_local();
    let every_qos = [
        plain().keep_last(100),
        plain().keep_last(100).best_effort(),
        plain().keep_all(),
        latched().keep_last(10),
        latched().keep_last(1),
        latched().keep_last(10).best_effort(),
        latched().keep_all(),
    ];
    std::thread::scope(|scope| {
        for qos in every_qos {
            let mut victim = Victim::new([&talker, &listener], &attacker, &qos);
            let attacker = &attacker;
            scope.spawn(move || {
                for forgery in FORGERIES {
                    let last = victim.expect_all();
                    forge(attacker, &last, forgery);
                    let last = victim.expect_all();
                    // Twice, and beside its own.
                    for _ in 0..2 {
                        forge(attacker, &last, forgery);
                        victim.published += 1;
                        let next = text(victim.published);
                        victim.publisher.publish(&next).unwrap();
                    }
                    victim.expect_all();
                }
            });
        }
    });
}

#[test]
fn requests_in_the_name_of_a_client_do_not_disturb_its_calls() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let serving = here.create_node("serving").unwrap();
    let service = add_two_ints(&serving, "add_two_ints");
    let _spin = SpinThread::of_node(&serving, service);
    let asking = there.create_node("asking").unwrap();
    let client = asking.create_client::<AddTwoInts>("add_two_ints").unwrap();
    assert!(client.wait_for_service(SOON));
    let attacker = net.plain_session();
    let (send, heard) = mpsc::channel();
    let spy = attacker
        .declare_queryable("*/add_two_ints/**")
        .complete(true)
        .allowed_origin(Locality::Remote)
        .callback(move |query| {
            let attachment = query.attachment().map(|of| of.to_bytes().into_owned());
            drop(send.send((query.key_expr().clone(), attachment.unwrap())));
        });
    let _spy = spy.wait().unwrap();
    let mut last = None;
    for a in 0..10 {
        let answer = client.call(&AddTwoIntsRequest { a, b: 100 }, SOON);
        assert_eq!(answer.unwrap().sum, a + 100);
        last = heard.try_iter().last().or(last);
        let Some((key, attachment)) = &last else {
            continue;
        };
        for forgery in FORGERIES.into_iter().chain([(|last| last + 1) as Forgery]) {
            let forged = attacker
                .get(key.clone())
                .payload(payload(&AddTwoIntsRequest { a: 7, b: 7 }))
                .attachment(forged_attachment(attachment, forgery));
            // Until it has ended: more of them would be a flood, above the server's depth.
            let (send, ends) = mpsc::channel();
            let sent = forged.callback(move |reply| drop(send.send(reply)));
            sent.timeout(Duration::from_secs(5)).wait().unwrap();
            while ends.recv().is_ok() {}
        }
    }
    assert!(last.is_some(), "the attacker heard no request");
}
