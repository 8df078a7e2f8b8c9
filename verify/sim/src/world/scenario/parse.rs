//! Parser of scenarios. An unknown word is an error with line and column.

use std::fmt;

use super::policies::{EndpointPlan, GroupPlan, Options, nanos};
use super::statuses::{Expected, names};
use super::step::{
    ExpectedSample, InstanceOperation, LinkFault, Scenario, ScenarioPath, ScenarioStep, Verb,
    WriteValue,
};

/// A line that is not a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem.
    pub reason: String,
}

impl fmt::Display for ScenarioParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {} column {}: {}",
            self.line, self.column, self.reason
        )
    }
}

struct LineError {
    column: usize,
    reason: String,
}

/// A part of the line, and the column of its first character.
#[derive(Clone, Copy, Debug)]
struct LinePart<'t> {
    at: usize,
    text: &'t str,
}

impl<'t> LinePart<'t> {
    fn wrong<T>(&self, reason: impl Into<String>) -> Result<T, LineError> {
        Err(LineError {
            column: self.at,
            reason: reason.into(),
        })
    }

    /// The part after the first `bytes`.
    fn from(&self, bytes: usize) -> LinePart<'t> {
        let (before, text) = self.text.split_at(bytes);
        LinePart {
            at: self.at + before.chars().count(),
            text,
        }
    }

    fn to(&self, bytes: usize) -> LinePart<'t> {
        LinePart {
            at: self.at,
            text: &self.text[..bytes],
        }
    }

    fn trim(&self) -> LinePart<'t> {
        let start = self.text.len() - self.text.trim_start().len();
        let rest = self.from(start);
        rest.to(rest.text.trim_end().len())
    }

    /// The parts before and after the first `separator` outside of parentheses and
    /// quotes.
    fn split_once(&self, separator: char) -> (LinePart<'t>, Option<LinePart<'t>>) {
        let (mut depth, mut quoted) = (0, false);
        for (index, c) in self.text.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth -= 1,
                _ if c == separator && depth <= 0 && !quoted => {
                    return (self.to(index), Some(self.from(index + c.len_utf8())));
                }
                _ => {}
            }
        }
        (*self, None)
    }

    /// The trimmed parts between separators, including empty ones.
    fn split(&self, separator: char) -> Vec<LinePart<'t>> {
        let (mut parts, mut rest) = (Vec::new(), Some(*self));
        while let Some(piece) = rest {
            let (part, more) = piece.split_once(separator);
            parts.push(part.trim());
            rest = more;
        }
        parts
    }

    fn words(&self) -> Vec<LinePart<'t>> {
        let mut words = self.split(' ');
        words.retain(|word| !word.text.is_empty());
        words
    }
}

/// Parses a line.
pub fn scenario(line: usize, text: &str) -> Result<Scenario, ScenarioParseError> {
    let read = || -> Result<Scenario, LineError> {
        let (head, steps) = LinePart { at: 1, text }.split_once(':');
        let Some(steps) = steps else {
            return head.wrong("no colon ends the name");
        };
        let (name, mut paths) = self::head(head.trim())?;
        let steps: Result<Vec<_>, _> = steps.split(';').into_iter().map(step).collect();
        let steps = steps?;
        let networked = steps.iter().find(|step| step.verb.needs_network());
        if let Some(step) = networked.filter(|_| paths.contains(&ScenarioPath::Local)) {
            let reason = "needs several contexts: write [net] after the scenario's name";
            return Err(LineError {
                column: step.column,
                reason: reason.into(),
            });
        }
        // Link faults do not affect shared memory.
        let faulted = steps.iter().any(|step| step.verb.faults_network());
        paths.retain(|path| *path != ScenarioPath::SharedMemory || !faulted);
        if !steps.iter().any(|step| step.expects()) {
            return Err(LineError {
                column: 1,
                reason: "expects nothing, so it cannot fail".into(),
            });
        }
        Ok(Scenario {
            name,
            line,
            text: text.into(),
            paths,
            steps,
        })
    };
    read().map_err(|error| ScenarioParseError {
        line,
        column: error.column,
        reason: error.reason,
    })
}

