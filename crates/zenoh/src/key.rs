//! Key expressions: mapping between ROS names, Zenoh keys, and the runtime's DDS names.
//!
//! A key is `<domain>/<name>/<type>/<hash>` (rmw_zenoh design.md). A service has one
//! key, where the runtime has two topics: requests and replies.

use pteros_runtime::names::{DdsTopic, from_dds_topic};
use pteros_runtime::rtps::discovery::data::EndpointData;

/// Hash chunk of a type without a known hash.
pub const HASH_UNKNOWN: &str = "TypeHashNotSupported";

/// Suffix of the service that responds with the result of an action's goal.
pub const RESULT_SERVICE_END: &str = "/_action/get_result";

const REQUEST: &str = "Request_";
const RESPONSE: &str = "Response_";

/// Role of a runtime endpoint on Zenoh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    Publisher,
    Subscription,
    /// Service client: its writer of requests.
    Client,
    /// Service server: its reader of requests.
    Server,
    /// Writer or reader of replies. Zenoh has no entity for it beside the client or
    /// server.
    Replies,
}

/// The ROS name, type and role of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub role: Role,
    /// Topic or service name, with a leading slash.
    pub name: String,
    /// DDS type name; for a service, that of the service.
    pub type_name: String,
}

impl Place {
    /// The place of a local endpoint. `None` if its topic name is not a ROS name.
    pub fn of(endpoint: &EndpointData) -> Option<Self> {
        let type_name = endpoint.type_name.as_str();
        let is_writer = endpoint.is_writer();
        let (role, name, type_name) = match from_dds_topic(&endpoint.topic) {
            DdsTopic::Topic(name) if is_writer => (Role::Publisher, name, type_name),
            DdsTopic::Topic(name) => (Role::Subscription, name, type_name),
            DdsTopic::ServiceRequest(name) => {
                let role = if is_writer {
                    Role::Client
                } else {
                    Role::Server
                };
                (role, name, type_name.strip_suffix(REQUEST)?)
            }
            DdsTopic::ServiceReply(name) => {
                (Role::Replies, name, type_name.strip_suffix(RESPONSE)?)
            }
            DdsTopic::NonRos(_) => return None,
        };
        Some(Self {
            role,
            name,
            type_name: type_name.into(),
        })
    }

    /// The key in a domain.
    pub fn key(&self, domain: u32, hash: &str) -> String {
        key_of(domain, &self.name, &self.type_name, hash)
    }
}

/// The key of a topic or service.
pub fn key_of(domain: u32, name: &str, type_name: &str, hash: &str) -> String {
    let name = name.trim_matches('/');
    format!("{domain}/{name}/{type_name}/{hash}")
}

/// The DDS topic and type of a topic.
pub fn topic_names(name: &str, type_name: &str) -> (String, String) {
    (format!("rt{name}"), type_name.into())
}

/// The DDS topic and type of a service's requests.
pub fn request_names(name: &str, type_name: &str) -> (String, String) {
    (format!("rq{name}Request"), format!("{type_name}{REQUEST}"))
}

/// The DDS topic and type of a service's replies.
pub fn reply_names(name: &str, type_name: &str) -> (String, String) {
    (format!("rr{name}Reply"), format!("{type_name}{RESPONSE}"))
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;

    use super::*;

    fn place(kind: u8, topic: &str, type_name: &str) -> Option<Place> {
        let guid = GuidPrefix([1; 12]).with(EntityId::new([0, 0, 1], kind));
        let data = EndpointData::new(guid, topic, type_name, EndpointQos::default());
        Place::of(&data)
    }

    #[test]
    fn endpoints_have_the_keys_of_rmw_zenoh() {
        let (writer, reader) = (EntityId::KIND_WRITER_NO_KEY, EntityId::KIND_READER_NO_KEY);
        let chatter = place(writer, "rt/robot/chatter", "std_msgs::msg::dds_::String_").unwrap();
        assert_eq!(chatter.role, Role::Publisher);
        assert_eq!(
            chatter.key(7, "RIHS01_ab"),
            "7/robot/chatter/std_msgs::msg::dds_::String_/RIHS01_ab"
        );
        let request = "example_interfaces::srv::dds_::AddTwoInts_Request_";
        let server = place(reader, "rq/addRequest", request).unwrap();
        assert_eq!(server.role, Role::Server);
        assert_eq!(
            server.key(0, HASH_UNKNOWN),
            "0/add/example_interfaces::srv::dds_::AddTwoInts_/TypeHashNotSupported"
        );
        let client = place(writer, "rq/addRequest", request).unwrap();
        assert_eq!(client.role, Role::Client);
        let response = "example_interfaces::srv::dds_::AddTwoInts_Response_";
        let replies = place(reader, "rr/addReply", response).unwrap();
        assert_eq!(replies.role, Role::Replies);
        assert_eq!(replies.type_name, server.type_name);
        assert_eq!(place(writer, "ros_discovery_info", "x"), None);
        assert_eq!(place(writer, "rq/addRequest", "odd"), None);
        let service = &server.type_name;
        assert_eq!(
            request_names("/add", service),
            ("rq/addRequest".into(), request.into())
        );
        assert_eq!(
            reply_names("/add", service),
            ("rr/addReply".into(), response.into())
        );
    }
}
