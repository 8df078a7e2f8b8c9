//! Fault injection: labelled steps at which a test stops this process (cargo
//! feature `faults`).
//!
//! `fault!("record-written")` expands to nothing in a normal build. With the
//! feature, a process that called `stop_at` with that label stops itself there with
//! SIGSTOP, as if the scheduler had taken the processor away for good. The test
//! then continues or kills it.

/// A labelled step.
#[macro_export]
#[doc(hidden)]
macro_rules! fault {
    ($label:literal) => {
        #[cfg(feature = "faults")]
        $crate::fault::step($label);
    };
}

/// Every label, in the order in which a message passes them. A test goes through
/// them all.
pub const LABELS: &[&str] = &[
    "hello-sent",
    "hello-read",
    "hello-answered",
    "answer-read",
    "proof-sent",
    "connection-up",
    "segment-made",
    "chunk-taken",
    "chunk-frozen",
    "segment-sent",
    "loan-written",
    "record-written",
    "record-visible",
    "doorbell-rung",
    "armed",
    "record-read",
    "record-released",
    "loan-return-before",
    "loan-return-after",
    "bye-sent",
];

#[cfg(feature = "faults")]
pub use armed::{step, stop_at};

#[cfg(feature = "faults")]
mod armed {
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static LABEL: AtomicUsize = AtomicUsize::new(usize::MAX);
    static PASSES: AtomicU32 = AtomicU32::new(0);

    /// Stops this process when it passes `label` after `passes` earlier passes.
    /// Returns false for an unknown label.
    pub fn stop_at(label: &str, passes: u32) -> bool {
        let index = super::LABELS.iter().position(|known| *known == label);
        PASSES.store(passes, Ordering::SeqCst);
        LABEL.store(index.unwrap_or(usize::MAX), Ordering::SeqCst);
        index.is_some()
    }

    /// Called by `fault!`.
    pub fn step(label: &str) {
        let index = LABEL.load(Ordering::SeqCst);
        if super::LABELS.get(index) != Some(&label) {
            return;
        }
        let passes = PASSES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if passes.is_err() {
            let _ = kill_process(getpid(), Signal::STOP);
            // The signal may stop another thread first; this one must not continue
            // meanwhile.
            let a_second = rustix::thread::Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let _ = rustix::thread::nanosleep(&a_second);
        }
    }
}
