//! Readers slower than their writers.

use std::time::Duration;

use pteros::prelude::*;
use pteros::{EndpointEvent, PublishError};

use crate::stage::{PATIENCE, Seen, Stage, text};

/// KEEP_ALL with room for `samples`.
fn keep_all(samples: u32) -> QosProfile {
    let mut qos = QosProfile::default().keep_all();
    qos.resource_limits.max_samples = Some(samples);
    qos.max_blocking_time = Some(PATIENCE);
    qos
}

pub fn a_slow_reader_gets_all_that_keep_all_wrote(stage: &Stage) {
    const COUNT: usize = 500;
    let (publisher, subscription) = stage.pair(&keep_all(7));
    let writing = || {
        for n in 0..COUNT {
            publisher.publish(&text(n)).unwrap();
        }
    };
    stage.beside(writing, || {
        for n in 0..COUNT {
            if n % 50 == 0 {
                // Long enough for every queue on the way to fill up.
                stage.watch(Duration::from_millis(20), || false);
            }
            let sample = subscription.take_timeout(PATIENCE);
            assert_eq!(*sample.expect("the next one"), text(n));
        }
    });
    assert!(subscription.take().is_none());
    assert_eq!(subscription.counts().lost, 0);
    assert!(publisher.wait_for_all_acked(PATIENCE));
}

pub fn a_writer_goes_on_as_soon_as_a_late_joiner_has_caught_up(stage: &Stage) {
    // The last of them come when half of four were taken, and do not fill up.
    const KEPT: usize = 7;
    let publisher = stage.publisher(&keep_all(KEPT as u32).transient_local());
    for n in 0..KEPT {
        publisher.publish(&text(n)).unwrap();
    }
    let late = stage.subscription(&keep_all(4).transient_local());
    assert!(publisher.wait_for_matched(1, PATIENCE));
    let writing = || {
        for n in KEPT..4 * KEPT {
            publisher.publish(&text(n)).unwrap();
        }
    };
    stage.beside(writing, || {
        // Long enough for it to find that it must wait.
        stage.watch(Duration::from_millis(20), || false);
        for n in 0..4 * KEPT {
            // Without waiting for samples, which would wake the writer up.
            let mut sample = late.take();
            let begin = stage.now();
            while sample.is_none() {
                let waited = stage.now() - begin;
                assert!(waited < PATIENCE / 2, "sample {n} does not come");
                stage.step_aside();
                sample = late.take();
            }
            assert_eq!(*sample.unwrap(), text(n));
        }
    });
    assert_eq!(late.counts().lost, 0);
}

pub fn a_writer_waits_no_longer_than_it_was_told(stage: &Stage) {
    let patient = keep_all(4);
    let hasty = QosProfile {
        max_blocking_time: Some(Duration::from_millis(300)),
        ..patient.clone()
    };
    let (publisher, subscription) = stage.pair_of(&hasty, &patient);
    let mut accepted = 0;
    let refusal = loop {
        match publisher.publish(&text(accepted)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 100, "nobody takes, yet all is accepted");
    };
    let PublishError::TimedOut { topic, waited_ms } = refusal else {
        panic!("{refusal}");
    };
    assert_eq!(topic, "/topic");
    assert!(waited_ms >= 299, "{waited_ms}");
    // What was accepted arrives; what was refused does not.
    for n in 0..accepted {
        let sample = subscription.take_timeout(PATIENCE);
        assert_eq!(*sample.expect("an accepted one"), text(n));
    }
    publisher.publish(&text(accepted)).unwrap();
    assert_eq!(
        *subscription.take_timeout(PATIENCE).unwrap(),
        text(accepted)
    );
}

pub fn a_best_effort_writer_never_waits(stage: &Stage) {
    let (publisher, subscription) = stage.pair(&keep_all(3).best_effort());
    for n in 0..50 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(*subscription.take_timeout(PATIENCE).unwrap(), text(0));
}

pub fn a_keep_last_writer_never_waits(stage: &Stage) {
    let (publisher, subscription) =
        stage.pair_of(&QosProfile::default().keep_last(2), &keep_all(3));
    for n in 0..50 {
        publisher.publish(&text(n)).unwrap();
    }
    let mut taken = 0;
    let mut seen = Seen::by(|| subscription.take_event());
    let _ = seen.any(|e| matches!(e, EndpointEvent::SampleLost { .. }));
    stage.until("each is handed over or counted as lost", || {
        while subscription.take().is_some() {
            taken += 1;
        }
        taken + subscription.counts().lost == 50
    });
    assert!(taken >= 3, "{taken}");
}
