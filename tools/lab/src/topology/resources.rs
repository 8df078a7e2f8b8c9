//! Resource usage of a process from `/proc`: once a second, in the columns of
//! `ros2-performance`, plus the proportional set size.

use std::fs;
use std::thread::available_parallelism;
use std::time::Instant;

/// One sample. Kilobytes of 1024 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Milliseconds since the start of sampling.
    pub time_ms: u64,
    /// CPU time since the last sample in percent of all cores.
    pub cpu_percent: f64,
    /// Maximum resident set size so far.
    pub rss_kb: u64,
    /// Virtual memory size.
    pub vsz_kb: u64,
    /// Proportional set size.
    pub pss_kb: u64,
    /// Number of threads.
    pub threads: u64,
}

/// Samples the resource usage of a process.
#[derive(Debug)]
pub struct Sampler {
    process: u32,
    began: Instant,
    last: Instant,
    last_cpu_ns: u64,
    first_cpu_ns: u64,
}

impl Sampler {
    /// Starts sampling.
    pub fn start(process: u32) -> Self {
        let now = Instant::now();
        let cpu_ns = cpu_ns(process);
        Self {
            process,
            began: now,
            last: now,
            last_cpu_ns: cpu_ns,
            first_cpu_ns: cpu_ns,
        }
    }

    /// Takes a sample. An ended process uses nothing.
    pub fn sample(&mut self) -> Resources {
        let now = Instant::now();
        let cpu_ns = cpu_ns(self.process);
        let used = cpu_ns.saturating_sub(self.last_cpu_ns) as f64;
        let passed = (now - self.last).as_nanos() as f64;
        (self.last, self.last_cpu_ns) = (now, cpu_ns);
        let status = self.read("status");
        Resources {
            time_ms: u64::try_from((now - self.began).as_millis()).unwrap_or(u64::MAX),
            cpu_percent: percent(used, passed * cores()),
            rss_kb: field(&status, "VmHWM:"),
            vsz_kb: field(&status, "VmSize:"),
            pss_kb: field(&self.read("smaps_rollup"), "Pss:"),
            threads: field(&status, "Threads:"),
        }
    }

    /// CPU time since the start in percent of one core.
    pub fn cpu_percent_of_one(&self) -> f64 {
        let used = cpu_ns(self.process).saturating_sub(self.first_cpu_ns) as f64;
        percent(used, self.began.elapsed().as_nanos() as f64)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process)).unwrap_or_default()
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole * 100.0
    } else {
        0.0
    }
}

/// Number of cores of this process.
fn cores() -> f64 {
    available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// CPU time of all threads of a process. The scheduler's statistics in nanoseconds
/// lack ended threads, and the ticks of `stat` have them, so the larger one counts.
fn cpu_ns(process: u32) -> u64 {
    let folder = format!("/proc/{process}/task");
    let tasks = fs::read_dir(folder).into_iter().flatten().flatten();
    let running: u64 = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let times = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = times.filter_map(|n| n.parse::<u64>().ok()).sum();
    // USER_HZ is 100 on every Linux.
    running.max(ticks * 10_000_000)
}

/// The number after a key at the beginning of a line. 0 without it.
fn field(text: &str, key: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(key));
    rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_process_uses_memory_and_cpu_time() {
        let mut sampler = Sampler::start(std::process::id());
        let mut sum = 0_u64;
        while sampler.cpu_percent_of_one() <= 0.0 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let sample = sampler.sample();
        assert!(sample.rss_kb > 100 && sample.vsz_kb >= sample.rss_kb && sample.pss_kb > 100);
        assert!(sample.threads >= 1 && sample.cpu_percent > 0.0);
    }

    #[test]
    fn an_ended_process_uses_nothing() {
        let sample = Sampler::start(u32::MAX).sample();
        assert_eq!(
            (sample.rss_kb, sample.pss_kb, sample.cpu_percent),
            (0, 0, 0.0)
        );
    }
}
