//! Which thread runs whose callbacks.
#![allow(
    clippy::disallowed_methods,
    reason = "components may have threads of their own"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;
use pteros::{
    Context, ExecutorError, ExecutorHandle, MultiThreadedExecutor, Node, PanicPolicy,
    SingleThreadedExecutor, ThreadSettings,
};

/// Which threads run the callbacks of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutorKind {
    /// One thread for the container and all components
    /// (`component_container`).
    #[default]
    Single,
    /// So many threads for all; zero for as many as there are cores
    /// (`component_container_mt`).
    Multi(usize),
    /// A thread for each component, one for the container
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
                    "executor {word:?} is not known; use single, multi or isolated"
                ));
            }
        })
    }
}

/// The executors of a container.
pub(super) struct Crew {
    context: Context,
    common: Common,
    is_isolated: bool,
    handle: ExecutorHandle,
}

enum Common {
    Single(Mutex<SingleThreadedExecutor>),
    Multi(MultiThreadedExecutor),
}

/// Where a component's callbacks run.
pub(super) enum Place {
    Common(Node),
    Own(OwnThread),
}

/// A thread that spins one component.
pub(super) struct OwnThread {
    handle: ExecutorHandle,
    thread: JoinHandle<()>,
}

impl Crew {
    pub(super) fn new(context: &Context, kind: ExecutorKind) -> Self {
        // A component that panics must not take the others along.
        let policy = PanicPolicy::Node;
        let (common, handle) = match kind {
            ExecutorKind::Single | ExecutorKind::Isolated => {
                let executor = SingleThreadedExecutor::with_panic_policy(context, policy);
                let handle = executor.handle();
                (Common::Single(Mutex::new(executor)), handle)
            }
            ExecutorKind::Multi(threads) => {
                let executor = MultiThreadedExecutor::with_panic_policy(context, threads, policy);
                let handle = executor.handle();
                (Common::Multi(executor), handle)
            }
        };
        Self {
            context: context.clone(),
            common,
            is_isolated: kind == ExecutorKind::Isolated,
            handle,
        }
    }

    pub(super) fn add_manager(&self, node: &Node) -> Result<(), ExecutorError> {
        self.handle.add_node(node)
    }

    /// Spins a component from now on, on a thread of its own if the container is
    /// isolated or `own` says how the thread is to be.
    pub(super) fn add(
        &self,
        node: &Node,
        own: Option<ThreadSettings>,
    ) -> Result<Place, ExecutorError> {
        match own.or_else(|| self.is_isolated.then(ThreadSettings::default)) {
            Some(settings) => Ok(Place::Own(OwnThread::start(&self.context, node, settings)?)),
            None => {
                self.handle.add_node(node)?;
                Ok(Place::Common(node.clone()))
            }
        }
    }

    /// Spins no more what was there. Blocks while a callback of a component with a
    /// thread of its own runs.
    pub(super) fn remove(&self, place: Place) {
        match place {
            Place::Common(node) => {
                self.handle.remove_node(&node);
            }
            Place::Own(own) => own.end(),
        }
    }

    pub(super) fn spin(&self) -> Result<(), ExecutorError> {
        match &self.common {
            Common::Single(executor) => match executor.try_lock() {
                Some(executor) => {
                    executor.spin();
                    Ok(())
                }
                None => Err(ExecutorError::AlreadySpinning),
            },
            Common::Multi(executor) => executor.spin(),
        }
    }
}

impl OwnThread {
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
            // Somebody waits just below.
            let _ = applied.send(refused);
            if may_spin {
                executor.spin();
            }
        };
        let thread = Builder::new()
            .name(node.name().into())
            .spawn(run)
            .map_err(|error| ExecutorError::NoThread {
                reason: error.to_string(),
            })?;
        match outcome.recv().unwrap_or_default() {
            Some(error) => Err(error.into()),
            None => Ok(Self { handle, thread }),
        }
    }

    fn end(self) {
        self.handle.cancel();
        let joined = catch_unwind(AssertUnwindSafe(|| self.thread.join()));
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the thread of a component ended by a panic");
        }
    }
}
