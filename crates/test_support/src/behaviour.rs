//! The behaviour tables of the client core, `crates/rcl/tests/behaviour`: their rows, and the
//! rows that a language's driver leaves out, with the reason.
//!
//! A driver plays each row that its list does not name. So a row that it can neither play
//! nor leave out fails its test, and so does a reason for rows that do not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Why a driver does not play rows: the table, the words that such a row has at one of its
/// places, and the reason. "*" stands for all rows. Words with a space are a driver's own
/// names of what it sees in a row.
pub type LeftOut = (&'static str, &'static [&'static str], &'static str);

/// A row of a table.
pub struct Row {
    /// Before the arrow.
    pub question: String,
    /// Behind the arrow.
    pub expected: String,
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../rcl/tests/behaviour"
    ))
}

/// The rows of a table.
pub fn rows(table: &str) -> Vec<Row> {
    let text = fs::read_to_string(folder().join(format!("{table}.txt"))).expect(table);
    let rows = text
        .lines()
        .filter(|row| !row.is_empty() && !row.starts_with('#'));
    let row = |row: &str| {
        let (question, expected) = row.split_once("->").expect("a row has an arrow");
        Row {
            question: question.trim().to_owned(),
            expected: expected.trim().to_owned(),
        }
    };
    rows.map(row).collect()
}

/// Whether the list leaves a row with these words out.
pub fn is_left_out<'a>(
    list: &[LeftOut],
    table: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> bool {
    let of_table = list.iter().filter(|(one, ..)| *one == table);
    let left_out: BTreeSet<_> = of_table.flat_map(|(_, words, _)| *words).collect();
    left_out.contains(&"*") || words.into_iter().any(|word| left_out.contains(&word))
}

/// Fails unless each table is played or left out as a whole, and each reason has rows.
///
/// # Panics
/// So it fails.
pub fn check_list(played: &[&str], list: &[LeftOut]) {
    let files = fs::read_dir(folder()).expect("the folder of the tables");
    let names = files.map(|file| file.expect("a table").path());
    let tables: BTreeSet<_> = names
        .map(|path| {
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    for table in &tables {
        let is_played = played.contains(&table.as_str());
        assert_ne!(is_played, is_left_out(list, table, []), "the table {table}");
    }
    for (table, words, reason) in list {
        assert!(tables.contains(*table) && !reason.is_empty(), "{table}");
        let text = fs::read_to_string(folder().join(format!("{table}.txt"))).expect(table);
        for word in *words {
            let is_own = *word == "*" || word.contains(' ');
            assert!(is_own || text.contains(word), "{table}: no row has {word}");
        }
    }
}

/// The words of an endpoint in a row of steps; `graph.txt` and `qos_overrides.txt` name them.
/// Spans are in seconds.
#[derive(Default, Debug)]
#[allow(
    missing_docs,
    clippy::struct_excessive_bools,
    reason = "the table says what they are"
)]
pub struct RowQos {
    pub best_effort: bool,
    pub transient_local: bool,
    pub best_available: bool,
    pub keep_all: bool,
    pub manual: bool,
    pub depth: Option<u32>,
    pub deadline: Option<u64>,
    pub lifespan: Option<u64>,
    pub lease: Option<u64>,
    pub avoid_ros_namespace_conventions: bool,
    /// Policies that parameters may override.
    pub allow: Vec<String>,
    pub id: String,
    /// Whether the validation of overrides refuses.
    pub refuse: bool,
    pub filter: Option<RowFilter>,
}

/// A content filter of a row: an expression, and behind "with" its parameters; "-" for none.
#[derive(Debug)]
#[allow(missing_docs, reason = "the sentence above says it")]
pub struct RowFilter {
    pub expression: String,
    pub parameters: Vec<String>,
}

impl RowFilter {
    /// The filter of the words.
    pub fn parse(words: &[&str]) -> Self {
        let mut parts = words.split(|word| *word == "with");
        let expression = parts.next().unwrap_or_default().join(" ");
        let parameters = parts.next().unwrap_or_default();
        Self {
            expression: if expression == "-" {
                String::new()
            } else {
                expression
            },
            parameters: parameters.iter().map(|word| (*word).to_owned()).collect(),
        }
    }
}

