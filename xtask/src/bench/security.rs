//! `cargo xtask bench security [--quick] [--only NAME,...] [--repeats N]`: round
//! trips of two processes, secured as SROS 2 ships it (whole messages signed,
//! submessages and payloads encrypted) against plain, ours beside Cyclone DDS and
//! Fast DDS, in turns in a private network; and how long up to fifty processes of
//! ours take to meet that start at once.
//!
//! Wall time reports, it never fails a build; a measurement without an answer
//! shows as nothing.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use super::contestant::{self, Pinning};
use super::round_trip::{self, Cell, Row};
use super::{Plan, build_ours, crowd};
use crate::{namespace, peers};

/// The task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-security-inside";

const USAGE: &str = "usage: cargo xtask bench security [--quick] [--only NAME,...] [--repeats N]\n\
     names: pteros memory cyclone fastdds, each also with -secured behind it";

/// What is secured, and what it is compared with.
const PAIRS: [(&str, &str); 4] = [
    ("pteros-secured", "pteros"),
    ("memory-secured", "memory"),
    ("cyclone-secured", "cyclone"),
    ("fastdds-secured", "fastdds"),
];

/// Of which as many as fifty start at once.
const CROWDS: [&str; 2] = ["memory", "memory-secured"];

/// Prepares what is measured, then measures it in a private network.
pub fn run(flags: &[String]) -> Result<ExitStatus> {
    parse(flags)?;
    let folder = peers::prepare_for_security()?;
    build_ours()?;
    let own = std::env::current_exe()?;
    namespace::command(true, &own.to_string_lossy())?
        .arg(INSIDE_TASK)
        .arg(folder)
        .args(flags)
        .status()
        .context("run the bench in a private network")
}

/// The inner half.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let plan = parse(flags)?;
    let programs = peers::target_folder()?.join("release");
    let keystore = peers::target_folder()?.join("bench-keystore");
    make(&programs.join("pteros"), &keystore)?;
    let enclave = keystore.join("enclaves");
    let mut contestants = contestant::secured_and_plain(Path::new(folder), &programs, &enclave);
    if !plan.only.is_empty() {
        contestants.retain(|c| plan.only.iter().any(|name| name == c.name));
    }
    let rows = round_trip::measure(&contestants, &plan, Pinning::None);
    print!("{}", text(&rows, plan.repeats));
    let ours = contestants.iter().filter(|one| CROWDS.contains(&one.name));
    let ours: Vec<_> = ours.collect();
    if !ours.is_empty() {
        print!("{}", crowd::table(&ours));
    }
    Ok(())
}

/// A fresh keystore as SROS 2 would make it, with the enclave `/` for all.
fn make(program: &Path, keystore: &Path) -> Result<()> {
    if keystore.exists() {
        std::fs::remove_dir_all(keystore).context("remove the last keystore")?;
    }
    let status = Command::new(program)
        .args(["security", "init", "--rtps", "SIGN"])
        .arg(keystore)
        .stdout(std::process::Stdio::null())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{} security init: {status}", program.display()),
    }
}

fn parse(flags: &[String]) -> Result<Plan> {
    let mut plan = Plan {
        quick: false,
        pinnings: Vec::new(),
        only: Vec::new(),
        repeats: 3,
        json: None,
    };
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let mut value = || {
            let value = flags.next();
            value.with_context(|| format!("{flag} lacks a value"))
        };
        match flag.as_str() {
            "--quick" => plan.quick = true,
            "--repeats" => plan.repeats = value()?.parse().context("--repeats")?,
            "--only" => plan.only = value()?.split(',').map(str::to_owned).collect(),
            other => bail!("{other}: no such option\n{USAGE}"),
        }
    }
    let is_known = |name: &String| {
        let mut all = PAIRS.iter().flat_map(|(one, other)| [*one, *other]);
        all.any(|known| known == name)
    };
    if let Some(name) = plan.only.iter().find(|name| !is_known(name)) {
        bail!("--only {name}: no such contestant\n{USAGE}");
    }
    Ok(plan)
}

fn text(rows: &[Row], repeats: usize) -> String {
    let mut out = format!(
        "\nRound trip in microseconds, two processes of one host, reliable, keep last 10; secured:\n\
         messages signed, submessages and payloads encrypted. Median of {repeats} repeats in turns.\n\n"
    );
    let _ = write!(out, "{:<26}", "p50");
    for row in rows {
        let _ = write!(out, " {:>10}", row.size);
    }
    let names = rows.first().map_or(&[][..], |row| &row.cells);
    for (at, named) in names.iter().enumerate() {
        let _ = write!(out, "\n{:<26}", named.contestant);
        for row in rows {
            let p50 = row.cells.get(at).map_or(f64::NAN, Cell::p50);
            let _ = match p50.is_finite() {
                true => write!(out, " {p50:>10.1}"),
                false => write!(out, " {:>10}", "-"),
            };
        }
    }
    compared(&mut out, rows, "secured / plain", |secured, plain| {
        secured.p50() / plain.p50()
    });
    compared(&mut out, rows, "secured - plain", |secured, plain| {
        secured.p50() - plain.p50()
    });
    // What a busy machine disturbs least.
    compared(&mut out, rows, "least - least", |secured, plain| {
        secured.min() - plain.min()
    });
    out.push('\n');
    out
}

/// A row for each that is there both secured and plain.
fn compared(out: &mut String, rows: &[Row], title: &str, figure: impl Fn(&Cell, &Cell) -> f64) {
    let _ = write!(out, "\n\n{title:<26}");
    for (secured, plain) in PAIRS {
        let pair = |row: &Row| -> Option<f64> {
            let cell = |name: &str| row.cells.iter().find(|cell| cell.contestant == name);
            Some(figure(cell(secured)?, cell(plain)?))
        };
        if !rows.iter().any(|row| pair(row).is_some()) {
            continue;
        }
        let _ = write!(out, "\n{secured:<26}");
        for row in rows {
            let _ = match pair(row).filter(|figure| figure.is_finite()) {
                Some(figure) => write!(out, " {figure:>10.2}"),
                None => write!(out, " {:>10}", "-"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_security_adds_stands_beside_each_that_is_there_both_ways() {
        let cell = |contestant, p50| Cell {
            contestant,
            repeats: vec![round_trip::Rtt {
                p50,
                p95: p50,
                min: p50 - 1.0,
            }],
        };
        let row = Row {
            size: "64 B",
            bytes: 64,
            cells: vec![
                cell("pteros", 10.0),
                cell("pteros-secured", 12.5),
                cell("cyclone", 20.0),
            ],
        };
        let said = text(&[row], 1);
        let figures = |title: &str| {
            let from = said.split(title).nth(1).unwrap();
            let line = from.lines().nth(1).unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(figures("secured / plain"), ["pteros-secured", "1.25"]);
        assert_eq!(figures("secured - plain"), ["pteros-secured", "2.50"]);
        assert_eq!(figures("least - least"), ["pteros-secured", "2.50"]);
        assert!(!said.contains("cyclone-secured"));
    }

    #[test]
    fn an_unknown_contestant_is_named() {
        let flags = ["--only", "pteros-secured,connext"].map(str::to_owned);
        let Err(error) = parse(&flags) else {
            panic!("taken");
        };
        assert!(error.to_string().contains("connext"), "{error}");
        let flags = ["--only", "memory", "--quick", "--repeats", "5"].map(str::to_owned);
        let plan = parse(&flags).unwrap();
        assert!(plan.quick && plan.repeats == 5 && plan.only == ["memory"]);
    }
}
