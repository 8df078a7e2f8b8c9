//! Node lists on the wire: ParticipantEntitiesInfo of rmw_dds_common in the layout of
//! each ROS 2 distribution.
//!
//! A gid has 16 bytes since Iron, and 24 in Humble and before, under one type name.
//! Readers of the old layout announce no type hash. A reader that decodes the other
//! layout reads garbage as a length (Fast DDS 2.6 then fills gigabytes). So a list is
//! sent in the layout of its receiver's own lists.

use bytes::Bytes;
use pteros_interfaces::rmw_dds_common::msg::{Gid, ParticipantEntitiesInfo};
use pteros_msg::cdr::{DecodeError, Decoder, Encoder, Endian, Representation, from_payload};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::writer::PayloadForm;

/// Nodes, and endpoints per node, that are accepted from one participant.
pub(crate) const NODES_MAX: usize = 1024;
const ENDPOINTS_PER_NODE_MAX: usize = 4096;

/// Longest node name or namespace of the type (rmw_dds_common).
const NAME_BYTES_MAX: usize = 256;

/// The layout of the gids in a node list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GidLayout {
    /// 16 bytes: Iron and later.
    Bytes16,
    /// 24 bytes, the last 8 zero: Humble and before.
    Bytes24,
}

impl GidLayout {
    /// The conversion of our lists for readers of this layout, if they need one.
    pub(crate) fn payload_form(self) -> Option<PayloadForm> {
        match self {
            Self::Bytes16 => None,
            Self::Bytes24 => Some(PayloadForm(with_gids_of_24_bytes)),
        }
    }

    fn padding_bytes(self) -> usize {
        match self {
            Self::Bytes16 => 0,
            Self::Bytes24 => 8,
        }
    }

    fn gid_bytes(self) -> usize {
        16 + self.padding_bytes()
    }
}

/// A node, and the GUIDs of its endpoints.
#[derive(Clone, Default)]
pub(crate) struct NodeRecord {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) readers: Vec<Guid>,
    pub(crate) writers: Vec<Guid>,
}

impl NodeRecord {
    pub(crate) fn is_named_as(&self, other: &NodeRecord) -> bool {
        self.name == other.name && self.namespace == other.namespace
    }
}

/// A participant's decoded node list.
pub(crate) struct NodeList {
    pub(crate) participant: GuidPrefix,
    pub(crate) nodes: Vec<NodeRecord>,
}

impl NodeList {
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_node = |node: &NodeRecord| {
            let guids = node.readers.len() + node.writers.len();
            size_of::<NodeRecord>()
                + node.name.len()
                + node.namespace.len()
                + guids * size_of::<Guid>()
        };
        self.nodes.iter().map(of_node).sum()
    }
}

/// Padding behind a payload, which RTPS rounds up to four bytes.
const PADDING_MAX: usize = 3;

/// Decodes a node list of either layout. Returns the layout: with the wrong one, decoding
/// does not end at the end of the message.
///
/// # Errors
/// The message is complete in neither layout. A guessed layout would be kept for good.
pub(crate) fn decode_nodes(payload: &[u8]) -> Result<(NodeList, GidLayout), DecodeError> {
    let decode = |layout| -> Result<NodeList, DecodeError> {
        match decode_in(payload, layout)? {
            (nodes, left) if left <= PADDING_MAX => Ok(nodes),
            (_, left) => Err(DecodeError::TooLong {
                offset: payload.len().saturating_sub(left),
                len: left,
                bound: PADDING_MAX,
            }),
        }
    };
    let (modern, old) = (GidLayout::Bytes16, GidLayout::Bytes24);
    match (decode(modern), decode(old)) {
        (Ok(nodes), _) => Ok((nodes, modern)),
        (Err(_), Ok(nodes)) => Ok((nodes, old)),
        (Err(error), Err(_)) => Err(error),
    }
}

fn decode_in(payload: &[u8], layout: GidLayout) -> Result<(NodeList, usize), DecodeError> {
    let mut input = Decoder::from_payload(payload)?;
    let participant = gid(&mut input, layout)?.prefix;
    let count = input.sequence_len(16, NODES_MAX)?;
    let mut nodes = Vec::new();
    for _ in 0..count {
        let namespace = input.string(NAME_BYTES_MAX)?;
        let name = input.string(NAME_BYTES_MAX)?;
        let readers = gids(&mut input, layout)?;
        let writers = gids(&mut input, layout)?;
        nodes.push(NodeRecord {
            name,
            namespace,
            readers,
            writers,
        });
    }
    nodes.shrink_to_fit();
    Ok((NodeList { participant, nodes }, input.remaining()))
}

