//! `pteros trace export`.

use super::chrome;
use crate::cli_context::CliContext;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::trace::Trace;
use std::path::PathBuf;

/// Arguments of `trace export`.
#[derive(Debug, Args)]
pub struct Export {
    /// A .ptrace file, or the folder that `trace record` or PTEROS_TRACE named
    trace: PathBuf,
    /// Write JSON of Chrome's trace event format, for ui.perfetto.dev and
    /// chrome://tracing
    #[arg(long, required = true)]
    chrome: bool,
    /// File to write, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    /// Reads the trace and writes it in the other format.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let trace = Trace::load(&self.trace)?;
        let text = chrome::to_chrome_json(&trace);
        let Some(path) = &self.output else {
            return Ok(cli.console.text(&text)?);
        };
        let written = std::fs::File::create_new(path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        written.with_context(|| {
            format!(
                "write {}; name a file that does not exist yet",
                path.display()
            )
        })
    }
}
