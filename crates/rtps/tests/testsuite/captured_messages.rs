//! Content of the captured samples after decoding: the node names of the graph,
//! messages, requests, replies and results.

use crate::vectors;

use std::collections::{BTreeMap, BTreeSet};

use pteros_interfaces::action_msgs::msg::GoalStatusArray;
use pteros_interfaces::example_interfaces::action::{
    FibonacciFeedbackMessage, FibonacciGetResultRequest, FibonacciGetResultResponse,
    FibonacciResult, FibonacciSendGoalRequest, FibonacciSendGoalResponse,
};
use pteros_interfaces::example_interfaces::srv::{AddTwoIntsRequest, AddTwoIntsResponse};
use pteros_interfaces::nav_msgs::msg::OccupancyGrid;
use pteros_interfaces::rcl_interfaces::msg::ParameterEvent;
use pteros_interfaces::rcl_interfaces::srv::{SetParametersRequest, SetParametersResponse};
use pteros_interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_interfaces::std_msgs::msg::String as Text;
use pteros_msg::{Decode, Message, Representation, from_payload, to_payload};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::wire::{Cursor, Endianness};
use pteros_rtps::wire::{Header, Submessage, SubmessageHeader};
use vectors::{SCENARIOS, load};

/// One sample of a user topic.
struct Sample {
    writer: Guid,
    related: Option<SampleIdentity>,
    payload: Vec<u8>,
}

impl Sample {
    fn decode<M: Decode>(&self) -> M {
        from_payload(&self.payload).unwrap()
    }

    /// Cyclone's client id and sequence number before a request or a reply,
    /// and what follows them.
    fn decode_cyclone<M: Decode>(&self) -> ([u8; 8], i64, M) {
        let client = self.payload[4..12].try_into().unwrap();
        let sequence = i64::from_le_bytes(self.payload[12..20].try_into().unwrap());
        let rest = [&self.payload[..4], &self.payload[20..]].concat();
        (client, sequence, from_payload(&rest).unwrap())
    }
}

/// All endpoints by GUID, and the samples of each topic in their order.
struct Scenario {
    endpoints: BTreeMap<Guid, EndpointData>,
    samples: BTreeMap<String, BTreeMap<(Guid, SequenceNumber), Sample>>,
}

impl Scenario {
    fn load(scenario: &str) -> Self {
        let datagrams = load(scenario);
        let mut endpoints = BTreeMap::new();
        let mut found = Vec::new();
        for captured in &datagrams {
            // Parse as the participant that the datagram addresses.
            let header = Header::parse(&captured.message).unwrap();
            let own = destination(&captured.message).unwrap_or_default();
            for (source, submessage) in MessageReader::new(&captured.message, own).unwrap() {
                assert_eq!(source.prefix, header.prefix);
                let Submessage::Data(data) = submessage else {
                    continue;
                };
                let writer = source.prefix.with(data.writer);
                match data.writer {
                    EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SEDP_SUBSCRIPTIONS_WRITER => {
                        if let Ok(endpoint) = EndpointData::parse(data.payload) {
                            endpoints.insert(endpoint.guid, endpoint);
                        }
                    }
                    id if id.is_builtin() || data.payload.is_empty() => {}
                    _ => found.push((
                        data.sequence,
                        Sample {
                            writer,
                            related: data.inline_qos.related_sample_identity(),
                            payload: data.payload.to_vec(),
                        },
                    )),
                }
            }
        }
        let mut samples: BTreeMap<String, BTreeMap<_, _>> = BTreeMap::new();
        for (sequence, sample) in found {
            let topic = endpoints[&sample.writer].topic.clone();
            let of_topic = samples.entry(topic).or_default();
            of_topic.insert((sample.writer, sequence), sample);
        }
        Self { endpoints, samples }
    }

    fn of(&self, topic: &str) -> Vec<&Sample> {
        self.samples[topic].values().collect()
    }

    fn decode<M: Decode>(&self, topic: &str) -> Vec<M> {
        self.of(topic).into_iter().map(Sample::decode).collect()
    }

    /// Every node that some participant announced.
    fn nodes(&self) -> BTreeSet<String> {
        let mut nodes = BTreeSet::new();
        for info in self.decode::<ParticipantEntitiesInfo>("ros_discovery_info") {
            for node in info.node_entities_info_seq {
                let namespace = node.node_namespace.trim_end_matches('/');
                // A short-lived command is named after its process.
                let name = node
                    .node_name
                    .trim_end_matches(|c: char| c.is_ascii_digit());
                let number = if name == node.node_name { "" } else { "N" };
                nodes.insert(format!("{namespace}/{name}{number}"));
                for gid in node.reader_gid_seq.iter().chain(&node.writer_gid_seq) {
                    let guid = Guid::from_bytes(gid.data);
                    assert!(self.endpoints.contains_key(&guid), "{guid} was announced");
                }
            }
        }
        nodes
    }
}

