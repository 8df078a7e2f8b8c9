//! Live display of the demo: a table that is redrawn on a terminal, lines every
//! second elsewhere, JSON lines with `--json`.

use super::child_process::ChildProcess;
use super::flow_statistics::FlowRow;
use super::robot::{self, CONNECTIONS, NODE_COUNT, PROCESS_COUNT, Robot, RobotProcess};
use super::{domain, table};
use crate::cli_context::CliContext;
use crate::exit_errors::Interrupted;
use crate::pace::Pace;
use anyhow::{Context as _, Result, bail};
use pteros::{Context, ContextOptions, graph::MatchOutcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Runs the robot for `time` and shows its statistics. Fails if a connection
/// carried no message.
pub fn run(cli: &CliContext, time: Duration) -> Result<()> {
    let domain = domain::choose_free()?;
    let context =
        Context::with_options(ContextOptions::local(domain)).context("starting the robot")?;
    let mut show = LiveDisplay {
        cli,
        domain,
        parts: vec![
            ChildProcess::start("base", domain)?,
            ChildProcess::start("perception", domain)?,
        ],
        robot: robot::start_process(&context, RobotProcess::Body)?,
        context,
        drawn_lines: 0,
    };
    show.print_introduction(time)?;
    show.watch(time)?;
    let rows = show.rows();
    let silent = show.silent_connections(&rows);
    show.print_summary(&rows, &silent)?;
    if show.context.is_shut_down() {
        return Err(Interrupted::now().into());
    }
    if !silent.is_empty() {
        bail!("some connections carried no message: {}", silent.join("; "));
    }
    Ok(())
}

struct LiveDisplay<'a> {
    cli: &'a CliContext,
    domain: u32,
    robot: Robot,
    parts: Vec<ChildProcess>,
    context: Context,
    drawn_lines: usize,
}

/// Redraw period of a terminal.
const REDRAW_PERIOD: Duration = Duration::from_millis(200);
/// Print period without a terminal.
const PRINT_PERIOD: Duration = Duration::from_secs(1);
/// Largest time between two checks of the clock.
const SPIN_TIMEOUT: Duration = Duration::from_millis(20);
const WIDTH_WITHOUT_TERMINAL: usize = 160;

