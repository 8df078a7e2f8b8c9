//! What a thread asks of the kernel's scheduler, and a process of its memory:
//! SCHED_FIFO, CPUs, pages that stay.
//!
//! Starts no thread: settings are applied to the one that asks, and threads that
//! it starts afterwards inherit priority and CPUs (sched(7)).

use std::fmt;
use std::io;
use std::str::FromStr;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::sys;

/// What a thread asks for. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSettings {
    /// SCHED_FIFO with this priority: it runs before every thread without one,
    /// for as long as it wants.
    pub priority: Option<Priority>,
    /// The only CPUs it runs on.
    pub cpus: Option<Cpus>,
    /// The process's memory, what it has and what it will get, is faulted in
    /// and stays (`mlockall`): no page fault delays it.
    pub lock_memory: bool,
}

/// A priority under SCHED_FIFO, 1 to 99; 99 goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(u8);

/// CPUs by their numbers: at least one, in order, no number twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(Vec<usize>);

/// What is wrong with a priority or with CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// No number from 1 to 99.
    Priority {
        /// As it was given.
        given: String,
    },
    /// No list of CPUs that the kernel could number.
    Cpus {
        /// As it was given.
        given: String,
    },
}

/// What the kernel refused, with what would let it.
#[derive(Debug)]
pub enum ThreadError {
    /// SCHED_FIFO.
    Priority {
        /// What was asked for.
        priority: Priority,
        /// RLIMIT_RTPRIO, the highest priority without privilege.
        limit: u64,
        /// The kernel's word.
        source: io::Error,
    },
    /// The CPUs.
    Cpus {
        /// What was asked for.
        cpus: Cpus,
        /// On which the thread may run.
        allowed: Option<Cpus>,
        /// The kernel's word.
        source: io::Error,
    },
    /// Locking the memory.
    Memory {
        /// RLIMIT_MEMLOCK in bytes, how much may be locked without privilege;
        /// `None` is all.
        limit: Option<u64>,
        /// The process's memory, bytes.
        size: Option<u64>,
        /// The kernel's word.
        source: io::Error,
    },
}

impl ThreadSettings {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies them to the calling thread, and the memory's to the process. In
    /// this order: memory, CPUs, priority; what was applied before an error
    /// stays.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn apply(&self) -> Result<(), ThreadError> {
        if self.lock_memory {
            lock_memory()?;
        }
        if let Some(cpus) = &self.cpus {
            run_on(cpus)?;
        }
        match self.priority {
            Some(priority) => run_first(priority),
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

fn run_on(cpus: &Cpus) -> Result<(), ThreadError> {
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
pub fn allowed_cpus() -> Option<Cpus> {
    let set = sched_getaffinity(None).ok()?;
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Cpus::new(all).ok()
}

fn run_first(priority: Priority) -> Result<(), ThreadError> {
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
    pub fn new(priority: u8) -> Result<Self, SettingError> {
        match priority {
            1..=99 => Ok(Self(priority)),
            _ => Err(SettingError::Priority {
                given: priority.to_string(),
            }),
        }
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl FromStr for Priority {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let number = text.trim().parse().ok();
        let given = || SettingError::Priority { given: text.into() };
        Self::new(number.ok_or_else(given)?).map_err(|_| given())
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Cpus {
    /// The CPUs with these numbers.
    ///
    /// # Errors
    /// None at all, or one beyond 1023.
    pub fn new(cpus: impl IntoIterator<Item = usize>) -> Result<Self, SettingError> {
        let mut cpus: Vec<usize> = cpus.into_iter().take(CpuSet::MAX_CPU + 1).collect();
        cpus.sort_unstable();
        cpus.dedup();
        match cpus.last() {
            Some(last) if *last < CpuSet::MAX_CPU => Ok(Self(cpus)),
            _ => Err(SettingError::Cpus {
                given: Self(cpus).to_string(),
            }),
        }
    }

    /// Their numbers, ascending.
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }
}

/// As `taskset -c` has it: `2`, `0,3`, `4-7`.
impl FromStr for Cpus {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
                (Ok(first), Ok(last)) if first <= last && last < CpuSet::MAX_CPU => {
                    cpus.extend(first..=last);
                }
                _ => return Err(SettingError::Cpus { given: text.into() }),
            }
        }
        Self::new(cpus).map_err(|_| SettingError::Cpus { given: text.into() })
    }
}

/// Runs of numbers as one: `0,4-7`.
impl fmt::Display for Cpus {
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

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority { given } => write!(
                f,
                "{given:?} is no priority under SCHED_FIFO; give a number from 1 to 99, of which 99 goes first"
            ),
            Self::Cpus { given } => write!(
                f,
                "{given:?} names no CPUs; give numbers below {} as 2 or 0,4-7",
                CpuSet::MAX_CPU
            ),
        }
    }
}

impl std::error::Error for SettingError {}

impl fmt::Display for ThreadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority {
                priority,
                limit,
                source,
            } => {
                write!(f, "thread priority {priority} (SCHED_FIFO): {source}; ")?;
                match *limit >= u64::from(priority.0) {
                    true => write!(
                        f,
                        "RLIMIT_RTPRIO is {limit} and would do: the control group has no \
                         real-time time (cpu.rt_runtime_us), or a sandbox forbids it"
                    ),
                    false => write!(
                        f,
                        "RLIMIT_RTPRIO is {limit} and CAP_SYS_NICE is missing: raise the limit \
                         (rtprio {priority} in /etc/security/limits.conf, LimitRTPRIO= in a unit, \
                         --ulimit rtprio={priority} for a container) or grant the capability"
                    ),
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
                    None => write!(f, "which CPUs it may run on is not known"),
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
        let cpus: Cpus = "7,0, 4-6".parse().unwrap();
        assert_eq!(cpus.numbers(), [0, 4, 5, 6, 7]);
        assert_eq!(cpus.to_string(), "0,4-7");
        for wrong in ["", "a", "1-", "5-4", "-1", "1024", "0-99999999999"] {
            let error = wrong.parse::<Cpus>().unwrap_err().to_string();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
        assert!(Cpus::new([]).is_err());
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
