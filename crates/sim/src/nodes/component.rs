//! A container under faults.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::component::{Component, ComponentError, Registered};
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodes_Request, LoadNode, LoadNode_Request, UnloadNode, UnloadNode_Request,
};
use pteros::{Client, Context, Node, NodeOptions, Timer};
use pteros_component::{Container, ContainerOptions};

use super::stage::{Asker, SERVER, SOON, Stage};
use crate::relay::{Companion, pass, this_world};

const CLIENTS: usize = 3;

/// How long a constructor may take.
const LOAD_MAX: Duration = Duration::from_secs(2);

/// How long a slow constructor takes, and one that is stuck.
const SLOW_NANOS: u64 = 300_000_000;
const STUCK_NANOS: u64 = 4_000_000_000;

/// Components that live, by the world they live in.
static LIVING: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Counts a component of this world while it is there.
struct Living(usize);

impl Living {
    fn new() -> Self {
        let world = this_world();
        *LIVING.lock().entry(world).or_default() += 1;
        Self(world)
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        if let Some(count) = LIVING.lock().get_mut(&self.0) {
            *count -= 1;
        }
    }
}

/// Nobody asks any more who lives in this world.
pub fn forget() {
    LIVING.lock().remove(&this_world());
}

/// How many live in this world.
fn living() -> usize {
    LIVING.lock().get(&this_world()).copied().unwrap_or(0)
}

/// Is there at once, or after a while, and ticks.
struct Ticker {
    node: Node,
    _timer: Timer,
    _living: Living,
}

impl Ticker {
    fn made(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let living = Living::new();
        let node = context.node_with(options.name("ticker"))?;
        let timer = node.create_timer(Duration::from_millis(50), || {})?;
        Ok(Self {
            node,
            _timer: timer,
            _living: living,
        })
    }
}

struct Quick(Ticker);

impl Component for Quick {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        Ticker::made(context, options).map(Self)
    }

    fn node(&self) -> &Node {
        &self.0.node
    }
}

struct Slow(Ticker);

impl Component for Slow {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let ticker = Ticker::made(context, options)?;
        pass(SLOW_NANOS);
        Ok(Self(ticker))
    }

    fn node(&self) -> &Node {
        &self.0.node
    }
}

/// Takes longer than it may.
struct Stuck(Ticker);

impl Component for Stuck {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let ticker = Ticker::made(context, options)?;
        pass(STUCK_NANOS);
        Ok(Self(ticker))
    }

    fn node(&self) -> &Node {
        &self.0.node
    }
}

struct Broken(Ticker);

impl Component for Broken {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let made = Self(Ticker::made(context, options)?);
        Err(format!("{} is broken", made.0.node.name()).into())
    }

    fn node(&self) -> &Node {
        &self.0.node
    }
}

pub const CLASSES: [Registered; 4] = [
    Registered::of::<Quick>("box::Quick"),
    Registered::of::<Slow>("box::Slow"),
    Registered::of::<Stuck>("box::Stuck"),
    Registered::of::<Broken>("box::Broken"),
];

pub fn play(stage: &Stage) {
    let mut server = stage.process(SERVER);
    let options = ContainerOptions {
        load_timeout: LOAD_MAX,
        built_in: CLASSES.to_vec(),
        index: pteros_component::Index::default(),
        ..ContainerOptions::default()
    };
    let container = Arc::new(Container::new(&server.context, options).expect("a container"));
    let spun = container.clone();
    server.spins(stage.sim.companion(Box::new(move || {
        let _ = spun.spin();
    })));
    let numbers: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| client(stage, number, container.clone(), numbers.clone()))
        .collect();
    stage.storm();
    drop(clients);
    // The last that took too long are through.
    stage.sim.pass(3 * LOAD_MAX);
    let (listed, alive) = (container.list().len(), living());
    stage.book.expect(listed == alive, || {
        format!("C1 {listed} are listed, {alive} live")
    });
    let guid = server.context.guid();
    let nodes = server.context.graph().nodes();
    let nodes = nodes.iter().filter(|node| node.participant == guid).count();
    stage.book.expect(nodes == 1 + listed, || {
        format!("C1 {listed} are listed, {nodes} nodes")
    });
    drop(server);
    drop(container);
    let alive = living();
    stage.book.expect(alive == 0, || {
        format!("C2 {alive} live without a container")
    });
    forget();
}

fn client(
    stage: &Stage,
    number: usize,
    container: Arc<Container>,
    numbers: Arc<Mutex<BTreeSet<u64>>>,
) -> Companion {
    let process = stage.process(number);
    let (asker, seed) = (stage.asker(number), stage.seed());
    stage.sim.companion(Box::new(move || {
        let node = process
            .context
            .node(&format!("asker{number}"))
            .expect("a node");
        let name = |service: &str| format!("/ComponentManager/_container/{service}");
        let mut one = One {
            load: node.create_client(&name("load_node")).expect("a client"),
            unload: node.create_client(&name("unload_node")).expect("a client"),
            list: node.create_client(&name("list_nodes")).expect("a client"),
            asker,
            container,
            numbers,
            there: BTreeSet::new(),
            gone: BTreeSet::new(),
            names: 0,
            random: Rng::with_seed(seed),
        };
        while one.asker.goes_on() {
            one.ask();
            one.asker.sim.pass(Duration::from_millis(20));
        }
        one.ask_in_calm();
        drop(one);
        drop(process);
    }))
}

