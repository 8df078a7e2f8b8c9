//! M16.7: threads of a node, and the size of the libraries that it brings (tables 6
//! and 7).
//!
//! Libraries are all files that the process has mapped to run, but for the C and C++
//! runtimes. Ours is linked statically: what counts is the whole program, here the
//! `pteros` command with all its verbs, which is far more than a node of one's own has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
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
    let all = ["pteros", "cyclone", "fastdds", "iceoryx2", "zenoh"];
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
    Ok(Measured {
        figures: vec![
            (THREADS.name, memory.threads as f64),
            (LIBRARIES.name, bytes as f64 / 1e6),
            (MEMORY.name, memory.pss_kb as f64),
        ],
        ..Measured::default()
    })
}

/// Sizes of the files that a process runs code of, C and C++ runtimes left out.
fn mapped_bytes(process: u32) -> anyhow::Result<u64> {
    let file = format!("/proc/{process}/maps");
    let text = fs::read_to_string(&file).with_context(|| format!("read {file}"))?;
    let mut bytes = 0;
    for path in executables(&text) {
        let size = fs::metadata(&path).with_context(|| format!("look at {path}"))?;
        bytes += size.len();
    }
    Ok(bytes)
}

/// Files that stand in a table of mappings with the right to be run.
fn executables(maps: &str) -> BTreeSet<String> {
    let is_runtime = |path: &str| {
        let name = Path::new(path)
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into());
        RUNTIME.iter().any(|start| name.starts_with(start))
    };
    maps.lines()
        .filter(|line| {
            line.split_whitespace()
                .nth(1)
                .is_some_and(|rights| rights.contains('x'))
        })
        .filter_map(|line| line.find('/').map(|at| line[at..].to_owned()))
        .filter(|path| !is_runtime(path))
        .collect()
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
    fn what_runs_counts_once_and_the_runtime_does_not() {
        let maps = "55e0-55e1 r--p 00000000 08:01 12 /usr/bin/node\n\
                    55e1-55e2 r-xp 00001000 08:01 12 /usr/bin/node\n\
                    7f00-7f01 r-xp 00000000 08:01 13 /usr/lib/libddsc.so.0.10.2\n\
                    7f01-7f02 r-xp 00001000 08:01 13 /usr/lib/libddsc.so.0.10.2\n\
                    7f10-7f11 r-xp 00000000 08:01 14 /usr/lib/libc.so.6\n\
                    7ffe-7fff r-xp 00000000 00:00 0  [vdso]\n";
        let found: Vec<String> = executables(maps).into_iter().collect();
        assert_eq!(found, ["/usr/bin/node", "/usr/lib/libddsc.so.0.10.2"]);
    }
}
