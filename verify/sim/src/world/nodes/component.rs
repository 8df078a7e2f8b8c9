//! Workload "components": a component container under fault injection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::component::{Component, ComponentClass, ComponentError};
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesRequest, LoadNode, LoadNodeRequest, UnloadNode, UnloadNodeRequest,
};
use pteros::{Client, Context, Node, NodeOptions, Timer};
use pteros_container::{Container, ContainerOptions};

use super::world::{Caller, NodeWorld, REPAIR_MAX, SERVER};
use crate::simulation::threads::{SimThread, current_world_id, sleep};

const CLIENTS: usize = 3;

/// Time limit of a component's constructor.
const LOAD_MAX: Duration = Duration::from_secs(2);

/// Duration of a slow constructor, and of one that is stuck.
const SLOW_NANOS: u64 = 300_000_000;
const STUCK_NANOS: u64 = 4_000_000_000;

/// Number of live components by world.
static LIVE_COMPONENTS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Counts a component of this world while it exists.
struct LiveGuard(usize);

impl LiveGuard {
    fn new() -> Self {
        let world = current_world_id();
        *LIVE_COMPONENTS.lock().entry(world).or_default() += 1;
        Self(world)
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        if let Some(count) = LIVE_COMPONENTS.lock().get_mut(&self.0) {
            *count -= 1;
        }
    }
}

/// Removes the counter of the current world.
pub fn clear_live_count() {
    LIVE_COMPONENTS.lock().remove(&current_world_id());
}

/// Number of live components of the current world.
fn live_count() -> usize {
    LIVE_COMPONENTS
        .lock()
        .get(&current_world_id())
        .copied()
        .unwrap_or(0)
}

/// A component with a node and a timer.
struct Ticker {
    node: Node,
    _timer: Timer,
    _live: LiveGuard,
}

impl Ticker {
    fn create(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let guard = LiveGuard::new();
        let node = context.create_node(options.name("ticker"))?;
        let timer = node.create_timer(Duration::from_millis(50), || {})?;
        Ok(Self {
            node,
            _timer: timer,
            _live: guard,
        })
    }
}

/// A component whose constructor takes `NANOS`.
struct Waiting<const NANOS: u64>(Ticker);

impl<const NANOS: u64> Component for Waiting<NANOS> {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let ticker = Ticker::create(context, options)?;
        sleep(NANOS);
        Ok(Self(ticker))
    }

    fn node(&self) -> &Node {
        &self.0.node
    }
}

struct Broken(Ticker);

impl Component for Broken {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let broken = Self(Ticker::create(context, options)?);
        Err(format!("{} is broken", broken.0.node.name()).into())
    }

    fn node(&self) -> &Node {
        &self.0.node
    }
}

pub const CLASSES: [ComponentClass; 4] = [
    ComponentClass::of::<Waiting<0>>("box::Quick"),
    ComponentClass::of::<Waiting<SLOW_NANOS>>("box::Slow"),
    ComponentClass::of::<Waiting<STUCK_NANOS>>("box::Stuck"),
    ComponentClass::of::<Broken>("box::Broken"),
];

pub fn run(world: &NodeWorld) {
    let mut server = world.process(SERVER);
    let options = ContainerOptions {
        load_timeout: LOAD_MAX,
        built_in: CLASSES.to_vec(),
        index: pteros_container::ComponentIndex::default(),
        ..ContainerOptions::default()
    };
    let container = Arc::new(Container::new(&server.context, options).expect("a container"));
    let spun = container.clone();
    server.add_thread(world.sim.spawn(Box::new(move || {
        let _ = spun.spin();
    })));
    let numbers: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(world, number, container.clone(), numbers.clone()))
        .collect();
    world.run_fault_phase();
    drop(clients);
    // The last constructors that exceeded the limit have ended.
    world.sim.advance(3 * LOAD_MAX);
    let (listed, alive) = (container.list().len(), live_count());
    world.report.expect(listed == alive, || {
        format!("C1 {listed} components are listed, {alive} are alive")
    });
    let guid = server.context.guid();
    let nodes = server.context.graph().nodes();
    let nodes = nodes.iter().filter(|node| node.participant == guid).count();
    world.report.expect(nodes == 1 + listed, || {
        format!("C1 {listed} components are listed, {nodes} nodes exist")
    });
    drop(server);
    drop(container);
    let alive = live_count();
    world.report.expect(alive == 0, || {
        format!("C2 {alive} components are alive without a container")
    });
    clear_live_count();
}

fn client(
    world: &NodeWorld,
    number: usize,
    container: Arc<Container>,
    numbers: Arc<Mutex<BTreeSet<u64>>>,
) -> SimThread {
    world.client(number, "asker", move |process, caller, node, random| {
        let name = |service: &str| format!("/ComponentManager/_container/{service}");
        let mut session = ComponentSession {
            load: node.create_client(name("load_node")).expect("a client"),
            unload: node.create_client(name("unload_node")).expect("a client"),
            list: node.create_client(name("list_nodes")).expect("a client"),
            caller,
            container,
            numbers,
            loaded: BTreeSet::new(),
            unloaded: BTreeSet::new(),
            names: 0,
            random,
        };
        while session.caller.faults_active() {
            session.send_random_request();
            session.caller.sim.advance(Duration::from_millis(20));
        }
        session.check_after_healing();
        drop(session);
        drop(process);
    })
}

