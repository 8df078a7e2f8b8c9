//! Action servers. Goals, their states and the expiry of results are the client library's.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use pteros::action::{
    ActionError, ActionServer, ActionServerOptions, GoalResponse, ServerGoalHandle,
};

use crate::argument::{null, output, required, text};
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Outcome, Status};
use crate::message::{ActionSupport, CAction, CMessage, MessageSupport};
use crate::node::PterosNode;
use crate::types::{self, ActionTable};

/// `pteros_action_server_t`.
pub struct PterosActionServer(#[expect(dead_code, reason = "held")] ActionServer<CAction>);

/// `pteros_goal_t`: a goal that the server has accepted.
pub struct PterosGoal {
    handle: ServerGoalHandle<CAction>,
    ty: ActionSupport,
}

/// `pteros_goal_callback_t`.
type GoalCallback = Option<extern "C" fn(goal: *const c_void, user: *mut c_void) -> c_int>;
/// `pteros_cancel_callback_t`.
type CancelCallback = Option<extern "C" fn(goal_id: *const u8, user: *mut c_void) -> bool>;
/// `pteros_accepted_callback_t`.
type AcceptedCallback = Option<extern "C" fn(goal: Box<PterosGoal>, user: *mut c_void)>;

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_action_server_new(
    node: Option<&PterosNode>,
    table: Option<&ActionTable>,
    name: *const c_char,
    on_goal: GoalCallback,
    on_cancel: CancelCallback,
    on_accepted: AcceptedCallback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosActionServer>> {
    let user = Arc::new(UserData::new(user, free_user));
    error::create("pteros_action_server_new", || {
        let node = &required(node, "node")?.node;
        let on_accepted = on_accepted.ok_or_else(|| null("on_accepted"))?;
        let ty = types::action(table)?;
        let mut options = ActionServerOptions::<CAction>::of_type(&ty, text(name, "name")?);
        if let Some(on_goal) = on_goal {
            let user = user.clone();
            options = options.on_goal(move |goal: &CMessage| {
                match on_goal(goal.address(), user.pointer()) {
                    1 => GoalResponse::AcceptAndExecute,
                    2 => GoalResponse::AcceptAndDefer,
                    _ => GoalResponse::Reject,
                }
            });
        }
        if let Some(on_cancel) = on_cancel {
            let user = user.clone();
            options = options.on_cancel(move |goal: &ServerGoalHandle<CAction>| {
                let id = goal.id();
                on_cancel(id.as_ptr(), user.pointer())
            });
        }
        let server = node.create_action_server(options, move |handle| {
            let goal = PterosGoal {
                handle,
                ty: ty.clone(),
            };
            on_accepted(Box::new(goal), user.pointer());
        })?;
        Ok(PterosActionServer(server))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_action_server_free(server: Option<Box<PterosActionServer>>) {
    error::free("pteros_action_server_free", server);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_message(goal: Option<&PterosGoal>) -> *const c_void {
    error::value("pteros_goal_message", std::ptr::null(), || {
        Ok(required(goal, "goal")?.handle.goal().address())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_id(goal: Option<&PterosGoal>, id: Option<&mut [u8; 16]>) -> Status {
    error::run("pteros_goal_id", || {
        *output(id, "id")? = required(goal, "goal")?.handle.id();
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_status(goal: Option<&PterosGoal>) -> i8 {
    error::value("pteros_goal_status", 0, || {
        Ok(required(goal, "goal")?.handle.status() as i8)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_is_canceling(goal: Option<&PterosGoal>) -> bool {
    error::value("pteros_goal_is_canceling", false, || {
        Ok(required(goal, "goal")?.handle.is_canceling())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_execute(goal: Option<&PterosGoal>) -> Status {
    error::run("pteros_goal_execute", || {
        Ok(required(goal, "goal")?.handle.execute()?)
    })
}

fn copied(ty: &MessageSupport, message: *const c_void, what: &str) -> Outcome<CMessage> {
    if message.is_null() {
        return Err(null(what));
    }
    // SAFETY: the contract of C (lib.rs).
    Ok(unsafe { CMessage::copy_of(ty, message) }?)
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_publish_feedback(
    goal: Option<&PterosGoal>,
    feedback: *const c_void,
) -> Status {
    error::run("pteros_goal_publish_feedback", || {
        let goal = required(goal, "goal")?;
        let feedback = copied(&goal.ty.feedback, feedback, "feedback")?;
        goal.handle.publish_feedback(feedback);
        Ok(())
    })
}

fn end(
    function: &str,
    goal: Option<&PterosGoal>,
    result: *const c_void,
    end: impl FnOnce(&ServerGoalHandle<CAction>, CMessage) -> Result<(), ActionError>,
) -> Status {
    error::run(function, || {
        let goal = required(goal, "goal")?;
        let result = copied(&goal.ty.result, result, "result")?;
        Ok(end(&goal.handle, result)?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_succeed(goal: Option<&PterosGoal>, result: *const c_void) -> Status {
    end(
        "pteros_goal_succeed",
        goal,
        result,
        ServerGoalHandle::succeed,
    )
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_abort(goal: Option<&PterosGoal>, result: *const c_void) -> Status {
    end("pteros_goal_abort", goal, result, ServerGoalHandle::abort)
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_canceled(goal: Option<&PterosGoal>, result: *const c_void) -> Status {
    end(
        "pteros_goal_canceled",
        goal,
        result,
        ServerGoalHandle::canceled,
    )
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_goal_free(goal: Option<Box<PterosGoal>>) {
    error::free("pteros_goal_free", goal);
}
