//! Text to [`Scenario`]. Nothing is guessed: what is not known is an error that
//! names line and column.

use std::fmt;

use super::policies::{EndpointPlan, GroupPlan, Options, nanos};
use super::seen::{Expected, names};
use super::step::{Instance, Scenario, Step, Taken, Trouble, Verb, Way, Written};

/// A line that is no scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {} column {}: {}",
            self.line, self.column, self.reason
        )
    }
}

/// What is wrong, and in which column.
type Wrong = (usize, String);

/// A piece of the line and the column of its first character.
#[derive(Clone, Copy, Debug)]
struct Piece<'t> {
    at: usize,
    text: &'t str,
}

impl<'t> Piece<'t> {
    fn wrong<T>(&self, reason: impl Into<String>) -> Result<T, Wrong> {
        Err((self.at, reason.into()))
    }

    /// The piece behind its first `bytes`.
    fn from(&self, bytes: usize) -> Piece<'t> {
        let (before, text) = self.text.split_at(bytes);
        Piece {
            at: self.at + before.chars().count(),
            text,
        }
    }

    fn to(&self, bytes: usize) -> Piece<'t> {
        Piece {
            at: self.at,
            text: &self.text[..bytes],
        }
    }

    fn trim(&self) -> Piece<'t> {
        let start = self.text.len() - self.text.trim_start().len();
        let rest = self.from(start);
        rest.to(rest.text.trim_end().len())
    }

    /// Before and behind the first `separator` that stands in no parentheses
    /// and no quotes.
    fn split_once(&self, separator: char) -> (Piece<'t>, Option<Piece<'t>>) {
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

    /// The parts between separators, trimmed; empty ones too.
    fn split(&self, separator: char) -> Vec<Piece<'t>> {
        let (mut parts, mut rest) = (Vec::new(), Some(*self));
        while let Some(piece) = rest {
            let (part, more) = piece.split_once(separator);
            parts.push(part.trim());
            rest = more;
        }
        parts
    }

    fn words(&self) -> Vec<Piece<'t>> {
        let mut words = self.split(' ');
        words.retain(|word| !word.text.is_empty());
        words
    }
}

/// Reads a line.
pub fn scenario(line: usize, text: &str) -> Result<Scenario, Mistake> {
    let read = || -> Result<Scenario, Wrong> {
        let (head, steps) = Piece { at: 1, text }.split_once(':');
        let Some(steps) = steps else {
            return head.wrong("no colon ends the name");
        };
        let (name, mut ways) = self::head(head.trim())?;
        let steps: Result<Vec<_>, _> = steps.split(';').into_iter().map(step).collect();
        let steps = steps?;
        let stranger = steps.iter().find(|step| step.verb.needs_network());
        if let Some(step) = stranger.filter(|_| ways.contains(&Way::Local)) {
            let reason = "needs several contexts: put [net] behind the scenario's name";
            return Err((step.column, reason.into()));
        }
        // What befalls datagrams does not befall links.
        let troubled = steps.iter().any(|step| step.verb.troubles_network());
        ways.retain(|way| *way != Way::Link || !troubled);
        if !steps.iter().any(|step| step.expects()) {
            return Err((1, "expects nothing, so it cannot fail".into()));
        }
        Ok(Scenario {
            name,
            line,
            text: text.into(),
            ways,
            steps,
        })
    };
    read().map_err(|(column, reason)| Mistake {
        line,
        column,
        reason,
    })
}

fn head(head: Piece<'_>) -> Result<(String, Vec<Way>), Wrong> {
    let (name, ways) = match head.text.split_once(' ') {
        None => (head.text, vec![Way::Local, Way::Net, Way::Link]),
        Some((name, way)) => match way.trim() {
            "[net]" => (name, vec![Way::Net, Way::Link]),
            "[udp]" => (name, vec![Way::Net]),
            "[local]" => (name, vec![Way::Local]),
            _ => {
                return head
                    .from(name.len())
                    .trim()
                    .wrong("[net], [udp] or [local] is meant");
            }
        },
    };
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match !name.is_empty() && name.chars().all(fits) {
        true => Ok((name.into(), ways)),
        false => head.wrong("a name is of small letters, digits and _"),
    }
}

