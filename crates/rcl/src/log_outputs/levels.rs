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
/// `robot.arm`), else that of the root logger, which has no name and always a level.
pub struct Levels {
    /// Counts changes; loggers update their cached level when it differs.
    changes: AtomicU64,
    table: Mutex<LevelTable>,
}

struct LevelTable {
    /// The level of the root logger until one is set.
    initial: Severity,
    explicit: BTreeMap<String, Severity>,
}

impl Levels {
    /// The levels of `--log-level`.
    pub fn new(settings: &LogSettings) -> Self {
        let initial = settings.level.unwrap_or(Severity::Info);
        let root = (String::new(), initial);
        let explicit = settings.loggers.iter().cloned().chain([root]).collect();
        Self {
            changes: AtomicU64::new(1),
            table: Mutex::new(LevelTable { initial, explicit }),
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
            if name.is_empty() {
                return table.initial;
            }
            name = name.rsplit_once('.').map_or("", |(above, _)| above);
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
        let level = match name {
            "" => level.or(Some(table.initial)),
            _ => level,
        };
        match level {
            Some(level) => {
                // The root is one of them.
                if table.explicit.len() > LOGGERS_MAX && !table.explicit.contains_key(name) {
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
    use std::iter::once;

    use super::*;
    use crate::args::Arguments;

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

    fn answer(row: &str) -> String {
        let mut steps: Vec<Vec<_>> = row.split("; ").map(|it| it.split(' ').collect()).collect();
        let question = steps.pop().unwrap();
        let arguments = steps.iter().filter(|step| step[0] == "--log-level");
        let words = arguments.flatten().copied();
        let Ok((arguments, _)) = Arguments::parse(once("--ros-args").chain(words)) else {
            return "refused".into();
        };
        let levels = Levels::new(&arguments.log);
        let name = |name| if name == "root" { "" } else { name };
        let shown = |level: Option<Severity>| {
            level.map_or("unset".into(), |level| level.to_string().to_lowercase())
        };
        for step in steps {
            if let ["set", logger, level] = step.as_slice() {
                let level = (*level != "unset").then(|| level.parse().unwrap());
                assert!(levels.set(name(logger), level));
            }
        }
        match question.as_slice() {
            ["level", logger] => shown(levels.explicit_level(name(logger))),
            ["effective", logger] => shown(Some(levels.effective_level(name(logger)))),
            ["enabled", logger, level] => {
                let level: Severity = level.parse().unwrap();
                let is_enabled = level >= levels.effective_level(name(logger));
                if is_enabled { "yes" } else { "no" }.into()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_rows_of_the_behaviour_table_hold() {
        let rows = include_str!("../../tests/behaviour/log_levels.txt").lines();
        let mut count = 0;
        for row in rows.filter(|row| !row.starts_with('#')) {
            let (question, expected) = row.split_once(" -> ").expect(row);
            assert_eq!(answer(question), expected, "{row}");
            count += 1;
        }
        assert!(count > 70);
    }
}
