//! `pteros completion`: scripts that teach a shell our nouns, verbs and flags.

use crate::arguments::CommandLine;
use crate::shared::Shared;
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
    /// The shell to write for
    shell: Shell,
}

impl Completion {
    /// Prints the script.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut CommandLine::command(),
            "pteros",
            &mut script,
        );
        let script = String::from_utf8(script)?;
        if shared.console.json {
            let answer = json!({ "shell": self.shell.to_string(), "script": script });
            return Ok(shared.console.json(&answer)?);
        }
        shared.console.text(&script)?;
        Ok(())
    }
}
