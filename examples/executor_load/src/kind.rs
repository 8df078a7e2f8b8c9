//! The executors, all in one shape.

use std::error::Error;
use std::thread::JoinHandle;

use pteros::prelude::*;
use pteros::{
    Chain, ChainExecutor, ExecutorHandle, IsolatedExecutor, MultiThreadedExecutor, StaticExecutor,
    ThreadSettings,
};

use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::thread::Priority;

/// Which executor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// None: a plain epoll loop over eventfds.
    Floor,
    Single,
    /// Two threads.
    Multi,
    /// A thread per node.
    Isolated,
    Static,
    Chain,
}

impl Kind {
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

/// The threads of [`Kind::Multi`].
pub const THREADS: usize = 2;

/// An executor that is spun by threads of its own.
pub struct Spun {
    cancel: Box<dyn Fn()>,
    threads: Vec<JoinHandle<()>>,
}

/// Spins nodes; `urgent` goes before the others where the executor can do that.
pub fn spin(
    kind: Kind,
    context: &Context,
    nodes: Vec<Node>,
    urgent: Option<(Node, Subscription<UInt64>)>,
) -> Result<Spun, Box<dyn Error>> {
    let all = nodes.iter().chain(urgent.as_ref().map(|(node, _)| node));
    let by_handle = |handle: ExecutorHandle| Box::new(move || handle.cancel());
    Ok(match kind {
        Kind::Floor | Kind::Static => return Err("it is not asked this".into()),
        Kind::Single => {
            let executor = SingleThreadedExecutor::new(context);
            for node in all {
                executor.add_node(node)?;
            }
            Spun {
                cancel: by_handle(executor.handle()),
                threads: vec![std::thread::spawn(move || executor.spin())],
            }
        }
        Kind::Chain => {
            let executor = ChainExecutor::new(context);
            for node in all {
                executor.add_node(node)?;
            }
            if let Some((_, subscription)) = &urgent {
                executor.add_chain(&Chain::new("urgent", 1).then(subscription))?;
            }
            Spun {
                cancel: by_handle(executor.handle()),
                threads: vec![std::thread::spawn(move || executor.spin())],
            }
        }
        Kind::Multi => {
            let executor = MultiThreadedExecutor::new(context, THREADS);
            for node in all {
                executor.add_node(node)?;
            }
            Spun {
                cancel: by_handle(executor.handle()),
                threads: vec![std::thread::spawn(move || {
                    if let Err(error) = executor.spin() {
                        eprintln!("{error}");
                    }
                })],
            }
        }
        Kind::Isolated => {
            let executor = std::sync::Arc::new(IsolatedExecutor::new(context));
            for node in &nodes {
                executor.add_node(node, ThreadSettings::default())?;
            }
            if let Some((node, _)) = &urgent {
                executor.add_node(node, urgent_thread()?)?;
            }
            let cancel = executor.clone();
            Spun {
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

/// As urgent as this process may make a thread.
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

impl Spun {
    /// Ends it.
    pub fn end(self) {
        (self.cancel)();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Steps of a static executor: a subscription each, which counts.
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
