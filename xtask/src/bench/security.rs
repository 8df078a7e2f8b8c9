//! Security benchmark:
//! `cargo xtask bench security [--quick] [--only NAME,...] [--repeats N]`.
//!
//! It compares round trips of two processes, secured as SROS 2 does by default
//! (RTPS messages signed, submessages and payloads encrypted), with plain ones.
//! Pteros, Cyclone DDS and Fast DDS take turns in a private network. It also
//! measures how long up to fifty Pteros processes that start at once need to
//! discover each other.
//!
//! Wall time is reported and never fails a build. A failed measurement leaves an
//! empty field.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};

use super::round_trip::{self, RoundTripResult, Row};
use super::wire_peer::{self, Pinning};
use super::{WireBenchPlan, build_ours, simultaneous_start};
use crate::{namespace, peers};

/// Name of the task that runs inside the namespace.
pub const INSIDE_TASK: &str = "bench-security-inside";

const USAGE: &str = "usage: cargo xtask bench security [--quick] [--only NAME,...] [--repeats N]\n\
     names: pteros memory cyclone fastdds, each also with -secured behind it";

/// Secured configurations and the plain ones they are compared with.
const PAIRS: [(&str, &str); 4] = [
    ("pteros-secured", "pteros"),
    ("memory-secured", "memory"),
    ("cyclone-secured", "cyclone"),
    ("fastdds-secured", "fastdds"),
];

/// Implementations of which up to fifty processes start at once.
const SIMULTANEOUS_STARTS: [&str; 2] = ["memory", "memory-secured"];

/// Builds the programs, then measures them in a private network.
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

/// Runs the measurement inside the namespace.
pub fn run_inside(arguments: &[String]) -> Result<()> {
    let [folder, flags @ ..] = arguments else {
        bail!(USAGE);
    };
    let plan = parse(flags)?;
    let programs = peers::target_folder()?.join("release");
    let keystore = peers::target_folder()?.join("bench-keystore");
    make(&programs.join("pteros"), &keystore)?;
    let enclave = keystore.join("enclaves");
    let mut implementations = wire_peer::secured_and_plain(Path::new(folder), &programs, &enclave);
    if !plan.only.is_empty() {
        implementations.retain(|c| plan.only.iter().any(|name| name == c.name));
    }
    let rows = round_trip::measure(&implementations, &plan, Pinning::None);
    print!("{}", text(&rows, plan.repeats));
    let ours = implementations
        .iter()
        .filter(|one| SIMULTANEOUS_STARTS.contains(&one.name));
    let ours: Vec<_> = ours.collect();
    if !ours.is_empty() {
        print!("{}", simultaneous_start::table(&ours));
    }
    Ok(())
}

/// Creates a fresh keystore as SROS 2 does, with the enclave `/` for all processes.
fn make(program: &Path, keystore: &Path) -> Result<()> {
    if keystore.exists() {
        std::fs::remove_dir_all(keystore).context("remove the previous keystore")?;
    }
    let status = Command::new(program)
        .args(["security", "init", "--rtps", "SIGN"])
        .arg(keystore)
        .stdout(std::process::Stdio::null())
        .status()
        .with_context(|| format!("run {}", program.display()))?;
    if status.success() {
        Ok(())
    } else {
        bail!("{} security init: {status}", program.display())
    }
}

fn parse(flags: &[String]) -> Result<WireBenchPlan> {
    let mut plan = WireBenchPlan {
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
        bail!("--only {name}: no such implementation\n{USAGE}");
    }
    Ok(plan)
}

fn text(rows: &[Row], repeats: usize) -> String {
    let mut out = format!(
        "\nRound trip in microseconds, two processes on one host, reliable, keep last 10; secured:\n\
         messages signed, submessages and payloads encrypted. Median of {repeats} repeats in turns.\n\n"
    );
    let _ = write!(out, "{:<26}", "p50");
    for row in rows {
        let _ = write!(out, " {:>10}", row.size);
    }
    let names = rows.first().map_or(&[][..], |row| &row.results);
    for (at, named) in names.iter().enumerate() {
        let _ = write!(out, "\n{:<26}", named.implementation);
        for row in rows {
            let p50 = row.results.get(at).map_or(f64::NAN, RoundTripResult::p50);
            let _ = if p50.is_finite() {
                write!(out, " {p50:>10.1}")
            } else {
                write!(out, " {:>10}", "-")
            };
        }
    }
    compared(&mut out, rows, "secured / plain", |secured, plain| {
        secured.p50() / plain.p50()
    });
    compared(&mut out, rows, "secured - plain", |secured, plain| {
        secured.p50() - plain.p50()
    });
    // The minimum suffers least from a busy machine.
    compared(&mut out, rows, "least - least", |secured, plain| {
        secured.min() - plain.min()
    });
    out.push('\n');
    out
}

/// Writes a row for each configuration that was measured both secured and plain.
fn compared(
    out: &mut String,
    rows: &[Row],
    title: &str,
    figure: impl Fn(&RoundTripResult, &RoundTripResult) -> f64,
) {
    let _ = write!(out, "\n\n{title:<26}");
    for (secured, plain) in PAIRS {
        let pair = |row: &Row| -> Option<f64> {
            let result = |name: &str| {
                row.results
                    .iter()
                    .find(|result| result.implementation == name)
            };
            Some(figure(result(secured)?, result(plain)?))
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
    fn security_overhead_is_shown_for_each_pair_of_secured_and_plain() {
        let result = |implementation, p50| RoundTripResult {
            implementation,
            repeats: vec![round_trip::Rtt {
                p50,
                p95: p50,
                min: p50 - 1.0,
            }],
        };
        let row = Row {
            size: "64 B",
            bytes: 64,
            results: vec![
                result("pteros", 10.0),
                result("pteros-secured", 12.5),
                result("cyclone", 20.0),
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
    fn an_unknown_implementation_is_named() {
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
