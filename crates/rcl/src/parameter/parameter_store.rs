//! Parameter store: the declared parameters of one node and their changes.
//!
//! One change at a time, including callbacks, in the order of rclcpp's
//! `NodeParameters`: pre-set callbacks, checks, on-set callbacks, the values,
//! post-set callbacks, the parameter event. Reads do not wait for a change.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, ReentrantMutex};
use pteros_interfaces::rcl_interfaces::msg;

use super::callbacks::ParameterCallbacks;
use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::parameter_text::ParameterText;
use super::value::{ParameterType, ParameterValue};

/// A parameter name with a value, as in rclcpp.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parameter {
    /// Name; dots separate groups: `arm.speed`.
    pub name: String,
    /// The value.
    pub value: ParameterValue,
}

impl Parameter {
    /// Creates a parameter from a name and a value.
    pub fn new(name: impl Into<String>, value: impl Into<ParameterValue>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// Converts from a message. A value without a valid type becomes not set.
    pub fn from_message(message: &msg::Parameter) -> Self {
        Self {
            name: message.name.clone(),
            value: ParameterValue::from_message(&message.value).unwrap_or_default(),
        }
    }

    /// Converts into a message.
    pub fn into_message(self) -> msg::Parameter {
        msg::Parameter {
            name: self.name,
            value: self.value.into_message(),
        }
    }
}

/// Parameter override: an initial value from outside the program.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterOverride {
    /// The value as it was written; the declared type decides how it is read.
    pub text: ParameterText,
    /// Where it came from: a line of a file, the command line or the program.
    pub origin: Arc<str>,
}

/// Parameter overrides of one node, by parameter.
pub type ParameterOverrides = BTreeMap<String, ParameterOverride>;

/// Rules from the node's options.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreRules {
    /// rclcpp's `allow_undeclared_parameters`: setting an undeclared one declares it.
    pub allow_undeclared: bool,
    /// rclcpp's `automatically_declare_parameters_from_overrides`.
    pub declare_from_overrides: bool,
}

/// Observer of the value of one parameter.
pub trait ParameterObserver: Send + Sync {
    /// Called with each new value, while the change holds the store; do not set there.
    fn handle_value(&self, value: &ParameterValue);
}

/// Publishes parameter events.
pub trait ParameterEventSink: Send + Sync {
    /// Called after each change, outside of the store's locks.
    fn publish_event(&self, event: msg::ParameterEvent);
}

/// See the module documentation.
pub struct ParameterStore {
    node: String,
    rules: StoreRules,
    overrides: ParameterOverrides,
    entries: Mutex<BTreeMap<String, ParameterEntry>>,
    /// Held during a change. True while callbacks run: a nested change by the same
    /// thread is rejected.
    changing: ReentrantMutex<Cell<bool>>,
    /// Pre-set, on-set and post-set callbacks of the node.
    pub callbacks: ParameterCallbacks,
    event_sink: OnceLock<Weak<dyn ParameterEventSink>>,
}

struct ParameterEntry {
    value: ParameterValue,
    /// Static type, or the current type under dynamic typing.
    type_of: ParameterType,
    descriptor: ParameterDescriptor,
    observer: Option<Arc<dyn ParameterObserver>>,
}

/// A parameter declaration.
pub struct ParameterDeclaration {
    /// Name; dots separate groups.
    pub name: String,
    /// `NotSet` for dynamic typing.
    pub type_of: ParameterType,
    /// Initial value unless there is an override.
    pub default: ParameterValue,
    /// Ranges, read-only and dynamic typing.
    pub descriptor: ParameterDescriptor,
    /// Whether the default is used although there is an override.
    pub ignore_override: bool,
}

impl ParameterStore {
    /// A store without declared parameters. `node` is the fully qualified name in errors.
    pub fn new(node: String, rules: StoreRules, overrides: ParameterOverrides) -> Arc<Self> {
        Arc::new(Self {
            node,
            rules,
            overrides,
            entries: Mutex::default(),
            changing: ReentrantMutex::default(),
            callbacks: ParameterCallbacks::default(),
            event_sink: OnceLock::new(),
        })
    }

    /// Sets once where parameter events go; without it there are none.
    pub fn set_event_sink(&self, event_sink: Weak<dyn ParameterEventSink>) {
        // Set once, when the node is created.
        let _ = self.event_sink.set(event_sink);
    }

