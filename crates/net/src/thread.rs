//! Thread settings: SCHED_FIFO priority and CPU affinity of a thread, and locked
//! memory of the process.
//!
//! Starts no thread: settings apply to the calling thread, and threads that it
//! starts afterwards inherit priority and CPUs (sched(7)).

use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys;

/// Settings of a thread. All off by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSettings {
    /// SCHED_FIFO with this priority: it runs before every thread without one, for
    /// as long as it wants.
    pub priority: Option<Priority>,
    /// The only CPUs it runs on.
    pub cpus: Option<CpuList>,
    /// Locks the process's memory, current and future (`mlockall`): pages are
    /// prefaulted and never cause a page fault.
    pub lock_memory: bool,
}

/// A SCHED_FIFO priority, 1 to 99; 99 is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(u8);

/// CPU numbers: at least one, in order, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

/// An invalid priority or CPU list.
#[derive(Clone, PartialEq, Eq)]
pub enum ThreadSettingError {
    /// Not a number from 1 to 99.
    Priority {
        /// The given text.
        given: String,
    },
    /// Not a list of CPU numbers that the kernel supports.
    Cpus {
        /// The given text.
        given: String,
    },
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for ThreadSettingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A setting that the kernel refused, with the remedy.
pub enum ThreadError {
    /// SCHED_FIFO.
    Priority {
        /// The requested one.
        priority: Priority,
        /// RLIMIT_RTPRIO, the highest priority without privilege.
        limit: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// `sched_setaffinity`.
    Cpus {
        /// The requested one.
        cpus: CpuList,
        /// CPUs that the thread may run on.
        allowed: Option<CpuList>,
        /// The kernel's error.
        source: io::Error,
    },
    /// Locking the memory.
    Memory {
        /// RLIMIT_MEMLOCK in bytes: how much may be locked without privilege;
        /// `None` is unlimited.
        limit: Option<u64>,
        /// The process's memory, bytes.
        size: Option<u64>,
        /// The kernel's error.
        source: io::Error,
    },
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for ThreadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl ThreadSettings {
    /// Whether no setting is on.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the settings to the calling thread, and the memory lock to the
    /// process. In this order: memory, CPUs, priority. Settings applied before an
    /// error stay.
    ///
    /// # Errors
    /// A setting that the kernel refused.
    pub fn apply(&self) -> Result<(), ThreadError> {
        if self.lock_memory {
            lock_memory()?;
        }
        if let Some(cpus) = &self.cpus {
            pin_to_cpus(cpus)?;
        }
        match self.priority {
            Some(priority) => set_fifo_priority(priority),
            None => Ok(()),
        }
    }
}

fn lock_memory() -> Result<(), ThreadError> {
    let locked = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    locked.map_err(|source| ThreadError::Memory {
        limit: getrlimit(Resource::Memlock).current,
        size: memory_bytes(),
        source: source.into(),
    })
}

/// The process's address space, from /proc.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

fn pin_to_cpus(cpus: &CpuList) -> Result<(), ThreadError> {
    let mut set = CpuSet::new();
    for cpu in &cpus.0 {
        set.set(*cpu);
    }
    sched_setaffinity(None, &set).map_err(|source| ThreadError::Cpus {
        cpus: cpus.clone(),
        allowed: allowed_cpus(),
        source: source.into(),
    })
}

/// The CPUs that the calling thread may run on now.
pub fn allowed_cpus() -> Option<CpuList> {
    let set = sched_getaffinity(None).ok()?;
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    CpuList::new(all).ok()
}

fn set_fifo_priority(priority: Priority) -> Result<(), ThreadError> {
    sys::set_fifo(priority.0.into()).map_err(|source| ThreadError::Priority {
        priority,
        limit: getrlimit(Resource::Rtprio).current.unwrap_or(u64::MAX),
        source,
    })
}

impl Priority {
    /// A priority from 1 to 99.
    ///
    /// # Errors
    /// Any other number.
    pub fn new(priority: u8) -> Result<Self, ThreadSettingError> {
        match priority {
            1..=99 => Ok(Self(priority)),
            _ => Err(ThreadSettingError::Priority {
                given: priority.to_string(),
            }),
        }
    }

    /// The priority of SCHED_FIFO, 1 to 99.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl FromStr for Priority {
    type Err = ThreadSettingError;

    fn from_str(text: &str) -> Result<Self, ThreadSettingError> {
        let number = text.trim().parse().ok();
        let given = || ThreadSettingError::Priority { given: text.into() };
        Self::new(number.ok_or_else(given)?).map_err(|_| given())
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl CpuList {
    /// The CPUs with these numbers.
    ///
    /// # Errors
    /// None at all, or one beyond 1023.
    pub fn new(cpus: impl IntoIterator<Item = usize>) -> Result<Self, ThreadSettingError> {
        let mut cpus: Vec<usize> = cpus.into_iter().take(CpuSet::MAX_CPU + 1).collect();
        cpus.sort_unstable();
        cpus.dedup();
        match cpus.last() {
            Some(last) if *last < CpuSet::MAX_CPU => Ok(Self(cpus)),
            _ => Err(ThreadSettingError::Cpus {
                given: Self(cpus).to_string(),
            }),
        }
    }

    /// The CPU numbers, ascending.
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }
}

/// Parses `taskset -c` syntax: `2`, `0,3`, `4-7`.
impl FromStr for CpuList {
    type Err = ThreadSettingError;

    fn from_str(text: &str) -> Result<Self, ThreadSettingError> {
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
                (Ok(first), Ok(last)) if first <= last && last < CpuSet::MAX_CPU => {
                    cpus.extend(first..=last);
                }
                _ => return Err(ThreadSettingError::Cpus { given: text.into() }),
            }
        }
        Self::new(cpus).map_err(|_| ThreadSettingError::Cpus { given: text.into() })
    }
}

/// Formats ranges: `0,4-7`.
impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (at, run) in runs.enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for ThreadSettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority { given } => write!(
                f,
                "{given:?} is not a SCHED_FIFO priority; give a number from 1 to 99, where 99 is the highest"
            ),
            Self::Cpus { given } => write!(
                f,
                "{given:?} is not a CPU list; give numbers below {} as 2 or 0,4-7",
                CpuSet::MAX_CPU
            ),
        }
    }
}