/// The first INFO_DST of a message.
fn destination(message: &[u8]) -> Option<pteros_rtps::id::GuidPrefix> {
    let mut at = Cursor::new(&message[Header::SIZE_BYTES..], Endianness::Little);
    while let Ok(header) = SubmessageHeader::parse(&mut at) {
        let body = header.body(&mut at).unwrap();
        if let Ok(Submessage::InfoDestination(prefix)) = Submessage::parse(header, body) {
            return Some(prefix);
        }
    }
    None
}

#[test]
fn every_node_is_found_by_name() {
    let expected: [(&str, &[&str]); 5] = [
        ("chatter", &["/listener", "/talker"]),
        ("service", &["/add_two_ints_client", "/add_two_ints_server"]),
        (
            "action",
            &[
                "/_ros2cli_send_goal_action_tutorials_interfaces_action_Fibonacci",
                "/fibonacci_action_server",
            ],
        ),
        ("param", &["/_ros2cli_N", "/talker"]),
        ("latched", &["/_ros2cli_N"]),
    ];
    for stack in ["cyclone", "fastdds"] {
        for (scenario, nodes) in expected {
            let scenario = format!("{stack}-{scenario}");
            let found = Scenario::load(&scenario).nodes();
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            assert_eq!(found, nodes, "{scenario}");
        }
    }
}

#[test]
fn the_talker_counts() {
    for scenario in ["cyclone-chatter", "fastdds-chatter"] {
        let summary: Vec<String> = Scenario::load(scenario)
            .decode::<Text>("rt/chatter")
            .into_iter()
            .map(|text| text.data)
            .collect();
        let wanted: Vec<String> = (0..8)
            .map(|count| format!("Hello World: {count}"))
            .collect();
        assert_eq!(summary, wanted, "{scenario}");
    }
}

#[test]
fn a_reply_is_related_to_its_request_by_inline_qos_in_fast_dds() {
    let scenario = Scenario::load("fastdds-service");
    let [request] = scenario.of("rq/add_two_intsRequest")[..] else {
        panic!("one request");
    };
    let [reply] = scenario.of("rr/add_two_intsReply")[..] else {
        panic!("one reply");
    };
    let asked: AddTwoIntsRequest = request.decode();
    let answered: AddTwoIntsResponse = reply.decode();
    assert_eq!((asked.a, asked.b, answered.sum), (2, 3, 5));
    let answered = reply.related.unwrap();
    assert_eq!(
        scenario.endpoints[&answered.writer].topic,
        "rr/add_two_intsReply"
    );
    assert_eq!(answered.writer.prefix, request.writer.prefix);
    assert_eq!(answered.sequence, SequenceNumber(1));
}

#[test]
fn a_reply_is_related_to_its_request_by_payload_in_cyclone() {
    let scenario = Scenario::load("cyclone-service");
    let [request] = scenario.of("rq/add_two_intsRequest")[..] else {
        panic!("one request");
    };
    let [reply] = scenario.of("rr/add_two_intsReply")[..] else {
        panic!("one reply");
    };
    let (client, sequence, asked) = request.decode_cyclone::<AddTwoIntsRequest>();
    let (to, answers, answered) = reply.decode_cyclone::<AddTwoIntsResponse>();
    assert_eq!((asked.a, asked.b, answered.sum), (2, 3, 5));
    assert_eq!((client, sequence), (to, answers));
    assert!(request.related.is_none() && reply.related.is_none());
}

#[test]
fn an_action_gives_feedback_and_a_result() {
    let wanted = [0, 1, 1, 2, 3, 5];
    for scenario in ["cyclone-action", "fastdds-action"] {
        let found = Scenario::load(scenario);
        let feedback = found.decode::<FibonacciFeedbackMessage>("rt/fibonacci/_action/feedback");
        assert_eq!(feedback.len(), 4, "{scenario}");
        for (count, message) in (3..).zip(feedback) {
            assert_eq!(message.feedback.sequence, wanted[..count], "{scenario}");
        }
        let [reply] = found.of("rr/fibonacci/_action/get_resultReply")[..] else {
            panic!("{scenario}: one result");
        };
        // Status, padding, and the result, which ends the reply.
        let result = reply.payload.len() - 4 - 4 * wanted.len();
        let result = [&reply.payload[..4], &reply.payload[result..]].concat();
        let result: FibonacciResult = from_payload(&result).unwrap();
        assert_eq!(result.sequence, wanted, "{scenario}");
    }
}

