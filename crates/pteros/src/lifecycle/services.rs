//! Lifecycle services: the five services of a managed node.

use std::sync::{Arc, Weak};

use pteros_interfaces::lifecycle_msgs::msg::TransitionDescription;
use pteros_interfaces::lifecycle_msgs::srv::{
    ChangeState, ChangeStateRequest, ChangeStateResponse, GetAvailableStates,
    GetAvailableStatesResponse, GetAvailableTransitions, GetAvailableTransitionsResponse, GetState,
    GetStateResponse,
};
use pteros_msg::message::Service as ServiceType;

use super::node::{LifecycleCore, TransitionRequest, state_message, transition_message};
use crate::callback_groups::{CallbackGroup, CallbackGroupType};
use crate::error::CreateError;
use crate::node::Node;
use crate::service::{PendingRequest, Service, ServiceOptions};
use pteros_rcl::lifecycle::{LifecycleState, LifecycleTransition};

/// The services, served until this is dropped.
#[derive(Default)]
pub(super) struct LifecycleServices {
    _change: Option<Service<ChangeState>>,
    _state: Option<Service<GetState>>,
    _states: Option<Service<GetAvailableStates>>,
    _transitions: Vec<Service<GetAvailableTransitions>>,
}

/// A `change_state` request, answered when the transition ends.
pub(super) struct ChangeStateCall(PendingRequest<ChangeStateRequest, ChangeStateResponse>);

impl ChangeStateCall {
    pub(super) fn respond(self, success: bool) {
        if let Err(error) = self.0.respond(ChangeStateResponse { success }) {
            tracing::warn!("response not sent: {error}");
        }
    }
}

impl LifecycleServices {
    pub(super) fn new(node: &Node, core: &Weak<LifecycleCore>) -> Result<Self, CreateError> {
        // With a free thread, queries are answered while a callback of the default
        // group runs.
        let group = node.create_callback_group(CallbackGroupType::MutuallyExclusive);
        let change = core.clone();
        let change = Service::<ChangeState>::deferred(node, "~/change_state", move |call| {
            let Some(core) = change.upgrade() else {
                return;
            };
            let requested = &call.request().transition;
            // The label takes precedence: the id is zero if only a label was
            // given.
            let request = if requested.label.is_empty() {
                TransitionRequest::Id(requested.id)
            } else {
                TransitionRequest::Label(requested.label.clone())
            };
            // The response reports the result.
            let _ = core.change(&request, Some(ChangeStateCall(call)));
        })?;
        let state =
            serve::<GetState>(node, "~/get_state", &group, core, |core| GetStateResponse {
                current_state: state_message(core.map_or(LifecycleState::Unknown, |c| c.state())),
            })?;
        let states =
            serve::<GetAvailableStates>(node, "~/get_available_states", &group, core, |_| {
                GetAvailableStatesResponse {
                    available_states: LifecycleState::ALL.map(state_message).into(),
                }
            })?;
        let available = serve::<GetAvailableTransitions>(
            node,
            "~/get_available_transitions",
            &group,
            core,
            |core| {
                let state = core.map_or(LifecycleState::Unknown, |core| core.state());
                transition_descriptions(state.transitions())
            },
        )?;
        let graph =
            serve::<GetAvailableTransitions>(node, "~/get_transition_graph", &group, core, |_| {
                transition_descriptions(LifecycleTransition::all().iter())
            })?;
        Ok(Self {
            _change: Some(change),
            _state: Some(state),
            _states: Some(states),
            _transitions: vec![available, graph],
        })
    }
}

fn serve<S: ServiceType>(
    node: &Node,
    name: &str,
    group: &CallbackGroup,
    core: &Weak<LifecycleCore>,
    handler: impl Fn(Option<Arc<LifecycleCore>>) -> S::Response + Send + 'static,
) -> Result<Service<S>, CreateError> {
    let core = core.clone();
    let options = ServiceOptions::new(name).callback_group(group);
    node.create_service::<S>(options, move |_| handler(core.upgrade()))
}

fn transition_descriptions<'s>(
    transitions: impl Iterator<Item = &'s LifecycleTransition>,
) -> GetAvailableTransitionsResponse {
    let descriptions = transitions.map(|transition| TransitionDescription {
        transition: transition_message(transition),
        start_state: state_message(transition.start),
        goal_state: state_message(transition.goal),
    });
    GetAvailableTransitionsResponse {
        available_transitions: descriptions.collect(),
    }
}
