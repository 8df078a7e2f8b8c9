//! Bridge path: the bridges that an endpoint has crossed, in order.
//!
//! A bridge announces what it routes with the path of the origin and its own id. RTPS
//! carries the path in USER_DATA (`bridge=0a1b2c3d_…;`), in the announcement of the
//! endpoint. A liveliness token has no user data, so there the name of the node carries
//! it: `_pteros_bridge_0a1b2c3d_…`. So every announced endpoint has a known path.
//!
//! A bridge announces on both sides a node whose path is its own id alone. Other bridges
//! detect it by that node.

use std::fmt;

use pteros_rtps::discovery::data::EndpointData;
use pteros_runtime::user_data::user_data_value;

/// Bridges that a message may cross. An endpoint with a path of this length is not routed
/// further.
pub const HOPS_MAX: usize = 8;

/// Prefix of the names of a bridge's nodes. The leading underscore hides them.
pub const NODE_PREFIX: &str = "_pteros_bridge_";

/// Key of the path in USER_DATA.
const USER_DATA_KEY: &str = "bridge";

/// Id of a bridge, unique among the bridges of a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct BridgeId(pub u32);

impl fmt::Display for BridgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl BridgeId {
    fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u32::from_str_radix(text, 16).ok().map(Self))?
    }
}

/// See the module documentation. Shorter paths sort first, equally long ones by ids.
#[derive(Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct BridgePath(Vec<BridgeId>);

impl PartialOrd for BridgePath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BridgePath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.cmp(&other.0))
    }
}

impl BridgePath {
    /// Parses a node name. `None` if it is malformed, or of no bridge.
    pub fn of_node(name: &str) -> Option<Self> {
        Self::parse(name.strip_prefix(NODE_PREFIX)?)
    }

    /// Reads the path that an endpoint announces. It is empty for an endpoint of no
    /// bridge, and `None` if it is malformed.
    pub fn of_endpoint(data: &EndpointData) -> Option<Self> {
        match user_data_value(&data.qos.user_data, USER_DATA_KEY) {
            None => Some(Self::default()),
            Some(text) => Self::parse(&text),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let ids: Option<Vec<BridgeId>> = text
            .split('_')
            .take(HOPS_MAX + 1)
            .map(BridgeId::parse)
            .collect();
        ids.filter(|ids| ids.len() <= HOPS_MAX).map(Self)
    }

    /// Appends a bridge. `None` if the path has [`HOPS_MAX`] already.
    pub fn through(&self, bridge: BridgeId) -> Option<Self> {
        let mut ids = self.0.clone();
        ids.push(bridge);
        (ids.len() <= HOPS_MAX).then_some(Self(ids))
    }

    /// Ids of the bridges, in the order in which they were crossed.
    pub fn ids(&self) -> &[BridgeId] {
        &self.0
    }

    /// Name of the node that has the endpoints with this path.
    pub fn node_name(&self) -> String {
        format!("{NODE_PREFIX}{self}")
    }

    /// The path as an entry of USER_DATA.
    pub fn user_data(&self) -> String {
        format!("{USER_DATA_KEY}={self};")
    }
}

impl fmt::Display for BridgePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, id) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { "_" };
            write!(f, "{gap}{id}")?;
        }
        Ok(())
    }
}

/// USER_DATA entry for the endpoints of a node: the path of a bridge's node, empty for
/// another node.
pub fn user_data_of_node(name: &str) -> String {
    let path = name.strip_prefix(NODE_PREFIX);
    path.map_or_else(String::new, |path| format!("{USER_DATA_KEY}={path};"))
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;

    use super::*;

    fn endpoint(user_data: &str) -> EndpointData {
        let guid = GuidPrefix([1; 12]).with(EntityId::PARTICIPANT);
        let qos = EndpointQos {
            user_data: user_data.into(),
            ..EndpointQos::default()
        };
        EndpointData::new(guid, "rt/chatter", "T", qos)
    }

    #[test]
    fn a_path_is_the_same_in_a_node_name_and_in_user_data() {
        let [one, two] = [BridgeId(0x0a1b), BridgeId(0xffff_ffff)];
        let path = BridgePath::default().through(one).unwrap();
        let path = path.through(two).unwrap();
        assert_eq!(path.node_name(), "_pteros_bridge_00000a1b_ffffffff");
        assert_eq!(path.user_data(), user_data_of_node(&path.node_name()));
        assert_eq!(BridgePath::of_node(&path.node_name()), Some(path.clone()));
        let data = endpoint(&format!("typehash=RIHS01_ab;{}", path.user_data()));
        assert_eq!(BridgePath::of_endpoint(&data), Some(path));
    }

    #[test]
    fn only_a_bridge_has_a_path() {
        let native = Some(BridgePath::default());
        for data in ["", ";", "typehash=RIHS01_ab;", "mine"] {
            assert_eq!(BridgePath::of_endpoint(&endpoint(data)), native, "{data}");
        }
        assert_eq!(user_data_of_node("talker"), "");
        assert_eq!(BridgePath::of_node("talker"), None);
        for wrong in ["", "_", "1", "0a1b2c3d_", "0a1b2c3g", "+a1b2c3d"] {
            let data = endpoint(&format!("bridge={wrong};"));
            assert_eq!(BridgePath::of_endpoint(&data), None, "{wrong}");
            let node = format!("{NODE_PREFIX}{wrong}");
            assert_eq!(BridgePath::of_node(&node), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_has_an_end() {
        let mut path = BridgePath::default();
        for id in 0..u32::try_from(HOPS_MAX).unwrap() {
            path = path.through(BridgeId(id)).unwrap();
        }
        assert_eq!(path.through(BridgeId(99)), None);
        let longer = format!("{}_00000099", path.node_name());
        assert_eq!(BridgePath::of_node(&longer), None);
        let endless = format!("bridge={};", "0a1b2c3d_".repeat(10_000));
        assert_eq!(BridgePath::of_endpoint(&endpoint(&endless)), None);
    }
}
