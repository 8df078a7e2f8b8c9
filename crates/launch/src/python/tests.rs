//! Results of expressions beside those of Python 3.12, and errors.

use super::{Expression, ExpressionError, Names, Object, Value};

fn names() -> Names {
    let environment = [("HOME".to_owned(), "/robot".to_owned())];
    let names = Names::new().with_module("math", []);
    names
        .and_then(|names| names.with_module("os", environment))
        .expect("both modules are there")
}

fn evaluate(expression: &str) -> Result<Value, ExpressionError> {
    Expression::parse(expression)?.evaluate(&names())
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
        "[x * x for x in range(4) if x % 2], {x for x in 'aab'}, {k: v for k, v in [('a', 1)]}, [y for x in [[1], [2, 3]] for y in x]",
        "([1, 9], {'a', 'b'}, {'a': 1}, [1, 2, 3])",
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
    for (expression, printed) in RESULTS {
        match evaluate(expression) {
            Ok(value) => assert_eq!(value.to_string(), *printed, "{expression}"),
            Err(error) => panic!("{error}"),
        }
    }
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
        "__import__('os')",
        1,
        "__import__ is not available: an expression imports nothing",
    ),
    ("open('/etc/passwd').read()", 1, "open is not available"),
    (
        "().__class__.__bases__",
        13,
        "has no attribute \"__bases__\"",
    ),
    (
        "[x for x in 5]",
        13,
        "5 is a int; it has no elements to go through",
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
    ("{'a': 1}['b']", 9, "there is no key 'b'; there are: 'a'"),
    ("'a'.uper()", 4, "did you mean \"upper\"?"),
    ("int('x')", 4, "int('x'): this is not an integer"),
    ("len(5)", 4, "len needs a text or a collection, not 5"),
    ("{[1]: 2}", 1, "a list is no key"),
    ("1 if 2", 7, "else is missing before the end"),
    ("(lambda x: x)()", 14, "the lambda lacks the argument x"),
    ("'{}'.format()", 12, "format has 0 arguments"),
    ("'%d' % 'x'", 6, "%d needs a number, not 'x'"),
    ("f'{x'", 1, "is not closed"),
    ("(lambda l: l.append(1))([])", 20, "write LIST + [VALUE]"),
    (
        "[a for a, b in [(1, 2, 3)]]",
        16,
        "has 3 elements for 2 loop variables",
    ),
    ("'a' if $x else 'b'", 8, "'$' has no meaning"),
    ("math.sqrt(-1)", 10, "math.sqrt(-1.0) has no real value"),
];

#[test]
fn errors_name_the_position_and_the_value() {
    for (expression, character, message) in ERRORS {
        let error = evaluate(expression).expect_err(expression);
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
        ("f'{".repeat(1_000), "is not closed"),
        ("lambda: ".repeat(1_000) + "1", "nested more than 100 deep"),
        (
            "a.b".to_owned() + &".c".repeat(2_000),
            "nested more than 100 deep",
        ),
        ("9 ** 99999".into(), "does not fit into 127 bits"),
        ("2 ** 127".into(), "does not fit into 127 bits"),
        ("1 << 1000".into(), "does not fit into 127 bits"),
        ("'a' * 10000000".into(), "a text is longer than 1 MiB"),
        ("[0] * 10 ** 9".into(), "takes more than"),
        ("sum(range(10 ** 9))".into(), "more than 1000000 steps"),
        (
            "[x for x in range(10 ** 9)]".into(),
            "more than 1000000 steps",
        ),
        ("list(range(10 ** 30))".into(), "more than 1000000 steps"),
        (
            "[['a' * 500000 for x in range(1000)]]".into(),
            "more than 64 MiB",
        ),
        ("format(1, '99999999999')".into(), "larger than 10000"),
        ("'%99999999999d' % 1".into(), "larger than 10000"),
        (
            "(lambda f: f(f))(lambda f: f(f))".into(),
            "nested more than 150 deep",
        ),
        (
            "(lambda t: t(t)(t)(t)(lambda x: [x])([]))(lambda f: lambda x: f(f(x)))".into(),
            "deep",
        ),
    ] {
        let error = evaluate(&expression).expect_err(&expression[..expression.len().min(60)]);
        assert!(error.message.contains(message), "{error}");
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
            "m",
            "geometry_msgs/msg/Pose(x=2.5, frame='map', ranges=[0.0, 0.5, 1.0])",
        ),
    ] {
        let value = Expression::parse(expression).and_then(|one| one.evaluate(&names));
        match value {
            Ok(value) => assert_eq!(value.to_string(), printed, "{expression}"),
            Err(error) => panic!("{error}"),
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
