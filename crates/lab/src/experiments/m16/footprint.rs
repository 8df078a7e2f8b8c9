//! M16.7: threads of a node, and the size of the libraries that it brings (tables 6
//! and 7).
//!
//! Libraries are all files that the process has mapped to run, but for the C and C++
//! runtimes, with what is mapped of them. Ours is linked statically: what counts is the whole program,
//! `pteros-lab-worker`, which beside a node has the lab's options and topologies in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use pteros_testbed::contestant::ROS1;
use pteros_testbed::{Failure, watch};

use crate::exhibit::{self, Exhibit};
use crate::experiment::{
    Better, Cell, Experiment, Measured, Metric, Paper, Published, Scope, Statistic,
};
use crate::lab::Lab;
use crate::results::View;

/// See the module.
pub const EXPERIMENT: Experiment = Experiment {
    id: "m16.7",
    paper: Paper::M16,
    title: "Threads of a node, size of its libraries",
    shows: "tables 6, 7",
    asks: "How many threads does an idle node with one publisher and one subscription have, and how large is what it loads?",
    metrics: &[THREADS, LIBRARIES, MEMORY],
    cells,
    run,
    published: &[
        published("ROS 1", "5 threads (+3 of the master), 2.26 MB"),
        published("Connext", "8 threads, 21.18 MB"),
        published("OpenSplice", "49 threads, 17.95 MB"),
        published("FastRTPS", "5 threads, 5.28 MB"),
    ],
    exhibits,
};

const fn published(who: &'static str, value: &'static str) -> Published {
    Published {
        case: &[("node", "idle")],
        who,
        value,
        place: "tables 6, 7",
    }
}

const THREADS: Metric = figure("threads", "");
const LIBRARIES: Metric = figure("program and libraries", "MB");
const MEMORY: Metric = figure("PSS", "kB");

const fn figure(name: &'static str, unit: &'static str) -> Metric {
    Metric {
        name,
        unit,
        better: Better::Lower,
        statistic: Statistic::Median,
    }
}

/// How long a node rests before it is looked at.
const REST: Duration = Duration::from_millis(700);

/// Beginnings of files that every C or C++ program has.
const RUNTIME: [&str; 6] = [
    "libc.so",
    "libm.so",
    "libgcc_s",
    "libstdc++",
    "ld-linux",
    "libpthread",
];

fn cells(scope: &Scope) -> Vec<Cell> {
    let all = ["pteros", "cyclone", "fastdds", "iceoryx2", "zenoh", ROS1];
    let contestants = scope.among(&all).into_iter();
    contestants
        .map(|contestant| Cell {
            case: vec![("node", "idle".to_owned())],
            contestant,
            seconds: 1.0,
        })
        .collect()
}

fn run(lab: &Lab, cell: &Cell) -> Result<Measured, Failure> {
    let who = lab.contestant(cell.contestant)?;
    let words = ["nodes", "--nodes", "1", "--of", "2", "--topic"];
    let mut words: Vec<String> = words.map(str::to_owned).into();
    words.push(lab.fresh_topic());
    let mut process = lab.start(who, false, words)?;
    process.expect("ready", Duration::from_secs(25))?;
    std::thread::sleep(REST);
    let memory = watch::memory(process.id())?;
    let bytes = mapped_bytes(process.id())?;
    let mut notes = Vec::new();
    if let Some(master) = lab.ros1_master().filter(|_| who.stack == ROS1) {
        let of = watch::memory(master)?;
        notes.push(format!(
            "its master, a process beside it: {} threads, {} kB PSS",
            of.threads, of.pss_kb
        ));
    }
    Ok(Measured {
        figures: vec![
            (THREADS.name, memory.threads as f64),
            (LIBRARIES.name, bytes as f64 / 1e6),
            (MEMORY.name, memory.pss_kb as f64),
        ],
        notes,
        ..Measured::default()
    })
}

/// What a process has mapped of the files that it runs code of, C and C++ runtimes
/// left out. Tables of symbols, which Debian's libraries lack, are not among it.
fn mapped_bytes(process: u32) -> anyhow::Result<u64> {
    let file = format!("/proc/{process}/maps");
    let text = fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
    Ok(loaded(&text).values().sum())
}

/// Bytes by file in a table of mappings, of files of which one may be run.
fn loaded(maps: &str) -> BTreeMap<&str, u64> {
    let mut all: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let (Some((from, to)), Some(rights)) = (range, words.next()) else {
            continue;
        };
        // Gaps between segments are reserved, not loaded.
        let path = line.find('/').and_then(|at| line.get(at..));
        let Some(path) = path.filter(|path| rights != "---p" && !is_runtime(path)) else {
            continue;
        };
        let place = |word| u64::from_str_radix(word, 16).unwrap_or(0);
        let entry = all.entry(path).or_default();
        entry.0 += place(to).saturating_sub(place(from));
        entry.1 |= rights.contains('x');
    }
    let run = all.into_iter().filter(|(_, (_, runs))| *runs);
    run.map(|(path, (bytes, _))| (path, bytes)).collect()
}

fn is_runtime(path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    RUNTIME.iter().any(|start| name.starts_with(start))
}

fn exhibits(view: &View) -> Vec<Exhibit> {
    [&THREADS, &LIBRARIES, &MEMORY]
        .map(|metric| Exhibit::Table(exhibit::comparison(view, metric)))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_counts_as_it_is_mapped_and_the_runtime_does_not() {
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
