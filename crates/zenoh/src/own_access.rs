//! Own access control: whether the settings of a session allow it to send a message
//! (Zenoh's `access_control`, flow egress).
//!
//! A router silently drops what a session may not send. The files for a keystore give
//! each session the router's rules for it. So the session predicts what the router would
//! drop. Zenoh enforces the rules, not this file.

use serde_json::Value;
use zenoh::Config;
use zenoh::key_expr::{OwnedKeyExpr, keyexpr};

use crate::key::{Place, Role};

/// The egress rules in a session's own settings.
pub struct OwnAccess {
    /// One per peer of the rules, routers above all.
    subjects: Vec<SubjectRules>,
}

#[derive(Default)]
struct SubjectRules {
    allow: Vec<SendRule>,
    deny: Vec<SendRule>,
}

/// A rule with the flow egress.
struct SendRule {
    messages: Vec<String>,
    keys: Vec<OwnedKeyExpr>,
}

impl OwnAccess {
    /// The rules of a configuration. `None` if access control is off, or if its default
    /// is to allow: then an unknown peer may get everything.
    pub fn of(config: &Config) -> Option<Self> {
        let text = config.get_json("access_control").ok()?;
        let control: Value = serde_json::from_str(&text).ok()?;
        let is_on = control["enabled"] == true && control["default_permission"] == "deny";
        is_on.then(|| Self::read(&control))
    }

    fn read(control: &Value) -> Self {
        let subjects = items(&control["subjects"]).map(|subject| {
            let mut own = SubjectRules::default();
            for policy in items(&control["policies"]) {
                if has(&policy["subjects"], &subject["id"]) {
                    let rules = items(&control["rules"]);
                    let rules = rules.filter(|rule| has(&policy["rules"], &rule["id"]));
                    rules.for_each(|rule| own.add(rule));
                }
            }
            own
        });
        Self {
            subjects: subjects.collect(),
        }
    }

    /// Whether some peer may receive tokens of this pattern (`token.rs`).
    pub fn may_announce(&self, pattern: &str) -> bool {
        self.may_send("liveliness_token", pattern)
    }

    /// The reason why the session may not have an endpoint, as the rest of a sentence.
    pub fn why_not(&self, place: &Place, domain: u32, enclave: &str) -> Option<String> {
        let (message, what) = match place.role {
            Role::Publisher => ("put", "publish"),
            Role::Subscription => ("declare_subscriber", "subscribe to"),
            Role::Client => ("query", "call"),
            Role::Server => ("declare_queryable", "serve"),
            Role::Replies => return None,
        };
        if self.may_send(message, &place.key(domain, "*")) {
            return None;
        }
        Some(format!(
            "access control does not let this session {what} \"{}\" in the domain {domain}; allow it \
             in the permissions of the enclave \"{enclave}\", run `pteros security \
             create_zenoh_config` again, and start the routers again",
            place.name
        ))
    }

    /// Whether the rules allow a message, in Zenoh's words, for some key of the pattern
    /// to some peer.
    fn may_send(&self, message: &str, pattern: &str) -> bool {
        let Ok(pattern) = keyexpr::new(pattern) else {
            return true;
        };
        let is_about = |rule: &&SendRule| rule.messages.iter().any(|own| own == message);
        self.subjects.iter().any(|own| {
            let mut deny = own.deny.iter().filter(is_about).flat_map(|rule| &rule.keys);
            let mut allow = own
                .allow
                .iter()
                .filter(is_about)
                .flat_map(|rule| &rule.keys);
            !deny.any(|key| key.includes(pattern)) && allow.any(|key| key.intersects(pattern))
        })
    }
}

impl SubjectRules {
    fn add(&mut self, rule: &Value) {
        let flows = &rule["flows"];
        // A rule without flows applies to both.
        if !flows.is_null() && !items(flows).any(|flow| flow == "egress") {
            return;
        }
        let texts = |list| items(list).filter_map(Value::as_str).map(str::to_owned);
        let keys = texts(&rule["key_exprs"]);
        let rules = if rule["permission"] == "allow" {
            &mut self.allow
        } else {
            &mut self.deny
        };
        rules.push(SendRule {
            messages: texts(&rule["messages"]).collect(),
            keys: keys
                .filter_map(|key| OwnedKeyExpr::autocanonize(key).ok())
                .collect(),
        });
    }
}

