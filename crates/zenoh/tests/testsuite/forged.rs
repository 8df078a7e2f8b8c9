//! Data in the name of a living publisher or client: its gid, its numbers in the attachment
//! and in Zenoh's own header, its timestamps. What is forged may be delivered, and readers are
//! whole again. Unit tests say how soon, on fake time. And queryables of strangers that match
//! the history of publishers.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use pteros::action::GoalStatus;
use pteros::interfaces::example_interfaces::action::{
    FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::Message;
use pteros::msg::cdr::{Representation, to_payload};
use pteros::prelude::*;
use pteros::subscription::Subscription;
use zenoh::Wait as _;
use zenoh::sample::{Locality, Sample as ZenohSample, SourceInfo};
use zenoh::time::{NTP64, Timestamp};

use crate::harness::{FibonacciAction, Net, SOON, add_two_ints, next, text, until};
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
    let attachment = forged_attachment(&attachment, forgery);
    let ahead = |time: &NTP64| time.as_u64() + (1 << 32) / 4;
    put_forged(session, of, forgery, attachment, &ahead);
}

fn put_forged(
    session: &zenoh::Session,
    of: &ZenohSample,
    forgery: Forgery,
    attachment: Vec<u8>,
    time: &dyn Fn(&NTP64) -> u64,
) {
    let mut put = session
        .put(of.key_expr().clone(), payload(&text(FORGED)))
        .attachment(attachment);
    if let Some(info) = of.source_info() {
        // Zenoh's numbers begin with 0.
        let number = forgery(i64::from(info.source_sn()) + 1) - 1;
        let number = u32::try_from(number.max(0)).unwrap_or(u32::MAX / 3);
        put = put.source_info(SourceInfo::new(*info.source_id(), number));
    } else if let Some(timestamp) = of.timestamp() {
        let time = NTP64(time(timestamp.get_time()));
        put = put.timestamp(Timestamp::new(time, *timestamp.get_id()));
    }
    put.wait().unwrap();
}

/// The gid in a sample's attachment.
fn gid_of(sample: &ZenohSample) -> Vec<u8> {
    sample.attachment().unwrap().to_bytes()[17..].to_vec()
}

/// Publishers of one topic that an attacker imitates, and their reader.
struct Victim {
    publishers: Vec<Publisher<Text>>,
    subscription: Subscription<Text>,
    heard: mpsc::Receiver<ZenohSample>,
    _spy: zenoh::pubsub::Subscriber<()>,
    published: u32,
}

impl Victim {
    fn new(here: &[&Node], there: &Node, attacker: &zenoh::Session, qos: &QosProfile) -> Self {
        let name = format!("topic_{}", there.context().graph().topics().len());
        let profile = || name.as_str().qos(qos.clone());
        let publishers = here.iter().map(|here| here.create_publisher(profile()));
        let publishers: Vec<Publisher<Text>> = publishers.map(Result::unwrap).collect();
        let subscription = there.create_polled_subscription(profile()).unwrap();
        let (send, heard) = mpsc::channel();
        let spy = attacker
            .declare_subscriber(format!("*/{name}/**"))
            .allowed_origin(Locality::Remote)
            .callback(move |sample| drop(send.send(sample)));
        let victim = Self {
            publishers,
            subscription,
            heard,
            _spy: spy.wait().unwrap(),
            published: 0,
        };
        for publisher in &victim.publishers {
            assert!(publisher.wait_for_matched(1, SOON));
        }
        let count = victim.publishers.len();
        assert!(victim.subscription.wait_for_matched(count, SOON));
        victim
    }

    /// Publishes the next number by each publisher.
    fn publish(&mut self) {
        self.published += 1;
        for (at, publisher) in self.publishers.iter().enumerate() {
            let next = format!("{at} {}", self.published);
            publisher.publish(&text(next)).unwrap();
        }
    }

    /// Publishes until ten messages in a row of each publisher have arrived, and returns what
    /// the attacker heard of each last. A forged sample that is still on its way may interrupt
    /// them.
    fn expect_all(&mut self) -> Vec<ZenohSample> {
        const PERIOD: Duration = Duration::from_millis(20);
        let began = Instant::now();
        let mut heard = BTreeMap::new();
        let count = self.publishers.len();
        // Of each publisher: how many in a row, and the last one.
        let mut rows = vec![(0, 0); count];
        let is_whole = |rows: &[(u32, u32)], last| {
            rows.iter()
                .all(|(row, number)| *row >= 10 && *number == last)
        };
        while !is_whole(&rows, self.published) || heard.len() < count {
            let counts = self.subscription.counts();
            assert!(began.elapsed() < SOON, "{rows:?} in a row: {counts:?}");
            self.publish();
            let samples = self.heard.try_iter();
            heard.extend(samples.map(|sample| (gid_of(&sample), sample)));
            while let Some(sample) = self.subscription.take_timeout(PERIOD) {
                let Some((at, number)) = sample.data.split_once(' ') else {
                    continue;
                };
                let number = number.parse::<u32>().unwrap();
                let (row, last) = &mut rows[at.parse::<usize>().unwrap()];
                *row = if number == *last + 1 { *row + 1 } else { 1 };
                *last = number;
                if rows.iter().all(|(_, last)| *last == self.published) {
                    break;
                }
            }
        }
        heard.into_values().collect()
    }
}

