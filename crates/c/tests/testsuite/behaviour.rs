//! The behaviour tables of the client core, `crates/rcl/tests/behaviour`, in C.
//! `tests/programs/behaviour.c` plays the rows that the C API has functions for. The others
//! are named here with the reason. A row that is neither fails the test.

use pteros::parameter::{ParameterType, ParameterValue};

use pteros_test_support::behaviour::{self, LeftOut};

use crate::harness::{build_folder, c_compilers, output};

/// Rows that the C driver does not play.
const ABSENT: [LeftOut; 20] = [
    (
        "parameters",
        &["yaml"],
        "YAML 1.1 is the rule of launch files",
    ),
    ("parameters", &["rclpy"], "C has the rules of rclcpp"),
    (
        "parameters",
        &["undeclared", "automatic"],
        "pteros_node_new has no options",
    ),
    (
        "parameters",
        &["read_only", "range", "ignore", ":"],
        "pteros_node_declare_parameter has no descriptor, and takes a value",
    ),
    (
        "parameters",
        &["undeclare", "type", "describe", "list"],
        "C has no such function",
    ),
    (
        "parameters",
        &["set of several"],
        "pteros_node_set_parameter sets one",
    ),
    (
        "parameters",
        &["callbacks", "append", "clear", "follow"],
        "C has on-set callbacks, and neither pre-set nor post-set ones",
    ),
    (
        "time",
        &["rate", "sleep", "jump"],
        "C has timers and the time of a node, and no other use of clocks",
    ),
    (
        "goals",
        &["accepted", "unknown"],
        "no function asks for these statuses",
    ),
    (
        "goals",
        &["cancel"],
        "a client of C cancels the goals that it has sent, one by one, and gets no code",
    ),
    (
        "goals",
        &["expire"],
        "a server of C has no time-out of results",
    ),
    (
        "lifecycle",
        &["*"],
        "rows stop within a transition; C runs it whole with its callback, see lifecycle.c",
    ),
    ("filters", &["*"], "C has no message filters"),
    ("tf", &["clear", "full"], "C has no such functions"),
    (
        "qos_overrides",
        &["*"],
        "pteros_publisher_new and pteros_subscription_new have no overrides",
    ),
    ("wait_sets", &["*"], "C has executors, and no wait sets"),
    (
        "log_levels",
        &["level", "effective", "unset", "a", "b", "a.b", "root"],
        "C sets the level of a node's logger, and asks whether it is enabled",
    ),
    (
        "names",
        &["*"],
        "C passes names and arguments on to the node of Rust, and asks for no name",
    ),
    (
        "graph",
        &["best_available"],
        "pteros_qos_t has no such policies",
    ),
    (
        "graph",
        &["servers", "clients", "names", "qos", "event"],
        "C has no such query, and no events",
    ),
];

