//! Topic filter: selects topics by names, types and regular expressions.
//!
//! Names, types and the expression are alternatives. Exclusions take precedence. A
//! recorder searches the expression anywhere in the name, as rosbag2 does. A player
//! matches it against the whole name.

use std::fmt;

use pteros::names::NameKind;
use pteros_pattern::{Extent, Pattern};

use crate::error::BagError;

/// A regular expression over topic names.
#[derive(Clone)]
pub struct NamePattern {
    text: String,
    anywhere: Pattern,
    whole: Pattern,
}

impl NamePattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is no regular expression, or too large.
    pub fn new(text: &str) -> Result<Self, BagError> {
        let compile = |extent| {
            Pattern::new(text, extent).map_err(|reason| {
                BagError::Invalid(format!("regular expression {text:?}: {reason}"))
            })
        };
        Ok(Self {
            text: text.to_owned(),
            anywhere: compile(Extent::Anywhere)?,
            whole: compile(Extent::Whole)?,
        })
    }

    fn is_match(&self, name: &str, whole: bool) -> bool {
        let pattern = if whole { &self.whole } else { &self.anywhere };
        pattern.is_match(name)
    }

    /// The expression as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Expands `replacement` with the groups of the expression, if it matches the whole
    /// name.
    pub(crate) fn replace(&self, name: &str, replacement: &str) -> Option<String> {
        self.whole.replace(name, replacement)
    }
}

impl fmt::Debug for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamePattern").field(&self.text).finish()
    }
}

/// A selection of topics. The default selects none.
#[derive(Clone, Debug, Default)]
pub struct TopicFilter {
    /// Selects every topic that is not a service's.
    pub all_topics: bool,
    /// Selects the event topics of every service.
    pub all_services: bool,
    /// Selected topic names.
    pub topics: Vec<String>,
    /// Services whose event topics are selected.
    pub services: Vec<String>,
    /// Actions whose topics and service events are selected.
    pub actions: Vec<String>,
    /// Selects the topics of every action.
    pub all_actions: bool,
    /// Actions whose topics are excluded.
    pub exclude_actions: Vec<String>,
    /// Selected types, for example `sensor_msgs/msg/Image`.
    pub types: Vec<String>,
    /// Expression that selects names.
    pub pattern: Option<NamePattern>,
    /// Excluded topic names.
    pub exclude_topics: Vec<String>,
    /// Services whose event topics are excluded.
    pub exclude_services: Vec<String>,
    /// Excluded types.
    pub exclude_types: Vec<String>,
    /// Expression for excluded names.
    pub exclude_pattern: Option<NamePattern>,
    /// Lets `all_topics` and the expression select hidden topics, which have a name part
    /// that starts with `_`.
    pub include_hidden: bool,
    /// Matches expressions against the whole name.
    pub whole_names: bool,
}

/// End of the names of service event topics.
const EVENT_SUFFIX: &str = "/_service_event";
/// Part between an action's name and the names of its topics and services.
const ACTION_PART: &str = "/_action/";

impl TopicFilter {
    /// Selects everything.
    pub fn all() -> Self {
        Self {
            all_topics: true,
            all_services: true,
            all_actions: true,
            include_hidden: true,
            ..Self::default()
        }
    }

    /// Whether a topic of this name and type is selected.
    pub fn chooses(&self, name: &str, type_name: &str) -> bool {
        let service = name.strip_suffix(EVENT_SUFFIX);
        let matches = |pattern: &Option<NamePattern>| {
            let pattern = pattern.as_ref();
            pattern.is_some_and(|pattern| pattern.is_match(name, self.whole_names))
        };
        let is_in = |names: &[String], name: &str| names.iter().any(|known| known == name);
        let action = name.split_once(ACTION_PART).map(|(action, _)| action);
        let is_excluded = is_in(&self.exclude_topics, name)
            || action.is_some_and(|action| is_in(&self.exclude_actions, action))
            || is_in(&self.exclude_types, type_name)
            || service.is_some_and(|service| is_in(&self.exclude_services, service))
            || matches(&self.exclude_pattern);
        if is_excluded {
            return false;
        }
        if let Some(action) = action
            && (self.all_actions || is_in(&self.actions, action))
        {
            return true;
        }
        if let Some(service) = service {
            return self.all_services
                || is_in(&self.services, service)
                || is_in(&self.topics, name)
                || matches(&self.pattern);
        }
        if is_in(&self.topics, name) || is_in(&self.types, type_name) {
            return true;
        }
        let is_hidden = name.split('/').any(|part| part.starts_with('_'));
        (self.include_hidden || !is_hidden) && (self.all_topics || matches(&self.pattern))
    }

