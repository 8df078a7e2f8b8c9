//! Saturating sums of instants and durations.

use std::time::{Duration, Instant};

/// In effect unlimited. Adding it to any clock time is valid.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// The sum, or an instant in the far future if it would exceed that.
pub(crate) fn saturating_add(moment: Instant, span: Duration) -> Instant {
    moment + span.min(FOR_EVER)
}
