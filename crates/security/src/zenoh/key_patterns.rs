//! Key patterns: the key expressions of Zenoh for an expression of topics in a
//! permissions document (rmw_zenoh design.md, Zenoh key expressions RFC).
//!
//! A topic's key is `<domain>/<name>/<type>/<hash>`, and the name has one chunk or more.
//! A star of an expression also matches slashes. A star of Zenoh, `$*`, does not, and
//! `**` matches whole chunks. So a star in the middle becomes two expressions.

use crate::expression::Expression;

/// The kind of DDS topics that an expression names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicKind {
    /// `rt/<name>`: a topic.
    Topic,
    /// `rq/<name>Request`: the requests of a service.
    Request,
    /// `rr/<name>Reply`: the replies of a service.
    Reply,
}

/// The names that an expression matches, as Zenoh writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern {
    /// Whether the names are of topics, requests or replies.
    pub kind: TopicKind,
    /// The names in a key, without domain, type and hash.
    names: Vec<String>,
    /// The name in a liveliness token, one chunk.
    pub token_name: String,
}

impl TopicKind {
    /// Prefix and suffix of its DDS names.
    const fn affixes(self) -> (&'static str, &'static str) {
        match self {
            Self::Topic => ("rt/", ""),
            Self::Request => ("rq/", "Request"),
            Self::Reply => ("rr/", "Reply"),
        }
    }
}

/// The patterns of an expression; none if it matches no name of ROS. The error is the
/// reason why Zenoh cannot express it.
pub fn key_patterns(expression: &Expression) -> Result<Vec<KeyPattern>, String> {
    let literals = expression
        .between_stars()
        .ok_or("Zenoh has no pattern for one character, ? or […]")?;
    let mut patterns = Vec::new();
    for kind in [TopicKind::Topic, TopicKind::Request, TopicKind::Reply] {
        let name = match literals.as_slice() {
            [before, ..] if before.starts_with(kind.affixes().0) => name_of(kind, &literals)?,
            // A star at the very beginning.
            [before, after] if before.is_empty() && after.is_empty() => Some(literals.clone()),
            [before, _, ..] if before.len() < kind.affixes().0.len() => {
                let prefix = kind.affixes().0;
                if prefix.starts_with(before.as_str()) {
                    return Err("the star may match rt/, rq/ or rr/; write one of them".into());
                }
                None
            }
            _ => None,
        };
        if let Some(name) = name.filter(|name| is_of_ros(name)) {
            patterns.push(KeyPattern {
                kind,
                names: names(&name)?,
                token_name: format!("%{}", name.join("$*").replace('/', "%")),
            });
        }
    }
    Ok(patterns)
}

impl KeyPattern {
    /// The keys in a domain.
    pub fn keys(&self, domain: u32) -> Vec<String> {
        self.with_ending(domain, "")
    }

    /// The keys of what zenoh-ext's publishers and subscribers add to a topic: its
    /// history, heartbeats and their tokens.
    pub fn history_keys(&self, domain: u32) -> Vec<String> {
        self.with_ending(domain, "/@adv/**")
    }

    fn with_ending(&self, domain: u32, ending: &str) -> Vec<String> {
        let keys = self.names.iter().map(|name| {
            let key = canonical(&format!("{name}/*/*"));
            format!("{domain}/{key}{ending}")
        });
        keys.collect()
    }
}

/// The literal texts of the name in an expression that begins with the kind's prefix.
fn name_of(kind: TopicKind, literals: &[String]) -> Result<Option<Vec<String>>, String> {
    let (prefix, suffix) = kind.affixes();
    let mut name = literals.to_vec();
    if let Some(first) = name.first_mut() {
        *first = first.split_off(prefix.len());
    }
    let stars = name.len().saturating_sub(1);
    let Some(last) = name.last_mut() else {
        return Ok(None);
    };
    if let Some(stem) = last.strip_suffix(suffix) {
        *last = stem.to_owned();
        return Ok(Some(name));
    }
    if stars == 0 || !suffix.ends_with(last.as_str()) {
        return Ok(None);
    }
    // The last star matches the suffix, or its beginning.
    let is_whole = last.is_empty();
    let before = name.iter().nth_back(1).map_or("", String::as_str);
    let begins = |at: usize| suffix.get(..at).is_some_and(|part| before.ends_with(part));
    if is_whole && !(1..=suffix.len()).any(begins) {
        return Ok(Some(name));
    }
    Err(format!(
        "a star may divide the suffix {suffix}; write it whole"
    ))
}

/// Whether names of ROS may have these texts.
fn is_of_ros(literals: &[String]) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/');
    let texts = literals.iter();
    let begins = literals.first().is_some_and(|text| text.starts_with('/'));
    let ends = literals.last().is_some_and(|text| text.ends_with('/'));
    let is_empty = literals.iter().all(String::is_empty) && literals.len() == 1;
    !begins
        && !ends
        && !is_empty
        && texts
            .clone()
            .all(|text| text.chars().all(legal) && !text.contains("//"))
}

