//! Traits of ROS 2 messages, services and actions.
//!
//! Generated code implements these traits; users need them in bounds at most. Also
//! the two forms of a type's name: ROS's `std_msgs/msg/String` and DDS's
//! `std_msgs::msg::dds_::String_` (ROS 2's topic and service name mapping design).
//! For keys see [`key`](crate::key).

pub use crate::cdr::{Decode, Encode};
pub use crate::wstring::WString;

use crate::cdr::{DecodeError, Decoder, Encoder};
use crate::describe::{Extensibility, TypeDescription};
use crate::hash::TypeHash;
use alloc::format;
use alloc::string::String;
use core::fmt;

/// A ROS 2 message type.
pub trait Message:
    Encode + Decode + Clone + Default + PartialEq + fmt::Debug + Send + Sync + 'static
{
    /// For example `std_msgs/msg/String`.
    const TYPE_NAME: &'static str;
    /// The RIHS01 hash that ROS 2 announces for the type.
    const TYPE_HASH: TypeHash;
    /// How the type may evolve; ROS 2's own types are final.
    const EXTENSIBILITY: Extensibility = Extensibility::Final;
    /// Whether the type has a key, and so a topic of it instances.
    const KEYED: bool = false;
    /// The maximal size in bytes of a key in the key hash's input, see
    /// [`key_bytes_max`](crate::key::key_bytes_max).
    const KEY_BYTES_MAX: usize = 0;

    /// The type's TypeInformation for discovery ([`TypeObjects::information`]),
    /// computed at build time; empty where nothing is announced ([`is_announced`]).
    ///
    /// [`TypeObjects::information`]: crate::typeobject::TypeObjects::information
    /// [`is_announced`]: crate::typeobject::is_announced
    const TYPE_INFORMATION: &'static [u8] = &[];

    /// The type's name in DDS: ROS's mapping, unless the definition names
    /// another (`@dds_name`).
    fn dds_type_name() -> String {
        dds_type_name(Self::TYPE_NAME)
    }

    /// The type's fields and all types it refers to; built on first use.
    fn type_description() -> &'static TypeDescription;

    /// The definitions that the type was generated from, as texts, its own among them.
    /// `None` for the standard packages, which `pteros_interfaces::library()` has.
    fn definitions() -> Option<&'static crate::library::InterfaceLibrary> {
        None
    }

    /// Checks the bounds of `T[<=N]`, `string<=N` and `wstring<=N` fields.
    ///
    /// Publishing calls it; types without bounds keep this default.
    fn check_bounds(&self) -> Result<(), BoundError> {
        Ok(())
    }

    /// Writes the key members alone, in order (XTypes 1.3 §7.6.8).
    ///
    /// Without a key: nothing, or the keys of its members, if they have any.
    fn encode_key(&self, out: &mut Encoder<'_>) {
        let _ = out;
    }

    /// Decodes what [`encode_key`](Self::encode_key) wrote; all other fields have
    /// their default.
    fn decode_key(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let _ = input;
        Ok(Self::default())
    }
}

/// A ROS 2 service type.
pub trait Service: 'static {
    /// The message that a client sends.
    type Request: Message;
    /// The message that a server replies with.
    type Response: Message;
    /// The message of service introspection.
    type Event: Message;
    /// For example `example_interfaces/srv/AddTwoInts`.
    const TYPE_NAME: &'static str;
    /// The service's own RIHS01 hash.
    const TYPE_HASH: TypeHash;
}

