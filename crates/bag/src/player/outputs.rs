//! Outputs of a player: publishers of recorded topics, or clients that send recorded
//! requests.

use pteros::interfaces::service_msgs::msg::ServiceEventInfo;
use pteros::msg::cdr::Representation;
use pteros::msg::dynamic::{DynamicMessage, DynamicService, DynamicType, Value};
use pteros::qos::{HistoryPolicy, QosProfile};
use pteros::service::{CallError, ResponseFuture};
use pteros::{Client, ClientOptions, NamedQosExt, Node, Publisher, PublisherOptions};

use super::options::{PlayerOptions, RequestSource};
use crate::definitions::message_type;
use crate::error::BagError;
use crate::reader::BagReader;
use crate::topic::BagTopic;

/// Suffix of service event topics, and of their types.
const EVENT_SUFFIX: &str = "/_service_event";
const EVENT_TYPE_SUFFIX: &str = "_Event";

/// Output of a recorded topic.
pub(super) enum Output {
    None,
    Topic(Publisher<DynamicMessage>),
    Requests(RequestReplay),
}

impl Output {
    pub(super) fn publisher(&self) -> Option<&Publisher<DynamicMessage>> {
        match self {
            Self::Topic(publisher) => Some(publisher),
            Self::None | Self::Requests(_) => None,
        }
    }
}

/// Outputs by topic of the bag, and the reasons for omitted topics.
pub(super) struct Outputs {
    pub by_topic: Vec<Output>,
    /// Recorded topic names.
    pub names: Vec<String>,
    pub skipped: Vec<String>,
}

impl Outputs {
    /// Creates a publisher or a client per topic.
    pub(super) fn create(
        node: &Node,
        bag: &BagReader,
        options: &PlayerOptions,
    ) -> Result<Self, BagError> {
        let mut outputs = Self {
            by_topic: Vec::new(),
            names: bag.topics().iter().map(|t| t.topic.name.clone()).collect(),
            skipped: Vec::new(),
        };
        for recorded in bag.topics() {
            let topic = &recorded.topic;
            // The player's own clock replaces it.
            let is_clock = topic.name == "/clock" && options.clock.is_on();
            let is_chosen = options.filter.chooses(&topic.name, &topic.type_name);
            let output = if is_clock || !is_chosen {
                Output::None
            } else {
                create_output(node, topic, options).unwrap_or_else(|problem| {
                    let name = &topic.name;
                    outputs
                        .skipped
                        .push(format!("topic {name} is not played: {problem}"));
                    Output::None
                })
            };
            outputs.by_topic.push(output);
        }
        let is_none = |output: &Output| matches!(output, Output::None);
        if outputs.by_topic.iter().all(is_none) {
            let names = bag.topics().iter().map(|t| t.topic.name.as_str());
            let names: Vec<&str> = names.collect();
            let first = outputs.skipped.first().cloned();
            return Err(BagError::NotABag {
                path: bag.path().to_owned(),
                problem: first.unwrap_or_else(|| match names.as_slice() {
                    [] => "nothing to play: the bag has no topics".into(),
                    names => format!("no topic to play; the bag has: {}", names.join(", ")),
                }),
            });
        }
        Ok(outputs)
    }

    /// Indexes of the played topics.
    pub(super) fn played(&self) -> Vec<usize> {
        let all = self.by_topic.iter().enumerate();
        all.filter(|(_, output)| !matches!(output, Output::None))
            .map(|(at, _)| at)
            .collect()
    }

    pub(super) fn publishers(&self) -> impl Iterator<Item = &Publisher<DynamicMessage>> {
        self.by_topic.iter().filter_map(Output::publisher)
    }
}

