//! What the parameters of a node say about the thread that spins it.
//!
//! `thread.priority`, `thread.cpus` and `thread.lock_memory` are declared, read-only,
//! on nodes that are given a value for them; other nodes have none.

use pteros_rmw::thread::{Cpus, Priority, SettingError, ThreadSettings};

use super::descriptor::ParameterDescriptor;
use super::error::{ParameterError, SetParameterError};
use super::store::{Declaration, ParameterStore};
use super::value::{ParameterType, ParameterValue};

const PRIORITY: &str = "thread.priority";
const CPUS: &str = "thread.cpus";
const LOCK_MEMORY: &str = "thread.lock_memory";

impl ParameterStore {
    /// Declares those of the three that have a value, and reads them.
    pub(crate) fn declare_thread(&self) -> Result<Option<Box<ThreadSettings>>, ParameterError> {
        let mut settings = ThreadSettings::default();
        if let Some(value) = self.given(PRIORITY, "SCHED_FIFO priority of the thread, 1 to 99")? {
            let priority = self.checked(PRIORITY, value, priority_of)?;
            settings.priority = Some(priority);
        }
        if let Some(value) =
            self.given(CPUS, "the only CPUs that the thread runs on, 2 or 0,4-7")?
        {
            settings.cpus = Some(self.checked(CPUS, value, cpus_of)?);
        }
        let what = "whether the process's memory is locked (mlockall)";
        if let Some(value) = self.given(LOCK_MEMORY, what)? {
            settings.lock_memory = self.checked(LOCK_MEMORY, value, bool_of)?;
        }
        Ok((!settings.is_empty()).then(|| Box::new(settings)))
    }

    /// The value that somebody gave a parameter, which is declared then.
    fn given(
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
        let declaration = Declaration {
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
        let from = self
            .overrides()
            .get(name)
            .map(|given| given.from.to_string());
        read(&value).map_err(|reason| ParameterError::Initial {
            node: self.node().to_owned(),
            name: name.into(),
            value,
            from: from.unwrap_or_default(),
            source: Box::new(SetParameterError::Rejected { reason }),
        })
    }
}

fn priority_of(value: &ParameterValue) -> Result<Priority, String> {
    let refused = || SettingError::Priority {
        given: value.to_string(),
    };
    let number = match value {
        ParameterValue::Integer(number) => u8::try_from(*number).ok(),
        _ => None,
    };
    let priority = number.ok_or_else(refused).and_then(Priority::new);
    priority.map_err(|error| error.to_string())
}

fn cpus_of(value: &ParameterValue) -> Result<Cpus, String> {
    let refused = || SettingError::Cpus {
        given: value.to_string(),
    };
    let numbers = |numbers: &[i64]| {
        let cpus: Result<Vec<usize>, _> = numbers.iter().map(|n| usize::try_from(*n)).collect();
        cpus.map_err(|_| refused()).and_then(Cpus::new)
    };
    let cpus = match value {
        ParameterValue::String(text) => text.parse(),
        ParameterValue::Integer(number) => numbers(&[*number]),
        ParameterValue::IntegerArray(all) => numbers(all),
        _ => Err(refused()),
    };
    cpus.map_err(|error| error.to_string())
}

fn bool_of(value: &ParameterValue) -> Result<bool, String> {
    match value {
        ParameterValue::Bool(value) => Ok(*value),
        _ => Err("neither true nor false".into()),
    }
}

/// What one thread is to be that spins several nodes: the highest priority, all
/// their CPUs, memory locked if one asks for it.
pub(crate) fn joined<'s>(all: impl IntoIterator<Item = &'s ThreadSettings>) -> ThreadSettings {
    let mut joined = ThreadSettings::default();
    for settings in all {
        joined.priority = joined.priority.max(settings.priority);
        joined.lock_memory |= settings.lock_memory;
        joined.cpus = match (joined.cpus.take(), &settings.cpus) {
            (Some(ours), Some(theirs)) => {
                let both = ours.numbers().iter().chain(theirs.numbers()).copied();
                // Both name some CPUs below the limit, so their union does.
                Some(Cpus::new(both).unwrap_or(ours))
            }
            (ours, theirs) => ours.or_else(|| theirs.clone()),
        };
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_what_all_its_nodes_ask_for() {
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
        assert_eq!(joined(&all), settings(Some(80), "0,2-3"));
        assert_eq!(joined([]), ThreadSettings::default());
    }

    #[test]
    fn cpus_are_a_text_a_number_or_a_list() {
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
