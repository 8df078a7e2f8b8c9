//! Which loggers say what: a level for all, and for single ones and those below.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::log::{LogSettings, Severity};

/// Loggers with a level of their own; beyond it the oldest names are kept.
const LOGGERS_MAX: usize = 1_000;

/// The levels of a context. A logger without one has that of the nearest logger above
/// it (`robot` for `robot.arm`), else the default, info.
pub(super) struct Levels {
    /// Counts changes, so that loggers look anew only then.
    changes: AtomicU64,
    table: Mutex<Table>,
}

struct Table {
    default: Severity,
    own: BTreeMap<String, Severity>,
}

impl Levels {
    pub(super) fn new(settings: &LogSettings) -> Self {
        let own = settings.loggers.iter().cloned().collect();
        Self {
            changes: AtomicU64::new(1),
            table: Mutex::new(Table {
                default: settings.level.unwrap_or(Severity::Info),
                own,
            }),
        }
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The level that counts for a logger.
    pub(super) fn effective(&self, name: &str) -> Severity {
        let table = self.table.lock();
        let mut name = name;
        loop {
            if let Some(level) = table.own.get(name) {
                return *level;
            }
            match name.rsplit_once('.') {
                Some((above, _)) => name = above,
                None => return table.default,
            }
        }
    }

    /// The logger's own level, if it has one.
    pub(super) fn own(&self, name: &str) -> Option<Severity> {
        self.table.lock().own.get(name).copied()
    }

    /// Gives a logger a level of its own, or takes it away. False: too many have one.
    pub(super) fn set(&self, name: &str, level: Option<Severity>) -> bool {
        let mut table = self.table.lock();
        match level {
            Some(level) => {
                if table.own.len() >= LOGGERS_MAX && !table.own.contains_key(name) {
                    return false;
                }
                table.own.insert(name.into(), level);
            }
            None => {
                table.own.remove(name);
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
    fn a_logger_has_the_level_of_the_nearest_above_it() {
        let levels = Levels::new(&LogSettings {
            level: Some(Severity::Warn),
            loggers: vec![("robot".into(), Severity::Error)],
            ..LogSettings::default()
        });
        assert_eq!(levels.effective("other.arm"), Severity::Warn);
        assert_eq!(levels.effective("robot.arm"), Severity::Error);
        assert!(levels.set("robot.arm", Some(Severity::Debug)));
        assert_eq!(levels.effective("robot.arm.joint"), Severity::Debug);
        assert_eq!(levels.own("robot.arm.joint"), None);
        levels.set("robot.arm", None);
        assert_eq!(levels.effective("robot.arm"), Severity::Error);
        assert_eq!(levels.effective("robots"), Severity::Warn);
    }
}
