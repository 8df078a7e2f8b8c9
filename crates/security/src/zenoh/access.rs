//! Zenoh's access control for the permissions of an enclave: which messages pass a
//! router from and to its sessions.
//!
//! Zenoh knows neither publishers nor clients. It filters messages by key expression,
//! into the router (ingress) and out of it (egress). The first rule that applies decides
//! in DDS, while every `deny` wins in Zenoh. So a document whose deny rules come first
//! means the same in both.

use std::collections::BTreeMap;

use super::key_patterns::{KeyPattern, TopicKind, key_patterns};
use crate::diagnostic::Diagnostic;
use crate::expression::Expression;
use crate::permissions::{Criteria, Effect, Grant};

/// A rule of Zenoh's access control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// `allow` or `deny`.
    pub effect: Effect,
    /// The direction, seen from the one that enforces the rule.
    pub flow: Flow,
    /// The kinds of messages, in Zenoh's words.
    pub messages: Vec<&'static str>,
    /// Their key expressions.
    pub keys: Vec<String>,
}

impl AccessRule {
    /// The same rule in the settings of the session, where each message goes the other way.
    pub fn of_session(&self) -> Self {
        let flow = match self.flow {
            Flow::Ingress => Flow::Egress,
            Flow::Egress => Flow::Ingress,
        };
        Self {
            flow,
            ..self.clone()
        }
    }
}

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flow {
    /// From the session into the router.
    Ingress,
    /// From the router to the session.
    Egress,
}

impl Flow {
    /// Zenoh's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}

/// Which key expressions of a pattern a rule is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// The topic or service itself.
    Data,
    /// The key expressions that zenoh-ext adds to a topic.
    History,
    /// The liveliness tokens of its endpoints.
    Token,
}