    /// Declares the overrides that are not declared yet, if the rules say so.
    pub fn declare_overrides(&self) -> Result<(), ParameterError> {
        if !self.rules.declare_from_overrides {
            return Ok(());
        }
        for (name, override_value) in &self.overrides {
            if self.has(name) {
                continue;
            }
            self.declare(
                ParameterDeclaration {
                    name: name.clone(),
                    type_of: ParameterType::NotSet,
                    default: override_value.text.value().clone(),
                    descriptor: ParameterDescriptor::new().dynamic_typing(),
                    ignore_override: true,
                },
                |_| None,
            )?;
        }
        Ok(())
    }

    // --- declaring ---

    /// Declares a parameter. `observer` is created from the initial value.
    pub fn declare(
        &self,
        declaration: ParameterDeclaration,
        observer: impl FnOnce(&ParameterValue) -> Option<Arc<dyn ParameterObserver>>,
    ) -> Result<ParameterValue, ParameterError> {
        let name = declaration.name.clone();
        let set_error = |source| ParameterError::Set {
            node: self.node.clone(),
            source,
        };
        if name.is_empty() {
            return Err(set_error(SetParameterError::EmptyName));
        }
        let change = self.begin_change().map_err(set_error)?;
        if self.has(&name) {
            let node = self.node.clone();
            return Err(ParameterError::AlreadyDeclared { node, name });
        }
        let override_value = self.overrides.get(&name);
        let override_value = override_value.filter(|_| !declaration.ignore_override);
        let value = match override_value {
            Some(override_value) => override_value.text.value_as(declaration.type_of),
            None => declaration.default.clone().coerced(declaration.type_of),
        };
        let mut event = self.event();
        let mut entry = ParameterEntry {
            value: ParameterValue::NotSet,
            type_of: declaration.type_of,
            descriptor: declaration.descriptor,
            observer: None,
        };
        let parameters = [Parameter {
            name: name.clone(),
            value,
        }];
        let [parameter] = &parameters;
        let has_value = parameter.value != ParameterValue::NotSet;
        if has_value {
            let checked = entry.check(&name, &parameter.value);
            let checked = checked.and_then(|()| self.call_on_set(&change, &parameters));
            checked.map_err(|source| ParameterError::InvalidInitialValue {
                node: self.node.clone(),
                name: name.clone(),
                value: parameter.value.clone(),
                origin: override_value.map_or("the program".into(), |override_value| {
                    override_value.origin.to_string()
                }),
                source: Box::new(source),
            })?;
            entry.observer = observer(&parameter.value);
            entry.set(parameter.value.clone());
            event.new_parameters.push(parameter.clone().into_message());
        } else {
            entry.observer = observer(&parameter.value);
        }
        self.entries.lock().insert(name, entry);
        if has_value {
            change.call(|| self.callbacks.call_post_set(&parameters));
        }
        self.publish_event(event);
        let [parameter] = parameters;
        Ok(parameter.value)
    }

    /// Undeclares a parameter of dynamic type. Handles keep the last value.
    pub fn undeclare(&self, name: &str) -> Result<(), ParameterError> {
        let set_error = |source| ParameterError::Set {
            node: self.node.clone(),
            source,
        };
        let _change = self.begin_change().map_err(set_error)?;
        let mut entries = self.entries.lock();
        let entry = entries.get(name);
        let entry = entry.ok_or_else(|| self.not_declared(name))?;
        let name = name.to_owned();
        if entry.descriptor.read_only {
            return Err(set_error(SetParameterError::ReadOnly { name }));
        }
        if !entry.descriptor.dynamic_typing {
            return Err(set_error(SetParameterError::StaticType { name }));
        }
        let removed = entries.remove(&name);
        drop(entries);
        let mut event = self.event();
        let value = ParameterValue::NotSet;
        event
            .deleted_parameters
            .push(Parameter { name, value }.into_message());
        self.publish_event(event);
        drop(removed);
        Ok(())
    }

    // --- setting ---