/// Questions and answers of a table.
fn rows(table: &str) -> Vec<(String, String)> {
    // Behind "| rclpy" stands the answer of Python, and behind another bar the calls of
    // callbacks and events, which C does not see.
    let answer = |expected: &str| {
        expected
            .split('|')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let rows = behaviour::rows(table).into_iter();
    rows.map(|row| (row.question, answer(&row.expected)))
        .collect()
}

/// Whether C cannot play a row with these words.
fn is_absent(table: &str, words: &[&str]) -> bool {
    behaviour::is_left_out(&ABSENT, table, words.iter().copied())
}

/// Plays rows and returns their outcomes.
fn play(kind: &str, domain: u32, rows: &str) -> Vec<Vec<String>> {
    let file = build_folder().join(format!("{kind}.rows"));
    std::fs::write(&file, rows).unwrap();
    let file = file.to_str().unwrap();
    let runs = c_compilers().into_iter().map(|compiler| {
        let program = compiler.build("tests/programs/behaviour.c");
        output(&program, domain, &[kind, file])
    });
    runs.collect()
}

/// The lines of rows that C plays, and what they are expected to give.
struct Played {
    lines: String,
    rows: Vec<(String, String)>,
}

fn compare(kind: &str, domain: u32, played: &Played, is_same: impl Fn(&str, &str) -> bool) {
    for found in play(kind, domain, &played.lines) {
        assert_eq!(found.len(), played.rows.len(), "{found:#?}");
        let pairs = found.iter().zip(&played.rows);
        let wrong = pairs.filter(|(found, (_, expected))| !is_same(found, expected));
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

fn value(text: &str) -> ParameterValue {
    match text {
        "none" => ParameterValue::NotSet,
        text => ParameterValue::from_yaml(text).unwrap(),
    }
}

/// A value as words of a line.
fn value_words(value: &ParameterValue) -> String {
    let text = value.to_string().replace(['[', ']', '"', ' '], "");
    let number = value.parameter_type().number();
    match value {
        ParameterValue::NotSet => number.to_string(),
        _ => format!("{number}\t{text}"),
    }
}

/// The value that a line of the program shows.
fn shown(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("value\t")?.split('\t');
    let number = words.next()?.parse().ok()?;
    let words: Vec<_> = words.collect();
    let one = words.first().copied().unwrap_or_default();
    let double = |word: &str| word.parse().unwrap();
    let integer = |word: &str| word.parse().unwrap();
    let value = match ParameterType::from_number(number)? {
        ParameterType::NotSet => return Some("none".into()),
        ParameterType::Bool => ParameterValue::Bool(one == "1"),
        ParameterType::Integer => ParameterValue::Integer(integer(one)),
        ParameterType::Double => ParameterValue::Double(double(one)),
        ParameterType::String => ParameterValue::String(one.into()),
        ParameterType::ByteArray => return None,
        ParameterType::BoolArray => {
            ParameterValue::BoolArray(words.iter().map(|word| *word == "1").collect())
        }
        ParameterType::IntegerArray => {
            ParameterValue::IntegerArray(words.into_iter().map(integer).collect())
        }
        ParameterType::DoubleArray => {
            ParameterValue::DoubleArray(words.into_iter().map(double).collect())
        }
        ParameterType::StringArray => {
            ParameterValue::StringArray(words.into_iter().map(String::from).collect())
        }
    };
    Some(value.to_string())
}

/// The lines of a row of `parameters.txt`; `None` if C cannot play it.
fn parameter_lines(who: &str, question: &str) -> Option<String> {
    if who == "rcl" {
        return Some(format!("override\tx:={question}\ndeclare\tx\t0\nend\n"));
    }
    let mut kinds = vec![who];
    // The overrides come first.
    let mut lines = String::new();
    for step in question.split(';').map(str::trim) {
        let words: Vec<_> = step.split_whitespace().collect();
        kinds.push(words[0]);
        match words.as_slice() {
            ["override", ..] => {
                let text = step.trim_start_matches("override ");
                lines.insert_str(0, &format!("override\t{text}\n"));
            }
            ["declare", name, default, options @ ..] => {
                kinds.extend(options.iter().filter_map(|word| word.split('=').next()));
                if default.starts_with(':') {
                    kinds.push(":");
                } else if options.is_empty() || (*default == "none" && *options == ["dynamic"]) {
                    let value = value_words(&value(default));
                    lines += &format!("declare\t{name}\t{value}\n");
                } else if *options == ["dynamic"] {
                    // Declares one of any type, and sets the default unless it is overridden.
                    lines += &format!("declare\t{name}\t0\n");
                    if !question.contains("override ") {
                        let value = value_words(&value(default));
                        lines += &format!("set\t{name}\t{value}\nget\t{name}\n");
                    }
                }
            }
            ["set", pair] => {
                let (name, text) = pair.split_once('=').unwrap();
                lines += &format!("set\t{name}\t{}\n", value_words(&value(text)));
            }
            ["set", ..] => kinds.push("set of several"),
            ["get", name] => lines += &format!("get\t{name}\n"),
            ["refuse", text] => lines += &format!("refuse\t{}\n", value_words(&value(text))),
            _ => {
                assert!(is_absent("parameters", &kinds), "{step}");
            }
        }
    }
    (!is_absent("parameters", &kinds)).then(|| lines + "end\n")
}

#[test]
fn parameters_of_c_have_the_rows_of_the_behaviour_table() {
    let mut played = Played {
        lines: String::new(),
        rows: Vec::new(),
    };
    for (question, expected) in rows("parameters") {
        let (who, question) = question.split_once(' ').unwrap();
        if let Some(lines) = parameter_lines(who, question) {
            played.lines += &lines;
            played.rows.push((question.to_owned(), expected));
        }
    }
    assert!(played.rows.len() > 40, "{} rows", played.rows.len());
    // Kinds of errors, and what their texts say.
    let kinds = [
        ("already declared", "is already declared"),
        ("wrong type", "Wrong parameter type"),
        ("refused", "refused"),
        ("not declared", "was not declared"),
    ];
    compare("parameters", 181, &played, |found, expected| {
        let found = shown(found).unwrap_or(found.to_owned());
        let kind = kinds.iter().find(|(kind, _)| *kind == expected);
        found == expected
            || kind.is_some_and(|(_, text)| found.contains(text))
            || (expected.contains(' ') && found.ends_with(expected))
    });
}

/// A time of the table, in nanoseconds.
fn nanoseconds(word: &str) -> String {
    match word.split_once('=') {
        Some((name, number)) => format!("{name}={}", nanoseconds(number)),
        None => word
            .parse::<f64>()
            .map_or(word.to_owned(), |number| format!("{:.0}", number * 100e9)),
    }
}

#[test]
fn timers_of_c_follow_the_rows_of_the_behaviour_table() {
    let mut played = Played {
        lines: String::new(),
        rows: Vec::new(),
    };
    for (question, expected) in rows("time") {
        let (kind, steps) = question.split_once(' ').unwrap();
        if is_absent("time", &[kind]) {
            continue;
        }
        let mut words = match kind {
            "timer" => vec!["timer".to_owned(), nanoseconds("10"), nanoseconds("1")],
            "unset" => vec!["timer".to_owned(), "0".to_owned(), nanoseconds("1")],
            "source" => vec!["source".to_owned()],
            _ => panic!("{question}"),
        };
        let expected: Vec<_> = match kind {
            "source" => expected.split(' ').map(nanoseconds).collect(),
            _ => expected.split(' ').map(String::from).collect(),
        };
        for (step, follows) in steps.split(' ').zip(&expected) {
            words.push(nanoseconds(step));
            words.push(follows.clone());
        }
        played.lines += &(words.join("\t") + "\n");
        played.rows.push((question.clone(), expected.join(" ")));
    }
    assert!(played.rows.len() > 15);
    compare("times", 182, &played, |found, expected| {
        found.trim() == expected
    });
}

#[test]
fn goals_of_c_have_the_rows_of_the_behaviour_table() {
    let mut played = Played {
        lines: String::new(),
        rows: Vec::new(),
    };
    for (question, expected) in rows("goals") {
        let words: Vec<_> = question.split(' ').collect();
        if is_absent("goals", &words) {
            continue;
        }
        assert_eq!(words[0], "goal", "{question}");
        played.lines += &(words[1..].join("\t") + "\n");
        played.rows.push((question.clone(), expected));
    }
    assert!(played.rows.len() > 15);
    compare("goals", 183, &played, |found, expected| found == expected);
}

#[test]
fn nodes_of_c_have_the_rows_of_the_behaviour_tables() {
    for (table, domain) in [
        ("graph", 184),
        ("content_filters", 185),
        ("log_levels", 186),
        ("tf", 187),
    ] {
        let mut played = Played {
            lines: String::new(),
            rows: Vec::new(),
        };
        for (question, expected) in rows(table) {
            let words: Vec<_> = question.split([' ', ';', ':']).collect();
            if !is_absent(table, &words) {
                let steps = question.replace(';', " ;").replace(' ', "\t");
                played.lines += &format!("{steps}\t->\t{expected}\n");
                played.rows.push((question.clone(), expected));
            }
        }
        assert!(
            played.rows.len() > 15,
            "{} rows of {table}",
            played.rows.len()
        );
        compare(table, domain, &played, |found, expected| {
            // Transforms have other texts in C than in tf2.
            found == expected || (found == "error" && expected.contains("Exception "))
        });
    }
}

#[test]
fn every_table_has_rows_of_c_or_a_reason() {
    let played = [
        "content_filters",
        "goals",
        "graph",
        "log_levels",
        "parameters",
        "tf",
        "time",
    ];
    behaviour::check_list(&played, &ABSENT);
}