#[test]
fn the_late_subscriber_gets_the_map() {
    for scenario in ["cyclone-latched", "fastdds-latched"] {
        let maps = Scenario::load(scenario).decode::<OccupancyGrid>("rt/map");
        assert!(!maps.is_empty(), "{scenario}");
        for map in maps {
            // `ros2 topic pub` got a size and no cells.
            assert_eq!((map.info.width, map.info.height), (100, 30), "{scenario}");
            assert!(map.data.is_empty(), "{scenario}");
            assert_eq!(map.header.frame_id, "map", "{scenario}");
        }
    }
}

/// Whether our message is, byte by byte, what they sent. Padding for alignment may
/// differ, and Fast DDS leaves in gaps between fields what was in its buffer: ours
/// are zero.
#[track_caller]
fn is_written_alike<M: Decode + Message>(payload: &[u8]) {
    let message: M = from_payload(payload).unwrap();
    let ours = to_payload(&message, Representation::Xcdr1);
    assert_eq!(from_payload::<M>(&ours).as_ref(), Ok(&message));
    let padding = usize::from(ours[3] & 3);
    let (ours, theirs) = (&ours[4..ours.len() - padding], &payload[4..]);
    let (theirs, rest) = theirs.split_at(ours.len());
    assert!(rest.len() < 4, "{} more bytes", rest.len());
    let gaps = ours.iter().zip(theirs).filter(|(our, their)| our != their);
    let gaps: Vec<u8> = gaps.map(|(our, _)| *our).collect();
    assert!(
        gaps.len() < 8 && gaps.iter().all(|our| *our == 0),
        "{ours:02x?}\n{theirs:02x?}"
    );
}

/// The message that is sent on a topic of the scenarios, written by us.
fn write_again(topic: &str, payload: &[u8]) {
    let check: fn(&[u8]) = match topic {
        "ros_discovery_info" => is_written_alike::<ParticipantEntitiesInfo>,
        "rt/chatter" => is_written_alike::<Text>,
        "rt/map" => is_written_alike::<OccupancyGrid>,
        "rt/parameter_events" => is_written_alike::<ParameterEvent>,
        "rq/add_two_intsRequest" => is_written_alike::<AddTwoIntsRequest>,
        "rr/add_two_intsReply" => is_written_alike::<AddTwoIntsResponse>,
        "rq/talker/set_parametersRequest" => is_written_alike::<SetParametersRequest>,
        "rr/talker/set_parametersReply" => is_written_alike::<SetParametersResponse>,
        "rt/fibonacci/_action/feedback" => is_written_alike::<FibonacciFeedbackMessage>,
        "rt/fibonacci/_action/status" => is_written_alike::<GoalStatusArray>,
        "rq/fibonacci/_action/send_goalRequest" => is_written_alike::<FibonacciSendGoalRequest>,
        "rr/fibonacci/_action/send_goalReply" => is_written_alike::<FibonacciSendGoalResponse>,
        "rq/fibonacci/_action/get_resultRequest" => is_written_alike::<FibonacciGetResultRequest>,
        "rr/fibonacci/_action/get_resultReply" => is_written_alike::<FibonacciGetResultResponse>,
        _ => panic!("{topic}: of which type?"),
    };
    check(payload);
}

#[test]
fn we_write_every_message_as_ros_2_did() {
    let mut topics = BTreeMap::new();
    for scenario in SCENARIOS.iter().filter(|name| !name.contains("secure")) {
        for (topic, samples) in Scenario::load(scenario).samples {
            if scenario.starts_with("humble") && topic == "ros_discovery_info" {
                // Another layout under the same name: `runtime/node_list.rs`.
                continue;
            }
            let headed =
                scenario.contains("cyclone") && topic.starts_with('r') && !topic.starts_with("rt/");
            let headed = headed && topic != "ros_discovery_info";
            *topics.entry(topic.clone()).or_insert(0) += samples.len();
            for sample in samples.values() {
                let payload = if headed {
                    [&sample.payload[..4], &sample.payload[20..]].concat()
                } else {
                    sample.payload.clone()
                };
                write_again(&topic, &payload);
            }
        }
    }
    // Goals, results, parameters and calls once by each stack, and events, status, feedback.
    assert_eq!(topics.len(), 14, "{topics:?}");
    assert_eq!(topics["rr/fibonacci/_action/get_resultReply"], 2);
    assert_eq!(topics["rt/parameter_events"], 8);
    assert_eq!(topics["rt/fibonacci/_action/status"], 4);
}
