//! Reports endpoints that are incompatible with the verb's own endpoint, each once,
//! with the policy and both values. ROS 2's warning lacks the values.

use super::info::node_path;
use crate::console::Console;
use pteros::log::escape_line;
use pteros::{
    Graph,
    graph::{Guid, MatchOutcome, MatchReport},
};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The shortest time between two looks at the graph. A flood of announcements changes
/// it all the time.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Pairs that are reported. Further ones are not: thousands of lines say nothing more.
const REPORTED_MAX: usize = 256;

/// Watches the graph for endpoints of one topic that are incompatible with ours.
pub struct MismatchReporter<'a> {
    graph: &'a Graph,
    topic: &'a str,
    last_revision: u64,
    next_look_at: Option<Instant>,
    reported: HashSet<(Guid, Guid)>,
}

impl<'a> MismatchReporter<'a> {
    /// A reporter without any reports.
    pub fn new(graph: &'a Graph, topic: &'a str) -> Self {
        Self {
            graph,
            topic,
            last_revision: 0,
            next_look_at: None,
            reported: HashSet::new(),
        }
    }

    /// Prints new mismatches since the last call. Costs nothing while the graph
    /// does not change. Looks at most every 200 ms, and reports at most 256 pairs.
    pub fn report(&mut self, console: Console) {
        let revision = self.graph.revision();
        let now = Instant::now();
        let is_early = self.next_look_at.is_some_and(|at| now < at);
        if revision == self.last_revision || is_early || self.reported.len() >= REPORTED_MAX {
            return;
        }
        self.last_revision = revision;
        self.next_look_at = Some(now + LOOK_PERIOD);
        for pair in self.graph.local_match_reports(self.topic) {
            let key = (pair.publisher.gid, pair.subscription.gid);
            if let Some(text) = mismatch_text(&pair)
                && self.reported.insert(key)
            {
                let line = format!("WARNING: topic [{}]: {text}", self.topic);
                console.note(escape_line(&line));
                if self.reported.len() >= REPORTED_MAX {
                    console.note("further mismatches are not reported");
                    return;
                }
            }
        }
    }
}

fn mismatch_text(pair: &MatchReport) -> Option<String> {
    let (other, verb) = if pair.subscription.local {
        (&pair.publisher, "is not received")
    } else {
        (&pair.subscription, "will not receive this")
    };
    let reasons: Vec<String> = pair
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            MatchOutcome::Incompatible {
                policy,
                offered,
                requested,
                hint: advice,
            } => Some(format!(
                "{policy}: offered {offered}, requested {requested}; {advice}"
            )),
            MatchOutcome::Denied { reason } => Some(reason.clone()),
            MatchOutcome::Matched { .. } | MatchOutcome::Pending { .. } => None,
        })
        .collect();
    (!reasons.is_empty()).then(|| format!("{} {verb}, {}", node_path(other), reasons.join("; ")))
}
