//! `pteros completion`: shell completion scripts.

use crate::arguments::CommandLine;
use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(
    after_help = "Use it:\n  bash: pteros completion bash > ~/.local/share/bash-completion/completions/pteros\n  zsh:  pteros completion zsh > \"${fpath[1]}/_pteros\"\n  fish: pteros completion fish > ~/.config/fish/completions/pteros.fish"
)]
pub struct Completion {
    /// Shell to write the script for
    shell: Shell,
}

impl Completion {
    /// Prints the script.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut CommandLine::command(),
            "pteros",
            &mut script,
        );
        let script = String::from_utf8(script)?;
        if cli.console.json {
            let output = json!({ "shell": self.shell.to_string(), "script": script });
            return Ok(cli.console.json(&output)?);
        }
        cli.console.text(&script)?;
        Ok(())
    }
}
