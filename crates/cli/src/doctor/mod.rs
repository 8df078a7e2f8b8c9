//! `pteros doctor`: checks for problems of communication, each finding with a fix.
//!
//! The checks cover the environment, the network, Zenoh, shared memory, ROS 2's plug-in, the
//! clock, permissions and the graph. Every check has a time limit; together they take less
//! than two seconds.

mod environment;
pub mod finding;
mod graph;
mod host;
mod multicast_hello;
mod network;
mod paths;
pub mod plug_in;
mod python;
mod report;
mod shared_memory;
mod stacks;
mod zenoh;

use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::{Args, Subcommand};
use finding::{Finding, FindingSeverity};
use serde_json::json;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit code 0 if there is no error, 1 if there is one; with --include-warnings, or a warning."
)]
pub struct Doctor {
    #[command(subcommand)]
    verb: Option<DoctorVerb>,
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Print system information for a bug report instead: platform, network,
    /// environment, graph
    #[arg(short = 'r', long)]
    report: bool,
    /// Print only warnings and errors (also -rf)
    #[arg(short = 'f', long, conflicts_with = "report")]
    report_failed: bool,
    /// Fail if there is a warning (also -iw)
    #[arg(short = 'w', long)]
    include_warnings: bool,
    /// Leave the installed packages out of the report (also -ep)
    #[arg(short = 'e', long)]
    exclude_packages: bool,
}

/// Other verbs of `doctor`.
#[derive(Debug, Subcommand)]
enum DoctorVerb {
    /// Send greetings to other hosts and print theirs: run it on two hosts at the
    /// same time
    Hello(multicast_hello::Hello),
}

impl Doctor {
    /// Runs all checks and prints the findings.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if let Some(DoctorVerb::Hello(hello)) = self.verb {
            return hello.run(cli);
        }
        if self.report {
            let session = Session::open(cli, None)?;
            let graph = session.discover(&self.discovery);
            let facts = report::facts(&session, &graph, !self.exclude_packages);
            if cli.console.json {
                cli.console.json(&facts)?
            } else {
                cli.console.text(&report::text(&facts))?
            }
            return Ok(());
        }
        let mut found = self.run_checks(cli);
        if self.report_failed {
            found.retain(|finding| finding.severity >= FindingSeverity::Warning);
        }
        let count = |weight| found.iter().filter(|f| f.severity == weight).count();
        let (warnings, errors) = (
            count(FindingSeverity::Warning),
            count(FindingSeverity::Error),
        );
        if cli.console.json {
            cli.console.json(&json!({
                "findings": found.iter().map(Finding::json).collect::<Vec<_>>(),
                "warnings": warnings,
                "errors": errors,
            }))?
        } else {
            cli.console.styled(&text(&found, warnings, errors))?
        }
        if errors > 0 || (self.include_warnings && warnings > 0) {
            Err(Failed.into())
        } else {
            Ok(())
        }
    }

    fn run_checks(&self, cli: &CliContext) -> Vec<Finding> {
        let start = host::ClockSample::now();
        let mut found = environment::check();
        let session = Session::open(cli, None);
        found.append(&mut network::check(session.as_ref().ok()));
        if let Ok(session) = &session {
            found.append(&mut zenoh::check(session));
        }
        found.append(&mut shared_memory::check());
        found.append(&mut plug_in::check());
        found.append(&mut python::check());
        match &session {
            Ok(session) => {
                let known = session.discover(&self.discovery);
                found.append(&mut graph::check(session, &known));
            }
            Err(error) => {
                let mut graph = finding::Findings::new("graph");
                let text = format!("{error:#}");
                let (what, fix) = text
                    .rsplit_once("; ")
                    .unwrap_or((&text, "see the findings above"));
                graph.error(what, fix);
                found.append(&mut graph.into_list());
            }
        }
        found.append(&mut host::check_permissions());
        found.append(&mut host::check_clock(start));
        found
    }
}

fn text(found: &[Finding], warnings: usize, errors: usize) -> String {
    let mut text = String::new();
    let mut area = "";
    for finding in found {
        if finding.area != area {
            area = finding.area;
            text += &format!("{area}\n");
        }
        text += &finding.lines();
    }
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    text += &format!(
        "{}, {}\n",
        counted(warnings, "warning"),
        counted(errors, "error")
    );
    text
}
