//! The measured executors with one interface.

use std::error::Error;
use std::thread::JoinHandle;

use pteros::prelude::*;
use pteros::{
    executors::{
        Chain, ChainExecutor, ExecutorHandle, IsolatedExecutor, MultiThreadedExecutor,
        StaticExecutor,
    },
    thread::ThreadSettings,
};

use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::thread::Priority;

/// The measured executor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ExecutorKind {
    /// No executor: a plain epoll loop over eventfds.
    Floor,
    Single,
    /// Two threads.
    Multi,
    /// One thread per node.
    Isolated,
    Static,
    Chain,
}

impl ExecutorKind {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "floor" => Self::Floor,
            "single" => Self::Single,
            "multi" => Self::Multi,
            "isolated" => Self::Isolated,
            "static" => Self::Static,
            "chain" => Self::Chain,
            _ => return None,
        })
    }
}

/// Number of threads of [`ExecutorKind::Multi`].
pub const THREADS: usize = 2;

/// An executor that spins on its own threads.
pub struct SpinningExecutor {
    cancel: Box<dyn Fn()>,
    threads: Vec<JoinHandle<()>>,
}

/// Spins nodes. `urgent` has the highest priority, if the executor supports
/// priorities.
pub fn spin(
    kind: ExecutorKind,
    context: &Context,
    nodes: Vec<Node>,
    urgent: Option<(Node, Subscription<UInt64>)>,
) -> Result<SpinningExecutor, Box<dyn Error>> {
    let all = nodes.iter().chain(urgent.as_ref().map(|(node, _)| node));
    let by_handle = |handle: ExecutorHandle| Box::new(move || handle.cancel());
    Ok(match kind {
        ExecutorKind::Floor | ExecutorKind::Static => {
            return Err("this executor does not support the measurement".into());
        }
        ExecutorKind::Single => {
            let executor = SingleThreadedExecutor::new(context);
            for node in all {
                executor.add_node(node)?;
            }
            SpinningExecutor {
                cancel: by_handle(executor.handle()),
                threads: vec![std::thread::spawn(move || executor.spin())],
            }
        }
        ExecutorKind::Chain => {
            let executor = ChainExecutor::new(context);
            for node in all {
                executor.add_node(node)?;
            }
            if let Some((_, subscription)) = &urgent {
                executor.add_chain(&Chain::new("urgent", 1).then(subscription))?;
            }
            SpinningExecutor {
                cancel: by_handle(executor.handle()),
                threads: vec![std::thread::spawn(move || executor.spin())],
            }
        }
        ExecutorKind::Multi => {
            let executor = MultiThreadedExecutor::new(context, THREADS);
            for node in all {
                executor.add_node(node)?;
            }
            SpinningExecutor {
                cancel: by_handle(executor.handle()),
                threads: vec![std::thread::spawn(move || {
                    if let Err(error) = executor.spin() {
                        eprintln!("{error}");
                    }
                })],
            }
        }
        ExecutorKind::Isolated => {
            let executor = std::sync::Arc::new(IsolatedExecutor::new(context));
            for node in &nodes {
                executor.add_node(node, ThreadSettings::default())?;
            }
            if let Some((node, _)) = &urgent {
                executor.add_node(node, urgent_thread()?)?;
            }
            let cancel = executor.clone();
            SpinningExecutor {
                cancel: Box::new(move || cancel.cancel()),
                threads: vec![std::thread::spawn(move || {
                    if let Err(error) = executor.spin() {
                        eprintln!("{error}");
                    }
                })],
            }
        }
    })
}

/// Settings of an urgent thread, as far as this process has the privilege.
fn urgent_thread() -> Result<ThreadSettings, Box<dyn Error>> {
    let settings = ThreadSettings {
        priority: Some(Priority::new(80)?),
        ..ThreadSettings::default()
    };
    let tried = settings.clone();
    let allowed = std::thread::spawn(move || tried.apply().is_ok()).join();
    Ok(match allowed {
        Ok(true) => settings,
        _ => ThreadSettings::default(),
    })
}

impl SpinningExecutor {
    /// Stops the executor.
    pub fn end(self) {
        (self.cancel)();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// The steps of a static executor: one counting subscription each.
pub fn static_executor(
    context: &Context,
    subscriptions: &[Subscription<UInt64>],
    callback: impl FnMut(Sample<UInt64>) + Clone + Send + 'static,
) -> Result<StaticExecutor, Box<dyn Error>> {
    let mut executor = StaticExecutor::new(context);
    for subscription in subscriptions {
        executor.add_subscription(subscription, callback.clone())?;
    }
    Ok(executor)
}