    /// Whether no name can be selected.
    pub fn is_empty(&self) -> bool {
        !self.all_topics
            && !self.all_services
            && self.topics.is_empty()
            && !self.all_actions
            && self.services.is_empty()
            && self.actions.is_empty()
            && self.types.is_empty()
            && self.pattern.is_none()
    }

    /// Whether the topics are listed by name. Then a recorder can stop discovery once it
    /// has all of them.
    pub fn is_a_list(&self) -> bool {
        !self.all_topics
            && !self.all_services
            && !self.all_actions
            && self.types.is_empty()
            && self.pattern.is_none()
    }

    /// Completes the names: those of the command line may lack the first slash.
    ///
    /// # Errors
    /// A name is no topic name.
    pub fn with_full_names(mut self) -> Result<Self, BagError> {
        for name in self
            .topics
            .iter_mut()
            .chain(&mut self.services)
            .chain(&mut self.actions)
            .chain(&mut self.exclude_actions)
            .chain(&mut self.exclude_topics)
            .chain(&mut self.exclude_services)
        {
            if !name.starts_with('/') {
                name.insert(0, '/');
            }
            pteros::names::expand(NameKind::Topic, name, "node", "/")
                .map_err(|error| BagError::Invalid(error.to_string()))?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_types_and_expressions_add_up_and_exclusions_win() {
        let filter = TopicFilter {
            topics: vec!["/a".into()],
            types: vec!["t/msg/T".into()],
            pattern: Some(NamePattern::new("cam").unwrap()),
            exclude_pattern: Some(NamePattern::new("raw$").unwrap()),
            ..TopicFilter::default()
        };
        assert!(filter.chooses("/a", "x/msg/X"));
        assert!(filter.chooses("/b", "t/msg/T"));
        assert!(filter.chooses("/front_cam/image", "x/msg/X"));
        assert!(!filter.chooses("/front_cam/raw", "x/msg/X"));
        assert!(!filter.chooses("/c", "x/msg/X"));
        assert!(!filter.chooses("/_cam", "x/msg/X"), "hidden");
    }

    #[test]
    fn a_wrong_expression_is_refused_with_its_reason() {
        let error = NamePattern::new("/cam(").unwrap_err().to_string();
        assert_eq!(error, "regular expression \"/cam(\": unclosed group");
        let large = NamePattern::new("(a{1000}){1000}").unwrap_err().to_string();
        assert!(large.contains("more than 1048576 bytes"), "{large}");
    }

    #[test]
    fn an_action_is_its_topics_and_the_events_of_its_services() {
        let mut filter = TopicFilter {
            actions: vec!["/go".into()],
            ..TopicFilter::default()
        };
        assert!(filter.chooses("/go/_action/feedback", ""));
        assert!(filter.chooses("/go/_action/send_goal/_service_event", ""));
        assert!(!filter.chooses("/stay/_action/feedback", ""));
        filter.exclude_actions.push("/go".into());
        assert!(!filter.chooses("/go/_action/feedback", ""));
        let all = TopicFilter {
            all_actions: true,
            ..TopicFilter::default()
        };
        assert!(all.chooses("/stay/_action/status", ""));
        assert!(!all.chooses("/scan", ""));
    }

    #[test]
    fn players_match_whole_names() {
        let filter = TopicFilter {
            pattern: Some(NamePattern::new("/cam|/ca").unwrap()),
            whole_names: true,
            ..TopicFilter::default()
        };
        assert!(filter.chooses("/cam", ""));
        assert!(filter.chooses("/ca", ""));
        assert!(!filter.chooses("/camera", ""));
        assert!(!filter.chooses("/x/cam", ""));
    }

    #[test]
    fn service_events_are_chosen_as_services() {
        let mut filter = TopicFilter {
            all_topics: true,
            include_hidden: true,
            ..TopicFilter::default()
        };
        assert!(!filter.chooses("/add/_service_event", ""));
        filter.services.push("/add".into());
        assert!(filter.chooses("/add/_service_event", ""));
        filter.exclude_services.push("/add".into());
        assert!(!filter.chooses("/add/_service_event", ""));
    }
}
