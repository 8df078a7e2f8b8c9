//! Statistics from /proc: processes, loopback and the whole machine.

use std::fs;
use std::iter::Sum;

use anyhow::{Context, Result};

/// Memory and threads of a process.
pub struct Memory {
    /// Proportional set size (PSS) in kB.
    pub pss_kb: u64,
    /// Anonymous part of the PSS in kB.
    pub pss_anonymous_kb: u64,
    /// Number of threads.
    pub threads: u64,
}

/// CPU time and voluntary context switches of all threads since their start.
#[derive(Default)]
pub struct CpuUsage {
    /// CPU time in milliseconds.
    pub ms: f64,
    /// Voluntary context switches.
    pub wakes: f64,
}

impl Sum for CpuUsage {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            ms: a.ms + b.ms,
            wakes: a.wakes + b.wakes,
        })
    }
}

/// Memory of a process.
///
/// # Errors
/// The process has ended.
pub fn memory(id: u32) -> Result<Memory> {
    let rollup = read(&format!("/proc/{id}/smaps_rollup"))?;
    let status = read(&format!("/proc/{id}/status"))?;
    Ok(Memory {
        pss_kb: field(&rollup, "Pss:")?,
        pss_anonymous_kb: field(&rollup, "Pss_Anon:")?,
        threads: field(&status, "Threads:")?,
    })
}

/// CPU time of a process without its ended threads.
///
/// # Errors
/// The process has ended.
pub fn cpu(id: u32) -> Result<CpuUsage> {
    let folder = format!("/proc/{id}/task");
    let tasks = fs::read_dir(&folder).with_context(|| format!("read {folder}"))?;
    tasks
        .map(|task| {
            let path = task?.path();
            let of_task = |file| fs::read_to_string(path.join(file));
            // A thread may end between the listing and the read.
            let (Ok(run), Ok(status)) = (of_task("schedstat"), of_task("status")) else {
                return Ok(CpuUsage::default());
            };
            let ns: f64 = run.split_whitespace().next().unwrap_or("0").parse()?;
            Ok(CpuUsage {
                ms: ns / 1e6,
                wakes: field(&status, "voluntary_ctxt_switches:")? as f64,
            })
        })
        .sum()
}

/// CPU time of a process in milliseconds, with its ended threads. As coarse as the
/// kernel's ticks.
///
/// # Errors
/// The process has ended.
pub fn whole_cpu_ms(id: u32) -> Result<f64> {
    let stat = read(&format!("/proc/{id}/stat"))?;
    // After the name in parentheses, utime and stime are fields 12 and 13.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    let times = behind.split_whitespace().skip(11).take(2);
    let ticks: u64 = times.filter_map(|word| word.parse::<u64>().ok()).sum();
    Ok(ticks as f64 * 1e3 / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU time of the machine in kernel ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoad {
    /// All CPUs since the start of the machine.
    pub all: u64,
    /// Busy part, including other guests of the hypervisor.
    pub busy: u64,
    /// Part of this process and of its ended children.
    pub own: u64,
}

impl CpuLoad {
    /// Reads the current values.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn now() -> Result<Self> {
        let machine = read("/proc/stat")?;
        let line = machine.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; guest times are part of
        // user.
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
        // After the name in parentheses, utime, stime, cutime and cstime are fields
        // 12 to 15.
        let behind = own.rsplit_once(')').map_or("", |(_, behind)| behind);
        let times = behind.split_whitespace().skip(11).take(4);
        Ok(Self {
            all,
            busy: all - idle - waits,
            own: times.filter_map(|word| word.parse::<u64>().ok()).sum(),
        })
    }

    /// Share of all CPU time since `before` that other processes used, from 0 to 1.
    pub fn share_of_others_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let busy = self.busy.saturating_sub(before.busy);
        let own = self.own.saturating_sub(before.own);
        busy.saturating_sub(own) as f64 / all as f64
    }
}

/// Bytes that loopback has carried in this network namespace.
///
/// # Errors
/// /proc cannot be read.
pub fn loopback_bytes() -> Result<u64> {
    let text = read("/proc/net/dev")?;
    field(&text.replace("lo: ", "lo:"), "lo:")
}

/// UDP datagrams sent in this network namespace.
///
/// # Errors
/// /proc cannot be read.
pub fn sent_datagrams() -> Result<u64> {
    out_datagrams(&read("/proc/net/snmp")?).context("/proc/net/snmp has no OutDatagrams")
}

/// Parses OutDatagrams from a line of names and a line of numbers.
fn out_datagrams(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "OutDatagrams")?;
    numbers.split(' ').nth(at)?.parse().ok()
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("read {path}"))
}

/// The number after a key at the beginning of a line.
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
    fn the_current_process_has_readable_proc_files() {
        let own = std::process::id();
        let memory = memory(own).expect("memory");
        assert!(memory.pss_kb > 100 && memory.threads >= 1);
        assert!(cpu(own).expect("CPU time").ms >= 0.0);
        assert!(loopback_bytes().is_ok());
    }

    #[test]
    fn the_number_of_sent_datagrams_is_found_by_name() {
        let text = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
            Udp: 17 6 0 1188 0\nUdpLite: OutDatagrams\n";
        assert_eq!(out_datagrams(text), Some(1188));
        assert_eq!(out_datagrams("Ip: A\nIp: 1\n"), None);
    }

    #[test]
    fn other_load_is_busy_time_minus_the_lab_s_own() {
        let before = CpuLoad {
            all: 100,
            busy: 50,
            own: 10,
        };
        let after = CpuLoad {
            all: 300,
            busy: 150,
            own: 60,
        };
        assert_eq!(after.share_of_others_since(before), 0.25);
        let now = CpuLoad::now().expect("a machine with /proc");
        assert!(now.busy <= now.all && now.own <= now.busy);
    }
}
