//! Shell completion. `pteros completion SHELL` prints a short script; the shell then
//! asks this program for candidates at each Tab.
//!
//! So names of the graph and of packages are completed too, and the script does not
//! change with the command line.

mod candidates;

use crate::arguments::CommandLine;
use crate::cli_context::CliContext;
use anyhow::{Context as _, Result};
use clap::{Args, Command, CommandFactory};
use clap_complete::env::{CompleteEnv, Shells};
use serde_json::json;

/// Environment variable by which the script asks for candidates; its value is the shell.
const REQUEST_VARIABLE: &str = "PTEROS_COMPLETE";

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(
    after_help = "Use it:\n  bash: pteros completion bash > ~/.local/share/bash-completion/completions/pteros\n  zsh:  pteros completion zsh > \"${fpath[1]}/_pteros\"\n  fish: pteros completion fish > ~/.config/fish/completions/pteros.fish"
)]
pub struct Completion {
    /// Shell to write the script for
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

impl Completion {
    /// Prints the script.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let shells = Shells::builtins();
        let shell = shells
            .completer(&self.shell)
            .with_context(|| format!("no completion for {}", self.shell))?;
        let mut script = Vec::new();
        shell.write_registration(REQUEST_VARIABLE, "pteros", "pteros", "pteros", &mut script)?;
        let script = String::from_utf8(script)?;
        if cli.console.json {
            let output = json!({ "shell": self.shell, "script": script });
            return Ok(cli.console.json(&output)?);
        }
        cli.console.text(&script)?;
        Ok(())
    }
}

/// Answers a shell that asks for candidates, and ends the process. Returns if none asks.
pub fn answer_shell() {
    if std::env::var_os(REQUEST_VARIABLE).is_some() {
        CompleteEnv::with_factory(command)
            .var(REQUEST_VARIABLE)
            .bin("pteros")
            .complete();
    }
}

fn command() -> Command {
    candidates::add(CommandLine::command())
}
