//! Type support: what an endpoint needs to know of a message, service or action type.
//!
//! ROS 2 calls it by this name (rosidl's `rosidl_message_type_support_t`). Generated
//! types and types known at run time satisfy the same traits, so that there is one
//! `Publisher`, one `Client` and one `ActionServer`. For a generated type the support
//! value is `()`, which takes no room and no time. For [`DynamicMessage`] it is a
//! [`DynamicType`], for [`DynamicService`] and [`DynamicAction`] the type's messages.

use crate::cdr::{DecodeError, Representation, from_payload};
use crate::describe::{Extensibility, TypeDescription, describe_service};
use crate::dynamic::{DynamicAction, DynamicMessage, DynamicService, DynamicType};
use crate::hash::TypeHash;
use crate::key::{KeyHash, KeyReader, from_key_payload, key_hash, key_payload, key_reader};
use crate::library::InterfaceLibrary;
use crate::message::{Action, Encode, GoalId, Message, Service};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;

/// The properties of a message type that an endpoint announces.
pub struct TypeProperties<'a> {
    /// For example `std_msgs/msg/String`.
    pub name: &'a str,
    /// The DDS type name, as SEDP announces it.
    pub dds_name: String,
    /// The RIHS01 type hash.
    pub hash: TypeHash,
    /// Whether later versions may have more fields.
    pub extensibility: Extensibility,
    /// The reader of its keys; `None` for a type without.
    pub key_reader: Option<Arc<dyn KeyReader>>,
    /// The fields of the type.
    pub description: DescriptionOf<'a>,
    /// The definitions that the type was generated from, if they are not those of a
    /// standard package.
    pub definitions: fn() -> Option<&'static InterfaceLibrary>,
}

/// Where the description of a type comes from.
pub enum DescriptionOf<'a> {
    /// A generated type.
    Generated {
        /// Its description, built on first use.
        describe: fn() -> &'static TypeDescription,
        /// [`Message::TYPE_INFORMATION`].
        announced: &'static [u8],
    },
    /// A type known at run time.
    Dynamic(&'a DynamicType),
}

/// A message type: a generated one, or [`DynamicMessage`].
///
/// Users need it in bounds at most; `T: Message` implies it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message type",
    label = "cannot be published",
    note = "messages are types as `pteros::interfaces::std_msgs::msg::String`, your own, generated in build.rs, or `pteros::msg::dynamic::DynamicMessage`"
)]
pub trait MessageTypeSupport: Encode + Clone + fmt::Debug + Send + Sync + 'static {
    /// What is known of the type beside the Rust type: `()` for generated types.
    type Support: Clone + fmt::Debug + Send + Sync + 'static;

    /// What an endpoint announces.
    fn properties(support: &Self::Support) -> TypeProperties<'_>;

    /// A message with default values.
    fn default_message(support: &Self::Support) -> Self;

    /// Decodes a payload with encapsulation header.
    ///
    /// # Errors
    /// The bytes are not of the type.
    fn from_type_payload(support: &Self::Support, payload: &[u8]) -> Result<Self, DecodeError>;

    /// As [`Self::from_type_payload`], of memory that the message may keep instead of
    /// a copy.
    ///
    /// # Errors
    /// As [`Self::from_type_payload`].
    #[inline]
    fn from_type_bytes(support: &Self::Support, payload: Bytes) -> Result<Self, DecodeError> {
        Self::from_type_payload(support, &payload)
    }

    /// Decodes a key payload: key fields are set, all others have their default.
    ///
    /// # Errors
    /// The bytes are not a key of the type.
    fn from_type_key(support: &Self::Support, payload: &[u8]) -> Result<Self, DecodeError>;

    /// Checks before it is published that the message is of the type and keeps its
    /// bounds.
    ///
    /// # Errors
    /// The reason, with the way out.
    fn validate(&self, support: &Self::Support) -> Result<(), String>;

    /// Whether the message is of the type; always true for generated types.
    fn is_of(&self, support: &Self::Support) -> bool;

    /// The instance that the message belongs to; all zeros without a key.
    fn instance_key_hash(&self) -> KeyHash;

    /// The key alone as a payload with encapsulation header.
    fn instance_key(&self, representation: Representation) -> Vec<u8>;
}

