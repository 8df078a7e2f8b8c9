//! The environment of a run: machine, versions and privileges.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::testbed::implementation::{RCLCPP, RCLPY, ROSBAG2, WHEEL};
use crate::testbed::{Implementation, network};
use pteros_net::thread::{Priority, ThreadSettings};
use pteros_peers::ros2::PATHS;
use serde_json::{Value, json};

use crate::lab::Privileges;
use crate::measurement::Extent;

/// The real-time priority to check. Measured processes get the same.
const PRIORITY: u8 = 80;

/// The privileges of this process. Checked on a temporary thread and process.
pub fn privileges() -> Privileges {
    let asked = ThreadSettings {
        priority: Priority::new(PRIORITY).ok(),
        ..ThreadSettings::default()
    };
    let thread = std::thread::spawn(move || asked.apply().map_err(|e| e.to_string()));
    let priority = thread.join().unwrap_or_else(|_| Err("it panicked".into()));
    Privileges {
        priority: priority.and_then(|()| tool_available("chrt", "util-linux")),
        memory: lock_privilege(),
        network: match std::env::var(network::VARIABLE) {
            Ok(_) => Ok(()),
            Err(_) => network::available(),
        },
    }
}

fn tool_available(tool: &str, package: &str) -> Result<(), String> {
    if pteros_peers::peer_build::is_on_path(tool) {
        Ok(())
    } else {
        Err(format!("{tool} is missing; install the package {package}"))
    }
}

/// Whether `mlockall` is allowed: to root of the machine, or within the limit.
fn lock_privilege() -> Result<(), String> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match limit {
        None => Ok(()),
        Some(_) if has_lock_capability() && is_first_namespace() => Ok(()),
        Some(bytes) => Err(format!(
            "mlockall: only {bytes} bytes may be locked; raise the limit (ulimit -l unlimited)"
        )),
    }
}

/// Whether this is the initial user namespace. `mlockall` ignores capabilities of
/// other user namespaces.
fn is_first_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let words: Vec<&str> = map.split_whitespace().collect();
    words == ["0", "0", "4294967295"]
}

/// Whether CAP_IPC_LOCK (14) is effective.
fn has_lock_capability() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << 14) != 0)
}

/// Approximate disk space of a run: journals, samples and temporary traces.
fn disk_bytes_needed(extent: Extent) -> u64 {
    extent.choose(16 << 20, 64 << 20, 2 << 30)
}

/// A warning if the disk of `folder` is nearly full.
pub fn low_disk_warning(folder: &Path, extent: Extent) -> Option<String> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let wanted = disk_bytes_needed(extent);
    (free < wanted).then(|| {
        format!(
            "disk space: {} MB are free in {}, a --{extent} run may need {}; what does not fit is not measured",
            free >> 20,
            folder.display(),
            wanted >> 20
        )
    })
}

/// The description of the environment.
pub fn describe(
    extent: Extent,
    repeats: usize,
    privileges: &Privileges,
    implementations: &[Implementation],
    missing: &[String],
) -> Value {
    let read = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        match text.trim() {
            "" => "unknown".to_owned(),
            known => known.to_owned(),
        }
    };
    let list: Vec<Value> = implementations
        .iter()
        .map(|c| {
            let settings: Vec<String> = c
                .environment
                .iter()
                .filter(|(name, _)| !PATHS.contains(name))
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            json!({ "name": c.name, "about": c.about, "version": version(c), "settings": settings })
        })
        .collect();
    let asked = [
        ("SCHED_FIFO", &privileges.priority),
        ("locked memory", &privileges.memory),
        ("a private network", &privileges.network),
    ];
    let denied: Vec<String> = asked
        .into_iter()
        .filter_map(|(what, privilege)| Some(format!("{what}: {}", privilege.as_ref().err()?)))
        .collect();
    let granted: Vec<String> = asked
        .into_iter()
        .filter(|(_, privilege)| privilege.is_ok())
        .map(|(what, _)| match what {
            "SCHED_FIFO" => format!("{what}, priority {PRIORITY}"),
            _ => what.to_owned(),
        })
        .collect();
    json!({
        "when": Command::new("date").arg("-uIseconds").output().ok()
            .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()),
        "extent": extent.name(),
        "repeats": repeats,
        "pteros": env!("CARGO_PKG_VERSION"),
        "build": if cfg!(debug_assertions) { "debug: times are not meaningful" } else { "release" },
        "cpu": cpu(),
        "cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "memory": memory(),
        "rmem_max": read("/proc/sys/net/core/rmem_max"),
        "wmem_max": read("/proc/sys/net/core/wmem_max"),
        "implementations": list,
        "missing": missing,
        "granted": granted,
        "limits": limits(),
        "denied": denied,
    })
}

/// The resource limits that affect timing, with the names of ulimit.
fn limits() -> Vec<String> {
    use rustix::process::{Resource, getrlimit};
    let all = [
        ("rtprio", Resource::Rtprio),
        ("memlock", Resource::Memlock),
        ("nofile", Resource::Nofile),
    ];
    let text = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |most| most.to_string());
    all.into_iter()
        .map(|(name, resource)| format!("{name} {}", text(getrlimit(resource).current)))
        .collect()
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name.and_then(|line| line.split_once(':'));
    name.map_or("unknown".into(), |(_, name)| name.trim().to_owned())
}

fn memory() -> String {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.map_or("unknown".into(), |rest| rest.trim().to_owned())
}

/// Version of the Debian package, for stacks that come from one.
fn version(implementation: &Implementation) -> String {
    let package = match implementation.stack {
        "cyclone" => "cyclonedds-dev",
        "fastdds" => "libfastrtps-dev",
        "pteros" | WHEEL => return env!("CARGO_PKG_VERSION").into(),
        RCLCPP | RCLPY | ROSBAG2 => return "that of the ROS 2".into(),
        _ => return "version of its Cargo.lock".into(),
    };
    let format = "--showformat=${Version}";
    let asked = Command::new("dpkg-query")
        .args(["--show", format, package])
        .output();
    match asked {
        Ok(out) if out.status.success() => String::from_utf8_lossy(&out.stdout).into_owned(),
        _ => "unknown".into(),
    }
}
