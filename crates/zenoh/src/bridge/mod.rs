//! Bridge between an RTPS domain and a Zenoh network, for nodes that are not of Pteros.
//!
//! It joins both with a context each, and follows both graphs. It announces publishers and
//! servers of one side on the other (`topic_route`, `service_route`); actions are three
//! services and two topics. Payloads pass as bytes. `plan` decides, from both graphs
//! alone, what is routed, and keeps loops out. `routes` makes it so.
//!
//! Two threads drive a context each and forward what arrives there.

mod counters;
mod network;
mod plan;
mod rate;
mod routes;
mod rules;
mod service_route;
mod topic_route;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use pteros_rtps::time::Duration;
use pteros_runtime::Core;
use thiserror::Error;
use xxhash_rust::xxh3::xxh3_64;

pub use crate::bridge_path::BridgeId;
pub use counters::RouteCounts;
pub use plan::FindHash;
pub use routes::{BridgeEvent, BridgeStatus, RouteKind, RouteReport};
pub use rules::{NameSelection, RuleError, RuleOptions};
pub use view::Side;

use network::{Changed, Network};
use routes::{Routes, Settings};
use rules::Rules;

/// How long a bridge is there before it routes, so that bridges beside it see it and it
/// sees them.
const START_DELAY: Duration = Duration::from_millis(1_000);
/// The least time between two looks at the graphs: a burst of discovery is one change.
const LOOK_GAP: Duration = Duration::from_millis(50);
/// The longest time between two, for what ends by time.
const LOOK_PERIOD: Duration = Duration::from_millis(1_000);
/// Tasks that a thread runs before it looks at the clock.
const TASKS_PER_TURN: usize = 64;

/// Why a bridge does not start.
#[derive(Error)]
pub enum BridgeError {
    /// The rules are wrong.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// The system has no thread left.
    #[error("start a thread of the bridge: {0}")]
    Thread(#[from] std::io::Error),
}

pteros_msg::debug_as_display!(BridgeError);

/// Options of a bridge.
pub struct BridgeOptions {
    /// The rules: chosen names, rates and the namespace.
    pub rules: RuleOptions,
    /// Its id. Random unless set: derived from the GUID of the RTPS context. Bridges that
    /// share a network need different ones; the smallest goes first.
    pub id: Option<BridgeId>,
    /// Finds the hash of a message or service type that its process does not announce, by
    /// the ROS name. Called with locks of the bridge held; must not block for long.
    pub find_hash: Box<FindHash>,
    /// Gets its reports, on its threads, with locks of the bridge held: it must not call
    /// the bridge.
    pub report: Box<dyn Fn(&BridgeEvent) + Send + Sync>,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        Self {
            rules: RuleOptions::default(),
            id: None,
            find_hash: Box::new(|_| None),
            report: Box::new(|_| ()),
        }
    }
}

/// A running bridge. Ends when dropped, which blocks until its threads have ended: up to
/// the time that a publication of theirs may block.
///
/// It also ends when one of its contexts shuts down. Thread-safe.
pub struct Bridge {
    shared: Arc<Shared>,
}

struct Shared {
    id: BridgeId,
    networks: [Arc<Network>; 2],
    routes: Mutex<Routes>,
    changed: Arc<Changed>,
    is_stopped: AtomicBool,
    running: Mutex<usize>,
    has_ended: Condvar,
}

impl Bridge {
    /// Bridges two contexts, the first on RTPS alone, the second on Zenoh alone. Their
    /// owner keeps them open as long as the bridge runs. Does not block. Routes begin a
    /// second later.
    ///
    /// # Errors
    /// See [`BridgeError`].
    pub fn start(
        rtps: &Arc<Core>,
        zenoh: &Arc<Core>,
        options: BridgeOptions,
    ) -> Result<Self, BridgeError> {
        let rules = Rules::new(options.rules)?;
        let id = options.id.unwrap_or_else(|| id_of(rtps));
        let networks = [rtps, zenoh].map(|core| Arc::new(Network::new(core.clone())));
        let changed = Arc::new(Changed::default());
        let settings = Settings {
            own: id,
            rules,
            find_hash: options.find_hash,
            report: options.report,
        };
        let routes = Routes::new(settings, networks.clone(), &changed);
        for network in &networks {
            network.announce(routes.own_path());
        }
        let bridge = Self {
            shared: Arc::new(Shared {
                id,
                networks,
                routes: Mutex::new(routes),
                changed,
                is_stopped: AtomicBool::new(false),
                running: Mutex::new(0),
                has_ended: Condvar::new(),
            }),
        };
        for (at, name) in ["bridge-rtps", "bridge-zenoh"].into_iter().enumerate() {
            let shared = bridge.shared.clone();
            *shared.running.lock() += 1;
            let run = move || {
                let running = Running(shared);
                running.0.run(at);
            };
            if let Err(error) = rtps.platform.spawn(name, Box::new(run)) {
                *bridge.shared.running.lock() -= 1;
                return Err(error.into());
            }
        }
        Ok(bridge)
    }

    /// Its id.
    pub fn id(&self) -> BridgeId {
        self.shared.id
    }

    /// Whether its threads have ended, or are about to: a context of it has shut down, or
    /// a report has panicked.
    pub fn has_ended(&self) -> bool {
        self.shared.is_stopped()
    }

    /// The routes that are there and what they have done. Waits for a look at the graphs
    /// to end.
    pub fn status(&self) -> BridgeStatus {
        self.shared.routes.lock().status()
    }
}

/// A thread of a bridge. Its end, by a panic as well, ends the bridge: half of one would
/// pass requests without replies.
struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
        *self.0.running.lock() -= 1;
        self.0.has_ended.notify_all();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.stop();
        let mut running = shared.running.lock();
        while *running > 0 {
            shared.has_ended.wait(&mut running);
        }
        drop(running);
        let mut routes = shared.routes.lock();
        routes.end_all();
        for network in &shared.networks {
            network.withdraw(routes.own_path());
        }
    }
}

impl Shared {
    /// Drives one side until the bridge stops.
    fn run(&self, at: usize) {
        let Some(network) = self.networks.get(at) else {
            return;
        };
        let core = &network.core;
        let mut seen = 0;
        let mut is_due = false;
        // Each context has a clock of its own.
        let begins_at = core.platform.now().after(START_DELAY);
        let mut last = begins_at;
        let mut next = begins_at;
        while !self.is_stopped() && !core.is_shut_down() {
            core.drive_until(&network.queue, next, || {
                for _ in 0..TASKS_PER_TURN {
                    match network.queue.pop() {
                        Some(task) => task.run(),
                        None => break,
                    }
                }
                let brings_forward =
                    !is_due && (core.graph().revision() != seen || self.changed.take());
                is_due |= brings_forward;
                brings_forward || self.is_stopped()
            });
            if is_due {
                next = next.min(last.after(LOOK_GAP)).max(begins_at);
            }
            if core.platform.now() < next {
                continue;
            }
            seen = core.graph().revision();
            is_due = false;
            let is_waiting = self.routes.lock().reconcile();
            last = core.platform.now();
            next = last.after(if is_waiting { LOOK_GAP } else { LOOK_PERIOD });
        }
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        for network in &self.networks {
            network.queue.interrupt();
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }
}

/// An id that no other bridge is likely to have.
fn id_of(core: &Core) -> BridgeId {
    let low = xxh3_64(&core.prefix().0) as u32;
    BridgeId(low)
}