fn head(head: LinePart<'_>) -> Result<(String, Vec<ScenarioPath>), LineError> {
    let (name, paths) = match head.text.split_once(' ') {
        None => (
            head.text,
            vec![
                ScenarioPath::Local,
                ScenarioPath::Network,
                ScenarioPath::SharedMemory,
            ],
        ),
        Some((name, path)) => match path.trim() {
            "[net]" => (
                name,
                vec![ScenarioPath::Network, ScenarioPath::SharedMemory],
            ),
            "[udp]" => (name, vec![ScenarioPath::Network]),
            "[local]" => (name, vec![ScenarioPath::Local]),
            _ => {
                return head
                    .from(name.len())
                    .trim()
                    .wrong("[net], [udp] or [local] is meant");
            }
        },
    };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.is_empty() && name.chars().all(fits) {
        Ok((name.into(), paths))
    } else {
        head.wrong("a name consists of small letters, digits and _")
    }
}

impl ScenarioStep {
    fn expects(&self) -> bool {
        let looks = matches!(
            self.verb,
            Verb::Take { .. } | Verb::Status(..) | Verb::Events(..)
        );
        looks || self.refused.is_some()
    }
}

fn step(piece: LinePart<'_>) -> Result<ScenarioStep, LineError> {
    if piece.text.is_empty() {
        return piece.wrong("an empty step");
    }
    let arrow = piece.text.find(" -> ");
    let does = arrow.map_or(piece, |at| piece.to(at)).trim();
    let refused = arrow.map(|at| piece.from(at + 4).trim());
    let verb = verb(does)?;
    if let Some(refused) = refused {
        if !verb.may_be_refused() {
            return refused.wrong("this step cannot be refused");
        }
        if refused.text.is_empty() || refused.text.contains(' ') {
            return refused.wrong("expected one word for the error");
        }
    }
    Ok(ScenarioStep {
        column: piece.at,
        verb,
        refused: refused.map(|refused| refused.text.into()),
    })
}

fn verb(piece: LinePart<'_>) -> Result<Verb, LineError> {
    let words = piece.words();
    let Some((first, rest)) = words.split_first() else {
        return piece.wrong("an empty step");
    };
    if let Some(span) = first.text.strip_prefix('+') {
        none_left(rest)?;
        let nanos = nanos(span).and_then(|n| u64::try_from(n).map_err(|e| e.to_string()));
        return nanos.map(Verb::Wait).or_else(|reason| first.wrong(reason));
    }
    if first.text.contains('(') {
        return create(&words);
    }
    if let Some(end) = first.text.find(['?', '!']) {
        if end + 1 != first.text.len() {
            return first.from(end + 1).wrong("a space is missing here");
        }
        let of = endpoint(first.to(end))?;
        let events = first.text.ends_with('!');
        let expected = expected(of.starts_with('w'), events, *first, rest)?;
        return Ok(if events {
            Verb::Events(of, expected)
        } else {
            Verb::Status(of, expected)
        });
    }
    if let Some(dot) = first.text.find('.') {
        let of = endpoint(first.to(dot))?;
        return operation(of, first.from(dot + 1), piece, rest);
    }
    if is_name(first.text.split(['@', '+']).next().unwrap_or("")) {
        create(&words)
    } else {
        context_verb(*first, rest)
    }
}

fn none_left(rest: &[LinePart<'_>]) -> Result<(), LineError> {
    match rest.first() {
        None => Ok(()),
        Some(word) => word.wrong("nothing is expected here"),
    }
}

fn one<'t>(
    after: LinePart<'_>,
    rest: &[LinePart<'t>],
    what: &str,
) -> Result<LinePart<'t>, LineError> {
    match rest {
        [word] => Ok(*word),
        [] => after.wrong(format!("{what} is missing")),
        [_, more, ..] => more.wrong("nothing is expected here"),
    }
}

/// `w`, `r2`, `g`.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    matches!(chars.next(), Some('w' | 'r' | 'g')) && chars.all(|c| c.is_ascii_digit())
}

