//! Readiness of an endpoint: it may be used after a round trip through the network.
//!
//! Zenoh does not acknowledge declarations. A publisher sends every sample until its
//! session knows the subscriptions. So a subscription created after `publish` returned
//! could receive that sample as a new one. A KEEP_ALL subscription queries the history
//! while its token is on the way. A publisher that saw the token early could replace
//! samples not yet sent. So each endpoint waits for the end of a query sent after its
//! declarations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use zenoh::query::{ConsolidationMode, ReplyKeyExpr};
use zenoh::{Session, Wait};

use crate::declarer::Declarer;

/// Timeout of the round trip, after which the endpoint is used anyway.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// Longest wait of a publisher for its declaration and the round trip.
pub const WAIT_MAX: Duration = Duration::from_secs(2);

/// Whether an endpoint may send. Thread-safe.
#[derive(Default)]
pub struct Readiness {
    is_ready: AtomicBool,
    /// A wait timed out; further calls do not wait.
    gave_up: Mutex<bool>,
    changed: Condvar,
}

impl Readiness {
    /// Whether the endpoint may send now.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Allows sending.
    pub fn set(&self) {
        let _gave_up = self.gave_up.lock();
        self.is_ready.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Waits until the endpoint may send, at most `max`. Returns at once after an earlier
    /// timeout.
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

/// Runs `job` on the declarer's thread after the network has answered the session's
/// declarations so far. `key` belongs to no token.
pub fn after_declarations(
    session: &Session,
    key: String,
    declarer: &Arc<Declarer>,
    job: impl FnOnce() + Send + Sync + 'static,
) {
    let then = Then::new(declarer, job);
    let asked = session.liveliness().get(key).timeout(ROUND_TRIP_MAX);
    // Dropping it runs the callback, also if sending fails.
    if let Err(error) = asked.callback(move |_| then.note_answer()).wait() {
        tracing::debug!("ask whether Zenoh has declared an endpoint: {error}");
    }
}

/// Runs `job` on the declarer's thread after the publishers of `key` have answered the
/// session's history queries so far.
pub fn after_history(
    session: &Session,
    key: &str,
    declarer: &Arc<Declarer>,
    job: impl FnOnce() + Send + Sync + 'static,
) {
    let then = Then::new(declarer, job);
    // Reaches the same publishers in the same order, and returns no sample.
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

/// Runs a job when dropped.
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

    /// A reply does not end the query: others may follow.
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