/// A ROS 2 action type.
pub trait Action: 'static {
    /// The message with which a client requests a goal.
    type Goal: Message;
    /// The final result.
    type Result: Message;
    /// The feedback during execution.
    type Feedback: Message;
    /// The service `_action/send_goal`.
    type SendGoal: Service;
    /// The service `_action/get_result`.
    type GetResult: Service;
    /// The message on `_action/feedback`.
    type FeedbackMessage: Message;
    /// For example `example_interfaces/action/Fibonacci`.
    const TYPE_NAME: &'static str;
    /// The action's own RIHS01 hash.
    const TYPE_HASH: TypeHash;

    /// Asks for a goal under the id (a UUID) that its client gave it.
    fn goal_request(goal_id: GoalId, goal: Self::Goal) -> <Self::SendGoal as Service>::Request;

    /// The requested goal.
    fn goal_of(request: &<Self::SendGoal as Service>::Request) -> (GoalId, &Self::Goal);

    /// The response to a goal request: whether it is accepted, and when.
    fn goal_response(
        accepted: bool,
        sec: i32,
        nanosec: u32,
    ) -> <Self::SendGoal as Service>::Response;

    /// Whether the goal was accepted.
    fn is_accepted(response: &<Self::SendGoal as Service>::Response) -> bool;

    /// Asks for a goal's result.
    fn result_request(goal_id: GoalId) -> <Self::GetResult as Service>::Request;

    /// The goal whose result was requested.
    fn result_goal(request: &<Self::GetResult as Service>::Request) -> GoalId;

    /// A goal's status at its end (`action_msgs/msg/GoalStatus`), and its result.
    fn result_response(status: i8, result: Self::Result) -> <Self::GetResult as Service>::Response;

    /// Status and result.
    fn result_of(response: &<Self::GetResult as Service>::Response) -> (i8, &Self::Result);

    /// A feedback message of a goal.
    fn feedback_message(goal_id: GoalId, feedback: Self::Feedback) -> Self::FeedbackMessage;

    /// The goal and the feedback of a feedback message.
    fn feedback_of(message: &Self::FeedbackMessage) -> (GoalId, &Self::Feedback);
}

/// The sixteen bytes of a goal's UUID.
pub type GoalId = [u8; 16];

/// A string or sequence is longer than its type allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundError {
    /// Field path, for example `points[3].label`.
    pub field: String,
    /// Elements (or characters) found.
    pub len: usize,
    /// Elements (or characters) allowed.
    pub bound: usize,
}

impl BoundError {
    /// Fails when `len` exceeds `bound`.
    pub fn check(field: &str, len: usize, bound: usize) -> Result<(), Self> {
        if len <= bound {
            return Ok(());
        }
        Err(Self {
            field: field.into(),
            len,
            bound,
        })
    }

    /// Puts an outer field's name before the path.
    pub fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "field \"{}\" holds {} elements, its type allows at most {}",
            self.field, self.len, self.bound
        )
    }
}

impl core::error::Error for BoundError {}

/// `std_msgs/msg/String` becomes `std_msgs::msg::dds_::String_`.
///
/// A name without a `/` is returned with the marks but without a namespace.
pub fn dds_type_name(ros: &str) -> String {
    match ros.rsplit_once('/') {
        Some((namespace, name)) => format!("{}::dds_::{name}_", namespace.replace('/', "::")),
        None => format!("dds_::{ros}_"),
    }
}

/// `std_msgs::msg::dds_::String_` becomes `std_msgs/msg/String`.
///
/// `None` for a name that ROS 2 does not generate.
pub fn ros_type_name(dds: &str) -> Option<String> {
    let (namespace, name) = dds.rsplit_once("::")?;
    let namespace = namespace.strip_suffix("::dds_")?;
    let name = name.strip_suffix('_')?;
    if namespace.is_empty() || name.is_empty() {
        return None;
    }
    Some(format!("{}/{name}", namespace.replace("::", "/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn type_names_map_both_ways() {
        for (ros, dds) in [
            ("std_msgs/msg/String", "std_msgs::msg::dds_::String_"),
            (
                "example_interfaces/srv/AddTwoInts_Request",
                "example_interfaces::srv::dds_::AddTwoInts_Request_",
            ),
        ] {
            assert_eq!(dds_type_name(ros), dds);
            assert_eq!(ros_type_name(dds).as_deref(), Some(ros));
        }
        for foreign in [
            "HelloWorld",
            "a::b::C",
            "a::dds_::C",
            "::dds_::C_",
            "a::dds_::_",
        ] {
            assert_eq!(ros_type_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn wide_strings_show_broken_surrogates_as_replacement() {
        assert_eq!(WString::from("naïve 🦉").to_string(), "naïve 🦉");
        assert_eq!(WString(alloc::vec![0x41, 0xd800]).to_string(), "A\u{fffd}");
    }
}
