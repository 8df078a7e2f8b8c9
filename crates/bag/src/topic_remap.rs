//! Remapping of a bag's topics: by name, or by regular expression.

use std::collections::BTreeMap;

use crate::error::BagError;
use crate::topic_filter::NamePattern;

/// Rules of one player.
const RULES_MAX: usize = 1_024;
/// Longest name that a rule may produce, bytes: the limit of a topic name.
const NAME_BYTES_MAX: usize = 255;

/// Remapping rules. A rule for an exact name takes precedence. Among expressions, the
/// first that matches the whole name applies. The default renames nothing.
#[derive(Clone, Debug, Default)]
pub struct TopicRemap {
    names: BTreeMap<String, String>,
    /// Expressions with their replacements.
    patterns: Vec<(NamePattern, String)>,
}

impl TopicRemap {
    /// Renames one topic. A second rule for the same topic replaces the first.
    ///
    /// # Errors
    /// There are 1 024 rules.
    pub fn rename(&mut self, old: String, new: String) -> Result<(), BagError> {
        self.check_space()?;
        self.names.insert(old, new);
        Ok(())
    }

    /// Renames all topics whose whole name matches a regular expression. In
    /// `replacement`, `$1` or `${1}` is the text of the first group, `${name}` that of a
    /// named group, and `$$` a dollar sign. A missing first slash is added.
    ///
    /// # Errors
    /// It is no regular expression, or there are 1 024 rules.
    pub fn rename_matching(&mut self, text: &str, replacement: &str) -> Result<(), BagError> {
        self.check_space()?;
        let rule = (NamePattern::new(text)?, replacement.to_owned());
        self.patterns.push(rule);
        Ok(())
    }

    fn check_space(&self) -> Result<(), BagError> {
        if self.names.len() + self.patterns.len() < RULES_MAX {
            return Ok(());
        }
        let problem = format!("more than {RULES_MAX} rules for names of topics");
        Err(BagError::Invalid(problem))
    }

    /// The name under which a recorded topic is published.
    ///
    /// # Errors
    /// The replacement has more than 255 bytes.
    pub fn name_of(&self, recorded: &str) -> Result<String, BagError> {
        if let Some(new) = self.names.get(recorded) {
            return Ok(new.clone());
        }
        for (pattern, replacement) in &self.patterns {
            let Some(new) = pattern.replace(recorded, replacement) else {
                continue;
            };
            let new = format!("/{}", new.trim_start_matches('/'));
            if new.len() > NAME_BYTES_MAX {
                let problem = format!(
                    "the expression {:?} makes a name of {} bytes of {recorded}; {NAME_BYTES_MAX} is the most",
                    pattern.text(),
                    new.len()
                );
                return Err(BagError::Invalid(problem));
            }
            return Ok(new);
        }
        Ok(recorded.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_rename_whole_names_and_single_names_win() {
        let mut remap = TopicRemap::default();
        remap.rename("/a/scan".into(), "/one".into()).unwrap();
        remap
            .rename_matching("/([ab])/(?P<rest>.*)", "/old/${rest}/of_$1")
            .unwrap();
        remap.rename_matching("/b/.*", "/never").unwrap();
        remap.rename_matching("(/d/.*)", "$1/old").unwrap();
        for (old, new) in [
            ("/a/scan", "/one"),
            ("/a/odom", "/old/odom/of_a"),
            ("/b/x/y", "/old/x/y/of_b"),
            ("/c/a/odom", "/c/a/odom"),
            ("/d/map", "/d/map/old"),
            ("/scan", "/scan"),
        ] {
            assert_eq!(remap.name_of(old).unwrap(), new, "{old}");
        }
    }

    #[test]
    fn wrong_rules_are_refused() {
        let mut remap = TopicRemap::default();
        let error = remap.rename_matching("/(", "/x").unwrap_err();
        assert!(error.to_string().contains("\"/(\""), "{error}");
        remap
            .rename_matching("/(.*)", "$1$1$1$1")
            .expect("long names are found later");
        let long = format!("/{}", "x".repeat(100));
        let error = remap.name_of(&long).unwrap_err().to_string();
        assert!(error.contains("401 bytes"), "{error}");
        for number in 1..RULES_MAX {
            remap.rename(format!("/{number}"), "/x".into()).unwrap();
        }
        assert!(remap.rename("/more".into(), "/x".into()).is_err());
        assert!(remap.rename_matching("/more", "/x").is_err());
    }
}
