//! Expression evaluator of `$(eval …)`: the subset of Python expressions that
//! launch files use.
//!
//! It has numbers, strings, `True`, `False`, `None` and lists; `+ - * / // % **`,
//! comparisons (also chained), `in`, `and`, `or`, `not`, `a if b else c` and indexing.
//! docs/reference/file_formats.md lists its functions and methods. The result is printed as Python's `str()` prints it. Everything else is refused by
//! name. Length and nesting depth are limited, and there are no loops.

use std::cmp::Ordering;

/// Longest expression in characters.
const LETTERS_MAX: usize = 10_000;
/// Largest nesting depth of brackets.
const DEPTH_MAX: usize = 64;
/// Longest text that `*` and `+` may produce.
const TEXT_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    None,
    Bool(bool),
    Integer(i64),
    Double(f64),
    Text(String),
    List(Vec<Value>),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(Value),
    Text(String),
    Word(String),
    Sign(&'static str),
}

/// Evaluates an expression to a text.
///
/// # Errors
/// The part that is invalid, with the accepted ones.
pub fn evaluate(expression: &str) -> Result<String, String> {
    let found = || format!("in the expression {expression:?} ");
    if expression.chars().count() > LETTERS_MAX {
        return Err(format!(
            "the expression is longer than {LETTERS_MAX} characters"
        ));
    }
    let tokens = tokens(expression).map_err(|error| found() + &error)?;
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
    };
    let value = parser.whole().map_err(|error| found() + &error)?;
    Ok(value.printed(false))
}

const SIGNS: &[&str] = &[
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", ",",
    ".",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let starts_number = letter.is_ascii_digit()
            || (letter == '.' && letters.get(at + 1).is_some_and(char::is_ascii_digit));
        if letter.is_whitespace() {
            at += 1;
        } else if starts_number {
            let start = at;
            while let Some(&next) = letters.get(at) {
                let is_exponent_sign = matches!(next, '+' | '-')
                    && matches!(letters[at - 1], 'e' | 'E')
                    && !letters[start..at].contains(&'x');
                if !next.is_ascii_alphanumeric() && next != '.' && next != '_' && !is_exponent_sign
                {
                    break;
                }
                at += 1;
            }
            let number: String = letters[start..at].iter().collect();
            tokens.push(Token::Number(number_of(&number)?));
        } else if letter.is_alphabetic() || letter == '_' {
            let start = at;
            while letters
                .get(at)
                .is_some_and(|l| l.is_alphanumeric() || *l == '_')
            {
                at += 1;
            }
            tokens.push(Token::Word(letters[start..at].iter().collect()));
        } else if letter == '\'' || letter == '"' {
            let (text, next) = quoted(&letters, at)?;
            tokens.push(Token::Text(text));
            at = next;
        } else {
            let rest: String = letters[at..].iter().take(2).collect();
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.ok_or_else(|| format!("{letter:?} is not understood"))?;
            tokens.push(Token::Sign(sign));
            at += sign.len();
        }
    }
    Ok(tokens)
}

fn number_of(text: &str) -> Result<Value, String> {
    let plain = text.replace('_', "");
    let based = |digits: &str, base| i64::from_str_radix(digits, base).ok();
    let integer = match plain.get(..2) {
        Some("0x" | "0X") => based(&plain[2..], 16),
        Some("0o" | "0O") => based(&plain[2..], 8),
        Some("0b" | "0B") => based(&plain[2..], 2),
        _ => plain.parse().ok(),
    };
    if let Some(integer) = integer {
        return Ok(Value::Integer(integer));
    }
    let double = plain.parse::<f64>();
    double
        .map(Value::Double)
        .map_err(|_| format!("{text} is not a 64-bit number"))
}

