//! Host checks: the clock and the permissions of a process.

use super::finding::{Finding, Findings};
use pteros::config::Config;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Both clocks at one time, to detect a clock step between two samples.
#[derive(Clone, Copy)]
pub struct ClockSample {
    steady: Instant,
    wall: SystemTime,
}

impl ClockSample {
    pub fn now() -> Self {
        Self {
            steady: Instant::now(),
            wall: SystemTime::now(),
        }
    }
}

/// Differences below this are no clock step. NTP slews by at most 0.5 ms per
/// second, and a busy host reads its clocks one after the other.
const CLOCK_STEP_MIN: Duration = Duration::from_millis(20);
/// 2024: this software did not exist earlier.
const PLAUSIBLE_TIME_MIN: Duration = Duration::from_secs(1_704_067_200);

/// Checks the clock since `start`.
pub fn check_clock(start: ClockSample) -> Vec<Finding> {
    let mut found = Findings::new("time");
    let now = ClockSample::now();
    let steady = now.steady.saturating_duration_since(start.steady);
    let (ahead, back) = match now.wall.duration_since(start.wall) {
        Ok(wall) => (wall.saturating_sub(steady), steady.saturating_sub(wall)),
        Err(error) => (Duration::ZERO, error.duration()),
    };
    let step = ahead.max(back);
    if step > CLOCK_STEP_MIN {
        let direction = if ahead > back { "forwards" } else { "back" };
        found.warn(
            format!("the clock stepped {step:?} {direction} in the last {steady:?}"),
            "let only one program set the clock: timedatectl status, chronyc tracking; timestamps before and after the step are not comparable",
        );
    } else {
        found.ok("the clock has no steps");
    }
    if now.wall.duration_since(UNIX_EPOCH).unwrap_or_default() < PLAUSIBLE_TIME_MIN {
        found.error(
            "the clock is in the past: it is not set",
            "sudo timedatectl set-ntp true, or set it: sudo date -s '…'",
        );
    }
    let keeper = process_names()
        .into_iter()
        .find(|name| TIME_SERVICES.contains(&name.as_str()));
    let synchronized = Path::new("/run/systemd/timesync/synchronized").exists();
    match keeper {
        Some(name) if name == "systemd-timesyn" && !synchronized => found.note_with(
            "systemd-timesyncd runs, but has not synchronized with a server yet",
            "timedatectl timesync-status",
        ),
        Some(name) => found.ok(format!("{name} synchronizes the clock")),
        None => found.note_with(
            "no clock synchronization service found here; the host of this container may run one",
            "if timestamps of several hosts are compared, install chrony",
        ),
    }
    let source =
        read_kernel_file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if let Some(source) = source.filter(|s| ["hpet", "acpi_pm", "jiffies"].contains(&s.as_str())) {
        found.warn(
            format!("the kernel reads the time from {source}, which takes a microsecond or more"),
            "boot with clocksource=tsc tsc=reliable if the processor's time stamp counter is constant",
        );
    }
    found.into_list()
}

/// Names in `/proc/N/comm`, truncated to fifteen characters.
const TIME_SERVICES: &[&str] = &[
    "chronyd",
    "ntpd",
    "ntpsec",
    "openntpd",
    "ptp4l",
    "phc2sys",
    "systemd-timesyn",
];

/// Names of all visible processes, at most 5,000.
fn process_names() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let is_number = |name: &std::ffi::OsString| {
        name.to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(is_number)
        .take(5_000)
        .filter_map(|pid| read_kernel_file(Path::new("/proc").join(pid).join("comm")))
        .collect()
}

/// Processes that use nine tenths of their descriptors or more: name, process id,
/// open ones and limit. Those of other users cannot be seen.
fn processes_short_of_descriptors(processes: &Path) -> Vec<(String, String, u64, u64)> {
    let Ok(entries) = fs::read_dir(processes) else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().parse::<u32>().is_ok());
    let mut found: Vec<_> = numbers
        .take(5_000)
        .filter_map(|entry| {
            let open = fs::read_dir(entry.path().join("fd")).ok()?.count() as u64;
            let limits = read_kernel_file(entry.path().join("limits"))?;
            let Some(SoftLimit::Some(most)) = limit(&limits, "Max open files") else {
                return None;
            };
            let name = read_kernel_file(entry.path().join("comm")).unwrap_or_default();
            let pid = entry.file_name().to_string_lossy().into_owned();
            let is_short = most.saturating_sub(open) < most.div_ceil(10);
            is_short.then_some((name, pid, open, most))
        })
        .collect();
    found.sort();
    found
}

