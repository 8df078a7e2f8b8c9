//! Retention of a writer's changes: the bounds of HISTORY and RESOURCE_LIMITS (DDS
//! 1.4 §2.2.3.18, §2.2.3.19), and which changes outlive their acknowledgement.

use super::config::WriterConfig;
use crate::qos::History;

/// Rules of the history: how many samples it keeps, and for how long.
#[derive(Debug)]
pub(super) struct Retention {
    /// Samples kept, of each instance if keyed.
    pub depth: usize,
    /// Samples kept in all.
    pub samples_max: usize,
    /// Missing numbers up to here are lost to readers that did not receive them.
    /// Missing numbers above are irrelevant.
    pub lost_through: i64,
    /// A write was refused and no space was freed since.
    pub blocked: bool,
    /// Dispose and unregister changes are kept although every matched reader has
    /// them.
    pub retains_disposed: bool,
    /// A later change may expire earlier.
    pub lifespans_differ: bool,
}

impl Retention {
    /// The bounds that the QoS policies and the limits give.
    pub fn of(config: &WriterConfig) -> Retention {
        let limits = &config.qos.resource_limits;
        let limit = |n: Option<u32>| n.map(|n| usize::try_from(n.max(1)).unwrap_or(usize::MAX));
        let (depth, samples_max) = match config.qos.history {
            History::KeepLast(depth) => {
                let depth = limit(Some(depth)).unwrap_or(1);
                let per_instance = limit(limits.max_samples_per_instance).unwrap_or(depth);
                let all = limit(limits.max_samples).unwrap_or(usize::MAX);
                (depth.min(per_instance).min(all), all)
            }
            History::KeepAll => {
                // Without keys there is one instance: the tighter bound holds.
                let all = limit(limits.max_samples).unwrap_or(config.limits.samples_max.max(1));
                let per_instance = limit(limits.max_samples_per_instance).unwrap_or(usize::MAX);
                (per_instance, all)
            }
        };
        Retention {
            depth,
            samples_max,
            lost_through: 0,
            blocked: false,
            retains_disposed: false,
            lifespans_differ: false,
        }
    }

    /// Samples kept in all of a writer with or without keys.
    pub fn samples_max_of(&self, keyed: bool) -> usize {
        if keyed {
            self.samples_max
        } else {
            self.depth.min(self.samples_max)
        }
    }
}