    /// Sets all parameters or none.
    pub fn set_atomically(&self, mut parameters: Vec<Parameter>) -> Result<(), SetParameterError> {
        let change = self.begin_change()?;
        change.call(|| self.callbacks.call_pre_set(&mut parameters));
        if parameters.is_empty() {
            return Err(SetParameterError::EmptyList);
        }
        self.check(&mut parameters)?;
        self.call_on_set(&change, &parameters)?;
        let mut event = self.event();
        let _gone = self.commit(&parameters, &mut event);
        change.call(|| self.callbacks.call_post_set(&parameters));
        self.publish_event(event);
        Ok(())
    }

    /// Checks the values against the descriptors and coerces them to the static
    /// types.
    fn check(&self, parameters: &mut [Parameter]) -> Result<(), SetParameterError> {
        let entries = self.entries.lock();
        for Parameter { name, value } in parameters {
            if name.is_empty() {
                return Err(SetParameterError::EmptyName);
            }
            let Some(entry) = entries.get(name) else {
                if self.rules.allow_undeclared {
                    continue;
                } else {
                    return Err(SetParameterError::NotDeclared { name: name.clone() });
                }
            };
            let name = name.clone();
            if entry.descriptor.read_only {
                return Err(SetParameterError::ReadOnly { name });
            }
            let is_static = !entry.descriptor.dynamic_typing;
            let deletes = *value == ParameterValue::NotSet;
            if is_static && deletes && entry.value != ParameterValue::NotSet {
                return Err(SetParameterError::StaticType { name });
            }
            if is_static {
                *value = std::mem::take(value).coerced(entry.type_of);
            }
            entry.check(&name, value)?;
        }
        Ok(())
    }

    /// Stores the values. The caller drops deleted entries without a lock.
    fn commit(
        &self,
        parameters: &[Parameter],
        event: &mut msg::ParameterEvent,
    ) -> Vec<ParameterEntry> {
        let mut removed = Vec::new();
        let mut entries = self.entries.lock();
        for Parameter { name, value } in parameters {
            let parameter = || Parameter::new(name.clone(), value.clone()).into_message();
            match entries.get_mut(name) {
                Some(entry) if *value == ParameterValue::NotSet => {
                    if entry.value == ParameterValue::NotSet {
                        event.changed_parameters.push(parameter());
                    } else {
                        event.deleted_parameters.push(parameter());
                        removed.extend(entries.remove(name));
                    }
                }
                Some(entry) => {
                    entry.set(value.clone());
                    event.changed_parameters.push(parameter());
                }
                None => {
                    let mut entry = ParameterEntry {
                        value: ParameterValue::NotSet,
                        type_of: ParameterType::NotSet,
                        descriptor: ParameterDescriptor::new().dynamic_typing(),
                        observer: None,
                    };
                    entry.set(value.clone());
                    entries.insert(name.clone(), entry);
                    if *value != ParameterValue::NotSet {
                        event.new_parameters.push(parameter());
                    }
                }
            }
        }
        removed
    }

    fn call_on_set(
        &self,
        change: &ChangeGuard<'_>,
        parameters: &[Parameter],
    ) -> Result<(), SetParameterError> {
        change
            .call(|| self.callbacks.call_on_set(parameters))
            .map_err(|reason| SetParameterError::Rejected { reason })
    }