/// The messages of one kind of endpoint.
struct Role {
    /// Its word in a liveliness token, if it announces itself by this DDS topic.
    token: Option<&'static str>,
    messages: &'static [(Flow, Subject, &'static [&'static str])],
}

/// The messages about history, heartbeats and their tokens to a subscription.
const HISTORY_OUT: &[&str] = &["put", "declare_queryable", "reply", "liveliness_token"];
/// The messages that ask for them.
const HISTORY_IN: &[&str] = &[
    "declare_subscriber",
    "query",
    "liveliness_token",
    "liveliness_query",
    "declare_liveliness_subscriber",
];
const ANNOUNCES: (Flow, Subject, &[&str]) = (Flow::Ingress, Subject::Token, &["liveliness_token"]);

const PUBLISHER: Role = Role {
    token: Some("MP"),
    messages: &[
        (Flow::Ingress, Subject::Data, &["put", "reply"]),
        (Flow::Ingress, Subject::History, HISTORY_OUT),
        (Flow::Egress, Subject::Data, &["declare_subscriber"]),
        (Flow::Egress, Subject::History, HISTORY_IN),
        ANNOUNCES,
    ],
};
const SUBSCRIPTION: Role = Role {
    token: Some("MS"),
    messages: &[
        (Flow::Ingress, Subject::Data, &["declare_subscriber"]),
        (Flow::Ingress, Subject::History, HISTORY_IN),
        (Flow::Egress, Subject::Data, &["put", "reply"]),
        (Flow::Egress, Subject::History, HISTORY_OUT),
        ANNOUNCES,
    ],
};
const CLIENT: Role = Role {
    token: Some("SC"),
    messages: &[
        (Flow::Ingress, Subject::Data, &["query"]),
        (Flow::Egress, Subject::Data, &["declare_queryable"]),
        ANNOUNCES,
    ],
};
const SERVER: Role = Role {
    token: Some("SS"),
    messages: &[
        (Flow::Ingress, Subject::Data, &["declare_queryable"]),
        (Flow::Egress, Subject::Data, &["query"]),
        ANNOUNCES,
    ],
};
const REPLIES_SENT: Role = Role {
    token: None,
    messages: &[(Flow::Ingress, Subject::Data, &["reply"])],
};
const REPLIES_TAKEN: Role = Role {
    token: None,
    messages: &[(Flow::Egress, Subject::Data, &["reply"])],
};

/// The rules for the sessions of an enclave. `enclave` is its name, `file` that of its
/// permissions.
///
/// # Errors
/// The permissions have something that Zenoh cannot express.
pub fn access_rules(
    grant: &Grant,
    file: &str,
    enclave: &str,
    domain: u32,
) -> Result<Vec<AccessRule>, Diagnostic> {
    let mut rules = AccessRules {
        enclave,
        domain,
        keys: BTreeMap::new(),
    };
    let mut allowed = false;
    for rule in grant
        .rules
        .iter()
        .filter(|rule| rule.domains.contains(domain))
    {
        allowed |= rule.effect == Effect::Allow;
        if rule.effect == Effect::Deny && allowed {
            let reason = "comes after an allow_rule, which decides first in DDS; in Zenoh every \
                          deny wins";
            let remedy = "move the deny rules of the grant to its beginning and sign it again";
            let fault = Diagnostic::new(file, "<deny_rule>", "", reason, remedy);
            return Err(fault.at_line(rule.line));
        }
        for (all, publishes) in [(&rule.publish, true), (&rule.subscribe, false)] {
            for criteria in all.iter().filter(|all| applies(all, rule.effect)) {
                for topic in &criteria.topics {
                    let added = rules.add(rule.effect, publishes, topic);
                    added.map_err(|reason| {
                        let remedy = "name the topics, or use * alone, and sign it again";
                        let fault =
                            Diagnostic::new(file, "<topic>", topic.as_str(), reason, remedy);
                        fault.at_line(criteria.line)
                    })?;
                }
            }
        }
    }
    if grant.default == Effect::Allow {
        for publishes in [true, false] {
            for prefix in ["rt/*", "rq/*", "rr/*"] {
                let everything = Expression::parse(prefix);
                let added = everything.and_then(|all| rules.add(Effect::Allow, publishes, &all));
                added.map_err(|reason| {
                    let remedy = "write <default>DENY</default> and sign it again";
                    let fault = Diagnostic::new(file, "<default>", "ALLOW", reason, remedy);
                    fault.at_line(grant.default_line)
                })?;
            }
        }
    }
    Ok(rules.into_rules())
}

/// Whether the criteria are about an endpoint of the default partition without data
/// tags: Zenoh carries no other.
fn applies(criteria: &Criteria, effect: Effect) -> bool {
    let partitions = &criteria.partitions;
    let by_partition = partitions.is_empty() || partitions.iter().any(|one| one.matches(""));
    let by_tags = effect == Effect::Allow || criteria.tags.is_empty();
    by_partition && by_tags
}

/// The key expressions by what they allow.
struct AccessRules<'a> {
    enclave: &'a str,
    domain: u32,
    keys: BTreeMap<(bool, Flow, Vec<&'static str>), Vec<String>>,
}

impl AccessRules<'_> {
    fn add(&mut self, effect: Effect, publishes: bool, topic: &Expression) -> Result<(), String> {
        for pattern in key_patterns(topic)? {
            let role = match (pattern.kind, publishes) {
                (TopicKind::Topic, true) => &PUBLISHER,
                (TopicKind::Topic, false) => &SUBSCRIPTION,
                (TopicKind::Request, true) => &CLIENT,
                (TopicKind::Request, false) => &SERVER,
                (TopicKind::Reply, true) => &REPLIES_SENT,
                (TopicKind::Reply, false) => &REPLIES_TAKEN,
            };
            for (flow, subject, messages) in role.messages {
                let keys = self.keys_of(&pattern, *subject, role.token);
                let of = (effect == Effect::Allow, *flow, messages.to_vec());
                let known = self.keys.entry(of).or_default();
                known.extend(keys);
            }
        }
        Ok(())
    }

    fn keys_of(
        &self,
        pattern: &KeyPattern,
        subject: Subject,
        token: Option<&'static str>,
    ) -> Vec<String> {
        match (subject, token) {
            (Subject::Data, _) => pattern.keys(self.domain),
            (Subject::History, _) => pattern.history_keys(self.domain),
            (Subject::Token, Some(kind)) => {
                let rest = format!("*/*/{}/*/*/*", pattern.token_name);
                tokens(self.domain, kind, self.enclave, &rest)
            }
            (Subject::Token, None) => Vec::new(),
        }
    }

