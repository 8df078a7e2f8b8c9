//! Expressions for topics and partitions: POSIX `fnmatch` without flags (DDS
//! Security 1.1 §9.4.1.2.6.1), so `*` also matches `/`. Compiled once. Matching
//! backtracks to the last star only: a name and an expression that a peer chooses
//! cost at most the product of their lengths.

/// A compiled expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    text: String,
    tokens: Vec<ExpressionToken>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ExpressionToken {
    Character(char),
    /// `?`
    Any,
    /// `*`
    Star,
    /// `[…]`
    Set {
        negated: bool,
        ranges: Vec<(char, char)>,
        classes: Vec<Class>,
    },
}

type Class = fn(&char) -> bool;

impl Expression {
    /// Parses an expression; the error is the reason. Unlike `fnmatch`, an unclosed
    /// `[` is an error: it would silently match nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > EXPRESSION_BYTES {
            return Err(format!("longer than {EXPRESSION_BYTES} bytes"));
        }
        let mut tokens = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' => ExpressionToken::Star,
                '?' => ExpressionToken::Any,
                '[' => set(&mut rest)?,
                '\\' => ExpressionToken::Character(rest.next().ok_or("ends with a backslash")?),
                other => ExpressionToken::Character(other),
            });
        }
        tokens.dedup_by(|b, a| *a == ExpressionToken::Star && *b == ExpressionToken::Star);
        Ok(Self {
            text: text.to_owned(),
            tokens,
        })
    }

    /// The source text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The literal texts before, between and after its stars. `None` if it has a `?` or
    /// a set, which match one character.
    pub fn between_stars(&self) -> Option<Vec<String>> {
        let mut literals = vec![String::new()];
        for token in &self.tokens {
            match token {
                ExpressionToken::Character(c) => literals.last_mut()?.push(*c),
                ExpressionToken::Star => literals.push(String::new()),
                ExpressionToken::Any | ExpressionToken::Set { .. } => return None,
            }
        }
        Some(literals)
    }

    /// Whether it matches every text.
    pub fn is_everything(&self) -> bool {
        self.tokens == [ExpressionToken::Star]
    }

    /// Whether it matches the whole `text`.
    pub fn matches(&self, text: &str) -> bool {
        let mut text = text.chars();
        let mut tokens = self.tokens.iter();
        // Where to continue if the part after the last star does not match.
        let mut retry: Option<(std::slice::Iter<'_, ExpressionToken>, std::str::Chars<'_>)> = None;
        loop {
            let before = (tokens.clone(), text.clone());
            let fits = match (tokens.next(), text.next()) {
                (None, None) => return true,
                (Some(ExpressionToken::Star), _) => {
                    text = before.1;
                    retry = Some((tokens.clone(), text.clone()));
                    continue;
                }
                (Some(token), Some(c)) => token.fits(c),
                _ => false,
            };
            if !fits {
                let Some((after_star, from)) = &mut retry else {
                    return false;
                };
                // The star matches one more character.
                if from.next().is_none() {
                    return false;
                }
                tokens = after_star.clone();
                text = from.clone();
            }
        }
    }
}

impl ExpressionToken {
    fn fits(&self, c: char) -> bool {
        match self {
            ExpressionToken::Character(own) => *own == c,
            ExpressionToken::Any | ExpressionToken::Star => true,
            ExpressionToken::Set {
                negated,
                ranges,
                classes,
            } => {
                let inside = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c))
                    || classes.iter().any(|class| class(&c));
                inside != *negated
            }
        }
    }
}

/// Parses the part after a `[`, up to its `]`.
fn set(rest: &mut std::str::Chars<'_>) -> Result<ExpressionToken, String> {
    const UNCLOSED: &str = "a [ is never closed; write \\[ for the character";
    let mut ranges = Vec::new();
    let mut classes: Vec<Class> = Vec::new();
    let mut next = rest.next();
    let negated = matches!(next, Some('!' | '^'));
    if negated {
        next = rest.next();
    }
    let mut first = true;
    loop {
        let c = match next.ok_or(UNCLOSED)? {
            ']' if !first => break,
            '[' if rest.as_str().starts_with(':') => {
                let (name, after) = rest
                    .as_str()
                    .strip_prefix(':')
                    .and_then(|named| named.split_once(":]"))
                    .ok_or(UNCLOSED)?;
                classes.push(class(name).ok_or_else(|| format!("no character class [:{name}:]"))?);
                *rest = after.chars();
                next = rest.next();
                first = false;
                continue;
            }
            '\\' => rest.next().ok_or(UNCLOSED)?,
            other => other,
        };
        first = false;
        let mut ahead = rest.clone();
        // A '-' right before the ']' is literal.
        if ahead.next() == Some('-') && !ahead.as_str().starts_with(']') {
            *rest = ahead;
            let high = match rest.next().ok_or(UNCLOSED)? {
                '\\' => rest.next().ok_or(UNCLOSED)?,
                other => other,
            };
            if high < c {
                return Err(format!("the range {c}-{high} is empty"));
            }
            ranges.push((c, high));
        } else {
            ranges.push((c, c));
        }
        next = rest.next();
    }
    Ok(ExpressionToken::Set {
        negated,
        ranges,
        classes,
    })
}

