//! Component registry of a container: the loaded components, and how they are
//! loaded and unloaded.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pteros::TimerOptions;
use pteros::component::{AnyComponent, ComponentClass};
use pteros::interfaces::composition_interfaces::srv::LoadNodeRequest;
use pteros::{Context, Node, Timer, executors::ExecutorError};
use thiserror::Error;

use super::executors::{ContainerExecutors, ExecutorAssignment};
use super::request::LoadOptions;
use crate::error::LoadError;
use crate::index::{BUILT_IN_SWITCH, ComponentIndex};
use crate::loader::Loader;

/// Largest number of constructors and destructors that run at the same time.
/// Hanging ones count.
const OPERATIONS_MAX: usize = 16;

/// Time for which a running callback may hold the node of an unloaded component.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// A loaded component.
pub(super) struct LoadedNode {
    pub(super) id: u64,
    pub(super) name: String,
}

/// Error of an unload request.
#[derive(Debug, Error)]
pub(super) enum UnloadError {
    #[error("No node found with unique_id: {id}; loaded are: {known}")]
    Unknown { id: u64, known: String },
    #[error(
        "component {id} is unloaded, but its destructor did not return within {timeout:?}: the resources that it still holds are not free"
    )]
    Hung { id: u64, timeout: Duration },
    #[error("component {id} is unloaded, but its destructor panicked: {message}")]
    Panicked { id: u64, message: String },
    #[error(
        "component {id} is unloaded, but its node {name} is still in the graph: a running callback, or an owner outside of the component, holds it"
    )]
    Held { id: u64, name: String },
    #[error("component {id} stays: {running} constructors and destructors are running already")]
    Busy { id: u64, running: usize },
    #[error(transparent)]
    Thread(#[from] ExecutorError),
}

/// Sources of component classes.
pub(super) struct ComponentSources {
    pub(super) built_in: Vec<ComponentClass>,
    pub(super) substitutes: &'static [ComponentClass],
    pub(super) index: ComponentIndex,
}

pub(super) struct ComponentRegistry {
    context: Context,
    manager: Node,
    executors: ContainerExecutors,
    sources: ComponentSources,
    loader: Loader,
    timeout: Duration,
    running_operations: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_id: u64,
    loaded: BTreeMap<u64, LoadedComponent>,
}

struct LoadedComponent {
    name: String,
    component: Box<dyn AnyComponent>,
    assignment: ExecutorAssignment,
}

/// Called once with the result of an operation.
type CompletionCallback<T, E> = Box<dyn FnOnce(Result<T, E>) + Send>;

/// A constructor or destructor that runs on its own thread, and the callback for
/// its result. The thread and the timeout race: the first one responds.
struct PendingOperation<T, E> {
    done: Mutex<Option<CompletionCallback<T, E>>>,
    timeout_timer: Mutex<Option<Timer>>,
}

impl<T: 'static, E: 'static> PendingOperation<T, E> {
    fn new(done: impl FnOnce(Result<T, E>) + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            done: Mutex::new(Some(Box::new(done))),
            timeout_timer: Mutex::new(None),
        })
    }

    /// Takes the callback; `None` after the first call.
    fn take(&self) -> Option<CompletionCallback<T, E>> {
        let done = self.done.lock().take();
        drop(self.timeout_timer.lock().take());
        done
    }

    fn fail(&self, error: E) {
        if let Some(done) = self.take() {
            done(Err(error));
        }
    }
}

