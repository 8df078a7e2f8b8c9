//! Analyzers of `diagnostic_aggregator`: they sort diagnostics by the names of their
//! items and sum up their levels.
//!
//! The results are upstream's, down to names and the order of messages. Unlike upstream in
//! Jazzy, `name` and `expected` match, as its documentation says. Times are in ns and
//! given by the caller.

use std::collections::{BTreeMap, BTreeSet};

use pteros::interfaces::diagnostic_msgs::msg::{DiagnosticStatus, KeyValue};
use pteros::parameter::ParameterValue;
use pteros_pattern::{Extent, Pattern};

use crate::any_parameter::{number, text, texts, truth};

/// Most items of an analyzer. When full, new ones are left out.
const ITEMS_MAX: usize = 10_000;
/// Most bytes of an analyzer's items. When full, what would exceed them is left out.
const ITEMS_BYTES_MAX: usize = 64 << 20;
/// Most bytes of a status that is taken.
pub(crate) const STATUS_BYTES_MAX: usize = 64 << 10;
/// Most names whose analyzers are remembered, and most bytes of them. When full, all are
/// forgotten.
const REMEMBERED_MAX: usize = 10_000;
const REMEMBERED_BYTES_MAX: usize = 16 << 20;
/// Bytes of memory of a text or a value of a status, besides its own.
const VALUE_BYTES: usize = 48;
const PACKAGE: &str = "diagnostic_aggregator";

const OK: u8 = DiagnosticStatus::OK;
const ERROR: u8 = DiagnosticStatus::ERROR;
const STALE: u8 = DiagnosticStatus::STALE;

/// Parameters by name.
pub(crate) type Parameters = BTreeMap<String, ParameterValue>;

/// The last state of an item.
#[derive(Clone, Debug)]
struct Item {
    status: DiagnosticStatus,
    updated: i64,
}

impl Item {
    fn new(status: &DiagnosticStatus, updated: i64) -> Self {
        let mut status = status.clone();
        status.level = match status.level {
            level @ OK..=STALE => level,
            _ => ERROR,
        };
        Self { status, updated }
    }

    fn missing(name: &str, message: &str, updated: i64) -> Self {
        let status = DiagnosticStatus {
            level: STALE,
            name: name.into(),
            message: message.into(),
            ..DiagnosticStatus::default()
        };
        Self { status, updated }
    }

    fn report(&self, path: &str, is_stale: bool) -> DiagnosticStatus {
        let path = if path == "/" { "" } else { path };
        let mut status = self.status.clone();
        status.name = format!("{path}/{}", output_name(&self.status.name));
        if is_stale {
            status.level = STALE;
        }
        status
    }
}

/// About how much memory a status needs.
pub(crate) fn bytes_of(status: &DiagnosticStatus) -> usize {
    let texts = [&status.name, &status.message, &status.hardware_id];
    let texts = texts.iter().map(|text| text.len());
    let values = status.values.iter();
    let values = values.map(|one| VALUE_BYTES + one.key.len() + one.value.len());
    VALUE_BYTES + texts.chain(values).sum::<usize>()
}

/// Items below one path, and how they are summed up.
#[derive(Debug)]
pub(crate) struct Items {
    name: String,
    path: String,
    /// In ns; `None`: items do not get stale.
    timeout: Option<i64>,
    count: Option<usize>,
    discards_stale: bool,
    items: BTreeMap<String, Item>,
    /// Of the items, names as keys not counted.
    bytes: usize,
}

impl Items {
    /// The items that no analyzer takes.
    pub(crate) fn other(base_path: &str) -> Self {
        Self {
            name: "Other".into(),
            path: format!("{base_path}/Other"),
            timeout: Some(5_000_000_000),
            count: None,
            discards_stale: true,
            items: BTreeMap::new(),
            bytes: 0,
        }
    }

    pub(crate) fn take(&mut self, status: &DiagnosticStatus, now: i64) {
        let known = self.items.get(&status.name);
        let freed = known.map_or(0, |item| bytes_of(&item.status));
        let bytes = self.bytes.saturating_sub(freed) + bytes_of(status);
        let has_room = known.is_some() || self.items.len() < ITEMS_MAX;
        if has_room && bytes <= ITEMS_BYTES_MAX {
            self.bytes = bytes;
            let item = Item::new(status, now);
            self.items.insert(status.name.clone(), item);
        }
    }