    fn begin_change(&self) -> Result<ChangeGuard<'_>, SetParameterError> {
        let change = ChangeGuard(self.changing.lock());
        if change.0.get() {
            Err(SetParameterError::InCallback)
        } else {
            Ok(change)
        }
    }

    fn event(&self) -> msg::ParameterEvent {
        msg::ParameterEvent {
            node: self.node.clone(),
            ..Default::default()
        }
    }

    fn publish_event(&self, event: msg::ParameterEvent) {
        if let Some(event_sink) = self.event_sink.get().and_then(Weak::upgrade) {
            event_sink.publish_event(event);
        }
    }

    // --- reading ---

    /// Whether the parameter is declared.
    pub fn has(&self, name: &str) -> bool {
        self.entries.lock().contains_key(name)
    }

    /// Fully qualified name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The overrides that it was created with.
    pub fn overrides(&self) -> &ParameterOverrides {
        &self.overrides
    }

    /// The value of a declared parameter; not set for an undeclared one if these are allowed.
    ///
    /// # Errors
    /// The parameter is not declared.
    pub fn get(&self, name: &str) -> Result<ParameterValue, ParameterError> {
        let entries = self.entries.lock();
        let Some(entry) = entries.get(name) else {
            return if self.rules.allow_undeclared {
                Ok(ParameterValue::NotSet)
            } else {
                Err(self.not_declared(name))
            };
        };
        if entry.value == ParameterValue::NotSet && !entry.descriptor.dynamic_typing {
            return Err(ParameterError::NoValue {
                node: self.node.clone(),
                name: name.into(),
                type_of: entry.type_of,
            });
        }
        Ok(entry.value.clone())
    }

    /// The type of a declared parameter.
    ///
    /// # Errors
    /// The parameter is not declared.
    pub fn type_of(&self, name: &str) -> Result<ParameterType, ParameterError> {
        let entries = self.entries.lock();
        match entries.get(name) {
            Some(entry) => Ok(entry.value.parameter_type()),
            None if self.rules.allow_undeclared => Ok(ParameterType::NotSet),
            None => Err(self.not_declared(name)),
        }
    }

    /// The descriptor of a declared parameter.
    ///
    /// # Errors
    /// The parameter is not declared.
    pub fn describe(&self, name: &str) -> Result<msg::ParameterDescriptor, ParameterError> {
        let entries = self.entries.lock();
        match entries.get(name) {
            Some(entry) => Ok(entry.descriptor.message(name, entry.type_of)),
            None if self.rules.allow_undeclared => Ok(msg::ParameterDescriptor {
                name: name.into(),
                ..Default::default()
            }),
            None => Err(self.not_declared(name)),
        }
    }

    /// Sorted names under any of the prefixes, or all names without prefixes. A
    /// `depth` above 0 limits the parts between dots below the prefix.
    pub fn list(&self, prefixes: &[String], depth: u64) -> msg::ListParametersResult {
        let is_near = |rest: &str| {
            let dots = rest.bytes().filter(|byte| *byte == b'.').count();
            depth == 0 || u64::try_from(dots).is_ok_and(|dots| dots < depth)
        };
        let is_below = |name: &str, prefix: &String| match name.strip_prefix(prefix.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(is_near),
            None => false,
        };
        let mut result = msg::ListParametersResult::default();
        for name in self.entries.lock().keys() {
            let wanted = match prefixes {
                [] => is_near(name),
                prefixes => prefixes.iter().any(|prefix| is_below(name, prefix)),
            };
            if !wanted {
                continue;
            }
            result.names.push(name.clone());
            if let Some((prefix, _)) = name.rsplit_once('.')
                && !result.prefixes.iter().any(|known| known == prefix)
            {
                result.prefixes.push(prefix.into());
            }
        }
        result
    }

    fn not_declared(&self, name: &str) -> ParameterError {
        ParameterError::NotDeclared {
            node: self.node.clone(),
            name: name.into(),
        }
    }
}

impl ParameterEntry {
    /// Checks the value against the type and the descriptor.
    fn check(&self, name: &str, value: &ParameterValue) -> Result<(), SetParameterError> {
        let (expected, found) = (self.type_of, value.parameter_type());
        if !self.descriptor.dynamic_typing && expected != found {
            return Err(SetParameterError::WrongType {
                name: name.into(),
                expected,
                found,
            });
        }
        let in_range = self.descriptor.check_range(name, value);
        in_range.map_err(|reason| SetParameterError::OutOfRange {
            name: name.into(),
            value: value.clone(),
            reason,
        })
    }

    fn set(&mut self, value: ParameterValue) {
        if let Some(observer) = &self.observer {
            observer.handle_value(&value);
        }
        self.type_of = value.parameter_type();
        self.value = value;
    }
}

/// Guard of a change in progress; the next one waits for it.
struct ChangeGuard<'s>(parking_lot::ReentrantMutexGuard<'s, Cell<bool>>);

impl ChangeGuard<'_> {
    /// Runs callbacks, which cannot start another change.
    fn call<R>(&self, callbacks: impl FnOnce() -> R) -> R {
        struct Reset<'c>(&'c Cell<bool>);
        impl Drop for Reset<'_> {
            /// Also if a callback panics.
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        self.0.set(true);
        let _reset = Reset(&self.0);
        callbacks()
    }
}