/// The one of depth 1.
const LATEST: usize = 4;

fn every_qos() -> [QosProfile; 7] {
    let plain = QosProfile::default;
    let latched = || plain().transient_local();
    [
        plain().keep_last(100),
        plain().keep_last(100).best_effort(),
        plain().keep_all(),
        latched().keep_last(10),
        latched().keep_last(1),
        latched().keep_last(10).best_effort(),
        latched().keep_all(),
    ]
}

#[test]
fn readers_are_whole_again_after_samples_in_the_name_of_their_publishers() {
    let net = Net::new();
    let [here, beside, there] = [net.open(), net.open(), net.open()];
    let [talker, second] = [&here, &beside].map(|of| of.create_node("talker").unwrap());
    let listener = there.create_node("listener").unwrap();
    let attacker = net.plain_session();
    std::thread::scope(|scope| {
        for qos in every_qos() {
            // Both at once, on the same topic. A reader of depth 1 keeps one of the two.
            let is_latest = qos == every_qos()[LATEST];
            for talkers in [&[&talker][..], &[&talker, &second]] {
                if is_latest && talkers.len() > 1 {
                    continue;
                }
                let mut victim = Victim::new(talkers, &listener, &attacker, &qos);
                let attacker = &attacker;
                scope.spawn(move || {
                    for forgery in FORGERIES {
                        for last in victim.expect_all() {
                            forge(attacker, &last, forgery);
                        }
                        let last = victim.expect_all();
                        // Twice, and beside its own.
                        for _ in 0..2 {
                            for last in &last {
                                forge(attacker, last, forgery);
                            }
                            victim.publish();
                        }
                        victim.expect_all();
                    }
                });
            }
        }
    });
}

/// Stamps of the application, and Zenoh's own times.
#[test]
fn readers_are_whole_again_after_samples_from_the_far_future_and_past() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let attacker = net.plain_session();
    std::thread::scope(|scope| {
        for qos in every_qos() {
            let limited = qos.lifespan(Duration::from_secs(100));
            let mut victim = Victim::new(&[&talker], &listener, &attacker, &limited);
            let attacker = &attacker;
            scope.spawn(move || {
                for (stamp, time) in [
                    (i64::MAX, u64::MAX),
                    (i64::MIN, 0),
                    (-1, 1 << 63),
                    (4_000_000_000_000_000_000, 1 << 62),
                    (1, 1 << 32),
                ] {
                    let last = victim.expect_all().remove(0);
                    let attachment = last.attachment().unwrap().to_bytes();
                    let next: Forgery = |last| last + 1;
                    let mut attachment = forged_attachment(&attachment, next);
                    attachment[8..16].copy_from_slice(&stamp.to_le_bytes());
                    put_forged(attacker, &last, next, attachment, &|_| time);
                    victim.expect_all();
                }
            });
        }
    });
}

/// What a stranger's queryable does with the queries for a history.
#[derive(Clone, Copy, PartialEq, Debug)]
enum ForeignQueryable {
    /// It keeps the query, so that it never ends.
    Silent,
    /// It sends replies for ever, in its own name and in that of publishers.
    Endless,
}

