//! `pteros lifecycle supervise`.

use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use crate::session::Session;
use crate::value_parsers::positive_seconds;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pteros::lifecycle::{
    LifecycleState, LifecycleSupervisor, LossPolicy, SupervisedNode, SupervisorEvent,
    SupervisorReport,
};
use serde_json::json;
use std::time::Duration;

/// Duration of one watch call.
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// Arguments of `lifecycle supervise`.
#[derive(Debug, Args)]
pub struct Supervise {
    /// Policy for a node that ends, hangs or fails
    #[arg(long, value_enum, value_name = "POLICY", default_value = "restart")]
    on_loss: OnLoss,
    /// A node whose transition takes longer is unresponsive
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    transition_timeout: Duration,
    /// A node that has not appeared within this time is missing
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    arrival_timeout: Duration,
    /// Exit when all nodes are active
    #[arg(long, conflicts_with = "down")]
    once: bool,
    /// Bring the nodes down in reverse order, and exit
    #[arg(long)]
    down: bool,
    /// Full names of the nodes; each depends on the one before it. NODE:A,B depends
    /// on A and B instead, NODE: on none
    #[arg(required = true, value_name = "NODE[:NEEDS]")]
    nodes: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnLoss {
    /// Retry five times, with pauses from 0.5 s to 8 s
    Restart,
    /// Give it up, and bring down the nodes that depend on it
    BringDown,
    /// Give it up
    Ignore,
}

impl Supervise {
    /// Brings the nodes up and keeps them active until Ctrl-C.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let console = cli.console;
        let supervisor = LifecycleSupervisor::new(&session.context, self.supervised()?)?;
        // A closed pipe does not stop the supervision.
        let mut supervisor = supervisor.on_event(move |event| {
            let _ = if console.json {
                console.json_line(&json!({
                    "node": event.node(),
                    "needs_attention": event.needs_attention(),
                    "event": event_name(event),
                    "text": event.to_string(),
                }))
            } else {
                console.row(event.to_string())
            };
        });
        let (report, aim) = if self.down {
            (supervisor.bring_down(), LifecycleState::Unconfigured)
        } else {
            (supervisor.bring_up(), LifecycleState::Active)
        };
        if self.once || self.down {
            return if self.is_met(&report, aim) {
                Ok(())
            } else {
                console.note(format!("not all nodes are {}: {report}", aim.label()));
                Err(Failed.into())
            };
        }
        while !session.context.is_shut_down() {
            supervisor.watch(WATCH_PERIOD);
        }
        Ok(())
    }

    /// A node that has ended counts as down.
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
                bail!("'{word}' has no node name; write /planner or /planner:/map,/lidar");
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
fn event_name(event: &SupervisorEvent) -> &'static str {
    match event {
        SupervisorEvent::Discovered { .. } => "discovered",
        SupervisorEvent::Reached { .. } => "reached",
        SupervisorEvent::Failed { .. } => "failed",
        SupervisorEvent::ChangedExternally { .. } => "changed_externally",
        SupervisorEvent::Unresponsive { .. } => "unresponsive",
        SupervisorEvent::Lost { .. } => "lost",
        SupervisorEvent::Missing { .. } => "missing",
        SupervisorEvent::Retrying { .. } => "retrying",
        SupervisorEvent::GivenUp { .. } => "given_up",
        SupervisorEvent::DuplicateName { .. } => "duplicate_name",
        _ => "other",
    }
}
