//! Parameter store: the declared parameters of one node and their changes.
//!
//! Order of a change: pre-set callbacks, checks, on-set callbacks, the values, then the
//! post-set callbacks and the parameter event. A [`RuleSet`] says where rclcpp and rclpy
//! differ. By the rules of rclcpp there is one change at a time, including callbacks.
//! Reads do not wait for a change.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, ReentrantMutex};
use pteros_interfaces::rcl_interfaces::msg;

use super::callbacks::{ParameterCallbacks, ParameterEventSink, ParameterHooks};
use super::descriptor::ParameterDescriptor;
use super::entry::ParameterEntry;
use super::error::{ParameterError, SetParameterError};
use super::parameter_text::ParameterText;
use super::rules::RuleSet;
use super::value::{ParameterType, ParameterValue};

/// A parameter name with a value, as in rclcpp.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parameter {
    /// Name; dots separate groups: `arm.speed`.
    pub name: String,
    /// [`ParameterValue::NotSet`] deletes a parameter of dynamic type.
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
    /// Counts the overrides of a node, in the order of their first appearance.
    pub order: usize,
}

/// Parameter overrides of one node, by parameter.
pub type ParameterOverrides = BTreeMap<String, ParameterOverride>;

/// Adds an override, or replaces that of the same name.
pub(super) fn add_override(
    overrides: &mut ParameterOverrides,
    name: &str,
    mut override_value: ParameterOverride,
) {
    let known = overrides.get(name).map(|known| known.order);
    override_value.order = known.unwrap_or(overrides.len());
    overrides.insert(name.into(), override_value);
}

/// Rules from the node's options.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreRules {
    /// rclcpp's `allow_undeclared_parameters`: setting an undeclared one declares it.
    pub allow_undeclared: bool,
    /// rclcpp's `automatically_declare_parameters_from_overrides`.
    pub declare_from_overrides: bool,
    /// The client library that the store behaves like.
    pub rule_set: RuleSet,
}

/// Observer of the value of one parameter.
pub trait ParameterObserver: Send + Sync {
    /// Called with each new value, while the values are locked: neither read nor set
    /// parameters there.
    fn handle_value(&self, value: &ParameterValue);
}

/// See the module documentation.
pub struct ParameterStore {
    node: String,
    pub(super) rules: StoreRules,
    overrides: ParameterOverrides,
    pub(super) entries: Mutex<Entries>,
    /// Held during a change. True while callbacks run: a nested change by the same
    /// thread is rejected. Not used where the rules allow nested changes.
    pub(super) changing: ReentrantMutex<Cell<bool>>,
    /// Pre-set, on-set and post-set callbacks of the node, and where its events go. A
    /// language that has its own passes them to the methods ending in `_with`.
    pub callbacks: ParameterCallbacks,
}

#[derive(Default)]
pub(super) struct Entries {
    pub(super) by_name: BTreeMap<String, ParameterEntry>,
    declared_count: u64,
}

impl Entries {
    pub(super) fn insert(&mut self, name: String, mut entry: ParameterEntry) {
        let known = self.by_name.get(&name).map(|known| known.order);
        entry.order = known.unwrap_or_else(|| {
            self.declared_count += 1;
            self.declared_count
        });
        self.by_name.insert(name, entry);
    }
}

