//! Timers.

use std::ffi::c_void;
use std::time::Duration;

use pteros::{Timer, TimerOptions};

use crate::argument::required;
use crate::callback::{FreeUser, UserData};
use crate::error::{self, Error, Outcome, Status};
use crate::node::PterosNode;

/// `pteros_timer_t`.
pub struct PterosTimer(Timer);

/// `pteros_callback_t`.
pub(crate) type Callback = Option<extern "C" fn(user: *mut c_void)>;

fn period(nanoseconds: i64) -> Outcome<Duration> {
    match u64::try_from(nanoseconds) {
        Ok(nanoseconds @ 1..) => Ok(Duration::from_nanos(nanoseconds)),
        _ => Err(Error::argument(format!(
            "period_ns is {nanoseconds}; use 1 or more"
        ))),
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_timer_new(
    node: Option<&PterosNode>,
    period_ns: i64,
    on_ros_time: bool,
    callback: Callback,
    user: *mut c_void,
    free_user: FreeUser,
) -> Option<Box<PterosTimer>> {
    let user = UserData::new(user, free_user);
    error::create("pteros_timer_new", || {
        let node = &required(node, "node")?.node;
        let callback = callback.ok_or_else(|| crate::argument::null("callback"))?;
        let mut options = TimerOptions::new(period(period_ns)?);
        if on_ros_time {
            options = options.on_ros_time();
        }
        let timer = node.create_timer(options, move || callback(user.pointer()))?;
        Ok(PterosTimer(timer))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_timer_free(timer: Option<Box<PterosTimer>>) {
    error::free("pteros_timer_free", timer);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_timer_cancel(timer: Option<&PterosTimer>) -> Status {
    error::run("pteros_timer_cancel", || {
        required(timer, "timer")?.0.cancel();
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_timer_reset(timer: Option<&PterosTimer>) -> Status {
    error::run("pteros_timer_reset", || {
        required(timer, "timer")?.0.reset();
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_timer_set_period(timer: Option<&PterosTimer>, period_ns: i64) -> Status {
    error::run("pteros_timer_set_period", || {
        required(timer, "timer")?.0.set_period(period(period_ns)?);
        Ok(())
    })
}
