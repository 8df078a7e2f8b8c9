//! Actions whose type is known at run time only.

mod client;
mod server;

pub use client::{DynamicActionClient, DynamicClientGoal};
pub use server::{DynamicActionServer, DynamicActionServerOptions, DynamicServerGoal};

use pteros_msg::dynamic::{DynamicMessage, DynamicType, Value};
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::message::GoalId;

use crate::service::{DynamicServiceType, ServiceTypeError};

/// The types of an action: what is asked for, what it comes to, and what meanwhile.
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
    /// The types of an action that `library` knows, by its full name.
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
        // As they are within what is sent.
        let part = |of: &DynamicType, field: &str| match DynamicMessage::new(of).field(field) {
            Some(Value::Message(message)) => Ok(message.ty().clone()),
            _ => Err(wrong(format!("{} has no message {field}", of.name()))),
        };
        Ok(Self {
            name: name.into(),
            goal: part(send_goal.request(), "goal")?,
            result: part(get_result.response(), "result")?,
            feedback: part(&feedback_message, "feedback")?,
            send_goal,
            get_result,
            feedback_message,
        })
    }

    /// For example `example_interfaces/action/Fibonacci`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is asked for.
    pub fn goal(&self) -> &DynamicType {
        &self.goal
    }

    /// What it comes to in the end.
    pub fn result(&self) -> &DynamicType {
        &self.result
    }

    /// What it has come to so far.
    pub fn feedback(&self) -> &DynamicType {
        &self.feedback
    }
}

/// A message of that type about a goal.
fn about(ty: &DynamicType, id: GoalId) -> DynamicMessage {
    let mut message = DynamicMessage::new(ty);
    put(&mut message, "goal_id.uuid", id.to_vec());
    message
}

/// Whose goal a message is about; zeros where it does not say.
fn goal_id(message: &DynamicMessage) -> GoalId {
    let found = message.get("goal_id.uuid").ok();
    match found.as_deref() {
        Some(Value::Bytes(bytes)) => bytes.as_slice().try_into().unwrap_or_default(),
        _ => GoalId::default(),
    }
}

/// A message within a message.
fn part(message: &DynamicMessage, field: &str, ty: &DynamicType) -> DynamicMessage {
    match message.field(field) {
        Some(Value::Message(part)) => part.clone(),
        _ => DynamicMessage::new(ty),
    }
}

/// Sets a field that every action's messages have, so it fits.
fn put(message: &mut DynamicMessage, field: &str, value: impl Into<Value>) {
    if let Err(error) = message.set(field, value) {
        tracing::warn!("{}: {error}", message.ty().name());
    }
}