    fn report(&mut self, now: i64) -> Vec<DiagnosticStatus> {
        let timeout = self.timeout;
        let is_stale =
            |item: &Item| timeout.is_some_and(|timeout| now.saturating_sub(item.updated) > timeout);
        if self.discards_stale {
            self.items.retain(|_, item| !is_stale(item));
            let items = self.items.values();
            self.bytes = items.map(|item| bytes_of(&item.status)).sum();
        }
        let mut header = status(&self.path, OK, "OK");
        let mut reported = Vec::new();
        let mut are_all_stale = true;
        for (name, item) in &self.items {
            let (level, is_stale) = (item.status.level, is_stale(item));
            header.level = header.level.max(if is_stale { STALE } else { level });
            header.values.push(value(name, &item.status.message));
            are_all_stale &= is_stale || level == STALE;
            reported.push(item.report(&self.path, is_stale));
        }
        // Where stale items are discarded, none at all is fine.
        header.level = match header.level {
            _ if are_all_stale && self.discards_stale => OK,
            _ if are_all_stale => STALE,
            STALE => ERROR,
            level => level,
        };
        header.message = level_name(header.level).into();
        match (self.count, self.items.len()) {
            (Some(0), 0) => (header.level, header.message) = (OK, "OK".into()),
            (Some(expected @ 1..), found) if expected != found => {
                header.level = header.level.max(ERROR);
                header.message = if found == 0 {
                    format!("No items found, expected {expected}")
                } else {
                    format!("Expected {expected}, found {found}")
                };
            }
            _ => {}
        }
        reported.insert(0, header);
        reported
    }

    /// The report of the items that no analyzer takes; nothing if there are none.
    pub(crate) fn report_other(&mut self, now: i64, are_errors: bool) -> Vec<DiagnosticStatus> {
        let mut reported = self.report(now);
        if self.items.is_empty() {
            return Vec::new();
        }
        if let (true, Some(header)) = (are_errors, reported.first_mut()) {
            header.level = ERROR;
            header.message = "Unanalyzed items found in \"Other\"".into();
        }
        reported
    }
}

/// The rules by which an analyzer takes items.
#[derive(Default)]
struct Rules {
    /// Beginnings that are left out of names.
    removed: Vec<String>,
    starts: Vec<String>,
    parts: Vec<String>,
    names: Vec<String>,
    patterns: Vec<Pattern>,
}

impl Rules {
    fn is_empty(&self) -> bool {
        let Self {
            starts,
            parts,
            names,
            patterns,
            ..
        } = self;
        starts.is_empty() && parts.is_empty() && names.is_empty() && patterns.is_empty()
    }

    fn matches(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_match(name))
            || self.names.iter().any(|one| one == name)
            || self.starts.iter().any(|start| name.starts_with(start))
            || self.parts.iter().any(|part| name.contains(part))
    }
}

/// `GenericAnalyzer`, and `DiscardAnalyzer`, which reports nothing.
struct Generic {
    rules: Rules,
    items: Items,
    is_silent: bool,
}

impl Generic {
    fn read(
        parameters: &Parameters,
        path: &str,
        breadcrumb: &str,
        now: i64,
        problems: &mut Vec<String>,
    ) -> Result<Self, String> {
        let mut analyzer = Self {
            rules: Rules::default(),
            items: Items {
                name: breadcrumb.into(),
                discards_stale: false,
                ..Items::other("")
            },
            is_silent: false,
        };
        // In alphabetical order, as upstream: a later one replaces an earlier one.
        for (name, given) in below(parameters, breadcrumb) {
            let full = format!("{breadcrumb}.{name}");
            analyzer.set(name, &full, given, now, problems)?;
        }
        let Self { rules, items, .. } = &mut analyzer;
        items.path = format!("{path}/{}", items.name);
        if items.discards_stale && items.timeout.is_none() {
            problems.push(format!(
                "Cannot discard stale items if no timeout specified. No items will be discarded ({breadcrumb})"
            ));
            items.discards_stale = false;
        }
        if rules.is_empty() {
            return Err(format!(
                "GenericAnalyzer '{}' ({breadcrumb}) takes no items; give it startswith, contains, name, expected or regex",
                items.name
            ));
        }
        for removed in &mut rules.removed {
            *removed = output_name(removed);
        }
        Ok(analyzer)
    }

