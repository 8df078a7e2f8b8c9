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

/// Expressions and their results, as Python 3.12 prints them.
const RESULTS: &[(&str, &str)] = &[
    // Numbers.
    ("1 + 2 * 3", "7"),
    (
        "7 // 2, -7 // 2, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2",
        "(3, -4, 2, -2, 3.0, 0.5)",
    ),
    (
        "7 / 2, 4 / 2, 2 ** 10, 2 ** -1, -2 ** 2, 2 ** 3 ** 2",
        "(3.5, 2.0, 1024, 0.5, -4, 512)",
    ),
    ("2 ** 100", "1267650600228229401496703205376"),
    (
        "18446744073709551615 == 18446744073709551615.0, 9007199254740993 == 9007199254740992.0",
        "(False, False)",
    ),
    (
        "1e20, 1.5e-7, 0.1 + 0.2, 1e15, 1e16, 123456789.0, 1e-4, 1e-5",
        "(1e+20, 1.5e-07, 0.30000000000000004, 1000000000000000.0, 1e+16, 123456789.0, 0.0001, 1e-05)",
    ),
    ("0x10 + 0b11 + 0o7 + 1_000", "1026"),
    ("1if True else 2, 0xfor 1", "(1, 15)"),
    (
        "5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, -16 >> 2, True & False",
        "(1, 7, 6, -6, 16, -4, False)",
    ),
    (
        "True + 1, -True, +5, abs(-3), abs(-2.5), divmod(-7, 2), pow(2, 5)",
        "(2, -1, 5, 3, 2.5, (-4, 1), 32.0)",
    ),
    (
        "round(2.5), round(3.5), round(2.675, 2), round(1234, -2), round(1250, -2), round(-2.5), round(1.0)",
        "(2, 4, 2.67, 1200, 1200, -2, 1)",
    ),
    (
        "int('42'), int(' -7 '), int('ff', 16), int('0x1f', 0), int(3.9), int(-3.9), int(True), int('1_0')",
        "(42, -7, 255, 31, 3, -3, 1, 10)",
    ),
    (
        "float('1e3'), float('inf'), float(' 2 '), bool(''), bool('False'), str(1.0), str(None)",
        "(1000.0, inf, 2.0, False, True, '1.0', 'None')",
    ),
    (
        "hex(255), oct(8), bin(-5), chr(97), ord('a'), (5).bit_length(), 2.0.is_integer()",
        "('0xff', '0o10', '-0b101', 'a', 97, 3, True)",
    ),
    (
        "math.pi, floor(2.7), math.ceil(2.1), sqrt(16), math.hypot(3, 4), gcd(12, 18), factorial(5), trunc(-2.5)",
        "(3.141592653589793, 2, 3, 4.0, 5.0, 6, 120, -2)",
    ),
    (
        "radians(180) == pi, degrees(pi), atan2(1, 1) == pi / 4, log(e), log(8, 2), isclose(0.1 + 0.2, 0.3), comb(5, 2)",
        "(True, 180.0, True, 1.0, 3.0, True, 10)",
    ),
    // Logic.
    ("'a' if 1 > 2 else 'b'", "b"),
    (
        "'x' or y, '' or 'y', '' and y, 1 and 2, not not ''",
        "('x', 'y', '', 2, False)",
    ),
    (
        "1 < 2 <= 2, 1 < 3 < 2, 1 == 1.0, '1' == 1, None is None, 1 is not None, 3 not in [1, 2]",
        "(True, False, True, False, True, True, True)",
    ),
    ("1 / 0 if False else 'lazy'", "lazy"),
    ("not 'a' == 'b'", "True"),
    ("[] or {} or () or 'last'", "last"),
    // Texts.
    (
        "'a' + \"b\" * 2, 'it\\'s', \"it's\", 'a\\nb', r'a\\n', 'a' 'b'",
        "('abb', \"it's\", \"it's\", 'a\\nb', 'a\\\\n', 'ab')",
    ),
    (
        "'abc'[0], 'abc'[-1], 'abcdef'[1:4], 'abcdef'[::-1], 'abcdef'[::2], 'abc'[5:], 'äöü'[1]",
        "('a', 'c', 'bcd', 'fedcba', 'ace', '', 'ö')",
    ),
    (
        "'a,b'.split(','), ' a  b '.split(), 'a b c'.split(' ', 1), 'a.b.c'.rsplit('.', 1), 'a b'.split().pop()",
        "(['a', 'b'], ['a', 'b'], ['a', 'b c'], ['a.b', 'c'], 'b')",
    ),
    (
        "'/'.join(['a', 'b']), 'Abc'.lower(), 'abc'.upper(), 'abc d'.title(), 'aBC'.swapcase(), 'abc'.capitalize()",
        "('a/b', 'abc', 'ABC', 'Abc D', 'Abc', 'Abc')",
    ),
    (
        "'  a '.strip(), 'xxaxx'.strip('x'), 'xxa'.lstrip('x'), 'a/b'.rstrip('b'), 'a.yaml'.removesuffix('.yaml')",
        "('a', 'a', 'a', 'a/', 'a')",
    ),
    (
        "'robot1'.startswith('robot'), 'a.yaml'.endswith(('.yaml', '.yml')), 'abcb'.find('b'), 'abcb'.rfind('b'), 'abc'.find('x'), 'abcb'.count('b')",
        "(True, True, 1, 3, -1, 2)",
    ),
    (
        "'a-b-c'.replace('-', '_'), 'a-b-c'.replace('-', '', 1), 'a=b=c'.partition('='), 'abc'.partition('x')",
        "('a_b_c', 'ab-c', ('a', '=', 'b=c'), ('abc', '', ''))",
    ),
    (
        "'7'.zfill(3), '-7'.zfill(4), 'a'.center(4, '*'), 'a'.ljust(3) + '|', 'a'.rjust(3)",
        "('007', '-007', '*a**', 'a  |', '  a')",
    ),
    (
        "'12'.isdigit(), 'a1'.isalnum(), ''.isalpha(), 'AB'.isupper(), 'name_1'.isidentifier()",
        "(True, True, False, True, True)",
    ),
    (
        "'sim' in 'simulation', 'x' not in 'abc', 'b' > 'a', 'a' * 0, len('äö')",
        "(True, True, True, '', 2)",
    ),
    // Formats.
    (
        "'{}/{}'.format('a', 1), '{1}{0}'.format('a', 'b'), '{x:>4}|{y:.2f}'.format(x='a', y=1.239), '{0[0]}{1[k]}'.format([7], {'k': 8})",
        "('a/1', 'ba', '   a|1.24', '78')",
    ),
    (
        "'%s_%02d' % ('cam', 3), '%.1f%%' % 12.34, '%(a)s' % {'a': 1}, '%5s|%-5s|' % ('a', 'b'), '%x' % 255, '%r' % 'a'",
        "('cam_03', '12.3%', '1', '    a|b    |', 'ff', \"'a'\")",
    ),
    (
        "f'{1 + 1} {\"a\"!r} {3.14159:.2f} {{x}} {\"b\":>3} {5 = }'",
        "2 'a' 3.14 {x}   b 5 = 5",
    ),
    (
        "f'{3:{\"0\" + str(4)}}', f'{[x for x in (1, 2)]}', f'{1 == 1}'",
        "('0003', '[1, 2]', 'True')",
    ),
    (
        "format(1234567.891, ',.2f'), format(255, '#x'), format(5, '08b'), format(0.25, '%'), format(1e10, 'g'), format(-1, '+'), format(3, '+d')",
        "('1,234,567.89', '0xff', '00000101', '25.000000%', '1e+10', '-1', '+3')",
    ),
    (
        "format('a', '^5'), format(1.0, '.3'), format(True, 'd'), format(12, '_b'), format(1e-5, '.2e')",
        "('  a  ', '1.0', '1', '1100', '1.00e-05')",
    ),
    // Collections.
    (
        "[1, 'a', 2.0], (1,), (), {1, 2}, set(), {'a': [1]}, {}",
        "([1, 'a', 2.0], (1,), (), {1, 2}, set(), {'a': [1]}, {})",
    ),
    (
        "[1, 2] + [3], [0] * 3, (1, 2) + (3,), [3, 1, 2][1:], [[1, 2], [3]][0][1], [1, 2][-1]",
        "([1, 2, 3], [0, 0, 0], (1, 2, 3), [1, 2], 2, 2)",
    ),
    (
        "[1, 2].index(2), [1, 1].count(1), sorted([3, 1, 2]), sorted('bca', reverse=True), sorted(['b', 'A'], key=str.lower)",
        "(1, 2, [1, 2, 3], ['c', 'b', 'a'], ['A', 'b'])",
    ),
    (
        "{1, 2} | {3}, {1, 2} & {2, 3}, {1, 2} - {2}, {1, 2} ^ {2, 3}, {1} <= {1, 2}, {1, 2}.issuperset([1]), {2}.isdisjoint({3})",
        "({1, 2, 3}, {2}, {1}, {1, 3}, True, True, True)",
    ),
    (
        "{'a': 1}['a'], {'a': 1}.get('b', 2), {'a': 1}.get('b'), list({'a': 1, 'b': 2}), 'a' in {'a': 1}, {'a': 1} | {'b': 2}, {**{'a': 1}, 'a': 3}",
        "(1, 2, None, ['a', 'b'], True, {'a': 1, 'b': 2}, {'a': 3})",
    ),
    (
        "{'a': 1}.keys(), {'a': 1}.values(), {'a': 1}.items(), dict(a=1), dict([('b', 2)]), {1: 'x', 1.0: 'y'}",
        "(dict_keys(['a']), dict_values([1]), dict_items([('a', 1)]), {'a': 1}, {'b': 2}, {1: 'y'})",
    ),
    (
        "[1, 2] == [1, 2.0], (1, 2) < (1, 3), [1] < [1, 0], {1, 2} == {2, 1}, {'a': 1} == {'a': 1.0}, (1,) == [1]",
        "(True, True, True, True, True, False)",
    ),
    (
        "[*'ab', *(1, 2)], max(*[1, 3]), [1, [2, (3, {4: 5})]]",
        "(['a', 'b', 1, 2], 3, [1, [2, (3, {4: 5})]])",
    ),
    (
        "range(3), list(range(5, 0, -2)), len(range(0, 10, 3)), 4 in range(0, 10, 2), range(10)[2:4], range(3)[-1]",
        "(range(0, 3), [5, 3, 1], 4, True, range(2, 4), 2)",
    ),
    // Comprehensions and functions.
    (
        "[x * x for x in range(4) if x % 2], sorted({x for x in 'aab'}), {k: v for k, v in [('a', 1)]}, [y for x in [[1], [2, 3]] for y in x]",
        "([1, 9], ['a', 'b'], {'a': 1}, [1, 2, 3])",
    ),
    (
        "any(x > 2 for x in [1, 3]), all([]), sum([1, 2, 3]), sum([[1], [2]], []), min(3, 1, 2), max([1, 5]), max('ab', key=ord)",
        "(True, True, 6, [1, 2], 1, 5, 'b')",
    ),
    (
        "any(1 / x > 0 for x in [1, 0]), next(x for x in [1, 2] if x > 1), next(iter([]), 'none'), max([], default=0)",
        "(True, 2, 'none', 0)",
    ),
    (
        "list(zip([1, 2], 'ab')), list(enumerate('ab', 1)), list(map(int, ['1', '2'])), list(filter(None, [0, 1])), list(reversed([1, 2]))",
        "([(1, 'a'), (2, 'b')], [(1, 'a'), (2, 'b')], [1, 2], [1], [2, 1])",
    ),
    (
        "(lambda x, y=2: x + y)(1), (lambda *a: a)(1, 2), list(map(lambda p: p[0], [(1, 2)])), [f(2) for f in [lambda x: x + 1]]",
        "(3, (1, 2), [1], [3])",
    ),
    (
        "isinstance(True, int), isinstance(1.0, (int, float)), isinstance('a', str), type(1) == int, type('a').__name__, callable(len)",
        "(True, True, True, True, 'str', True)",
    ),
    (
        "hasattr('a', 'upper'), getattr('a', 'nothing', 5), getattr('a', 'upper')(), 'upper' in dir('a')",
        "(True, 5, 'A', True)",
    ),
    (
        "tuple('ab'), set('a'), frozenset([1]), list({'k': 1}.values())[0], bytes([65]), b'a' + b'b', b'ab'[0], b'ab'.decode()",
        "(('a', 'b'), {'a'}, frozenset({1}), 1, b'A', b'ab', 97, 'ab')",
    ),
    (
        "os.path.join('a', 'b', '/c', 'd'), os.path.basename('/a/b.c'), os.path.dirname('/a/b'), os.path.splitext('a/b.tar.gz'), os.environ['HOME'], os.getenv('NO', 'x')",
        "('/c/d', 'b.c', '/a', ('a/b.tar', '.gz'), '/robot', 'x')",
    ),
    ("  1\t+ 1  # a comment", "2"),
    (
        "[(a, b) for a in (1, 2) for b in 'xy' if a == 1], [i for i, in [(1,)]], [[c for c in w] for w in ['ab']]",
        "([(1, 'x'), (1, 'y')], [1], [['a', 'b']])",
    ),
];

#[test]
fn results_are_those_of_python() {
    let python = python();
    let of_os = python.clone().map(|python| Python {
        environment: Some([("HOME".to_owned(), "/robot".to_owned())].into()),
        program: which(&python.program),
        ..python
    });
    for (expression, printed) in RESULTS {
        let outcome = match expression.contains("os.") {
            true => evaluate_whole(expression, &names().with_module("os"), &of_os),
            false => evaluate_whole(expression, &names(), &python),
        };
        match outcome {
            None => eprintln!("skipped, for it needs Python: {expression}"),
            Some(Ok(text)) => assert_eq!(text, *printed, "{expression}"),
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
    let (mut values, mut errors) = (0, 0);
    for round in 0..6_000 {
        let (expression, _) = RESULTS[round % RESULTS.len()];
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
