//! `pteros doctor`: what keeps robots from talking, each finding with what mends it.
//!
//! Looks at the environment, the network, shared memory, the clock, permissions and
//! the graph. Every look has a limit; all of them take less than two seconds.

mod environment;
mod finding;
mod graph;
mod hello;
mod host;
mod network;
mod report;
mod shared_memory;
mod stacks;

use crate::outcome::Failed;
use crate::session::{DiscoveryFlags, Session};
use crate::shared::Shared;
use anyhow::Result;
use clap::{Args, Subcommand};
use finding::{Finding, Weight};
use serde_json::json;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit code 0 if there is no error, 1 if there is one; with --include-warnings, or a warning."
)]
pub struct Doctor {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Print facts for a bug report instead: platform, network, environment, graph
    #[arg(short = 'r', long)]
    report: bool,
    /// Print warnings and errors only
    #[arg(short = 'f', long)]
    report_failed: bool,
    /// Fail if there is a warning
    #[arg(short = 'w', long)]
    include_warnings: bool,
}

/// What else it does.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Greet other hosts, and show who greets: run it on two hosts at once
    Hello(hello::Hello),
}

impl Doctor {
    /// Examines, and says what was found.
    pub fn run(self, shared: &Shared) -> Result<()> {
        if let Some(Verb::Hello(hello)) = self.verb {
            return hello.run(shared);
        }
        if self.report {
            let session = Session::open(shared, None)?;
            let facts = report::facts(&session, &session.discover(&self.discovery));
            match shared.console.json {
                true => shared.console.json(&facts)?,
                false => shared.console.text(&report::text(&facts))?,
            }
            return Ok(());
        }
        let mut found = self.examine(shared);
        if self.report_failed {
            found.retain(|finding| finding.weight >= Weight::Warning);
        }
        let count = |weight| found.iter().filter(|f| f.weight == weight).count();
        let (warnings, errors) = (count(Weight::Warning), count(Weight::Error));
        match shared.console.json {
            true => shared.console.json(&json!({
                "findings": found.iter().map(Finding::json).collect::<Vec<_>>(),
                "warnings": warnings,
                "errors": errors,
            }))?,
            false => shared.console.text(&text(&found, warnings, errors))?,
        }
        match errors > 0 || (self.include_warnings && warnings > 0) {
            true => Err(Failed.into()),
            false => Ok(()),
        }
    }

    fn examine(&self, shared: &Shared) -> Vec<Finding> {
        let begun = host::Moment::now();
        let mut found = environment::check();
        let session = Session::open(shared, None);
        found.append(&mut network::check(session.as_ref().ok()));
        found.append(&mut shared_memory::check());
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
        found.append(&mut host::permissions());
        found.append(&mut host::time(begun));
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
