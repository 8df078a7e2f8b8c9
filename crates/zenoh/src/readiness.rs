//! When an endpoint may be used: after a round trip through the network.
//!
//! Zenoh declares without an answer. A publisher sends every sample until its session knows
//! the subscriptions, so that one which is created after `publish` has returned could get
//! that sample as if it were new. A KEEP_ALL subscription asks for the history while its
//! token is on the way, so that a publisher could see it and replace samples that are not
//! sent yet. Each waits for the end of a query that follows its declarations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use zenoh::query::{ConsolidationMode, ReplyKeyExpr};
use zenoh::{Session, Wait};

use crate::declarer::Declarer;

/// How long the round trip may take. An endpoint is used after that in any case.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// How long a publisher waits until it may send: for its declaration and the round trip.
pub const WAIT_MAX: Duration = Duration::from_secs(2);

/// Whether an endpoint may send. Thread-safe.
#[derive(Default)]
pub struct Readiness {
    is_ready: AtomicBool,
    /// Whether a wait was in vain: there is no second one.
    gave_up: Mutex<bool>,
    changed: Condvar,
}

impl Readiness {
    /// Whether it may send now.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// It may send from now on.
    pub fn set(&self) {
        let _gave_up = self.gave_up.lock();
        self.is_ready.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Waits until it may send, at most for so long. Returns at once after a wait in vain.
    pub fn wait(&self, max: Duration) {
        if self.is_ready() {
            return;
        }
        let mut gave_up = self.gave_up.lock();
        let must_wait = |gave_up: &mut bool| !*gave_up && !self.is_ready();
        let waited = self.changed.wait_while_for(&mut gave_up, must_wait, max);
        if waited.timed_out() {
            *gave_up = true;
            self.changed.notify_all();
        }
    }
}

/// Runs `job` on the declarer's thread when the network has answered what the session has
/// declared until now. `key` is one of no token.
pub fn after_declarations(
    session: &Session,
    key: String,
    declarer: &Arc<Declarer>,
    job: impl FnOnce() + Send + Sync + 'static,
) {
    let then = Then::new(declarer, job);
    let asked = session.liveliness().get(key).timeout(ROUND_TRIP_MAX);
    // Its end drops the callback, even if it cannot be sent.
    if let Err(error) = asked.callback(move |_| then.note_answer()).wait() {
        tracing::debug!("ask whether Zenoh has declared an endpoint: {error}");
    }
}

/// Runs `job` on the declarer's thread when the publishers of `key` have answered the
/// queries for their history that the session has sent until now.
pub fn after_history(
    session: &Session,
    key: &str,
    declarer: &Arc<Declarer>,
    job: impl FnOnce() + Send + Sync + 'static,
) {
    let then = Then::new(declarer, job);
    // To the same publishers in the same order, and without any sample.
    let asked = session.get(format!("{key}/@adv/**?_max=0"));
    let asked = asked
        .callback(move |_| then.note_answer())
        .consolidation(ConsolidationMode::None)
        .accept_replies(ReplyKeyExpr::Any)
        .timeout(ROUND_TRIP_MAX);
    if let Err(error) = asked.wait() {
        tracing::debug!("ask whether the history of {key} has come: {error}");
    }
}

/// Runs a job when it is dropped.
struct Then<F: FnOnce() + Send + 'static> {
    declarer: Arc<Declarer>,
    job: Option<F>,
}

impl<F: FnOnce() + Send + 'static> Then<F> {
    fn new(declarer: &Arc<Declarer>, job: F) -> Self {
        Self {
            declarer: declarer.clone(),
            job: Some(job),
        }
    }

    /// An answer is not the end: others may follow.
    fn note_answer(&self) {}
}

impl<F: FnOnce() + Send + 'static> Drop for Then<F> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.declarer.push_next(job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_goes_on_when_it_is_ready() {
        let declarer = Declarer::start().unwrap();
        let readiness = Arc::new(Readiness::default());
        let set = readiness.clone();
        declarer.push(move || set.set());
        readiness.wait(WAIT_MAX);
        assert!(readiness.is_ready());
    }

    #[test]
    fn a_wait_in_vain_is_the_last_one() {
        let readiness = Readiness::default();
        readiness.wait(Duration::from_millis(1));
        assert!(!readiness.is_ready() && *readiness.gave_up.lock());
        for _ in 0..1_000 {
            readiness.wait(WAIT_MAX);
        }
        readiness.set();
        assert!(readiness.is_ready());
    }
}
