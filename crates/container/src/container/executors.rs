//! Executors of a container: which thread runs the callbacks of which component.
#![allow(clippy::disallowed_methods, reason = "components may have own threads")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;
use pteros::{
    Context, Node,
    executors::{
        ExecutorError, ExecutorHandle, MultiThreadedExecutor, PanicPolicy, SingleThreadedExecutor,
    },
    thread::ThreadSettings,
};

/// Which threads run the callbacks of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutorKind {
    /// One thread for the container and all components
    /// (`component_container`).
    #[default]
    Single,
    /// This number of threads for all components; zero for one per core
    /// (`component_container_mt`).
    Multi(usize),
    /// One thread per component and one for the container
    /// (`component_container_isolated`).
    Isolated,
}

impl FromStr for ExecutorKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "single" => Self::Single,
            "multi" => Self::Multi(0),
            "isolated" => Self::Isolated,
            _ => {
                return Err(format!(
                    "unknown executor {word:?}; use single, multi or isolated"
                ));
            }
        })
    }
}

/// One executor for all components, or a thread for each of them.
pub(super) struct ContainerExecutors {
    context: Context,
    shared: SharedExecutor,
    is_isolated: bool,
    handle: ExecutorHandle,
}

enum SharedExecutor {
    Single(Mutex<SingleThreadedExecutor>),
    Multi(MultiThreadedExecutor),
}

/// The executor that runs a component's callbacks.
pub(super) enum ExecutorAssignment {
    Shared(Node),
    Dedicated(DedicatedThread),
}

/// A thread that spins one component.
pub(super) struct DedicatedThread {
    handle: ExecutorHandle,
    thread: JoinHandle<()>,
}

impl ContainerExecutors {
    pub(super) fn new(context: &Context, kind: ExecutorKind) -> Self {
        // A panic in one component must not end the others.
        let policy = PanicPolicy::Node;
        let (shared, handle) = match kind {
            ExecutorKind::Single | ExecutorKind::Isolated => {
                let executor = SingleThreadedExecutor::with_panic_policy(context, policy);
                let handle = executor.handle();
                (SharedExecutor::Single(Mutex::new(executor)), handle)
            }
            ExecutorKind::Multi(threads) => {
                let executor = MultiThreadedExecutor::with_panic_policy(context, threads, policy);
                let handle = executor.handle();
                (SharedExecutor::Multi(executor), handle)
            }
        };
        Self {
            context: context.clone(),
            shared,
            is_isolated: kind == ExecutorKind::Isolated,
            handle,
        }
    }

    pub(super) fn add_manager(&self, node: &Node) -> Result<(), ExecutorError> {
        self.handle.add_node(node)
    }

    /// Runs a component's callbacks from now on. It gets its own thread if the
    /// container is isolated or `own` gives thread settings.
    pub(super) fn add(
        &self,
        node: &Node,
        own: Option<ThreadSettings>,
    ) -> Result<ExecutorAssignment, ExecutorError> {
        match own.or_else(|| self.is_isolated.then(ThreadSettings::default)) {
            Some(settings) => Ok(ExecutorAssignment::Dedicated(DedicatedThread::start(
                &self.context,
                node,
                settings,
            )?)),
            None => {
                self.handle.add_node(node)?;
                Ok(ExecutorAssignment::Shared(node.clone()))
            }
        }
    }

    /// Stops running a component's callbacks. Blocks while a callback of a
    /// component with its own thread runs.
    pub(super) fn remove(&self, place: ExecutorAssignment) {
        match place {
            ExecutorAssignment::Shared(node) => {
                self.handle.remove_node(&node);
            }
            ExecutorAssignment::Dedicated(own) => own.stop(),
        }
    }

    pub(super) fn spin(&self) -> Result<(), ExecutorError> {
        match &self.shared {
            SharedExecutor::Single(executor) => match executor.try_lock() {
                Some(executor) => {
                    executor.spin();
                    Ok(())
                }
                None => Err(ExecutorError::AlreadySpinning),
            },
            SharedExecutor::Multi(executor) => executor.spin(),
        }
    }
}

impl DedicatedThread {
    fn start(
        context: &Context,
        node: &Node,
        settings: ThreadSettings,
    ) -> Result<Self, ExecutorError> {
        let executor = SingleThreadedExecutor::with_panic_policy(context, PanicPolicy::Node);
        executor.add_node(node)?;
        let handle = executor.handle();
        let (applied, outcome) = sync_channel(1);
        let run = move || {
            let refused = settings.apply().err();
            let may_spin = refused.is_none();
            // The receiver waits below.
            let _ = applied.send(refused);
            if may_spin {
                executor.spin();
            }
        };
        let thread = Builder::new()
            .name(node.name().into())
            .spawn(run)
            .map_err(|error| ExecutorError::ThreadSpawn {
                reason: error.to_string(),
            })?;
        match outcome.recv().unwrap_or_default() {
            Some(error) => Err(error.into()),
            None => Ok(Self { handle, thread }),
        }
    }

    fn stop(self) {
        self.handle.cancel();
        let joined = catch_unwind(AssertUnwindSafe(|| self.thread.join()));
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the thread of a component ended by a panic");
        }
    }
}
