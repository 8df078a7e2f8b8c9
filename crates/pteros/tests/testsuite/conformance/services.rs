//! Services: requests and responses.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::prelude::*;
use pteros::{
    ServiceOptions,
    service::{CallError, PendingRequest},
};
use pteros_sim::ThreadBody;

use crate::conformance::harness::{Harness, SpinThread, TIMEOUT};

const NAME: &str = "add_two_ints";

fn request(a: i64, b: i64) -> AddTwoIntsRequest {
    AddTwoIntsRequest { a, b }
}

fn sum(request: Sample<AddTwoIntsRequest>) -> AddTwoIntsResponse {
    AddTwoIntsResponse {
        sum: request.a + request.b,
    }
}

/// The server, and the thread that spins it.
fn adder(harness: &Harness) -> (Service<AddTwoInts>, SpinThread) {
    let service = harness.publishing.create_service(NAME, sum).unwrap();
    (service, harness.spin(&harness.publishing))
}

fn client(harness: &Harness) -> Client<AddTwoInts> {
    harness.subscribing.create_client(NAME).unwrap()
}

pub fn every_call_gets_the_response_to_its_request(harness: &Harness) {
    let (service, _spun) = adder(harness);
    let client = client(harness);
    for n in 0..50 {
        let answer = client.call(&request(n, 1_000), TIMEOUT).unwrap();
        assert_eq!(answer.sum, n + 1_000);
        assert_eq!(answer.info().delivery_path, harness.path());
    }
    assert_eq!(client.pending_request_count(), 0);
    assert_eq!(client.unmatched_response_count(), 0);
    assert_eq!(service.client_count(), 1);
}

pub fn each_client_gets_its_own_responses(harness: &Harness) {
    let (service, _spun) = adder(harness);
    let clients: Vec<_> = (0..4).map(|_| client(harness)).collect();
    let mut askers: Vec<ThreadBody<'_>> = Vec::new();
    for (at, client) in (1..).zip(&clients) {
        // Two threads wait on each.
        for half in 0..2 {
            askers.push(Box::new(move || {
                for n in 0..25 {
                    let asked = request(at * 1_000, half * 100 + n);
                    let answer = client.call(&asked, TIMEOUT).unwrap();
                    assert_eq!(answer.sum, asked.a + asked.b);
                }
            }));
        }
    }
    harness.run_all_concurrently(askers, || {});
    assert_eq!(service.client_count(), 4);
    assert!(
        clients
            .iter()
            .all(|client| client.unmatched_response_count() == 0)
    );
}

pub fn the_first_response_of_a_server_just_started_is_not_lost(harness: &Harness) {
    for n in 0..5 {
        let client = client(harness);
        harness.wait_until("the one before is gone", || !client.service_is_ready());
        let (_service, _spun) = adder(harness);
        assert_eq!(client.call(&request(n, 1), TIMEOUT).unwrap().sum, n + 1);
    }
}

pub fn a_call_without_a_server_fails_with_no_server(harness: &Harness) {
    let client = client(harness);
    let missing = client.call_async(&request(1, 2)).unwrap_err();
    assert!(matches!(missing, CallError::NoServer { waited_ms: 0, .. }));
    let waited = client.call(&request(1, 2), Duration::from_millis(30));
    assert_eq!(
        waited.unwrap_err().to_string(),
        "service \"/add_two_ints\": no server of type example_interfaces/srv/AddTwoInts is available \
         after 30 ms; start one, or compare names and types with `pteros service list -t`"
    );
}

pub fn a_response_may_be_sent_later_and_from_any_thread(harness: &Harness) {
    let (send, calls) = mpsc::channel::<PendingRequest<AddTwoIntsRequest, AddTwoIntsResponse>>();
    let options = ServiceOptions::new(NAME);
    let _service = Service::<AddTwoInts>::deferred(&harness.publishing, options, move |call| {
        send.send(call).unwrap()
    })
    .unwrap();
    let _spun = harness.spin(&harness.publishing);
    let client = client(harness);
    assert!(client.wait_for_service(TIMEOUT));
    let first = client.call_async(&request(1, 1)).unwrap();
    let second = client.call_async(&request(2, 2)).unwrap();
    let both = [(); 2].map(|()| harness.received(&calls));
    // In the other order.
    for call in both.into_iter().rev() {
        let sum = call.request().a + call.request().b;
        call.respond(AddTwoIntsResponse { sum }).unwrap();
    }
    assert_eq!(first.wait(TIMEOUT).unwrap().sum, 2);
    assert_eq!(second.wait(TIMEOUT).unwrap().sum, 4);
}

