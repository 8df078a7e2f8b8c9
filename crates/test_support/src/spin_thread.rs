//! A thread that spins nodes beside a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pteros::Node;

/// How often a spinning thread looks whether it shall end.
pub const SPIN_PERIOD: Duration = Duration::from_millis(20);

/// A thread that spins until this is dropped.
pub struct SpinThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SpinThread {
    /// Spins the node, and keeps `kept` until the end.
    pub fn of_node(node: &Node, kept: impl Send + 'static) -> Self {
        let node = node.clone();
        Self::new(move |is_over| {
            let _kept = kept;
            while !node.spin_until(is_over, SPIN_PERIOD) {}
        })
    }

    /// Runs `spin`, which returns soon after the condition holds.
    pub fn new(spin: impl FnOnce(&dyn Fn() -> bool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || spin(&|| stopped.load(Ordering::Relaxed)));
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for SpinThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