struct One {
    asker: Asker,
    load: Client<LoadNode>,
    unload: Client<UnloadNode>,
    list: Client<ListNodes>,
    container: Arc<Container>,
    /// All numbers ever given.
    numbers: Arc<Mutex<BTreeSet<u64>>>,
    /// What this client has loaded, for certain.
    there: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    names: u32,
    random: Rng,
}

impl One {
    fn runs(&self, id: u64) -> bool {
        self.container.list().iter().any(|(known, _)| *known == id)
    }

    /// Loads one; whether it is loaded, if that was told.
    fn load(&mut self, class: &str, limit: Duration) -> Option<bool> {
        self.names += 1;
        let name = format!("c{}_{}", self.asker.number, self.names);
        let request = LoadNode_Request {
            package_name: "box".into(),
            plugin_name: class.into(),
            node_name: name.clone(),
            ..LoadNode_Request::default()
        };
        let told = self
            .asker
            .call("load_node", limit, || self.load.call(&request, limit));
        let answer = told.ok()?;
        let book = &self.asker.book;
        if !answer.success {
            let may_fail = ["box::Stuck", "box::Broken"].contains(&class);
            let is_busy = answer.error_message.contains("at work already");
            book.expect(may_fail || (is_busy && self.asker.goes_on()), || {
                format!("I13 {class} is not loaded: {}", answer.error_message)
            });
            return Some(false);
        }
        let id = answer.unique_id;
        book.expect(self.numbers.lock().insert(id), || {
            format!("C3 number {id} is given twice")
        });
        book.expect(answer.full_node_name == format!("/{name}"), || {
            format!("C3 {name} is called {}", answer.full_node_name)
        });
        book.expect(self.runs(id), || {
            format!("C1 {id} is told loaded, and does not run")
        });
        self.there.insert(id);
        self.asker.note_done();
        Some(true)
    }

    /// Unloads one; whether it is gone, if that was told.
    fn unload(&mut self, id: u64, limit: Duration) -> Option<bool> {
        let was_there = self.there.remove(&id);
        let request = UnloadNode_Request { unique_id: id };
        let told = self
            .asker
            .call("unload_node", limit, || self.unload.call(&request, limit));
        let answer = told.ok()?;
        let book = &self.asker.book;
        book.expect(answer.success == was_there, || {
            format!(
                "I13 unloading {id}: {} {}",
                answer.success, answer.error_message
            )
        });
        book.expect(!self.runs(id), || {
            format!("C1 {id} is told unloaded, and runs")
        });
        self.gone.insert(id);
        self.asker.note_done();
        Some(answer.success)
    }

    fn list(&self, limit: Duration) -> bool {
        let request = ListNodes_Request {};
        let told = self
            .asker
            .call("list_nodes", limit, || self.list.call(&request, limit));
        let Ok(told) = told else { return false };
        let listed: BTreeSet<_> = told.unique_ids.iter().copied().collect();
        let book = &self.asker.book;
        book.expect(self.there.is_subset(&listed), || {
            format!("C1 {:?} are there, listed are {listed:?}", self.there)
        });
        book.expect(self.gone.is_disjoint(&listed), || {
            format!("C1 {:?} are gone, listed are {listed:?}", self.gone)
        });
        self.asker.note_done();
        true
    }

    fn ask(&mut self) {
        let limit = Duration::from_millis(self.random.u64(100..4_000));
        let one = self.random.u64(0..1_000);
        let count = self.there.len().max(1) as u64;
        let own = self.there.iter().nth((one % count) as usize).copied();
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

    fn ask_in_calm(&mut self) {
        self.asker.sim.pass(SOON + 2 * LOAD_MAX);
        let book = self.asker.book.clone();
        let loaded = self.load("box::Slow", SOON);
        book.expect(loaded == Some(true), || {
            format!("I13 not loaded in calm: {loaded:?}")
        });
        let stuck = self.load("box::Stuck", SOON);
        book.expect(stuck == Some(false), || {
            format!("I13 stuck in calm: {stuck:?}")
        });
        book.expect(self.list(SOON), || "I13 not listed in calm".into());
        let before = living();
        if let Some(id) = self.there.last().copied() {
            let gone = self.unload(id, SOON);
            book.expect(gone == Some(true), || {
                format!("I13 not unloaded in calm: {gone:?}")
            });
        }
        let after = living();
        // Others unload as well, and what was stuck comes back to be dropped.
        book.expect(after < before, || {
            format!("C2 {before} lived, {after} live")
        });
        let unknown = self.unload(u64::MAX, SOON);
        book.expect(unknown == Some(false), || {
            format!("I13 unknown in calm: {unknown:?}")
        });
    }
}
