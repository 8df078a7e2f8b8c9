//! Decisions from governance and permissions, each with the rule of the file
//! that made it (DDS Security 1.1 §9.4.3).
//!
//! Where an allow rule names no partitions it is about the default one, the
//! empty string; a deny rule then is about all. An endpoint passes an allow
//! rule with all its partitions and data tags, a deny rule stops it for one. A
//! partition that is an expression itself could meet anything: an allow rule
//! must have the very same expression, or `*`; a deny rule always stops it.

use std::fmt;
use std::sync::Arc;

use super::{Criteria, Effect, Grant, Permissions, Rule};
use crate::date::UnixTime;
use crate::fault::Fault;
use crate::governance::{DomainRule, Governance};
use crate::subject::SubjectName;

/// What one participant may do in one domain.
#[derive(Debug, Clone)]
pub struct Access {
    governance_file: Arc<str>,
    rule: DomainRule,
    permissions_file: Arc<str>,
    grant: Grant,
    domain: u32,
}

/// An endpoint that wants to be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Endpoint<'a> {
    /// The DDS name of its topic.
    pub topic: &'a str,
    /// Its partitions; none is the default one.
    pub partitions: &'a [&'a str],
    /// Its data tags, name and value.
    pub tags: &'a [(&'a str, &'a str)],
}

/// Whether something is allowed, and what decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is.
    pub allowed: bool,
    /// The file of the rule.
    pub file: Arc<str>,
    /// Its line.
    pub line: u32,
    /// The rule in words.
    pub rule: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.allowed { "allowed" } else { "denied" };
        write!(f, "{word} by {}:{}: {}", self.file, self.line, self.rule)
    }
}

#[derive(Clone, Copy)]
enum Action {
    Publish,
    Subscribe,
    Relay,
}

impl Access {
    /// That of the participant with this subject. A domain that the governance
    /// does not name and a subject without a grant are faults: nothing would
    /// be allowed.
    pub fn new(
        governance: &Governance,
        permissions: &Permissions,
        subject: &SubjectName,
        domain: u32,
    ) -> Result<Self, Fault> {
        let rule = governance.rule(domain).ok_or_else(|| {
            Fault::new(
                &*governance.file,
                "<domains>",
                domain.to_string(),
                "no domain rule names this domain",
                "add it to a domain_rule and sign the file anew, or set ROS_DOMAIN_ID",
            )
        })?;
        let grant = permissions.grant(subject).ok_or_else(|| {
            Fault::new(
                &*permissions.file,
                "<subject_name>",
                subject.to_string(),
                "no grant names this subject",
                "add a grant for the certificate's subject and sign the file anew",
            )
        })?;
        Ok(Self {
            governance_file: governance.file.clone(),
            rule: rule.clone(),
            permissions_file: permissions.file.clone(),
            grant: grant.clone(),
            domain,
        })
    }

    /// What the governance says of the domain.
    pub fn domain_rule(&self) -> &DomainRule {
        &self.rule
    }

    /// When the grant ends.
    pub fn expires(&self) -> UnixTime {
        self.grant.validity.not_after
    }

    /// Whether it may be in the domain at all.
    pub fn may_join(&self, now: UnixTime) -> Verdict {
        let rule = &self.rule;
        if !rule.join_access_control {
            return self.by_governance(rule.line, true, "enable_join_access_control is false");
        }
        let open = rule
            .topics
            .iter()
            .find(|topic| !topic.read_access_control || !topic.write_access_control);
        if let Some(open) = open {
            return self.by_governance(open.line, true, "a topic needs no permission");
        }
        if let Some(refused) = self.outside_validity(now) {
            return refused;
        }
        let rules = self.grant.rules.iter();
        let own = rules.filter(|rule| rule.domains.contains(self.domain));
        match own.clone().find(|rule| rule.effect == Effect::Allow) {
            Some(rule) => self.by_grant(rule.line, true, "an allow_rule names the domain"),
            None => self.by_default(),
        }
    }

    /// Whether it may have such a writer.
    pub fn may_write(&self, endpoint: &Endpoint<'_>, now: UnixTime) -> Verdict {
        self.may(Action::Publish, endpoint, now)
    }

    /// Whether it may have such a reader.
    pub fn may_read(&self, endpoint: &Endpoint<'_>, now: UnixTime) -> Verdict {
        self.may(Action::Subscribe, endpoint, now)
    }

    /// Whether it may pass on what others wrote: as one who publishes, and with
    /// a relay rule of its own.
    pub fn may_relay(&self, endpoint: &Endpoint<'_>, now: UnixTime) -> Verdict {
        self.may(Action::Relay, endpoint, now)
    }

    fn may(&self, action: Action, endpoint: &Endpoint<'_>, now: UnixTime) -> Verdict {
        let Some(topic) = self.rule.topic(endpoint.topic) else {
            let said = format!("no topic_rule matches '{}'", endpoint.topic);
            return self.by_governance(self.rule.line, false, said);
        };
        let (controlled, flag) = match action {
            Action::Subscribe => (topic.read_access_control, "enable_read_access_control"),
            Action::Publish | Action::Relay => {
                (topic.write_access_control, "enable_write_access_control")
            }
        };
        if !controlled {
            let said = format!("{flag} is false for '{}'", topic.topic.as_str());
            return self.by_governance(topic.line, true, said);
        }
        if let Some(refused) = self.outside_validity(now) {
            return refused;
        }
        for rule in &self.grant.rules {
            if let Some((line, said)) = self.applies(rule, action, endpoint) {
                return self.by_grant(line, rule.effect == Effect::Allow, said);
            }
        }
        let mut verdict = self.by_default();
        if let Some(near) = self
            .near_miss(action, endpoint)
            .filter(|_| !verdict.allowed)
        {
            verdict.rule.push_str(&near);
        }
        verdict
    }

