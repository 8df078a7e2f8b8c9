//! Names of topics, services, nodes and namespaces: validation, expansion of `~`
//! and `{node}`, and mapping to DDS topics.
//!
//! Rules: rmw `validate_full_topic_name.c`, `validate_node_name.c`,
//! `validate_namespace.c`; rcl `validate_topic_name.c`, `expand_topic_name.c`;
//! design article 140 (topic and service name mapping).

use alloc::format;
use alloc::string::String;
use core::fmt;

/// The longest fully qualified topic or service name: DDS's 255 bytes less
/// the longest prefix and suffix that ROS 2 adds.
pub const TOPIC_BYTES_MAX: usize = 247;
/// The longest namespace: a topic's, less room for `/` and a name.
pub const NAMESPACE_BYTES_MAX: usize = 245;
/// The longest node name.
pub const NODE_BYTES_MAX: usize = 255;

/// The longest topic name in DDS (RTPS 2.5 §9.6.2.2.1, `string<256>`).
pub const DDS_TOPIC_BYTES_MAX: usize = 255;

/// The kind of entity that a name refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum NameKind {
    /// A topic of messages, as in `/arm/joint_states`.
    Topic,
    /// A service, as in `/arm/reset`.
    Service,
    /// A node, without its namespace.
    Node,
    /// Absolute, `/arm`; `/` is the root.
    Namespace,
    /// A security enclave.
    Enclave,
    /// A DDS topic name without ROS 2's conventions.
    DdsTopic,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Topic => "topic",
            Self::Service => "service",
            Self::Node => "node",
            Self::Namespace => "namespace",
            Self::Enclave => "enclave",
            Self::DdsTopic => "DDS topic",
        })
    }
}

/// The violated naming rule, with its cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NameRule {
    /// It has no character.
    Empty,
    /// A character outside the allowed set.
    Character(char),
    /// A part between slashes starts with a digit.
    LeadingDigit(char),
    /// Two slashes in a row.
    DoubleSlash,
    /// A slash at the end.
    TrailingSlash,
    /// A fully qualified name without its leading slash.
    NotAbsolute,
    /// More bytes than allowed.
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
    /// `~` elsewhere than at the start, or not followed by `/`.
    Tilde,
    /// `{` without `}`, `}` without `{`, or braces inside braces.
    Braces,
    /// Unknown substitution in braces.
    UnknownSubstitution(String),
}

/// An invalid name: the name, the position, the rule and the remedy.
#[derive(Clone, PartialEq, Eq)]
pub struct NameError {
    /// The kind of entity that it should refer to.
    pub kind: NameKind,
    /// The name as given.
    pub name: String,
    /// Byte index of the violation, from 0.
    pub position: usize,
    /// The rule broken.
    pub rule: NameRule,
}

pteros_msg::debug_as_display!(NameError);

impl core::error::Error for NameError {}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            name,
            position,
            rule,
        } = self;
        write!(f, "{kind} name {name:?} ")?;
        match rule {
            NameRule::Empty => write!(f, "is empty: give it at least one character"),
            NameRule::Character(c) => write!(
                f,
                "has {c:?} at position {position}: use only {}",
                allowed_characters(*kind)
            ),
            NameRule::LeadingDigit(c) => write!(
                f,
                "has a part that starts with the digit {c} at position {position}: start it with \
                 a letter or an underscore"
            ),
            NameRule::DoubleSlash => {
                write!(f, "has \"//\" at position {position}: use a single slash")
            }
            NameRule::TrailingSlash => write!(
                f,
                "ends with a slash at position {position}: leave the slash out"
            ),
            NameRule::NotAbsolute => write!(
                f,
                "is not absolute at position {position}: start it with a slash"
            ),
            NameRule::TooLong { bytes_max } => write!(
                f,
                "has {} bytes, from position {position} on more than the {bytes_max} allowed: \
                 shorten it",
                name.len()
            ),
            NameRule::Tilde => write!(
                f,
                "has \"~\" at position {position}: it may only stand first, alone or before a \
                 slash"
            ),
            NameRule::Braces => write!(
                f,
                "has an unpaired or nested brace at position {position}: write {{node}}, {{ns}} \
                 or {{namespace}}"
            ),
            NameRule::UnknownSubstitution(word) => write!(
                f,
                "has the unknown substitution {{{word}}} at position {position}: use {{node}}, \
                 {{ns}} or {{namespace}}"
            ),
        }
    }
}

