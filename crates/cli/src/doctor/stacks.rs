//! DDS implementations and versions of the other participants.

use super::finding::Findings;
use pteros::{
    Graph,
    graph::{NodeInfo, ParticipantInfo, ProductVersion},
};
use std::collections::BTreeMap;

/// Largest number of node names in a line.
const NODES_MAX: usize = 3;

/// Lists the implementations and reports incompatible versions.
pub fn check(graph: &Graph, found: &mut Findings) {
    check_versions(
        &graph.participants(),
        &graph.nodes(),
        &ProductVersion::OURS.to_string(),
        found,
    );
}

/// Name and version, as `Cyclone DDS 0.10.5`; the version only if it is announced.
pub fn stack_name(participant: &ParticipantInfo) -> String {
    let vendor = participant.vendor;
    let stack = vendor.name().map_or_else(
        || format!("vendor {:02x}.{:02x}", vendor.0[0], vendor.0[1]),
        Into::into,
    );
    match participant.version {
        Some(version) => format!("{stack} {version}"),
        None => stack,
    }
}

fn check_versions(
    participants: &[ParticipantInfo],
    nodes: &[NodeInfo],
    own: &str,
    found: &mut Findings,
) {
    let mut stacks: BTreeMap<String, Vec<&ParticipantInfo>> = BTreeMap::new();
    for one in participants {
        stacks.entry(stack_name(one)).or_default().push(one);
    }
    if stacks.is_empty() {
        return found.note("no other participants found");
    }
    let counts = stacks.iter();
    let counts = counts.map(|(stack, peers)| format!("{} of {stack}", peers.len()));
    let counts: Vec<String> = counts.collect();
    found.ok(format!("other participants: {}", counts.join(", ")));
    let ours = format!("Pteros {own}");
    let is_other = |stack: &str| {
        let is_pteros = stack == "Pteros" || stack.starts_with("Pteros ");
        is_pteros && stack != ours
    };
    for (stack, peers) in stacks.iter().filter(|(stack, _)| is_other(stack)) {
        let whose = nodes
            .iter()
            .filter(|node| peers.iter().any(|peer| peer.guid == node.participant));
        let mut names: Vec<String> = whose.map(NodeInfo::fully_qualified_name).collect();
        let more = names.len().saturating_sub(NODES_MAX);
        names.truncate(NODES_MAX);
        let mut who = if names.is_empty() {
            "a process without nodes".into()
        } else {
            names.join(", ")
        };
        if more > 0 {
            who += &format!(" and {more} more");
        }
        let version = match stack.as_str() {
            "Pteros" => "a Pteros that is too old to announce its version",
            other => other,
        };
        found.warn(
            format!("{who}: {version}, this command: {ours}"),
            "build all programs of a robot with one version: others may not support shared memory or newer features",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingSeverity;
    use super::*;
    use pteros::graph::{Guid, VendorId};

    fn peer(number: u8, vendor: VendorId, version: Option<[u8; 4]>) -> ParticipantInfo {
        let mut guid = Guid::default();
        guid.prefix.0[0] = number;
        ParticipantInfo {
            guid,
            vendor,
            version: version.map(ProductVersion),
            enclave: None,
        }
    }

    fn findings(peers: &[ParticipantInfo]) -> Vec<(FindingSeverity, String)> {
        let nodes = peers.iter().map(|peer| NodeInfo {
            namespace: "/".into(),
            name: format!("n{}", peer.guid.prefix.0[0]),
            enclave: None,
            participant: peer.guid,
        });
        let nodes: Vec<NodeInfo> = nodes.collect();
        let mut found = Findings::new("graph");
        check_versions(peers, &nodes, "0.1.0", &mut found);
        let list = found.into_list().into_iter();
        list.map(|finding| (finding.severity, finding.text))
            .collect()
    }

    #[test]
    fn implementations_are_listed_with_versions_and_counts() {
        let peers = [
            peer(1, VendorId::PTEROS, Some([0, 1, 0, 0])),
            peer(2, VendorId::CYCLONE, Some([0, 10, 5, 0])),
            peer(3, VendorId::CYCLONE, Some([0, 10, 5, 0])),
            peer(4, VendorId::FAST_DDS, None),
            peer(5, VendorId([9, 9]), None),
        ];
        let text = "other participants: 2 of Cyclone DDS 0.10.5, 1 of Fast DDS, 1 of Pteros 0.1.0, 1 of vendor 09.09";
        assert_eq!(findings(&peers), [(FindingSeverity::Ok, text.into())]);
        assert_eq!(
            findings(&[]),
            [(FindingSeverity::Note, "no other participants found".into())]
        );
    }

    #[test]
    fn another_version_of_pteros_is_a_warning_that_names_its_nodes() {
        let other = Some([0, 2, 0, 0]);
        let mut peers: Vec<_> = (1..=5).map(|n| peer(n, VendorId::PTEROS, other)).collect();
        peers.push(peer(6, VendorId::PTEROS, None));
        peers.push(peer(7, VendorId::FAST_DDS, other));
        let found = findings(&peers);
        let warnings: Vec<&str> = found
            .iter()
            .filter(|(weight, _)| *weight == FindingSeverity::Warning)
            .map(|(_, text)| text.as_str())
            .collect();
        let expected = [
            "/n6: a Pteros that is too old to announce its version, this command: Pteros 0.1.0",
            "/n1, /n2, /n3 and 2 more: Pteros 0.2.0, this command: Pteros 0.1.0",
        ];
        assert_eq!(warnings, expected);
    }
}