    /// Which rule would allow it but for partitions or data tags, in words.
    fn near_miss(&self, action: Action, endpoint: &Endpoint<'_>) -> Option<String> {
        let rules = self.grant.rules.iter();
        let own = rules.filter(|rule| rule.domains.contains(self.domain));
        let allowing = own.filter(|rule| rule.effect == Effect::Allow);
        let mut all = allowing.flat_map(|rule| rule.criteria(action).1);
        let (line, topic, partitions) = all.find_map(|criteria| {
            let mut topics = criteria.topics.iter();
            let topic = topics.find(|topic| topic.matches(endpoint.topic))?;
            Some((criteria.line, topic.as_str(), &criteria.partitions))
        })?;
        let about = match (endpoint.partitions, partitions.is_empty()) {
            ([], true) => "has not all of its data tags",
            (_, true) => "names no <partitions>, so it is about the default one",
            (_, false) => "is about other <partitions>, or data tags",
        };
        Some(format!(" ('{topic}' in line {line} {about})"))
    }

    /// The line and words of what makes the rule apply.
    fn applies(
        &self,
        rule: &Rule,
        action: Action,
        endpoint: &Endpoint<'_>,
    ) -> Option<(u32, String)> {
        if !rule.domains.contains(self.domain) {
            return None;
        }
        let (word, criteria) = rule.criteria(action);
        let found = criteria.iter().find_map(|criteria| {
            let mut topics = criteria.topics.iter();
            let topic = topics.find(|topic| topic.matches(endpoint.topic))?;
            let rest = match rule.effect {
                Effect::Allow => criteria.covers(endpoint),
                Effect::Deny => criteria.touches(endpoint),
            };
            rest.then_some((criteria.line, topic.as_str()))
        });
        let (line, topic) = found?;
        let effect = match rule.effect {
            Effect::Allow => "allow_rule",
            Effect::Deny => "deny_rule",
        };
        Some((line, format!("{effect} {word} '{topic}'")))
    }

    fn outside_validity(&self, now: UnixTime) -> Option<Verdict> {
        let refusal = self.grant.validity.refusal(now)?;
        Some(self.by_grant(self.grant.line, false, refusal))
    }

    fn by_default(&self) -> Verdict {
        let allowed = self.grant.default == Effect::Allow;
        let said = "no rule applies, the default does";
        self.by_grant(self.grant.default_line, allowed, said)
    }

    fn by_grant(&self, line: u32, allowed: bool, said: impl fmt::Display) -> Verdict {
        Verdict {
            allowed,
            file: self.permissions_file.clone(),
            line,
            rule: format!("grant '{}': {said}", self.grant.name),
        }
    }

    fn by_governance(&self, line: u32, allowed: bool, said: impl fmt::Display) -> Verdict {
        Verdict {
            allowed,
            file: self.governance_file.clone(),
            line,
            rule: format!("domain {}: {said}", self.domain),
        }
    }
}

impl Rule {
    /// The action's element, and what is in it.
    fn criteria(&self, action: Action) -> (&'static str, &[Criteria]) {
        match action {
            Action::Publish => ("publish", &self.publish),
            Action::Subscribe => ("subscribe", &self.subscribe),
            Action::Relay => ("relay", &self.relay),
        }
    }
}

impl Criteria {
    /// Whether all of the endpoint's partitions and tags are among these.
    fn covers(&self, endpoint: &Endpoint<'_>) -> bool {
        let covers = |partition: &str| {
            if self.partitions.is_empty() {
                return partition.is_empty();
            }
            self.partitions.iter().any(|own| match wild(partition) {
                true => own.is_everything() || own.as_str() == partition,
                false => own.matches(partition),
            })
        };
        partitions_of(endpoint)
            .iter()
            .all(|partition| covers(partition))
            && endpoint.tags.iter().all(|tag| self.has(tag))
    }

    /// Whether one of the endpoint's partitions, or tags, is among these.
    fn touches(&self, endpoint: &Endpoint<'_>) -> bool {
        let partitions = self.partitions.is_empty()
            || partitions_of(endpoint).iter().any(|partition| {
                wild(partition) || self.partitions.iter().any(|own| own.matches(partition))
            });
        let tags = self.tags.is_empty() || endpoint.tags.iter().any(|tag| self.has(tag));
        partitions && tags
    }

    fn has(&self, (name, value): &(&str, &str)) -> bool {
        self.tags
            .iter()
            .any(|(own_name, own_value)| own_name == name && own_value == value)
    }
}

fn partitions_of<'a>(endpoint: &Endpoint<'a>) -> &'a [&'a str] {
    match endpoint.partitions {
        [] => &[""],
        some => some,
    }
}

/// Whether a partition is an expression.
fn wild(partition: &str) -> bool {
    partition.contains(['*', '?', '['])
}
