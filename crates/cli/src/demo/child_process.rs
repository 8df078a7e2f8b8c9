//! Child processes of the demo.
//!
//! A child reports on its standard output, one line of JSON at a time. It ends when
//! its standard input is closed. So it ends with this process, even after SIGKILL.

use super::flow_statistics::FlowRow;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A running child process, ended when dropped.
pub struct ChildProcess {
    name: &'static str,
    child: Child,
    rows: Arc<Mutex<Vec<FlowRow>>>,
}

impl ChildProcess {
    /// Starts this program as a process of the robot.
    pub fn start(name: &'static str, domain: u32) -> Result<Self> {
        let program = std::env::current_exe().context("finding the path of this program")?;
        let mut child = Command::new(&program)
            .args(["demo", "robot-part", name, "--domain", &domain.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {} for the process '{name}'", program.display()))?;
        let rows = Arc::new(Mutex::new(Vec::new()));
        if let Some(output) = child.stdout.take() {
            let rows = Arc::clone(&rows);
            // The thread ends with the child, whose end closes the pipe.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(Value::Array(report)) = serde_json::from_str(&line) else {
                        continue;
                    };
                    let report = report.iter().map(FlowRow::from_json).collect();
                    *rows.lock().unwrap_or_else(PoisonError::into_inner) = report;
                }
            });
        }
        Ok(Self { name, child, rows })
    }

    /// The last report of the child.
    pub fn rows(&self) -> Vec<FlowRow> {
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Fails if the child has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => bail!(
                "process '{}' ended early ({status}); its error output, if any, is above",
                self.name
            ),
            Err(error) => {
                Err(error).with_context(|| format!("waiting for process '{}'", self.name))
            }
        }
    }
}

/// How long the child has to leave the graph before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let end = Instant::now() + EXIT_TIMEOUT;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // This fails only if the child has ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