fn endpoint(piece: LinePart<'_>) -> Result<String, LineError> {
    if is_name(piece.text) && !piece.text.starts_with('g') {
        Ok(piece.text.into())
    } else {
        piece.wrong(format!("{:?} is no endpoint; w, r2", piece.text))
    }
}

fn group(piece: LinePart<'_>) -> Result<String, LineError> {
    if is_name(piece.text) && piece.text.starts_with('g') {
        Ok(piece.text.into())
    } else {
        piece.wrong(format!("{:?} is no group; g, g2", piece.text))
    }
}

fn context_index(piece: LinePart<'_>) -> Result<usize, LineError> {
    match piece.text.as_bytes() {
        [letter @ b'a'..=b'f'] => Ok(usize::from(letter - b'a')),
        _ => piece.wrong(format!("{:?} is no context; a to f", piece.text)),
    }
}

fn expected(
    is_writer: bool,
    events: bool,
    after: LinePart<'_>,
    rest: &[LinePart<'_>],
) -> Result<Vec<Expected>, LineError> {
    if events && rest.len() == 1 && rest[0].text == "nothing" {
        return Ok(Vec::new());
    }
    if rest.is_empty() {
        return after.wrong("nothing is looked at");
    }
    let known = names(is_writer, events);
    let read = |word: &LinePart<'_>| {
        let (name, value) = word.split_once('=');
        let found = known.iter().find(|known| **known == name.text);
        let (Some(found), Some(value)) = (found, value) else {
            return word.wrong(format!(
                "name=value is meant, with one of {}",
                known.join(" ")
            ));
        };
        Expected::read(found, value.text).or_else(|reason| value.wrong(reason))
    };
    rest.iter().map(read).collect()
}

/// The verb of an endpoint.
fn operation(
    of: String,
    verb: LinePart<'_>,
    all: LinePart<'_>,
    rest: &[LinePart<'_>],
) -> Result<Verb, LineError> {
    let keys = || -> Result<Vec<String>, LineError> {
        if rest.is_empty() {
            verb.wrong("no instance is named")
        } else {
            rest.iter().map(|word| key(*word)).collect()
        }
    };
    match (of.starts_with('w'), verb.text) {
        (true, "write") if rest.is_empty() => verb.wrong("nothing to write"),
        (true, "write") => {
            let values: Result<_, _> = rest.iter().map(|word| parse_write_value(*word)).collect();
            Ok(Verb::Write(of, values?))
        }
        (true, "dispose") => Ok(Verb::Instance(of, InstanceOperation::Dispose, keys()?)),
        (true, "unregister") => Ok(Verb::Instance(of, InstanceOperation::Unregister, keys()?)),
        (true, "register") => Ok(Verb::Instance(of, InstanceOperation::Register, keys()?)),
        (true, "assert") => none_left(rest).map(|()| Verb::Assert(of)),
        (true, "flush") => none_left(rest).map(|()| Verb::Flush(of)),
        (false, "filter") => {
            let text = all.split_once(' ').1.map_or("", |rest| rest.trim().text);
            Ok(Verb::Filter(of, text.into()))
        }
        (false, "take" | "next") => take(of, verb, rest),
        (_, "set") => changes(verb, rest).map(|changes| Verb::Set(of, changes)),
        (true, _) => verb.wrong("writers write, dispose, unregister, register, assert, flush, set"),
        (false, _) => verb.wrong("readers take, next, filter, set"),
    }
}

/// Options, separated by spaces.
fn changes(
    verb: LinePart<'_>,
    rest: &[LinePart<'_>],
) -> Result<Vec<(String, Option<String>)>, LineError> {
    if rest.is_empty() {
        return verb.wrong("no option is named");
    }
    let read = |word: &LinePart<'_>| {
        let (name, value) = word.split_once('=');
        let value = value.map(|value| value.text);
        let mut tried = Options::default();
        tried
            .set(name.text, value)
            .or_else(|reason| word.wrong(reason))?;
        if tried.is_all_policies() {
            Ok((name.text.into(), value.map(str::to_owned)))
        } else {
            word.wrong("is no policy, so it cannot be changed")
        }
    };
    rest.iter().map(read).collect()
}

fn take(reader: String, verb: LinePart<'_>, rest: &[LinePart<'_>]) -> Result<Verb, LineError> {
    let all = verb.text == "take";
    let expected = match rest {
        [] => return verb.wrong("the expected samples are missing"),
        [word] if word.text == "nothing" && all => Vec::new(),
        words => words
            .iter()
            .map(expected_sample)
            .collect::<Result<_, _>>()?,
    };
    Ok(Verb::Take {
        reader,
        all,
        expected,
    })
}

