//! Who is loaded, and how components come and go.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pteros::component::{AnyComponent, Registered};
use pteros::interfaces::composition_interfaces::srv::LoadNode_Request;
use pteros::{Context, ExecutorError, Node, Timer, fault};
use thiserror::Error;

use super::crew::{Crew, Place};
use super::request::Understood;
use crate::error::LoadError;
use crate::index::Index;
use crate::loader::Loader;

/// Constructors and destructors at work at once; those that hang count.
const AT_WORK_MAX: usize = 16;

/// How long a callback that runs may hold a node that is unloaded.
const HELD_MAX: Duration = Duration::from_secs(1);

/// A component that was loaded.
pub(super) struct LoadedNode {
    pub(super) id: u64,
    pub(super) name: String,
}

/// Why a component is not unloaded.
#[derive(Debug, Error)]
pub(super) enum UnloadError {
    #[error("No node found with unique_id: {id}; loaded are: {known}")]
    Unknown { id: u64, known: String },
    #[error(
        "component {id} is unloaded, but its destructor has not come back within {waited:?}: what it still holds is not free"
    )]
    Hung { id: u64, waited: Duration },
    #[error("component {id} is unloaded, but its destructor panicked: {said}")]
    Panicked { id: u64, said: String },
    #[error(
        "component {id} is unloaded, but its node {name} is still in the graph: a callback that runs, or something beside the component, holds it"
    )]
    Held { id: u64, name: String },
    #[error("component {id} stays: {running} constructors and destructors are at work already")]
    Busy { id: u64, running: usize },
    #[error(transparent)]
    Thread(#[from] ExecutorError),
}

/// Where classes come from.
pub(super) struct Classes {
    pub(super) built_in: Vec<Registered>,
    pub(super) index: Index,
}

pub(super) struct Roster {
    context: Context,
    manager: Node,
    crew: Crew,
    classes: Classes,
    loader: Loader,
    timeout: Duration,
    at_work: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    loaded: BTreeMap<u64, Loaded>,
}

struct Loaded {
    name: String,
    component: Box<dyn AnyComponent>,
    place: Place,
}

/// Hears how something ended, once.
type Done<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

/// What a thread of its own is to come to, and who wants to hear of it. Whoever
/// takes the word first, the thread or its time-out, answers.
struct Work<T, E> {
    done: Mutex<Option<Done<T, E>>>,
    time_out: Mutex<Option<Timer>>,
}

impl<T: 'static, E: 'static> Work<T, E> {
    fn new(done: impl FnOnce(Result<T, E>) + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            done: Mutex::new(Some(Box::new(done))),
            time_out: Mutex::new(None),
        })
    }

    /// The right to answer, once.
    fn take(&self) -> Option<Done<T, E>> {
        let done = self.done.lock().take();
        drop(self.time_out.lock().take());
        done
    }

    fn fail(&self, error: E) {
        if let Some(done) = self.take() {
            done(Err(error));
        }
    }
}