    /// Sets what a parameter says; `full` is its whole name.
    fn set(
        &mut self,
        name: &str,
        full: &str,
        given: &ParameterValue,
        now: i64,
        problems: &mut Vec<String>,
    ) -> Result<(), String> {
        let Self { rules, items, .. } = self;
        let list = || one_or_more(full, given);
        match name {
            "path" => items.name = text(full, given.clone())?,
            "find_and_remove_prefix" => {
                rules.removed = list()?;
                rules.starts = list()?;
            }
            "remove_prefix" => rules.removed = list()?,
            "startswith" => rules.starts = list()?,
            "contains" => rules.parts = list()?,
            "name" => rules.names.extend(list()?),
            "expected" => {
                for name in list()? {
                    let item = Item::missing(&name, "Missing", now);
                    items.bytes += bytes_of(&item.status);
                    items.items.insert(name.clone(), item);
                    rules.names.push(name);
                }
            }
            "regex" => {
                for expression in list()? {
                    match Pattern::new(&expression, Extent::Whole) {
                        Ok(pattern) => rules.patterns.push(pattern),
                        Err(error) => problems.push(format!(
                            "parameter \"{full}\": \"{expression}\" is left out: {error}"
                        )),
                    }
                }
            }
            "timeout" => {
                let seconds = number(full, given)?;
                #[allow(clippy::cast_possible_truncation, reason = "it saturates")]
                let nanos = (seconds * 1e9) as i64;
                items.timeout = Some(nanos).filter(|nanos| *nanos > 0);
            }
            "num_items" => items.count = usize::try_from(whole(full, given)?).ok(),
            "discard_stale" => items.discards_stale = truth(full, given)?,
            _ => {}
        }
        Ok(())
    }

    fn report(&mut self, now: i64) -> Vec<DiagnosticStatus> {
        if self.is_silent {
            return Vec::new();
        }
        let mut reported = self.items.report(now);
        for status in &mut reported {
            for removed in &self.rules.removed {
                status.name = without_beginning(&status.name, removed);
            }
        }
        reported
    }
}

enum Analyzer {
    Generic(Box<Generic>),
    Group(Group),
    /// `IgnoreAnalyzer`, which takes nothing.
    Ignore,
}

/// `AnalyzerGroup`: analyzers below one path.
#[derive(Default)]
pub(crate) struct Group {
    path: String,
    analyzers: Vec<Analyzer>,
    /// Analyzers that could not be created.
    failed: Vec<Item>,
    /// For each name of an item, the analyzers that take it.
    matches: BTreeMap<String, Vec<usize>>,
    /// Of those names.
    matches_bytes: usize,
}

impl Group {
    /// The analyzers that the parameters below `breadcrumb` describe, and whether all of
    /// them could be created. What is wrong is added to `problems`.
    pub(crate) fn read(
        parameters: &Parameters,
        path: &str,
        breadcrumb: &str,
        now: i64,
        problems: &mut Vec<String>,
    ) -> (Self, bool) {
        let mut group = Self {
            path: path.into(),
            ..Self::default()
        };
        let names: BTreeSet<&str> = below(parameters, breadcrumb)
            .filter_map(|(name, _)| {
                let name = name.strip_suffix(".type")?;
                let own = name.strip_prefix("analyzers.").unwrap_or(name);
                // Without a name of its own it would hold itself.
                (!own.is_empty() && !own.contains('.')).then_some(name)
            })
            .collect();
        for name in names {
            let full = match breadcrumb {
                "" => name.to_owned(),
                _ => format!("{breadcrumb}.{name}"),
            };
            match group.create(parameters, &full, now, problems) {
                Ok(analyzer) => group.analyzers.push(analyzer),
                Err((message, problem)) => {
                    problems.push(problem);
                    group.failed.push(Item::missing(name, &message, now));
                }
            }
        }
        if group.analyzers.is_empty() && !path.is_empty() {
            problems.push(format!(
                "No analyzers initialized in AnalyzerGroup '{path}'"
            ));
            return (group, false);
        }
        let is_complete = group.failed.is_empty();
        (group, is_complete)
    }

