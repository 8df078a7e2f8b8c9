//! Reports endpoints that are incompatible with the verb's own endpoint, each once,
//! with the policy and both values. ROS 2's warning lacks the values.

use super::info::node_path;
use crate::console::Console;
use pteros::{
    Graph,
    graph::{Guid, MatchOutcome, MatchReport},
};
use std::collections::HashSet;

/// Watches the graph for endpoints of one topic that are incompatible with ours.
pub struct MismatchReporter<'a> {
    graph: &'a Graph,
    topic: &'a str,
    last_revision: u64,
    reported: HashSet<(Guid, Guid)>,
}

impl<'a> MismatchReporter<'a> {
    /// A reporter without any reports.
    pub fn new(graph: &'a Graph, topic: &'a str) -> Self {
        Self {
            graph,
            topic,
            last_revision: 0,
            reported: HashSet::new(),
        }
    }

    /// Prints new mismatches since the last call. Costs nothing while the graph
    /// does not change.
    pub fn report(&mut self, console: Console) {
        let revision = self.graph.revision();
        if revision == self.last_revision {
            return;
        }
        self.last_revision = revision;
        for pair in self.graph.match_reports(self.topic) {
            if !pair.publisher.local && !pair.subscription.local {
                continue;
            }
            let key = (pair.publisher.gid, pair.subscription.gid);
            if let Some(text) = mismatch_text(&pair)
                && self.reported.insert(key)
            {
                console.note(format!("WARNING: topic [{}]: {text}", self.topic));
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