struct ComponentSession {
    caller: Caller,
    load: Client<LoadNode>,
    unload: Client<UnloadNode>,
    list: Client<ListNodes>,
    container: Arc<Container>,
    /// All ids ever assigned.
    numbers: Arc<Mutex<BTreeSet<u64>>>,
    /// Components that this client has certainly loaded.
    loaded: BTreeSet<u64>,
    unloaded: BTreeSet<u64>,
    names: u32,
    random: Rng,
}

impl ComponentSession {
    fn is_running(&self, id: u64) -> bool {
        self.container.list().iter().any(|(known, _)| *known == id)
    }

    /// Loads a component. Returns whether it is loaded, if the reply came.
    fn load(&mut self, class: &str, limit: Duration) -> Option<bool> {
        self.names += 1;
        let name = format!("c{}_{}", self.caller.number, self.names);
        let request = LoadNodeRequest {
            package_name: "box".into(),
            plugin_name: class.into(),
            node_name: name.clone(),
            ..LoadNodeRequest::default()
        };
        let reply = self
            .caller
            .call("load_node", limit, || self.load.call(&request, limit));
        let answer = reply.ok()?;
        let report = &self.caller.report;
        if !answer.success {
            let may_fail = ["box::Stuck", "box::Broken"].contains(&class);
            let is_busy = answer.error_message.contains("running already");
            report.expect(may_fail || (is_busy && self.caller.faults_active()), || {
                format!("I13 {class} was not loaded: {}", answer.error_message)
            });
            return Some(false);
        }
        let id = answer.unique_id;
        report.expect(self.numbers.lock().insert(id), || {
            format!("C3 id {id} was assigned twice")
        });
        report.expect(answer.full_node_name == format!("/{name}"), || {
            format!("C3 {name} is called {}", answer.full_node_name)
        });
        report.expect(self.is_running(id), || {
            format!("C1 {id} is reported as loaded and does not run")
        });
        self.loaded.insert(id);
        self.caller.mark_done();
        Some(true)
    }

    /// Unloads a component. Returns whether it is unloaded, if the reply came.
    fn unload(&mut self, id: u64, limit: Duration) -> Option<bool> {
        let was_loaded = self.loaded.remove(&id);
        let request = UnloadNodeRequest { unique_id: id };
        let reply = self
            .caller
            .call("unload_node", limit, || self.unload.call(&request, limit));
        let answer = reply.ok()?;
        let report = &self.caller.report;
        report.expect(answer.success == was_loaded, || {
            format!(
                "I13 unloading {id}: {} {}",
                answer.success, answer.error_message
            )
        });
        report.expect(!self.is_running(id), || {
            format!("C1 {id} is reported as unloaded and runs")
        });
        self.unloaded.insert(id);
        self.caller.mark_done();
        Some(answer.success)
    }

    fn list(&self, limit: Duration) -> bool {
        let request = ListNodesRequest {};
        let reply = self
            .caller
            .call("list_nodes", limit, || self.list.call(&request, limit));
        let Ok(reply) = reply else { return false };
        let listed: BTreeSet<_> = reply.unique_ids.iter().copied().collect();
        let report = &self.caller.report;
        report.expect(self.loaded.is_subset(&listed), || {
            format!("C1 loaded are {:?}, listed are {listed:?}", self.loaded)
        });
        report.expect(self.unloaded.is_disjoint(&listed), || {
            format!("C1 unloaded are {:?}, listed are {listed:?}", self.unloaded)
        });
        self.caller.mark_done();
        true
    }

    fn send_random_request(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..4_000));
        let draw = self.random.u64(0..1_000);
        let count = self.loaded.len().max(1) as u64;
        let own = self.loaded.iter().nth((draw % count) as usize).copied();
        match (self.random.u32(0..8), own) {
            (0, _) => {
                self.load("box::Stuck", limit);
            }
            (1, _) => {
                self.load("box::Broken", limit);
            }
            (2, _) => {
                self.load("box::Slow", limit);
            }
            (3, _) => {
                self.list(limit);
            }
            (4 | 5, Some(id)) => {
                self.unload(id, limit);
            }
            _ => {
                self.load("box::Quick", limit);
            }
        }
    }

    fn check_after_healing(&mut self) {
        self.caller.sim.advance(REPAIR_MAX + 2 * LOAD_MAX);
        let report = self.caller.report.clone();
        let loaded = self.load("box::Slow", REPAIR_MAX);
        report.expect(loaded == Some(true), || {
            format!("I13 not loaded after healing: {loaded:?}")
        });
        let stuck = self.load("box::Stuck", REPAIR_MAX);
        report.expect(stuck == Some(false), || {
            format!("I13 stuck after healing: {stuck:?}")
        });
        report.expect(self.list(REPAIR_MAX), || {
            "I13 not listed after healing".into()
        });
        let before = live_count();
        if let Some(id) = self.loaded.last().copied() {
            let unloaded = self.unload(id, REPAIR_MAX);
            report.expect(unloaded == Some(true), || {
                format!("I13 not unloaded after healing: {unloaded:?}")
            });
        }
        let after = live_count();
        // Other clients unload as well, and the stuck component is dropped later.
        report.expect(after < before, || {
            format!("C2 {before} lived, {after} live")
        });
        let unknown = self.unload(u64::MAX, REPAIR_MAX);
        report.expect(unknown == Some(false), || {
            format!("I13 unknown after healing: {unknown:?}")
        });
    }
}
