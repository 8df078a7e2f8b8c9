//! M16.7: threads of a node, and the size of its libraries (tables 6 and 7).
//!
//! Libraries are all files with mapped code except the C and C++ runtimes, with
//! their mapped size. Pteros is linked statically, so the whole program
//! `pteros-lab-worker` counts, which also has the lab's options and topologies.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::testbed::implementation::ROS1;
use crate::testbed::{MeasurementFailure, procfs};
use anyhow::Context;

use crate::experiment::{Experiment, Paper, Scope};
use crate::lab::Lab;
use crate::measurement::{Better, Configuration, Measurement, Metric, Published, Statistic};
use crate::report_items::{self, ReportItem};
use crate::results::View;

pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.7",
    paper: Paper::M16,
    title: "Threads of a node, size of its libraries",
    reproduces: "tables 6, 7",
    question: "How many threads does an idle node with one publisher and one subscription have, and how large is what it loads?",
    metrics: &[THREADS, LIBRARIES, MEMORY],
    configurations,
    run,
    published: &[
        published("ROS 1", "5 threads (+3 of the master), 2.26 MB"),
        published("Connext", "8 threads, 21.18 MB"),
        published("OpenSplice", "49 threads, 17.95 MB"),
        published("FastRTPS", "5 threads, 5.28 MB"),
    ],
    report_items,
};

const fn published(implementation: &'static str, value: &'static str) -> Published {
    Published {
        case: &[("node", "idle")],
        implementation,
        value,
        source: "tables 6, 7",
    }
}

const THREADS: Metric = metric("threads", "");
const LIBRARIES: Metric = metric("program and libraries", "MB");
const MEMORY: Metric = metric("PSS", "kB");

const fn metric(name: &'static str, unit: &'static str) -> Metric {
    Metric::new(name, unit, Better::Lower, Statistic::Median)
}

/// Idle time before the measurement.
const REST: Duration = Duration::from_millis(700);

/// Path prefixes of files that every C or C++ program has.
const RUNTIME: [&str; 6] = [
    "libc.so",
    "libm.so",
    "libgcc_s",
    "libstdc++",
    "ld-linux",
    "libpthread",
];

fn configurations(scope: &Scope) -> Vec<Configuration> {
    let all = ["pteros", "cyclone", "fastdds", "iceoryx2", "zenoh", ROS1];
    let implementations = scope.among(&all).into_iter();
    implementations
        .map(|implementation| Configuration {
            case: vec![("node", "idle".to_owned())],
            implementation,
            seconds: 1.0,
        })
        .collect()
}

fn run(lab: &Lab, configuration: &Configuration) -> Result<Measurement, MeasurementFailure> {
    let implementation = lab.implementation(configuration.implementation)?;
    let arguments = ["nodes", "--nodes", "1", "--of", "2", "--topic"];
    let mut arguments: Vec<String> = arguments.map(str::to_owned).into();
    arguments.push(lab.fresh_topic());
    let mut process = lab.start(implementation, false, arguments)?;
    process.expect("ready", Duration::from_secs(25))?;
    std::thread::sleep(REST);
    let memory = procfs::memory(process.id())?;
    let bytes = mapped_bytes(process.id())?;
    let mut notes = Vec::new();
    if let Some(master) = lab.ros1_master().filter(|_| implementation.stack == ROS1) {
        let of = procfs::memory(master)?;
        notes.push(format!(
            "plus its master, another process: {} threads, {} kB PSS",
            of.threads, of.pss_kb
        ));
    }
    Ok(Measurement {
        values: vec![
            (THREADS.name, memory.threads as f64),
            (LIBRARIES.name, bytes as f64 / 1e6),
            (MEMORY.name, memory.pss_kb as f64),
        ],
        notes,
        ..Measurement::default()
    })
}

/// Mapped bytes of the files with code, without the C and C++ runtimes and without
/// symbol tables, which Debian's libraries lack.
fn mapped_bytes(process: u32) -> anyhow::Result<u64> {
    let file = format!("/proc/{process}/maps");
    let text = fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
    Ok(loaded(&text).values().sum())
}

/// Bytes by file in a table of mappings, for files with an executable mapping.
fn loaded(maps: &str) -> BTreeMap<&str, u64> {
    let mut all: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for line in maps.lines() {
        let mut arguments = line.split_whitespace();
        let range = arguments.next().and_then(|range| range.split_once('-'));
        let (Some((from, to)), Some(privileges)) = (range, arguments.next()) else {
            continue;
        };
        // Gaps between segments are reserved, not loaded.
        let path = line.find('/').and_then(|at| line.get(at..));
        let Some(path) = path.filter(|path| privileges != "---p" && !is_runtime(path)) else {
            continue;
        };
        let place = |word| u64::from_str_radix(word, 16).unwrap_or(0);
        let entry = all.entry(path).or_default();
        entry.0 += place(to).saturating_sub(place(from));
        entry.1 |= privileges.contains('x');
    }
    let run = all.into_iter().filter(|(_, (_, runs))| *runs);
    run.map(|(path, (bytes, _))| (path, bytes)).collect()
}

fn is_runtime(path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    RUNTIME.iter().any(|start| name.starts_with(start))
}

fn report_items(view: &View) -> Vec<ReportItem> {
    [&THREADS, &LIBRARIES, &MEMORY]
        .map(|metric| ReportItem::Table(report_items::comparison(view, metric)))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_program_memory_counts_and_runtime_memory_does_not() {
        let maps = "55e00000-55e01000 r--p 00000000 08:01 12 /usr/bin/node\n\
                    55e01000-55e03000 r-xp 00001000 08:01 12 /usr/bin/node\n\
                    7f000000-7f001000 r-xp 00000000 08:01 13 /usr/lib/libddsc.so.0.10.2\n\
                    7f001000-7f011000 ---p 00001000 08:01 13 /usr/lib/libddsc.so.0.10.2\n\
                    7f011000-7f012000 rw-p 00001000 08:01 13 /usr/lib/libddsc.so.0.10.2\n\
                    7f020000-7f021000 r--s 00000000 08:01 15 /usr/lib/locale/C.utf8\n\
                    7f100000-7f110000 r-xp 00000000 08:01 14 /usr/lib/libc.so.6\n\
                    7ffe0000-7fff0000 r-xp 00000000 00:00 0  [vdso]\n";
        let found: Vec<(&str, u64)> = loaded(maps).into_iter().collect();
        let expected = [
            ("/usr/bin/node", 0x3000),
            ("/usr/lib/libddsc.so.0.10.2", 0x2000),
        ];
        assert_eq!(found, expected);
    }
}