    /// With what every session may do: announce its nodes, and see the graph.
    fn into_rules(self) -> Vec<AccessRule> {
        let domain = self.domain;
        let allow = |flow, messages: &[&'static str], keys| AccessRule {
            effect: Effect::Allow,
            flow,
            messages: messages.to_vec(),
            keys,
        };
        let nodes = tokens(domain, "NN", self.enclave, "*/*");
        let graph = || vec![format!("@ros2_lv/{domain}/**")];
        let asks = ["liveliness_query", "declare_liveliness_subscriber"];
        let mut rules = vec![
            allow(Flow::Ingress, &["liveliness_token"], nodes),
            allow(Flow::Ingress, &asks, graph()),
            allow(Flow::Egress, &["liveliness_token"], graph()),
        ];
        for ((allows, flow, messages), mut keys) in self.keys {
            keys.sort();
            keys.dedup();
            rules.push(AccessRule {
                effect: if allows { Effect::Allow } else { Effect::Deny },
                flow,
                messages,
                keys,
            });
        }
        rules
    }
}

/// The liveliness tokens of a kind: of sessions that claim this enclave or none.
fn tokens(domain: u32, kind: &str, enclave: &str, rest: &str) -> Vec<String> {
    let mut enclaves = vec![enclave.replace('/', "%"), "%".to_owned()];
    enclaves.dedup();
    let keys = enclaves.iter();
    keys.map(|enclave| format!("@ros2_lv/{domain}/*/*/*/{kind}/{enclave}/{rest}"))
        .collect()
}

