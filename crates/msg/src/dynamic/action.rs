//! Dynamic action type: the message types of an action known at run time only, and
//! the messages of its services.

use super::message::DynamicMessage;
use super::service::{DynamicService, InterfaceTypeError};
use super::types::DynamicType;
use super::value::Value;
use crate::library::InterfaceLibrary;
use crate::message::GoalId;
use alloc::format;
use alloc::string::{String, ToString};

/// An action type known at run time: its goal, result and feedback types.
///
/// `ActionClient<DynamicAction>` and `ActionServer<DynamicAction>` carry
/// [`DynamicMessage`]s.
#[derive(Clone, Debug)]
pub struct DynamicAction {
    name: String,
    send_goal: DynamicService,
    get_result: DynamicService,
    feedback_message: DynamicType,
    goal: DynamicType,
    result: DynamicType,
    feedback: DynamicType,
}

impl DynamicAction {
    /// Looks up the types of an action in `library` by its full name.
    ///
    /// # Errors
    /// See [`InterfaceTypeError`].
    pub fn new(library: &InterfaceLibrary, name: &str) -> Result<Self, InterfaceTypeError> {
        let wrong = |reason: String| InterfaceTypeError::Type {
            name: name.into(),
            reason,
        };
        let send_goal = DynamicService::new(library, &format!("{name}_SendGoal"))?;
        let get_result = DynamicService::new(library, &format!("{name}_GetResult"))?;
        let described = library.describe(&format!("{name}_FeedbackMessage"))?;
        let feedback_message =
            DynamicType::new(&described).map_err(|error| wrong(error.to_string()))?;
        // Types of the nested messages.
        let nested_type = |of: &DynamicType, field: &str| match DynamicMessage::new(of).field(field)
        {
            Some(Value::Message(message)) => Ok(message.ty().clone()),
            _ => Err(wrong(format!("{} has no message field {field}", of.name()))),
        };
        Ok(Self {
            name: name.into(),
            goal: nested_type(send_goal.request(), "goal")?,
            result: nested_type(get_result.response(), "result")?,
            feedback: nested_type(&feedback_message, "feedback")?,
            send_goal,
            get_result,
            feedback_message,
        })
    }

    /// Full type name, for example `example_interfaces/action/Fibonacci`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of the goal.
    pub fn goal(&self) -> &DynamicType {
        &self.goal
    }

    /// Type of the result.
    pub fn result(&self) -> &DynamicType {
        &self.result
    }

    /// Type of the feedback.
    pub fn feedback(&self) -> &DynamicType {
        &self.feedback
    }

    pub(crate) fn send_goal(&self) -> &DynamicService {
        &self.send_goal
    }

    pub(crate) fn get_result(&self) -> &DynamicService {
        &self.get_result
    }

    pub(crate) fn feedback_message(&self) -> &DynamicType {
        &self.feedback_message
    }

    pub(crate) fn request_goal(
        &self,
        id: GoalId,
        goal: DynamicMessage,
    ) -> Result<DynamicMessage, String> {
        let mut request = message_for(self.send_goal.request(), id);
        let set = request.set("goal", Value::Message(goal));
        set.map_err(|error| {
            let name = self.goal.name();
            format!("{error}; create the goal from DynamicAction::goal, {name}")
        })?;
        Ok(request)
    }

    pub(crate) fn requested_goal(&self, request: &DynamicMessage) -> (GoalId, DynamicMessage) {
        let goal = nested_message(request, "goal", &self.goal);
        (Self::goal_id(request), goal)
    }

    pub(crate) fn respond_goal(&self, accepted: bool, sec: i32, nanosec: u32) -> DynamicMessage {
        let mut response = DynamicMessage::new(self.send_goal.response());
        set_field(&mut response, "accepted", Value::Bool(accepted));
        set_field(&mut response, "stamp.sec", sec);
        set_field(&mut response, "stamp.nanosec", nanosec);
        response
    }

    pub(crate) fn was_accepted(response: &DynamicMessage) -> bool {
        matches!(response.field("accepted"), Some(Value::Bool(true)))
    }

    pub(crate) fn request_result(&self, id: GoalId) -> DynamicMessage {
        message_for(self.get_result.request(), id)
    }

    pub(crate) fn respond_result(&self, status: i8, result: DynamicMessage) -> DynamicMessage {
        let mut response = DynamicMessage::new(self.get_result.response());
        set_field(&mut response, "status", status);
        set_field(&mut response, "result", Value::Message(result));
        response
    }

    pub(crate) fn received_result(&self, response: &DynamicMessage) -> (i8, DynamicMessage) {
        let status = match response.field("status") {
            Some(Value::I8(number)) => *number,
            _ => 0,
        };
        (status, nested_message(response, "result", &self.result))
    }

    pub(crate) fn wrap_feedback(
        &self,
        id: GoalId,
        feedback: DynamicMessage,
    ) -> Result<DynamicMessage, String> {
        let mut message = message_for(&self.feedback_message, id);
        let set = message.set("feedback", Value::Message(feedback));
        set.map_err(|error| {
            let name = self.feedback.name();
            format!("{error}; create the feedback from DynamicAction::feedback, {name}")
        })?;
        Ok(message)
    }

    pub(crate) fn unwrap_feedback(&self, message: &DynamicMessage) -> (GoalId, DynamicMessage) {
        let feedback = nested_message(message, "feedback", &self.feedback);
        (Self::goal_id(message), feedback)
    }

    /// Goal id in a message; zeros if it has none.
    pub(crate) fn goal_id(message: &DynamicMessage) -> GoalId {
        let found = message.get("goal_id.uuid").ok();
        match found.as_deref() {
            Some(Value::Bytes(bytes)) => bytes.as_slice().try_into().unwrap_or_default(),
            _ => GoalId::default(),
        }
    }
}

/// A message of the type with the goal id set.
fn message_for(ty: &DynamicType, id: GoalId) -> DynamicMessage {
    let mut message = DynamicMessage::new(ty);
    set_field(&mut message, "goal_id.uuid", id.to_vec());
    message
}

fn nested_message(message: &DynamicMessage, field: &str, ty: &DynamicType) -> DynamicMessage {
    match message.field(field) {
        Some(Value::Message(nested)) => nested.clone(),
        _ => DynamicMessage::new(ty),
    }
}

/// Sets a field that all action messages have, to a value of its type.
fn set_field(message: &mut DynamicMessage, field: &str, value: impl Into<Value>) {
    let set = message.set(field, value);
    debug_assert!(set.is_ok(), "{}: {set:?}", message.ty().name());
}