/// Regression: a subscription waited up to ten minutes for all queryables that match its query,
/// and so did the live samples of every publisher.
#[test]
fn a_queryable_of_a_stranger_delays_no_history_by_more_than_two_seconds() {
    for stranger in [ForeignQueryable::Silent, ForeignQueryable::Endless] {
        let net = Net::new();
        let [here, there] = [net.open(), net.open()];
        let talker = here.create_node("talker").unwrap();
        let listener = there.create_node("listener").unwrap();
        let attacker = net.plain_session();
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (ends, keeps) = (is_over.clone(), kept.clone());
        let queryable = attacker
            .declare_queryable("**/@adv/**")
            .callback(move |query| {
                let query = Arc::new(query);
                keeps.lock().unwrap().push(query.clone());
                let ends = ends.clone();
                let endless = move || {
                    for number in 0_u32.. {
                        let (is_over, changed) = &*ends;
                        let millisecond = Duration::from_millis(1);
                        let is_over = is_over.lock().unwrap();
                        let waited =
                            changed.wait_timeout_while(is_over, millisecond, |over| !*over);
                        if *waited.unwrap().0 {
                            return;
                        }
                        let reply = query.reply("0/forged", vec![0; 64]);
                        let id = number % 5;
                        let source = zenoh::session::EntityGlobalId::new(Default::default(), id);
                        let reply = reply.source_info(SourceInfo::new(source, number));
                        if reply.attachment(vec![0; 33]).wait().is_err() {
                            return;
                        }
                    }
                };
                if stranger == ForeignQueryable::Endless {
                    std::thread::spawn(endless);
                }
            });
        let _queryable = queryable.wait().unwrap();
        let latched = QosProfile::default().transient_local();
        let every = [
            latched.clone().keep_last(10),
            latched.clone().keep_last(1),
            latched.clone().keep_last(10).best_effort(),
            latched.keep_all(),
        ];
        std::thread::scope(|scope| {
            for (at, qos) in every.into_iter().enumerate() {
                let (talker, listener) = (&talker, &listener);
                scope.spawn(move || {
                    let topic = format!("latched_{at}");
                    let profile = || topic.as_str().qos(qos.clone());
                    let publisher: Publisher<Text> = talker.create_publisher(profile()).unwrap();
                    for n in 1..=3 {
                        publisher.publish(&text(n)).unwrap();
                    }
                    let began = Instant::now();
                    let late: Subscription<Text> =
                        listener.create_polled_subscription(profile()).unwrap();
                    let first = if at == 1 { 3 } else { 1 };
                    for n in first..=3 {
                        assert_eq!(next(&late), n.to_string(), "{stranger:?} {at}");
                    }
                    let waited = began.elapsed();
                    assert!(
                        waited < Duration::from_secs(8),
                        "{stranger:?} {at}: {waited:?}"
                    );
                    assert!(publisher.wait_for_matched(1, SOON));
                    for n in 4..=9 {
                        publisher.publish(&text(n)).unwrap();
                        assert_eq!(next(&late), n.to_string(), "{stranger:?} {at}");
                    }
                    assert_eq!(late.counts().lost, 0);
                });
            }
        });
        assert!(!kept.lock().unwrap().is_empty(), "it was never asked");
        *is_over.0.lock().unwrap() = true;
        is_over.1.notify_all();
        kept.lock().unwrap().clear();
    }
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

/// Feedback, status and replies of an action, forged while goals run.
#[test]
fn goals_succeed_beside_forged_feedback_status_and_replies() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let action = FibonacciAction::new(&here, &there);
    let attacker = net.plain_session();
    let (send, heard) = mpsc::channel();
    let spy = attacker
        .declare_subscriber("*/fibonacci/_action/**")
        .allowed_origin(Locality::Remote)
        .callback(move |sample| drop(send.send(sample)));
    let _spy = spy.wait().unwrap();
    // It replies first, with bytes that are no reply.
    let garbage = attacker
        .declare_queryable("*/fibonacci/_action/**")
        .complete(true)
        .callback(|query| {
            let attachment = query.attachment().map(|of| of.to_bytes().into_owned());
            for bytes in [vec![], vec![0, 1, 0, 0], vec![0xff; 64]] {
                let reply = query.reply(query.key_expr().clone(), bytes);
                let _ = reply.attachment(attachment.clone().unwrap()).wait();
            }
        });
    let _garbage = garbage.wait().unwrap();
    let mut forged = 0;
    for order in 1..=8 {
        let fed = Arc::new(Mutex::new(Vec::<i32>::new()));
        let sink = fed.clone();
        let on_feedback = move |feedback: &FibonacciFeedback| {
            sink.lock().unwrap().extend(feedback.sequence.first());
        };
        let order_of = FibonacciGoal { order };
        let goal = action
            .client
            .send_goal_with_feedback(order_of, on_feedback, SOON);
        let goal = goal.unwrap();
        let served = action.goals.recv_timeout(SOON).unwrap();
        let mut own = order * 1_000;
        let mut attack = || {
            for sample in heard.try_iter() {
                // Feedback and status of the goal, with the bytes of the goal's state changed.
                let mut bytes = sample.payload().to_bytes().into_owned();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 7;
                }
                let attachment = sample.attachment().unwrap().to_bytes();
                for forgery in FORGERIES {
                    let attachment = forged_attachment(&attachment, forgery);
                    let mut put = attacker.put(sample.key_expr().clone(), bytes.clone());
                    if let Some(info) = sample.source_info() {
                        let number = info.source_sn().wrapping_add(100);
                        put = put.source_info(SourceInfo::new(*info.source_id(), number));
                    }
                    put.attachment(attachment).wait().unwrap();
                    forged += 1;
                }
            }
        };
        // Whole again: feedback published from now on arrives.
        until(&there, || {
            attack();
            own += 1;
            let sequence = vec![own];
            served.publish_feedback(FibonacciFeedback { sequence });
            let fed = fed.lock().unwrap();
            let row = fed.windows(2).rev().take_while(|two| two[1] == two[0] + 1);
            row.count() >= 5
        });
        let result = FibonacciResult {
            sequence: vec![order],
        };
        served.succeed(result.clone()).unwrap();
        let outcome = goal.result(SOON).unwrap();
        assert_eq!(outcome.status, GoalStatus::Succeeded, "{order}");
        assert_eq!(outcome.result, result);
    }
    assert!(forged > 100, "{forged} samples were forged");
}
