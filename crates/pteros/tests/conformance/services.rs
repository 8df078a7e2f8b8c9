//! Questions and answers.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoInts_Request, AddTwoInts_Response,
};
use pteros::prelude::*;
use pteros::{CallError, ServiceCall, ServiceOptions};
use pteros_sim::Work;

use crate::stage::{PATIENCE, Spun, Stage};

const NAME: &str = "add_two_ints";

fn request(a: i64, b: i64) -> AddTwoInts_Request {
    AddTwoInts_Request { a, b }
}

fn sum(request: Sample<AddTwoInts_Request>) -> AddTwoInts_Response {
    AddTwoInts_Response {
        sum: request.a + request.b,
    }
}

/// The server's side and what keeps it at work.
fn adder(stage: &Stage) -> (Service<AddTwoInts>, Spun) {
    let service = stage.publishing.create_service(NAME, sum).unwrap();
    (service, stage.spin(&stage.publishing))
}

fn client(stage: &Stage) -> Client<AddTwoInts> {
    stage.subscribing.create_client(NAME).unwrap()
}

pub fn every_call_gets_the_answer_to_its_request(stage: &Stage) {
    let (service, _spun) = adder(stage);
    let client = client(stage);
    for n in 0..50 {
        let answer = client.call(&request(n, 1_000), PATIENCE).unwrap();
        assert_eq!(answer.sum, n + 1_000);
        assert_eq!(answer.info().path, stage.path());
    }
    assert_eq!(client.open_calls(), 0);
    assert_eq!(client.stray_answers(), 0);
    assert_eq!(service.client_count(), 1);
}

pub fn each_client_gets_its_own_answers(stage: &Stage) {
    let (service, _spun) = adder(stage);
    let clients: Vec<_> = (0..4).map(|_| client(stage)).collect();
    let mut askers: Vec<Work<'_>> = Vec::new();
    for (at, client) in (1..).zip(&clients) {
        // Two threads wait on each.
        for half in 0..2 {
            askers.push(Box::new(move || {
                for n in 0..25 {
                    let asked = request(at * 1_000, half * 100 + n);
                    let answer = client.call(&asked, PATIENCE).unwrap();
                    assert_eq!(answer.sum, asked.a + asked.b);
                }
            }));
        }
    }
    stage.beside_all(askers, || {});
    assert_eq!(service.client_count(), 4);
    assert!(clients.iter().all(|client| client.stray_answers() == 0));
}

pub fn the_first_answer_of_a_server_just_started_is_not_lost(stage: &Stage) {
    for n in 0..5 {
        let client = client(stage);
        stage.until("the one before is gone", || !client.is_ready());
        let (_service, _spun) = adder(stage);
        assert_eq!(client.call(&request(n, 1), PATIENCE).unwrap().sum, n + 1);
    }
}

pub fn a_call_that_nobody_serves_says_so(stage: &Stage) {
    let client = client(stage);
    let missing = client.call_async(&request(1, 2)).unwrap_err();
    assert!(matches!(missing, CallError::NoServer { waited_ms: 0, .. }));
    let waited = client.call(&request(1, 2), Duration::from_millis(30));
    assert_eq!(
        waited.unwrap_err().to_string(),
        "service \"/add_two_ints\": no server of type example_interfaces/srv/AddTwoInts is there \
         after 30 ms; start one, or compare names and types with `pteros service list -t`"
    );
}

pub fn an_answer_may_come_later_and_from_any_thread(stage: &Stage) {
    let (send, calls) = mpsc::channel::<ServiceCall<AddTwoInts_Request, AddTwoInts_Response>>();
    let options = ServiceOptions::default();
    let _service = stage
        .publishing
        .create_deferred_service::<AddTwoInts>(NAME, options, move |call| send.send(call).unwrap())
        .unwrap();
    let _spun = stage.spin(&stage.publishing);
    let client = client(stage);
    assert!(client.wait_for_service(PATIENCE));
    let first = client.call_async(&request(1, 1)).unwrap();
    let second = client.call_async(&request(2, 2)).unwrap();
    let both = [(); 2].map(|()| stage.received(&calls));
    // In the other order.
    for call in both.into_iter().rev() {
        let sum = call.request().a + call.request().b;
        call.respond(AddTwoInts_Response { sum }).unwrap();
    }
    assert_eq!(first.wait(PATIENCE).unwrap().sum, 2);
    assert_eq!(second.wait(PATIENCE).unwrap().sum, 4);
}

