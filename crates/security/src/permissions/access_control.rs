//! Access control: decisions from governance and permissions, each with the rule
//! that caused it (DDS Security 1.1 §9.4.3).
//!
//! An allow rule without partitions applies to the default one, the empty string; a
//! deny rule without partitions applies to all. An allow rule must cover all
//! partitions and data tags of an endpoint; a deny rule applies if it matches one.
//! A partition that is an expression could match anything: an allow rule must have
//! the same expression, or `*`; a deny rule always applies.

use std::fmt;
use std::sync::Arc;

use super::{Criteria, Effect, Grant, Permissions, Rule};
use crate::date::UnixTime;
use crate::diagnostic::Diagnostic;
use crate::governance::{DomainRule, Governance};
use crate::subject::SubjectName;

/// Permissions of one participant in one domain.
#[derive(Debug, Clone)]
pub struct AccessControl {
    governance_file: Arc<str>,
    rule: DomainRule,
    permissions_file: Arc<str>,
    grant: Grant,
    domain: u32,
}

/// The endpoint for which access is requested.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndpointRequest<'a> {
    /// The DDS name of its topic.
    pub topic: &'a str,
    /// Its partitions; empty for the default one.
    pub partitions: &'a [&'a str],
    /// Its data tags, name and value.
    pub tags: &'a [(&'a str, &'a str)],
}

/// Whether access is allowed, and the rule that decided it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether access is allowed.
    pub allowed: bool,
    /// The file of the rule.
    pub file: Arc<str>,
    /// Line of the rule, from 1.
    pub line: u32,
    /// The rule in words.
    pub rule: String,
}

impl fmt::Display for AccessDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.allowed { "allowed" } else { "denied" };
        write!(f, "{word} by {}:{}: {}", self.file, self.line, self.rule)
    }
}

#[derive(Clone, Copy)]
enum AccessAction {
    Publish,
    Subscribe,
    Relay,
}

