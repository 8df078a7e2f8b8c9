//! Changes of declared parameters: pre-set callbacks, checks, on-set callbacks, the values,
//! post-set callbacks and the parameter event.

use std::cell::Cell;
use std::collections::BTreeSet;

use pteros_interfaces::rcl_interfaces::msg;

use super::callbacks::{CheckCall, ParameterHooks};
use super::entry::ParameterEntry;
use super::error::SetParameterError;
use super::parameter_store::{Parameter, ParameterStore};
use super::rules::RuleSet;
use super::value::ParameterValue;

impl ParameterStore {
    /// Sets all parameters or none.
    ///
    /// # Errors
    /// See [`SetParameterError`]; [`RuleSet::reason`] has the text for others.
    pub fn set_atomically(&self, parameters: Vec<Parameter>) -> Result<(), SetParameterError> {
        self.set_atomically_with(&self.callbacks, parameters)
    }

    /// As [`Self::set_atomically`], with the callbacks of a language.
    ///
    /// # Errors
    /// See [`Self::set_atomically`].
    pub fn set_atomically_with(
        &self,
        hooks: &dyn ParameterHooks,
        mut parameters: Vec<Parameter>,
    ) -> Result<(), SetParameterError> {
        let change = self.begin_change()?;
        let calls = hooks.pre_set();
        let may_be_empty = calls.is_empty() && !self.rules.rule_set.refuses_empty_lists();
        if self.rules.rule_set.joins_pre_set_results() && !calls.is_empty() {
            let given = std::mem::take(&mut parameters);
            for call in calls {
                let mut changed = given.clone();
                change.call(|| call(&mut changed))?;
                parameters.append(&mut changed);
            }
        } else {
            for call in calls {
                change.call(|| call(&mut parameters))?;
            }
        }
        if parameters.is_empty() && !may_be_empty {
            return Err(SetParameterError::EmptyList);
        }
        self.check(&mut parameters)?;
        change.call_all(|| hooks.on_set(), &parameters)?;
        let mut event = self.event();
        let _gone = self.commit(&parameters, &mut event);
        self.report(hooks, &change, &parameters, event)
    }

    /// Checks the values against the descriptors and converts them to the static types.
    fn check(&self, parameters: &mut [Parameter]) -> Result<(), SetParameterError> {
        match self.rules.rule_set {
            RuleSet::Rclcpp => self.check_as_rclcpp(parameters),
            RuleSet::Rclpy => self.check_as_rclpy(parameters),
        }
    }

    /// First names and read-only parameters of the whole list, then deletions, then types
    /// and ranges, as `set_parameters_atomically` of rclcpp.
    fn check_as_rclcpp(&self, parameters: &mut [Parameter]) -> Result<(), SetParameterError> {
        let entries = self.entries.lock();
        for Parameter { name, .. } in &*parameters {
            if name.is_empty() {
                return Err(SetParameterError::EmptyName);
            }
            match entries.by_name.get(name) {
                None if !self.rules.allow_undeclared => {
                    let names = vec![name.clone()];
                    return Err(SetParameterError::NotDeclared { names });
                }
                Some(entry) if entry.descriptor.read_only => {
                    return Err(SetParameterError::ReadOnly { name: name.clone() });
                }
                _ => {}
            }
        }
        let declared = |name: &String| entries.by_name.get(name);
        for Parameter { name, value } in &*parameters {
            let deletes_static = |entry: &ParameterEntry| {
                *value == ParameterValue::NotSet
                    && entry.is_set()
                    && !entry.descriptor.dynamic_typing
            };
            if declared(name).is_some_and(deletes_static) {
                return Err(SetParameterError::StaticType { name: name.clone() });
            }
        }
        for Parameter { name, value } in parameters {
            let Some(entry) = declared(name) else {
                continue;
            };
            if !entry.descriptor.dynamic_typing {
                let given = std::mem::take(value);
                *value = self.rules.rule_set.converted(given, entry.type_of);
            }
            entry.check(self.rules.rule_set, name, value)?;
        }
        Ok(())
    }

