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

/// The executor in its current form of waiting for work.
enum Turn {
    /// The thread that spins.
    Spinning(SingleThreadedExecutor),
    /// The program's event loop, by a descriptor.
    Polled(PolledExecutor),
    /// The descriptor could not be made.
    Lost,
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
        match &*self.turn()? {
            Turn::Spinning(executor) => Ok(spin(executor)),
            Turn::Polled(_) => Err(Error::failed(
                "the executor has a descriptor; call pteros_executor_spin_some when it is \
                 readable",
            )),
            Turn::Lost => Err(lost()),
        }
    }
}

fn lost() -> Error {
    Error::failed(
        "the executor ended when pteros_executor_fd could not make a descriptor; close files, \
         free it and create another",
    )
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
            turn: Mutex::new(Turn::Spinning(executor)),
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
        let count = match &*executor.turn()? {
            Turn::Spinning(executor) => executor.spin_some(),
            Turn::Polled(executor) => executor.spin_some(),
            Turn::Lost => return Err(lost()),
        };
        if let Some(ran) = ran {
            *ran = count;
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
        *turn = match std::mem::replace(&mut *turn, Turn::Lost) {
            Turn::Spinning(executor) => {
                Turn::Polled(PolledExecutor::new(executor).map_err(|error| {
                    Error::failed(format!(
                        "no descriptor: {error}; close files, free the executor and create \
                         another"
                    ))
                })?)
            }
            kept => kept,
        };
        match &*turn {
            Turn::Polled(executor) => *fd = executor.as_fd().as_raw_fd(),
            Turn::Spinning(_) | Turn::Lost => {
                return Err(lost());
            }
        }
        Ok(())
    })
}
