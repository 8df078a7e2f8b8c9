//! The clock, and what the kernel lets a process do.

use super::finding::{Finding, Findings};
use pteros::config::Config;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Both clocks at one moment, to see a step between two of them.
#[derive(Clone, Copy)]
pub struct Moment {
    steady: Instant,
    wall: SystemTime,
}

impl Moment {
    pub fn now() -> Self {
        Self {
            steady: Instant::now(),
            wall: SystemTime::now(),
        }
    }
}

/// A step that is none: NTP slews by at most 0.5 ms a second, a busy host reads its
/// clocks one after the other.
const STEP: Duration = Duration::from_millis(20);
/// 2024: nothing here is older.
const PAST: Duration = Duration::from_secs(1_704_067_200);

/// The clock, since `begun`.
pub fn time(begun: Moment) -> Vec<Finding> {
    let mut found = Findings::new("time");
    let now = Moment::now();
    let steady = now.steady.saturating_duration_since(begun.steady);
    let (ahead, back) = match now.wall.duration_since(begun.wall) {
        Ok(wall) => (wall.saturating_sub(steady), steady.saturating_sub(wall)),
        Err(error) => (Duration::ZERO, error.duration()),
    };
    let step = ahead.max(back);
    if step > STEP {
        let way = if ahead > back { "forwards" } else { "back" };
        found.warn(
            format!("the clock stepped {step:?} {way} in the last {steady:?}"),
            "let one program discipline it: timedatectl status, chronyc tracking; stamps before and after do not compare",
        );
    } else {
        found.fine("the clock goes evenly");
    }
    if now.wall.duration_since(UNIX_EPOCH).unwrap_or_default() < PAST {
        found.error(
            "the clock is in the past: this host has not been told the time",
            "sudo timedatectl set-ntp true, or set it: sudo date -s '…'",
        );
    }
    let keeper = processes()
        .into_iter()
        .find(|name| KEEPERS.contains(&name.as_str()));
    let synchronized = Path::new("/run/systemd/timesync/synchronized").exists();
    match keeper {
        Some(name) if name == "systemd-timesyn" && !synchronized => found.note_with(
            "systemd-timesyncd runs, but has not heard of a server yet",
            "timedatectl timesync-status",
        ),
        Some(name) => found.fine(format!("{name} keeps the clock")),
        None => found.note_with(
            "no program that keeps the clock was found here; it may be the host's that this container runs on",
            "where messages of several hosts are compared by their stamps, install chrony",
        ),
    }
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if let Some(source) = source.filter(|s| ["hpet", "acpi_pm", "jiffies"].contains(&s.as_str())) {
        found.warn(
            format!("the kernel reads time from {source}, a microsecond or more each time"),
            "boot with clocksource=tsc tsc=reliable if the processor's counter is steady",
        );
    }
    found.into_list()
}

/// As `/proc/N/comm` has them, cut at fifteen letters.
const KEEPERS: &[&str] = &[
    "chronyd",
    "ntpd",
    "ntpsec",
    "openntpd",
    "ptp4l",
    "phc2sys",
    "systemd-timesyn",
];

/// Names of all processes that can be seen, at most some thousands.
fn processes() -> Vec<String> {
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
        .filter_map(|pid| read(Path::new("/proc").join(pid).join("comm")))
        .collect()
}

/// What the kernel lets a process do, and where it may write.
pub fn permissions() -> Vec<Finding> {
    let mut found = Findings::new("permissions");
    let limits = read("/proc/self/limits").unwrap_or_default();
    let may_all = has_sys_nice();
    match limit(&limits, "Max realtime priority") {
        Some(Limit::Some(0)) if !may_all => found.note_with(
            "threads get no real-time priority (--thread-priority is refused)",
            "add to /etc/security/limits.d/ros.conf: @realtime - rtprio 98 (and log in again), or give the container --cap-add SYS_NICE",
        ),
        Some(Limit::Some(most)) if !may_all => {
            found.fine(format!("threads get real-time priorities up to {most}"));
        }
        _ => found.fine("threads get any real-time priority"),
    }
    match limit(&limits, "Max locked memory") {
        Some(Limit::Some(bytes)) if bytes < 256 << 20 && !may_all => found.note_with(
            format!("{} KiB may be locked, too little for --lock-memory", bytes / 1024),
            "add to /etc/security/limits.d/ros.conf: @realtime - memlock unlimited, or give the container --ulimit memlock=-1",
        ),
        _ => found.fine("memory may be locked"),
    }
    match limit(&limits, "Max open files") {
        // A link is two descriptors, a neighbour three.
        Some(Limit::Some(most)) if most < 1_024 => found.warn(
            format!(
                "a process has at most {most} descriptors: some {} peers of this host",
                most / 6
            ),
            "ulimit -n 4096, or LimitNOFILE=4096 in its unit",
        ),
        Some(Limit::Some(most)) => found.fine(format!("a process has up to {most} descriptors")),
        _ => found.fine("a process has as many descriptors as it likes"),
    }
    if let Ok(config) = Config::from_environment() {
        writable(
            &mut found,
            "log files",
            config.log_folder.as_deref(),
            "ROS_LOG_DIR",
        );
        writable(
            &mut found,
            "stores",
            config.store_folder.as_deref(),
            "PTEROS_STORE_DIR",
        );
    }
    found.into_list()
}

/// Looks whether the folder, or the nearest above it that exists, can be written.
fn writable(found: &mut Findings, what: &str, folder: Option<&Path>, variable: &str) {
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
        Some(Ok(())) => found.fine(format!("{what} go to {}", folder.display())),
        Some(Err(error)) => found.warn(
            format!("{what} cannot be written to {}: {error}", folder.display()),
            format!("set {variable} to a folder that can be written"),
        ),
        None => found.warn(
            format!("{what} cannot be written to {}", folder.display()),
            format!("set {variable} to a folder that exists"),
        ),
    }
}

enum Limit {
    Some(u64),
    None,
}

/// The soft limit of a line of `/proc/self/limits`.
fn limit(limits: &str, name: &str) -> Option<Limit> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(Limit::None),
        number => number.parse().ok().map(Limit::Some),
    }
}

/// CAP_SYS_NICE, bit 23, and CAP_IPC_LOCK, bit 14.
fn has_sys_nice() -> bool {
    let status = read("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let both = (1 << 23) | (1 << 14);
    set.is_some_and(|set| set & both == both)
}

/// The text of a small file of the kernel's.
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::finding::Weight;
    use super::*;

    #[test]
    fn a_clock_that_steps_is_noticed() {
        let mut begun = Moment::now();
        assert_eq!(time(begun)[0].weight, Weight::Fine);
        begun.wall += Duration::from_secs(3);
        let found = &time(begun)[0];
        assert!(
            found.weight == Weight::Warning && found.text.contains(" back "),
            "{found:?}"
        );
        begun.wall -= Duration::from_secs(6);
        assert!(time(begun)[0].text.contains(" forwards "));
    }

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 524288               files\n\
                    Max locked memory         unlimited            unlimited            bytes\n";
        assert!(matches!(
            limit(text, "Max open files"),
            Some(Limit::Some(1024))
        ));
        assert!(matches!(
            limit(text, "Max locked memory"),
            Some(Limit::None)
        ));
        assert!(limit(text, "Max realtime priority").is_none());
    }
}