    /// Creates an analyzer. An error has the message of its item, and the whole text.
    fn create(
        &self,
        parameters: &Parameters,
        breadcrumb: &str,
        now: i64,
        problems: &mut Vec<String>,
    ) -> Result<Analyzer, (String, String)> {
        let failed = |problem: String| ("Analyzer init failed".to_owned(), problem);
        let parameter = |part: &str| {
            let full = format!("{breadcrumb}.{part}");
            let value = parameters.get(&full).cloned();
            let value = value.ok_or_else(|| format!("parameter \"{full}\" is missing"));
            value.and_then(|value| text(&full, value))
        };
        let of_type = parameter("type").map_err(failed)?;
        let class = of_type.strip_prefix(PACKAGE).unwrap_or(&of_type);
        let class = class.trim_start_matches(['/', ':']);
        if class == "IgnoreAnalyzer" {
            return Ok(Analyzer::Ignore);
        }
        let path = parameter("path").map_err(failed)?;
        match class {
            "GenericAnalyzer" | "DiscardAnalyzer" => {
                let read = Generic::read(parameters, &self.path, breadcrumb, now, problems);
                let mut analyzer = read.map_err(failed)?;
                analyzer.is_silent = class == "DiscardAnalyzer";
                Ok(Analyzer::Generic(Box::new(analyzer)))
            }
            "AnalyzerGroup" => {
                let path = format!("{}/{path}", self.path);
                match Self::read(parameters, &path, breadcrumb, now, problems) {
                    (group, true) => Ok(Analyzer::Group(group)),
                    (_, false) => Err(failed(format!(
                        "AnalyzerGroup '{breadcrumb}' is left out, because not all of its analyzers could be created"
                    ))),
                }
            }
            _ => Err((
                "Pluginlib exception loading analyzer".into(),
                format!(
                    "Failed to load analyzer {breadcrumb}, type {of_type}: there are GenericAnalyzer, AnalyzerGroup, DiscardAnalyzer and IgnoreAnalyzer of {PACKAGE}"
                ),
            )),
        }
    }

    /// Gives an item to the analyzers that take it. False if there is none.
    pub(crate) fn take(&mut self, status: &DiagnosticStatus, now: i64) -> bool {
        if !self.matches.contains_key(&status.name) {
            self.matches_bytes += status.name.len();
            if self.matches.len() >= REMEMBERED_MAX || self.matches_bytes > REMEMBERED_BYTES_MAX {
                self.matches.clear();
                self.matches_bytes = status.name.len();
            }
            let matching = (0..self.analyzers.len()).filter(|at| {
                let analyzer = self.analyzers.get(*at);
                analyzer.is_some_and(|analyzer| analyzer.matches(&status.name))
            });
            let matching = matching.collect();
            self.matches.insert(status.name.clone(), matching);
        }
        let mut is_taken = false;
        for at in self.matches.get(&status.name).into_iter().flatten() {
            match self.analyzers.get_mut(*at) {
                Some(Analyzer::Generic(analyzer)) => analyzer.items.take(status, now),
                Some(Analyzer::Group(group)) => {
                    group.take(status, now);
                }
                Some(Analyzer::Ignore) | None => continue,
            }
            is_taken = true;
        }
        is_taken
    }

    pub(crate) fn report(&mut self, now: i64) -> Vec<DiagnosticStatus> {
        let mut header = status(&self.path, OK, "OK");
        if self.analyzers.is_empty() {
            (header.level, header.message) = (ERROR, "No analyzers".into());
            if matches!(self.path.as_str(), "" | "/") {
                header.name = "/AnalyzerGroup".into();
            }
            return vec![header];
        }
        let mut reported = Vec::new();
        let mut are_all_stale = true;
        for analyzer in &mut self.analyzers {
            let (name, path, of_analyzer) = match analyzer {
                Analyzer::Generic(generic) => {
                    let of_analyzer = generic.report(now);
                    (&generic.items.name, &generic.items.path, of_analyzer)
                }
                Analyzer::Group(group) => {
                    let of_analyzer = group.report(now);
                    (&group.path, &group.path, of_analyzer)
                }
                Analyzer::Ignore => continue,
            };
            for sum in of_analyzer.iter().filter(|one| one.name == *path) {
                header.values.push(value(name, &sum.message));
                header.level = header.level.max(sum.level);
                are_all_stale &= sum.level == STALE;
            }
            reported.extend(of_analyzer);
        }
        if header.level == STALE && !are_all_stale {
            header.level = ERROR;
        }
        header.message = level_name(header.level).into();
        if !matches!(self.path.as_str(), "" | "/") {
            reported.push(header);
        }
        let failed = self.failed.iter().map(|item| item.report(&self.path, true));
        reported.extend(failed);
        reported
    }
}