impl Roster {
    pub(super) fn new(
        context: &Context,
        manager: &Node,
        crew: Crew,
        classes: Classes,
        timeout: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            manager: manager.clone(),
            crew,
            classes,
            loader: Loader::default(),
            timeout,
            at_work: AtomicUsize::new(0),
            state: Mutex::default(),
        })
    }

    pub(super) fn crew(&self) -> &Crew {
        &self.crew
    }

    pub(super) fn load_timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn list(&self) -> Vec<(u64, String)> {
        let state = self.state.lock();
        let loaded = state.loaded.iter();
        loaded.map(|(id, one)| (*id, one.name.clone())).collect()
    }

    // --- loading ---

    /// Loads on a thread of its own; `done` hears of it there, or by time-out in
    /// the container's executor.
    pub(super) fn start_loading(
        self: &Arc<Self>,
        request: &LoadNode_Request,
        done: impl FnOnce(Result<LoadedNode, LoadError>) + Send + 'static,
    ) {
        let work = Work::new(done);
        let class = request.plugin_name.clone();
        let understood = match Understood::read(request) {
            Ok(understood) => understood,
            Err(error) => return work.fail(error),
        };
        if let Err(running) = self.begin_work() {
            return work.fail(LoadError::Busy { class, running });
        }
        let (roster, package) = (self.clone(), request.package_name.clone());
        let (working, named) = (work.clone(), class.clone());
        let run = move || {
            roster.load(&package, &named, understood, &working);
            roster.end_work();
        };
        let waited = self.timeout;
        self.time_out(&work, move || LoadError::Hung { class, waited });
        if let Err(error) = self.spawn("component load", run) {
            work.fail(error.into());
        }
    }

    fn load(
        &self,
        package: &str,
        class: &str,
        Understood {
            options,
            own_thread,
            log_level,
        }: Understood,
        work: &Work<LoadedNode, LoadError>,
    ) {
        let made = self.find(package, class).and_then(|found| {
            let make = || (found.make)(&self.context, options);
            match catch_unwind(AssertUnwindSafe(make)) {
                Ok(Ok(component)) => Ok(component),
                Ok(Err(error)) => Err(LoadError::Constructor {
                    class: class.into(),
                    reason: error.to_string(),
                }),
                Err(panic) => Err(LoadError::Panicked {
                    class: class.into(),
                    said: said(&*panic),
                }),
            }
        });
        let component = match made {
            Ok(component) => component,
            Err(error) => return work.fail(error),
        };
        let Some(done) = work.take() else {
            tracing::warn!("component \"{class}\": its constructor came back too late");
            drop_contained(component);
            return;
        };
        if log_level.is_some() && !component.node().logger().set_level(log_level) {
            tracing::warn!(
                "component \"{class}\": too many loggers have levels of their own already"
            );
        }
        match self.crew.add(component.node(), own_thread) {
            Ok(place) => done(Ok(self.enter(component, place))),
            Err(error) => {
                drop_contained(component);
                done(Err(error.into()));
            }
        }
    }

    fn find(&self, package: &str, class: &str) -> Result<Registered, LoadError> {
        let mut built_in = self.classes.built_in.iter();
        if let Some(found) = built_in.find(|registered| registered.class == class) {
            return Ok(*found);
        }
        let listed = self.classes.index.find(package, class)?;
        let classes = self.loader.load(&listed.library)?;
        let found = classes.iter().find(|registered| registered.class == class);
        found.copied().ok_or_else(|| LoadError::UnknownClass {
            package: package.into(),
            class: class.into(),
            known: classes
                .iter()
                .map(|c| c.class)
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    fn enter(&self, component: Box<dyn AnyComponent>, place: Place) -> LoadedNode {
        let name = component.node().fully_qualified_name();
        let mut state = self.state.lock();
        if !fault!("component-number-given-again") || state.last_id == 0 {
            state.last_id += 1;
        }
        let id = state.last_id;
        let one = Loaded {
            name: name.clone(),
            component,
            place,
        };
        state.loaded.insert(id, one);
        LoadedNode { id, name }
    }

    // --- unloading ---

    /// Unloads on a thread of its own; `done` hears of it as with loading.
    pub(super) fn start_unloading(
        self: &Arc<Self>,
        id: u64,
        done: impl FnOnce(Result<(), UnloadError>) + Send + 'static,
    ) {
        let work = Work::new(done);
        if let Err(running) = self.begin_work() {
            return work.fail(UnloadError::Busy { id, running });
        }
        let found = self.state.lock().loaded.remove(&id);
        let Some(one) = found else {
            self.end_work();
            let known = self.list();
            let known: Vec<_> = known
                .iter()
                .map(|(id, name)| format!("{id} {name}"))
                .collect();
            let known = match known.is_empty() {
                true => "none".into(),
                false => known.join(", "),
            };
            return work.fail(UnloadError::Unknown { id, known });
        };
        let (roster, working, waited) = (self.clone(), work.clone(), self.timeout);
        let run = move || {
            let outcome = roster.unload(id, one);
            if let Some(done) = working.take() {
                done(outcome);
            }
            roster.end_work();
        };
        self.time_out(&work, move || UnloadError::Hung { id, waited });
        if let Err(error) = self.spawn("component unload", run) {
            work.fail(error.into());
        }
    }

    fn unload(&self, id: u64, one: Loaded) -> Result<(), UnloadError> {
        let Loaded {
            name,
            component,
            place,
        } = one;
        let graph = self.context.graph();
        let participant = self.context.guid();
        let count = || {
            let nodes = graph.nodes();
            let own = nodes.iter().filter(|node| node.participant == participant);
            own.filter(|node| node.fully_qualified_name() == name)
                .count()
        };
        let before = count();
        self.crew.remove(place);
        if fault!("unloaded-component-stays") {
            std::mem::forget(component);
            return Ok(());
        }
        if let Some(said) = drop_contained(component) {
            return Err(UnloadError::Panicked { id, said });
        }
        match graph.wait_until(HELD_MAX.min(self.timeout / 2), || count() < before) {
            true => Ok(()),
            false => Err(UnloadError::Held { id, name }),
        }
    }

    /// Unloads everybody, the last first, on this thread.
    pub(super) fn clear(&self) {
        loop {
            let last = self.state.lock().loaded.pop_last();
            let Some((_, one)) = last else {
                return;
            };
            self.crew.remove(one.place);
            drop_contained(one.component);
        }
    }

    // --- threads ---

    fn begin_work(&self) -> Result<(), usize> {
        let grown = |count| (count < AT_WORK_MAX).then_some(count + 1);
        self.at_work
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, grown)
            .map(|_| ())
    }

    fn end_work(&self) {
        self.at_work.fetch_sub(1, Ordering::AcqRel);
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), ExecutorError> {
        let spawned = self.context.spawn_thread(name, run);
        spawned.map_err(|error| {
            self.end_work();
            ExecutorError::NoThread {
                reason: error.to_string(),
            }
        })
    }

    /// Answers for a thread that takes too long.
    fn time_out<T: 'static, E: 'static>(
        &self,
        work: &Arc<Work<T, E>>,
        error: impl FnOnce() -> E + Send + 'static,
    ) {
        let (late, mut error) = (Arc::downgrade(work), Some(error));
        let timer = self.manager.create_one_shot_timer(self.timeout, move || {
            if let (Some(work), Some(error)) = (late.upgrade(), error.take()) {
                work.fail(error());
            }
        });
        match timer {
            Ok(timer) => *work.time_out.lock() = Some(timer),
            Err(error) => tracing::warn!("no time-out for a component: {error}"),
        }
    }
}

/// Drops a component; what its destructor panicked with.
fn drop_contained(component: Box<dyn AnyComponent>) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(component))).err()?;
    Some(said(&*panic))
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no text)").to_owned()
}
