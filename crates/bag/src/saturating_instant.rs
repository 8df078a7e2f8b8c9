//! Sums of moments and spans that are valid for every span.

use std::time::{Duration, Instant};

/// Longer than anybody waits; the sum with any clock time is valid.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// The moment that much later, or one in the far future.
pub(crate) fn saturating_add(moment: Instant, span: Duration) -> Instant {
    moment + span.min(FOR_EVER)
}