impl<M: Message> MessageTypeSupport for M {
    type Support = ();

    fn properties(_: &()) -> TypeProperties<'_> {
        TypeProperties {
            name: M::TYPE_NAME,
            dds_name: M::dds_type_name(),
            hash: M::TYPE_HASH,
            extensibility: M::EXTENSIBILITY,
            key_reader: key_reader::<M>(),
            description: DescriptionOf::Generated {
                describe: M::type_description,
                announced: M::TYPE_INFORMATION,
            },
            definitions: M::definitions,
        }
    }

    fn default_message(_: &()) -> Self {
        M::default()
    }

    #[inline]
    fn from_type_payload(_: &(), payload: &[u8]) -> Result<Self, DecodeError> {
        from_payload(payload)
    }

    fn from_type_key(_: &(), payload: &[u8]) -> Result<Self, DecodeError> {
        from_key_payload(payload)
    }

    #[inline]
    fn validate(&self, _: &()) -> Result<(), String> {
        self.check_bounds().map_err(|error| error.to_string())
    }

    #[inline]
    fn is_of(&self, _: &()) -> bool {
        true
    }

    fn instance_key_hash(&self) -> KeyHash {
        key_hash(self)
    }

    fn instance_key(&self, representation: Representation) -> Vec<u8> {
        key_payload(self, representation)
    }
}

impl MessageTypeSupport for DynamicMessage {
    type Support = DynamicType;

    fn properties(ty: &DynamicType) -> TypeProperties<'_> {
        TypeProperties {
            name: ty.name(),
            dds_name: if ty.name().contains('/') {
                ty.dds_type_name()
            } else {
                ty.dds_name().unwrap_or(ty.name()).into()
            },
            hash: ty.hash(),
            extensibility: ty.extensibility(),
            key_reader: ty.key_reader(),
            description: DescriptionOf::Dynamic(ty),
            definitions: || None,
        }
    }

    fn default_message(ty: &DynamicType) -> Self {
        Self::new(ty)
    }

    fn from_type_payload(ty: &DynamicType, payload: &[u8]) -> Result<Self, DecodeError> {
        Self::from_payload(ty, payload)
    }

    fn from_type_key(ty: &DynamicType, payload: &[u8]) -> Result<Self, DecodeError> {
        Self::from_key_payload(ty, payload)
    }

    fn validate(&self, ty: &DynamicType) -> Result<(), String> {
        if !self.is_of(ty) {
            return Err(format!(
                "the message is of type {} ({}), the endpoint of type {} ({}); create the \
                 message from the endpoint's type",
                self.ty().name(),
                self.ty().hash(),
                ty.name(),
                ty.hash()
            ));
        }
        self.check_bounds().map_err(|error| error.to_string())
    }

    fn is_of(&self, ty: &DynamicType) -> bool {
        self.ty() == ty
    }

    fn instance_key_hash(&self) -> KeyHash {
        self.key_hash()
    }

    fn instance_key(&self, representation: Representation) -> Vec<u8> {
        self.key_payload(representation)
    }
}

/// The support value of a message type.
pub type SupportOf<M> = <M as MessageTypeSupport>::Support;

