//! Rules of a bridge: which names it routes, at which rate, and under which name on the
//! other side.
//!
//! Names are those of the RTPS side. The two topics and three services of an action are
//! selected by the name of the action.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::names::validate_namespace;
use thiserror::Error;

/// Rates of one bridge; allowed and denied names have the same limit each.
const SELECTIONS_MAX: usize = 256;
/// Cached decisions. When full, the cache is cleared.
const DECISIONS_MAX: usize = 16_384;
/// Highest rate, in hertz.
const HERTZ_MAX: f64 = 1e6;

/// Selects names of the RTPS side. Called once per name, with locks of the bridge held.
pub type NameSelection = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Why rules are invalid.
#[derive(Error, PartialEq)]
pub enum RuleError {
    /// A rate is not positive and finite, or too high.
    #[error("rate {hertz}: use a number of messages per second above 0 and at most 1000000")]
    Rate {
        /// The given value.
        hertz: f64,
    },
    /// The namespace is not a ROS namespace.
    #[error("namespace \"{namespace}\": {reason}; use one such as \"/robot1\"")]
    Namespace {
        /// The given value.
        namespace: String,
        /// The problem with the namespace.
        reason: String,
    },
    /// Too many of them.
    #[error(
        "{given} selections of one kind, but a bridge takes {SELECTIONS_MAX}; join some of them with |"
    )]
    TooMany {
        /// Number of selections.
        given: usize,
    },
}

pteros_msg::debug_as_display!(RuleError);

/// Endpoints that a bridge makes on one side, unless options say less. With those of one
/// reconciliation, whose predecessors a peer may still have, and the bridge's own there are
/// fewer than the 4 096 that a Pteros peer accepts of one participant.
pub const ENDPOINTS_MAX: usize = 3_952;

/// Input of the rules. The default routes everything under its own name.
#[derive(Clone, Default)]
pub struct RuleOptions {
    /// Selected names. Empty: all.
    pub allow: Vec<NameSelection>,
    /// Excluded names, which take precedence.
    pub deny: Vec<NameSelection>,
    /// Rate limits per publisher, messages per second. The first matching selection
    /// counts.
    pub rates: Vec<(NameSelection, f64)>,
    /// Prefix of every name on the Zenoh side, removed on the way back. Names of the
    /// Zenoh side outside it are not routed. Empty or `/`: no prefix.
    pub namespace: String,
    /// Endpoints that the bridge makes on each side. `None`: as many as peers accept of one
    /// participant.
    pub endpoints_max: Option<usize>,
}

/// See the module documentation. Thread-safe.
pub struct Rules {
    allow: Vec<NameSelection>,
    deny: Vec<NameSelection>,
    rates: Vec<(NameSelection, f64)>,
    /// Empty, or with a leading and without a trailing slash.
    namespace: String,
    /// See [`RuleOptions::endpoints_max`].
    pub endpoints_max: usize,
    decisions: Mutex<HashMap<String, RuleDecision>>,
}

/// Decision on a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RuleDecision {
    /// Whether it is routed.
    pub is_allowed: bool,
    /// Rate limit per publisher, messages per second.
    pub hertz: Option<f64>,
}

impl Rules {
    /// Checks the options.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn new(options: RuleOptions) -> Result<Self, RuleError> {
        let RuleOptions {
            allow,
            deny,
            rates,
            namespace,
            endpoints_max,
        } = options;
        let given = allow.len().max(deny.len()).max(rates.len());
        if given > SELECTIONS_MAX {
            return Err(RuleError::TooMany { given });
        }
        let is_wrong = |hertz: &f64| !(*hertz > 0.0 && *hertz <= HERTZ_MAX);
        if let Some(hertz) = rates.iter().map(|(_, hertz)| *hertz).find(is_wrong) {
            return Err(RuleError::Rate { hertz });
        }
        Ok(Self {
            allow,
            deny,
            rates,
            namespace: checked_namespace(namespace)?,
            endpoints_max: endpoints_max.unwrap_or(ENDPOINTS_MAX),
            decisions: Mutex::default(),
        })
    }

    /// Converts a Zenoh-side name to the RTPS side. `None` outside the namespace.
    pub fn rtps_name(&self, zenoh_name: &str) -> Option<String> {
        let rest = zenoh_name.strip_prefix(&self.namespace)?;
        rest.starts_with('/').then(|| rest.into())
    }

    /// Converts an RTPS-side name to the Zenoh side.
    pub fn zenoh_name(&self, rtps_name: &str) -> String {
        format!("{}{rtps_name}", self.namespace)
    }

    /// Decides on a name of the RTPS side, from the cache if possible.
    pub fn decision(&self, rtps_name: &str) -> RuleDecision {
        let mut decisions = self.decisions.lock();
        if let Some(known) = decisions.get(rtps_name) {
            return *known;
        }
        let name = action_of(rtps_name).unwrap_or(rtps_name);
        let has = |selections: &[NameSelection]| selections.iter().any(|of| of(name));
        let rate = self.rates.iter().find(|(of, _)| of(name));
        let decision = RuleDecision {
            is_allowed: (self.allow.is_empty() || has(&self.allow)) && !has(&self.deny),
            hertz: rate.map(|(_, hertz)| *hertz),
        };
        if decisions.len() >= DECISIONS_MAX {
            decisions.clear();
        }
        decisions.insert(rtps_name.into(), decision);
        decision
    }
}