fn has(list: &Value, id: &Value) -> bool {
    items(list).any(|own| own == id)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(rules: &str, default: &str) -> Option<OwnAccess> {
        let control = format!(
            r#"{{ enabled: true, default_permission: "{default}", rules: [{rules}],
                subjects: [
                    {{ id: "routers", cert_common_names: ["/zenohd"] }},
                    {{ id: "others", cert_common_names: ["/other"] }},
                ],
                policies: [{{ rules: ["a", "b"], subjects: ["routers"] }}],
            }}"#
        );
        let mut config = Config::default();
        config.insert_json5("access_control", &control).unwrap();
        OwnAccess::of(&config)
    }

    fn rule(id: &str, permission: &str, rest: &str, key: &str) -> String {
        format!(r#"{{ id: "{id}", permission: "{permission}", {rest}, key_exprs: ["{key}"] }},"#)
    }

    const SENT: &str = r#"flows: ["egress"], messages: ["liveliness_token"]"#;

    #[test]
    fn a_token_needs_a_rule_that_allows_it_and_none_that_denies_it() {
        let allow = rule("a", "allow", SENT, "@ros2_lv/0/*/*/*/MP/%arm/*/*/**");
        let deny = rule(
            "b",
            "deny",
            SENT,
            "@ros2_lv/0/*/*/*/MP/%arm/*/*/%secret/*/*/*",
        );
        let access = access(&format!("{allow}{deny}"), "deny").unwrap();
        let may = |kind, enclave, name| {
            let pattern = format!("@ros2_lv/0/1/*/*/{kind}/{enclave}/*/*/{name}/a/*/*");
            access.may_announce(&pattern)
        };
        assert!(may("MP", "%arm", "%chatter"));
        assert!(!may("MP", "%arm", "%secret"));
        assert!(!may("MS", "%arm", "%chatter"));
        assert!(!may("MP", "%leg", "%chatter"));
    }

    #[test]
    fn rules_about_other_messages_flows_and_peers_do_not_count() {
        let key = "@ros2_lv/**";
        let may = |rules: &str| {
            access(rules, "deny")
                .unwrap()
                .may_announce("@ros2_lv/0/1/a")
        };
        assert!(may(&rule("a", "allow", SENT, key)));
        let both = r#"messages: ["put", "liveliness_token"]"#;
        assert!(may(&rule("a", "allow", both, key)), "both flows");
        assert!(!may(&rule("c", "allow", SENT, key)), "no policy has it");
        let received = r#"flows: ["ingress"], messages: ["liveliness_token"]"#;
        assert!(!may(&rule("a", "allow", received, key)));
        let put = r#"flows: ["egress"], messages: ["put"]"#;
        assert!(!may(&rule("a", "allow", put, key)));
        // Denied for some of the names that match the pattern.
        let deny = rule("b", "deny", SENT, "@ros2_lv/0/1/a");
        let both = rule("a", "allow", SENT, key) + &deny;
        let access = access(&both, "deny").unwrap();
        let may = |key| access.may_announce(key);
        assert!(may("@ros2_lv/0/1/*") && !may("@ros2_lv/0/1/a"));
    }

    #[test]
    fn an_endpoint_that_may_not_be_is_refused_with_a_reason() {
        let allow = rule(
            "a",
            "allow",
            r#"flows: ["egress"], messages: ["put", "declare_queryable"]"#,
            "3/arm/*/*",
        );
        let access = access(&allow, "deny").unwrap();
        let why_not = |role, name: &str| {
            let place = Place {
                role,
                name: name.into(),
                type_name: "std_msgs::msg::dds_::String_".into(),
            };
            access.why_not(&place, 3, "/arm")
        };
        let refused = [
            (Role::Publisher, "/leg", "publish"),
            (Role::Subscription, "/arm", "subscribe to"),
            (Role::Client, "/arm", "call"),
            (Role::Server, "/leg", "serve"),
        ];
        for (role, name, what) in refused {
            let reason = why_not(role, name).unwrap();
            assert!(
                reason.contains(&format!("session {what} \"{name}\" in the domain 3")),
                "{reason}"
            );
            assert!(reason.contains("the enclave \"/arm\""), "{reason}");
        }
        for role in [Role::Publisher, Role::Server, Role::Replies] {
            assert_eq!(why_not(role, "/arm"), None);
        }
    }

    #[test]
    fn nothing_is_known_without_access_control_that_denies() {
        assert!(OwnAccess::of(&Config::default()).is_none());
        assert!(access("", "allow").is_none());
        assert!(!access("", "deny").unwrap().may_announce("@ros2_lv/0/1/a"));
    }
}