fn allowed_characters(kind: NameKind) -> &'static str {
    match kind {
        NameKind::Node => "letters, digits and underscores (the namespace is a separate argument)",
        NameKind::Namespace | NameKind::Enclave => "letters, digits, underscores and slashes",
        NameKind::DdsTopic => "visible ASCII characters",
        NameKind::Topic | NameKind::Service => {
            "letters, digits, underscores and slashes, ~ at the start, {node}, {ns} or {namespace}"
        }
    }
}

/// Checks a DDS topic name without prefix: 1 to 255 visible ASCII characters, since
/// stacks differ in all others.
pub fn validate_dds_topic(name: &str) -> Result<(), NameError> {
    let wrong = |position, rule| Err(error(NameKind::DdsTopic, name, position, rule));
    if name.is_empty() {
        return wrong(0, NameRule::Empty);
    }
    if let Some((at, c)) = name.char_indices().find(|(_, c)| !c.is_ascii_graphic()) {
        return wrong(at, NameRule::Character(c));
    }
    if name.len() > DDS_TOPIC_BYTES_MAX {
        let bytes_max = DDS_TOPIC_BYTES_MAX;
        return wrong(bytes_max, NameRule::TooLong { bytes_max });
    }
    Ok(())
}

/// Checks a node name, without namespace.
pub fn validate_node(name: &str) -> Result<(), NameError> {
    let wrong = |position, rule| Err(error(NameKind::Node, name, position, rule));
    if name.is_empty() {
        return wrong(0, NameRule::Empty);
    }
    if let Some((at, c)) = name.char_indices().find(|(_, c)| !is_name_character(*c)) {
        return wrong(at, NameRule::Character(c));
    }
    if let Some(c) = name.chars().next().filter(char::is_ascii_digit) {
        return wrong(0, NameRule::LeadingDigit(c));
    }
    if name.len() > NODE_BYTES_MAX {
        return wrong(
            NODE_BYTES_MAX,
            NameRule::TooLong {
                bytes_max: NODE_BYTES_MAX,
            },
        );
    }
    Ok(())
}

/// Checks a namespace: `/` or an absolute name.
pub fn validate_namespace(namespace: &str) -> Result<(), NameError> {
    if namespace == "/" {
        return Ok(());
    }
    validate_absolute(NameKind::Namespace, namespace, NAMESPACE_BYTES_MAX)
}

/// Checks the path of an enclave, written like a namespace.
pub fn validate_enclave(enclave: &str) -> Result<(), NameError> {
    if enclave == "/" {
        return Ok(());
    }
    validate_absolute(NameKind::Enclave, enclave, NODE_BYTES_MAX)
}

/// Checks a fully qualified topic or service name.
pub fn validate_full(kind: NameKind, name: &str) -> Result<(), NameError> {
    validate_absolute(kind, name, TOPIC_BYTES_MAX)
}

/// Checks a topic or service name as users write it: absolute, relative, with `~`
/// and substitutions.
///
/// Unknown substitutions are left to [`expand`].
pub fn validate_input(kind: NameKind, name: &str) -> Result<(), NameError> {
    let wrong = |position, rule| Err(error(kind, name, position, rule));
    if name.is_empty() {
        return wrong(0, NameRule::Empty);
    }
    let mut open = None;
    let mut previous = '/';
    for (at, c) in name.char_indices() {
        match c {
            '{' if open.is_some() => return wrong(at, NameRule::Braces),
            '{' => open = Some(at),
            '}' if open.is_none() => return wrong(at, NameRule::Braces),
            '}' => open = None,
            '~' if at == 0 && matches!(name.as_bytes().get(1), None | Some(b'/')) => {}
            '~' => return wrong(at, NameRule::Tilde),
            '/' if open.is_some() => return wrong(at, NameRule::Braces),
            '/' if at > 0 && previous == '/' => return wrong(at - 1, NameRule::DoubleSlash),
            '/' => {}
            _ if !is_name_character(c) => return wrong(at, NameRule::Character(c)),
            _ if c.is_ascii_digit() && (previous == '/' || previous == '{') => {
                return wrong(at, NameRule::LeadingDigit(c));
            }
            _ => {}
        }
        previous = c;
    }
    if let Some(at) = open {
        return wrong(at, NameRule::Braces);
    }
    if previous == '/' {
        return wrong(name.len() - 1, NameRule::TrailingSlash);
    }
    Ok(())
}

