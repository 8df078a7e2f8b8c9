//! Dynamic actions: clients and servers for types known at run time.

mod client;
mod server;

pub use client::{DynamicActionClient, DynamicClientGoalHandle};
pub use server::{DynamicActionServer, DynamicActionServerOptions, DynamicServerGoalHandle};

use pteros_msg::dynamic::{DynamicMessage, DynamicType, Value};
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::message::GoalId;

use crate::service::{DynamicServiceType, ServiceTypeError};

/// The goal, result and feedback types of an action.
#[derive(Clone, Debug)]
pub struct DynamicActionType {
    name: String,
    send_goal: DynamicServiceType,
    get_result: DynamicServiceType,
    feedback_message: DynamicType,
    goal: DynamicType,
    result: DynamicType,
    feedback: DynamicType,
}

impl DynamicActionType {
    /// Looks up the types of an action in `library` by its full name.
    ///
    /// # Errors
    /// See [`ServiceTypeError`].
    pub fn new(library: &InterfaceLibrary, name: &str) -> Result<Self, ServiceTypeError> {
        let wrong = |reason: String| ServiceTypeError::Type {
            name: name.into(),
            reason,
        };
        let send_goal = DynamicServiceType::new(library, &format!("{name}_SendGoal"))?;
        let get_result = DynamicServiceType::new(library, &format!("{name}_GetResult"))?;
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
}

/// Creates a message of the type with the goal id set.
fn goal_message(ty: &DynamicType, id: GoalId) -> DynamicMessage {
    let mut message = DynamicMessage::new(ty);
    set_field(&mut message, "goal_id.uuid", id.to_vec());
    message
}

/// Goal id in a message; zeros if it has none.
fn goal_id(message: &DynamicMessage) -> GoalId {
    let found = message.get("goal_id.uuid").ok();
    match found.as_deref() {
        Some(Value::Bytes(bytes)) => bytes.as_slice().try_into().unwrap_or_default(),
        _ => GoalId::default(),
    }
}

/// A nested message.
fn nested_message(message: &DynamicMessage, field: &str, ty: &DynamicType) -> DynamicMessage {
    match message.field(field) {
        Some(Value::Message(nested)) => nested.clone(),
        _ => DynamicMessage::new(ty),
    }
}

/// Sets a field that all action messages have, so that it fits.
fn set_field(message: &mut DynamicMessage, field: &str, value: impl Into<Value>) {
    if let Err(error) = message.set(field, value) {
        tracing::warn!("{}: {error}", message.ty().name());
    }
}