/// Creates the publisher or client of a topic.
///
/// # Errors
/// Type, name or QoS cannot be used. The topic is omitted.
fn create_output(node: &Node, topic: &BagTopic, options: &PlayerOptions) -> Result<Output, String> {
    let ty = message_type(topic, &options.library)?;
    let name = options.remap.name_of(&topic.name);
    let name = name.map_err(|problem| problem.to_string())?;
    if let (Some(source), Some(service)) = (options.requests, name.strip_suffix(EVENT_SUFFIX)) {
        let service_type = topic.type_name.strip_suffix(EVENT_TYPE_SUFFIX);
        let service_type = service_type
            .ok_or_else(|| format!("{} is no type of service events", topic.type_name))?;
        let support = DynamicService::new(&options.library, service_type);
        let support = support.map_err(|error| error.to_string())?;
        let client = node.create_client(ClientOptions::of_type(&support, service));
        return Ok(Output::Requests(RequestReplay {
            client: client.map_err(|error| error.to_string())?,
            event: ty,
            request: support.request().clone(),
            wanted: match source {
                RequestSource::Service => ServiceEventInfo::REQUEST_RECEIVED,
                RequestSource::Client => ServiceEventInfo::REQUEST_SENT,
            },
        }));
    }
    let qos = match options.qos_overrides.get(&topic.name) {
        Some(profile) => profile.clone(),
        None => offered(topic),
    };
    let publisher = PublisherOptions::<DynamicMessage>::of_type(&ty, name.as_str().qos(qos));
    let publisher = node.create_publisher(publisher);
    Ok(Output::Topic(publisher.map_err(|error| error.to_string())?))
}

/// The recorded QoS if all publishers agreed, apart from history; else the default. The
/// player's publisher represents all of them, so it has their summed transient-local
/// depth.
fn offered(topic: &BagTopic) -> QosProfile {
    let mut profile = agreed(&topic.offered_qos);
    if topic.is_transient_local() {
        profile = profile.transient_local();
        if let HistoryPolicy::KeepLast(depth) = profile.history {
            let depth = depth.max(topic.transient_local_depth_of_all());
            profile.history = HistoryPolicy::KeepLast(depth);
        }
    }
    profile
}

fn agreed(profiles: &[QosProfile]) -> QosProfile {
    let Some(first) = profiles.first() else {
        return QosProfile::default();
    };
    let alike = |profile: &QosProfile| QosProfile {
        history: first.history,
        ..profile.clone()
    };
    if profiles.iter().any(|profile| alike(profile) != *first) {
        return QosProfile::default();
    }
    let mut profile = first.clone();
    if profile.history == HistoryPolicy::SystemDefault {
        profile.history = HistoryPolicy::KeepLast(10);
    }
    // Messages of a bag are older than any lifespan, and pauses must not miss deadlines.
    profile.lifespan = None;
    profile
}

/// Sends the requests of recorded service events.
pub(super) struct RequestReplay {
    pub client: Client<DynamicService>,
    event: DynamicType,
    request: DynamicType,
    /// Kind of the events whose requests are sent.
    wanted: u8,
}

/// Outcome of a recorded event.
pub(super) enum Replayed {
    Sent(ResponseFuture<DynamicMessage>),
    /// An event of another kind, or without content.
    Nothing,
}

impl RequestReplay {
    /// Sends the request of an event, if it has one.
    ///
    /// # Errors
    /// The event cannot be decoded, or there is no server.
    pub(super) fn send(&self, payload: &[u8]) -> Result<Replayed, String> {
        let event = DynamicMessage::from_payload(&self.event, payload);
        let event = event.map_err(|error| error.to_string())?;
        let kind = event.get("info.event_type").ok();
        let kind = kind.and_then(|value| value.as_integer());
        let Some(Value::Messages(requests)) = event.field("request") else {
            return Ok(Replayed::Nothing);
        };
        let (true, Some(request)) = (kind == Some(self.wanted.into()), requests.first()) else {
            return Ok(Replayed::Nothing);
        };
        // The client's type is equal, but another object.
        let payload = request.to_payload(Representation::default());
        let request = DynamicMessage::from_payload(&self.request, &payload);
        let request = request.map_err(|error| error.to_string())?;
        let sent = self.client.call_async(&request);
        sent.map(Replayed::Sent)
            .map_err(|error: CallError| error.to_string())
    }
}