/// Expands a name that a node uses into its fully qualified form.
///
/// `~` becomes the node's own name. `{node}`, `{ns}` and `{namespace}` are
/// substituted once. A relative name is put into the namespace. Remapping comes
/// after this.
pub fn expand(
    kind: NameKind,
    name: &str,
    node: &str,
    namespace: &str,
) -> Result<String, NameError> {
    validate_input(kind, name)?;
    let mut text = String::with_capacity(name.len() + namespace.len() + node.len() + 2);
    let mut rest = name;
    if let Some(after) = name.strip_prefix('~') {
        text.push_str(&node_path(namespace, node));
        rest = after;
    }
    while let Some((before, braced)) = rest.split_once('{') {
        let (word, after) = braced.split_once('}').unwrap_or((braced, ""));
        text.push_str(before);
        text.push_str(match word {
            "node" => node,
            // The root namespace before a slash would double the slash.
            "ns" | "namespace" if namespace == "/" && after.starts_with('/') => "",
            "ns" | "namespace" => namespace,
            _ => {
                let position = name.len() - braced.len() - 1;
                let rule = NameRule::UnknownSubstitution(word.into());
                return Err(error(kind, name, position, rule));
            }
        });
        rest = after;
    }
    text.push_str(rest);
    let full = join(namespace, &text);
    validate_full(kind, &full)?;
    Ok(full)
}

/// A node's fully qualified name: `/ns/name`, or `/name` in the root.
pub fn node_path(namespace: &str, node: &str) -> String {
    join(namespace, node)
}

/// Makes a namespace absolute, as rclcpp does: `ns` becomes `/ns`, an empty one
/// `/`.
pub fn absolute_namespace(namespace: &str) -> String {
    if namespace.starts_with('/') {
        namespace.into()
    } else {
        format!("/{namespace}")
    }
}

/// Whether tools hide the name by default: a part starts with `_`.
pub fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('_'))
}

/// The ROS 2 meaning of a DDS topic name. Names are fully qualified.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum DdsTopic {
    /// `rt/name`.
    Topic(String),
    /// `rq/nameRequest`: the service's name.
    ServiceRequest(String),
    /// `rr/nameReply`: the service's name.
    ServiceReply(String),
    /// Not a name of ROS 2: the DDS name as it is.
    NonRos(String),
}

/// The DDS topic of a fully qualified ROS topic. `avoid_ros_namespace_conventions`
/// omits the prefix.
pub fn dds_topic(full_name: &str, avoid_ros_namespace_conventions: bool) -> String {
    prefixed("rt", full_name, "", avoid_ros_namespace_conventions)
}

/// The DDS topic of a service's requests.
pub fn dds_request_topic(full_name: &str, avoid_ros_namespace_conventions: bool) -> String {
    prefixed("rq", full_name, "Request", avoid_ros_namespace_conventions)
}

/// The DDS topic of a service's replies.
pub fn dds_reply_topic(full_name: &str, avoid_ros_namespace_conventions: bool) -> String {
    prefixed("rr", full_name, "Reply", avoid_ros_namespace_conventions)
}