impl LiveDisplay<'_> {
    fn print_introduction(&self, time: Duration) -> Result<()> {
        if self.cli.console.json {
            return Ok(());
        }
        let seconds = time.as_secs_f64();
        self.cli.console.styled(&format!(
            "\x1b[1mA small robot\x1b[0m: {NODE_COUNT} nodes in {PROCESS_COUNT} processes, for {seconds} s, on this machine only (domain {domain}).\n\
             Look at it from another terminal:\n  \
             ROS_DOMAIN_ID={domain} ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST {program} topic list\n\n",
            domain = self.domain,
            program = program(),
        ))?;
        Ok(())
    }

    fn watch(&mut self, time: Duration) -> Result<()> {
        let period = if self.cli.console.is_terminal() {
            REDRAW_PERIOD
        } else {
            PRINT_PERIOD
        };
        let end = Instant::now() + time;
        let mut pace = Pace::new(period, Instant::now());
        while Instant::now() < end && !self.context.is_shut_down() {
            self.robot.spin_once(SPIN_TIMEOUT);
            if pace.take(Instant::now()) {
                if let Err(error) = self.check_parts() {
                    // Ctrl-C may reach the children first.
                    self.robot.spin_once(SPIN_TIMEOUT);
                    if !self.context.is_shut_down() {
                        return Err(error);
                    }
                }
                let rows = self.rows();
                self.draw(&rows)?;
            }
        }
        Ok(())
    }

    /// Fails if a child has ended by itself.
    fn check_parts(&mut self) -> Result<()> {
        self.parts.iter_mut().try_for_each(ChildProcess::check)
    }

    /// All connections in the order of [`CONNECTIONS`], with or without messages.
    fn rows(&self) -> Vec<FlowRow> {
        let mut received: Vec<FlowRow> = self.robot.flows.iter().map(|flow| flow.row()).collect();
        received.extend(self.parts.iter().flat_map(ChildProcess::rows));
        CONNECTIONS
            .iter()
            .map(|(topic, to)| {
                let found = received
                    .iter()
                    .find(|row| row.topic == *topic && row.to == *to);
                found.cloned().unwrap_or_else(|| FlowRow {
                    topic: (*topic).into(),
                    to: (*to).into(),
                    ..FlowRow::default()
                })
            })
            .collect()
    }

    fn draw(&mut self, rows: &[FlowRow]) -> Result<()> {
        let console = self.cli.console;
        if console.json {
            let rows: Vec<Value> = rows.iter().map(FlowRow::to_json).collect();
            return Ok(console.json_line(&json!({ "connections": rows }))?);
        }
        let mut text = String::new();
        if console.is_terminal() {
            let (width, height) = terminal_size::terminal_size()
                .map_or((WIDTH_WITHOUT_TERMINAL, usize::MAX), |(width, height)| {
                    (usize::from(width.0), usize::from(height.0))
                });
            if self.drawn_lines > 0 {
                text += &format!("\x1b[{}A", self.drawn_lines);
            }
            let mut lines = table::lines(rows, width);
            // Lines that have scrolled off the top cannot be redrawn.
            lines.truncate(height.saturating_sub(1));
            self.drawn_lines = lines.len();
            for (index, line) in lines.iter().enumerate() {
                let line = if index == 0 {
                    format!("\x1b[1m{line}\x1b[0m")
                } else {
                    line.clone()
                };
                text += &format!("{line}\x1b[K\n");
            }
        } else {
            text += &table::lines(rows, WIDTH_WITHOUT_TERMINAL).join("\n");
            text += "\n\n";
        }
        console.styled(&text)?;
        Ok(())
    }

    /// Connections without messages, grouped by the reason that the graph reports.
    fn silent_connections(&self, rows: &[FlowRow]) -> Vec<String> {
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.count == 0) {
            let connection = format!("{} to {}", row.topic, row.to);
            by_reason
                .entry(self.reason(row))
                .or_default()
                .push(connection);
        }
        by_reason
            .into_iter()
            .map(|(reason, connections)| format!("{}: {reason}", connections.join(", ")))
            .collect()
    }

    fn reason(&self, row: &FlowRow) -> String {
        let pairs = self.context.graph().match_reports(&row.topic);
        let pair = pairs
            .iter()
            .find(|pair| pair.subscription.node_name.as_deref() == Some(&row.to));
        match pair.and_then(|pair| pair.outcomes.first()) {
            None => "the nodes did not discover each other: check that loopback (127.0.0.1) carries UDP here".into(),
            Some(MatchOutcome::Matched { path }) => format!("they match by {path}, but no message arrived in time"),
            Some(MatchOutcome::Incompatible { policy, hint: advice, .. }) => format!("blocked by {policy}: {advice}"),
            Some(MatchOutcome::Denied { reason } | MatchOutcome::Pending { reason }) => reason.clone(),
        }
    }

    fn print_summary(&mut self, rows: &[FlowRow], silent: &[String]) -> Result<()> {
        let console = self.cli.console;
        let received: u64 = rows.iter().map(|row| row.count).sum();
        let lost: u64 = rows.iter().map(|row| row.lost).sum();
        if console.json {
            return Ok(console.json_line(&json!({
                "domain": self.domain,
                "messages": received,
                "lost": lost,
                "did_not_flow": silent,
                "connections": rows.iter().map(FlowRow::to_json).collect::<Vec<_>>(),
            }))?);
        }
        if console.is_terminal() {
            self.draw(rows)?;
        }
        if !silent.is_empty() {
            return Ok(());
        }
        let mut text = format!(
            "\nAll {} connections carried messages: {received} received, {lost} lost.\n",
            rows.len()
        );
        for advice in self.context.socket_buffer_warnings() {
            text += &format!("For large messages: {advice}\n");
        }
        text += &next_steps();
        console.styled(&text)?;
        Ok(())
    }
}

/// Commands to try after the demo.
fn next_steps() -> String {
    let program = program();
    format!(
        "\nTry next, each in its own terminal:\n  \
         {program} demo talker\n  \
         {program} demo listener           works with ROS 2's own talker and listener too\n  \
         {program} topic echo /chatter\n  \
         {program} topic hz /chatter\n  \
         {program} topic why /chatter      shows which endpoints match, and if not, why\n  \
         {program} interface show sensor_msgs/msg/LaserScan\n"
    )
}

/// This program as the user can type it: quoted for a shell if its path needs that.
fn program() -> String {
    let program = std::env::args_os().next();
    let program = program.map_or_else(|| "pteros".into(), |path| path.display().to_string());
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+".contains(letter);
    if program.chars().all(is_plain) {
        program
    } else {
        format!("'{}'", program.replace('\'', r"'\''"))
    }
}
