//! Executors: the thread that spins receives messages and calls callbacks. An executor can
//! be part of another event loop, by a pollable descriptor.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pteros::executors::{ExecutorHandle, PolledExecutor, SingleThreadedExecutor};

use crate::argument::{output, required, timeout};
use crate::context::PterosContext;
use crate::error::{self, Error, Outcome, Status};
use crate::node::PterosNode;

/// `pteros_executor_t`. A call that runs callbacks holds the executor, because a callback
/// may free the handle.
pub struct PterosExecutor(Arc<Executor>);

struct Executor {
    handle: ExecutorHandle,
    turn: Mutex<Turn>,
}

/// The executor of a handle that may be freed meanwhile.
fn held(executor: *const PterosExecutor) -> Outcome<Arc<Executor>> {
    // SAFETY: the contract of C (lib.rs). The reference ends here.
    let executor = unsafe { executor.as_ref() };
    Ok(required(executor, "executor")?.0.clone())
}

/// The executor in its current form of waiting for work: one of the two.
struct Turn {
    /// The thread that spins.
    spun: Option<SingleThreadedExecutor>,
    /// The program's event loop, by a descriptor.
    polled: Option<PolledExecutor>,
}

impl Executor {
    fn turn(&self) -> Outcome<MutexGuard<'_, Turn>> {
        self.turn.try_lock().ok_or_else(|| {
            Error::failed(
                "the executor spins already, in another thread or below this callback; give \
                 that thread an executor of its own",
            )
        })
    }

    fn spin<T>(&self, spin: impl FnOnce(&SingleThreadedExecutor) -> T) -> Outcome<T> {
        match &self.turn()?.spun {
            Some(executor) => Ok(spin(executor)),
            None => Err(Error::failed(
                "the executor has a descriptor; call pteros_executor_spin_some when it is \
                 readable",
            )),
        }
    }
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_new(
    context: Option<&PterosContext>,
) -> Option<Box<PterosExecutor>> {
    error::create("pteros_executor_new", || {
        let executor = SingleThreadedExecutor::new(&required(context, "context")?.0);
        Ok(PterosExecutor(Arc::new(Executor {
            handle: executor.handle(),
            turn: Mutex::new(Turn {
                spun: Some(executor),
                polled: None,
            }),
        })))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_free(executor: Option<Box<PterosExecutor>>) {
    // Freed by a callback, it ends with the spin.
    if let Some(executor) = &executor {
        executor.0.handle.cancel();
    }
    error::free("pteros_executor_free", executor);
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_add_node(
    executor: Option<&PterosExecutor>,
    node: Option<&PterosNode>,
) -> Status {
    error::run("pteros_executor_add_node", || {
        let node = &required(node, "node")?.node;
        Ok(required(executor, "executor")?.0.handle.add_node(node)?)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_remove_node(
    executor: Option<&PterosExecutor>,
    node: Option<&PterosNode>,
) -> Status {
    error::run("pteros_executor_remove_node", || {
        let node = &required(node, "node")?.node;
        if required(executor, "executor")?.0.handle.remove_node(node) {
            return Ok(());
        }
        Err(Error::argument(format!(
            "node {:?} is not in this executor",
            node.fully_qualified_name()
        )))
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_spin(executor: *const PterosExecutor) -> Status {
    error::run("pteros_executor_spin", || {
        held(executor)?.spin(SingleThreadedExecutor::spin)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_spin_once(
    executor: *const PterosExecutor,
    timeout_ns: i64,
    ran: *mut bool,
) -> Status {
    error::run("pteros_executor_spin_once", || {
        let executor = held(executor)?;
        let any = executor.spin(|executor| executor.spin_once(timeout(timeout_ns)))?;
        if !ran.is_null() {
            // SAFETY: the contract of C (lib.rs).
            unsafe { ran.write(any) };
        }
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_spin_some(
    executor: *const PterosExecutor,
    ran: Option<&mut usize>,
) -> Status {
    error::run("pteros_executor_spin_some", || {
        let executor = held(executor)?;
        let turn = executor.turn()?;
        let spun = turn.spun.as_ref().map(SingleThreadedExecutor::spin_some);
        let polled = turn.polled.as_ref().map(PolledExecutor::spin_some);
        if let Some(ran) = ran {
            *ran = spun.or(polled).unwrap_or(0);
        }
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_spin_for(
    executor: *const PterosExecutor,
    duration_ns: i64,
) -> Status {
    error::run("pteros_executor_spin_for", || {
        let executor = held(executor)?;
        let spin =
            |executor: &SingleThreadedExecutor| executor.spin_until(|| false, timeout(duration_ns));
        executor.spin(spin).map(drop)
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_cancel(executor: Option<&PterosExecutor>) -> Status {
    error::run("pteros_executor_cancel", || {
        required(executor, "executor")?.0.handle.cancel();
        Ok(())
    })
}

/// See `pteros.h`.
#[unsafe(no_mangle)]
pub extern "C" fn pteros_executor_fd(
    executor: Option<&PterosExecutor>,
    fd: Option<&mut i32>,
) -> Status {
    error::run("pteros_executor_fd", || {
        let fd = output(fd, "fd")?;
        let mut turn = required(executor, "executor")?.0.turn()?;
        if let Some(executor) = turn.spun.take() {
            match PolledExecutor::try_new(executor) {
                Ok(polled) => turn.polled = Some(polled),
                Err(refused) => {
                    let error = Error::failed(&refused);
                    turn.spun = Some(refused.executor);
                    return Err(error);
                }
            }
        }
        if let Some(polled) = &turn.polled {
            *fd = polled.as_fd().as_raw_fd();
        }
        Ok(())
    })
}
