//! The parameters of one node: what is declared, and how it changes.
//!
//! One change at a time, callbacks included, in the order of rclcpp's
//! `NodeParameters`: pre-set callbacks, checks, on-set callbacks, the values, post-set
//! callbacks, the event. Reading goes on meanwhile.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, ReentrantMutex};
use pteros_interfaces::rcl_interfaces::msg;
use pteros_rmw::rtps::fault;

use super::callbacks::Callbacks;
use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::value::{ParameterType, ParameterValue};

/// A parameter by its name, as it is set.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parameter {
    /// Its name; dots part groups: `arm.speed`.
    pub name: String,
    /// The value.
    pub value: ParameterValue,
}

impl Parameter {
    /// A name and a value.
    pub fn new(name: impl Into<String>, value: impl Into<ParameterValue>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// Reads a message. A value without a type counts as none.
    pub fn from_message(message: &msg::Parameter) -> Self {
        Self {
            name: message.name.clone(),
            value: ParameterValue::from_message(&message.value).unwrap_or_default(),
        }
    }

    /// The message of it.
    pub fn into_message(self) -> msg::Parameter {
        msg::Parameter {
            name: self.name,
            value: self.value.into_message(),
        }
    }
}

/// A value that somebody outside the program wants a parameter to begin with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Override {
    pub(crate) value: ParameterValue,
    /// A line of a file, the command line, the program.
    pub(crate) from: Arc<str>,
}

pub(crate) type Overrides = BTreeMap<String, Override>;

/// What a node's options say about its parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoreRules {
    pub(crate) allow_undeclared: bool,
    pub(crate) declare_from_overrides: bool,
}

/// Told of each new value of one parameter.
pub(super) trait Follow: Send + Sync {
    fn follow(&self, value: &ParameterValue);
}

/// Publishes what changed.
pub(super) trait Announce: Send + Sync {
    fn announce(&self, event: msg::ParameterEvent);
}

/// See the module's words.
pub(crate) struct ParameterStore {
    node: String,
    rules: StoreRules,
    overrides: Overrides,
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Held through a change. True while callbacks run: the same thread may come
    /// again from there, and is sent away.
    changing: ReentrantMutex<Cell<bool>>,
    pub(super) callbacks: Callbacks,
    announcer: OnceLock<Weak<dyn Announce>>,
}

struct Entry {
    value: ParameterValue,
    /// What it must be, or for dynamic typing what it is.
    type_of: ParameterType,
    descriptor: ParameterDescriptor,
    follower: Option<Arc<dyn Follow>>,
}

/// What a declaration is.
pub(super) struct Declaration {
    pub(super) name: String,
    /// `NotSet` for dynamic typing.
    pub(super) type_of: ParameterType,
    pub(super) default: ParameterValue,
    pub(super) descriptor: ParameterDescriptor,
    pub(super) ignore_override: bool,
}

impl ParameterStore {
    pub(crate) fn new(node: String, rules: StoreRules, overrides: Overrides) -> Arc<Self> {
        Arc::new(Self {
            node,
            rules,
            overrides,
            entries: Mutex::default(),
            changing: ReentrantMutex::default(),
            callbacks: Callbacks::default(),
            announcer: OnceLock::new(),
        })
    }

    pub(super) fn announce_through(&self, announcer: Weak<dyn Announce>) {
        // Set once, when the node is made.
        let _ = self.announcer.set(announcer);
    }

    /// Declares what the overrides have and nobody declared yet, if so ruled.
    pub(crate) fn declare_overrides(&self) -> Result<(), ParameterError> {
        if !self.rules.declare_from_overrides {
            return Ok(());
        }
        for (name, given) in &self.overrides {
            if self.has(name) {
                continue;
            }
            self.declare(
                Declaration {
                    name: name.clone(),
                    type_of: ParameterType::NotSet,
                    default: given.value.clone(),
                    descriptor: ParameterDescriptor::new().dynamic_typing(),
                    ignore_override: true,
                },
                |_| None,
            )?;
        }
        Ok(())
    }

    // --- declaring ---

