//! `pteros lifecycle supervise`.

use crate::outcome::Failed;
use crate::session::Session;
use crate::shared::Shared;
use crate::values::positive_seconds;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pteros::{
    LifecycleState, LifecycleSupervisor, LossPolicy, SupervisedNode, SupervisorEvent,
    SupervisorReport,
};
use serde_json::json;
use std::time::Duration;

/// How long one look lasts.
const LOOK: Duration = Duration::from_secs(1);

/// Arguments of `lifecycle supervise`.
#[derive(Debug, Args)]
pub struct Supervise {
    /// What is done when a node goes, hangs or fails
    #[arg(long, value_enum, value_name = "POLICY", default_value = "restart")]
    on_loss: OnLoss,
    /// A transition that lasts longer hangs
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    transition_timeout: Duration,
    /// A node that is not there for longer is missing
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    arrival_timeout: Duration,
    /// End when all are up
    #[arg(long, conflicts_with = "down")]
    once: bool,
    /// Bring them down, in reverse order, and end
    #[arg(long)]
    down: bool,
    /// Full names of the nodes; each needs the one before it to be active.
    /// NODE:A,B needs A and B instead, NODE: needs none
    #[arg(required = true, value_name = "NODE[:NEEDS]")]
    nodes: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnLoss {
    /// It is tried again, with pauses from 0.5 s to 8 s, five times
    Restart,
    /// It is given up, and those that need it are brought down
    BringDown,
    /// It is given up
    Ignore,
}

impl Supervise {
    /// Brings the nodes up and keeps them so until Ctrl-C.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let console = shared.console;
        let supervisor = LifecycleSupervisor::new(&session.context, self.supervised()?)?;
        // A reader that goes away does not stop supervision.
        let mut supervisor = supervisor.on_event(move |event| {
            let _ = match console.json {
                true => console.json_line(&json!({
                    "node": event.node(),
                    "trouble": event.is_trouble(),
                    "event": kind(event),
                    "text": event.to_string(),
                })),
                false => console.line(event.to_string()),
            };
        });
        let (report, aim) = match self.down {
            true => (supervisor.bring_down(), LifecycleState::Unconfigured),
            false => (supervisor.bring_up(), LifecycleState::Active),
        };
        if self.once || self.down {
            return match self.is_met(&report, aim) {
                true => Ok(()),
                false => {
                    console.remark(format!("not all are {}: {report}", aim.label()));
                    Err(Failed.into())
                }
            };
        }
        while !session.context.is_shut_down() {
            supervisor.watch(LOOK);
        }
        Ok(())
    }

    /// Who is not there is down.
    fn is_met(&self, report: &SupervisorReport, aim: LifecycleState) -> bool {
        report.nodes.iter().all(|node| {
            let is_down = matches!(
                node.state,
                LifecycleState::Unknown | LifecycleState::Finalized
            );
            node.state == aim || (self.down && is_down)
        })
    }

    fn supervised(&self) -> Result<Vec<SupervisedNode>> {
        let policy = match self.on_loss {
            OnLoss::Restart => LossPolicy::default(),
            OnLoss::BringDown => LossPolicy::BringDown,
            OnLoss::Ignore => LossPolicy::Ignore,
        };
        let mut before: Option<&str> = None;
        let mut nodes = Vec::new();
        for word in &self.nodes {
            let (name, needs): (&str, Vec<&str>) = match word.split_once(':') {
                None => (word, before.into_iter().collect()),
                Some((name, needs)) => {
                    let needs = needs.split(',').filter(|need| !need.is_empty());
                    (name, needs.collect())
                }
            };
            if name.is_empty() {
                bail!("'{word}' names no node; write /planner or /planner:/map,/lidar");
            }
            let node = SupervisedNode::new(name)
                .on_loss(policy)
                .transition_timeout(self.transition_timeout)
                .arrival_timeout(self.arrival_timeout);
            nodes.push(needs.into_iter().fold(node, SupervisedNode::depends_on));
            before = Some(name);
        }
        Ok(nodes)
    }
}

/// The event's name in JSON.
fn kind(event: &SupervisorEvent) -> &'static str {
    match event {
        SupervisorEvent::Arrived { .. } => "arrived",
        SupervisorEvent::Reached { .. } => "reached",
        SupervisorEvent::Failed { .. } => "failed",
        SupervisorEvent::ChangedByOthers { .. } => "changed_by_others",
        SupervisorEvent::Hung { .. } => "hung",
        SupervisorEvent::Gone { .. } => "gone",
        SupervisorEvent::Missing { .. } => "missing",
        SupervisorEvent::Retrying { .. } => "retrying",
        SupervisorEvent::GivenUp { .. } => "given_up",
        SupervisorEvent::Twins { .. } => "twins",
        _ => "other",
    }
}
