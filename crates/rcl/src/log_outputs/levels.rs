//! Logger levels: a default, and levels of loggers that apply to their children
//! too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::log::{LogSettings, Severity};

/// The most loggers with an explicit level; further ones are refused.
const LOGGERS_MAX: usize = 1_000;

/// The levels of a context.
///
/// A logger without one has the level of its nearest parent (`robot` for
/// `robot.arm`), else that of the logger without a name, else the default, info.
pub struct Levels {
    /// Counts changes; loggers update their cached level when it differs.
    changes: AtomicU64,
    table: Mutex<LevelTable>,
}

struct LevelTable {
    default: Severity,
    explicit: BTreeMap<String, Severity>,
}

impl Levels {
    /// The levels of `--log-level`.
    pub fn new(settings: &LogSettings) -> Self {
        let explicit = settings.loggers.iter().cloned().collect();
        Self {
            changes: AtomicU64::new(1),
            table: Mutex::new(LevelTable {
                default: settings.level.unwrap_or(Severity::Info),
                explicit,
            }),
        }
    }

    /// Differs after every change.
    pub fn change_count(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The level that applies to a logger.
    pub fn effective_level(&self, name: &str) -> Severity {
        let table = self.table.lock();
        let mut name = name;
        loop {
            if let Some(level) = table.explicit.get(name) {
                return *level;
            }
            match name.rsplit_once('.') {
                Some((above, _)) => name = above,
                None => return table.explicit.get("").copied().unwrap_or(table.default),
            }
        }
    }

    /// The logger's explicit level, if it has one.
    pub fn explicit_level(&self, name: &str) -> Option<Severity> {
        self.table.lock().explicit.get(name).copied()
    }

    /// Sets or removes a logger's explicit level. False if too many loggers have
    /// one.
    pub fn set(&self, name: &str, level: Option<Severity>) -> bool {
        let mut table = self.table.lock();
        match level {
            Some(level) => {
                if table.explicit.len() >= LOGGERS_MAX && !table.explicit.contains_key(name) {
                    return false;
                }
                table.explicit.insert(name.into(), level);
            }
            None => {
                table.explicit.remove(name);
            }
        }
        drop(table);
        self.changes.fetch_add(1, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_inherits_the_level_of_its_nearest_parent() {
        let levels = Levels::new(&LogSettings {
            level: Some(Severity::Warn),
            loggers: vec![("robot".into(), Severity::Error)],
            ..LogSettings::default()
        });
        assert_eq!(levels.effective_level("other.arm"), Severity::Warn);
        assert_eq!(levels.effective_level("robot.arm"), Severity::Error);
        assert!(levels.set("robot.arm", Some(Severity::Debug)));
        assert_eq!(levels.effective_level("robot.arm.joint"), Severity::Debug);
        assert_eq!(levels.explicit_level("robot.arm.joint"), None);
        levels.set("robot.arm", None);
        assert_eq!(levels.effective_level("robot.arm"), Severity::Error);
        assert_eq!(levels.effective_level("robots"), Severity::Warn);
    }
}
