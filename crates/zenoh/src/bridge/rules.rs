//! Rules of a bridge: which names it routes, how fast, and what they are called on the
//! other side.
//!
//! Names are those of the RTPS side. The two topics and three services of an action count
//! as the action itself.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::names::validate_namespace;
use thiserror::Error;

/// Rates of one bridge; so are allowed and denied names each.
const SELECTIONS_MAX: usize = 256;
/// Names whose decision is remembered. When full, all are forgotten.
const DECISIONS_MAX: usize = 16_384;
/// The fastest rate, in hertz.
const HERTZ_MAX: f64 = 1e6;

/// Chooses names: whether a name of the RTPS side is meant. Called once per name, with
/// locks of the bridge held.
pub type NameSelection = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Why rules are wrong.
#[derive(Error, PartialEq)]
pub enum RuleError {
    /// It is no rate.
    #[error("rate {hertz}: use a number of messages per second above 0 and at most 1000000")]
    Rate {
        /// The given value.
        hertz: f64,
    },
    /// It is no namespace.
    #[error("namespace \"{namespace}\": {reason}; use one such as \"/robot1\"")]
    Namespace {
        /// The given value.
        namespace: String,
        /// The problem.
        reason: String,
    },
    /// Too many of them.
    #[error(
        "{given} selections of one kind, but a bridge takes {SELECTIONS_MAX}; join some of them with |"
    )]
    TooMany {
        /// How many.
        given: usize,
    },
}

pteros_msg::debug_as_display!(RuleError);

/// The input of the rules. The default routes everything under its own name.
#[derive(Clone, Default)]
pub struct RuleOptions {
    /// Names that are routed. None: all.
    pub allow: Vec<NameSelection>,
    /// Names that are not routed, even if they are allowed.
    pub deny: Vec<NameSelection>,
    /// Topics with the messages per second that pass of each publisher. The first
    /// selection that has a name counts.
    pub rates: Vec<(NameSelection, f64)>,
    /// Put before every name on the Zenoh side, and taken away on the way back: names of
    /// the Zenoh side outside are not routed. Empty or `/`: none.
    pub namespace: String,
}

/// See the module documentation. Thread-safe.
pub struct Rules {
    allow: Vec<NameSelection>,
    deny: Vec<NameSelection>,
    rates: Vec<(NameSelection, f64)>,
    /// Empty, or with a leading slash and none at its end.
    namespace: String,
    decisions: Mutex<HashMap<String, RuleDecision>>,
}

/// The decision on a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RuleDecision {
    /// Whether it is routed.
    pub is_allowed: bool,
    /// Messages per second that pass of each publisher.
    pub hertz: Option<f64>,
}

impl Rules {
    /// Checks them.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn new(options: RuleOptions) -> Result<Self, RuleError> {
        let RuleOptions {
            allow,
            deny,
            rates,
            namespace,
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
            decisions: Mutex::default(),
        })
    }

    /// The name on the RTPS side of a name on the Zenoh side. `None` outside the
    /// namespace.
    pub fn rtps_name(&self, zenoh_name: &str) -> Option<String> {
        let rest = zenoh_name.strip_prefix(&self.namespace)?;
        rest.starts_with('/').then(|| rest.into())
    }

    /// The name on the Zenoh side of a name on the RTPS side.
    pub fn zenoh_name(&self, rtps_name: &str) -> String {
        format!("{}{rtps_name}", self.namespace)
    }

    /// The decision on a name of the RTPS side.
    pub fn decision(&self, rtps_name: &str) -> RuleDecision {
        let mut decisions = self.decisions.lock();
        if let Some(known) = decisions.get(rtps_name) {
            return *known;
        }
        let name = match rtps_name.split_once(ACTION_PART) {
            Some((action, _)) => action,
            None => rtps_name,
        };
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

/// In the names of an action's topics and services.
const ACTION_PART: &str = "/_action/";

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
        // Remembered.
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
