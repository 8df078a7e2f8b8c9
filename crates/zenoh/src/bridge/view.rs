//! View of one side: endpoints of other processes, and other bridges.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_runtime::Core;

use crate::bridge_path::{BridgeId, BridgePath};
use crate::key::Place;

/// A network of a bridge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Side {
    /// The RTPS domain.
    Rtps,
    /// The Zenoh network.
    Zenoh,
}

impl Side {
    /// In the order of the arrays of the bridge.
    pub const BOTH: [Self; 2] = [Self::Rtps, Self::Zenoh];

    /// The opposite side.
    pub fn other(self) -> Self {
        match self {
            Self::Rtps => Self::Zenoh,
            Self::Zenoh => Self::Rtps,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rtps => "rtps",
            Self::Zenoh => "zenoh",
        })
    }
}

/// An endpoint of another process.
#[derive(Clone, Debug)]
pub struct SeenEndpoint {
    /// Announced data.
    pub data: Arc<EndpointData>,
    /// Name, type and role.
    pub place: Place,
    /// Bridges that it has crossed. `None` if the path is malformed.
    pub path: Option<BridgePath>,
    /// DDS vendor of its participant.
    pub vendor: VendorId,
}

/// Endpoints, bridges and participants of one side.
#[derive(Clone, Debug, Default)]
pub struct SideView {
    /// Publishers and servers with ROS names.
    pub endpoints: Vec<SeenEndpoint>,
    /// Bridges present now.
    pub bridges: BTreeSet<BridgeId>,
    /// Bridges present now or before, because their endpoints may outlive them.
    pub known: BTreeSet<BridgeId>,
    /// Participants present now.
    pub participants: HashSet<GuidPrefix>,
}

impl SideView {
    /// Builds the view of a context's graph. Copies it, so time and memory are
    /// proportional to its size.
    pub fn of(core: &Core) -> Self {
        let graph = core.graph();
        let found = graph.endpoints_if(|guid, _| guid.prefix != core.prefix());
        let participants = graph.participants();
        let vendors: HashMap<GuidPrefix, VendorId> = participants
            .iter()
            .map(|of| (of.prefix, of.vendor))
            .collect();
        let endpoints = found.into_iter().filter_map(|found| {
            let place = Place::of(&found.data)?;
            Some(SeenEndpoint {
                path: BridgePath::of_endpoint(&found.data),
                vendor: vendors
                    .get(&found.data.guid.prefix)
                    .copied()
                    .unwrap_or_default(),
                place,
                data: found.data,
            })
        });
        let nodes = graph.nodes().into_iter();
        let others = nodes.filter(|node| node.participant != core.prefix());
        let bridges = others.filter_map(|node| match BridgePath::of_node(&node.name)?.ids() {
            [own] => Some(*own),
            _ => None,
        });
        let bridges: BTreeSet<BridgeId> = bridges.collect();
        Self {
            endpoints: endpoints.collect(),
            known: bridges.clone(),
            bridges,
            participants: participants.iter().map(|of| of.prefix).collect(),
        }
    }
}