/// A service type: a generated one, or [`DynamicService`].
///
/// Users need it in bounds at most; `S: Service` implies it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a service type",
    label = "not generated from a `.srv` file",
    note = "write the service's own type, as `pteros::interfaces::std_srvs::srv::SetBool`, or `pteros::msg::dynamic::DynamicService`"
)]
pub trait ServiceTypeSupport: 'static {
    /// What is known of the type beside the Rust type: `()` for generated types.
    type Support: Clone + fmt::Debug + Send + Sync + 'static;
    /// The message that a client sends.
    type Request: MessageTypeSupport;
    /// The message that a server replies with.
    type Response: MessageTypeSupport;
    /// The message of service introspection.
    type Event: MessageTypeSupport;

    /// For example `example_interfaces/srv/AddTwoInts`.
    fn service_name(support: &Self::Support) -> &str;

    /// The service type's own hash and the descriptions of its request, response and
    /// event, where they are known.
    fn description(_: &Self::Support) -> Option<ServiceDescription> {
        None
    }

    /// The type itself, if it is known at run time only.
    fn dynamic(_: &Self::Support) -> Option<&DynamicService> {
        None
    }

    /// The service type's own RIHS01 hash, where it is known.
    fn type_hash(support: &Self::Support) -> Option<TypeHash> {
        Self::description(support).map(|of| of.hash)
    }

    /// The request's type.
    fn request(support: &Self::Support) -> &SupportOf<Self::Request>;

    /// The response's type.
    fn response(support: &Self::Support) -> &SupportOf<Self::Response>;

    /// The event's type; `None` where the definitions lack `service_msgs`.
    fn event(support: &Self::Support) -> Option<&SupportOf<Self::Event>>;
}

/// Hash and descriptions of a generated service type.
pub struct ServiceDescription {
    /// The service's own RIHS01 hash.
    pub hash: TypeHash,
    /// Its description, built on first use.
    pub describe: fn() -> TypeDescription,
    /// The definitions that it was generated from, if they are not standard.
    pub definitions: fn() -> Option<&'static InterfaceLibrary>,
}

impl<S: Service> ServiceTypeSupport for S {
    type Support = ();
    type Request = S::Request;
    type Response = S::Response;
    type Event = S::Event;

    fn service_name(_: &()) -> &str {
        S::TYPE_NAME
    }

    fn description(_: &()) -> Option<ServiceDescription> {
        Some(ServiceDescription {
            hash: S::TYPE_HASH,
            describe: service_description::<S>,
            definitions: S::Request::definitions,
        })
    }

    fn request(_: &()) -> &() {
        &()
    }

    fn response(_: &()) -> &() {
        &()
    }

    fn event(_: &()) -> Option<&()> {
        Some(&())
    }
}

/// The description of a service type: request, response and event.
pub fn service_description<S: Service>() -> TypeDescription {
    describe_service(
        S::TYPE_NAME,
        S::Request::type_description(),
        S::Response::type_description(),
        S::Event::type_description(),
    )
}

impl ServiceTypeSupport for DynamicService {
    type Support = Self;
    type Request = DynamicMessage;
    type Response = DynamicMessage;
    type Event = DynamicMessage;

    fn service_name(ty: &Self) -> &str {
        ty.name()
    }

    fn dynamic(ty: &Self) -> Option<&DynamicService> {
        Some(ty)
    }

    fn type_hash(ty: &Self) -> Option<TypeHash> {
        ty.hash()
    }

    fn request(ty: &Self) -> &DynamicType {
        ty.request()
    }

    fn response(ty: &Self) -> &DynamicType {
        ty.response()
    }

    fn event(ty: &Self) -> Option<&DynamicType> {
        ty.event()
    }
}

/// The request message of an action's service `S`.
pub type RequestOf<S> = <S as ServiceTypeSupport>::Request;
/// The response message of an action's service `S`.
pub type ResponseOf<S> = <S as ServiceTypeSupport>::Response;
/// The support value of a service type.
pub type ServiceSupportOf<S> = <S as ServiceTypeSupport>::Support;

