//! View of a bridge on one side: the endpoints of others, and the other bridges.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_runtime::Core;

use crate::bridge_path::{BridgeId, BridgePath};
use crate::key::Place;

/// One of the two networks of a bridge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Side {
    /// The RTPS domain.
    Rtps,
    /// The Zenoh network.
    Zenoh,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Rtps, Self::Zenoh];

    /// The other one.
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
    /// Its announced data.
    pub data: Arc<EndpointData>,
    /// Its name, type and role.
    pub place: Place,
    /// The bridges that it has crossed. `None` if they are malformed.
    pub path: Option<BridgePath>,
    /// The DDS implementation of its participant.
    pub vendor: VendorId,
}

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct SideView {
    /// Publishers and servers with names of ROS.
    pub endpoints: Vec<SeenEndpoint>,
    /// The bridges that are there.
    pub bridges: BTreeSet<BridgeId>,
    /// Those that are or have been there: what they made may outlive them.
    pub known: BTreeSet<BridgeId>,
    /// The participants that are there.
    pub participants: HashSet<GuidPrefix>,
}

impl SideView {
    /// The view of a context's graph. Copies it: costs time and memory in proportion.
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
