//! Endpoints that do not fit the one we made, each reported once, with what
//! stands between. ROS 2 warns without saying what the values are.

use super::info::node_path;
use crate::console::Console;
use pteros::{Graph, Guid, PairReport, Verdict};
use std::collections::HashSet;

/// Watches the graph for endpoints of one topic that do not fit ours.
pub struct Mismatches<'a> {
    graph: &'a Graph,
    topic: &'a str,
    looked_at: u64,
    reported: HashSet<(Guid, Guid)>,
}

impl<'a> Mismatches<'a> {
    /// Nothing reported yet.
    pub fn new(graph: &'a Graph, topic: &'a str) -> Self {
        Self {
            graph,
            topic,
            looked_at: 0,
            reported: HashSet::new(),
        }
    }

    /// Remarks on what is new since the last call. Costs nothing while the
    /// graph stays as it is.
    pub fn report(&mut self, console: Console) {
        let revision = self.graph.revision();
        if revision == self.looked_at {
            return;
        }
        self.looked_at = revision;
        for pair in self.graph.why(self.topic) {
            if !pair.publisher.local && !pair.subscription.local {
                continue;
            }
            let key = (pair.publisher.gid, pair.subscription.gid);
            if let Some(text) = blocked(&pair)
                && self.reported.insert(key)
            {
                console.remark(format!("WARNING: topic [{}]: {text}", self.topic));
            }
        }
    }
}

fn blocked(pair: &PairReport) -> Option<String> {
    let (other, verb) = if pair.subscription.local {
        (&pair.publisher, "is not received")
    } else {
        (&pair.subscription, "will not receive this")
    };
    let reasons: Vec<String> = pair
        .verdicts
        .iter()
        .filter_map(|verdict| match verdict {
            Verdict::Blocked {
                policy,
                offered,
                requested,
                advice,
            } => Some(format!(
                "{policy}: offered {offered}, requested {requested}; {advice}"
            )),
            Verdict::Denied { reason } => Some(reason.clone()),
            Verdict::Matched { .. } | Verdict::Pending { .. } => None,
        })
        .collect();
    (!reasons.is_empty()).then(|| format!("{} {verb}, {}", node_path(other), reasons.join("; ")))
}
