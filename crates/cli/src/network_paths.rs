//! Network paths: which address of each remote process is in use, as `pteros topic
//! info --details` and `pteros doctor` show it. They are those of the command's own context,
//! which chooses by the same rules as every process of this host.

use std::collections::BTreeMap;

use pteros::graph::Guid;
use pteros::network::{IpAddress, PathInfo, PathReason, PathState};
use serde_json::{Value, json};

/// The address of a path.
pub fn address(path: &PathInfo) -> IpAddress {
    let ip = path.locator.to_udp().map(|(ip, _)| ip);
    ip.unwrap_or_default()
}

/// The state of an address in words that follow its name.
pub fn state_text(state: PathState) -> &'static str {
    match state {
        PathState::Working => "answers",
        PathState::Unused => "is not needed",
        PathState::Silent => "does not answer",
        PathState::Unvalidated => "has never answered",
        PathState::LinkDown => "is behind a link of this host that is down",
    }
}

fn reason_text(reason: PathReason) -> &'static str {
    match reason {
        PathReason::LinkDown => "a link of this host is down",
        PathReason::AddressGone => "the former address is gone",
        PathReason::Silent => "the former address does not answer",
        PathReason::Better => "it answers again",
    }
}

/// One line: the address in use and why, then the others.
pub fn line(paths: &[PathInfo]) -> String {
    let used = paths.iter().filter(|path| path.in_use);
    let used = used.map(|path| match path.reason {
        None => format!("{} is in use", address(path)),
        Some(why) => format!("{} is in use: {}", address(path), reason_text(why)),
    });
    let others = paths.iter().filter(|path| !path.in_use);
    let others = others.map(|path| format!("{} {}", address(path), state_text(path.state)));
    used.chain(others).collect::<Vec<_>>().join("; ")
}

/// The paths of one process for `--json`.
pub fn json(nodes: &str, paths: &[PathInfo]) -> Value {
    let path = |path: &PathInfo| {
        json!({
            "address": address(path).to_string(),
            "in_use": path.in_use,
            "state": state_text(path.state),
            "reason": path.reason.map(reason_text),
        })
    };
    json!({ "nodes": nodes, "addresses": paths.iter().map(path).collect::<Vec<_>>() })
}

/// The names of the nodes of each process, from pairs of an endpoint and its node.
pub fn by_process(endpoints: impl Iterator<Item = (Guid, String)>) -> Vec<(Guid, String)> {
    let mut processes: BTreeMap<_, (Guid, Vec<String>)> = BTreeMap::new();
    for (guid, node) in endpoints {
        let (_, nodes) = processes
            .entry(guid.prefix)
            .or_insert_with(|| (guid, Vec::new()));
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    let processes = processes.into_values();
    processes
        .map(|(guid, nodes)| (guid, nodes.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::network::Locator;

    fn path(ip: [u8; 4], state: PathState, reason: Option<Option<PathReason>>) -> PathInfo {
        PathInfo {
            locator: Locator::udp_v4(ip, 7410),
            state,
            in_use: reason.is_some(),
            reason: reason.flatten(),
        }
    }

    #[test]
    fn the_address_in_use_comes_first_with_its_reason() {
        let paths = [
            path([10, 1, 0, 2], PathState::Silent, None),
            path(
                [10, 2, 0, 2],
                PathState::Working,
                Some(Some(PathReason::Silent)),
            ),
        ];
        assert_eq!(
            line(&paths),
            "10.2.0.2 is in use: the former address does not answer; 10.1.0.2 does not answer"
        );
        let one = [path([10, 1, 0, 2], PathState::Working, Some(None))];
        assert_eq!(line(&one), "10.1.0.2 is in use");
        assert_eq!(json("/n", &one)["addresses"][0]["address"], "10.1.0.2");
    }
}
