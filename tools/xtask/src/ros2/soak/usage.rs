//! Memory, descriptors and threads of a process (`proc(5)`), and their limits.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};

/// Growth of the memory that allocators and interpreters show without a leak, KiB.
const PSS_KIB_GROWTH: u64 = 3 << 10;
/// The same as a share of the baseline, percent.
const PSS_PERCENT_GROWTH: u64 = 5;
/// Descriptors, threads and mappings for guests that are here at the moment. Several
/// are on a busy machine. A leak of one per guest exceeds it soon.
const COUNT_GROWTH: u64 = 16;

/// The name of discovery logs among the mappings.
const DISCOVERY_LOG: &str = "/memfd:pteros-board";
/// The most of discovery logs, KiB. A process appends to its log, of 16 MiB, and
/// rewrites it when it is full; so it grows with each node that comes and goes.
const DISCOVERY_LOG_KIB_MAX: u64 = 17 << 10;

/// The resources of a process at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Proportional set size without discovery logs, KiB.
    pub pss_kib: u64,
    /// Proportional set size of the discovery logs of all processes, KiB.
    pub discovery_log_kib: u64,
    pub descriptors: u64,
    pub threads: u64,
    /// Mapped shared memory: memfds, and files of /dev/shm.
    pub shared_mappings: u64,
}

impl Usage {
    pub fn of(process: u32) -> Result<Self> {
        let folder = format!("/proc/{process}");
        let read = |name: &str| {
            let path = format!("{folder}/{name}");
            fs::read_to_string(&path).with_context(|| format!("read {path}"))
        };
        let entries = |name: &str| -> Result<u64> {
            let path = format!("{folder}/{name}");
            let list = fs::read_dir(&path).with_context(|| format!("read {path}"))?;
            Ok(list.count() as u64)
        };
        let (pss_kib, discovery_log_kib) = memory(&read("smaps")?);
        let is_shared = |line: &&str| line.contains("/memfd:") || line.contains("/dev/shm/");
        Ok(Self {
            pss_kib,
            discovery_log_kib,
            descriptors: entries("fd")?,
            threads: entries("task")?,
            shared_mappings: read("maps")?.lines().filter(is_shared).count() as u64,
        })
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} KiB PSS beside {} of discovery logs, {} descriptors, {} threads, {} shared mappings",
            self.pss_kib,
            self.discovery_log_kib,
            self.descriptors,
            self.threads,
            self.shared_mappings
        )
    }
}

/// Sums up the proportional set sizes in the text of `smaps`: without discovery logs,
/// and of them.
fn memory(smaps: &str) -> (u64, u64) {
    let (mut others, mut logs, mut is_log) = (0, 0, false);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if first == "Pss:" {
            let kib: u64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
            *(if is_log { &mut logs } else { &mut others }) += kib;
        } else if !first.ends_with(':') {
            is_log = line.contains(DISCOVERY_LOG);
        }
    }
    (others, logs)
}

/// The most that a process may use at the end.
#[derive(Debug, PartialEq, Eq)]
pub struct Limits(Usage);

impl Limits {
    /// The limits that follow from a baseline.
    pub fn of(baseline: &Usage) -> Self {
        Self(Usage {
            pss_kib: baseline.pss_kib
                + PSS_KIB_GROWTH
                + baseline.pss_kib * PSS_PERCENT_GROWTH / 100,
            discovery_log_kib: DISCOVERY_LOG_KIB_MAX,
            descriptors: baseline.descriptors + COUNT_GROWTH,
            threads: baseline.threads + COUNT_GROWTH,
            shared_mappings: baseline.shared_mappings + COUNT_GROWTH,
        })
    }

    /// The figures that exceed them, in words.
    pub fn exceeded_by(&self, usage: &Usage) -> Vec<String> {
        let rows = [
            ("KiB PSS", usage.pss_kib, self.0.pss_kib),
            (
                "KiB of discovery logs",
                usage.discovery_log_kib,
                self.0.discovery_log_kib,
            ),
            ("descriptors", usage.descriptors, self.0.descriptors),
            ("threads", usage.threads, self.0.threads),
            (
                "shared mappings",
                usage.shared_mappings,
                self.0.shared_mappings,
            ),
        ];
        let exceeded = rows.into_iter().filter(|(_, used, limit)| used > limit);
        exceeded
            .map(|(what, used, limit)| format!("has {used} {what}, more than {limit}"))
            .collect()
    }
}

/// The medians of the second tenth and of the last tenth of the measurements.
pub fn medians(samples: &[Usage]) -> Option<(Usage, Usage)> {
    let tenth = (samples.len() / 10).max(1);
    let first = samples.get(tenth..2 * tenth)?;
    let last = samples.get(samples.len().checked_sub(tenth)?..)?;
    Some((median(first), median(last)))
}

/// The median of each figure.
fn median(samples: &[Usage]) -> Usage {
    let of = |figure: fn(&Usage) -> u64| {
        let mut figures: Vec<u64> = samples.iter().map(figure).collect();
        figures.sort_unstable();
        figures.get(figures.len() / 2).copied().unwrap_or(0)
    };
    Usage {
        pss_kib: of(|usage| usage.pss_kib),
        discovery_log_kib: of(|usage| usage.discovery_log_kib),
        descriptors: of(|usage| usage.descriptors),
        threads: of(|usage| usage.threads),
        shared_mappings: of(|usage| usage.shared_mappings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(pss_kib: u64, descriptors: u64) -> Usage {
        Usage {
            pss_kib,
            discovery_log_kib: 9,
            descriptors,
            threads: 3,
            shared_mappings: 4,
        }
    }

    #[test]
    fn this_process_has_memory_descriptors_and_a_thread() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.pss_kib > 100 && usage.descriptors >= 3 && usage.threads >= 1);
        assert!(Usage::of(u32::MAX).is_err());
    }

    #[test]
    fn discovery_logs_count_apart() {
        let smaps = "7f00-7f10 r--s 00000000 00:01 45 /memfd:pteros-board (deleted)\n\
                     Size: 16384 kB\nPss: 12 kB\nPss_Dirty: 3 kB\n\
                     7f20-7f30 rw-p 00000000 00:00 0 [heap]\nPss: 30 kB\n\
                     7f40-7f50 rw-p 00000000 00:00 0\nPss: 4 kB\n";
        assert_eq!(memory(smaps), (34, 12));
    }

    #[test]
    fn growth_beyond_the_limits_is_named_and_smaller_growth_is_not() {
        let limits = Limits::of(&usage(20_000, 30));
        assert!(limits.exceeded_by(&usage(24_000, 46)).is_empty());
        assert_eq!(
            limits.exceeded_by(&usage(24_073, 47)),
            [
                "has 24073 KiB PSS, more than 24072",
                "has 47 descriptors, more than 46"
            ]
        );
    }

    #[test]
    fn the_start_does_not_count_as_baseline() {
        let mut samples: Vec<Usage> = (0..20).map(|at| usage(1_000 + at, 9)).collect();
        samples[0].pss_kib = 1;
        let (before, after) = medians(&samples).unwrap();
        assert_eq!((before.pss_kib, after.pss_kib), (1_003, 1_019));
        assert!(medians(&samples[..1]).is_none());
    }
}
