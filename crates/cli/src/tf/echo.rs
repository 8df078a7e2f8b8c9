//! `pteros tf echo`: as `tf2_echo`.

use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::session::Session;
use crate::value_parsers::{positive_float, positive_seconds};
use anyhow::Result;
use clap::Args;
use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::tf::{Isometry, LATEST, LookupError, TransformListener};
use serde_json::json;
use std::time::{Duration, Instant};

/// Arguments of `tf echo`.
#[derive(Debug, Args)]
pub struct Echo {
    /// Print one transform and exit
    #[arg(long)]
    once: bool,
    /// Stop after this many seconds; it is an error if no transform was available
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    timeout: Option<Duration>,
    /// The source frame (e.g. map)
    source_frame: String,
    /// The target frame (e.g. base_link)
    target_frame: String,
    /// Print rate in Hz
    #[arg(value_name = "RATE", default_value = "1", value_parser = positive_float)]
    rate: f64,
}

impl Echo {
    /// Prints a transform in each period until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let transforms = TransformListener::new(&session.node)?;
        let end = self.timeout.map(|timeout| Instant::now() + timeout);
        let left = || {
            end.map_or(NO_TIMEOUT, |end| {
                end.saturating_duration_since(Instant::now())
            })
        };
        let period = Duration::try_from_secs_f64(1.0 / self.rate).unwrap_or(NO_TIMEOUT);
        let mut printed = false;
        // Time to receive the first transforms.
        let mut wait = WARNING_DELAY.max(period);
        loop {
            let found = transforms.lookup_transform_within(
                &self.source_frame,
                &self.target_frame,
                LATEST,
                wait.min(left()),
            );
            if session.context.is_shut_down() {
                return if printed {
                    Ok(())
                } else {
                    Err(Interrupted::now().into())
                };
            }
            match found {
                Ok(transform) => {
                    print(cli, &transform)?;
                    printed = true;
                    if self.once {
                        return Ok(());
                    }
                    session.node.clock().sleep(period.min(left()));
                }
                Err(error @ LookupError::EmptyFrameId(_)) => return Err(error.into()),
                Err(error) if left().is_zero() && !printed => return Err(error.into()),
                Err(error) => cli
                    .console
                    .note(format!("Failure at {}\n{error}", session.node.now())),
            }
            if left().is_zero() {
                return Ok(());
            }
            wait = period;
        }
    }
}

fn print(cli: &CliContext, found: &TransformStamped) -> Result<()> {
    let isometry = Isometry::from(&found.transform);
    let time = Time::from(&found.header.stamp);
    if cli.console.json {
        return Ok(cli.console.json_line(&json!({
            "time": time.as_nanos(),
            "source_frame": found.header.frame_id,
            "target_frame": found.child_frame_id,
            "translation": isometry.translation,
            "rotation": isometry.rotation,
            "rpy": isometry.rpy(),
        }))?);
    }
    let list = |numbers: &[f64]| {
        let numbers: Vec<String> = numbers.iter().map(|n| format!("{n:.3}")).collect();
        format!("[{}]", numbers.join(", "))
    };
    let rpy = isometry.rpy();
    let mut text = format!(
        "At time {time}\n- Translation: {}\n- Rotation: in Quaternion {}\n\
         - Rotation: in RPY (radian) {}\n- Rotation: in RPY (degree) {}\n- Matrix:",
        list(&isometry.translation),
        list(&isometry.rotation),
        list(&rpy),
        list(&rpy.map(f64::to_degrees)),
    );
    for ([a, b, c], moved) in isometry.matrix().iter().zip(isometry.translation) {
        text += &format!("\n {a:6.3} {b:6.3} {c:6.3} {moved:6.3}");
    }
    text += &format!("\n {:6.3} {:6.3} {:6.3} {:6.3}", 0.0, 0.0, 0.0, 1.0);
    Ok(cli.console.line(text)?)
}

/// The time that `tf2_echo` waits for the first transform.
const WARNING_DELAY: Duration = Duration::from_secs(1);
const NO_TIMEOUT: Duration = Duration::from_secs(1_000_000_000);
