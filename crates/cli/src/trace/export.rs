//! `pteros trace export`.

use super::chrome;
use crate::shared::Shared;
use anyhow::{Context as _, Result};
use clap::Args;
use pteros::trace::Trace;
use std::path::PathBuf;

/// Arguments of `trace export`.
#[derive(Debug, Args)]
pub struct Export {
    /// A .ptrace file, or the folder that `trace record` or PTEROS_TRACE named
    trace: PathBuf,
    /// As JSON of Chrome's trace event format, for ui.perfetto.dev and
    /// chrome://tracing
    #[arg(long, required = true)]
    chrome: bool,
    /// The file to write; it must not be there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    /// Reads the trace and writes it otherwise.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let trace = Trace::load(&self.trace)?;
        let text = chrome::text(&trace);
        let Some(path) = &self.output else {
            return Ok(shared.console.text(&text)?);
        };
        let written = std::fs::File::create_new(path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        written.with_context(|| {
            format!(
                "write {}; name a file that is not there yet",
                path.display()
            )
        })
    }
}
