//! Liveliness token: the key expression by which a node or endpoint announces itself
//! (rmw_zenoh_cpp `liveliness_utils.cpp`).
//!
//! A node's token has nine chunks, an endpoint's thirteen. A slash within a chunk is
//! written `%`, which occurs in no ROS name.

use pteros_runtime::names::{
    NameKind, validate_enclave, validate_full, validate_namespace, validate_node,
};
use thiserror::Error;

use crate::session_id::SessionId;

/// The first chunk of every token.
pub const TOKEN_SPACE: &str = "@ros2_lv";
/// Longest token that is parsed, bytes: all names at their limits, doubled.
pub const TOKEN_BYTES_MAX: usize = 4_096;
/// Longest type name that is parsed, bytes, as in DDS.
const TYPE_BYTES_MAX: usize = 255;
/// Longest type hash that is parsed, bytes.
const HASH_BYTES_MAX: usize = 128;

/// Kind of the announced entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    Node,
    Publisher,
    Subscription,
    /// A service server.
    Server,
    /// A service client.
    Client,
}

const KINDS: [(TokenKind, &str); 5] = [
    (TokenKind::Node, "NN"),
    (TokenKind::Publisher, "MP"),
    (TokenKind::Subscription, "MS"),
    (TokenKind::Server, "SS"),
    (TokenKind::Client, "SC"),
];

impl TokenKind {
    /// The chunk for the kind.
    fn text(self) -> &'static str {
        let own = KINDS.iter().find(|(kind, _)| *kind == self);
        own.map_or("", |(_, text)| text)
    }
}

/// A parsed token of a node or endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// ROS_DOMAIN_ID.
    pub domain: u32,
    /// Id of its session.
    pub session: SessionId,
    /// Number of the node within the session.
    pub node_id: u64,
    /// Number of the entity within the session.
    pub entity_id: u64,
    pub kind: TokenKind,
    /// Security enclave, `/` without one.
    pub enclave: String,
    /// Namespace of the node, `/` for the root.
    pub namespace: String,
    /// Name of the node.
    pub node: String,
    /// The further chunks of an endpoint's token.
    pub endpoint: Option<EndpointPart>,
}

/// The four chunks of an endpoint's token after those of its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointPart {
    /// Topic or service name, with a leading slash.
    pub name: String,
    /// The DDS type name.
    pub type_name: String,
    /// The type hash.
    pub hash: String,
    /// QoS text, see [`crate::qos_text`].
    pub qos: String,
}

/// Why a token is refused.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    /// Longer than any token that ROS 2 can make.
    #[error("longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// Wrong number of chunks for its kind.
    #[error("wrong number of chunks")]
    Chunks,
    /// Wrong first chunk.
    #[error("not a token of ROS 2")]
    Space,
    /// A numeric chunk is not a number.
    #[error("malformed number")]
    Number,
    /// Unknown kind.
    #[error("unknown kind")]
    Kind,
    /// A name that ROS 2 does not allow.
    #[error("invalid name")]
    Name,
}

pteros_msg::debug_as_display!(TokenError);

impl Token {
    /// Key expression of all tokens of a domain.
    pub fn all_of(domain: u32) -> String {
        format!("{TOKEN_SPACE}/{domain}/**")
    }

    /// Key expression of the node tokens that this session may declare.
    pub fn nodes_of(domain: u32, session: SessionId, enclave: &str) -> String {
        let kind = TokenKind::Node.text();
        let enclave = mangled(enclave);
        format!("{TOKEN_SPACE}/{domain}/{session}/*/*/{kind}/{enclave}/*/*")
    }

    /// Encodes the key expression.
    pub fn to_key(&self) -> String {
        let node = format!(
            "{TOKEN_SPACE}/{}/{}/{}/{}/{}/{}/{}/{}",
            self.domain,
            self.session,
            self.node_id,
            self.entity_id,
            self.kind.text(),
            mangled(&self.enclave),
            mangled(&self.namespace),
            mangled(&self.node),
        );
        let Some(endpoint) = &self.endpoint else {
            return node;
        };
        format!(
            "{node}/{}/{}/{}/{}",
            mangled(&endpoint.name),
            mangled(&endpoint.type_name),
            mangled(&endpoint.hash),
            endpoint.qos,
        )
    }

    /// Parses a key expression.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn parse(key: &str) -> Result<Self, TokenError> {
        if key.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let chunks: Vec<&str> = key.split('/').collect();
        let (
            [
                space,
                domain,
                session,
                node_id,
                entity_id,
                kind,
                enclave,
                namespace,
                node,
            ],
            rest,
        ) = chunks.split_first_chunk::<9>().ok_or(TokenError::Chunks)?;
        if *space != TOKEN_SPACE {
            return Err(TokenError::Space);
        }
        let kind = KINDS.iter().find(|(_, text)| text == kind);
        let (kind, _) = kind.ok_or(TokenError::Kind)?;
        let endpoint = match (kind, rest) {
            (TokenKind::Node, []) => None,
            (TokenKind::Node, _) => return Err(TokenError::Chunks),
            (_, [name, type_name, hash, qos]) => {
                Some(EndpointPart::parse(name, type_name, hash, qos)?)
            }
            _ => return Err(TokenError::Chunks),
        };
        let enclave = unmangled(enclave);
        let namespace = unmangled(namespace);
        let node = unmangled(node);
        let names = validate_enclave(&enclave)
            .and_then(|()| validate_namespace(&namespace))
            .and_then(|()| validate_node(&node));
        names.map_err(|_| TokenError::Name)?;
        Ok(Self {
            domain: number(domain)?.try_into().map_err(|_| TokenError::Number)?,
            session: session.parse().map_err(|()| TokenError::Number)?,
            node_id: number(node_id)?,
            entity_id: number(entity_id)?,
            kind: *kind,
            enclave,
            namespace,
            node,
            endpoint,
        })
    }
}