    /// Declares a parameter; `follower` is made of the value it begins with.
    pub(super) fn declare(
        &self,
        declaration: Declaration,
        follower: impl FnOnce(&ParameterValue) -> Option<Arc<dyn Follow>>,
    ) -> Result<ParameterValue, ParameterError> {
        let name = declaration.name.clone();
        let set_error = |source| ParameterError::Set {
            node: self.node.clone(),
            source,
        };
        if name.is_empty() {
            return Err(set_error(SetParameterError::NoName));
        }
        let change = self.begin().map_err(set_error)?;
        if self.has(&name) {
            let node = self.node.clone();
            return Err(ParameterError::AlreadyDeclared { node, name });
        }
        let given = self.overrides.get(&name);
        let given = given.filter(|_| !declaration.ignore_override);
        let value = given.map_or(&declaration.default, |given| &given.value);
        let value = value.clone().fitted(declaration.type_of);
        let mut event = self.event();
        let mut entry = Entry {
            value: ParameterValue::NotSet,
            type_of: declaration.type_of,
            descriptor: declaration.descriptor,
            follower: None,
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
            checked.map_err(|source| ParameterError::Initial {
                node: self.node.clone(),
                name: name.clone(),
                value: parameter.value.clone(),
                from: given.map_or("the program".into(), |given| given.from.to_string()),
                source: Box::new(source),
            })?;
            entry.follower = follower(&parameter.value);
            entry.set(parameter.value.clone());
            event.new_parameters.push(parameter.clone().into_message());
        } else {
            entry.follower = follower(&parameter.value);
        }
        self.entries.lock().insert(name, entry);
        if has_value {
            change.call(|| self.callbacks.call_post_set(&parameters));
        }
        self.announce(event);
        let [parameter] = parameters;
        Ok(parameter.value)
    }

    /// Forgets a parameter of dynamic type. Handles keep the last value.
    pub(super) fn undeclare(&self, name: &str) -> Result<(), ParameterError> {
        let set_error = |source| ParameterError::Set {
            node: self.node.clone(),
            source,
        };
        let _change = self.begin().map_err(set_error)?;
        let mut entries = self.entries.lock();
        let entry = entries.get(name);
        let entry = entry.ok_or_else(|| self.not_declared(name))?;
        let name = name.to_owned();
        if entry.descriptor.read_only {
            return Err(set_error(SetParameterError::ReadOnly { name }));
        }
        if !entry.descriptor.dynamic_typing {
            return Err(set_error(SetParameterError::Static { name }));
        }
        let gone = entries.remove(&name);
        drop(entries);
        let mut event = self.event();
        let value = ParameterValue::NotSet;
        event
            .deleted_parameters
            .push(Parameter { name, value }.into_message());
        self.announce(event);
        drop(gone);
        Ok(())
    }

    // --- setting ---

    /// Sets all of them or none.
    pub(crate) fn set_atomically(
        &self,
        mut parameters: Vec<Parameter>,
    ) -> Result<(), SetParameterError> {
        let change = self.begin()?;
        change.call(|| self.callbacks.call_pre_set(&mut parameters));
        if parameters.is_empty() {
            return Err(SetParameterError::Nothing);
        }
        self.check(&mut parameters)?;
        self.call_on_set(&change, &parameters)?;
        let mut event = self.event();
        let _gone = self.commit(&parameters, &mut event);
        change.call(|| self.callbacks.call_post_set(&parameters));
        self.announce(event);
        Ok(())
    }

    /// Whether all may be set, as far as descriptors say. Fits values to types.
    fn check(&self, parameters: &mut [Parameter]) -> Result<(), SetParameterError> {
        let entries = self.entries.lock();
        for Parameter { name, value } in parameters {
            if name.is_empty() {
                return Err(SetParameterError::NoName);
            }
            let Some(entry) = entries.get(name) else {
                match self.rules.allow_undeclared {
                    true => continue,
                    false => return Err(SetParameterError::NotDeclared { name: name.clone() }),
                }
            };
            let name = name.clone();
            if entry.descriptor.read_only {
                return Err(SetParameterError::ReadOnly { name });
            }
            let is_static = !entry.descriptor.dynamic_typing;
            let deletes = *value == ParameterValue::NotSet;
            if is_static && deletes && entry.value != ParameterValue::NotSet {
                return Err(SetParameterError::Static { name });
            }
            if is_static {
                *value = std::mem::take(value).fitted(entry.type_of);
            }
            entry.check(&name, value)?;
        }
        Ok(())
    }