/// A parameter as a node declares it.
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
        })
    }

    /// Sets once where parameter events go; without it there are none.
    pub fn set_event_sink(&self, event_sink: Weak<dyn ParameterEventSink>) {
        self.callbacks.set_event_sink(event_sink);
    }

    /// Declares the overrides that are not declared yet, if the rules say so.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn declare_overrides(&self) -> Result<(), ParameterError> {
        self.declare_overrides_with(&self.callbacks)
    }

    /// As [`Self::declare_overrides`], with the callbacks of a language.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn declare_overrides_with(&self, hooks: &dyn ParameterHooks) -> Result<(), ParameterError> {
        if !self.rules.declare_from_overrides {
            return Ok(());
        }
        for (name, override_value) in self.ordered_overrides() {
            if self.has(name) {
                continue;
            }
            let default = override_value.text.value().clone();
            let is_static = self.rules.rule_set.declares_overrides_statically();
            let (type_of, descriptor) = if is_static {
                (default.parameter_type(), ParameterDescriptor::new())
            } else {
                let dynamic = ParameterDescriptor::new().dynamic_typing();
                (ParameterType::NotSet, dynamic)
            };
            let declaration = ParameterDeclaration {
                name: name.clone(),
                type_of,
                default,
                descriptor,
                ignore_override: true,
            };
            self.declare_with(hooks, declaration, |_| None)?;
        }
        Ok(())
    }

    // --- declaring ---

    /// Declares a parameter. `observer` is created from the initial value.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn declare(
        &self,
        declaration: ParameterDeclaration,
        observer: impl FnOnce(&ParameterValue) -> Option<Arc<dyn ParameterObserver>>,
    ) -> Result<ParameterValue, ParameterError> {
        self.declare_with(&self.callbacks, declaration, observer)
    }

    /// As [`Self::declare`], with the callbacks of a language.
    ///
    /// # Errors
    /// See [`ParameterError`].
    pub fn declare_with(
        &self,
        hooks: &dyn ParameterHooks,
        declaration: ParameterDeclaration,
        observer: impl FnOnce(&ParameterValue) -> Option<Arc<dyn ParameterObserver>>,
    ) -> Result<ParameterValue, ParameterError> {
        let name = declaration.name.clone();
        let set_error = |source| self.set_error(source);
        if name.is_empty() {
            return Err(set_error(SetParameterError::EmptyName));
        }
        let rules = self.rules.rule_set;
        let change = self.begin_change().map_err(set_error)?;
        if self.has(&name) {
            let node = self.node.clone();
            return Err(ParameterError::AlreadyDeclared { node, name });
        }
        let type_of = declaration.type_of;
        let override_value = self.overrides.get(&name);
        let override_value = override_value.filter(|_| !declaration.ignore_override);
        let value = match override_value {
            Some(override_value) => rules.override_value(&override_value.text, type_of),
            None => rules.converted(declaration.default, type_of),
        };
        let mut event = self.event();
        let mut entry = ParameterEntry::new(type_of, declaration.descriptor);
        let parameters = [Parameter {
            name: name.clone(),
            value,
        }];
        let [parameter] = &parameters;
        let has_value = parameter.value != ParameterValue::NotSet;
        let is_reported = has_value || rules.reports_missing_values();
        let mut checked = Ok(());
        if has_value {
            checked = entry.check(rules, &name, &parameter.value);
        }
        if is_reported {
            checked = checked.and_then(|()| change.call_all(|| hooks.on_set(), &parameters));
        }
        checked.map_err(|source| match source {
            SetParameterError::Stopped => set_error(source),
            source => ParameterError::InvalidInitialValue {
                node: self.node.clone(),
                name: name.clone(),
                value: parameter.value.clone(),
                origin: override_value.map_or("the program".into(), |override_value| {
                    override_value.origin.to_string()
                }),
                source: Box::new(source),
            },
        })?;
        entry.observer = observer(&parameter.value);
        if has_value {
            entry.set(parameter.value.clone());
        }
        self.entries.lock().insert(name, entry);
        if is_reported {
            event.new_parameters.push(parameter.clone().into_message());
        }
        let reported: &[Parameter] = if is_reported { &parameters } else { &[] };
        self.report(hooks, &change, reported, event)
            .map_err(set_error)?;
        let [parameter] = parameters;
        Ok(parameter.value)
    }

    /// Undeclares a parameter; by the rules of rclcpp only one of dynamic type. Handles
    /// keep the last value.
    ///
    /// # Errors
    /// It is not declared, read-only or of static type.
    pub fn undeclare(&self, name: &str) -> Result<(), ParameterError> {
        let rules = self.rules.rule_set;
        let _change = self.begin_change().map_err(|error| self.set_error(error))?;
        let mut entries = self.entries.lock();
        let entry = entries.by_name.get(name);
        let entry = entry.ok_or_else(|| self.not_declared(name))?;
        let name = name.to_owned();
        if entry.descriptor.read_only {
            return Err(self.set_error(SetParameterError::ReadOnly { name }));
        }
        if !entry.descriptor.dynamic_typing && !rules.undeclares_static_types() {
            return Err(self.set_error(SetParameterError::StaticType { name }));
        }
        let removed = entries.by_name.remove(&name);
        drop(entries);
        if rules.publishes_undeclared() {
            let mut event = self.event();
            let value = ParameterValue::NotSet;
            let parameter = Parameter { name, value };
            event.deleted_parameters.push(parameter.into_message());
            self.callbacks
                .publish_event(event)
                .map_err(|error| self.set_error(error))?;
        }
        drop(removed);
        Ok(())
    }

    /// Replaces the descriptor of a declared parameter, as rclpy's `set_descriptor`.
    /// `type_of` is the static type. Where the descriptor rejects the present value, it
    /// takes `alternative`. No callback runs.
    ///
    /// # Errors
    /// The parameter is not declared, is read-only or has no value, or the descriptor
    /// rejects both values.
    pub fn set_descriptor(
        &self,
        name: &str,
        type_of: ParameterType,
        descriptor: ParameterDescriptor,
        alternative: Option<ParameterValue>,
    ) -> Result<ParameterValue, ParameterError> {
        let _change = self.begin_change().map_err(|error| self.set_error(error))?;
        let mut entries = self.entries.lock();
        let Some(entry) = entries.by_name.get_mut(name) else {
            drop(entries);
            return self.get(name);
        };
        if entry.descriptor.read_only {
            let name = name.to_owned();
            return Err(self.set_error(SetParameterError::ReadOnly { name }));
        }
        let value = entry.get(&self.node, name)?;
        let mut changed = ParameterEntry::new(type_of, descriptor);
        let check = |value: &ParameterValue| {
            let is_deleted = *value == ParameterValue::NotSet && !changed.descriptor.dynamic_typing;
            if is_deleted {
                let name = name.to_owned();
                return Err(SetParameterError::StaticType { name });
            }
            changed.check(self.rules.rule_set, name, value)
        };
        let value = match check(&value) {
            Ok(()) => value,
            Err(_) => {
                let value = alternative.unwrap_or(value);
                check(&value).map_err(|source| ParameterError::InvalidInitialValue {
                    node: self.node.clone(),
                    name: name.into(),
                    value: value.clone(),
                    origin: "the program".into(),
                    source: Box::new(source),
                })?;
                value
            }
        };
        changed.order = entry.order;
        changed.observer = entry.observer.take();
        changed.set(value.clone());
        *entry = changed;
        Ok(value)
    }

    // --- reading ---

    /// Whether the parameter is declared.
    pub fn has(&self, name: &str) -> bool {
        self.entries.lock().by_name.contains_key(name)
    }

    /// Fully qualified name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The rules that it was created with.
    pub fn rules(&self) -> StoreRules {
        self.rules
    }

    /// The overrides that it was created with.
    pub fn overrides(&self) -> &ParameterOverrides {
        &self.overrides
    }

    /// The overrides in the order of the rules.
    pub fn ordered_overrides(&self) -> Vec<(&String, &ParameterOverride)> {
        let mut all: Vec<_> = self.overrides.iter().collect();
        if self.rules.rule_set.lists_in_order_of_declaration() {
            all.sort_by_key(|(_, override_value)| override_value.order);
        }
        all
    }

    /// The value of a declared parameter; not set for an undeclared one if these are allowed.
    ///
    /// # Errors
    /// [`ParameterError::NotDeclared`]; [`ParameterError::NoValue`] where the type is static
    /// and there is no value yet.
    pub fn get(&self, name: &str) -> Result<ParameterValue, ParameterError> {
        let entries = self.entries.lock();
        match entries.by_name.get(name) {
            Some(entry) => entry.get(&self.node, name),
            None if self.rules.allow_undeclared => Ok(ParameterValue::NotSet),
            None => Err(self.not_declared(name)),
        }
    }

    /// The value of a parameter, if it is declared and has one.
    pub fn get_if_set(&self, name: &str) -> Option<ParameterValue> {
        let entries = self.entries.lock();
        let entry = entries.by_name.get(name).filter(|entry| entry.is_set());
        entry.map(|entry| entry.value.clone())
    }

    /// The type of a declared parameter's value.
    ///
    /// # Errors
    /// The parameter is not declared.
    pub fn type_of(&self, name: &str) -> Result<ParameterType, ParameterError> {
        let entries = self.entries.lock();
        match entries.by_name.get(name) {
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
        match entries.by_name.get(name) {
            Some(entry) => Ok(entry.descriptor.message(name, entry.type_of)),
            None if !self.rules.allow_undeclared => Err(self.not_declared(name)),
            None if self.rules.rule_set.describes_undeclared_by_name() => {
                Ok(msg::ParameterDescriptor {
                    name: name.into(),
                    ..Default::default()
                })
            }
            None => Ok(msg::ParameterDescriptor::default()),
        }
    }

    /// Names under any of the prefixes, or all names without prefixes, in the order of the
    /// rules. A `depth` above 0 limits the parts between dots below the prefix.
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
        let is_wanted = |name: &str| match prefixes {
            [] => is_near(name),
            prefixes => prefixes.iter().any(|prefix| is_below(name, prefix)),
        };
        let mut result = msg::ListParametersResult::default();
        for Parameter { name, .. } in self.select(is_wanted, false) {
            if let Some((prefix, _)) = name.rsplit_once('.')
                && !result.prefixes.iter().any(|known| known == prefix)
            {
                result.prefixes.push(prefix.into());
            }
            result.names.push(name);
        }
        result
    }

    /// The parameters whose names begin with `prefix`, in the order of the rules.
    pub fn with_prefix(&self, prefix: &str) -> Vec<Parameter> {
        self.select(|name| name.starts_with(prefix), true)
    }

    fn select(&self, is_wanted: impl Fn(&str) -> bool, with_values: bool) -> Vec<Parameter> {
        let entries = self.entries.lock();
        let found = entries.by_name.iter().filter(|(name, _)| is_wanted(name));
        let mut found: Vec<_> = found.collect();
        if self.rules.rule_set.lists_in_order_of_declaration() {
            found.sort_by_key(|(_, entry)| entry.order);
        }
        let parameter = |(name, entry): (&String, &ParameterEntry)| Parameter {
            name: name.clone(),
            value: if with_values {
                entry.value.clone()
            } else {
                ParameterValue::NotSet
            },
        };
        found.into_iter().map(parameter).collect()
    }

    fn not_declared(&self, name: &str) -> ParameterError {
        ParameterError::NotDeclared {
            node: self.node.clone(),
            name: name.into(),
        }
    }

    fn set_error(&self, source: SetParameterError) -> ParameterError {
        ParameterError::Set {
            node: self.node.clone(),
            source,
        }
    }
}