impl Step {
    fn expects(&self) -> bool {
        let looks = matches!(
            self.verb,
            Verb::Take { .. } | Verb::Status(..) | Verb::Events(..)
        );
        looks || self.refused.is_some()
    }
}

fn step(piece: Piece<'_>) -> Result<Step, Wrong> {
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
            return refused.wrong("one word says how it is refused");
        }
    }
    Ok(Step {
        column: piece.at,
        verb,
        refused: refused.map(|refused| refused.text.into()),
    })
}

fn verb(piece: Piece<'_>) -> Result<Verb, Wrong> {
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
            return first.from(end + 1).wrong("a blank is missing here");
        }
        let of = endpoint(first.to(end))?;
        let events = first.text.ends_with('!');
        let expected = expected(of.starts_with('w'), events, *first, rest)?;
        return Ok(match events {
            true => Verb::Events(of, expected),
            false => Verb::Status(of, expected),
        });
    }
    if let Some(dot) = first.text.find('.') {
        let of = endpoint(first.to(dot))?;
        return deed(of, first.from(dot + 1), piece, rest);
    }
    match is_name(first.text.split(['@', '+']).next().unwrap_or("")) {
        true => create(&words),
        false => of_world(*first, rest),
    }
}

fn none_left(rest: &[Piece<'_>]) -> Result<(), Wrong> {
    match rest.first() {
        None => Ok(()),
        Some(word) => word.wrong("nothing is expected here"),
    }
}

fn one<'t>(after: Piece<'_>, rest: &[Piece<'t>], what: &str) -> Result<Piece<'t>, Wrong> {
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

fn endpoint(piece: Piece<'_>) -> Result<String, Wrong> {
    match is_name(piece.text) && !piece.text.starts_with('g') {
        true => Ok(piece.text.into()),
        false => piece.wrong(format!("{:?} is no endpoint; w, r2", piece.text)),
    }
}

fn group(piece: Piece<'_>) -> Result<String, Wrong> {
    match is_name(piece.text) && piece.text.starts_with('g') {
        true => Ok(piece.text.into()),
        false => piece.wrong(format!("{:?} is no group; g, g2", piece.text)),
    }
}

fn place(piece: Piece<'_>) -> Result<usize, Wrong> {
    match piece.text.as_bytes() {
        [letter @ b'a'..=b'f'] => Ok(usize::from(letter - b'a')),
        _ => piece.wrong(format!("{:?} is no context; a to f", piece.text)),
    }
}

fn expected(
    is_writer: bool,
    events: bool,
    after: Piece<'_>,
    rest: &[Piece<'_>],
) -> Result<Vec<Expected>, Wrong> {
    if events && rest.len() == 1 && rest[0].text == "nothing" {
        return Ok(Vec::new());
    }
    if rest.is_empty() {
        return after.wrong("nothing is looked at");
    }
    let known = names(is_writer, events);
    let read = |word: &Piece<'_>| {
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

/// What an endpoint is told to do.
fn deed(of: String, verb: Piece<'_>, all: Piece<'_>, rest: &[Piece<'_>]) -> Result<Verb, Wrong> {
    let keys = || -> Result<Vec<String>, Wrong> {
        match rest.is_empty() {
            true => verb.wrong("no instance is named"),
            false => rest.iter().map(|word| key(*word)).collect(),
        }
    };
    match (of.starts_with('w'), verb.text) {
        (true, "write") if rest.is_empty() => verb.wrong("nothing to write"),
        (true, "write") => {
            let values: Result<_, _> = rest.iter().map(|word| written(*word)).collect();
            Ok(Verb::Write(of, values?))
        }
        (true, "dispose") => Ok(Verb::Instance(of, Instance::Dispose, keys()?)),
        (true, "unregister") => Ok(Verb::Instance(of, Instance::Unregister, keys()?)),
        (true, "register") => Ok(Verb::Instance(of, Instance::Register, keys()?)),
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

/// Options, separated by blanks.
fn changes(verb: Piece<'_>, rest: &[Piece<'_>]) -> Result<Vec<(String, Option<String>)>, Wrong> {
    if rest.is_empty() {
        return verb.wrong("no option is named");
    }
    let read = |word: &Piece<'_>| {
        let (name, value) = word.split_once('=');
        let value = value.map(|value| value.text);
        let mut tried = Options::default();
        tried
            .set(name.text, value)
            .or_else(|reason| word.wrong(reason))?;
        match tried.is_all_policies() {
            true => Ok((name.text.into(), value.map(str::to_owned))),
            false => word.wrong("is no policy, so it cannot be set"),
        }
    };
    rest.iter().map(read).collect()
}

fn take(reader: String, verb: Piece<'_>, rest: &[Piece<'_>]) -> Result<Verb, Wrong> {
    let all = verb.text == "take";
    let expected = match rest {
        [] => return verb.wrong("what is to be there is missing"),
        [word] if word.text == "nothing" && all => Vec::new(),
        words => words.iter().map(taken).collect::<Result<_, _>>()?,
    };
    Ok(Verb::Take {
        reader,
        all,
        expected,
    })
}

fn taken(word: &Piece<'_>) -> Result<Taken, Wrong> {
    let mut parts = word.split('/').into_iter();
    let what = parts.next().unwrap_or(*word);
    let fits = match what.text.split_once(':') {
        Some((name, "disposed" | "no_writers")) => !name.is_empty(),
        Some(_) => false,
        None => written(what).is_ok_and(|w| w.stamp == 0),
    };
    if !fits {
        return what.wrong("3, red=3, red:disposed or red:no_writers is meant");
    }
    let read = |part: Piece<'_>| {
        let generations = part.text.split_once('.').is_some_and(|(disposed, left)| {
            disposed.parse::<u32>().is_ok() && left.parse::<u32>().is_ok()
        });
        match part.text {
            "new" | "old" | "alive" | "disposed" | "no_writers" => Ok(part.text.to_owned()),
            _ if generations => Ok(part.text.to_owned()),
            _ => part.wrong("new old alive disposed no_writers or generations as 1.0 are meant"),
        }
    };
    Ok(Taken {
        what: what.text.into(),
        traits: parts.map(read).collect::<Result<_, _>>()?,
    })
}

fn key(word: Piece<'_>) -> Result<String, Wrong> {
    match !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_lowercase()) {
        true => Ok(word.text.into()),
        false => word.wrong("an instance's name is of small letters"),
    }
}

/// `3`, `red=3`, `red=3@-5s`.
fn written(word: Piece<'_>) -> Result<Written, Wrong> {
    let (what, stamp) = word.split_once('@');
    let (name, x) = match what.split_once('=') {
        (x, None) => (String::new(), x),
        (name, Some(x)) => (key(name)?, x),
    };
    let x = match x.text.parse() {
        Ok(number) => number,
        Err(_) => return x.wrong(format!("{:?} is no 32 bit number", x.text)),
    };
    let stamp = match stamp {
        None => 0,
        Some(stamp) => nanos(stamp.text).or_else(|reason| stamp.wrong(reason))?,
    };
    Ok(Written {
        key: name,
        x,
        stamp,
    })
}

fn create(words: &[Piece<'_>]) -> Result<Verb, Wrong> {
    let (mut endpoints, mut groups) = (Vec::new(), Vec::new());
    for word in words {
        let open = word.text.find('(');
        let (who, options) = match open {
            None => (*word, None),
            Some(open) => {
                let inner = word.from(open + 1);
                match inner.text.strip_suffix(')') {
                    Some(options) => (word.to(open), Some(inner.to(options.len()))),
                    None => return word.wrong("a parenthesis is not closed"),
                }
            }
        };
        let (names, at) = who.split_once('@');
        let at = at.map(place).transpose()?;
        let options = self::options(options)?;
        for name in names.split('+') {
            if !is_name(name.text) {
                return name.wrong(format!("{:?} is no name; w, r2, g", name.text));
            }
            if name.text.starts_with('g') {
                groups.push(GroupPlan {
                    name: group(name)?,
                    place: at.unwrap_or(0),
                    presentation: options.qos.presentation,
                });
                continue;
            }
            let is_writer = name.text.starts_with('w');
            check_side(name, is_writer, &options)?;
            endpoints.push(EndpointPlan {
                name: name.text.into(),
                place: at.unwrap_or(usize::from(!is_writer)),
                options: options.clone(),
            });
        }
    }
    Ok(Verb::Create(endpoints, groups))
}

/// An option that the endpoint would not look at is a mistake.
fn check_side(name: Piece<'_>, is_writer: bool, options: &Options) -> Result<(), Wrong> {
    match is_writer {
        true if options.filter.is_some() => name.wrong("writers have no filter"),
        false if options.group.is_some() => name.wrong("readers are in no publisher group"),
        false if options.paced => name.wrong("readers are not paced"),
        _ => Ok(()),
    }
}

fn options(list: Option<Piece<'_>>) -> Result<Options, Wrong> {
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

/// What happens to contexts, links and groups.
fn of_world(verb: Piece<'_>, rest: &[Piece<'_>]) -> Result<Verb, Wrong> {
    let context = || place(one(verb, rest, "a context")?);
    match verb.text {
        "delete" => Ok(Verb::Delete(endpoint(one(verb, rest, "an endpoint")?)?)),
        "begin" => Ok(Verb::Begin(group(one(verb, rest, "a group")?)?)),
        "end" => Ok(Verb::End(group(one(verb, rest, "a group")?)?)),
        "crash" => context().map(Verb::Crash),
        "leave" => context().map(Verb::Leave),
        "start" => context().map(Verb::Start),
        "heal" => none_left(rest).map(|()| Verb::Heal),
        "wall" => {
            let [who, jump] = two(verb, rest, "a context and a time")?;
            let jump = nanos(jump.text).or_else(|reason| jump.wrong(reason))?;
            Ok(Verb::Wall(place(who)?, jump))
        }
        "cut" => Ok(Verb::Trouble(
            links(one(verb, rest, "a link")?)?,
            Trouble::Cut,
        )),
        "lose" | "repeat" | "delay" | "jitter" => {
            let [link, much] = two(verb, rest, "a link and how much")?;
            let wrong = |reason: String| (much.at, reason);
            let trouble = match verb.text {
                "lose" => Trouble::Lose(percent(much.text).map_err(wrong)?),
                "repeat" => Trouble::Repeat(percent(much.text).map_err(wrong)?),
                "delay" => Trouble::Delay(nanos(much.text).map_err(wrong)?.unsigned_abs()),
                _ => Trouble::Jitter(nanos(much.text).map_err(wrong)?.unsigned_abs()),
            };
            Ok(Verb::Trouble(links(link)?, trouble))
        }
        word => verb.wrong(format!(
            "{word:?} is no step; endpoints w r, groups g, begin end delete crash leave start \
             wall cut lose repeat delay jitter heal, +350ms"
        )),
    }
}

fn two<'t>(after: Piece<'_>, rest: &[Piece<'t>], what: &str) -> Result<[Piece<'t>; 2], Wrong> {
    match rest {
        [first, second] => Ok([*first, *second]),
        [_, _, more, ..] => more.wrong("nothing is expected here"),
        _ => after.wrong(format!("{what} are missing")),
    }
}

/// `a>b` is one direction, `a-b` both.
fn links(piece: Piece<'_>) -> Result<Vec<(usize, usize)>, Wrong> {
    let (from, to) = piece.split_once('>');
    if let Some(to) = to {
        return Ok(vec![(place(from)?, place(to)?)]);
    }
    let (one, other) = piece.split_once('-');
    let Some(other) = other else {
        return piece.wrong("a>b or a-b is meant");
    };
    let (one, other) = (place(one)?, place(other)?);
    Ok(vec![(one, other), (other, one)])
}

/// In 1/10000.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').and_then(|n| n.parse::<u32>().ok());
    match number.filter(|n| *n <= 100) {
        Some(number) => Ok(number * 100),
        None => Err(format!("{text:?} is no share, as 30%")),
    }
}