impl Analyzer {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Generic(generic) => generic.rules.matches(name),
            Self::Group(group) => group.analyzers.iter().any(|one| one.matches(name)),
            Self::Ignore => false,
        }
    }
}

/// The level of all: an error if only some are stale, or there are none.
pub(crate) fn top_level(reported: &[DiagnosticStatus]) -> u8 {
    let levels = reported.iter().map(|status| status.level);
    match (levels.clone().max(), levels.min()) {
        (None, _) => ERROR,
        (Some(STALE..), Some(OK..=ERROR)) => ERROR,
        (Some(highest), _) => highest,
    }
}

/// The parameters below a breadcrumb, with the rest of their names.
fn below<'p>(
    parameters: &'p Parameters,
    breadcrumb: &str,
) -> impl Iterator<Item = (&'p str, &'p ParameterValue)> {
    let prefix = match breadcrumb {
        "" => String::new(),
        _ => format!("{breadcrumb}."),
    };
    parameters
        .iter()
        .filter_map(move |(name, value)| Some((name.strip_prefix(&prefix)?, value)))
}

fn one_or_more(name: &str, value: &ParameterValue) -> Result<Vec<String>, String> {
    match value {
        ParameterValue::String(text) => Ok(vec![text.clone()]),
        _ => texts(name, value.clone()),
    }
}

fn whole(name: &str, value: &ParameterValue) -> Result<i64, String> {
    match value {
        ParameterValue::Integer(number) => Ok(*number),
        other => Err(format!(
            "parameter \"{name}\" is {:?}; it takes an integer",
            other.parameter_type()
        )),
    }
}

fn status(name: &str, level: u8, message: &str) -> DiagnosticStatus {
    DiagnosticStatus {
        level,
        name: name.into(),
        message: message.into(),
        ..DiagnosticStatus::default()
    }
}

fn value(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: value.into(),
    }
}

fn level_name(level: u8) -> &'static str {
    match level {
        OK => "OK",
        DiagnosticStatus::WARN => "Warning",
        STALE => "Stale",
        _ => "Error",
    }
}

/// A name as the last part of a path.
fn output_name(name: &str) -> String {
    name.replace('/', " ")
}

