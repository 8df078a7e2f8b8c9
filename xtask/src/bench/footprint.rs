//! Footprint of an idle process: memory, threads, CPU time and bytes on disk.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::wire_peer::{Pinning, WirePeer};

/// Pause before a process is measured.
const REST: Duration = Duration::from_millis(1500);

/// Footprint of an idle process.
pub struct Footprint {
    pub implementation: &'static str,
    /// Proportional set size: private pages plus the process's share of shared
    /// ones.
    pub pss_kb: u64,
    /// Anonymous part of the PSS, which no file backs.
    pub pss_anonymous_kb: u64,
    /// Resident set size.
    pub rss_kb: u64,
    pub threads: u64,
    /// CPU time used while idle, milliseconds per second.
    pub cpu_ms_per_s: f64,
}

/// Size of the command on disk.
pub struct Binary {
    pub bytes: u64,
    pub stripped_bytes: Option<u64>,
}

/// Measures one idle process of each implementation that has an idle command.
pub fn measure(implementations: &[WirePeer]) -> Result<Vec<Footprint>> {
    let idle = implementations.iter().filter_map(|c| Some((c, c.idle?)));
    idle.map(|(implementation, arguments)| {
        let process = implementation.start(arguments, Pinning::None)?;
        std::thread::sleep(REST);
        let before = cpu_ticks(process.id())?;
        std::thread::sleep(REST);
        let ticks = cpu_ticks(process.id())? - before;
        let rollup = read(process.id(), "smaps_rollup")?;
        let status = read(process.id(), "status")?;
        Ok(Footprint {
            implementation: implementation.name,
            pss_kb: field(&rollup, "Pss:")?,
            pss_anonymous_kb: field(&rollup, "Pss_Anon:")?,
            rss_kb: field(&rollup, "Rss:")?,
            threads: field(&status, "Threads:")?,
            // USER_HZ is 100 on every supported Linux.
            cpu_ms_per_s: ticks as f64 * 10.0 / REST.as_secs_f64(),
        })
    })
    .collect()
}

fn read(id: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{id}/{file}");
    fs::read_to_string(&path).with_context(|| format!("read {path}"))
}

/// Returns the number after the key at the start of a line.
fn field(text: &str, key: &str) -> Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("no {key} in {text}"))
}

/// Proportional set size of a process, KiB.
pub fn pss_kb(id: u32) -> Result<u64> {
    field(&read(id, "smaps_rollup")?, "Pss:")
}

/// User plus system time of a process in ticks, fields 14 and 15 of
/// proc_pid_stat(5).
pub fn cpu_ticks(id: u32) -> Result<u64> {
    let stat = read(id, "stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let times = after_name.split_whitespace().skip(11).take(2);
    Ok(times.filter_map(|n| n.parse::<u64>().ok()).sum())
}

/// Size of the release binary, as built and stripped (if `strip` exists).
pub fn binary(program: &Path) -> Result<Option<Binary>> {
    let Ok(found) = fs::metadata(program) else {
        return Ok(None);
    };
    let stripped = program.with_extension("stripped");
    let worked = Command::new("strip")
        .arg("-o")
        .args([&stripped, &program.to_owned()])
        .status()
        .is_ok_and(|status| status.success());
    let stripped_bytes = if worked {
        Some(fs::metadata(&stripped)?.len())
    } else {
        None
    };
    let _ = fs::remove_file(&stripped);
    Ok(Some(Binary {
        bytes: found.len(),
        stripped_bytes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files_are_found_by_their_key() {
        let rollup = "Rss:  3000 kB\nPss:   1234 kB\nPss_Anon:  99 kB\n";
        assert_eq!(field(rollup, "Pss:").expect("there"), 1234);
        assert!(field(rollup, "Swap:").is_err());
        assert!(cpu_ticks(std::process::id()).is_ok());
    }
}
