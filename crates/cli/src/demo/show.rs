//! Running the whole robot and showing what flows: a table drawn in place on a
//! terminal, lines each second elsewhere, JSON lines with `--json`.

use super::flow::Row;
use super::process::PartProcess;
use super::robot::{self, CONNECTIONS, NODE_COUNT, PROCESS_COUNT, Part, Robot};
use super::{domain, table};
use crate::outcome::Interrupted;
use crate::shared::Shared;
use anyhow::{Context as _, Result, bail};
use pteros::{Context, ContextOptions, Verdict};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Runs the robot for `time`, shows it, and judges whether everything flowed.
pub fn run(shared: &Shared, time: Duration) -> Result<()> {
    let domain = domain::choose_free()?;
    let context =
        Context::with_options(ContextOptions::local(domain)).context("starting the robot")?;
    let mut show = Show {
        shared,
        domain,
        parts: vec![
            PartProcess::start("base", domain)?,
            PartProcess::start("perception", domain)?,
        ],
        robot: robot::start(&context, Part::Body)?,
        context,
        drawn_lines: 0,
    };
    show.introduce(time)?;
    show.watch(time)?;
    let rows = show.rows();
    let silent = show.silent(&rows);
    show.conclude(&rows, &silent)?;
    if show.context.is_shut_down() {
        return Err(Interrupted.into());
    }
    if !silent.is_empty() {
        bail!("something did not flow: {}", silent.join("; "));
    }
    Ok(())
}

struct Show<'a> {
    shared: &'a Shared,
    domain: u32,
    robot: Robot,
    parts: Vec<PartProcess>,
    context: Context,
    drawn_lines: usize,
}

/// How often a terminal is drawn over.
const REDRAW_PERIOD: Duration = Duration::from_millis(200);
/// How often lines are added where nothing can be drawn over.
const PRINT_PERIOD: Duration = Duration::from_secs(1);
/// The longest sleep between looks at the clock.
const TURN: Duration = Duration::from_millis(20);
const WIDTH_WITHOUT_TERMINAL: usize = 160;

impl Show<'_> {
    fn introduce(&self, time: Duration) -> Result<()> {
        if self.shared.console.json {
            return Ok(());
        }
        let seconds = time.as_secs_f64();
        self.shared.console.text(&format!(
            "\x1b[1mA small robot\x1b[0m: {NODE_COUNT} nodes in {PROCESS_COUNT} processes, for {seconds} s, on this machine only (domain {domain}).\n\
             Look at it from another terminal:\n  \
             ROS_DOMAIN_ID={domain} ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST {program} topic list\n\n",
            domain = self.domain,
            program = program(),
        ))?;
        Ok(())
    }

    fn watch(&mut self, time: Duration) -> Result<()> {
        let period = if self.shared.console.is_terminal() {
            REDRAW_PERIOD
        } else {
            PRINT_PERIOD
        };
        let end = Instant::now() + time;
        let mut next = Instant::now() + period;
        while Instant::now() < end && !self.context.is_shut_down() {
            self.robot.spin_once(TURN);
            if Instant::now() >= next {
                next += period;
                if let Err(error) = self.check_parts() {
                    // Ctrl-C reaches the children too, perhaps before us.
                    self.robot.spin_once(TURN);
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
        self.parts.iter_mut().try_for_each(PartProcess::check)
    }

    /// All connections in the order of [`CONNECTIONS`], heard or not.
    fn rows(&self) -> Vec<Row> {
        let mut heard: Vec<Row> = self.robot.flows.iter().map(|flow| flow.row()).collect();
        heard.extend(self.parts.iter().flat_map(PartProcess::rows));
        CONNECTIONS
            .iter()
            .map(|(topic, to)| {
                let found = heard
                    .iter()
                    .find(|row| row.topic == *topic && row.to == *to);
                found.cloned().unwrap_or_else(|| Row {
                    topic: (*topic).into(),
                    to: (*to).into(),
                    ..Row::default()
                })
            })
            .collect()
    }

    fn draw(&mut self, rows: &[Row]) -> Result<()> {
        let console = self.shared.console;
        if console.json {
            let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
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
            // What has scrolled off the top cannot be drawn over.
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
        console.text(&text)?;
        Ok(())
    }

    /// What did not flow, gathered by the reason that the graph knows.
    fn silent(&self, rows: &[Row]) -> Vec<String> {
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

    fn reason(&self, row: &Row) -> String {
        let pairs = self.context.graph().why(&row.topic);
        let pair = pairs
            .iter()
            .find(|pair| pair.subscription.node_name.as_deref() == Some(&row.to));
        match pair.and_then(|pair| pair.verdicts.first()) {
            None => "the two never discovered each other: check that loopback (127.0.0.1) carries UDP here".into(),
            Some(Verdict::Matched { path }) => format!("they match by {path}, but no message came within the time"),
            Some(Verdict::Blocked { policy, advice, .. }) => format!("blocked by {policy}: {advice}"),
            Some(Verdict::Denied { reason } | Verdict::Pending { reason }) => reason.clone(),
        }
    }

    fn conclude(&mut self, rows: &[Row], silent: &[String]) -> Result<()> {
        let console = self.shared.console;
        let heard: u64 = rows.iter().map(|row| row.count).sum();
        let lost: u64 = rows.iter().map(|row| row.lost).sum();
        if console.json {
            return Ok(console.json_line(&json!({
                "domain": self.domain,
                "messages": heard,
                "lost": lost,
                "did_not_flow": silent,
                "connections": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            }))?);
        }
        if console.is_terminal() {
            self.draw(rows)?;
        }
        if !silent.is_empty() {
            return Ok(());
        }
        let mut text = format!(
            "\nAll {} connections flowed: {heard} messages, {lost} lost.\n",
            rows.len()
        );
        for advice in self.context.advice() {
            text += &format!("For large messages: {advice}\n");
        }
        text += &next_steps();
        console.text(&text)?;
        Ok(())
    }
}

/// What to try after the demonstration.
fn next_steps() -> String {
    let program = program();
    format!(
        "\nTry next, each in its own terminal:\n  \
         {program} demo talker\n  \
         {program} demo listener           ROS 2's own talker and listener are heard too, and hear these\n  \
         {program} topic echo /chatter\n  \
         {program} topic hz /chatter\n  \
         {program} topic why /chatter      says who matches whom, and if not, why\n  \
         {program} interface show sensor_msgs/msg/LaserScan\n"
    )
}

/// Our program as the user can type it.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "pteros".into())
}