pub fn an_answer_that_nobody_waits_for_any_more_is_counted(stage: &Stage) {
    let (send, calls) = mpsc::channel();
    let options = ServiceOptions::default();
    let _service = stage
        .publishing
        .create_deferred_service::<AddTwoInts>(NAME, options, move |call| send.send(call).unwrap())
        .unwrap();
    let _spun = stage.spin(&stage.publishing);
    let client = client(stage);
    assert!(client.wait_for_service(PATIENCE));
    let in_time = Duration::from_millis(20);
    let late = client.call_async(&request(1, 1)).unwrap().wait(in_time);
    let service = "/add_two_ints".into();
    let waited_ms = 20;
    assert_eq!(
        late.unwrap_err(),
        CallError::TimedOut { service, waited_ms }
    );
    assert_eq!(client.open_calls(), 0);
    let response = AddTwoInts_Response { sum: 2 };
    stage.received(&calls).respond(response).unwrap();
    let mut next = client.call_async(&request(3, 3)).unwrap();
    let response = AddTwoInts_Response { sum: 6 };
    stage.received(&calls).respond(response).unwrap();
    let mut answer = None;
    stage.until("the next answer", || {
        answer = answer.take().or_else(|| next.take());
        answer.is_some()
    });
    assert_eq!(answer.unwrap().unwrap().sum, 6);
    assert_eq!(client.stray_answers(), 1);
}

pub fn a_call_ends_when_its_server_goes_away(stage: &Stage) {
    let options = ServiceOptions::default();
    let (send, calls) = mpsc::channel();
    let service = stage
        .publishing
        .create_deferred_service::<AddTwoInts>(NAME, options, move |call| send.send(call).unwrap())
        .unwrap();
    let spun = stage.spin(&stage.publishing);
    let client = client(stage);
    assert!(client.wait_for_service(PATIENCE));
    let call = client.call_async(&request(1, 1)).unwrap();
    let unanswered = stage.received(&calls);
    drop((spun, service, unanswered));
    // Another that comes in time was not asked.
    let _other = adder(stage);
    let service = "/add_two_ints".into();
    assert_eq!(
        call.wait(PATIENCE).unwrap_err(),
        CallError::ServerGone { service }
    );
    assert_eq!(client.open_calls(), 0);
}

pub fn of_two_servers_the_first_to_answer_is_heard(stage: &Stage) {
    let (_one, _spun) = adder(stage);
    let _other: Service<AddTwoInts> = stage.publishing.create_service(NAME, sum).unwrap();
    let client = client(stage);
    assert!(client.wait_for_service(PATIENCE));
    for n in 0..20 {
        assert_eq!(client.call(&request(n, n), PATIENCE).unwrap().sum, 2 * n);
    }
    assert_eq!(client.open_calls(), 0);
}

pub fn a_callback_is_handed_its_answer_by_the_executor(stage: &Stage) {
    let (_service, _spun) = adder(stage);
    let client = client(stage);
    assert!(client.wait_for_service(PATIENCE));
    let total = Arc::new(AtomicUsize::new(0));
    for n in 1..=10 {
        let total = total.clone();
        client
            .call_then(&request(n, 0), move |answer| {
                let sum = usize::try_from(answer.unwrap().sum).unwrap();
                total.fetch_add(sum, Ordering::Relaxed);
            })
            .unwrap();
    }
    let all = || total.load(Ordering::Relaxed) == 55;
    assert!(stage.subscribing.spin_until(all, PATIENCE));
}

/// Whether a future wants to be polled.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

pub fn a_call_is_a_future_that_the_executor_completes(stage: &Stage) {
    let (_service, _server) = adder(stage);
    let client = client(stage);
    assert!(client.wait_for_service(PATIENCE));
    let _spun = stage.spin(&stage.subscribing);
    let mut call = pin!(client.call_async(&request(20, 22)).unwrap());
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    let mut context = TaskContext::from_waker(&waker);
    let answer = loop {
        if let Poll::Ready(answer) = call.as_mut().poll(&mut context) {
            break answer;
        }
        stage.until("the answer", || woken.0.swap(false, Ordering::AcqRel));
    };
    assert_eq!(answer.unwrap().sum, 42);
}
