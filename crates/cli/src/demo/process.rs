//! The other processes of the demonstration.
//!
//! A child reports on its standard output, a line of JSON at a time, and lives
//! as long as its standard input is open: whatever ends this process, a signal
//! that cannot be caught included, ends the children too.

use super::flow::Row;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A running child; ended when dropped.
pub struct PartProcess {
    name: &'static str,
    child: Child,
    rows: Arc<Mutex<Vec<Row>>>,
}

impl PartProcess {
    /// Starts this very program as a part of the robot.
    pub fn start(name: &'static str, domain: u32) -> Result<Self> {
        let program = std::env::current_exe().context("finding our own program file")?;
        let mut child = Command::new(&program)
            .args(["demo", "robot-part", name, "--domain", &domain.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {} for the part '{name}'", program.display()))?;
        let rows = Arc::new(Mutex::new(Vec::new()));
        if let Some(output) = child.stdout.take() {
            let rows = Arc::clone(&rows);
            // Ends with the child, whose end closes the pipe.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let Ok(Value::Array(report)) = serde_json::from_str(&line) else {
                        continue;
                    };
                    let report = report.iter().map(Row::from_json).collect();
                    *rows.lock().unwrap_or_else(PoisonError::into_inner) = report;
                }
            });
        }
        Ok(Self { name, child, rows })
    }

    /// What the child reported last.
    pub fn rows(&self) -> Vec<Row> {
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
                "the process of the part '{}' ended early ({status}); its own words, if any, are above",
                self.name
            ),
            Err(error) => {
                Err(error).with_context(|| format!("asking for the part '{}'", self.name))
            }
        }
    }
}

/// Time to say goodbye before the child is killed.
const GOODBYE: Duration = Duration::from_secs(1);

impl Drop for PartProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let end = Instant::now() + GOODBYE;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // Fails only if it has ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