fn gids(input: &mut Decoder<'_>, layout: GidLayout) -> Result<Vec<Guid>, DecodeError> {
    let count = input.sequence_len(layout.gid_bytes(), ENDPOINTS_PER_NODE_MAX)?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(gid(input, layout)?);
    }
    list.shrink_to_fit();
    Ok(list)
}

fn gid(input: &mut Decoder<'_>, layout: GidLayout) -> Result<Guid, DecodeError> {
    let bytes = input.primitive_array::<u8, 16>()?;
    for _ in 0..layout.padding_bytes() {
        input.u8()?;
    }
    Ok(Guid::from_bytes(bytes))
}

/// A list of ours in the layout of Humble.
fn with_gids_of_24_bytes(payload: &Bytes) -> Bytes {
    let Ok(list) = from_payload::<ParticipantEntitiesInfo>(payload) else {
        debug_assert!(false, "our own node list is not one");
        return Bytes::new();
    };
    let mut bytes = vec![0, 1, 0, 0];
    let mut out = Encoder::to_vec(&mut bytes, Representation::Xcdr1, Endian::Little);
    let put = |gid: &Gid, out: &mut Encoder<'_>| {
        out.primitive_array(&gid.data);
        out.primitive_array(&[0_u8; 8]);
    };
    put(&list.gid, &mut out);
    out.sequence_len(list.node_entities_info_seq.len());
    for node in &list.node_entities_info_seq {
        out.string(&node.node_namespace);
        out.string(&node.node_name);
        for gids in [&node.reader_gid_seq, &node.writer_gid_seq] {
            out.sequence_len(gids.len());
            gids.iter().for_each(|gid| put(gid, &mut out));
        }
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use pteros_interfaces::rmw_dds_common::msg::NodeEntitiesInfo;
    use pteros_msg::cdr::to_payload;
    use pteros_rtps::id::EntityId;

    use super::*;

    fn list() -> ParticipantEntitiesInfo {
        let gid = |n: u8| Gid { data: [n; 16] };
        let node = |name: &str, readers: &[u8], writers: &[u8]| NodeEntitiesInfo {
            node_namespace: "/".into(),
            node_name: name.into(),
            reader_gid_seq: readers.iter().map(|n| gid(*n)).collect(),
            writer_gid_seq: writers.iter().map(|n| gid(*n)).collect(),
        };
        ParticipantEntitiesInfo {
            gid: gid(7),
            node_entities_info_seq: vec![node("talker", &[1, 2], &[3]), node("a", &[], &[4, 5])],
        }
    }

    /// Both layouts of a list.
    fn both(list: &ParticipantEntitiesInfo) -> [(Bytes, GidLayout); 2] {
        let modern: Bytes = to_payload(list, Representation::Xcdr1).into();
        let old = with_gids_of_24_bytes(&modern);
        [(modern, GidLayout::Bytes16), (old, GidLayout::Bytes24)]
    }

    /// A truncated or extended list of one layout was decoded in the other one, which was
    /// then kept for good.
    #[test]
    fn a_list_that_is_whole_in_neither_layout_tells_no_layout() {
        for (payload, layout) in both(&list()) {
            // A prefix shorter than the shortest list looks like a list without nodes.
            for end in 32..payload.len() {
                let found = decode_nodes(&payload[..end]).map(|(_, of)| of);
                assert!(
                    found.is_err() || found == Ok(layout),
                    "{layout:?} cut at {end}"
                );
            }
            let longer = [&payload[..], &[0; 8]].concat();
            assert!(decode_nodes(&longer).is_err(), "{layout:?}");
        }
    }

    #[test]
    fn node_lists_of_iron_and_of_humble_decode_alike() {
        for (payload, layout) in both(&list()) {
            let (info, of) = decode_nodes(&payload).unwrap();
            assert_eq!((info.participant, of), (GuidPrefix([7; 12]), layout));
            assert_eq!(info.nodes.len(), 2);
            assert_eq!(info.nodes[0].name, "talker");
            assert_eq!(info.nodes[0].readers.len(), 2);
            assert_eq!(info.nodes[0].writers, [Guid::from_bytes([3; 16])]);
            assert_eq!(info.nodes[1].writers.len(), 2);
        }
    }

    /// As rmw_fastrtps of Humble sent it (rtps/tests/vectors/humble-fastdds-chatter.rtps).
    #[test]
    fn a_captured_list_of_humble_is_read_and_written_alike() {
        let gid = |entity: &str| format!("010f7b614753efe100000000{entity}{:016}", 0);
        let hexadecimal = [
            "00010000",
            &gid("000001c1"),
            // One node: "/", "listener".
            "01000000020000002f000000090000006c697374656e657200000000",
            "01000000",
            &gid("00000404"),
            "02000000",
            &gid("00000303"),
            &gid("00000503"),
        ]
        .concat();
        let (digits, _) = hexadecimal.as_bytes().as_chunks::<2>();
        let byte = |two: &[u8; 2]| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap();
        let captured: Bytes = digits.iter().map(byte).collect();
        let (info, layout) = decode_nodes(&captured).unwrap();
        assert_eq!(layout, GidLayout::Bytes24);
        let [node] = &info.nodes[..] else {
            panic!("{} nodes", info.nodes.len());
        };
        assert_eq!((&*node.name, node.readers.len()), ("listener", 1));
        assert_eq!(node.writers.len(), 2);
        let modern = |guid: &Guid| Gid {
            data: guid.to_bytes(),
        };
        let list = ParticipantEntitiesInfo {
            gid: modern(&info.participant.with(EntityId::PARTICIPANT)),
            node_entities_info_seq: vec![NodeEntitiesInfo {
                node_namespace: "/".into(),
                node_name: "listener".into(),
                reader_gid_seq: node.readers.iter().map(modern).collect(),
                writer_gid_seq: node.writers.iter().map(modern).collect(),
            }],
        };
        assert_eq!(both(&list)[1].0, captured);
    }

    /// A participant without nodes, and one node without endpoints: the shortest lists
    /// must be distinguishable.
    #[test]
    fn the_layout_of_the_shortest_lists_is_recognized() {
        let empty = ParticipantEntitiesInfo {
            node_entities_info_seq: Vec::new(),
            ..list()
        };
        let bare = ParticipantEntitiesInfo {
            node_entities_info_seq: vec![NodeEntitiesInfo::default()],
            ..list()
        };
        for list in [empty, bare] {
            for (payload, layout) in both(&list) {
                let (info, of) = decode_nodes(&payload).unwrap();
                assert_eq!(of, layout);
                assert_eq!(info.nodes.len(), list.node_entities_info_seq.len());
            }
        }
    }

    #[test]
    fn a_huge_length_is_refused_without_allocating() {
        let mut payload = to_payload(&list(), Representation::Xcdr1);
        payload[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode_nodes(&payload).is_err());
        for len in 0..payload.len() {
            let _ = decode_nodes(&payload[..len]);
        }
    }

    /// rmw_fastrtps #828 and ros2/ros2 #1690: a count in this message was trusted, and
    /// one packet ended every ROS 2 node that received it. The test sets each length of
    /// the message, in both versions, to each extreme.
    #[test]
    fn no_length_in_a_node_list_is_trusted() {
        for (good, _) in both(&list()) {
            for at in (4..good.len() - 3).step_by(4) {
                for lie in [0, 1, 5, 0x0fff_ffff, 0x1000_0001, 0x8000_0000, u32::MAX] {
                    let mut payload = good.to_vec();
                    payload[at..at + 4].copy_from_slice(&u32::to_le_bytes(lie));
                    let Ok((info, _)) = decode_nodes(&payload) else {
                        continue;
                    };
                    let endpoints = |n: &NodeRecord| n.readers.len() + n.writers.len();
                    let names = |n: &NodeRecord| n.name.len() + n.namespace.len();
                    let bytes: usize = info
                        .nodes
                        .iter()
                        .map(|n| 16 * endpoints(n) + names(n) + 16)
                        .sum();
                    assert!(bytes <= payload.len(), "{bytes} at {at}");
                }
            }
        }
    }
}
