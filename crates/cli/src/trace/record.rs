//! `pteros trace record`: a command with PTEROS_TRACE set, until it ends.

use crate::shared::Shared;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::trace::{BYTES_MAX, BYTES_MIN, EXTENSION, Trace};
use pteros_net::shutdown_signal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a command that was interrupted may take to end, before it is asked
/// by SIGINT, and after that before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Between two looks at the command.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// Arguments of `trace record`.
#[derive(Debug, Args)]
pub struct Record {
    /// Folder that gets a file per process; new or without traces [default:
    /// trace-SECONDS in this folder]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Interrupt the command after so many seconds [default: until it ends]
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Size of a process's trace in bytes, 64 KiB to 1 GiB; when it is full the
    /// oldest records make room [default: 16 MiB]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    bytes: Option<usize>,
    /// The command, after --; `pteros launch` and whatever it starts as well
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Record {
    /// Runs the command to its end and says what was recorded.
    pub fn run(self, shared: &Shared) -> Result<()> {
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
        let (status, was_ended) = wait(&mut child, is_over, || signal.is_requested())?;
        tell(shared, &folder)?;
        if !status.success() && !was_ended {
            bail!("the command {program:?} failed ({status}); what it did before is in the trace");
        }
        Ok(())
    }

    /// Where the traces go, made if it is missing.
    fn folder(&self) -> Result<PathBuf> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.unwrap_or_default().as_secs();
        let default = || PathBuf::from(format!("trace-{seconds}"));
        let folder = self.output.clone().unwrap_or_else(default);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("make folder {}", folder.display()))?;
        if traces_in(&folder)? > 0 {
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

fn traces_in(folder: &Path) -> Result<usize> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("look into folder {}", folder.display()))?;
    let is_trace = |path: PathBuf| path.extension().is_some_and(|end| end == EXTENSION);
    let traces = entries.flatten().filter(|entry| is_trace(entry.path()));
    Ok(traces.count())
}

/// Waits for the command's end, which it is asked for when `is_over`. Whether it
/// was.
fn wait(
    child: &mut Child,
    is_over: impl Fn() -> bool,
    is_interrupted: impl Fn() -> bool,
) -> Result<(ExitStatus, bool)> {
    let mut over = None;
    let mut asked = None;
    loop {
        if let Some(status) = child.try_wait().context("wait for the command")? {
            return Ok((status, over.is_some()));
        }
        let now = Instant::now();
        if over.is_none() && is_over() {
            over = Some(now);
        }
        if let Some(since) = over {
            // Ctrl-C on a terminal is told to the command as well; a second signal
            // would kill it.
            let patience = match is_interrupted() {
                true => GRACE,
                false => Duration::ZERO,
            };
            if asked.is_none() && now >= since + patience {
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                if let Some(pid) = pid {
                    // Fails only if it has ended meanwhile.
                    let _ = kill_process(pid, Signal::INT);
                }
                asked = Some(now);
            }
        }
        if asked.is_some_and(|asked| now >= asked + GRACE) {
            let _ = child.kill();
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}

fn tell(shared: &Shared, folder: &Path) -> Result<()> {
    let trace = Trace::load(folder).with_context(
        || "nothing was recorded; was the command a Pteros program, and did it open a context?",
    )?;
    let records: usize = trace.recordings().iter().map(|r| r.records.len()).sum();
    let (files, lost) = (trace.recordings().len(), trace.lost());
    if shared.console.json {
        return Ok(shared.console.json(&json!({
            "folder": folder.display().to_string(),
            "files": files,
            "records": records,
            "lost": lost,
        }))?);
    }
    let folder = folder.display();
    shared.console.line(format!(
        "{records} records of {files} contexts in {folder}, {lost} made room for newer ones\n\
         see them with: pteros trace show {folder}"
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