/// An action type: a generated one, or [`DynamicAction`].
///
/// Users need it in bounds at most; `A: Action` implies it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an action type",
    label = "not generated from an `.action` file",
    note = "write the action's own type, as `pteros::interfaces::example_interfaces::action::Fibonacci`, or `pteros::msg::dynamic::DynamicAction`"
)]
pub trait ActionTypeSupport: 'static {
    /// What is known of the type beside the Rust type: `()` for generated types.
    type Support: Clone + fmt::Debug + Send + Sync + 'static;
    /// The message with which a client requests a goal.
    type Goal: MessageTypeSupport;
    /// The final result.
    type Result: MessageTypeSupport;
    /// The feedback during execution.
    type Feedback: MessageTypeSupport;
    /// The service `_action/send_goal`.
    type SendGoal: ServiceTypeSupport;
    /// The service `_action/get_result`.
    type GetResult: ServiceTypeSupport;
    /// The message on `_action/feedback`.
    type FeedbackMessage: MessageTypeSupport;

    /// The type of the service `_action/send_goal`.
    fn send_goal(support: &Self::Support) -> &ServiceSupportOf<Self::SendGoal>;

    /// The type of the service `_action/get_result`.
    fn get_result(support: &Self::Support) -> &ServiceSupportOf<Self::GetResult>;

    /// The type of the message on `_action/feedback`.
    fn feedback_type(support: &Self::Support) -> &SupportOf<Self::FeedbackMessage>;

    /// The goal's type.
    fn goal_type(support: &Self::Support) -> &SupportOf<Self::Goal>;

    /// The result's type.
    fn result_type(support: &Self::Support) -> &SupportOf<Self::Result>;

    /// Asks for a goal under the id (a UUID) that its client gave it.
    ///
    /// # Errors
    /// The goal is of another type.
    fn request_goal(
        support: &Self::Support,
        goal_id: GoalId,
        goal: Self::Goal,
    ) -> Result<RequestOf<Self::SendGoal>, String>;

    /// The goal inside a request of the action's `send_goal` service.
    fn requested_goal(
        support: &Self::Support,
        request: &RequestOf<Self::SendGoal>,
    ) -> (GoalId, Self::Goal);

    /// The response to a goal request: whether it is accepted, and when.
    fn respond_goal(
        support: &Self::Support,
        accepted: bool,
        sec: i32,
        nanosec: u32,
    ) -> ResponseOf<Self::SendGoal>;

    /// Whether the goal was accepted.
    fn was_accepted(response: &ResponseOf<Self::SendGoal>) -> bool;

    /// Asks for a goal's result.
    fn request_result(support: &Self::Support, goal_id: GoalId) -> RequestOf<Self::GetResult>;

    /// The goal whose result was requested.
    fn requested_result(request: &RequestOf<Self::GetResult>) -> GoalId;

    /// A goal's status at its end (`action_msgs/msg/GoalStatus`), and its result.
    fn respond_result(
        support: &Self::Support,
        status: i8,
        result: Self::Result,
    ) -> ResponseOf<Self::GetResult>;

    /// Status and result.
    fn received_result(
        support: &Self::Support,
        response: &ResponseOf<Self::GetResult>,
    ) -> (i8, Self::Result);

    /// A feedback message of a goal.
    ///
    /// # Errors
    /// The feedback is of another type.
    fn wrap_feedback(
        support: &Self::Support,
        goal_id: GoalId,
        feedback: Self::Feedback,
    ) -> Result<Self::FeedbackMessage, String>;

    /// The goal and the feedback of a feedback message.
    fn unwrap_feedback<'m>(
        support: &Self::Support,
        message: &'m Self::FeedbackMessage,
    ) -> (GoalId, Cow<'m, Self::Feedback>);
}

impl<A: Action> ActionTypeSupport for A {
    type Support = ();
    type Goal = A::Goal;
    type Result = A::Result;
    type Feedback = A::Feedback;
    type SendGoal = A::SendGoal;
    type GetResult = A::GetResult;
    type FeedbackMessage = A::FeedbackMessage;

    fn send_goal(_: &()) -> &() {
        &()
    }

    fn get_result(_: &()) -> &() {
        &()
    }

    fn feedback_type(_: &()) -> &() {
        &()
    }

    fn goal_type(_: &()) -> &() {
        &()
    }

    fn result_type(_: &()) -> &() {
        &()
    }

    fn request_goal(
        _: &(),
        goal_id: GoalId,
        goal: A::Goal,
    ) -> Result<RequestOf<A::SendGoal>, String> {
        Ok(A::goal_request(goal_id, goal))
    }

