//! What the kernel says of processes and of loopback.

use std::fs;
use std::iter::Sum;

use anyhow::{Context, Result};

pub struct Memory {
    pub pss_kb: u64,
    pub pss_anonymous_kb: u64,
    pub threads: u64,
}

/// CPU time and voluntary context switches of all threads since their start.
#[derive(Default)]
pub struct Used {
    pub ms: f64,
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

pub fn memory(id: u32) -> Result<Memory> {
    let rollup = read(&format!("/proc/{id}/smaps_rollup"))?;
    let status = read(&format!("/proc/{id}/status"))?;
    Ok(Memory {
        pss_kb: field(&rollup, "Pss:")?,
        pss_anonymous_kb: field(&rollup, "Pss_Anon:")?,
        threads: field(&status, "Threads:")?,
    })
}

/// Threads that have ended are not counted.
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

/// Bytes that loopback has carried in this network.
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
}
