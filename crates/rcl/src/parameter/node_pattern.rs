//! Node name patterns of parameter files, with `*` and `**`.

use std::fmt;

use pteros_runtime::names::{self, NameError};

/// Parts of a fully qualified node name: `*` matches one part, `**` any number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodePattern(Vec<Box<str>>);

impl NodePattern {
    /// Matches every node.
    pub(super) fn all() -> Self {
        Self(vec!["**".into()])
    }

    /// Matches the node of this name in the root namespace. rclcpp's
    /// `parameter_map_from` puts a slash before the name. The `NODE:` of a remap
    /// rule, in contrast, matches any namespace.
    pub(super) fn in_root(node: &str) -> Self {
        Self(vec![node.into()])
    }

    /// Parses `/ns/node` with wildcards.
    pub(super) fn parse(text: &str) -> Result<Self, NameError> {
        let parts: Vec<Box<str>> = text.trim_matches('/').split('/').map(Into::into).collect();
        for part in parts.iter().filter(|part| !is_wildcard(part)) {
            names::validate_node(part)?;
        }
        Ok(Self(parts))
    }

    pub(super) fn has_wildcards(&self) -> bool {
        self.0.iter().any(|part| is_wildcard(part))
    }

    pub(super) fn matches(&self, node: &str) -> bool {
        let parts: Vec<&str> = node.trim_start_matches('/').split('/').collect();
        matches(&self.0, &parts)
    }
}

impl fmt::Display for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "/{part}"))
    }
}

fn is_wildcard(part: &str) -> bool {
    matches!(part, "*" | "**")
}

fn matches(pattern: &[Box<str>], parts: &[&str]) -> bool {
    match (pattern, parts) {
        ([], parts) => parts.is_empty(),
        ([any, rest @ ..], parts) if &**any == "**" => {
            (0..=parts.len()).any(|taken| matches(rest, &parts[taken..]))
        }
        ([wanted, rest @ ..], [part, others @ ..]) => {
            (&**wanted == "*" || &**wanted == *part) && matches(rest, others)
        }
        (_, []) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_parts_of_names() {
        for (pattern, node, fits) in [
            ("/**", "/a", true),
            ("/**", "/a/b/c", true),
            ("/*", "/a", true),
            ("/*", "/a/b", false),
            ("/*/b", "/a/b", true),
            ("/**/b", "/b", true),
            ("/**/b", "/a/a/b", true),
            ("/**/b", "/a/b/c", false),
            ("/a/**", "/a", true),
            ("/a/**", "/ab", false),
            ("a", "/a", true),
            ("a/b", "/a/b", true),
        ] {
            let read = NodePattern::parse(pattern).unwrap();
            assert_eq!(read.matches(node), fits, "{pattern} {node}");
        }
        assert!(NodePattern::parse("/a*").is_err());
        assert!(NodePattern::parse("/a//b").is_err());
    }
}