/// Reads a quoted text at `start`. Returns it and the index after it.
fn quoted(letters: &[char], start: usize) -> Result<(String, usize), String> {
    let quote = letters[start];
    let mut text = String::new();
    let mut at = start + 1;
    while let Some(&letter) = letters.get(at) {
        at += 1;
        if letter == quote {
            return Ok((text, at));
        }
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        let next = letters.get(at).copied().unwrap_or('\\');
        at += 1;
        match next {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            '\\' | '\'' | '"' => text.push(next),
            other => text.extend(['\\', other]),
        }
    }
    Err(format!("the quote {quote} is not closed"))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn whole(&mut self) -> Result<Value, String> {
        let value = self.conditional()?;
        match self.tokens.get(self.at) {
            None => Ok(value),
            Some(token) => Err(format!("unexpected {} after the end", token.name())),
        }
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Word(found)) if found == word)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(format!("a {sign} is missing{}", self.before()))
        }
    }

    fn before(&self) -> String {
        match self.tokens.get(self.at) {
            Some(token) => format!(" before {}", token.name()),
            None => " at the end".into(),
        }
    }

    /// `a if b else c`. Both branches are evaluated, since neither has side
    /// effects.
    fn conditional(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("brackets are nested more than {DEPTH_MAX} deep"));
        }
        let value = self.either()?;
        let value = if self.take_word("if") {
            let condition = self.either()?;
            if !self.take_word("else") {
                return Err(format!("an else is missing{}", self.before()));
            }
            let otherwise = self.conditional()?;
            if condition.truth() { value } else { otherwise }
        } else {
            value
        };
        self.depth -= 1;
        Ok(value)
    }

    fn either(&mut self) -> Result<Value, String> {
        let mut value = self.both()?;
        while self.take_word("or") {
            let other = self.both()?;
            value = if value.truth() { value } else { other };
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<Value, String> {
        let mut value = self.negation()?;
        while self.take_word("and") {
            let other = self.negation()?;
            value = if value.truth() { other } else { value };
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<Value, String> {
        let mut negations = 0usize;
        while self.take_word("not") {
            negations += 1;
        }
        let value = self.comparison()?;
        match negations {
            0 => Ok(value),
            _ => Ok(Value::Bool(value.truth() == negations.is_multiple_of(2))),
        }
    }

    /// `a < b <= c`: every pair must hold.
    fn comparison(&mut self) -> Result<Value, String> {
        let mut left = self.sum()?;
        let mut holds = None;
        while let Some(comparison) = self.comparator() {
            let right = self.sum()?;
            let this = compare(&left, comparison, &right)?;
            holds = Some(holds.unwrap_or(true) && this);
            left = right;
        }
        Ok(holds.map_or(left, Value::Bool))
    }

    fn comparator(&mut self) -> Option<&'static str> {
        for sign in ["==", "!=", "<=", ">=", "<", ">"] {
            if self.take_sign(sign) {
                return Some(sign);
            }
        }
        if self.take_word("in") {
            return Some("in");
        }
        let is_not_in = self.is_word("not")
            && matches!(self.tokens.get(self.at + 1), Some(Token::Word(word)) if word == "in");
        if is_not_in {
            self.at += 2;
            return Some("not in");
        }
        if self.take_word("is") {
            return Some(if self.take_word("not") { "!=" } else { "==" });
        }
        None
    }

    fn sum(&mut self) -> Result<Value, String> {
        let mut value = self.product()?;
        loop {
            let sign = if self.take_sign("+") {
                "+"
            } else if self.take_sign("-") {
                "-"
            } else {
                return Ok(value);
            };
            value = calculate(&value, sign, &self.product()?)?;
        }
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut value = self.signed()?;
        'next: loop {
            for sign in ["*", "//", "/", "%"] {
                if self.take_sign(sign) {
                    value = calculate(&value, sign, &self.signed()?)?;
                    continue 'next;
                }
            }
            return Ok(value);
        }
    }

    fn signed(&mut self) -> Result<Value, String> {
        let mut is_negative = false;
        loop {
            if self.take_sign("-") {
                is_negative = !is_negative;
            } else if !self.take_sign("+") {
                break;
            }
        }
        let value = self.power()?;
        if is_negative {
            calculate(&Value::Integer(0), "-", &value)
        } else {
            Ok(value)
        }
    }

    fn power(&mut self) -> Result<Value, String> {
        let value = self.postfix()?;
        if self.take_sign("**") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(format!("powers are nested more than {DEPTH_MAX} deep"));
            }
            let exponent = self.signed()?;
            self.depth -= 1;
            calculate(&value, "**", &exponent)
        } else {
            Ok(value)
        }
    }

    fn postfix(&mut self) -> Result<Value, String> {
        let mut value = self.atom()?;
        loop {
            if self.take_sign("[") {
                let index = self.conditional()?;
                self.expect("]")?;
                value = item(&value, &index)?;
            } else if self.take_sign(".") {
                let Some(Token::Word(name)) = self.tokens.get(self.at).cloned() else {
                    return Err(format!("a method's name is missing{}", self.before()));
                };
                self.at += 1;
                self.expect("(")?;
                let arguments = self.list(")")?;
                value = method(&value, &name, &arguments)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn atom(&mut self) -> Result<Value, String> {
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err("a value is missing at the end".into());
        };
        self.at += 1;
        match token {
            Token::Number(value) => Ok(value),
            Token::Text(mut text) => {
                // Adjacent string literals are concatenated.
                while let Some(Token::Text(more)) = self.tokens.get(self.at) {
                    text += more;
                    self.at += 1;
                }
                Ok(Value::Text(text))
            }
            Token::Sign("(") => {
                let value = self.conditional()?;
                self.expect(")")?;
                Ok(value)
            }
            Token::Sign("[") => Ok(Value::List(self.list("]")?)),
            Token::Sign(sign) => Err(format!("{sign} found where a value is expected")),
            Token::Word(word) => self.word(&word),
        }
    }

    fn list(&mut self, end: &str) -> Result<Vec<Value>, String> {
        let mut values = Vec::new();
        while !self.take_sign(end) {
            values.push(self.conditional()?);
            if !self.take_sign(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(values)
    }

    fn word(&mut self, word: &str) -> Result<Value, String> {
        // `math.pi` and `pi` are the same, as in ROS 2.
        if word == "math" && self.take_sign(".") {
            let Some(Token::Word(name)) = self.tokens.get(self.at).cloned() else {
                return Err("a name is missing after math.".into());
            };
            self.at += 1;
            return self.word(&name);
        }
        if self.take_sign("(") {
            let arguments = self.list(")")?;
            return function(word, &arguments);
        }
        match word {
            "True" | "true" => Ok(Value::Bool(true)),
            "False" | "false" => Ok(Value::Bool(false)),
            "None" => Ok(Value::None),
            "pi" => Ok(Value::Double(std::f64::consts::PI)),
            "tau" => Ok(Value::Double(std::f64::consts::TAU)),
            "e" => Ok(Value::Double(std::f64::consts::E)),
            "inf" => Ok(Value::Double(f64::INFINITY)),
            _ => Err(format!(
                "the name {word} is not known; a text needs quotes: '{word}', an argument $(var {word})"
            )),
        }
    }
}

impl Token {
    fn name(&self) -> String {
        match self {
            Self::Number(value) => value.printed(true),
            Self::Text(text) => format!("{text:?}"),
            Self::Word(word) => word.clone(),
            Self::Sign(sign) => (*sign).into(),
        }
    }
}

impl Value {
    fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Double(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(values) => !values.is_empty(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) => "an integer",
            Self::Double(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
        }
    }

    /// Booleans count as 0 and 1, as in Python.
    fn integer(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some((*value).into()),
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    fn double(&self) -> Option<f64> {
        match self {
            Self::Double(value) => Some(*value),
            other => other.integer().map(|value| value as f64),
        }
    }

    /// The text of `str()`, or of `repr()` within a list.
    fn printed(&self, quoted: bool) -> String {
        match self {
            Self::None => "None".into(),
            Self::Bool(true) => "True".into(),
            Self::Bool(false) => "False".into(),
            Self::Integer(value) => value.to_string(),
            Self::Double(value) => double_text(*value),
            Self::Text(text) if quoted => {
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
            }
            Self::Text(text) => text.clone(),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(|one| one.printed(true)).collect();
                format!("[{}]", values.join(", "))
            }
        }
    }
}

/// A double as Python prints it: `1.0`, `1e+20`, `inf`.
fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{value:?}")
}

fn compare(left: &Value, comparison: &str, right: &Value) -> Result<bool, String> {
    if let "in" | "not in" = comparison {
        let is_in = match (left, right) {
            (Value::Text(part), Value::Text(whole)) => whole.contains(part),
            (_, Value::List(values)) => values.iter().any(|one| are_equal(left, one)),
            _ => {
                return Err(format!(
                    "{} cannot be searched in {}",
                    left.kind(),
                    right.kind()
                ));
            }
        };
        return Ok(is_in == (comparison == "in"));
    }
    match comparison {
        "==" => return Ok(are_equal(left, right)),
        "!=" => return Ok(!are_equal(left, right)),
        _ => {}
    }
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => match (left.double(), right.double()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => {
                return Err(format!(
                    "{} and {} cannot be compared by {comparison}; int(…) and float(…) make numbers of texts",
                    left.kind(),
                    right.kind()
                ));
            }
        },
    };
    Ok(match comparison {
        "<" => order == Some(Ordering::Less),
        ">" => order == Some(Ordering::Greater),
        "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn are_equal(left: &Value, right: &Value) -> bool {
    match (left.double(), right.double()) {
        (Some(left), Some(right)) => left == right,
        _ => match (left, right) {
            (Value::List(left), Value::List(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(a, b)| are_equal(a, b))
            }
            _ => left == right,
        },
    }
}

fn calculate(left: &Value, sign: &str, right: &Value) -> Result<Value, String> {
    match (left, sign, right) {
        (Value::Text(left), "+", Value::Text(right))
            if left.len() + right.len() <= TEXT_BYTES_MAX =>
        {
            return Ok(Value::Text(format!("{left}{right}")));
        }
        (Value::List(left), "+", Value::List(right)) => {
            return Ok(Value::List([left.as_slice(), right].concat()));
        }
        (Value::Text(text), "*", Value::Integer(count)) => {
            let count = usize::try_from(*count).unwrap_or(0);
            return match text.len().checked_mul(count) {
                Some(length) if length <= TEXT_BYTES_MAX => Ok(Value::Text(text.repeat(count))),
                _ => Err("a string is too long".into()),
            };
        }
        _ => {}
    }
    if let (Some(left), Some(right)) = (left.integer(), right.integer()) {
        return integers(left, sign, right);
    }
    let (Some(a), Some(b)) = (left.double(), right.double()) else {
        return Err(format!(
            "{} {sign} {} is not defined; int(…), float(…) and str(…) convert values",
            left.kind(),
            right.kind()
        ));
    };
    if b == 0.0 && matches!(sign, "/" | "//" | "%") {
        return Err("division by zero".into());
    }
    Ok(Value::Double(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => (a / b).floor(),
        "%" => a - b * (a / b).floor(),
        _ => a.powf(b),
    }))
}

fn integers(left: i64, sign: &str, right: i64) -> Result<Value, String> {
    if right == 0 && matches!(sign, "/" | "//" | "%") {
        return Err("division by zero".into());
    }
    let quotient = || {
        let quotient = left.checked_div(right)?;
        let is_exact = left.checked_rem(right)? == 0;
        Some(quotient - i64::from(!is_exact && (left < 0) != (right < 0)))
    };
    let result = match sign {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => return Ok(Value::Double(left as f64 / right as f64)),
        "//" => quotient(),
        "%" => quotient().and_then(|q| left.checked_sub(q.checked_mul(right)?)),
        _ => match u32::try_from(right) {
            Ok(exponent) => left.checked_pow(exponent),
            Err(_) => return Ok(Value::Double((left as f64).powf(right as f64))),
        },
    };
    result
        .map(Value::Integer)
        .ok_or_else(|| format!("{left} {sign} {right} does not fit into 64 bits"))
}

fn item(value: &Value, index: &Value) -> Result<Value, String> {
    let Some(index) = index.integer() else {
        return Err(format!("an index is {}, not an integer", index.kind()));
    };
    let place = |length: usize| {
        let length = i64::try_from(length).ok()?;
        let place = if index < 0 { index + length } else { index };
        usize::try_from(place).ok()
    };
    let found = match value {
        Value::Text(text) => {
            let letters: Vec<char> = text.chars().collect();
            let letter = place(letters.len()).and_then(|at| letters.get(at));
            letter.map(|letter| Value::Text(letter.to_string()))
        }
        Value::List(values) => place(values.len()).and_then(|at| values.get(at).cloned()),
        other => return Err(format!("{} has no index", other.kind())),
    };
    found.ok_or_else(|| format!("the index {index} is out of range"))
}

fn method(value: &Value, name: &str, arguments: &[Value]) -> Result<Value, String> {
    const METHODS: &str = "lower, upper, strip, startswith, endswith, replace, split, join";
    let Value::Text(text) = value else {
        return Err(format!("{} has no method {name} here", value.kind()));
    };
    let texts: Option<Vec<&str>> = arguments
        .iter()
        .map(|one| match one {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let result = match (name, texts.as_deref(), arguments) {
        ("lower", Some([]), _) => Value::Text(text.to_lowercase()),
        ("upper", Some([]), _) => Value::Text(text.to_uppercase()),
        ("strip", Some([]), _) => Value::Text(text.trim().into()),
        ("startswith", Some([start]), _) => Value::Bool(text.starts_with(start)),
        ("endswith", Some([end]), _) => Value::Bool(text.ends_with(end)),
        ("replace", Some([from, to]), _) if !from.is_empty() => {
            let found = text.matches(from).count();
            if text.len() + found.saturating_mul(to.len()) > TEXT_BYTES_MAX {
                return Err("a string is too long".into());
            }
            Value::Text(text.replace(from, to))
        }
        ("split", Some([]), _) => Value::List(
            text.split_whitespace()
                .map(|w| Value::Text(w.into()))
                .collect(),
        ),
        ("split", Some([at]), _) if !at.is_empty() => {
            Value::List(text.split(at).map(|w| Value::Text(w.into())).collect())
        }
        ("join", _, [Value::List(parts)]) => {
            let parts: Vec<String> = parts.iter().map(|one| one.printed(false)).collect();
            Value::Text(parts.join(text))
        }
        _ => {
            return Err(format!(
                "the method {name} with {} arguments is not understood; texts have {METHODS}",
                arguments.len()
            ));
        }
    };
    Ok(result)
}

fn function(name: &str, arguments: &[Value]) -> Result<Value, String> {
    const FUNCTIONS: &str = "int, float, str, bool, len, abs, min, max, round, floor, ceil, sqrt, pow, sin, cos, tan, asin, acos, atan, atan2, exp, log, radians, degrees";
    let double = |at: usize| -> Result<f64, String> {
        let value = arguments.get(at).and_then(Value::double);
        value.ok_or_else(|| format!("{name}(…) needs a number"))
    };
    let of_double = |make: fn(f64) -> f64| Ok(Value::Double(make(double(0)?)));
    match (name, arguments) {
        ("int", [Value::Text(text)]) => {
            let integer = text.trim().replace('_', "").parse();
            integer
                .map(Value::Integer)
                .map_err(|_| format!("{text:?} is not an integer"))
        }
        ("int", [Value::Double(value)]) => whole(value.trunc()),
        ("int", [value]) => value
            .integer()
            .map(Value::Integer)
            .ok_or_else(|| format!("{} is not an integer", value.kind())),
        ("float", [Value::Text(text)]) => {
            let double = text.trim().parse();
            double
                .map(Value::Double)
                .map_err(|_| format!("{text:?} is not a number"))
        }
        ("float", [_]) => of_double(|value| value),
        ("str", [value]) => Ok(Value::Text(value.printed(false))),
        ("bool", [value]) => Ok(Value::Bool(value.truth())),
        ("len", [Value::Text(text)]) => Ok(Value::Integer(text.chars().count() as i64)),
        ("len", [Value::List(values)]) => Ok(Value::Integer(values.len() as i64)),
        ("abs", [value]) => match value.integer() {
            Some(integer) => integers(integer.signum(), "*", integer),
            None => of_double(f64::abs),
        },
        ("min" | "max", [Value::List(values)]) if !values.is_empty() => function(name, values),
        ("min" | "max", [first, rest @ ..]) if !rest.is_empty() || first.double().is_some() => {
            let sign = if name == "min" { "<" } else { ">" };
            rest.iter().try_fold(first.clone(), |best, next| {
                Ok(if compare(next, sign, &best)? {
                    next.clone()
                } else {
                    best
                })
            })
        }
        // Halves round to even, as in Python.
        ("round", [_]) => whole(double(0)?.round_ties_even()),
        ("round", [_, digits]) => {
            let digits = digits
                .integer()
                .and_then(|digits| i32::try_from(digits).ok());
            let digits = digits.ok_or("round(…) needs an integer as its second argument")?;
            let factor = 10f64.powi(digits);
            Ok(Value::Double(
                (double(0)? * factor).round_ties_even() / factor,
            ))
        }
        ("floor", [_]) => whole(double(0)?.floor()),
        ("ceil", [_]) => whole(double(0)?.ceil()),
        ("sqrt", [_]) if double(0)? >= 0.0 => of_double(f64::sqrt),
        ("pow", [left, right]) => calculate(left, "**", right),
        ("sin", [_]) => of_double(f64::sin),
        ("cos", [_]) => of_double(f64::cos),
        ("tan", [_]) => of_double(f64::tan),
        ("asin", [_]) => of_double(f64::asin),
        ("acos", [_]) => of_double(f64::acos),
        ("atan", [_]) => of_double(f64::atan),
        ("atan2", [_, _]) => Ok(Value::Double(double(0)?.atan2(double(1)?))),
        ("exp", [_]) => of_double(f64::exp),
        ("log", [_]) if double(0)? > 0.0 => of_double(f64::ln),
        ("radians", [_]) => of_double(f64::to_radians),
        ("degrees", [_]) => of_double(f64::to_degrees),
        _ => Err(format!(
            "the function {name} with {} arguments is not known; there are {FUNCTIONS}. $(command …) runs other programs",
            arguments.len()
        )),
    }
}

fn whole(value: f64) -> Result<Value, String> {
    // 2^63 is the first value that does not fit.
    if value.abs() < 9_223_372_036_854_775_808.0 {
        Ok(Value::Integer(value as i64))
    } else {
        Err(format!("{value} does not fit into 64 bits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected results are those of Python 3.
    #[test]
    fn results_are_those_of_python() {
        for (expression, printed) in [
            ("1 + 2 * 3", "7"),
            ("7 // 2", "3"),
            ("-7 // 2", "-4"),
            ("-7 % 3", "2"),
            ("7 / 2", "3.5"),
            ("4 / 2", "2.0"),
            ("2 ** 10", "1024"),
            ("2 ** -1", "0.5"),
            ("-2 ** 2", "-4"),
            ("1e20", "1e+20"),
            ("0.1 + 0.2", "0.30000000000000004"),
            ("1.5e-7", "1.5e-07"),
            ("0x10 + 0b11", "19"),
            ("'a' + \"b\" * 2", "abb"),
            ("'gazebo' == 'gazebo' and not False", "True"),
            ("'a' if 1 > 2 else 'b'", "b"),
            ("1 < 2 <= 2", "True"),
            ("'sim' in 'simulation'", "True"),
            ("3 not in [1, 2]", "True"),
            ("[1, 'a', 2.0]", "[1, 'a', 2.0]"),
            ("'a,b'.split(',')[1].upper()", "B"),
            ("str(1.0) + '_' + str(2)", "1.0_2"),
            ("int('42') + round(2.5)", "44"),
            ("True + 1", "2"),
            ("None is None", "True"),
            ("max(3, 1.5, 2)", "3"),
            ("math.floor(pi)", "3"),
            ("'x' or 'y'", "x"),
            ("'' or 'y'", "y"),
            ("not not ''", "False"),
            ("1 == 1.0", "True"),
            ("'1' == 1", "False"),
            ("'abc'[-1]", "c"),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(printed), "{expression}");
        }
    }

    #[test]
    fn unknown_syntax_is_reported_by_name() {
        for (expression, message) in [
            ("", "a value is missing"),
            ("robot == 'a'", "the name robot is not known"),
            ("__import__('os')", "the function __import__"),
            ("[x for x in [1]]", "the name x is not known"),
            ("1 +", "a value is missing"),
            ("1 2", "unexpected 2 after the end"),
            ("'a", "not closed"),
            ("1 / 0", "division by zero"),
            ("9223372036854775807 + 1", "does not fit"),
            ("'a' < 1", "cannot be compared"),
            ("'a' * 10000000", "too long"),
            ("{}", "is not understood"),
            ("'a'.format(1)", "the method format"),
            ("lambda: 1", "is not understood"),
        ] {
            let error = evaluate(expression).unwrap_err();
            assert!(error.contains(message), "{expression}: {error}");
        }
        let deep = "(".repeat(1000) + "1";
        assert!(evaluate(&deep).unwrap_err().contains("deep"));
    }
}