/// Parses a DDS topic name. Stacks may use the further prefixes `rp`, `rs` and `ra`
/// of design article 140, but no released one does, so they count as non-ROS names.
pub fn from_dds_topic(dds_name: &str) -> DdsTopic {
    let foreign = || DdsTopic::NonRos(dds_name.into());
    let Some((prefix, rest)) = dds_name.split_at_checked(2) else {
        return foreign();
    };
    if !rest.starts_with('/') {
        return foreign();
    }
    match prefix {
        "rt" => DdsTopic::Topic(rest.into()),
        "rq" => rest
            .strip_suffix("Request")
            .filter(|name| *name != "/")
            .map_or_else(foreign, |name| DdsTopic::ServiceRequest(name.into())),
        "rr" => rest
            .strip_suffix("Reply")
            .filter(|name| *name != "/")
            .map_or_else(foreign, |name| DdsTopic::ServiceReply(name.into())),
        _ => foreign(),
    }
}

fn prefixed(prefix: &str, full_name: &str, suffix: &str, avoid: bool) -> String {
    if avoid {
        format!("{full_name}{suffix}")
    } else {
        format!("{prefix}{full_name}{suffix}")
    }
}

/// `name` inside `namespace`, unless it is absolute.
fn join(namespace: &str, name: &str) -> String {
    if name.starts_with('/') {
        return name.into();
    }
    format!("{}/{name}", namespace.trim_end_matches('/'))
}