/// The rules between routers: they exchange everything of a domain.
pub fn router_rules(domain: u32) -> Vec<AccessRule> {
    let keys = vec![
        format!("{domain}/**"),
        format!("{domain}/**/@adv/**"),
        format!("@ros2_lv/{domain}/**"),
    ];
    let messages = [
        "put",
        "delete",
        "declare_subscriber",
        "query",
        "reply",
        "declare_queryable",
        "liveliness_token",
        "liveliness_query",
        "declare_liveliness_subscriber",
    ];
    let rule = |flow| AccessRule {
        effect: Effect::Allow,
        flow,
        messages: messages.to_vec(),
        keys: keys.clone(),
    };
    vec![rule(Flow::Ingress), rule(Flow::Egress)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocumentSource;
    use crate::permissions::Permissions;

    fn rules_of(rules: &str, default: &str) -> Result<Vec<AccessRule>, Diagnostic> {
        let text = format!(
            "<dds><permissions><grant name=\"g\"><subject_name>CN=/arm</subject_name>\
             <validity><not_before>2020-01-01T00:00:00</not_before>\
             <not_after>2040-01-01T00:00:00</not_after></validity>\n{rules}\
             <default>{default}</default></grant></permissions></dds>"
        );
        let source = DocumentSource {
            file: "permissions.xml",
            first_line: 1,
            text: &text,
        };
        let permissions = Permissions::read(source).unwrap();
        let grant = &permissions.grants[0];
        access_rules(grant, "permissions.xml", "/arm", 3)
    }

    fn rule(effect: &str, rest: &str) -> String {
        format!("<{effect}><domains><id>3</id></domains>{rest}</{effect}>\n")
    }

    fn topics(word: &str, topic: &str) -> String {
        format!("<{word}><topics><topic>{topic}</topic></topics></{word}>")
    }

    /// Whether some rule is about this message and exactly this key expression.
    fn has(rules: &[AccessRule], effect: Effect, flow: Flow, message: &str, key: &str) -> bool {
        rules.iter().any(|rule| {
            rule.effect == effect
                && rule.flow == flow
                && rule.messages.contains(&message)
                && rule.keys.iter().any(|own| own == key)
        })
    }

    #[test]
    fn a_publisher_may_put_and_a_subscription_may_take() {
        use Flow::{Egress, Ingress};
        let publish = rule("allow_rule", &topics("publish", "rt/chatter"));
        let rules = rules_of(&publish, "DENY").unwrap();
        let has_allow = |flow, message, key| has(&rules, Effect::Allow, flow, message, key);
        assert!(has_allow(Ingress, "put", "3/chatter/*/*"));
        assert!(has_allow(Ingress, "put", "3/chatter/*/*/@adv/**"));
        assert!(has_allow(Egress, "declare_subscriber", "3/chatter/*/*"));
        let token = "@ros2_lv/3/*/*/*/MP/%arm/*/*/%chatter/*/*/*";
        assert!(has_allow(Ingress, "liveliness_token", token));
        assert!(has_allow(
            Ingress,
            "liveliness_token",
            "@ros2_lv/3/*/*/*/NN/%arm/*/*"
        ));
        assert!(!has_allow(Egress, "put", "3/chatter/*/*"));
        assert!(!has_allow(Ingress, "declare_queryable", "3/chatter/*/*"));

        let subscribe = rule("allow_rule", &topics("subscribe", "rt/chatter"));
        let rules = rules_of(&subscribe, "DENY").unwrap();
        let has_allow = |flow, message, key| has(&rules, Effect::Allow, flow, message, key);
        assert!(has_allow(Egress, "put", "3/chatter/*/*"));
        assert!(has_allow(Ingress, "declare_subscriber", "3/chatter/*/*"));
        assert!(has_allow(Ingress, "query", "3/chatter/*/*/@adv/**"));
        assert!(!has_allow(Ingress, "put", "3/chatter/*/*"));
        assert!(!has_allow(Ingress, "query", "3/chatter/*/*"));
    }

    #[test]
    fn a_client_may_ask_and_a_server_may_reply() {
        use Flow::{Egress, Ingress};
        let both = |publish, subscribe| {
            let rest = topics("publish", publish) + &topics("subscribe", subscribe);
            rules_of(&rule("allow_rule", &rest), "DENY").unwrap()
        };
        let client = both("rq/addRequest", "rr/addReply");
        let allows = |flow, message| has(&client, Effect::Allow, flow, message, "3/add/*/*");
        assert!(allows(Ingress, "query") && allows(Egress, "reply"));
        assert!(!allows(Ingress, "declare_queryable") && !allows(Ingress, "reply"));
        let server = both("rr/addReply", "rq/addRequest");
        let allows = |flow, message| has(&server, Effect::Allow, flow, message, "3/add/*/*");
        assert!(allows(Ingress, "declare_queryable") && allows(Egress, "query"));
        assert!(allows(Ingress, "reply") && !allows(Ingress, "query"));
    }

    #[test]
    fn nothing_is_allowed_without_a_rule_and_everything_by_default() {
        let none = rules_of("", "DENY").unwrap();
        assert_eq!(none.len(), 3, "nodes and the graph");
        let other = rule("allow_rule", &topics("publish", "rt/a")).replace("3", "4");
        assert_eq!(rules_of(&other, "DENY").unwrap(), none, "of another domain");
        let all = rules_of("", "ALLOW").unwrap();
        assert!(has(&all, Effect::Allow, Flow::Ingress, "put", "3/*/*/*/**"));
        assert!(has(
            &all,
            Effect::Allow,
            Flow::Ingress,
            "query",
            "3/*/*/*/**"
        ));
    }

    #[test]
    fn partitions_and_data_tags_are_those_of_the_default() {
        let within =
            |rest: &str| format!("<publish><topics><topic>rt/a</topic></topics>{rest}</publish>");
        let partition = |name: &str| {
            within(&format!(
                "<partitions><partition>{name}</partition></partitions>"
            ))
        };
        let tag = within("<data_tags><tag><name>n</name><value>v</value></tag></data_tags>");
        let allows = |rest: &str| {
            let rules = rules_of(&rule("allow_rule", rest), "DENY").unwrap();
            has(&rules, Effect::Allow, Flow::Ingress, "put", "3/a/*/*")
        };
        assert!(allows(&partition("*")) && !allows(&partition("other")));
        assert!(allows(&tag));
        let denies = |rest: &str| {
            let rules = rules_of(&rule("deny_rule", rest), "ALLOW").unwrap();
            has(&rules, Effect::Deny, Flow::Ingress, "put", "3/a/*/*")
        };
        assert!(denies(&within("")) && denies(&partition("*")));
        assert!(!denies(&partition("other")) && !denies(&tag));
    }

    #[test]
    fn what_would_mean_something_else_is_an_error() {
        let allow = rule("allow_rule", &topics("publish", "rt/*"));
        let deny = rule("deny_rule", &topics("publish", "rt/secret"));
        assert!(rules_of(&format!("{deny}{allow}"), "DENY").is_ok());
        let fault = rules_of(&format!("{allow}{deny}"), "DENY").unwrap_err();
        assert_eq!((&*fault.field, fault.line), ("<deny_rule>", Some(3)));
        let one = rule("allow_rule", &topics("publish", "rt/camera_?"));
        let fault = rules_of(&one, "DENY").unwrap_err();
        assert_eq!((&*fault.field, &*fault.value), ("<topic>", "rt/camera_?"));
    }
}
