//! Remapping rules, `[node:]match:=replacement`, and their application to names.
//!
//! Order as in rcl: the node's name, then its namespace, then each topic and
//! service in its fully qualified form. A node's own rules precede those of the
//! process, and the first that matches applies. `*` matches one segment between
//! slashes, `**` any number of them, and `\1` to `\9` insert what they matched (ROS
//! design article 141).

use pteros_runtime::names::{self, NameError, NameKind};

use super::{Arguments, ArgumentsError};

/// The kind of name that a remapping rule changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemapKind {
    /// `__node` or `__name`: the node's name.
    Node,
    /// `__ns`: the node's namespace.
    Namespace,
    /// `rostopic://`: topics only.
    Topic,
    /// `rosservice://`: services only.
    Service,
    /// Topics and services.
    Name,
}

/// One `-r` rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemapRule {
    /// Its node; `None` means every node of the process.
    pub node: Option<String>,
    /// The kind of name that it changes.
    pub kind: RemapKind,
    /// The pattern, including wildcards; empty for nodes and namespaces.
    pub pattern: String,
    /// The new name; `\1` to `\9` stand for what the wildcards matched.
    pub replacement: String,
}

/// The name and namespace of a node after remapping.
///
/// `sources` are the node's own arguments, if any, then the process's.
pub fn node_identity(
    sources: &[&Arguments],
    name: &str,
    namespace: &str,
) -> Result<(String, String), NameError> {
    let first = |kind, node: &str| {
        rules(sources)
            .find(|rule| rule.kind == kind && rule.applies_to(node))
            .map(|rule| rule.replacement.clone())
    };
    let name = first(RemapKind::Node, name).unwrap_or_else(|| name.into());
    // As in rcl, a rule for one node's namespace names the node after renaming.
    let namespace =
        first(RemapKind::Namespace, &name).unwrap_or_else(|| names::absolute_namespace(namespace));
    names::validate_node(&name)?;
    names::validate_namespace(&namespace)?;
    Ok((name, namespace))
}

/// The fully qualified name of a node's topic or service: expanded, then remapped
/// by the first rule that matches.
///
/// `node` and `namespace` are those of [`node_identity`], `sources` as there.
pub fn resolve_name(
    sources: &[&Arguments],
    kind: NameKind,
    name: &str,
    node: &str,
    namespace: &str,
) -> Result<String, NameError> {
    let full = names::expand(kind, name, node, namespace)?;
    let found = rules(sources)
        .filter(|rule| rule.renames(kind) && rule.applies_to(node))
        .find_map(|rule| Some((rule, captures(&rule.pattern, &full, node, namespace)?)));
    match found {
        None => Ok(full),
        Some((rule, captured)) => names::expand(
            kind,
            &substitute_captures(&rule.replacement, &captured),
            node,
            namespace,
        ),
    }
}

fn rules<'a>(sources: &[&'a Arguments]) -> impl Iterator<Item = &'a RemapRule> {
    sources.iter().flat_map(|arguments| &arguments.remaps)
}

impl RemapRule {
    /// Parses a rule; errors name `flag`.
    pub fn parse(flag: &str, text: &str) -> Result<RemapRule, ArgumentsError> {
        let wrong = |reason: &str, hint: &str| ArgumentsError::InvalidValue {
            flag: flag.into(),
            value: text.into(),
            reason: reason.into(),
            hint: hint.into(),
        };
        let (left, replacement) = text
            .split_once(":=")
            .ok_or_else(|| wrong("no := in it", "write FROM:=TO or NODE:FROM:=TO"))?;
        if replacement.is_empty() {
            return Err(wrong("nothing after :=", "write the new name after :="));
        }
        let (node, from) = match left.split_once(':') {
            Some((_, after)) if after.starts_with("//") => (None, left),
            Some((node, from)) => (Some(node), from),
            None => (None, left),
        };
        let (kind, pattern) = match from.split_once("://") {
            Some(("rostopic", name)) => (RemapKind::Topic, name),
            Some(("rosservice", name)) => (RemapKind::Service, name),
            Some(_) => {
                return Err(wrong(
                    "an unknown scheme before ://",
                    "use rostopic:// or rosservice://",
                ));
            }
            None if matches!(from, "__node" | "__name") => (RemapKind::Node, ""),
            None if from == "__ns" => (RemapKind::Namespace, ""),
            None => (RemapKind::Name, from),
        };
        let rule = RemapRule {
            node: node.map(Into::into),
            kind,
            pattern: pattern.into(),
            replacement: replacement.into(),
        };
        rule.check().map_err(|fault| match fault {
            RemapError::Name(source) => ArgumentsError::InvalidName {
                flag: flag.into(),
                value: text.into(),
                source,
            },
            RemapError::Other(reason, hint) => wrong(reason, hint),
        })?;
        Ok(rule)
    }