pub fn a_response_after_its_call_ended_is_counted(harness: &Harness) {
    let (send, calls) = mpsc::channel();
    let options = ServiceOptions::new(NAME);
    let _service = Service::<AddTwoInts>::deferred(&harness.publishing, options, move |call| {
        send.send(call).unwrap()
    })
    .unwrap();
    let _spun = harness.spin(&harness.publishing);
    let client = client(harness);
    assert!(client.wait_for_service(TIMEOUT));
    let in_time = Duration::from_millis(20);
    let late = client.call_async(&request(1, 1)).unwrap().wait(in_time);
    let late = late.unwrap_err();
    assert!(
        matches!(&late, CallError::TimedOut { service, waited_ms: 20 } if service == "/add_two_ints"),
        "{late}"
    );
    assert_eq!(client.pending_request_count(), 0);
    let response = AddTwoIntsResponse { sum: 2 };
    harness.received(&calls).respond(response).unwrap();
    let mut next = client.call_async(&request(3, 3)).unwrap();
    let response = AddTwoIntsResponse { sum: 6 };
    harness.received(&calls).respond(response).unwrap();
    let mut answer = None;
    harness.wait_until("the next answer", || {
        answer = answer.take().or_else(|| next.take());
        answer.is_some()
    });
    assert_eq!(answer.unwrap().unwrap().sum, 6);
    assert_eq!(client.unmatched_response_count(), 1);
}

pub fn a_call_fails_when_its_server_leaves(harness: &Harness) {
    let options = ServiceOptions::new(NAME);
    let (send, calls) = mpsc::channel();
    let service = Service::<AddTwoInts>::deferred(&harness.publishing, options, move |call| {
        send.send(call).unwrap()
    })
    .unwrap();
    let spun = harness.spin(&harness.publishing);
    let client = client(harness);
    assert!(client.wait_for_service(TIMEOUT));
    let call = client.call_async(&request(1, 1)).unwrap();
    let unanswered = harness.received(&calls);
    drop((spun, service, unanswered));
    // A server that appears later did not get the request.
    let _other = adder(harness);
    let lost = call.wait(TIMEOUT).unwrap_err();
    assert!(
        matches!(&lost, CallError::ServerLost { service } if service == "/add_two_ints"),
        "{lost}"
    );
    assert_eq!(client.pending_request_count(), 0);
}

pub fn the_first_response_of_two_servers_counts(harness: &Harness) {
    let (_one, _spun) = adder(harness);
    let _other: Service<AddTwoInts> = harness.publishing.create_service(NAME, sum).unwrap();
    let client = client(harness);
    assert!(client.wait_for_service(TIMEOUT));
    for n in 0..20 {
        assert_eq!(client.call(&request(n, n), TIMEOUT).unwrap().sum, 2 * n);
    }
    assert_eq!(client.pending_request_count(), 0);
}

pub fn the_executor_runs_the_response_callback(harness: &Harness) {
    let (_service, _spun) = adder(harness);
    let client = client(harness);
    assert!(client.wait_for_service(TIMEOUT));
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
    assert!(harness.subscribing.spin_until(all, TIMEOUT));
}

/// Whether a future's waker was called.
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

pub fn a_call_is_a_future_that_the_executor_completes(harness: &Harness) {
    let (_service, _server) = adder(harness);
    let client = client(harness);
    assert!(client.wait_for_service(TIMEOUT));
    let _spun = harness.spin(&harness.subscribing);
    let mut call = pin!(client.call_async(&request(20, 22)).unwrap());
    let woken = Arc::new(WakeFlag(AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    let mut context = TaskContext::from_waker(&waker);
    let answer = loop {
        if let Poll::Ready(answer) = call.as_mut().poll(&mut context) {
            break answer;
        }
        harness.wait_until("the answer", || woken.0.swap(false, Ordering::AcqRel));
    };
    assert_eq!(answer.unwrap().sum, 42);
}
