//! `pteros security check`.

use super::keystore_flags::{keystore_root, now};
use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::{Result, bail};
use clap::Args;
use pteros_security::keystore::{Finding, Severity, check};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Arguments of `security check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Folder of the keystore [default: ROS_SECURITY_KEYSTORE]
    #[arg(value_name = "ROOT")]
    root: Option<PathBuf>,
    /// Fail for weaknesses too, not only for errors
    #[arg(long)]
    strict: bool,
}

impl Check {
    /// Prints the findings, the most severe first.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let found = check(&keystore_root(self.root)?, now()?)?;
        if cli.console.json {
            let all: Vec<Value> = found.iter().map(entry).collect();
            cli.console.json(&json!(all))?;
        } else {
            for finding in &found {
                let line = format!("{}: {}", word(finding.severity), finding.fault);
                cli.console.line(line)?;
            }
            if found.is_empty() {
                cli.console.line("no problems found")?;
            }
        }
        let fails = |finding: &Finding| self.strict || finding.severity == Severity::Broken;
        if found.iter().any(fails) {
            bail!(Failed);
        }
        Ok(())
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Broken => "broken",
        Severity::Weak => "weak",
    }
}

fn entry(finding: &Finding) -> Value {
    let fault = &finding.fault;
    json!({
        "severity": word(finding.severity),
        "file": &*fault.file,
        "line": fault.line,
        "field": &*fault.field,
        "value": &*fault.value,
        "reason": &*fault.reason,
        "remedy": &*fault.remedy,
    })
}
