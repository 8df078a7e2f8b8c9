//! Thread parameters: scheduling of the thread that spins a node.
//!
//! `thread.priority`, `thread.cpus` and `thread.lock_memory` are declared,
//! read-only, only on nodes that have an override for them.

use pteros_runtime::thread::{CpuList, Priority, ThreadSettingError, ThreadSettings};

use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::parameter_store::{ParameterDeclaration, ParameterStore};
use super::value::{ParameterType, ParameterValue};

const PRIORITY: &str = "thread.priority";
const CPUS: &str = "thread.cpus";
const LOCK_MEMORY: &str = "thread.lock_memory";

impl ParameterStore {
    /// Declares the thread parameters that have an override, and reads them.
    pub fn declare_thread(&self) -> Result<Option<Box<ThreadSettings>>, ParameterError> {
        let mut settings = ThreadSettings::default();
        if let Some(value) =
            self.declare_if_overridden(PRIORITY, "SCHED_FIFO priority of the thread, 1 to 99")?
        {
            let priority = self.checked(PRIORITY, value, priority_of)?;
            settings.priority = Some(priority);
        }
        if let Some(value) =
            self.declare_if_overridden(CPUS, "the only CPUs that the thread runs on, 2 or 0,4-7")?
        {
            settings.cpus = Some(self.checked(CPUS, value, cpus_of)?);
        }
        let description = "whether the process's memory is locked (mlockall)";
        if let Some(value) = self.declare_if_overridden(LOCK_MEMORY, description)? {
            settings.lock_memory = self.checked(LOCK_MEMORY, value, bool_of)?;
        }
        Ok((!settings.is_empty()).then(|| Box::new(settings)))
    }

    /// Declares a parameter if it has an override, and returns its value.
    fn declare_if_overridden(
        &self,
        name: &str,
        description: &str,
    ) -> Result<Option<ParameterValue>, ParameterError> {
        if !self.overrides().contains_key(name) {
            return Ok(None);
        }
        let descriptor = ParameterDescriptor::new()
            .description(description)
            .dynamic_typing()
            .read_only();
        let declaration = ParameterDeclaration {
            name: name.into(),
            type_of: ParameterType::NotSet,
            default: ParameterValue::NotSet,
            descriptor,
            ignore_override: false,
        };
        self.declare(declaration, |_| None).map(Some)
    }

    fn checked<T>(
        &self,
        name: &str,
        value: ParameterValue,
        read: impl FnOnce(&ParameterValue) -> Result<T, String>,
    ) -> Result<T, ParameterError> {
        let origin = self
            .overrides()
            .get(name)
            .map(|override_value| override_value.origin.to_string());
        read(&value).map_err(|reason| ParameterError::InvalidInitialValue {
            node: self.node().to_owned(),
            name: name.into(),
            value,
            origin: origin.unwrap_or_default(),
            source: Box::new(SetParameterError::Rejected { reason }),
        })
    }
}

fn priority_of(value: &ParameterValue) -> Result<Priority, String> {
    let invalid = || ThreadSettingError::Priority {
        given: value.to_string(),
    };
    let number = match value {
        ParameterValue::Integer(number) => u8::try_from(*number).ok(),
        _ => None,
    };
    let priority = number.ok_or_else(invalid).and_then(Priority::new);
    priority.map_err(|error| error.to_string())
}

fn cpus_of(value: &ParameterValue) -> Result<CpuList, String> {
    let invalid = || ThreadSettingError::Cpus {
        given: value.to_string(),
    };
    let numbers = |numbers: &[i64]| {
        let cpus: Result<Vec<usize>, _> = numbers.iter().map(|n| usize::try_from(*n)).collect();
        cpus.map_err(|_| invalid()).and_then(CpuList::new)
    };
    let cpus = match value {
        ParameterValue::String(text) => text.parse(),
        ParameterValue::Integer(number) => numbers(&[*number]),
        ParameterValue::IntegerArray(all) => numbers(all),
        _ => Err(invalid()),
    };
    cpus.map_err(|error| error.to_string())
}

fn bool_of(value: &ParameterValue) -> Result<bool, String> {
    match value {
        ParameterValue::Bool(value) => Ok(*value),
        _ => Err("neither true nor false".into()),
    }
}

/// Merges the settings of several nodes that one thread spins: the highest
/// priority, all their CPUs, memory locked if one requests it.
pub fn merge_thread_settings<'s>(
    all: impl IntoIterator<Item = &'s ThreadSettings>,
) -> ThreadSettings {
    let mut merged = ThreadSettings::default();
    for settings in all {
        merged.priority = merged.priority.max(settings.priority);
        merged.lock_memory |= settings.lock_memory;
        merged.cpus = match (merged.cpus.take(), &settings.cpus) {
            (Some(ours), Some(theirs)) => {
                let both = ours.numbers().iter().chain(theirs.numbers()).copied();
                // Both have valid CPUs, so their union does.
                Some(CpuList::new(both).unwrap_or(ours))
            }
            (ours, theirs) => ours.or_else(|| theirs.clone()),
        };
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_settings_of_several_nodes_are_merged() {
        let settings = |priority: Option<u8>, cpus: &str| ThreadSettings {
            priority: priority.map(|number| Priority::new(number).unwrap()),
            cpus: (!cpus.is_empty()).then(|| cpus.parse().unwrap()),
            lock_memory: false,
        };
        let all = [
            settings(Some(10), "0"),
            settings(None, ""),
            settings(Some(80), "2-3"),
        ];
        assert_eq!(merge_thread_settings(&all), settings(Some(80), "0,2-3"));
        assert_eq!(merge_thread_settings([]), ThreadSettings::default());
    }

    #[test]
    fn cpus_are_a_string_a_number_or_an_array() {
        let read = |yaml: &str| cpus_of(&ParameterValue::from_yaml(yaml).unwrap());
        assert_eq!(read("0,4-5"), Ok("0,4,5".parse().unwrap()));
        assert_eq!(read("2"), Ok("2".parse().unwrap()));
        assert_eq!(read("[3, 1]"), Ok("1,3".parse().unwrap()));
        for wrong in ["-1", "yes", "[]", "9999", "two"] {
            assert!(
                read(wrong).unwrap_err().contains("give numbers below"),
                "{wrong}"
            );
        }
    }
}