impl AccessControl {
    /// For the participant with this subject. A domain without a domain rule and a
    /// subject without a grant are errors: they would allow nothing.
    pub fn new(
        governance: &Governance,
        permissions: &Permissions,
        subject: &SubjectName,
        domain: u32,
    ) -> Result<Self, Diagnostic> {
        let rule = governance.rule(domain).ok_or_else(|| {
            Diagnostic::new(
                &*governance.file,
                "<domains>",
                domain.to_string(),
                "no domain rule names this domain",
                "add it to a domain_rule and sign the file again, or set ROS_DOMAIN_ID",
            )
        })?;
        let grant = permissions.grant(subject).ok_or_else(|| {
            Diagnostic::new(
                &*permissions.file,
                "<subject_name>",
                subject.to_string(),
                "no grant names this subject",
                "add a grant for the certificate's subject and sign the file again",
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

    /// The governance rule of the domain.
    pub fn domain_rule(&self) -> &DomainRule {
        &self.rule
    }

    /// The participant's grant.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// When the grant expires.
    pub fn expires(&self) -> UnixTime {
        self.grant.validity.not_after
    }

    /// Whether it may join the domain.
    pub fn may_join(&self, now: UnixTime) -> AccessDecision {
        let rule = &self.rule;
        if !rule.join_access_control {
            return self.decided_by_governance(
                rule.line,
                true,
                "enable_join_access_control is false",
            );
        }
        let open = rule
            .topics
            .iter()
            .find(|topic| !topic.read_access_control || !topic.write_access_control);
        if let Some(open) = open {
            return self.decided_by_governance(open.line, true, "a topic needs no permission");
        }
        if let Some(refused) = self.outside_validity(now) {
            return refused;
        }
        let rules = self.grant.rules.iter();
        let own = rules.filter(|rule| rule.domains.contains(self.domain));
        match own.clone().find(|rule| rule.effect == Effect::Allow) {
            Some(rule) => self.decided_by_grant(rule.line, true, "an allow_rule names the domain"),
            None => self.decided_by_default(),
        }
    }

    /// Whether it may create such a writer.
    pub fn may_write(&self, endpoint: &EndpointRequest<'_>, now: UnixTime) -> AccessDecision {
        self.decide(AccessAction::Publish, endpoint, now)
    }

    /// Whether it may create such a reader.
    pub fn may_read(&self, endpoint: &EndpointRequest<'_>, now: UnixTime) -> AccessDecision {
        self.decide(AccessAction::Subscribe, endpoint, now)
    }

    /// Whether it may relay others' data: needs permission to publish, and a relay
    /// rule.
    pub fn may_relay(&self, endpoint: &EndpointRequest<'_>, now: UnixTime) -> AccessDecision {
        self.decide(AccessAction::Relay, endpoint, now)
    }

    fn decide(
        &self,
        action: AccessAction,
        endpoint: &EndpointRequest<'_>,
        now: UnixTime,
    ) -> AccessDecision {
        let Some(topic) = self.rule.topic(endpoint.topic) else {
            let said = format!("no topic_rule matches '{}'", endpoint.topic);
            return self.decided_by_governance(self.rule.line, false, said);
        };
        let (controlled, flag) = match action {
            AccessAction::Subscribe => (topic.read_access_control, "enable_read_access_control"),
            AccessAction::Publish | AccessAction::Relay => {
                (topic.write_access_control, "enable_write_access_control")
            }
        };
        if !controlled {
            let said = format!("{flag} is false for '{}'", topic.topic.as_str());
            return self.decided_by_governance(topic.line, true, said);
        }
        if let Some(refused) = self.outside_validity(now) {
            return refused;
        }
        for rule in &self.grant.rules {
            if let Some((line, said)) = self.applies(rule, action, endpoint) {
                return self.decided_by_grant(line, rule.effect == Effect::Allow, said);
            }
        }
        let mut decision = self.decided_by_default();
        if let Some(near) = self
            .explain_near_miss(action, endpoint)
            .filter(|_| !decision.allowed)
        {
            decision.rule.push_str(&near);
        }
        decision
    }

    /// The rule that would allow it with other partitions or data tags, for the
    /// message.
    fn explain_near_miss(
        &self,
        action: AccessAction,
        endpoint: &EndpointRequest<'_>,
    ) -> Option<String> {
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
            (_, true) => "has no <partitions>, so it applies to the default one",
            (_, false) => "applies to other <partitions>, or data tags",
        };
        Some(format!(" ('{topic}' in line {line} {about})"))
    }

    /// Line and text of the rule's criteria that apply.
    fn applies(
        &self,
        rule: &Rule,
        action: AccessAction,
        endpoint: &EndpointRequest<'_>,
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

    fn outside_validity(&self, now: UnixTime) -> Option<AccessDecision> {
        let rejection = self.grant.validity.rejection(now)?;
        Some(self.decided_by_grant(self.grant.line, false, rejection))
    }

    fn decided_by_default(&self) -> AccessDecision {
        let allowed = self.grant.default == Effect::Allow;
        let said = "no rule applies, the default does";
        self.decided_by_grant(self.grant.default_line, allowed, said)
    }

    fn decided_by_grant(
        &self,
        line: u32,
        allowed: bool,
        said: impl fmt::Display,
    ) -> AccessDecision {
        AccessDecision {
            allowed,
            file: self.permissions_file.clone(),
            line,
            rule: format!("grant '{}': {said}", self.grant.name),
        }
    }

    fn decided_by_governance(
        &self,
        line: u32,
        allowed: bool,
        said: impl fmt::Display,
    ) -> AccessDecision {
        AccessDecision {
            allowed,
            file: self.governance_file.clone(),
            line,
            rule: format!("domain {}: {said}", self.domain),
        }
    }
}

impl Rule {
    /// The element name of the action, and its criteria.
    fn criteria(&self, action: AccessAction) -> (&'static str, &[Criteria]) {
        match action {
            AccessAction::Publish => ("publish", &self.publish),
            AccessAction::Subscribe => ("subscribe", &self.subscribe),
            AccessAction::Relay => ("relay", &self.relay),
        }
    }
}

impl Criteria {
    /// Whether they match all of the endpoint's partitions and tags.
    fn covers(&self, endpoint: &EndpointRequest<'_>) -> bool {
        let covers = |partition: &str| {
            if self.partitions.is_empty() {
                return partition.is_empty();
            }
            self.partitions.iter().any(|own| {
                if is_expression(partition) {
                    own.is_everything() || own.as_str() == partition
                } else {
                    own.matches(partition)
                }
            })
        };
        partitions_of(endpoint)
            .iter()
            .all(|partition| covers(partition))
            && endpoint.tags.iter().all(|tag| self.has(tag))
    }

    /// Whether they match one of the endpoint's partitions or tags.
    fn touches(&self, endpoint: &EndpointRequest<'_>) -> bool {
        let partitions = self.partitions.is_empty()
            || partitions_of(endpoint).iter().any(|partition| {
                is_expression(partition) || self.partitions.iter().any(|own| own.matches(partition))
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

fn partitions_of<'a>(endpoint: &EndpointRequest<'a>) -> &'a [&'a str] {
    match endpoint.partitions {
        [] => &[""],
        some => some,
    }
}

/// Whether a partition is an expression.
fn is_expression(partition: &str) -> bool {
    partition.contains(['*', '?', '['])
}