/// POSIX character classes, for ASCII as in the C locale.
fn class(name: &str) -> Option<Class> {
    Some(match name {
        "alnum" => char::is_ascii_alphanumeric,
        "alpha" => char::is_ascii_alphabetic,
        "blank" => |c| matches!(c, ' ' | '\t'),
        "cntrl" => char::is_ascii_control,
        "digit" => char::is_ascii_digit,
        "graph" => char::is_ascii_graphic,
        "lower" => char::is_ascii_lowercase,
        "print" => |c| c.is_ascii_graphic() || *c == ' ',
        "punct" => char::is_ascii_punctuation,
        "space" => char::is_ascii_whitespace,
        "upper" => char::is_ascii_uppercase,
        "xdigit" => char::is_ascii_hexdigit,
        _ => return None,
    })
}

/// Limit of an expression: four times the longest topic name of ROS 2.
const EXPRESSION_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_fnmatch_does() {
        for (expression, text, expected) in [
            ("*", "", true),
            ("*", "rt/a/b", true),
            ("", "", true),
            ("", "a", false),
            ("rt/*", "rt/a/b", true),
            ("rt/*", "rq/a", false),
            ("rt/?an", "rt/scan", false),
            ("rt/s?an", "rt/scan", true),
            ("*Reply", "rr/add/Reply_Reply", true),
            ("*a*b*c", "xxaxxbxxbxxc", true),
            ("*a*b*c", "xxaxxbxxbxx", false),
            ("**a", "a", true),
            ("a[0-9]", "a7", true),
            ("a[!0-9]", "a7", false),
            ("a[^0-9]", "ax", true),
            ("a[]x]", "a]", true),
            ("a[x-]", "a-", true),
            ("a[b-b]", "ab", true),
            ("a[b-d]", "ae", false),
            ("[[:alpha:]_]x", "_x", true),
            ("[[:digit:]]", "a", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a[\\]]", "a]", true),
            ("ä?", "äö", true),
        ] {
            let compiled = Expression::parse(expression).unwrap();
            assert_eq!(compiled.matches(text), expected, "{expression} {text}");
        }
    }

    #[test]
    fn literal_texts_lie_between_the_stars() {
        let between = |text: &str| Expression::parse(text).unwrap().between_stars();
        assert_eq!(between("rt/a"), Some(vec!["rt/a".into()]));
        assert_eq!(between("**"), Some(vec![String::new(), String::new()]));
        assert_eq!(between("a*\\*b"), Some(vec!["a".into(), "*b".into()]));
        assert_eq!(between("a?"), None);
        assert_eq!(between("a[bc]*"), None);
    }

    #[test]
    fn only_stars_match_everything() {
        for (expression, is_everything) in [
            ("*", true),
            ("***", true),
            ("", false),
            ("*a", false),
            ("?", false),
        ] {
            let compiled = Expression::parse(expression).unwrap();
            assert_eq!(compiled.is_everything(), is_everything, "{expression}");
        }
    }

    #[test]
    fn a_meaningless_expression_is_an_error() {
        for text in ["a[", "a[b", "a\\", "[z-a]", "[[:letters:]]", "[[:alpha:"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        assert!(Expression::parse(&"a".repeat(1025)).is_err());
    }

    #[test]
    fn many_stars_cost_no_more_than_a_product() {
        let compiled = Expression::parse(&"*a".repeat(500)).unwrap();
        assert!(!compiled.matches(&"a".repeat(499)));
        assert!(compiled.matches(&"a".repeat(60_000)));
        assert!(!compiled.matches(&("a".repeat(60_000) + "b")));
    }
}