impl ComponentRegistry {
    pub(super) fn new(
        context: &Context,
        manager: &Node,
        executors: ContainerExecutors,
        classes: ComponentSources,
        timeout: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            manager: manager.clone(),
            executors,
            sources: classes,
            loader: Loader::default(),
            timeout,
            running_operations: AtomicUsize::new(0),
            state: Mutex::default(),
        })
    }

    pub(super) fn executors(&self) -> &ContainerExecutors {
        &self.executors
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

    /// Loads a component on its own thread, which calls `done`. After a timeout the
    /// container's executor calls it.
    pub(super) fn start_loading(
        self: &Arc<Self>,
        request: &LoadNodeRequest,
        done: impl FnOnce(Result<LoadedNode, LoadError>) + Send + 'static,
    ) {
        let pending = PendingOperation::new(done);
        let class = request.plugin_name.clone();
        let options = match LoadOptions::read(request) {
            Ok(options) => options,
            Err(error) => return pending.fail(error),
        };
        if let Err(running) = self.begin_operation() {
            return pending.fail(LoadError::Busy { class, running });
        }
        let (registry, package) = (self.clone(), request.package_name.clone());
        let (operation, named) = (pending.clone(), class.clone());
        let run = move || {
            registry.load(&package, &named, options, &operation);
            registry.end_operation();
        };
        let timeout = self.timeout;
        self.start_timeout(&pending, move || LoadError::TimedOut { class, timeout });
        if let Err(error) = self.spawn("component load", run) {
            pending.fail(error.into());
        }
    }

    fn load(
        &self,
        package: &str,
        class: &str,
        LoadOptions {
            options,
            thread_settings,
            log_level,
        }: LoadOptions,
        pending: &PendingOperation<LoadedNode, LoadError>,
    ) {
        let made = self.find(package, class).and_then(|found| {
            let make = || (found.constructor)(&self.context, options);
            match catch_unwind(AssertUnwindSafe(make)) {
                Ok(Ok(component)) => Ok(component),
                Ok(Err(error)) => Err(LoadError::Constructor {
                    class: class.into(),
                    reason: error.to_string(),
                }),
                Err(panic) => Err(LoadError::Panicked {
                    class: class.into(),
                    message: panic_message(&*panic),
                }),
            }
        });
        let component = match made {
            Ok(component) => component,
            Err(error) => return pending.fail(error),
        };
        let Some(done) = pending.take() else {
            tracing::warn!("component \"{class}\": its constructor returned after the timeout");
            drop_contained(component);
            return;
        };
        if log_level.is_some() && !component.node().logger().set_level(log_level) {
            tracing::warn!("component \"{class}\": too many loggers have their own level already");
        }
        match self.executors.add(component.node(), thread_settings) {
            Ok(place) => done(Ok(self.insert(component, place))),
            Err(error) => {
                drop_contained(component);
                done(Err(error.into()));
            }
        }
    }

    fn find(&self, package: &str, class: &str) -> Result<ComponentClass, LoadError> {
        let mut built_in = self.sources.built_in.iter();
        if let Some(found) = built_in.find(|registered| registered.class == class) {
            return Ok(*found);
        }
        let listed = match self.sources.index.find(package, class) {
            Ok(listed) => listed,
            Err(error) => return substitute(self.sources.substitutes, error, package, class),
        };
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

    fn insert(&self, component: Box<dyn AnyComponent>, place: ExecutorAssignment) -> LoadedNode {
        let name = component.node().fully_qualified_name();
        let mut state = self.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        let one = LoadedComponent {
            name: name.clone(),
            component,
            assignment: place,
        };
        state.loaded.insert(id, one);
        LoadedNode { id, name }
    }

    // --- unloading ---

    /// Unloads a component on its own thread, which calls `done` as loading does.
    pub(super) fn start_unloading(
        self: &Arc<Self>,
        id: u64,
        done: impl FnOnce(Result<(), UnloadError>) + Send + 'static,
    ) {
        let pending = PendingOperation::new(done);
        if let Err(running) = self.begin_operation() {
            return pending.fail(UnloadError::Busy { id, running });
        }
        let found = self.state.lock().loaded.remove(&id);
        let Some(one) = found else {
            self.end_operation();
            let known = self.list();
            let known: Vec<_> = known
                .iter()
                .map(|(id, name)| format!("{id} {name}"))
                .collect();
            let known = if known.is_empty() {
                "none".into()
            } else {
                known.join(", ")
            };
            return pending.fail(UnloadError::Unknown { id, known });
        };
        let (registry, operation, timeout) = (self.clone(), pending.clone(), self.timeout);
        let run = move || {
            let outcome = registry.unload(id, one);
            if let Some(done) = operation.take() {
                done(outcome);
            }
            registry.end_operation();
        };
        self.start_timeout(&pending, move || UnloadError::Hung { id, timeout });
        if let Err(error) = self.spawn("component unload", run) {
            pending.fail(error.into());
        }
    }

    fn unload(&self, id: u64, one: LoadedComponent) -> Result<(), UnloadError> {
        let LoadedComponent {
            name,
            component,
            assignment: place,
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
        self.executors.remove(place);
        if let Some(message) = drop_contained(component) {
            return Err(UnloadError::Panicked { id, message });
        }
        if graph.wait_until(RELEASE_TIMEOUT.min(self.timeout / 2), || count() < before) {
            Ok(())
        } else {
            Err(UnloadError::Held { id, name })
        }
    }

    /// Unloads all components on this thread, the last one first.
    pub(super) fn clear(&self) {
        loop {
            let last = self.state.lock().loaded.pop_last();
            let Some((_, one)) = last else {
                return;
            };
            self.executors.remove(one.assignment);
            drop_contained(one.component);
        }
    }

    // --- threads ---

    fn begin_operation(&self) -> Result<(), usize> {
        let grown = |count| (count < OPERATIONS_MAX).then_some(count + 1);
        self.running_operations
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, grown)
            .map(|_| ())
    }

    fn end_operation(&self) {
        self.running_operations.fetch_sub(1, Ordering::AcqRel);
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), ExecutorError> {
        let spawned = self.context.spawn_thread(name, run);
        spawned.map_err(|error| {
            self.end_operation();
            ExecutorError::ThreadSpawn {
                reason: error.to_string(),
            }
        })
    }

    /// Responds with an error if the operation takes too long.
    fn start_timeout<T: 'static, E: 'static>(
        &self,
        pending: &Arc<PendingOperation<T, E>>,
        error: impl FnOnce() -> E + Send + 'static,
    ) {
        let (late, mut error) = (Arc::downgrade(pending), Some(error));
        let timer =
            self.manager
                .create_timer(TimerOptions::new(self.timeout).one_shot(), move || {
                    if let (Some(pending), Some(error)) = (late.upgrade(), error.take()) {
                        pending.fail(error());
                    }
                });
        match timer {
            Ok(timer) => *pending.timeout_timer.lock() = Some(timer),
            Err(error) => tracing::warn!("no timeout for a component: {error}"),
        }
    }
}

/// Drops a component. Returns the message of a panic in its destructor.
fn drop_contained(component: Box<dyn AnyComponent>) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(component))).err()?;
    Some(panic_message(&*panic))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no text)").to_owned()
}

