//! Results of expressions beside those of Python 3.12, and errors.

use super::{Evaluator, Expression, ExpressionError, Names, Object, Python, Value};
use crate::command_output::{CommandLimits, StandardError, command_output};

fn names() -> Names {
    Names::new().with_module("math")
}

/// The basics, without Python.
fn evaluate(expression: &str) -> Result<Value, ExpressionError> {
    Expression::parse(expression)?.evaluate(&names())
}

/// The Python of the tests; none, and a sentence, where there is none.
fn python() -> Option<Python> {
    let mut python = Python::of(|_| None);
    let mut command = std::process::Command::new(&python.program);
    command.args(["-I", "-c", ""]);
    let limits = CommandLimits {
        bytes_max: 1 << 20,
        timeout: std::time::Duration::from_secs(60),
    };
    let output = command_output(command, limits, StandardError::Separate).ok();
    if !output.is_some_and(|output| output.status.success()) {
        let program = python.program.display();
        // Not `println!`, whose output is captured when a test passes.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("\nskipped: {program} cannot be started, which evaluates Python\n"),
        );
        return None;
    }
    // Many tests at once start it slowly.
    python.timeout = limits.timeout;
    Some(python)
}

/// All of Python; none where an expression needs Python and there is none.
fn evaluate_whole(
    expression: &str,
    names: &Names,
    python: &Option<Python>,
) -> Option<Result<String, ExpressionError>> {
    if let Some(python) = python {
        let evaluator = Evaluator::new(expression, python.clone());
        return Some(evaluator.and_then(|mut evaluator| evaluator.text(names)));
    }
    let own = Expression::parse(expression).and_then(|expression| expression.evaluate(names));
    match own {
        Err(error) if error.needs_python => None,
        own => Some(own.map(|value| value.to_string())),
    }
}

/// The lines of `results.txt`: expressions and their results.
fn results() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = include_str!("results.txt").lines();
    let results = lines.filter(|line| !line.starts_with('#'));
    results.map(|line| line.split_once(" => ").expect(line))
}

