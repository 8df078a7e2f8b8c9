//! Guard conditions of rmw: the handles of those of `rcl`.

use std::ffi::c_void;
use std::sync::Arc;

use pteros_rcl::guard_condition::GuardCondition as GuardState;

use crate::abi::{Context, GuardCondition, Ret};
use crate::context::state;
use crate::error::{IDENTIFIER, check_identifier, create, non_null, run, run_end};
use crate::handle::Handle;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_create_guard_condition(context: *mut Context) -> *mut GuardCondition {
    create("rmw_create_guard_condition", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe { state(context) }?;
        Ok(handle_of(Arc::default(), context).into_raw())
    })
}

/// Builds the handle of a guard condition.
pub(crate) fn handle_of(
    guard: Arc<GuardState>,
    context: *mut Context,
) -> Handle<GuardCondition, GuardState> {
    let abi = GuardCondition {
        implementation_identifier: IDENTIFIER.as_ptr(),
        data: Arc::as_ptr(&guard).cast::<c_void>().cast_mut(),
        context,
    };
    Handle::new(abi, guard, Default::default())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_destroy_guard_condition(guard: *mut GuardCondition) -> Ret {
    run_end("rmw_destroy_guard_condition", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            check_identifier(
                non_null(guard, "guard_condition")?.implementation_identifier,
                "guard condition",
            )?;
            Handle::<GuardCondition, GuardState>::state(guard)?;
            Handle::<GuardCondition, GuardState>::destroy(guard);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rmw_trigger_guard_condition(guard: *const GuardCondition) -> Ret {
    run("rmw_trigger_guard_condition", || {
        // SAFETY: the contract of rmw (lib.rs).
        unsafe {
            let guard = non_null(guard, "guard_condition")?;
            check_identifier(guard.implementation_identifier, "guard condition")?;
            Handle::<GuardCondition, GuardState>::state(guard)?.trigger();
        }
        Ok(())
    })
}