    /// First the names of the whole list, then each parameter with all its checks, as
    /// `_set_parameters_atomically` of rclpy.
    fn check_as_rclpy(&self, parameters: &[Parameter]) -> Result<(), SetParameterError> {
        let entries = self.entries.lock();
        let declared = |name: &String| entries.by_name.get(name);
        if !self.rules.allow_undeclared {
            let names = parameters.iter().map(|parameter| &parameter.name);
            let names: Vec<_> = names
                .filter(|name| declared(name).is_none())
                .cloned()
                .collect();
            if !names.is_empty() {
                return Err(SetParameterError::NotDeclared { names });
            }
        }
        for Parameter { name, value } in parameters {
            let Some(entry) = declared(name) else {
                continue;
            };
            if entry.descriptor.read_only {
                return Err(SetParameterError::ReadOnly { name: name.clone() });
            }
            if *value != ParameterValue::NotSet {
                entry.check(self.rules.rule_set, name, value)?;
            } else if !entry.descriptor.dynamic_typing {
                return Err(SetParameterError::StaticType { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Stores the values. The caller drops deleted entries without a lock.
    fn commit(
        &self,
        parameters: &[Parameter],
        event: &mut msg::ParameterEvent,
    ) -> Vec<ParameterEntry> {
        let rules = self.rules.rule_set;
        let mut removed = Vec::new();
        let mut entries = self.entries.lock();
        let mut deleted = BTreeSet::new();
        if !rules.deletes_without_value() {
            // By the rules of rclcpp, a deleted name takes no other value of the list.
            for Parameter { name, value } in parameters {
                let known = entries.by_name.get(name);
                if *value == ParameterValue::NotSet && known.is_some_and(|entry| entry.is_set()) {
                    let parameter = Parameter::new(name.clone(), ParameterValue::NotSet);
                    event.deleted_parameters.push(parameter.into_message());
                    removed.extend(entries.by_name.remove(name));
                    deleted.insert(name);
                }
            }
        }
        for Parameter { name, value } in parameters {
            if deleted.contains(name) {
                continue;
            }
            let parameter = || Parameter::new(name.clone(), value.clone()).into_message();
            let known = entries.by_name.get_mut(name);
            let was_set = known.as_ref().is_some_and(|entry| entry.is_set());
            if *value == ParameterValue::NotSet && rules.deletes_without_value() {
                event.deleted_parameters.push(parameter());
                removed.extend(entries.by_name.remove(name));
                continue;
            }
            match known {
                Some(entry) => {
                    entry.set(value.clone());
                    if !was_set && rules.first_values_are_new() {
                        event.new_parameters.push(parameter());
                    } else {
                        event.changed_parameters.push(parameter());
                    }
                }
                None => {
                    let mut entry = ParameterEntry::undeclared();
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

    /// Calls the post-set callbacks and publishes the event, in the order of the rules.
    pub(super) fn report(
        &self,
        hooks: &dyn ParameterHooks,
        change: &ChangeGuard<'_>,
        parameters: &[Parameter],
        event: msg::ParameterEvent,
    ) -> Result<(), SetParameterError> {
        let call_post_set = || match parameters {
            [] if !self.rules.rule_set.publishes_before_post_set() => Ok(()),
            parameters => change.call_all(|| hooks.post_set(), parameters),
        };
        if self.rules.rule_set.publishes_before_post_set() {
            hooks.publish_event(event)?;
            call_post_set()
        } else {
            call_post_set()?;
            hooks.publish_event(event)
        }
    }

    pub(super) fn begin_change(&self) -> Result<ChangeGuard<'_>, SetParameterError> {
        if self.rules.rule_set.allows_nested_changes() {
            return Ok(ChangeGuard(None));
        }
        let changing = self.changing.lock();
        if changing.get() {
            Err(SetParameterError::InCallback)
        } else {
            Ok(ChangeGuard(Some(changing)))
        }
    }

    pub(super) fn event(&self) -> msg::ParameterEvent {
        msg::ParameterEvent {
            node: self.node().to_owned(),
            ..Default::default()
        }
    }
}

/// Guard of a change in progress; the next one waits for it. Nothing where the rules allow
/// nested changes.
pub(super) struct ChangeGuard<'s>(Option<parking_lot::ReentrantMutexGuard<'s, Cell<bool>>>);

impl ChangeGuard<'_> {
    /// Runs callbacks, which cannot start another change.
    fn call<R>(&self, callbacks: impl FnOnce() -> R) -> R {
        struct Reset<'c>(Option<&'c Cell<bool>>);
        impl Drop for Reset<'_> {
            /// Also if a callback panics.
            fn drop(&mut self) {
                if let Some(cell) = self.0 {
                    cell.set(false);
                }
            }
        }
        let cell = self.0.as_deref();
        if let Some(cell) = cell {
            cell.set(true);
        }
        let _reset = Reset(cell);
        callbacks()
    }

    /// Calls callbacks in order until one fails.
    pub(super) fn call_all<'h>(
        &self,
        calls: impl FnOnce() -> Vec<CheckCall<'h>>,
        parameters: &[Parameter],
    ) -> Result<(), SetParameterError> {
        self.call(|| calls().iter().try_for_each(|call| call(parameters)))
    }
}
