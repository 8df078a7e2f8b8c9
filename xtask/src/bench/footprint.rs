//! What a process costs that only exists: memory, threads, bytes on disk.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::contestant::{Contestant, Pinning};

/// How long a process rests before it is looked at.
const REST: Duration = Duration::from_millis(1500);

/// An idle process.
pub struct Footprint {
    pub contestant: &'static str,
    /// Proportional set size: its own pages and its share of common ones.
    pub pss_kb: u64,
    /// The part of it that no file backs.
    pub pss_anonymous_kb: u64,
    /// Resident set size.
    pub rss_kb: u64,
    pub threads: u64,
    /// CPU time used while it rested, milliseconds per second.
    pub cpu_ms_per_s: f64,
}

/// The command's size on disk.
pub struct Binary {
    pub bytes: u64,
    pub stripped_bytes: Option<u64>,
}

/// Looks at one idle process of each contestant that has a way to idle.
pub fn measure(contestants: &[Contestant]) -> Result<Vec<Footprint>> {
    let idle = contestants.iter().filter_map(|c| Some((c, c.idle?)));
    idle.map(|(contestant, arguments)| {
        let process = contestant.start(arguments, Pinning::None)?;
        std::thread::sleep(REST);
        let before = cpu_ticks(process.id())?;
        std::thread::sleep(REST);
        let ticks = cpu_ticks(process.id())? - before;
        let rollup = read(process.id(), "smaps_rollup")?;
        let status = read(process.id(), "status")?;
        Ok(Footprint {
            contestant: contestant.name,
            pss_kb: field(&rollup, "Pss:")?,
            pss_anonymous_kb: field(&rollup, "Pss_Anon:")?,
            rss_kb: field(&rollup, "Rss:")?,
            threads: field(&status, "Threads:")?,
            // USER_HZ is 100 on every Linux of ours.
            cpu_ms_per_s: ticks as f64 * 10.0 / REST.as_secs_f64(),
        })
    })
    .collect()
}

fn read(id: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{id}/{file}");
    fs::read_to_string(&path).with_context(|| format!("read {path}"))
}

/// The number behind a key at a line's begin.
fn field(text: &str, key: &str) -> Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("no {key} in {text}"))
}

/// Proportional set size of a process.
pub fn pss_kb(id: u32) -> Result<u64> {
    field(&read(id, "smaps_rollup")?, "Pss:")
}

/// User and system time, fields 14 and 15 of proc_pid_stat(5).
pub fn cpu_ticks(id: u32) -> Result<u64> {
    let stat = read(id, "stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let times = after_name.split_whitespace().skip(11).take(2);
    Ok(times.filter_map(|n| n.parse::<u64>().ok()).sum())
}

/// The size of the release binary, as built and stripped (if there is `strip`).
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
    let stripped_bytes = match worked {
        true => Some(fs::metadata(&stripped)?.len()),
        false => None,
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