fn validate_absolute(kind: NameKind, name: &str, bytes_max: usize) -> Result<(), NameError> {
    let wrong = |position, rule| Err(error(kind, name, position, rule));
    if name.is_empty() {
        return wrong(0, NameRule::Empty);
    }
    if !name.starts_with('/') {
        return wrong(0, NameRule::NotAbsolute);
    }
    let mut previous = ' ';
    for (at, c) in name.char_indices() {
        match c {
            '/' if previous == '/' => return wrong(at - 1, NameRule::DoubleSlash),
            '/' => {}
            _ if !is_name_character(c) => return wrong(at, NameRule::Character(c)),
            _ if previous == '/' && c.is_ascii_digit() => {
                return wrong(at, NameRule::LeadingDigit(c));
            }
            _ => {}
        }
        previous = c;
    }
    if previous == '/' {
        return wrong(name.len() - 1, NameRule::TrailingSlash);
    }
    if name.len() > bytes_max {
        return wrong(bytes_max, NameRule::TooLong { bytes_max });
    }
    Ok(())
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn error(kind: NameKind, name: &str, position: usize, rule: NameRule) -> NameError {
    NameError {
        kind,
        name: name.into(),
        position,
        rule,
    }
}

/// The ROS topic name; names outside of ROS's conventions are returned as they are.
pub fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) => name,
        _ => dds.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NameKind::{Namespace, Node, Topic};
    use alloc::string::ToString;

    #[test]
    fn names_expand_as_rcl_expands_them() {
        let table = [
            ("chatter", "/ns/chatter"),
            ("/chatter", "/chatter"),
            ("~", "/ns/talker"),
            ("~/chatter", "/ns/talker/chatter"),
            ("{node}/chatter", "/ns/talker/chatter"),
            ("{ns}/chatter", "/ns/chatter"),
            ("/a{namespace}/b_{node}", "/a/ns/b_talker"),
            ("a__b", "/ns/a__b"),
            ("_hidden/x", "/ns/_hidden/x"),
        ];
        for (name, full) in table {
            assert_eq!(expand(Topic, name, "talker", "/ns").as_deref(), Ok(full));
        }
        assert_eq!(
            expand(Topic, "~/x", "talker", "/").as_deref(),
            Ok("/talker/x")
        );
        assert_eq!(expand(Topic, "x", "talker", "/").as_deref(), Ok("/x"));
        assert_eq!(expand(Topic, "{ns}/x", "talker", "/").as_deref(), Ok("/x"));
    }

    #[test]
    fn an_invalid_name_is_an_error_with_name_position_and_hint() {
        let topic = |name| {
            expand(Topic, name, "talker", "/ns")
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            topic("/my topic"),
            "topic name \"/my topic\" has ' ' at position 3: use only letters, digits, \
             underscores and slashes, ~ at the start, {node}, {ns} or {namespace}"
        );
        assert_eq!(
            topic("/a/7up"),
            "topic name \"/a/7up\" has a part that starts with the digit 7 at position 3: start \
             it with a letter or an underscore"
        );
        assert_eq!(
            topic("a//b"),
            "topic name \"a//b\" has \"//\" at position 1: use a single slash"
        );
        assert_eq!(
            topic("{robot}/x"),
            "topic name \"{robot}/x\" has the unknown substitution {robot} at position 0: use \
             {node}, {ns} or {namespace}"
        );
    }

    #[test]
    fn every_rule_has_its_own_error() {
        let rule_of = |name: &str| expand(Topic, name, "n", "/").unwrap_err().rule;
        let table = [
            ("", NameRule::Empty),
            ("a/", NameRule::TrailingSlash),
            ("/", NameRule::TrailingSlash),
            ("//a", NameRule::DoubleSlash),
            ("a~", NameRule::Tilde),
            ("~a", NameRule::Tilde),
            ("{node", NameRule::Braces),
            ("node}", NameRule::Braces),
            ("{a{b}}", NameRule::Braces),
            ("{}", NameRule::UnknownSubstitution(String::new())),
            ("größe", NameRule::Character('ö')),
        ];
        for (name, rule) in table {
            assert_eq!(rule_of(name), rule, "{name}");
        }
        let long = format!("/{}", "a".repeat(TOPIC_BYTES_MAX));
        assert_eq!(
            rule_of(&long),
            NameRule::TooLong {
                bytes_max: TOPIC_BYTES_MAX
            }
        );
        assert!(validate_full(Topic, &long[..TOPIC_BYTES_MAX]).is_ok());
    }

    #[test]
    fn nodes_and_namespaces_have_their_own_rules() {
        assert!(validate_node("talker_2").is_ok());
        assert_eq!(validate_node("ns/talker").unwrap_err().position, 2);
        assert_eq!(validate_node("2nd").unwrap_err().kind, Node);
        assert!(validate_namespace("/").is_ok());
        assert!(validate_namespace("/a/b").is_ok());
        let relative = validate_namespace("a").unwrap_err();
        assert_eq!(
            (relative.kind, relative.rule),
            (Namespace, NameRule::NotAbsolute)
        );
        assert_eq!(absolute_namespace(""), "/");
        assert_eq!(absolute_namespace("a/b"), "/a/b");
    }

    #[test]
    fn a_dds_name_may_have_any_visible_characters() {
        for good in ["Square", "rt/chatter", "a::b.c-d", "/x"] {
            assert_eq!(validate_dds_topic(good), Ok(()));
        }
        let message = |name: &str| validate_dds_topic(name).unwrap_err().to_string();
        assert_eq!(
            message("my square"),
            "DDS topic name \"my square\" has ' ' at position 2: use only visible ASCII characters"
        );
        assert!(message("").contains("is empty"));
        assert!(message(&"a".repeat(256)).contains("more than the 255 allowed"));
    }

    #[test]
    fn dds_names_convert_both_ways() {
        assert_eq!(dds_topic("/ns/chatter", false), "rt/ns/chatter");
        assert_eq!(dds_topic("/ns/chatter", true), "/ns/chatter");
        assert_eq!(dds_request_topic("/add", false), "rq/addRequest");
        assert_eq!(dds_reply_topic("/add", true), "/addReply");
        let table = [
            ("rt/ns/chatter", DdsTopic::Topic("/ns/chatter".into())),
            ("rq/addRequest", DdsTopic::ServiceRequest("/add".into())),
            ("rr/addReply", DdsTopic::ServiceReply("/add".into())),
            ("rr/add", DdsTopic::NonRos("rr/add".into())),
            ("rt", DdsTopic::NonRos("rt".into())),
            ("rtx/a", DdsTopic::NonRos("rtx/a".into())),
            ("é", DdsTopic::NonRos("é".into())),
            (
                "ros_discovery_info",
                DdsTopic::NonRos("ros_discovery_info".into()),
            ),
        ];
        for (dds, ros) in table {
            assert_eq!(from_dds_topic(dds), ros, "{dds}");
        }
    }

    #[test]
    fn a_leading_underscore_in_any_part_hides_a_name() {
        assert!(is_hidden("/_ros2cli_1"));
        assert!(is_hidden("/a/_action/status"));
        assert!(!is_hidden("/a_b/c"));
    }
}
