//! Starts and ends the contexts of simulated processes.

use std::sync::Arc;

use pteros_runtime::{Core, CoreOptions, DriverState};

use super::event_loop::EventLoop;
use super::platform::SimEnv;
use super::process::{RunningProcess, unique};

/// Size of a receive buffer that never fills up.
const BUFFER_BYTES: usize = 8 << 20;

/// Size of a receive buffer that may fill up.
const BUFFER_BYTES_SMALL: usize = 64 << 10;

/// How a process starts.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartOptions {
    /// It returns with the GUID prefix of its previous incarnation.
    pub reuses_guid: bool,
    /// Its receive buffer is small.
    pub has_small_buffer: bool,
}

impl EventLoop {
    /// Starts a process with a context. Fails the run (I11) if it cannot start.
    pub fn start(self: &Arc<Self>, process: usize, how: StartOptions, options: CoreOptions) {
        let mut env = self.next_env(process, how.reuses_guid);
        if how.has_small_buffer {
            env.buffer_bytes = BUFFER_BYTES_SMALL;
        }
        match Core::open(Arc::new(env), options) {
            Ok(core) => {
                let queue = core.ready_queue();
                self.processes()[process].running = Some(RunningProcess {
                    core,
                    state: Some(DriverState::default()),
                    queue,
                    nodes: Vec::new(),
                });
            }
            Err(error) => self.fail(format!("I11 p{process}: cannot start: {error}")),
        }
    }

    /// The platform for the next external context of a process.
    pub fn external_env(self: &Arc<Self>, process: usize) -> SimEnv {
        SimEnv {
            is_external: true,
            ..self.next_env(process, false)
        }
    }

    /// The platform of the next incarnation of a process.
    fn next_env(self: &Arc<Self>, process: usize, reuses_guid: bool) -> SimEnv {
        let mut processes = self.processes();
        let entry = &mut processes[process];
        entry.incarnations += 1;
        if !reuses_guid {
            entry.identity = entry.incarnations;
        }
        SimEnv {
            world: Arc::downgrade(self),
            process,
            host: entry.host,
            unique: unique(process, entry.identity),
            is_external: false,
            disk: None,
            buffer_bytes: BUFFER_BYTES,
        }
    }

    /// Stops a process. `gracefully` announces the departure to peers.
    pub fn end(&self, process: usize, gracefully: bool) {
        let (running, socket) = {
            let mut processes = self.processes();
            (
                processes[process].running.take(),
                processes[process].socket.take(),
            )
        };
        let Some(running) = running else { return };
        if gracefully {
            running.core.close();
        }
        if let Some(socket) = socket {
            let now = self.now();
            self.network().close(now, socket);
        }
    }
}
