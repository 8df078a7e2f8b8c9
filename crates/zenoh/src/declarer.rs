//! Declarer: the thread that declares and undeclares the entities of a session.
//!
//! Zenoh blocks a declaration while its transmission queue is full. The runtime creates
//! and removes endpoints under locks that reception needs. So this thread runs the
//! declarations, in order, and no caller blocks. It also runs jobs that are due at a time.
#![allow(
    clippy::disallowed_methods,
    reason = "the one thread that Zenoh may block while no user waits"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use pteros_rtps::time::Instant;
use zenoh::Session;

/// Declarations and undeclarations in the queue. The limit exceeds the endpoints of a
/// session. So only a program that creates and drops endpoints in a loop waits for space.
const JOBS_MAX: usize = 65_536;
/// Stack of the thread.
const STACK_BYTES: usize = 1 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// See the module documentation. Thread-safe.
pub struct Declarer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Zero of the thread's clock.
    began: std::time::Instant,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// By time and number.
    timed: BTreeMap<(Instant, u64), Job>,
    last_timed: u64,
    is_closed: bool,
}

impl Declarer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system's, when it cannot create a thread.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            began: std::time::Instant::now(),
        });
        let own = shared.clone();
        let thread = std::thread::Builder::new()
            .name("zenoh-declare".into())
            .stack_size(STACK_BYTES)
            .spawn(move || own.run())?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Queues a job. Blocks only while 65 536 jobs are queued. Does nothing after
    /// [`Declarer::close`].
    pub fn push(&self, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.queue.lock();
        while queue.jobs.len() >= JOBS_MAX && !queue.is_closed {
            self.shared.changed.wait(&mut queue);
        }
        if !queue.is_closed {
            queue.jobs.push_back(Box::new(job));
            self.shared.changed.notify_all();
        }
    }

    /// Queues a job that follows from another one. Never blocks: at most one such job
    /// exists per endpoint. Does nothing after [`Declarer::close`].
    pub fn push_next(&self, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.queue.lock();
        if !queue.is_closed {
            queue.jobs.push_back(Box::new(job));
            self.shared.changed.notify_all();
        }
    }

    /// The time on the clock of [`Declarer::push_at`].
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Queues a job that is due at a time, before those of [`Declarer::push`]. Never blocks: at
    /// most one such job exists per subscription. Does nothing after [`Declarer::close`].
    pub fn push_at(&self, at: Instant, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.queue.lock();
        if !queue.is_closed {
            queue.last_timed += 1;
            let number = queue.last_timed;
            queue.timed.insert((at, number), Box::new(job));
            self.shared.changed.notify_all();
        }
    }

    /// Ends the thread after its current job. Queued jobs do not run.
    pub fn close(&self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.changed.notify_all();
    }

    /// Joins the thread and drops the queued jobs. Call it after [`Declarer::close`].
    pub fn join(&self) {
        let thread = self.thread.lock().take();
        // The thread ends early only by a panic, which has been printed.
        let _ = thread.map(JoinHandle::join);
        let mut queue = self.shared.queue.lock();
        let dropped = (
            std::mem::take(&mut queue.jobs),
            std::mem::take(&mut queue.timed),
        );
        drop(queue);
        drop(dropped);
    }
}

/// The error of a declaration. `None` if its session was closed meanwhile, because a
/// closing context needs no report.
pub fn failure<T, E>(session: &Session, declared: Result<T, E>) -> Option<E> {
    declared.err().filter(|_| !session.is_closed())
}

impl Drop for Declarer {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn run(&self) {
        while let Some(job) = self.next_job() {
            job();
        }
    }

    fn now(&self) -> Instant {
        let elapsed = self.began.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// Waits for the next job. `None` after the end.
    fn next_job(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if queue.is_closed {
                return None;
            }
            let now = self.now();
            let next = queue.timed.first_entry();
            let wait = next.as_ref().map(|next| next.key().0.since(now));
            if let Some(due) = next.filter(|next| next.key().0 <= now) {
                return Some(due.remove());
            }
            if let Some(job) = queue.jobs.pop_front() {
                self.changed.notify_all();
                return Some(job);
            }
            match wait {
                Some(wait) => {
                    let wait = wait.to_std().unwrap_or_default();
                    self.changed.wait_for(&mut queue, wait);
                }
                None => self.changed.wait(&mut queue),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pteros_rtps::time::Duration;

    use super::*;

    /// Found by hand: a verb that ended at once warned of its own subscription.
    #[test]
    fn a_declaration_fails_silently_when_its_session_is_closed() {
        use zenoh::{Config, Wait as _};

        let mut config = Config::default();
        for (key, value) in [
            ("mode", "\"peer\""),
            ("listen/endpoints", "[]"),
            ("scouting/multicast/enabled", "false"),
        ] {
            config.insert_json5(key, value).unwrap();
        }
        let session = zenoh::open(config).wait().unwrap();
        let declared = || session.declare_queryable("a").wait().map(drop);
        assert!(failure(&session, declared()).is_none());
        assert!(failure(&session, Err::<(), _>("refused")).is_some());
        session.close().wait().unwrap();
        assert!(declared().is_err());
        assert!(failure(&session, declared()).is_none());
    }

    #[test]
    fn jobs_run_in_order_while_nobody_waits_for_them() {
        let declarer = Declarer::start().unwrap();
        let (go_on, blocked) = mpsc::channel::<()>();
        let (done, ran) = mpsc::channel();
        declarer.push(move || blocked.recv().unwrap());
        for number in 0..100 {
            let done = done.clone();
            declarer.push(move || done.send(number).unwrap());
        }
        assert!(ran.try_recv().is_err(), "the first one blocks");
        go_on.send(()).unwrap();
        let order: Vec<i32> = ran.iter().take(100).collect();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_runs_at_its_time_and_holds_up_no_other() {
        let declarer = Declarer::start().unwrap();
        let (done, ran) = mpsc::channel();
        let began = declarer.now();
        for (millis, name) in [(80, "late"), (40, "soon"), (3_600_000, "never")] {
            let at = began.after(Duration::from_millis(millis));
            let (done, own) = (done.clone(), declarer.shared.clone());
            let job = move || done.send((name, own.now() >= at)).unwrap();
            declarer.push_at(at, job);
        }
        declarer.push(move || done.send(("at once", true)).unwrap());
        let order: Vec<_> = ran.iter().take(3).collect();
        assert_eq!(order, [("at once", true), ("soon", true), ("late", true)]);
        declarer.close();
        declarer.join();
        assert!(ran.recv().is_err(), "the last one was dropped");
    }

    #[test]
    fn closing_drops_what_waits_and_ends_the_thread() {
        let declarer = Declarer::start().unwrap();
        let (go_on, blocked) = mpsc::channel::<()>();
        let (started, is_running) = mpsc::channel();
        declarer.push(move || {
            started.send(()).unwrap();
            blocked.recv().unwrap();
        });
        is_running.recv().unwrap();
        let (done, ran) = mpsc::channel();
        declarer.push({
            let done = done.clone();
            move || done.send(()).unwrap()
        });
        declarer.close();
        declarer.push(move || done.send(()).unwrap());
        go_on.send(()).unwrap();
        declarer.join();
        assert!(ran.recv().is_err(), "neither ran, and both were dropped");
    }
}