/// The names as key expressions.
fn names(literals: &[String]) -> Result<Vec<String>, String> {
    let Some((first, rest)) = literals.split_first() else {
        return Ok(Vec::new());
    };
    let at_end = |text: Option<&String>| usize::from(text.is_some_and(String::is_empty));
    let outer = at_end(Some(first)).saturating_add(at_end(rest.last()));
    let inner = rest.len().saturating_sub(outer);
    if inner > INNER_STARS {
        return Err(format!("more than {INNER_STARS} stars in the middle"));
    }
    let mut names = vec![first.clone()];
    for (index, text) in rest.iter().enumerate() {
        let is_first = index == 0 && first.is_empty();
        let is_last = index.saturating_add(1) == rest.len() && text.is_empty();
        let stars: &[&str] = match (is_first, is_last) {
            (true, true) => &["*/**"],
            (true, false) => &["**/$*"],
            (false, true) => &["$*/**"],
            (false, false) => &["$*", "$*/**/$*"],
        };
        let longer = names
            .iter()
            .flat_map(|name| stars.iter().map(move |star| format!("{name}{star}{text}")));
        names = longer.collect();
    }
    Ok(names.iter().map(|name| canonical(name)).collect())
}

/// The canonical form: one `**` in a row, and `*` before it.
fn canonical(key: &str) -> String {
    let mut chunks: Vec<&str> = Vec::new();
    let mut is_open = false;
    for chunk in key.split('/') {
        match chunk {
            "**" => is_open = true,
            "*" | "$*" => chunks.push("*"),
            other => {
                if std::mem::take(&mut is_open) {
                    chunks.push("**");
                }
                chunks.push(other);
            }
        }
    }
    if is_open {
        chunks.push("**");
    }
    chunks.join("/")
}

/// Stars between texts that an expression may have: each doubles the key expressions.
const INNER_STARS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(text: &str) -> Result<Vec<(TopicKind, Vec<String>, String)>, String> {
        let found = key_patterns(&Expression::parse(text).unwrap())?;
        let found = found.into_iter();
        Ok(found
            .map(|one| (one.kind, one.keys(7), one.token_name))
            .collect())
    }

    fn keys(text: &str) -> Vec<String> {
        let found = patterns(text).unwrap();
        found.into_iter().flat_map(|(_, keys, _)| keys).collect()
    }

    #[test]
    fn a_name_becomes_a_key_of_its_own() {
        assert_eq!(
            patterns("rt/arm/state").unwrap(),
            [(
                TopicKind::Topic,
                vec!["7/arm/state/*/*".into()],
                "%arm%state".into()
            )]
        );
        assert_eq!(
            patterns("rq/addRequest").unwrap(),
            [(TopicKind::Request, vec!["7/add/*/*".into()], "%add".into())]
        );
        assert_eq!(
            patterns("rr/addReply").unwrap(),
            [(TopicKind::Reply, vec!["7/add/*/*".into()], "%add".into())]
        );
        let history = key_patterns(&Expression::parse("rt/map").unwrap()).unwrap();
        assert_eq!(history[0].history_keys(0), ["0/map/*/*/@adv/**"]);
    }

    #[test]
    fn stars_match_words_and_slashes() {
        assert_eq!(keys("rt/*"), ["7/*/*/*/**"]);
        assert_eq!(keys("rt/arm/*"), ["7/arm/*/*/*/**"]);
        assert_eq!(keys("rt/cam*"), ["7/cam$*/*/*/**"]);
        assert_eq!(keys("rt/*/state"), ["7/*/**/state/*/*"]);
        assert_eq!(keys("rt/*state"), ["7/**/$*state/*/*"]);
        assert_eq!(keys("rt/a*b"), ["7/a$*b/*/*", "7/a$*/**/$*b/*/*"]);
        assert_eq!(keys("rt/a/*/b"), ["7/a/*/b/*/*", "7/a/*/*/**/b/*/*"]);
        assert_eq!(keys("rq/*Request"), ["7/*/*/*/**"]);
        assert_eq!(keys("rq/*"), ["7/*/*/*/**"]);
        assert_eq!(patterns("rt/a/*").unwrap()[0].2, "%a%$*");
        let all = patterns("*").unwrap();
        let kinds: Vec<TopicKind> = all.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(
            kinds,
            [TopicKind::Topic, TopicKind::Request, TopicKind::Reply]
        );
    }

    #[test]
    fn names_that_ros_does_not_have_give_nothing() {
        for text in [
            "ros_discovery_info",
            "rt/",
            "rt//a",
            "rt/a/",
            "rt/a\\*",
            "rt/a b",
            "rq/add",
            "rq/Request",
            "",
            "xt*",
        ] {
            assert_eq!(patterns(text), Ok(Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_zenoh_cannot_express_is_an_error() {
        for text in [
            "rt/a?",
            "rt/[ab]",
            "r*",
            "*state",
            "rq/a*quest",
            "rq/aReq*",
            "rq/aRequest*",
            "rr/aReply*",
            "rt/a*b*c*d*e*f",
        ] {
            assert!(patterns(text).is_err(), "{text}");
        }
    }
}
