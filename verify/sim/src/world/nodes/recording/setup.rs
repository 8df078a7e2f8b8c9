//! The topics of a recording, and the sizes of its recorder.

use std::time::Duration;

use fastrand::Rng;
use pteros::QosProfile;

/// Topics whose only publisher lives as long as the run.
pub const STEADY: usize = 3;
/// A topic whose publishers restart.
pub const RESTARTED: usize = 3;
/// As [`RESTARTED`], transient local: each file begins with its latest messages.
pub const LATCHED: usize = 4;
pub const TOPICS: usize = 5;
/// Messages of topic 0 that its publisher keeps: more than it publishes.
pub const ALL_MESSAGES: usize = 2_000;
/// The longest silence of a recorder's process.
pub const STALL_MAX: Duration = Duration::from_millis(400);
/// How late a recorder joins, at most.
pub const LATE_MAX: Duration = Duration::from_secs(2);
/// So small that a slow disk fills the recorder's buffer.
pub const CACHE_BYTES: usize = 6_000;
pub const CHUNK_BYTES: usize = 600;

pub fn topic_name(topic: usize) -> String {
    format!("/t{topic}")
}

/// Reliable with room for an outage, best effort, and reliable with little room.
pub fn qos(topic: usize) -> QosProfile {
    match topic {
        0 => QosProfile::default().keep_last(ALL_MESSAGES),
        1 => QosProfile::default().keep_last(5).best_effort(),
        LATCHED => QosProfile::default().keep_last(5).transient_local(),
        _ => QosProfile::default().keep_last(5),
    }
}

pub fn random_millis(random: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(random.u64(range))
}