impl std::error::Error for ThreadSettingError {}

impl fmt::Display for ThreadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority {
                priority,
                limit,
                source,
            } => {
                write!(f, "thread priority {priority} (SCHED_FIFO): {source}; ")?;
                if *limit >= u64::from(priority.0) {
                    write!(
                        f,
                        "RLIMIT_RTPRIO is {limit} and would do: the control group has no \
                         real-time time (cpu.rt_runtime_us), or a sandbox forbids it"
                    )
                } else {
                    write!(
                        f,
                        "RLIMIT_RTPRIO is {limit} and CAP_SYS_NICE is missing: raise the limit \
                         (rtprio {priority} in /etc/security/limits.conf, LimitRTPRIO= in a unit, \
                         --ulimit rtprio={priority} for a container) or grant the capability"
                    )
                }
            }
            Self::Cpus {
                cpus,
                allowed,
                source,
            } => {
                write!(f, "thread CPUs {cpus}: {source}; ")?;
                match allowed {
                    Some(allowed) => write!(
                        f,
                        "this thread may run on {allowed}: name one of those, or widen the \
                         process's CPU set (cpuset, taskset)"
                    ),
                    None => write!(f, "the CPUs it may run on are not known"),
                }
            }
            Self::Memory {
                limit,
                size,
                source,
            } => {
                write!(f, "locking the memory: {source}; RLIMIT_MEMLOCK is ")?;
                match limit {
                    Some(limit) => write!(f, "{limit} bytes")?,
                    None => write!(f, "unlimited")?,
                }
                if let Some(size) = size {
                    write!(f, ", the process has {size}")?;
                }
                write!(
                    f,
                    ": raise the limit (memlock unlimited in /etc/security/limits.conf, \
                     LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 for a container) or \
                     grant CAP_IPC_LOCK"
                )
            }
        }
    }
}

impl std::error::Error for ThreadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Priority { source, .. }
            | Self::Cpus { source, .. }
            | Self::Memory { source, .. } => Some(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_and_written_as_taskset_has_them() {
        let cpus: CpuList = "7,0, 4-6".parse().unwrap();
        assert_eq!(cpus.numbers(), [0, 4, 5, 6, 7]);
        assert_eq!(cpus.to_string(), "0,4-7");
        for wrong in ["", "a", "1-", "5-4", "-1", "1024", "0-99999999999"] {
            let error = wrong.parse::<CpuList>().unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
        assert!(CpuList::new([]).is_err());
    }

    #[test]
    fn priorities_are_from_1_to_99() {
        assert_eq!("80".parse::<Priority>().unwrap().number(), 80);
        for wrong in ["0", "100", "-1", "high", "300"] {
            let error = wrong.parse::<Priority>().unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
