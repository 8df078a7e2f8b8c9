//! Bridge between an RTPS domain and a Zenoh network, for nodes that are not of Pteros.
//!
//! It has a context on each side and follows both graphs. It announces publishers and
//! servers of one side on the other (`topic_route`, `service_route`). An action is three
//! services and two topics. Payloads are forwarded as bytes. `plan` decides from both
//! graphs what is routed, and prevents loops. `routes` applies the plan.
//!
//! Two threads each drive one context and forward its arrivals.

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

/// Time between the announcement of a bridge and its first route, in which parallel
/// bridges discover each other.
const START_DELAY: Duration = Duration::from_millis(1_000);
/// Shortest time between two reconciliations: a burst of discovery is one change.
const LOOK_GAP: Duration = Duration::from_millis(50);
/// Longest time between two reconciliations, for timeouts.
const LOOK_PERIOD: Duration = Duration::from_millis(1_000);
/// Tasks that a thread runs between two readings of the clock.
const TASKS_PER_TURN: usize = 64;

/// Why a bridge does not start.
#[derive(Error)]
pub enum BridgeError {
    /// A rule is invalid.
    #[error(transparent)]
    Rules(#[from] RuleError),
    /// The system cannot create a thread.
    #[error("start a thread of the bridge: {0}")]
    Thread(#[from] std::io::Error),
}

pteros_msg::debug_as_display!(BridgeError);

/// How a bridge routes, and how it reports.
pub struct BridgeOptions {
    /// Selected names, rates and the namespace.
    pub rules: RuleOptions,
    /// Id of the bridge; by default derived from the GUID of the RTPS context. Bridges
    /// that share a network need different ids. Of parallel bridges, the one with the
    /// smallest id routes.
    pub id: Option<BridgeId>,
    /// Finds the hash of a message or service type that its process does not announce, by
    /// the ROS name. Called with locks of the bridge held, so it must not block for long.
    pub find_hash: Box<FindHash>,
    /// Receives reports on the bridge's threads, with locks of the bridge held. It must
    /// not call the bridge.
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

/// A running bridge. Dropping it stops its threads, and blocks as long as their current
/// publication may block.
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
    /// Bridges two contexts: the first has only RTPS, the second only Zenoh. The caller
    /// keeps both open while the bridge runs. Does not block. Routing starts a second
    /// later.
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

    /// Id in the paths of the routed endpoints.
    pub fn id(&self) -> BridgeId {
        self.shared.id
    }

    /// Whether its threads have ended or are about to, because one of its contexts has
    /// shut down or a report has panicked.
    pub fn has_ended(&self) -> bool {
        self.shared.is_stopped()
    }

    /// The present routes and their counts. Blocks during a reconciliation.
    pub fn status(&self) -> BridgeStatus {
        self.shared.routes.lock().status()
    }
}

/// Guard of a bridge's thread. Its end, also by a panic, ends the bridge: one side alone
/// would forward requests without replies.
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
        // Each context has its own clock.
        let begins_at = core.platform.now().after(START_DELAY);
        let mut last = begins_at;
        let mut next = begins_at;
        while !self.is_stopped() && !core.is_shut_down() {
            core.driver().drive_until(&network.queue, next, || {
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

/// An id that other bridges are unlikely to have.
fn id_of(core: &Core) -> BridgeId {
    let low = xxh3_64(&core.prefix().0) as u32;
    BridgeId(low)
}
