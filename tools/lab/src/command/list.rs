//! `pteros-lab list`.

use super::setting::{Ending, Setting};
use anyhow::Result;
use clap::Args;
use pteros_lab::experiments::ALL;
use pteros_lab::run::RunRequest;
use serde_json::{Value, json};

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// An experiment (own.host): list the cases of a full run
    #[arg(value_name = "EXPERIMENT")]
    experiment: Option<String>,
}

impl List {
    /// Prints the experiments by paper.
    pub fn run(self, cli: &Setting) -> Result<Ending> {
        if let Some(id) = &self.experiment {
            let cases = RunRequest::cases(id)?;
            if cli.console.json {
                cli.console.json(&json!(cases))?;
            } else {
                cli.console.line(cases.join("\n"))?;
            }
            return Ok(Ending::Done);
        }
        if cli.console.json {
            let all: Vec<Value> = ALL
                .iter()
                .map(|e| {
                    json!({
                        "id": e.id, "title": e.title, "shows": e.reproduces, "asks": e.question,
                        "paper": e.paper.citation(),
                    })
                })
                .collect();
            cli.console.json(&json!(all))?;
            return Ok(Ending::Done);
        }
        let mut paper = None;
        for experiment in ALL {
            if paper != Some(experiment.paper) {
                paper = Some(experiment.paper);
                cli.console.line(experiment.paper.citation())?;
            }
            cli.console.line(format!(
                "  \x1b[1m{:<15}\x1b[0m {} ({})",
                experiment.id, experiment.title, experiment.reproduces
            ))?;
        }
        Ok(Ending::Done)
    }
}