impl EndpointPart {
    fn parse(name: &str, type_name: &str, hash: &str, qos: &str) -> Result<Self, TokenError> {
        let part = Self {
            name: unmangled(name),
            type_name: unmangled(type_name),
            hash: unmangled(hash),
            qos: qos.into(),
        };
        let is_word = |text: &str, max: usize| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_:/".contains(&byte);
            !text.is_empty() && text.len() <= max && text.bytes().all(is_allowed)
        };
        let are_valid = validate_full(NameKind::Topic, &part.name).is_ok()
            && is_word(&part.type_name, TYPE_BYTES_MAX)
            && is_word(&part.hash, HASH_BYTES_MAX);
        are_valid.then_some(part).ok_or(TokenError::Name)
    }
}

fn mangled(text: &str) -> String {
    if text.is_empty() {
        return "%".into();
    }
    text.replace('/', "%")
}

fn unmangled(chunk: &str) -> String {
    chunk.replace('%', "/")
}

fn number(chunk: &str) -> Result<u64, TokenError> {
    let is_number = chunk.bytes().all(|byte| byte.is_ascii_digit());
    let number = chunk.parse().ok().filter(|_| is_number);
    number.ok_or(TokenError::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of rmw_zenoh's design.md.
    const NODE: &str = "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener";
    const SUBSCRIPTION: &str = "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MS/%/%robot%arm/listener/%chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18/::,10:,:,:,,";

    #[test]
    fn tokens_of_nodes_and_endpoints_are_read_and_written() {
        let node = Token::parse(NODE).unwrap();
        assert_eq!(node.kind, TokenKind::Node);
        assert_eq!(
            (node.namespace.as_str(), node.node.as_str()),
            ("/", "listener")
        );
        assert_eq!(node.enclave, "/");
        assert_eq!(node.to_key(), NODE);
        let subscription = Token::parse(SUBSCRIPTION).unwrap();
        assert_eq!(subscription.kind, TokenKind::Subscription);
        assert_eq!((subscription.node_id, subscription.entity_id), (0, 10));
        assert_eq!(subscription.namespace, "/robot/arm");
        let endpoint = subscription.endpoint.as_ref().unwrap();
        assert_eq!(endpoint.name, "/chatter");
        assert_eq!(endpoint.qos, "::,10:,:,:,,");
        assert_eq!(subscription.to_key(), SUBSCRIPTION);
    }

    #[test]
    fn malformed_tokens_are_refused() {
        let at = |chunk: usize, value: &str| {
            let mut chunks: Vec<&str> = SUBSCRIPTION.split('/').collect();
            chunks[chunk] = value;
            Token::parse(&chunks.join("/")).unwrap_err()
        };
        assert_eq!(at(0, "@ros2"), TokenError::Space);
        assert_eq!(at(1, "-1"), TokenError::Number);
        assert_eq!(at(1, "4294967296"), TokenError::Number);
        assert_eq!(at(2, ""), TokenError::Number);
        assert_eq!(at(2, "xyz"), TokenError::Number);
        assert_eq!(at(2, &"f".repeat(33)), TokenError::Number);
        assert_eq!(at(3, "99999999999999999999999"), TokenError::Number);
        assert_eq!(at(5, "NN"), TokenError::Chunks);
        assert_eq!(at(5, "XX"), TokenError::Kind);
        assert_eq!(at(7, ""), TokenError::Name);
        assert_eq!(at(8, "a b"), TokenError::Name);
        assert_eq!(at(9, "chatter"), TokenError::Name);
        assert_eq!(at(9, &format!("%{}", "a".repeat(300))), TokenError::Name);
        for name in [
            "%x$*", "%**", "%a%%b", "%a#", "%a?b", "%@adv", "%\u{e9}", "%a%", "%",
        ] {
            assert_eq!(at(9, name), TokenError::Name, "{name}");
        }
        for ty in ["a::*_", "**", "a$*", "a b", "a?b", "@a", "\u{e9}"] {
            assert_eq!(at(10, ty), TokenError::Name, "{ty}");
            assert_eq!(at(11, ty), TokenError::Name, "{ty}");
        }
        assert_eq!(at(10, ""), TokenError::Name);
        assert_eq!(at(11, &"a".repeat(129)), TokenError::Name);
        assert_eq!(Token::parse(&"a/".repeat(3_000)), Err(TokenError::TooLong));
        for length in 0..SUBSCRIPTION.len() {
            // Truncated within the last chunk it is still a token, with another QoS.
            let _ = Token::parse(&SUBSCRIPTION[..length]);
        }
        let twelve = SUBSCRIPTION.rsplit_once('/').unwrap().0;
        assert_eq!(Token::parse(twelve), Err(TokenError::Chunks));
        let fourteen = format!("{SUBSCRIPTION}/x");
        assert_eq!(Token::parse(&fourteen), Err(TokenError::Chunks));
    }
}