    fn requested_goal(_: &(), request: &RequestOf<A::SendGoal>) -> (GoalId, A::Goal) {
        let (id, goal) = A::goal_of(request);
        (id, goal.clone())
    }

    fn respond_goal(_: &(), accepted: bool, sec: i32, nanosec: u32) -> ResponseOf<A::SendGoal> {
        A::goal_response(accepted, sec, nanosec)
    }

    fn was_accepted(response: &ResponseOf<A::SendGoal>) -> bool {
        A::is_accepted(response)
    }

    fn request_result(_: &(), goal_id: GoalId) -> RequestOf<A::GetResult> {
        A::result_request(goal_id)
    }

    fn requested_result(request: &RequestOf<A::GetResult>) -> GoalId {
        A::result_goal(request)
    }

    fn respond_result(_: &(), status: i8, result: A::Result) -> ResponseOf<A::GetResult> {
        A::result_response(status, result)
    }

    fn received_result(_: &(), response: &ResponseOf<A::GetResult>) -> (i8, A::Result) {
        let (status, result) = A::result_of(response);
        (status, result.clone())
    }

    fn wrap_feedback(
        _: &(),
        goal_id: GoalId,
        feedback: A::Feedback,
    ) -> Result<A::FeedbackMessage, String> {
        Ok(A::feedback_message(goal_id, feedback))
    }

    fn unwrap_feedback<'m>(
        _: &(),
        message: &'m A::FeedbackMessage,
    ) -> (GoalId, Cow<'m, A::Feedback>) {
        let (id, feedback) = A::feedback_of(message);
        (id, Cow::Borrowed(feedback))
    }
}

impl ActionTypeSupport for DynamicAction {
    type Support = Self;
    type Goal = DynamicMessage;
    type Result = DynamicMessage;
    type Feedback = DynamicMessage;
    type SendGoal = DynamicService;
    type GetResult = DynamicService;
    type FeedbackMessage = DynamicMessage;

    fn send_goal(ty: &Self) -> &DynamicService {
        ty.send_goal()
    }

    fn get_result(ty: &Self) -> &DynamicService {
        ty.get_result()
    }

    fn feedback_type(ty: &Self) -> &DynamicType {
        ty.feedback_message()
    }

    fn goal_type(ty: &Self) -> &DynamicType {
        ty.goal()
    }

    fn result_type(ty: &Self) -> &DynamicType {
        ty.result()
    }

    fn request_goal(
        ty: &Self,
        goal_id: GoalId,
        goal: DynamicMessage,
    ) -> Result<DynamicMessage, String> {
        ty.request_goal(goal_id, goal)
    }

    fn requested_goal(ty: &Self, request: &DynamicMessage) -> (GoalId, DynamicMessage) {
        ty.requested_goal(request)
    }

    fn respond_goal(ty: &Self, accepted: bool, sec: i32, nanosec: u32) -> DynamicMessage {
        ty.respond_goal(accepted, sec, nanosec)
    }

    fn was_accepted(response: &DynamicMessage) -> bool {
        Self::was_accepted(response)
    }

    fn request_result(ty: &Self, goal_id: GoalId) -> DynamicMessage {
        ty.request_result(goal_id)
    }

    fn requested_result(request: &DynamicMessage) -> GoalId {
        Self::goal_id(request)
    }

    fn respond_result(ty: &Self, status: i8, result: DynamicMessage) -> DynamicMessage {
        ty.respond_result(status, result)
    }

    fn received_result(ty: &Self, response: &DynamicMessage) -> (i8, DynamicMessage) {
        ty.received_result(response)
    }

    fn wrap_feedback(
        ty: &Self,
        goal_id: GoalId,
        feedback: DynamicMessage,
    ) -> Result<DynamicMessage, String> {
        ty.wrap_feedback(goal_id, feedback)
    }

    fn unwrap_feedback<'m>(
        ty: &Self,
        message: &'m DynamicMessage,
    ) -> (GoalId, Cow<'m, DynamicMessage>) {
        let (id, feedback) = ty.unwrap_feedback(message);
        (id, Cow::Owned(feedback))
    }
}
