//! Descriptor check: warns before the process reaches its limit (RLIMIT_NOFILE).
//!
//! Without a free descriptor, further processes of this host communicate by UDP, and new
//! contexts and log files fail. None of these errors names the cause. So the driver
//! checks every [`PERIOD`], together with the announcements of discovery.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pteros_rtps::time::{Duration, Instant};

use crate::platform::Platform;

/// Time between two checks. Each costs two or three system calls.
const PERIOD: Duration = Duration::from_secs(2);

/// Time of a context's next check, and whether it has warned.
#[derive(Debug, Default)]
pub(crate) struct DescriptorCheck {
    next_at: AtomicU64,
    told: AtomicBool,
}

impl DescriptorCheck {
    /// Whether a check is due.
    fn is_due(&self, now: Instant) -> bool {
        let due = now.as_nanos() >= self.next_at.load(Ordering::Relaxed);
        if due {
            let next = now.after(PERIOD).as_nanos();
            self.next_at.store(next, Ordering::Relaxed);
        }
        due
    }

    /// Warns once when less than a tenth of the descriptors is free. Warns again after
    /// there were enough in between.
    pub(crate) fn run(&self, now: Instant, platform: &dyn Platform) {
        if !self.is_due(now) {
            return;
        }
        let scarce = platform.scarce_descriptors();
        let was_told = self.told.swap(scarce.is_some(), Ordering::Relaxed);
        if let Some(scarce) = scarce.filter(|_| !was_told) {
            tracing::warn!(
                "this process has {} of {} descriptors open (RLIMIT_NOFILE). Without a free one, connections to \
                 further processes, files and new contexts fail. Raise the limit (ulimit -n, LimitNOFILE= in a \
                 systemd unit), or look for what is never closed: ls -l /proc/{}/fd",
                scarce.open,
                scarce.limit,
                std::process::id()
            );
        }
    }
}
