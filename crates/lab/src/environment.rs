//! The machine and the versions, as they stand beside every result.

use std::fs;
use std::path::Path;
use std::process::Command;

use pteros_net::thread::{Priority, ThreadSettings};
use pteros_testbed::{Contestant, network};
use serde_json::{Value, json};

use crate::experiment::Extent;
use crate::lab::Rights;

/// The priority whose grant is asked for: what is measured gets the same.
const PRIORITY: u8 = 80;

/// What the system allows; asked of a thread and a process that end at once.
pub fn rights() -> Rights {
    let asked = ThreadSettings {
        priority: Priority::new(PRIORITY).ok(),
        ..ThreadSettings::default()
    };
    let thread = std::thread::spawn(move || asked.apply().map_err(|e| e.to_string()));
    let priority = thread.join().unwrap_or_else(|_| Err("it panicked".into()));
    Rights {
        priority: priority.and_then(|()| is_there("chrt", "util-linux")),
        memory: memory_right(),
        network: match std::env::var(network::VARIABLE) {
            Ok(_) => Ok(()),
            Err(_) => network::available(),
        },
    }
}

fn is_there(tool: &str, package: &str) -> Result<(), String> {
    match pteros_testbed::workplace::is_on_path(tool) {
        true => Ok(()),
        false => Err(format!("{tool} is missing; install the package {package}")),
    }
}

/// The machine's root may lock all of its memory, others as much as their limit says.
fn memory_right() -> Result<(), String> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match limit {
        None => Ok(()),
        Some(_) if has_lock_capability() && is_first_namespace() => Ok(()),
        Some(bytes) => Err(format!(
            "mlockall: only {bytes} bytes may be locked; raise the limit (ulimit -l unlimited)"
        )),
    }
}

/// Whether users are the machine's own: capabilities that a user namespace has given
/// are none to `mlockall`.
fn is_first_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let words: Vec<&str> = map.split_whitespace().collect();
    words == ["0", "0", "4294967295"]
}

/// CAP_IPC_LOCK, number 14, among the effective ones.
fn has_lock_capability() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << 14) != 0)
}

/// What a run of that extent writes, about, journals, samples and traces in passing.
fn room_bytes(extent: Extent) -> u64 {
    extent.choose(16 << 20, 64 << 20, 2 << 30)
}

/// What is to be said at the start if the disk of `folder` is nearly full.
pub fn lack_of_room(folder: &Path, extent: Extent) -> Option<String> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let wanted = room_bytes(extent);
    (free < wanted).then(|| {
        format!(
            "room: {} MB are free in {}, a --{extent} run may need {}; what no longer fits is not measured",
            free >> 20,
            folder.display(),
            wanted >> 20
        )
    })
}

/// All that is to be known about where a run was made.
pub fn describe(
    extent: Extent,
    repeats: usize,
    rights: &Rights,
    contestants: &[Contestant],
    missing: &[String],
) -> Value {
    let read = |path: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        match text.trim() {
            "" => "unknown".to_owned(),
            known => known.to_owned(),
        }
    };
    let list: Vec<Value> = contestants
        .iter()
        .map(|c| {
            let settings: Vec<String> = c
                .environment
                .iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            json!({ "name": c.name, "about": c.about, "version": version(c), "settings": settings })
        })
        .collect();
    let asked = [
        ("SCHED_FIFO", &rights.priority),
        ("locked memory", &rights.memory),
        ("a network of its own", &rights.network),
    ];
    let denied: Vec<String> = asked
        .into_iter()
        .filter_map(|(what, right)| Some(format!("{what}: {}", right.as_ref().err()?)))
        .collect();
    let granted: Vec<String> = asked
        .into_iter()
        .filter(|(_, right)| right.is_ok())
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
        "build": if cfg!(debug_assertions) { "debug: times say little" } else { "release" },
        "cpu": cpu(),
        "cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "memory": memory(),
        "rmem_max": read("/proc/sys/net/core/rmem_max"),
        "wmem_max": read("/proc/sys/net/core/wmem_max"),
        "contestants": list,
        "missing": missing,
        "granted": granted,
        "limits": limits(),
        "denied": denied,
    })
}

/// The limits of this process that bear on time, in ulimit's words.
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

/// The Debian package's version where the stack comes from one.
fn version(contestant: &Contestant) -> String {
    let package = match contestant.stack {
        "cyclone" => "cyclonedds-dev",
        "fastdds" => "libfastrtps-dev",
        "pteros" => return env!("CARGO_PKG_VERSION").into(),
        _ => return "as its Cargo.lock says".into(),
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
