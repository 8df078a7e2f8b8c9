//! The five services of a managed node.

use std::sync::{Arc, Weak};

use pteros_interfaces::lifecycle_msgs::msg::TransitionDescription;
use pteros_interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeState_Request, ChangeState_Response, GetAvailableStates,
    GetAvailableStates_Response, GetAvailableTransitions, GetAvailableTransitions_Response,
    GetState, GetState_Response,
};
use pteros_msg::message::Service as ServiceType;

use super::machine::{LifecycleState, LifecycleTransition};
use super::node::{LifecycleCore, Wanted, message_of, state_message};
use crate::callback_group::CallbackGroupKind;
use crate::error::CreateError;
use crate::node::Node;
use crate::service::{Service, ServiceCall, ServiceOptions};

/// Kept for as long as they are served.
#[derive(Default)]
pub(super) struct Services {
    _change: Option<Service<ChangeState>>,
    _state: Option<Service<GetState>>,
    _states: Option<Service<GetAvailableStates>>,
    _transitions: Vec<Service<GetAvailableTransitions>>,
}

/// Who waits for a transition to end.
pub(super) struct Asked(ServiceCall<ChangeState_Request, ChangeState_Response>);

impl Asked {
    pub(super) fn answer(self, success: bool) {
        if let Err(error) = self.0.respond(ChangeState_Response { success }) {
            tracing::warn!("no answer sent: {error}");
        }
    }
}

impl Services {
    pub(super) fn new(node: &Node, core: &Weak<LifecycleCore>) -> Result<Self, CreateError> {
        // Questions are answered also while a callback of the node's own group
        // runs, if there is a thread.
        let group = node.create_callback_group(CallbackGroupKind::MutuallyExclusive);
        let asking = || ServiceOptions::default().callback_group(&group);
        let change = core.clone();
        let change = node.create_deferred_service::<ChangeState>(
            "~/change_state",
            ServiceOptions::default(),
            move |call| {
                let Some(core) = change.upgrade() else {
                    return;
                };
                let asked = &call.request().transition;
                // The label goes before the id, which is zero where only a label
                // was given.
                let wanted = match asked.label.is_empty() {
                    true => Wanted::Id(asked.id),
                    false => Wanted::Label(asked.label.clone()),
                };
                // Told by the answer.
                let _ = core.change(&wanted, Some(Asked(call)));
            },
        )?;
        let state = serve::<GetState>(node, "~/get_state", asking(), core, |core| {
            GetState_Response {
                current_state: state_message(core.map_or(LifecycleState::Unknown, |c| c.state())),
            }
        })?;
        let states =
            serve::<GetAvailableStates>(node, "~/get_available_states", asking(), core, |_| {
                GetAvailableStates_Response {
                    available_states: LifecycleState::ALL.map(state_message).into(),
                }
            })?;
        let possible = serve::<GetAvailableTransitions>(
            node,
            "~/get_available_transitions",
            asking(),
            core,
            |core| {
                let state = core.map_or(LifecycleState::Unknown, |core| core.state());
                described(state.transitions())
            },
        )?;
        let graph = serve::<GetAvailableTransitions>(
            node,
            "~/get_transition_graph",
            asking(),
            core,
            |_| described(LifecycleTransition::all().iter()),
        )?;
        Ok(Self {
            _change: Some(change),
            _state: Some(state),
            _states: Some(states),
            _transitions: vec![possible, graph],
        })
    }
}

fn serve<S: ServiceType>(
    node: &Node,
    name: &str,
    options: ServiceOptions,
    core: &Weak<LifecycleCore>,
    answer: impl Fn(Option<Arc<LifecycleCore>>) -> S::Response + Send + 'static,
) -> Result<Service<S>, CreateError> {
    let core = core.clone();
    node.create_service_with::<S>(name, options, move |_| answer(core.upgrade()))
}

fn described<'s>(
    steps: impl Iterator<Item = &'s LifecycleTransition>,
) -> GetAvailableTransitions_Response {
    let described = steps.map(|step| TransitionDescription {
        transition: message_of(step),
        start_state: state_message(step.start),
        goal_state: state_message(step.goal),
    });
    GetAvailableTransitions_Response {
        available_transitions: described.collect(),
    }
}
