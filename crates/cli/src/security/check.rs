//! `pteros security check`.

use super::{now, root};
use crate::outcome::Failed;
use crate::shared::Shared;
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
    /// Fail also for what is weak, not only for what is broken
    #[arg(long)]
    strict: bool,
}

impl Check {
    /// Prints the findings, the worst first.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let found = check(&root(self.root)?, now()?)?;
        if shared.console.json {
            let all: Vec<Value> = found.iter().map(entry).collect();
            shared.console.json(&json!(all))?;
        } else {
            for finding in &found {
                let line = format!("{}: {}", word(finding.severity), finding.fault);
                shared.console.line(line)?;
            }
            if found.is_empty() {
                shared.console.line("nothing to mend")?;
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
