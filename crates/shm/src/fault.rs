//! Labelled steps at which a test stops this process (cargo feature `faults`).
//!
//! `fault!("record-written")` is nothing in a normal build. With the feature,
//! a process that was told `stop_at` that label stops itself there with
//! SIGSTOP, as if the scheduler had taken the processor away for good; whoever
//! told it so may let it go on or kill it.

/// A labelled step.
#[macro_export]
#[doc(hidden)]
macro_rules! fault {
    ($label:literal) => {
        #[cfg(feature = "faults")]
        $crate::fault::step($label);
    };
}

/// Every label, in the order in which a message meets them. A test goes
/// through them all.
pub const LABELS: &[&str] = &[
    "hello-sent",
    "hello-read",
    "hello-answered",
    "answer-read",
    "proof-sent",
    "link-up",
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
    "record-let-go",
    "loan-back-before",
    "loan-back-after",
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

    /// From now on, stops this process when it comes by `label` after having
    /// passed it `passes` times. False when there is no such label.
    pub fn stop_at(label: &str, passes: u32) -> bool {
        let index = super::LABELS.iter().position(|known| *known == label);
        PASSES.store(passes, Ordering::SeqCst);
        LABEL.store(index.unwrap_or(usize::MAX), Ordering::SeqCst);
        index.is_some()
    }

    /// What `fault!` calls.
    pub fn step(label: &str) {
        let index = LABEL.load(Ordering::SeqCst);
        if super::LABELS.get(index) != Some(&label) {
            return;
        }
        let passes = PASSES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if passes.is_err() {
            let _ = kill_process(getpid(), Signal::STOP);
            // The signal may reach another thread first; this one must not go
            // on meanwhile.
            let a_second = rustix::thread::Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let _ = rustix::thread::nanosleep(&a_second);
        }
    }
}
