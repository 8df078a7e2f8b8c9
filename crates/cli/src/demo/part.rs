//! A child process of the demonstration: some of the robot's nodes and a report
//! of what they receive.

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
    /// Which part of the robot
    part: robot::Part,
    /// The domain that `demo` chose
    #[arg(long)]
    domain: u32,
}

impl RobotPart {
    /// Runs until standard input is closed.
    pub fn run(self) -> Result<()> {
        let context = Context::with_options(ContextOptions::local(self.domain))?;
        let watched = context.clone();
        std::thread::spawn(move || {
            // Nothing is ever sent; the end of the stream is the message.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            watched.shutdown();
        });
        let robot = robot::start(&context, self.part)?;
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

/// Often enough for a live table.
const REPORT_PERIOD: Duration = Duration::from_millis(100);
