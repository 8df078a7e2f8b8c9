//! Action clients.

use std::ffi::{c_char, c_void};

use pteros::action::{ActionClient, ActionClientOptions, ClientGoalHandle};

use crate::argument::{null, output, required, text, timeout};
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Error, Status};
use crate::message::{ActionSupport, CAction, CMessage};
use crate::node::PterosNode;
use crate::types::{self, ActionTable};

/// `pteros_action_client_t`.
pub struct PterosActionClient {
    client: ActionClient<CAction>,
    ty: ActionSupport,
}

/// `pteros_client_goal_t`.
pub struct PterosClientGoal(ClientGoalHandle<CAction>);

/// `pteros_feedback_callback_t`.
type FeedbackCallback = Option<extern "C" fn(feedback: *const c_void, user: *mut c_void)>;

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_action_client_new(
    node: Option<&PterosNode>,
    table: Option<&ActionTable>,
    name: *const c_char,
) -> Option<Box<PterosActionClient>> {
    error::create("pteros_action_client_new", || {
        let node = &required(node, "node")?.node;
        let ty = types::action(table)?;
        let options = ActionClientOptions::<CAction>::of_type(&ty, text(name, "name")?);
        let client = node.create_action_client(options)?;
        Ok(PterosActionClient { client, ty })
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_action_client_free(client: Option<Box<PterosActionClient>>) {
    error::free("pteros_action_client_free", client);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_action_client_wait_for_server(
    client: Option<&PterosActionClient>,
    timeout_ns: i64,
) -> Status {
    error::run("pteros_action_client_wait_for_server", || {
        let client = &required(client, "client")?.client;
        if client.wait_for_action_server(timeout(timeout_ns)) {
            return Ok(());
        }
        Err(Error::new(
            Status::Timeout,
            format!(
                "action {:?}: no server is available; start one, or compare names and types",
                client.action_name()
            ),
        ))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_action_client_send_goal(
    client: Option<&PterosActionClient>,
    goal: *const c_void,
    timeout_ns: i64,
    on_feedback: FeedbackCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosClientGoal>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_action_client_send_goal", || {
        let client = required(client, "client")?;
        if goal.is_null() {
            return Err(null("goal"));
        }
        // SAFETY: the contract of C (lib.rs).
        let goal = unsafe { CMessage::copy_of(&client.ty.goal, goal) }?;
        let timeout = timeout(timeout_ns);
        let handle = match on_feedback {
            Some(on_feedback) => client.client.send_goal_with_feedback(
                goal,
                move |feedback: &CMessage| on_feedback(feedback.address(), user.pointer()),
                timeout,
            )?,
            None => client.client.send_goal(goal, timeout)?,
        };
        Ok(PterosClientGoal(handle))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_goal_free(goal: Option<Box<PterosClientGoal>>) {
    error::free("pteros_client_goal_free", goal);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_goal_id(
    goal: Option<&PterosClientGoal>,
    id: Option<&mut [u8; 16]>,
) -> Status {
    error::run("pteros_client_goal_id", || {
        *output(id, "id")? = required(goal, "goal")?.0.id();
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_goal_status(goal: Option<&PterosClientGoal>) -> i8 {
    error::value("pteros_client_goal_status", 0, || {
        Ok(required(goal, "goal")?.0.status() as i8)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_goal_result(
    goal: Option<&PterosClientGoal>,
    timeout_ns: i64,
    status: Option<&mut i8>,
    result: *mut c_void,
) -> Status {
    error::run("pteros_client_goal_result", || {
        let goal = &required(goal, "goal")?.0;
        if result.is_null() {
            return Err(null("result"));
        }
        let end = goal.result(timeout(timeout_ns))?;
        // SAFETY: the contract of C (lib.rs).
        unsafe { end.result.copy_to(result) }?;
        if let Some(status) = status {
            *status = end.status as i8;
        }
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_client_goal_cancel(
    goal: Option<&PterosClientGoal>,
    timeout_ns: i64,
) -> Status {
    error::run("pteros_client_goal_cancel", || {
        Ok(required(goal, "goal")?.0.cancel(timeout(timeout_ns))?)
    })
}