/// A path whose last part has no such beginning, and no colon or blanks after it.
fn without_beginning(path: &str, beginning: &str) -> String {
    let (true, Some((parent, name))) = (!beginning.is_empty(), path.rsplit_once('/')) else {
        return path.into();
    };
    // Upstream looks for the first of the whole path.
    let is_first = path.find(beginning) == Some(parent.len() + 1);
    let name = name
        .strip_prefix(beginning)
        .filter(|_| is_first)
        .unwrap_or(name);
    let name = name.strip_prefix(':').unwrap_or(name);
    format!("{parent}/{}", name.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const WARN: u8 = DiagnosticStatus::WARN;

    /// Parameters from lines `name: value`, where a value in brackets is a list of texts.
    fn parameters(lines: &str) -> Parameters {
        let parameter = |line: &str| {
            let (name, value) = line.trim().split_once(": ").unwrap();
            let list = value
                .strip_prefix('[')
                .and_then(|one| one.strip_suffix(']'));
            let value = if let Some(list) = list {
                ParameterValue::StringArray(list.split('|').map(str::to_owned).collect())
            } else if let Ok(number) = value.parse() {
                ParameterValue::Integer(number)
            } else if let Ok(number) = value.parse() {
                ParameterValue::Double(number)
            } else if let Ok(truth) = value.parse() {
                ParameterValue::Bool(truth)
            } else {
                ParameterValue::String(value.into())
            };
            (name.to_owned(), value)
        };
        lines.trim().lines().map(parameter).collect()
    }

    fn group(path: &str, lines: &str) -> Group {
        let mut problems = Vec::new();
        let (group, _) = Group::read(&parameters(lines), path, "", 0, &mut problems);
        assert_eq!(problems, [""; 0]);
        group
    }

    /// Names, levels and messages of a report.
    fn texts_of(report: &[DiagnosticStatus]) -> Vec<String> {
        let text = |one: &DiagnosticStatus| format!("{} {} {}", one.name, one.level, one.message);
        report.iter().map(text).collect()
    }

    const ALL: &str = "path: BASIC
        prefix1.type: diagnostic_aggregator/GenericAnalyzer
        prefix1.path: First
        prefix1.find_and_remove_prefix: [prefix1|find1_items]
        prefix1.contains: [contains1a|contains1b]
        prefix1.expected: [prefix1: expected1a|prefix1: expected1b]
        prefix2.type: diagnostic_aggregator/GenericAnalyzer
        prefix2.path: Second
        prefix2.regex: [contain2.|\\d+]
        prefix3.type: diagnostic_aggregator/DiscardAnalyzer
        prefix3.path: Third
        prefix3.name: noise
        prefix4.type: diagnostic_aggregator/IgnoreAnalyzer";

    #[test]
    fn items_are_sorted_by_rules_and_lose_their_prefix() {
        let mut group = group("/BASIC", ALL);
        for (name, level, is_taken) in [
            ("prefix1: expected1a", OK, true),
            ("find1_items: lidar/front", WARN, true),
            ("its contains1b", OK, true),
            ("contain2a", OK, true),
            ("contain2ab", ERROR, false),
            ("noise", ERROR, true),
            ("other", ERROR, false),
        ] {
            assert_eq!(
                group.take(&status(name, level, "said"), S),
                is_taken,
                "{name}"
            );
        }
        let report = group.report(2 * S);
        let expected = [
            "/BASIC/First 2 Error",
            "/BASIC/First/lidar front 1 said",
            "/BASIC/First/its contains1b 0 said",
            "/BASIC/First/expected1a 0 said",
            "/BASIC/First/expected1b 3 Missing",
            "/BASIC/Second 0 OK",
            "/BASIC/Second/contain2a 0 said",
            "/BASIC 2 Error",
        ];
        assert_eq!(texts_of(&report), expected);
        assert_eq!(top_level(&report), ERROR);
        let sums: Vec<_> = report[7].values.iter().map(|one| &one.key).collect();
        assert_eq!(sums, ["First", "Second"]);
    }

    #[test]
    fn items_get_stale_and_all_stale_ones_are_no_error() {
        let lines = "a.type: GenericAnalyzer
            a.path: A
            a.startswith: a
            a.timeout: 2.0";
        let mut group = group("", lines);
        assert_eq!(texts_of(&group.report(0)), ["/A 3 Stale"]);
        group.take(&status("a1", OK, "well"), 0);
        group.take(&status("a2", OK, "well"), S);
        let report = texts_of(&group.report(2 * S));
        assert_eq!(report, ["/A 0 OK", "/A/a1 0 well", "/A/a2 0 well"]);
        let report = texts_of(&group.report(2 * S + 1));
        assert_eq!(report, ["/A 2 Error", "/A/a1 3 well", "/A/a2 0 well"]);
        let report = group.report(4 * S);
        let expected = ["/A 3 Stale", "/A/a1 3 well", "/A/a2 3 well"];
        assert_eq!(texts_of(&report), expected);
        assert_eq!(top_level(&report), STALE);
    }

    #[test]
    fn discarded_items_are_gone_and_the_number_of_items_is_checked() {
        let lines = "a.type: GenericAnalyzer
            a.path: A
            a.startswith: [a]
            a.discard_stale: true
            b.type: GenericAnalyzer
            b.path: B
            b.startswith: [b]
            b.num_items: 2";
        let mut group = group("", lines);
        group.take(&status("a1", WARN, "hot"), 0);
        group.take(&status("b1", OK, "well"), 4 * S);
        let expected = [
            "/A 1 Warning",
            "/A/a1 1 hot",
            "/B 2 Expected 2, found 1",
            "/B/b1 0 well",
        ];
        assert_eq!(texts_of(&group.report(5 * S)), expected);
        let expected = ["/A 0 OK", "/B 2 Expected 2, found 1", "/B/b1 0 well"];
        assert_eq!(texts_of(&group.report(5 * S + 1)), expected);
    }

    #[test]
    fn a_group_sums_up_its_analyzers() {
        let lines = "g.type: diagnostic_aggregator/AnalyzerGroup
            g.path: Group01
            g.analyzers.primary.type: diagnostic_aggregator/GenericAnalyzer
            g.analyzers.primary.path: Primary
            g.analyzers.primary.startswith: [primary]
            g.analyzers.secondary.type: diagnostic_aggregator/GenericAnalyzer
            g.analyzers.secondary.path: Secondary
            g.analyzers.secondary.startswith: [secondary]";
        let mut group = group("/TEST", lines);
        let expected = [
            "/TEST/Group01/Primary 3 Stale",
            "/TEST/Group01/Secondary 3 Stale",
            "/TEST/Group01 3 Stale",
            "/TEST 3 Stale",
        ];
        assert_eq!(texts_of(&group.report(0)), expected);
        assert!(group.take(&status("secondary", OK, "well"), 0));
        let expected = [
            "/TEST/Group01/Primary 3 Stale",
            "/TEST/Group01/Secondary 0 OK",
            "/TEST/Group01/Secondary/secondary 0 well",
            "/TEST/Group01 2 Error",
            "/TEST 2 Error",
        ];
        assert_eq!(texts_of(&group.report(0)), expected);
    }

    #[test]
    fn what_no_analyzer_takes_is_other_while_it_is_fresh() {
        let mut other = Items::other("/R");
        assert!(other.report_other(0, false).is_empty());
        other.take(&status("/node: x", OK, "well"), 0);
        let report = texts_of(&other.report_other(S, false));
        assert_eq!(report, ["/R/Other 0 OK", "/R/Other/ node: x 0 well"]);
        let header = &other.report_other(S, true)[0];
        assert_eq!(
            (header.level, header.message.as_str()),
            (ERROR, "Unanalyzed items found in \"Other\"")
        );
        assert!(other.report_other(6 * S, true).is_empty());
        assert_eq!(top_level(&[]), ERROR);
    }

    #[test]
    fn an_analyzer_without_a_name_is_left_out() {
        for lines in [
            ".type: AnalyzerGroup
            .path: P
            .startswith: p",
            "analyzers..type: AnalyzerGroup
            analyzers..path: P",
            "g.type: AnalyzerGroup
            g.path: P
            g.analyzers..type: AnalyzerGroup
            g.analyzers..path: P",
        ] {
            let mut problems = Vec::new();
            let (group, _) = Group::read(&parameters(lines), "/R", "", 0, &mut problems);
            assert!(group.analyzers.is_empty(), "{lines}");
            assert!(!problems.is_empty());
        }
    }

    #[test]
    fn items_have_a_limit_in_bytes() {
        let mut items = Items::other("");
        let text = "x".repeat(STATUS_BYTES_MAX - 1000);
        for at in 0..2000 {
            items.take(&status(&at.to_string(), OK, &text), 0);
        }
        let full = items.items.len();
        assert!((1000..1100).contains(&full), "{full}");
        assert!(items.bytes <= ITEMS_BYTES_MAX);
        items.take(&status("0", OK, "short"), 0);
        items.take(&status("new", OK, &text), 0);
        assert_eq!(items.items.len(), full + 1, "a shorter state makes room");
        items.report(6 * S);
        assert_eq!(items.bytes, 0, "stale ones are gone");
    }

    #[test]
    fn wrong_analyzers_name_themselves_in_the_log_and_in_the_report() {
        let lines = "a.type: diagnostic_aggregator/GenericAnalyzer
            a.path: A
            b.type: my_package/MyAnalyzer
            b.path: B
            c.type: diagnostic_aggregator/GenericAnalyzer
            c.path: C
            c.regex: [(]
            c.contains: c
            d.type: diagnostic_aggregator/GenericAnalyzer";
        let mut problems = Vec::new();
        let (mut group, is_complete) = Group::read(&parameters(lines), "/R", "", 0, &mut problems);
        assert!(!is_complete);
        for (problem, part) in problems.iter().zip([
            "'A' (a) takes no items",
            "my_package/MyAnalyzer",
            "\"c.regex\": \"(\"",
            "\"d.path\" is missing",
        ]) {
            assert!(problem.contains(part), "{problem}");
        }
        assert_eq!(problems.len(), 4);
        let report = texts_of(&group.report(0));
        let expected = [
            "/R/C 3 Stale",
            "/R 3 Stale",
            "/R/a 3 Analyzer init failed",
            "/R/b 3 Pluginlib exception loading analyzer",
            "/R/d 3 Analyzer init failed",
        ];
        assert_eq!(report, expected);
    }
}