/// The built-in class for one of a package that is not installed. What an installed
/// package lacks or refuses stays an error.
fn substitute(
    substitutes: &[ComponentClass],
    error: LoadError,
    package: &str,
    class: &str,
) -> Result<ComponentClass, LoadError> {
    let own = class.split_once("::").map(|(of_class, _)| of_class);
    let mut substitutes = substitutes.iter();
    let found = substitutes.find(|one| own == Some(package) && one.class == class);
    match (found, error) {
        (Some(found), LoadError::UnknownPackage { .. }) => {
            tracing::info!(
                "{class} is built in, because package {package} is not installed; {BUILT_IN_SWITCH}=off leaves it out"
            );
            Ok(*found)
        }
        (_, error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unknown_package_is_substituted_by_its_own_class() {
        let class = ComponentClass {
            class: "joy::Joy",
            constructor: |_, _| Err("not constructed".into()),
        };
        let found = |error, package: &str, name: &str| {
            let found = substitute(&[class], error, package, name);
            found.map(|found| found.class)
        };
        let unknown = || LoadError::UnknownPackage {
            package: String::new(),
            searched: String::new(),
            known: String::new(),
        };
        assert_eq!(found(unknown(), "joy", "joy::Joy").unwrap(), "joy::Joy");
        assert!(found(unknown(), "other", "joy::Joy").is_err());
        assert!(found(unknown(), "joy", "joy::Other").is_err());
        let lacking = LoadError::UnknownClass {
            package: String::new(),
            class: String::new(),
            known: String::new(),
        };
        assert!(found(lacking, "joy", "joy::Joy").is_err());
    }
}