fn expected_sample(word: &LinePart<'_>) -> Result<ExpectedSample, LineError> {
    let mut parts = word.split('/').into_iter();
    let what = parts.next().unwrap_or(*word);
    let fits = match what.text.split_once(':') {
        Some((name, "disposed" | "no_writers")) => !name.is_empty(),
        Some(_) => false,
        None => parse_write_value(what).is_ok_and(|w| w.stamp == 0),
    };
    if !fits {
        return what.wrong("expected 3, red=3, red:disposed or red:no_writers");
    }
    let read = |part: LinePart<'_>| {
        let generations = part.text.split_once('.').is_some_and(|(disposed, left)| {
            disposed.parse::<u32>().is_ok() && left.parse::<u32>().is_ok()
        });
        match part.text {
            "new" | "old" | "alive" | "disposed" | "no_writers" => Ok(part.text.to_owned()),
            _ if generations => Ok(part.text.to_owned()),
            _ => part.wrong("expected new old alive disposed no_writers, or generations as 1.0"),
        }
    };
    Ok(ExpectedSample {
        what: what.text.into(),
        traits: parts.map(read).collect::<Result<_, _>>()?,
    })
}

fn key(word: LinePart<'_>) -> Result<String, LineError> {
    if !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_lowercase()) {
        Ok(word.text.into())
    } else {
        word.wrong("an instance's name consists of small letters")
    }
}

/// `3`, `red=3`, `red=3@-5s`.
fn parse_write_value(word: LinePart<'_>) -> Result<WriteValue, LineError> {
    let (what, stamp) = word.split_once('@');
    let (name, x) = match what.split_once('=') {
        (x, None) => (String::new(), x),
        (name, Some(x)) => (key(name)?, x),
    };
    let x = match x.text.parse() {
        Ok(number) => number,
        Err(_) => return x.wrong(format!("{:?} is not a 32 bit number", x.text)),
    };
    let stamp = match stamp {
        None => 0,
        Some(stamp) => nanos(stamp.text).or_else(|reason| stamp.wrong(reason))?,
    };
    Ok(WriteValue {
        key: name,
        x,
        stamp,
    })
}