    fn check(&self) -> Result<(), RemapError> {
        if let Some(node) = &self.node {
            names::validate_node(node)?;
        }
        match self.kind {
            RemapKind::Node => return Ok(names::validate_node(&self.replacement)?),
            RemapKind::Namespace => return Ok(names::validate_namespace(&self.replacement)?),
            RemapKind::Topic | RemapKind::Service | RemapKind::Name => {}
        }
        let parts = || self.pattern.split('/');
        if parts().any(|part| part.contains('*') && part != "*" && part != "**") {
            return Err(RemapError::Other(
                "a wildcard mixed with text",
                "let * or ** stand alone between slashes",
            ));
        }
        // With letters in place of wildcards, both sides must be valid names.
        names::validate_input(NameKind::Topic, &self.pattern.replace('*', "x"))?;
        let wildcards = parts().filter(|part| part.contains('*')).count();
        for (at, _) in self.replacement.match_indices('\\') {
            let number = self.replacement[at + 1..]
                .chars()
                .next()
                .and_then(|c| c.to_digit(10));
            if number.is_none_or(|n| n == 0 || n as usize > wildcards) {
                return Err(RemapError::Other(
                    "a reference to a wildcard that is not before :=",
                    "use \\1 for the first * or ** there, \\2 for the second, up to \\9",
                ));
            }
        }
        let letters = vec!["x".to_owned(); 9];
        let sample = substitute_captures(&self.replacement, &letters);
        names::expand(NameKind::Topic, &sample, "node", "/")?;
        Ok(())
    }

    fn applies_to(&self, node: &str) -> bool {
        self.node.as_deref().is_none_or(|only| only == node)
    }

    fn renames(&self, kind: NameKind) -> bool {
        match self.kind {
            RemapKind::Name => true,
            RemapKind::Topic => kind == NameKind::Topic,
            RemapKind::Service => kind == NameKind::Service,
            RemapKind::Node | RemapKind::Namespace => false,
        }
    }
}

enum RemapError {
    Name(NameError),
    Other(&'static str, &'static str),
}

impl From<NameError> for RemapError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

/// Fills in `\1` to `\9`. An empty `**` also removes the slash before it.
fn substitute_captures(replacement: &str, captured: &[String]) -> String {
    let mut text = String::new();
    let mut characters = replacement.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let number = characters.next().and_then(|c| c.to_digit(10)).unwrap_or(0) as usize;
        match number.checked_sub(1).and_then(|n| captured.get(n)) {
            Some(part) if !part.is_empty() => text.push_str(part),
            _ => {
                text.pop();
            }
        }
    }
    text
}

/// The matches of the wildcards of `pattern`, if it matches the whole name.
fn captures(pattern: &str, full: &str, node: &str, namespace: &str) -> Option<Vec<String>> {
    let pattern = pattern
        .replace("{node}", node)
        .replace("{namespace}", namespace)
        .replace("{ns}", namespace);
    let pattern = match pattern.strip_prefix('~') {
        Some(rest) => format!("{}{rest}", names::node_path(namespace, node)),
        None if pattern.starts_with('/') => pattern,
        None => format!("{namespace}/{pattern}"),
    };
    let split = |text: &'_ str| -> Vec<String> {
        let parts = text.split('/').filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let (wanted, have) = (split(&pattern), split(full));
    let mut matching = WildcardMatcher {
        failed: vec![false; (wanted.len() + 1) * (have.len() + 1)],
        wanted,
        have,
        captured: Vec::new(),
    };
    matching.matches_from(0, 0).then_some(matching.captured)
}

struct WildcardMatcher {
    wanted: Vec<String>,
    have: Vec<String>,
    captured: Vec<String>,
    /// Pairs of positions that are known to fail. They bound the cost of many `**`
    /// to a multiple of the product of both lengths.
    failed: Vec<bool>,
}

impl WildcardMatcher {
    fn matches_from(&mut self, wanted_at: usize, have_at: usize) -> bool {
        let mark = wanted_at * (self.have.len() + 1) + have_at;
        if self.failed[mark] {
            return false;
        }
        let left = self.have.len() - have_at;
        let met = match self.wanted.get(wanted_at).map(String::as_str) {
            None => left == 0,
            Some("**") => (0..=left).any(|count| self.matches_wildcard(wanted_at, have_at, count)),
            Some("*") => left > 0 && self.matches_wildcard(wanted_at, have_at, 1),
            Some(part) => {
                self.have.get(have_at).is_some_and(|have| have == part)
                    && self.matches_from(wanted_at + 1, have_at + 1)
            }
        };
        self.failed[mark] = !met;
        met
    }

    /// Lets a wildcard match `count` segments and continues.
    fn matches_wildcard(&mut self, wanted_at: usize, have_at: usize, count: usize) -> bool {
        let depth = self.captured.len();
        let part = self.have[have_at..have_at + count].join("/");
        self.captured.push(part);
        let met = self.matches_from(wanted_at + 1, have_at + count);
        if !met {
            self.captured.truncate(depth);
        }
        met
    }
}
