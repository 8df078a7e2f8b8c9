//! A child process of the demo: some nodes of the robot, and a report of their
//! statistics.

use super::robot;
use anyhow::Result;
use clap::Args;
use pteros::{Context, ContextOptions};
use serde_json::Value;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Arguments of `demo robot-part`.
#[derive(Debug, Args)]
pub struct RobotPart {
    /// The process to run
    part: robot::RobotProcess,
    /// The domain that `demo` selected
    #[arg(long)]
    domain: u32,
}

impl RobotPart {
    /// Runs until standard input is closed.
    pub fn run(self) -> Result<()> {
        let context = Context::with_options(ContextOptions::local(self.domain))?;
        let watched = context.clone();
        std::thread::spawn(move || {
            // No data is ever sent; the end of the stream is the signal.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            watched.shutdown();
        });
        let robot = robot::start_process(&context, self.part)?;
        let mut report_next = Instant::now();
        while !context.is_shut_down() {
            robot.spin_once(REPORT_PERIOD);
            if Instant::now() >= report_next {
                report_next = Instant::now() + REPORT_PERIOD;
                let rows: Vec<Value> = robot
                    .flows
                    .iter()
                    .map(|flow| flow.row().to_json())
                    .collect();
                let mut output = std::io::stdout().lock();
                writeln!(output, "{}", Value::Array(rows))?;
                output.flush()?;
            }
        }
        Ok(())
    }
}

/// Short enough for a live table.
const REPORT_PERIOD: Duration = Duration::from_millis(100);