fn create(words: &[LinePart<'_>]) -> Result<Verb, LineError> {
    let (mut endpoints, mut groups) = (Vec::new(), Vec::new());
    for word in words {
        let open = word.text.find('(');
        let (head, options) = match open {
            None => (*word, None),
            Some(open) => {
                let inner = word.from(open + 1);
                match inner.text.strip_suffix(')') {
                    Some(options) => (word.to(open), Some(inner.to(options.len()))),
                    None => return word.wrong("a parenthesis is not closed"),
                }
            }
        };
        let (names, at) = head.split_once('@');
        let at = at.map(context_index).transpose()?;
        let options = self::options(options)?;
        for name in names.split('+') {
            if !is_name(name.text) {
                return name.wrong(format!("{:?} is no name; w, r2, g", name.text));
            }
            if name.text.starts_with('g') {
                groups.push(GroupPlan {
                    name: group(name)?,
                    context: at.unwrap_or(0),
                    presentation: options.qos.presentation,
                });
                continue;
            }
            let is_writer = name.text.starts_with('w');
            check_side(name, is_writer, &options)?;
            endpoints.push(EndpointPlan {
                name: name.text.into(),
                context: at.unwrap_or(usize::from(!is_writer)),
                options: options.clone(),
            });
        }
    }
    Ok(Verb::Create(endpoints, groups))
}

/// Rejects options that do not apply to this kind of endpoint.
fn check_side(name: LinePart<'_>, is_writer: bool, options: &Options) -> Result<(), LineError> {
    match is_writer {
        true if options.filter.is_some() => name.wrong("writers have no filter"),
        false if options.group.is_some() => name.wrong("readers are in no publisher group"),
        false if options.flow_controlled => name.wrong("readers are not flow-controlled"),
        _ => Ok(()),
    }
}

fn options(list: Option<LinePart<'_>>) -> Result<Options, LineError> {
    let mut options = Options::default();
    for option in list.iter().flat_map(|list| list.split(',')) {
        let (name, value) = option.split_once('=');
        let value = value.map(|value| value.text.trim_matches('"'));
        options
            .set(name.text, value)
            .or_else(|reason| option.wrong(reason))?;
    }
    Ok(options)
}

/// The verbs of contexts, links and groups.
fn context_verb(verb: LinePart<'_>, rest: &[LinePart<'_>]) -> Result<Verb, LineError> {
    let context = || context_index(one(verb, rest, "a context")?);
    match verb.text {
        "delete" => Ok(Verb::Delete(endpoint(one(verb, rest, "an endpoint")?)?)),
        "begin" => Ok(Verb::Begin(group(one(verb, rest, "a group")?)?)),
        "end" => Ok(Verb::End(group(one(verb, rest, "a group")?)?)),
        "crash" => context().map(Verb::Crash),
        "leave" => context().map(Verb::Leave),
        "start" => context().map(Verb::Start),
        "heal" => none_left(rest).map(|()| Verb::Heal),
        "wall_clock" => {
            let [context, jump] = two(verb, rest, "a context and a time")?;
            let jump = nanos(jump.text).or_else(|reason| jump.wrong(reason))?;
            Ok(Verb::WallClock(context_index(context)?, jump))
        }
        "cut" => Ok(Verb::LinkFault(
            links(one(verb, rest, "a link")?)?,
            LinkFault::Cut,
        )),
        "lose" | "repeat" | "delay" | "jitter" => {
            let [link, much] = two(verb, rest, "a link and how much")?;
            let wrong = |reason: String| LineError {
                column: much.at,
                reason,
            };
            let fault = match verb.text {
                "lose" => LinkFault::Lose(percent(much.text).map_err(wrong)?),
                "repeat" => LinkFault::Repeat(percent(much.text).map_err(wrong)?),
                "delay" => LinkFault::Delay(nanos(much.text).map_err(wrong)?.unsigned_abs()),
                _ => LinkFault::Jitter(nanos(much.text).map_err(wrong)?.unsigned_abs()),
            };
            Ok(Verb::LinkFault(links(link)?, fault))
        }
        word => verb.wrong(format!(
            "{word:?} is no step; endpoints w r, groups g, begin end delete crash leave start \
             wall_clock cut lose repeat delay jitter heal, +350ms"
        )),
    }
}

fn two<'t>(
    after: LinePart<'_>,
    rest: &[LinePart<'t>],
    what: &str,
) -> Result<[LinePart<'t>; 2], LineError> {
    match rest {
        [first, second] => Ok([*first, *second]),
        [_, _, more, ..] => more.wrong("nothing is expected here"),
        _ => after.wrong(format!("{what} are missing")),
    }
}

/// Links: `a>b` is one direction, `a-b` both.
fn links(piece: LinePart<'_>) -> Result<Vec<(usize, usize)>, LineError> {
    let (from, to) = piece.split_once('>');
    if let Some(to) = to {
        return Ok(vec![(context_index(from)?, context_index(to)?)]);
    }
    let (one, other) = piece.split_once('-');
    let Some(other) = other else {
        return piece.wrong("a>b or a-b is meant");
    };
    let (one, other) = (context_index(one)?, context_index(other)?);
    Ok(vec![(one, other), (other, one)])
}

/// Chance in 1/10000.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').and_then(|n| n.parse::<u32>().ok());
    match number.filter(|n| *n <= 100) {
        Some(number) => Ok(number * 100),
        None => Err(format!("{text:?} is no share, as 30%")),
    }
}