/// Ends of the names of an action's topics and services.
const ACTION_ENDS: [&str; 5] = [
    "/_action/send_goal",
    "/_action/cancel_goal",
    "/_action/get_result",
    "/_action/feedback",
    "/_action/status",
];

/// The action of a topic or service. Any other name with `_action` is a name of its own, which
/// the rules for an action do not select.
fn action_of(name: &str) -> Option<&str> {
    let mut actions = ACTION_ENDS.iter().filter_map(|end| name.strip_suffix(end));
    actions.next().filter(|action| !action.is_empty())
}

fn checked_namespace(given: String) -> Result<String, RuleError> {
    if given.is_empty() || given == "/" {
        return Ok(String::new());
    }
    match validate_namespace(&given) {
        Ok(()) => Ok(given),
        Err(error) => Err(RuleError::Namespace {
            namespace: given,
            reason: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &'static [&'static str]) -> NameSelection {
        Arc::new(move |name| given.contains(&name))
    }

    #[test]
    fn deny_wins_over_allow() {
        let options = RuleOptions {
            allow: vec![names(&["/image", "/raw"]), names(&["/tf"])],
            deny: vec![names(&["/raw"])],
            ..RuleOptions::default()
        };
        let rules = Rules::new(options).unwrap();
        let allowed = |name: &str| rules.decision(name).is_allowed;
        assert!(allowed("/image") && allowed("/tf"));
        assert!(!allowed("/raw") && !allowed("/other"));
        // From the cache.
        assert!(allowed("/image") && !allowed("/raw"));
    }

    #[test]
    fn an_action_is_chosen_by_its_own_name() {
        let options = RuleOptions {
            allow: vec![names(&["/navigate"])],
            rates: vec![(names(&["/navigate"]), 2.0), (Arc::new(|_| true), 3.0)],
            ..RuleOptions::default()
        };
        let rules = Rules::new(options).unwrap();
        for part in [
            "send_goal",
            "cancel_goal",
            "get_result",
            "feedback",
            "status",
        ] {
            let decision = rules.decision(&format!("/navigate/_action/{part}"));
            assert!(decision.is_allowed && decision.hertz == Some(2.0), "{part}");
        }
        let other = rules.decision("/spin/_action/send_goal");
        assert!(!other.is_allowed && other.hertz == Some(3.0));
    }

    /// Regression: `/_action/x` was decided as the empty name, which no rule selects, and
    /// `/x/_action/y` as `/x`.
    #[test]
    fn what_only_looks_like_a_part_of_an_action_is_chosen_by_its_whole_name() {
        let odd = [
            "/_action/feedback",
            "/_action/other",
            "/navigate/_action/other",
            "/navigate/_action/feedback/more",
            "/navigate/_action/send_goals",
        ];
        let denied = RuleOptions {
            deny: vec![Arc::new(move |name| odd.contains(&name))],
            ..RuleOptions::default()
        };
        let allowed = RuleOptions {
            allow: vec![names(&["/navigate", ""])],
            ..RuleOptions::default()
        };
        for options in [denied, allowed] {
            let rules = Rules::new(options).unwrap();
            for name in odd {
                assert!(!rules.decision(name).is_allowed, "{name}");
            }
            let nested = "/navigate/_action/status";
            assert!(rules.decision(nested).is_allowed);
        }
    }

    #[test]
    fn a_namespace_is_put_before_names_and_taken_away_again() {
        let options = RuleOptions {
            namespace: "/robot1".into(),
            ..RuleOptions::default()
        };
        let rules = Rules::new(options).unwrap();
        assert_eq!(rules.zenoh_name("/tf"), "/robot1/tf");
        assert_eq!(rules.rtps_name("/robot1/tf").as_deref(), Some("/tf"));
        assert_eq!(rules.rtps_name("/robot10/tf"), None);
        assert_eq!(rules.rtps_name("/tf"), None);
        let plain = Rules::new(RuleOptions::default()).unwrap();
        assert_eq!(plain.zenoh_name("/tf"), "/tf");
        assert_eq!(plain.rtps_name("/tf").as_deref(), Some("/tf"));
    }

    #[test]
    fn wrong_rules_are_refused_with_the_value_and_the_way_out() {
        let error = |options: RuleOptions| Rules::new(options).err().unwrap().to_string();
        for hertz in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let wrong = error(RuleOptions {
                rates: vec![(names(&[]), hertz)],
                ..RuleOptions::default()
            });
            assert!(wrong.starts_with(&format!("rate {hertz}: use")), "{wrong}");
        }
        let wrong = error(RuleOptions {
            namespace: "robot1".into(),
            ..RuleOptions::default()
        });
        assert!(wrong.contains("namespace \"robot1\""), "{wrong}");
        let wrong = error(RuleOptions {
            allow: vec![names(&[]); 300],
            ..RuleOptions::default()
        });
        assert!(wrong.starts_with("300 selections"), "{wrong}");
    }
}
