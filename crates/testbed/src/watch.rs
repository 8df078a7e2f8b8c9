//! What the kernel says of processes, of loopback and of the whole machine.

use std::fs;
use std::iter::Sum;

use anyhow::{Context, Result};

/// A process's memory and threads.
pub struct Memory {
    /// Its share of its pages (PSS), kB.
    pub pss_kb: u64,
    /// Of that what no file backs, kB.
    pub pss_anonymous_kb: u64,
    /// Its threads.
    pub threads: u64,
}

/// CPU time and voluntary context switches of all threads since their start.
#[derive(Default)]
pub struct Used {
    /// CPU time, milliseconds.
    pub ms: f64,
    /// How often a thread slept of its own will.
    pub wakes: f64,
}

impl Sum for Used {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            ms: a.ms + b.ms,
            wakes: a.wakes + b.wakes,
        })
    }
}

/// Memory of a process now.
///
/// # Errors
/// The process is gone.
pub fn memory(id: u32) -> Result<Memory> {
    let rollup = read(&format!("/proc/{id}/smaps_rollup"))?;
    let status = read(&format!("/proc/{id}/status"))?;
    Ok(Memory {
        pss_kb: field(&rollup, "Pss:")?,
        pss_anonymous_kb: field(&rollup, "Pss_Anon:")?,
        threads: field(&status, "Threads:")?,
    })
}

/// CPU time of a process. Threads that have ended are not counted.
///
/// # Errors
/// The process is gone.
pub fn cpu(id: u32) -> Result<Used> {
    let folder = format!("/proc/{id}/task");
    let tasks = fs::read_dir(&folder).with_context(|| format!("read {folder}"))?;
    tasks
        .map(|task| {
            let path = task?.path();
            let of_task = |file| fs::read_to_string(path.join(file));
            // One may end between the list and the look.
            let (Ok(run), Ok(status)) = (of_task("schedstat"), of_task("status")) else {
                return Ok(Used::default());
            };
            let ns: f64 = run.split_whitespace().next().unwrap_or("0").parse()?;
            Ok(Used {
                ms: ns / 1e6,
                wakes: field(&status, "voluntary_ctxt_switches:")? as f64,
            })
        })
        .sum()
}

/// CPU time of the machine in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// All CPUs together, since the machine started.
    pub all: u64,
    /// Of that busy for whomever, the hypervisor's other guests included.
    pub busy: u64,
    /// Of that by this process and its children that have ended and were waited for.
    pub own: u64,
}

impl Load {
    /// Now.
    ///
    /// # Errors
    /// No /proc.
    pub fn now() -> Result<Self> {
        let machine = read("/proc/stat")?;
        let line = machine.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal, then guests, which user has already.
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, _, _, idle, waits, ..] = ticks.as_slice() else {
            anyhow::bail!("no CPU times in /proc/stat: {line}");
        };
        let all: u64 = ticks.iter().sum();
        let own = read("/proc/self/stat")?;
        // Behind the name in brackets: utime, stime, cutime and cstime are the 12th to 15th.
        let behind = own.rsplit_once(')').map_or("", |(_, behind)| behind);
        let times = behind.split_whitespace().skip(11).take(4);
        Ok(Self {
            all,
            busy: all - idle - waits,
            own: times.filter_map(|word| word.parse::<u64>().ok()).sum(),
        })
    }

    /// The share of all CPU time since `before`, from 0 to 1, that others used.
    pub fn others_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let busy = self.busy.saturating_sub(before.busy);
        let own = self.own.saturating_sub(before.own);
        busy.saturating_sub(own) as f64 / all as f64
    }
}

/// Bytes that loopback has carried in this network.
///
/// # Errors
/// No /proc.
pub fn loopback_bytes() -> Result<u64> {
    let text = read("/proc/net/dev")?;
    field(&text.replace("lo: ", "lo:"), "lo:")
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {path}"))
}

/// The number behind a key at a line's begin.
fn field(text: &str, key: &str) -> Result<u64> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(key))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("no {key} in {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_can_be_looked_at() {
        let own = std::process::id();
        let memory = memory(own).expect("memory");
        assert!(memory.pss_kb > 100 && memory.threads >= 1);
        assert!(cpu(own).expect("CPU time").ms >= 0.0);
        assert!(loopback_bytes().is_ok());
    }

    #[test]
    fn what_others_use_is_what_is_busy_beyond_our_own() {
        let before = Load {
            all: 100,
            busy: 50,
            own: 10,
        };
        let after = Load {
            all: 300,
            busy: 150,
            own: 60,
        };
        assert_eq!(after.others_since(before), 0.25);
        let now = Load::now().expect("a machine with /proc");
        assert!(now.busy <= now.all && now.own <= now.busy);
    }
}