#[test]
fn results_are_those_of_python() {
    let python = python();
    let of_os = python.clone().map(|python| Python {
        environment: Some([("HOME".to_owned(), "/robot".to_owned())].into()),
        program: which(&python.program),
        ..python
    });
    for (expression, printed) in results() {
        let outcome = match expression.contains("os.") {
            true => evaluate_whole(expression, &names().with_module("os"), &of_os),
            false => evaluate_whole(expression, &names(), &python),
        };
        match outcome {
            None => eprintln!("skipped, for it needs Python: {expression}"),
            Some(Ok(text)) => assert_eq!(text, printed, "{expression}"),
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

/// Where a program is, for a process without PATH.
fn which(program: &std::path::Path) -> std::path::PathBuf {
    let mut command = std::process::Command::new(program);
    command.args(["-I", "-c", "import sys; print(sys.executable)"]);
    let limits = CommandLimits {
        bytes_max: 1 << 20,
        timeout: std::time::Duration::from_secs(60),
    };
    let output = command_output(command, limits, StandardError::Separate).expect("Python starts");
    String::from_utf8_lossy(&output.stdout).trim().into()
}

/// Expressions of launch files in public repositories, with values for `$(var …)`.
/// All of them are basics; [docs/reference/file_formats.md] says so.
const PUBLIC: &[(&str, &str)] = &[
    ("'ublox'=='ublox'", "True"),
    (
        "'a/' + 'a::BlindSpotModulePlugin, '",
        "a/a::BlindSpotModulePlugin, ",
    ),
    ("'true'=='false' and 'no'=='false' ", "False"),
    (
        "'ns/robot'.split('/')[1] if '/' in 'ns/robot' else ''",
        "robot",
    ),
    ("'ns/robot'.split('/')[0]", "ns"),
    ("len([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) == 7", "True"),
    ("len(['a','b'])> 1", "True"),
    ("'ndt' in ['ndt', 'gyro']", "True"),
    ("true or false", "True"),
    (
        "'base' if 'centerpoint'=='x' else 'centerpoint_tiny'.replace('centerpoint_', '', 1)",
        "tiny",
    ),
    ("0.0 + 1.5", "1.5"),
    ("1 + int('7') ", "8"),
    ("200 == 200 and true", "True"),
    ("'3'>='2'", "True"),
    ("3>=10 ", "False"),
    ("\"camera\"!=\"\"", "True"),
    ("ceil(pi)", "4"),
    ("-(1.5 / 2.0 + 0.1)", "-0.85"),
    ("sqrt(pow(0.2, 2) + pow(0.37, 2))", "0.4205948168962618"),
    ("atan2(0.2, 0.37)", "0.49555167348582857"),
    ("1.0 if 0.4 < 0.7 else 1.0 * cos(0.7 - 0.4)", "1.0"),
    ("'robot1' in ('robot1', 'all')", "True"),
];

#[test]
fn the_expressions_of_public_launch_files_need_no_python() {
    let names = names()
        .with("true", true.into())
        .with("false", false.into());
    for (expression, printed) in PUBLIC {
        let value = Expression::parse(expression).and_then(|one| one.evaluate(&names));
        assert_eq!(
            value.map(|value| value.to_string()).as_deref(),
            Ok(*printed)
        );
    }
}

/// Operands of random expressions, separated by ` ; `.
const OPERANDS: &str = "0 ; 1 ; (-3) ; 7 ; 2.5 ; -0.75 ; 1e300 ; 1e-7 ; 9007199254740993 ; True ; False ; \
    None ; '' ; 'a' ; 'B c' ; '12' ; ' -7 ' ; 'a,b,,c' ; '1.5e3' ; b'A' ; [] ; [1, 2.0] ; \
    ['x', 'y', 'x'] ; (1,) ; () ; (2, 3) ; pi ; inf ; \
    170141183460469231731687303715884105727";
/// Forms of random expressions; `$` stands for an operand, separated by ` ; `.
const FORMS: &str = "$ + $ ; $ - $ ; $ * $ ; $ / $ ; $ // $ ; $ % $ ; $ ** $ ; $ & $ ; $ | $ ; $ ^ $ ; \
    $ << $ ; $ >> $ ; -$ ; ~$ ; not $ ; $ and $ ; $ or $ ; $ == $ ; $ != $ ; $ < $ ; \
    $ <= $ ; $ > $ ; $ >= $ ; $ in $ ; $ not in $ ; $ is None ; $ if $ else $ ; $[$] ; \
    $[$:$] ; $[::$] ; len($) ; int($) ; float($) ; str($) ; bool($) ; abs($) ; min($, $) ; \
    max($) ; round($) ; round($, 2) ; pow($, $) ; math.floor($) ; ceil($) ; sqrt($) ; \
    $.split(',') ; $.split() ; $.strip() ; $.upper() ; $.replace('a', $) ; \
    $.startswith($) ; $.find('c') ; $.count($) ; ','.join($) ; [$, $] ; ($, $) ; \
    $.rsplit(',', 1) ; $.strip('a7') ; log($) ; degrees($) ; fmod($, $) ; trunc($)";

/// Random expressions of the basics: the same value as in Python, or an error in both.
#[test]
fn the_basics_give_what_python_gives() {
    let Some(python) = python() else {
        return;
    };
    let operands: Vec<&str> = OPERANDS.split(" ; ").collect();
    let forms: Vec<&str> = FORMS.split(" ; ").collect();
    let mut chance = fastrand::Rng::with_seed(45);
    let (mut values, mut errors, mut handed_over) = (0, 0, 0);
    let mut wrong = Vec::new();
    let mut evaluator = Evaluator::new("1", python).expect("it is valid");
    for _ in 0..5_000 {
        let mut expression = "$".to_owned();
        for _ in 0..chance.usize(1..4) {
            let form = format!("({})", forms[chance.usize(..forms.len())]);
            expression = expression.replacen('$', &form, 1);
        }
        while expression.contains('$') {
            let operand = operands[chance.usize(..operands.len())];
            expression = expression.replacen('$', operand, 1);
        }
        let own = evaluate(&expression);
        if own.as_ref().is_err_and(|error| error.needs_python) {
            handed_over += 1;
            continue;
        }
        // A module makes Python evaluate even the basics.
        let names = names().with_module("json");
        evaluator.source = expression.as_str().into();
        match (own, evaluator.text(&names)) {
            (Ok(own), Ok(of_python)) if own.to_string() == of_python => {}
            (Err(_), Err(_)) => errors += 1,
            (own, of_python) => wrong.push(format!("{expression}: {own:?}, not {of_python:?}")),
        }
        values += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{values} values and errors, {errors} of them errors; {handed_over} need Python");
    assert!(values - errors > 500 && handed_over < 1_500);
}

/// Expressions, the character at fault, and a part of the message.
const ERRORS: &[(&str, usize, &str)] = &[
    ("", 1, "a value is missing at the end"),
    ("robot == 'a'", 1, "the name robot is not known"),
    (
        "1 + sqr(2)",
        5,
        "the name sqr is not known; did you mean sqrt or str?",
    ),
    (
        "[x for x in 5]",
        1,
        "Python: TypeError: 'int' object is not iterable",
    ),
    ("1 +", 4, "a value is missing at the end"),
    ("1 2", 3, "unexpected 2 after the end"),
    ("'a", 1, "the quote ' is not closed"),
    ("(1, 2", 6, ") is missing before the end"),
    (
        "x = 1",
        3,
        "an expression assigns nothing; write == to compare",
    ),
    ("10 / (5 - 5)", 4, "10 / 0: division by zero"),
    ("'a' < 1", 5, "'a' < 1: a str and a int have no order"),
    (
        "'n' + 1",
        5,
        "'n' + 1: not possible with a str and a int; str(…) makes a text",
    ),
    (
        "[1, 2][5]",
        7,
        "the index 5 is out of range; [1, 2] has 2 elements",
    ),
    ("{'a': 1}['b']", 1, "KeyError: 'b'"),
    ("'a'.uper()", 1, "no attribute 'uper'"),
    ("int('x')", 4, "int('x'): this is not an integer"),
    ("len(5)", 4, "len needs a text or a collection, not 5"),
    ("{[1]: 2}", 1, "unhashable type: 'list'"),
    ("1 if 2", 7, "else is missing before the end"),
    (
        "(lambda x: x)()",
        1,
        "missing 1 required positional argument",
    ),
    ("'{}'.format()", 1, "IndexError"),
    ("'%d' % 'x'", 1, "%d format: a real number is required"),
    ("[x for x in", 1, "SyntaxError"),
    (
        "[a for a, b in [(1, 2, 3)]]",
        1,
        "ValueError: too many values to unpack",
    ),
    ("'a' if $x else 'b'", 8, "'$' has no meaning"),
    ("math.sqrt(-1)", 10, "math.sqrt(-1.0) has no real value"),
];

#[test]
fn errors_name_the_position_and_the_value() {
    let python = python();
    for (expression, character, message) in ERRORS {
        let Some(outcome) = evaluate_whole(expression, &names(), &python) else {
            continue;
        };
        let error = outcome.expect_err(expression);
        assert!(error.message.contains(message), "{expression}: {error}");
        assert_eq!(error.character, *character, "{expression}: {error}");
        assert_eq!(&*error.expression, *expression);
    }
    let error = evaluate("nonsense").unwrap_err();
    assert_eq!(error.unknown_name.as_deref(), Some("nonsense"));
    assert!(
        error
            .to_string()
            .starts_with("expression \"nonsense\", character 1: ")
    );
}

#[test]
fn every_resource_has_a_limit() {
    let deep = |open: &str, close: &str| open.repeat(5_000) + "1" + &close.repeat(5_000);
    for (expression, message) in [
        ("1 + ".repeat(2_000) + "1", "nested more than 100 deep"),
        (deep("(", ")"), "longer than 10000 characters"),
        ("(".repeat(4_000), "nested more than 100 deep"),
        ("-".repeat(4_000) + "1", "nested more than 100 deep"),
        ("not ".repeat(2_000) + "1", "nested more than 100 deep"),
        ("[".repeat(4_000), "nested more than 100 deep"),
        (
            "a.b".to_owned() + &".c".repeat(2_000),
            "nested more than 100 deep",
        ),
        ("9 ** 99999".into(), "an integer of more than 127 bits"),
        ("2 ** 127".into(), "an integer of more than 127 bits"),
        ("1 << 1000".into(), "an integer of more than 127 bits"),
        ("'a' * 10000000".into(), "a text is longer than 1 MiB"),
        ("[0] * 10 ** 9".into(), "makes or reads more than 64 MiB"),
        (
            format!("[{}]", "'a' * 900000, ".repeat(100)),
            "makes or reads more than 64 MiB",
        ),
        (
            format!("[{}]", "('a,' * 400000).split(','), ".repeat(9)),
            "makes or reads more than 64 MiB",
        ),
    ] {
        let error = evaluate(&expression).expect_err(&expression[..expression.len().min(60)]);
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn python_has_limits_too() {
    let Some(python) = python() else {
        return;
    };
    for (expression, message, timeout) in [
        ("sum(range(10 ** 12))", "took longer than", 300),
        ("[0] * 10 ** 9 + [x for x in ()]", "MemoryError", 60_000),
        ("f'{5:5000000}'", "gave more than 4 MiB", 60_000),
        ("exit()", "SystemExit", 60_000),
        ("print('{\"value\": 1}') or input()", "EOFError", 60_000),
        (
            "__import__('os')._exit(1)",
            "ended without an answer",
            60_000,
        ),
    ] {
        let python = Python {
            timeout: std::time::Duration::from_millis(timeout),
            ..python.clone()
        };
        let evaluator = Evaluator::new(expression, python);
        let error = evaluator.and_then(|mut evaluator| evaluator.text(&names()));
        let error = error.expect_err(expression).to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn an_expression_beyond_the_basics_says_what_needs_python_where_there_is_none() {
    let nowhere = Python {
        program: "/nowhere/python3".into(),
        environment: None,
        timeout: std::time::Duration::from_secs(1),
    };
    for (expression, what) in [
        (
            "any(x for x in [1])",
            "character 7: a comprehension needs Python",
        ),
        ("f'{1}'", "an f-string needs Python"),
        ("{'a': 1}", "a dictionary or set needs Python"),
        ("lambda: 1", "a lambda needs Python"),
        (
            "max([1], default=0)",
            "an argument with a name needs Python",
        ),
        ("'%d' % 1", "the format operator % of texts needs Python"),
        ("sorted([1])", "the function sorted needs Python"),
        ("2 ** 200", "an integer of more than 127 bits needs Python"),
    ] {
        let evaluator = Evaluator::new(expression, nowhere.clone());
        let error = evaluator.and_then(|mut evaluator| evaluator.text(&names()));
        let error = error.expect_err(expression).to_string();
        assert!(error.contains(what), "{error}");
        assert!(
            error.contains("/nowhere/python3 cannot be started"),
            "{error}"
        );
        assert!(error.contains("name one in PTEROS_PYTHON"), "{error}");
    }
}

/// A message with a nested one and an array.
struct Pose {
    x: f64,
}

impl Object for Pose {
    fn type_name(&self) -> String {
        "geometry_msgs/msg/Pose".into()
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        match name {
            "x" => Some(self.x.into()),
            "frame" => Some("map".into()),
            "ranges" => Some(Value::object(Ranges)),
            _ => None,
        }
    }

    fn attribute_names(&self) -> Vec<String> {
        ["x", "frame", "ranges"].map(String::from).into()
    }
}

struct Ranges;

impl Object for Ranges {
    fn type_name(&self) -> String {
        "sequence<float>".into()
    }

    fn attribute(&self, _name: &str) -> Option<Value> {
        None
    }

    fn attribute_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn length(&self) -> Option<usize> {
        Some(3)
    }

    fn item(&self, index: usize) -> Option<Value> {
        Some((index as f64 / 2.0).into())
    }
}

#[test]
fn objects_of_the_program_have_attributes_and_elements() {
    let python = python();
    let names = Names::new().with("m", Value::object(Pose { x: 2.5 }));
    for (expression, printed) in [
        ("m.x > 2 and m.frame == 'map'", "True"),
        (
            "min(m.ranges), m.ranges[-1], m.ranges[1:], len(m.ranges), 0.5 in m.ranges",
            "(0.0, 1.0, [0.5, 1.0], 3, True)",
        ),
        (
            "any(r > 0.9 for r in m.ranges), m.ranges == [0, 0.5, 1]",
            "(True, True)",
        ),
        (
            "hasattr(m, 'y'), getattr(m, 'y', 7), m == m, isinstance(m, object)",
            "(False, 7, True, True)",
        ),
        (
            "[m.frame, m.x, type(m).__name__, f'{m}'[-23:]] + [x for x in m.ranges[1:]]",
            "['map', 2.5, 'geometry_msgs/msg/Pose', 'ranges=[0.0, 0.5, 1.0])', 0.5, 1.0]",
        ),
        (
            "m",
            "geometry_msgs/msg/Pose(x=2.5, frame='map', ranges=[0.0, 0.5, 1.0])",
        ),
    ] {
        match evaluate_whole(expression, &names, &python) {
            None => eprintln!("skipped, for it needs Python: {expression}"),
            Some(Ok(text)) => assert_eq!(text, printed, "{expression}"),
            Some(Err(error)) => panic!("{error}"),
        }
    }
    let parsed = Expression::parse("m.frames == 'map'").expect("it is valid");
    let error = parsed.evaluate(&names).unwrap_err();
    assert_eq!(error.character, 2, "{error}");
    assert!(
        error.message.contains(
            "geometry_msgs/msg/Pose has no attribute \"frames\"; did you mean \"frame\"?"
        ),
        "{error}"
    );
}

#[test]
fn damaged_expressions_give_values_or_errors() {
    let mut chance = fastrand::Rng::with_seed(11);
    let pieces = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "'",
        ":",
        ",",
        " for x in ",
        "lambda x: ",
        "**",
        "*",
        ".",
        "f'{",
        "%",
        "x",
        "9",
        " if ",
        "\\",
        "é",
    ];
    let results: Vec<_> = results().collect();
    let (mut values, mut errors) = (0, 0);
    for round in 0..6_000 {
        let (expression, _) = results[round % results.len()];
        let mut letters: Vec<char> = expression.chars().collect();
        for _ in 0..=chance.usize(..3) {
            let at = chance.usize(..letters.len());
            match chance.usize(..3) {
                0 if letters.len() > 1 => drop(letters.remove(at)),
                1 => letters.swap(at, 0),
                _ => {
                    let piece = pieces[chance.usize(..pieces.len())];
                    letters.splice(at..at, piece.chars());
                }
            }
        }
        let damaged: String = letters.iter().collect();
        match evaluate(&damaged) {
            Ok(_) => values += 1,
            Err(error) => {
                assert!(error.character <= letters.len() + 1, "{error}");
                errors += 1;
            }
        }
    }
    assert!(
        values > 100 && errors > 1_000,
        "{values} values, {errors} errors"
    );
}
