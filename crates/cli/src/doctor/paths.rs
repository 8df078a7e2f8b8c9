//! Network paths to the other participants: addresses that do not answer while another
//! address of the same process is in use.

use super::finding::Findings;
use crate::network_paths::{address, by_process, state_text};
use crate::session::Session;
use pteros::Graph;
use pteros::network::{PathInfo, PathState};
use std::collections::BTreeSet;

/// Reports each such address once.
pub fn check(session: &Session, graph: &Graph, found: &mut Findings) {
    let nodes = graph.nodes();
    let nodes = nodes
        .iter()
        .map(|node| (node.participant, node.fully_qualified_name()));
    let mut reported = BTreeSet::new();
    for (guid, nodes) in by_process(nodes) {
        for (text, is_loss) in unused(&nodes, &session.context.paths_to(guid), &mut reported) {
            let fix = "test the network between the two hosts: pteros doctor hello";
            if is_loss {
                found.warn(text, fix);
            } else {
                found.note_with(text, fix);
            }
        }
    }
}

/// The addresses that cannot be used, and whether they could be before.
fn unused(
    nodes: &str,
    paths: &[PathInfo],
    reported: &mut BTreeSet<pteros::network::IpAddress>,
) -> Vec<(String, bool)> {
    let Some(used) = paths.iter().find(|path| path.in_use) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    for path in paths.iter().filter(|path| !path.in_use) {
        let is_loss = match path.state {
            PathState::Working | PathState::Unused => continue,
            PathState::Silent | PathState::LinkDown => true,
            PathState::Unvalidated => false,
        };
        if reported.insert(address(path)) {
            texts.push((
                format!(
                    "{} of {nodes} {}; {} is in use",
                    address(path),
                    state_text(path.state),
                    address(used)
                ),
                is_loss,
            ));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::network::Locator;

    fn path(last: u8, state: PathState, in_use: bool) -> PathInfo {
        PathInfo {
            locator: Locator::udp_v4([10, 0, last, 2], 7410),
            state,
            in_use,
            reason: None,
        }
    }

    #[test]
    fn an_address_that_does_not_answer_is_reported_once() {
        let paths = [
            path(1, PathState::Silent, false),
            path(2, PathState::Working, true),
            path(3, PathState::Unused, false),
            path(4, PathState::Unvalidated, false),
        ];
        let mut reported = BTreeSet::new();
        assert_eq!(
            unused("/listener", &paths, &mut reported),
            [
                (
                    "10.0.1.2 of /listener does not answer; 10.0.2.2 is in use".into(),
                    true
                ),
                (
                    "10.0.4.2 of /listener has never answered; 10.0.2.2 is in use".into(),
                    false
                ),
            ]
        );
        assert_eq!(unused("/other", &paths, &mut reported), []);
    }
}