/// Checks the limits of a process and its writable folders.
pub fn check_permissions() -> Vec<Finding> {
    let mut found = Findings::new("permissions");
    let limits = read_kernel_file("/proc/self/limits").unwrap_or_default();
    let may_all = has_sys_nice();
    match limit(&limits, "Max realtime priority") {
        Some(SoftLimit::Some(0)) if !may_all => found.note_with(
            "threads cannot get real-time priority (--thread-priority is refused)",
            "add to /etc/security/limits.d/ros.conf: @realtime - rtprio 98 (and log in again), or give the container --cap-add SYS_NICE",
        ),
        Some(SoftLimit::Some(most)) if !may_all => {
            found.ok(format!("threads can get real-time priorities up to {most}"));
        }
        _ => found.ok("threads can get any real-time priority"),
    }
    match limit(&limits, "Max locked memory") {
        Some(SoftLimit::Some(bytes)) if bytes < 256 << 20 && !may_all => found.note_with(
            format!("{} KiB can be locked, too little for --lock-memory", bytes / 1024),
            "add to /etc/security/limits.d/ros.conf: @realtime - memlock unlimited, or give the container --ulimit memlock=-1",
        ),
        _ => found.ok("memory can be locked"),
    }
    for (name, pid, open, most) in processes_short_of_descriptors(Path::new("/proc")) {
        found.warn(
            format!("process {pid} ({name}) has {open} of {most} descriptors open: its next connections, files and contexts fail"),
            format!("prlimit --pid {pid} --nofile={}, and look for what it never closes: ls -l /proc/{pid}/fd", most.saturating_mul(4)),
        );
    }
    match limit(&limits, "Max open files") {
        // A shared-memory connection needs two descriptors, a same-host peer three.
        Some(SoftLimit::Some(most)) if most < 1_024 => found.warn(
            format!(
                "a process has at most {most} descriptors: enough for {} peers of this host",
                most / 6
            ),
            "ulimit -n 4096, or LimitNOFILE=4096 in its unit",
        ),
        Some(SoftLimit::Some(most)) => found.ok(format!("a process has up to {most} descriptors")),
        _ => found.ok("the number of descriptors is not limited"),
    }
    if let Ok(config) = Config::from_environment() {
        check_writable(
            &mut found,
            "log files",
            config.log_folder.as_deref(),
            "ROS_LOG_DIR",
        );
        check_writable(
            &mut found,
            "stores",
            config.store_folder.as_deref(),
            "PTEROS_STORE_DIR",
        );
    }
    found.into_list()
}

/// Checks whether the folder, or its nearest existing parent, is writable.
fn check_writable(found: &mut Findings, what: &str, folder: Option<&Path>, variable: &str) {
    let Some(folder) = folder else {
        found.note_with(
            format!("there is no folder for {what}"),
            format!("set {variable}"),
        );
        return;
    };
    let existing = folder.ancestors().find(|folder| folder.exists());
    let trial = existing.map(|at| {
        let path = at.join(format!(".pteros-doctor-{}", std::process::id()));
        let made = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path);
        made.and_then(|_| fs::remove_file(&path))
    });
    match trial {
        Some(Ok(())) => found.ok(format!("{what} are written to {}", folder.display())),
        Some(Err(error)) => found.warn(
            format!("{what} cannot be written to {}: {error}", folder.display()),
            format!("set {variable} to a writable folder"),
        ),
        None => found.warn(
            format!("{what} cannot be written to {}", folder.display()),
            format!("set {variable} to an existing folder"),
        ),
    }
}

enum SoftLimit {
    Some(u64),
    None,
}

/// The soft limit in a line of `/proc/self/limits`.
fn limit(limits: &str, name: &str) -> Option<SoftLimit> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(SoftLimit::None),
        number => number.parse().ok().map(SoftLimit::Some),
    }
}

/// CAP_SYS_NICE, bit 23, and CAP_IPC_LOCK, bit 14.
fn has_sys_nice() -> bool {
    let status = read_kernel_file("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let both = (1 << 23) | (1 << 14);
    set.is_some_and(|set| set & both == both)
}

/// The text of a small kernel file.
pub fn read_kernel_file(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingSeverity;
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_clock_step_is_reported() {
        let mut start = ClockSample::now();
        assert_eq!(check_clock(start)[0].severity, FindingSeverity::Ok);
        start.wall += Duration::from_secs(3);
        let found = &check_clock(start)[0];
        assert!(
            found.severity == FindingSeverity::Warning && found.text.contains(" back "),
            "{found:?}"
        );
        start.wall -= Duration::from_secs(6);
        assert!(check_clock(start)[0].text.contains(" forwards "));
    }

    #[test]
    fn a_process_near_its_descriptor_limit_is_named() {
        let processes = Folder::absent("proc");
        for (pid, open) in [("41", 17), ("42", 19)] {
            let process = processes.join(pid);
            fs::create_dir_all(process.join("fd")).unwrap();
            for n in 0..open {
                fs::write(process.join("fd").join(n.to_string()), "").unwrap();
            }
            fs::write(process.join("limits"), "Max open files 20 40 files\n").unwrap();
            fs::write(process.join("comm"), "camera\n").unwrap();
        }
        let found = processes_short_of_descriptors(&processes);
        assert_eq!(found, [("camera".into(), "42".into(), 19, 20)]);
    }

    #[test]
    fn limits_of_the_kernel_are_parsed() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 524288               files\n\
                    Max locked memory         unlimited            unlimited            bytes\n";
        assert!(matches!(
            limit(text, "Max open files"),
            Some(SoftLimit::Some(1024))
        ));
        assert!(matches!(
            limit(text, "Max locked memory"),
            Some(SoftLimit::None)
        ));
        assert!(limit(text, "Max realtime priority").is_none());
    }
}
