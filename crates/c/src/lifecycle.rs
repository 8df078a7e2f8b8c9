//! Lifecycle nodes (managed nodes): one callback of C for all transitions. States,
//! transitions and services are the client library's.

use std::ffi::{c_char, c_int, c_void};

use pteros::lifecycle::{
    CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState, LifecycleTransition,
    TransitionError,
};

use crate::argument::{c_text, null, required, text};
use crate::callback::{FreeUser, UserData};
use crate::context::PterosContext;
use crate::error::{self, Error, Outcome, Status};
use crate::node::{self, PterosNode};

/// `pteros_lifecycle_node_t`.
pub struct PterosLifecycleNode {
    lifecycle: LifecycleNode,
    node: PterosNode,
}

/// `pteros_transition_callback_t`.
type TransitionCallback =
    Option<extern "C" fn(entered: u8, previous: u8, user: *mut c_void) -> c_int>;
/// `pteros_transition_visitor_t`.
type TransitionVisitor =
    Option<extern "C" fn(id: u8, label: *const c_char, goal: u8, user: *mut c_void)>;

/// `PTEROS_CALLBACK_SUCCESS`, as `lifecycle_msgs/msg/Transition` has it.
const SUCCESS: c_int = 97;
/// `PTEROS_CALLBACK_FAILURE`.
const FAILURE: c_int = 98;

struct Callbacks {
    callback: TransitionCallback,
    user: UserData,
}

impl Callbacks {
    fn call(&self, entered: LifecycleState, previous: LifecycleState) -> CallbackReturn {
        let Some(callback) = self.callback else {
            return CallbackReturn::Success;
        };
        match callback(entered.id(), previous.id(), self.user.pointer()) {
            SUCCESS => CallbackReturn::Success,
            FAILURE => CallbackReturn::Failure,
            _ => CallbackReturn::Error,
        }
    }
}

impl LifecycleCallbacks for Callbacks {
    fn on_configure(&mut self, _: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        self.call(LifecycleState::Configuring, previous)
    }

    fn on_cleanup(&mut self, _: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        self.call(LifecycleState::CleaningUp, previous)
    }

    fn on_activate(&mut self, _: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        self.call(LifecycleState::Activating, previous)
    }

    fn on_deactivate(&mut self, _: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        self.call(LifecycleState::Deactivating, previous)
    }

    fn on_shutdown(&mut self, _: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        self.call(LifecycleState::ShuttingDown, previous)
    }

    fn on_error(&mut self, _: &LifecycleNode, previous: LifecycleState) -> CallbackReturn {
        self.call(LifecycleState::ErrorProcessing, previous)
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_new(
    context: Option<&PterosContext>,
    name: *const c_char,
    namespace: *const c_char,
    callback: TransitionCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosLifecycleNode>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_lifecycle_node_new", || {
        let options = node::options(name, namespace)?;
        let context = &required(context, "context")?.0;
        let lifecycle = LifecycleNode::new(context, options, Callbacks { callback, user })?;
        Ok(PterosLifecycleNode {
            node: PterosNode::new(lifecycle.node().clone()),
            lifecycle,
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_free(node: Option<Box<PterosLifecycleNode>>) {
    error::free("pteros_lifecycle_node_free", node);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_node(
    node: Option<&PterosLifecycleNode>,
) -> Option<&PterosNode> {
    error::value("pteros_lifecycle_node_node", None, || {
        Ok(Some(&required(node, "node")?.node))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_state(node: Option<&PterosLifecycleNode>) -> u8 {
    error::value("pteros_lifecycle_node_state", 0, || {
        Ok(required(node, "node")?.lifecycle.state().id())
    })
}

fn change(
    node: Option<&PterosLifecycleNode>,
    reached: Option<&mut u8>,
    change: impl FnOnce(&LifecycleNode) -> Outcome<Result<LifecycleState, TransitionError>>,
) -> Outcome {
    let node = &required(node, "node")?.lifecycle;
    let outcome = change(node);
    if let Some(reached) = reached {
        *reached = node.state().id();
    }
    outcome??;
    Ok(())
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_change_state(
    node: Option<&PterosLifecycleNode>,
    transition: u8,
    state: Option<&mut u8>,
) -> Status {
    error::run("pteros_lifecycle_node_change_state", || {
        change(node, state, |node| {
            let mut all = LifecycleTransition::all().iter();
            let known = all.find(|known| known.id == transition && known.is_requestable());
            let known = known.ok_or_else(|| {
                Error::argument(format!(
                    "{transition} is no transition; pass one of PTEROS_TRANSITION_..."
                ))
            })?;
            Ok(node.change_state(*known))
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_change_state_by_label(
    node: Option<&PterosLifecycleNode>,
    label: *const c_char,
    state: Option<&mut u8>,
) -> Status {
    error::run("pteros_lifecycle_node_change_state_by_label", || {
        change(node, state, |node| {
            Ok(node.change_state_by_label(text(label, "label")?))
        })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_lifecycle_node_visit_transitions(
    node: Option<&PterosLifecycleNode>,
    visitor: TransitionVisitor,
    user: *mut c_void,
) -> Status {
    error::run("pteros_lifecycle_node_visit_transitions", || {
        let state = required(node, "node")?.lifecycle.state();
        let visitor = visitor.ok_or_else(|| null("visitor"))?;
        let transitions = state.transitions();
        for one in transitions.filter(|transition| transition.is_requestable()) {
            visitor(one.id, c_text(one.label).as_ptr(), one.goal.id(), user);
        }
        Ok(())
    })
}