    /// Puts the values in place. What is deleted is dropped by the caller, under
    /// no lock.
    fn commit(&self, parameters: &[Parameter], event: &mut msg::ParameterEvent) -> Vec<Entry> {
        let mut gone = Vec::new();
        let mut entries = self.entries.lock();
        let count = match fault!("parameters-set-in-part") {
            true => 1,
            false => parameters.len(),
        };
        for Parameter { name, value } in parameters.iter().take(count) {
            let parameter = || Parameter::new(name.clone(), value.clone()).into_message();
            match entries.get_mut(name) {
                Some(entry) if *value == ParameterValue::NotSet => {
                    if entry.value == ParameterValue::NotSet {
                        event.changed_parameters.push(parameter());
                    } else {
                        event.deleted_parameters.push(parameter());
                        gone.extend(entries.remove(name));
                    }
                }
                Some(entry) => {
                    entry.set(value.clone());
                    event.changed_parameters.push(parameter());
                }
                None => {
                    let mut entry = Entry {
                        value: ParameterValue::NotSet,
                        type_of: ParameterType::NotSet,
                        descriptor: ParameterDescriptor::new().dynamic_typing(),
                        follower: None,
                    };
                    entry.set(value.clone());
                    entries.insert(name.clone(), entry);
                    if *value != ParameterValue::NotSet {
                        event.new_parameters.push(parameter());
                    }
                }
            }
        }
        gone
    }

    fn call_on_set(
        &self,
        change: &Change<'_>,
        parameters: &[Parameter],
    ) -> Result<(), SetParameterError> {
        change
            .call(|| self.callbacks.call_on_set(parameters))
            .map_err(|reason| SetParameterError::Rejected { reason })
    }

    fn begin(&self) -> Result<Change<'_>, SetParameterError> {
        let change = Change(self.changing.lock());
        match change.0.get() {
            true => Err(SetParameterError::InCallback),
            false => Ok(change),
        }
    }

    fn event(&self) -> msg::ParameterEvent {
        msg::ParameterEvent {
            node: self.node.clone(),
            ..Default::default()
        }
    }

    fn announce(&self, event: msg::ParameterEvent) {
        if let Some(announcer) = self.announcer.get().and_then(Weak::upgrade) {
            announcer.announce(event);
        }
    }

    // --- reading ---

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.lock().contains_key(name)
    }

    /// The node's full name.
    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(crate) fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    pub(crate) fn get(&self, name: &str) -> Result<ParameterValue, ParameterError> {
        let entries = self.entries.lock();
        let Some(entry) = entries.get(name) else {
            return match self.rules.allow_undeclared {
                true => Ok(ParameterValue::NotSet),
                false => Err(self.not_declared(name)),
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

    pub(super) fn type_of(&self, name: &str) -> Result<ParameterType, ParameterError> {
        let entries = self.entries.lock();
        match entries.get(name) {
            Some(entry) => Ok(entry.value.parameter_type()),
            None if self.rules.allow_undeclared => Ok(ParameterType::NotSet),
            None => Err(self.not_declared(name)),
        }
    }

    pub(super) fn describe(&self, name: &str) -> Result<msg::ParameterDescriptor, ParameterError> {
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

    /// Names below any of the prefixes, or all without one, in order; a `depth`
    /// above 0 limits how many parts between dots a name has below its prefix.
    pub(super) fn list(&self, prefixes: &[String], depth: u64) -> msg::ListParametersResult {
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

impl Entry {
    /// Whether it may have the value, as its descriptor says.
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
        if let Some(follower) = &self.follower {
            follower.follow(&value);
        }
        self.type_of = value.parameter_type();
        self.value = value;
    }
}

/// A change that goes on; the next one waits for its end.
struct Change<'s>(parking_lot::ReentrantMutexGuard<'s, Cell<bool>>);

impl Change<'_> {
    /// Runs callbacks, which cannot begin another change.
    fn call<R>(&self, callbacks: impl FnOnce() -> R) -> R {
        struct Reset<'c>(&'c Cell<bool>);
        impl Drop for Reset<'_> {
            /// Also when a callback panics.
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        self.0.set(true);
        let _reset = Reset(&self.0);
        callbacks()
    }
}
