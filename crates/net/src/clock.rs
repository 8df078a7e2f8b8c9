//! The host's monotonic clock, shared by all its processes.

#![allow(clippy::disallowed_methods, reason = "the platform's clock")]

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: since the host started, the same in every
/// process and network namespace of it, never set back.
pub fn monotonic_nanos() -> u64 {
    // The C library has the address of the kernel's clock already; rustix would
    // look it up again, 64 KB of program text. No kernel lacks this clock.
    let Ok(now) = clock_gettime(ClockId::CLOCK_MONOTONIC) else {
        return 0;
    };
    let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
