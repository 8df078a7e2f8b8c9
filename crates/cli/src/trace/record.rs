//! `pteros trace record`: a command with PTEROS_TRACE set, until it ends.

use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::trace::{BYTES_MAX, BYTES_MIN, EXTENSION, Trace};
use pteros_net::shutdown_signal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long an interrupted command may take before it gets SIGINT, and after that
/// before it gets SIGKILL.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Period between two checks of the command.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// Arguments of `trace record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Folder for one trace file per process; new or without traces
    /// [default: trace-SECONDS in the current folder]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Interrupt the command after this many seconds [default: until it ends]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Size of a process's trace in bytes, 64 KiB to 1 GiB; a full trace overwrites
    /// its oldest records [default: 16 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    bytes: Option<usize>,
    /// The command, after --; its child processes are recorded too
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Record {
    /// Runs the command until it ends, and prints a summary.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let folder = self.folder()?;
        let signal = shutdown_signal()?;
        let Some((program, words)) = self.command.split_first() else {
            bail!("no command; write it after --");
        };
        let mut command = Command::new(program);
        command.args(words).env("PTEROS_TRACE", &folder);
        if let Some(bytes) = self.bytes {
            command.env("PTEROS_TRACE_BYTES", bytes.to_string());
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("start {program:?}; is it installed, and on the PATH?"))?;
        let end = self.duration.map(|span| Instant::now() + span);
        let is_over = || signal.is_requested() || end.is_some_and(|end| Instant::now() >= end);
        let (status, was_ended) = wait_for_exit(&mut child, is_over, || signal.is_requested())?;
        print_summary(cli, &folder)?;
        if !status.success() && !was_ended {
            bail!("the command {program:?} failed ({status}); its trace is kept");
        }
        Ok(())
    }

    /// The trace folder, created if it does not exist.
    fn folder(&self) -> Result<PathBuf> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.unwrap_or_default().as_secs();
        let default = || PathBuf::from(format!("trace-{seconds}"));
        let folder = self.output.clone().unwrap_or_else(default);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("make folder {}", folder.display()))?;
        if trace_count(&folder)? > 0 {
            bail!(
                "folder {} has traces already; remove them or name another with -o",
                folder.display()
            );
        }
        // The command may have another working directory.
        folder
            .canonicalize()
            .with_context(|| format!("find folder {}", folder.display()))
    }
}

fn trace_count(folder: &Path) -> Result<usize> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("look into folder {}", folder.display()))?;
    let is_trace = |path: PathBuf| path.extension().is_some_and(|end| end == EXTENSION);
    let traces = entries.flatten().filter(|entry| is_trace(entry.path()));
    Ok(traces.count())
}

/// Waits until the command ends. Interrupts it when `is_over` is true. Returns the
/// exit status and whether it was interrupted.
fn wait_for_exit(
    child: &mut Child,
    is_over: impl Fn() -> bool,
    is_interrupted: impl Fn() -> bool,
) -> Result<(ExitStatus, bool)> {
    let mut over = None;
    let mut interrupted_at = None;
    loop {
        if let Some(status) = child.try_wait().context("wait for the command")? {
            return Ok((status, over.is_some()));
        }
        let now = Instant::now();
        if over.is_none() && is_over() {
            over = Some(now);
        }
        if let Some(since) = over {
            // Ctrl-C in a terminal reaches the command too, and a second signal
            // would kill it.
            let delay = if is_interrupted() {
                INTERRUPT_TIMEOUT
            } else {
                Duration::ZERO
            };
            if interrupted_at.is_none() && now >= since + delay {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                if let Some(pid) = pid {
                    // Fails only if it has ended meanwhile.
                    let _ = kill_process(pid, Signal::INT);
                }
                interrupted_at = Some(now);
            }
        }
        if interrupted_at.is_some_and(|interrupted_at| now >= interrupted_at + INTERRUPT_TIMEOUT) {
            let _ = child.kill();
        }
        std::thread::sleep(POLL_PERIOD);
    }
}

fn print_summary(cli: &CliContext, folder: &Path) -> Result<()> {
    let trace = Trace::load(folder).with_context(
        || "nothing was recorded; was the command a Pteros program, and did it open a context?",
    )?;
    let records: usize = trace.recordings().iter().map(|r| r.records.len()).sum();
    let (files, lost) = (trace.recordings().len(), trace.overwritten_records());
    if cli.console.json {
        return Ok(cli.console.json(&json!({
            "folder": folder.display().to_string(),
            "files": files,
            "records": records,
            "lost": lost,
        }))?);
    }
    let folder = folder.display();
    cli.console.line(format!(
        "{records} records of {files} contexts in {folder}, {lost} overwritten by newer ones\n\
         show them with: pteros trace show {folder}"
    ))?;
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0);
    let span = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    span.filter(|span| *span <= Duration::from_secs(1_000_000))
        .ok_or_else(|| "use a number of seconds above 0, as 10 or 0.5".into())
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok();
    bytes
        .filter(|bytes| (BYTES_MIN..=BYTES_MAX).contains(bytes))
        .ok_or_else(|| format!("use a number of bytes from {BYTES_MIN} to {BYTES_MAX}"))
}
