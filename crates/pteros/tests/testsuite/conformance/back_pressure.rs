//! Back-pressure: readers slower than their writers.

use std::time::Duration;

use pteros::prelude::*;
use pteros::{error::PublishError, event_handler::EndpointEvent};

use crate::conformance::harness::{EventLog, Harness, TIMEOUT, text};

/// KEEP_ALL with a limit of `samples`.
fn keep_all(samples: u32) -> QosProfile {
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(samples);
    qos.max_blocking_time = Some(TIMEOUT);
    qos
}

pub fn a_slow_reader_gets_every_keep_all_sample(harness: &Harness) {
    const COUNT: usize = 500;
    let (publisher, subscription) = harness.pair(&keep_all(7));
    let writing = || {
        for n in 0..COUNT {
            publisher.publish(&text(n)).unwrap();
        }
    };
    harness.run_concurrently(writing, || {
        for n in 0..COUNT {
            if n % 50 == 0 {
                // Long enough for every queue on the path to fill up.
                harness.poll_for(Duration::from_millis(20), || false);
            }
            let sample = subscription.take_timeout(TIMEOUT);
            assert_eq!(*sample.expect("the next one"), text(n));
        }
    });
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().lost, 0);
    assert!(publisher.wait_for_all_acked(TIMEOUT));
}

pub fn a_blocked_writer_continues_once_a_late_joiner_has_caught_up(harness: &Harness) {
    // The last of them arrive when half of four were taken, and do not fill it up.
    const KEPT: usize = 7;
    let publisher = harness.publisher(&keep_all(KEPT as u32).transient_local());
    for n in 0..KEPT {
        publisher.publish(&text(n)).unwrap();
    }
    let late = harness.subscription(&keep_all(4).transient_local());
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    let writing = || {
        for n in KEPT..4 * KEPT {
            publisher.publish(&text(n)).unwrap();
        }
    };
    harness.run_concurrently(writing, || {
        // Long enough for the writer to block.
        harness.poll_for(Duration::from_millis(20), || false);
        for n in 0..4 * KEPT {
            // Without waiting for samples, which would wake the writer.
            let mut sample = late.take();
            let begin = harness.now();
            while sample.is_none() {
                let waited = harness.now() - begin;
                assert!(waited < TIMEOUT / 2, "sample {n} does not come");
                harness.yield_now();
                sample = late.take();
            }
            assert_eq!(*sample.unwrap(), text(n));
        }
    });
    assert_eq!(late.counts().lost, 0);
}

pub fn a_writer_blocks_at_most_max_blocking_time(harness: &Harness) {
    let patient = keep_all(4);
    let hasty = QosProfile {
        max_blocking_time: Some(Duration::from_millis(300)),
        ..patient.clone()
    };
    let (publisher, subscription) = harness.pair_of(&hasty, &patient);
    let mut accepted = 0;
    let refusal = loop {
        match publisher.publish(&text(accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 100, "no sample is taken, yet all is accepted");
    };
    let PublishError::TimedOut { topic, waited_ms } = refusal else {
        panic!("{refusal}");
    };
    assert_eq!(topic, "/topic");
    assert!(waited_ms >= 299, "{waited_ms}");
    // Accepted samples arrive; refused ones do not.
    for n in 0..accepted {
        let sample = subscription.take_timeout(TIMEOUT);
        assert_eq!(*sample.expect("an accepted one"), text(n));
    }
    publisher.publish(&text(accepted)).unwrap();
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(accepted));
}

pub fn a_best_effort_writer_never_waits(harness: &Harness) {
    let (publisher, subscription) = harness.pair(&keep_all(3).best_effort());
    for n in 0..50 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(*subscription.take_timeout(TIMEOUT).unwrap(), text(0));
}

pub fn a_keep_last_writer_never_waits(harness: &Harness) {
    let (publisher, subscription) =
        harness.pair_of(&QosProfile::default().keep_last(2), &keep_all(3));
    for n in 0..50 {
        publisher.publish(&text(n)).unwrap();
    }
    let mut taken = 0;
    let mut seen = EventLog::by(|| subscription.take_event());
    let _ = seen.any(|e| matches!(e, EndpointEvent::SampleLost { .. }));
    harness.wait_until("each is handed over or counted as lost", || {
        while subscription.take().is_some() {
            taken += 1;
        }
        taken + subscription.counts().lost == 50
    });
    assert!(taken >= 3, "{taken}");
}