impl RowQos {
    /// # Panics
    /// On a word that is none of the table's.
    pub fn parse(words: &[&str]) -> Self {
        let mut qos = Self::default();
        let mut parts = words.splitn(2, |word| *word == "where");
        let words = parts.next().unwrap_or_default();
        qos.filter = parts.next().map(RowFilter::parse);
        for word in words {
            match word.split_once('=') {
                Some(("allow", policies)) => {
                    let policies = if policies == "default" {
                        "history,depth,reliability"
                    } else {
                        policies
                    };
                    qos.allow = policies.split(',').map(String::from).collect();
                }
                Some(("id", id)) => qos.id = id.into(),
                None if *word == "refuse" => qos.refuse = true,
                Some(("depth", depth)) => qos.depth = depth.parse().ok(),
                Some(("deadline", span)) => qos.deadline = span.parse().ok(),
                Some(("lifespan", span)) => qos.lifespan = span.parse().ok(),
                Some(("lease", span)) => qos.lease = span.parse().ok(),
                None if *word == "best_effort" => qos.best_effort = true,
                None if *word == "transient_local" => qos.transient_local = true,
                None if *word == "best_available" => qos.best_available = true,
                None if *word == "keep_all" => qos.keep_all = true,
                None if *word == "manual" => qos.manual = true,
                _ => panic!("{word}"),
            }
        }
        qos
    }

    /// An answer to "qos": the endpoint of a node.
    pub fn shown(&self, node: &str) -> String {
        let reliability = ["reliable", "best_effort"][usize::from(self.best_effort)];
        let durability = ["volatile", "transient_local"][usize::from(self.transient_local)];
        let spans = spans([("deadline", self.deadline), ("lease", self.lease)]);
        let manual = if self.manual { " manual" } else { "" };
        format!("{node} {reliability} {durability}{spans}{manual}")
    }

    /// An answer to "profile": the words that make it of the default.
    pub fn changes(&self) -> String {
        let depth = match self.depth {
            Some(depth) if depth != 10 && !self.keep_all => format!(" depth={depth}"),
            _ => String::new(),
        };
        let words = [
            (self.keep_all, " keep_all"),
            (self.best_effort, " best_effort"),
            (self.transient_local, " transient_local"),
            (self.manual, " manual"),
            (
                self.avoid_ros_namespace_conventions,
                " avoid_ros_namespace_conventions",
            ),
        ];
        let words = words
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, word)| *word);
        let spans = spans([
            ("deadline", self.deadline),
            ("lifespan", self.lifespan),
            ("lease", self.lease),
        ]);
        let text = depth + &words.collect::<String>() + &spans;
        text.trim_start().to_owned()
    }
}

fn spans<const N: usize>(spans: [(&str, Option<u64>); N]) -> String {
    let spans = spans
        .iter()
        .filter_map(|(name, span)| Some(format!(" {name}={}", (*span)?)));
    spans.collect()
}

/// A language's nodes, on which steps run: those of `graph.txt`, and of further tables that
/// name what they add.
pub trait NodeDriver {
    /// Runs a step.
    fn play(&mut self, step: &[&str]);
    /// Answers a question; an empty answer stands for "-".
    fn answer(&mut self, question: &[&str]) -> String;
}

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How often an answer must be the expected one to be taken for settled.
const SETTLED: u32 = 3;

/// Plays the rows of a table of steps that the list does not leave out. Returns how many. A
/// wait is asked for once, since it takes triggers.
///
/// # Panics
/// Naming all rows that have another answer.
pub fn play_nodes<D: NodeDriver>(
    table: &str,
    list: &[LeftOut],
    mut open: impl FnMut() -> D,
) -> usize {
    let (mut played, mut wrong) = (0, Vec::new());
    for Row { question, expected } in rows(table) {
        let steps: Vec<Vec<&str>> = question
            .split("; ")
            .map(|step| step.split(' ').collect())
            .collect();
        if is_left_out(list, table, steps.iter().flatten().copied()) {
            continue;
        }
        let mut driver = open();
        let (last, before) = steps.split_last().expect("a row has a question");
        before.iter().for_each(|step| driver.play(step));
        let is_wait = last[0] == "wait";
        // Behind a bar stands the answer of Python.
        let expected = expected.split(" | ").next().unwrap_or_default();
        let (deadline, mut same) = (Instant::now() + TIMEOUT, 0);
        while same < if is_wait { 1 } else { SETTLED } {
            let found = driver.answer(last);
            let found = if found.is_empty() { "-" } else { &found };
            same = if found == expected { same + 1 } else { 0 };
            if same == 0 && (is_wait || Instant::now() > deadline) {
                wrong.push(format!("{question} -> {expected}, not {found}"));
                break;
            }
            sleep(Duration::from_millis(1));
        }
        played += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    played
}
