//! Format specification: fill, alignment, width, precision and code of `format`,
//! `str.format` and f-strings.

use super::fault::Outcome;
use super::machine::Machine;
use super::number_text::{double, in_base, with_code};
use super::printed::{short, text};
use super::value::{Kind, Value};

/// Largest width and precision.
const WIDTH_MAX: usize = 10_000;
/// More digits than a double has.
const PRECISION_MAX: usize = 1_000;

#[derive(Debug, Default)]
struct FormatSpec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    /// `#`
    alternate: bool,
    zero: bool,
    width: usize,
    /// `,` or `_` between groups of digits.
    grouping: Option<char>,
    precision: Option<usize>,
    code: Option<char>,
}

/// A value by a specification, as Python's `format(value, specification)`.
pub(super) fn format(machine: &mut Machine, value: &Value, specification: &str) -> Outcome<String> {
    if specification.is_empty() {
        return Ok(text(value));
    }
    let spec = parse(specification)?;
    machine.check_text(spec.width)?;
    let wrong = || {
        format!(
            "the format {specification:?} does not fit {}, a {}",
            short(value),
            value.type_name()
        )
    };
    match (&value.0, spec.code) {
        (Kind::Text(whole), None | Some('s')) => {
            let is_for_numbers = spec.sign.is_some()
                || spec.alternate
                || spec.grouping.is_some()
                || spec.align == Some('=');
            if is_for_numbers {
                return Err(wrong().into());
            }
            let shown: String = match spec.precision {
                Some(precision) => whole.chars().take(precision).collect(),
                None => whole.to_string(),
            };
            Ok(padded(&spec, "", &shown, '<'))
        }
        (Kind::Integer(_) | Kind::Bool(_), code) if is_integer_code(&value.0, code) => {
            let integer = value.as_integer().unwrap_or(0);
            if spec.precision.is_some() {
                return Err(format!("{}: an integer has no precision", wrong()).into());
            }
            if code == Some('c') {
                let letter = u32::try_from(integer).ok().and_then(char::from_u32);
                let letter = letter.ok_or_else(wrong)?;
                return Ok(padded(&spec, "", &letter.to_string(), '<'));
            }
            let code = code.unwrap_or('d');
            let digits = in_base(integer.unsigned_abs(), code);
            let prefix = match (spec.alternate, code) {
                (true, 'b') => "0b",
                (true, 'o') => "0o",
                (true, 'x') => "0x",
                (true, 'X') => "0X",
                _ => "",
            };
            let group = if matches!(code, 'd' | 'n') { 3 } else { 4 };
            Ok(number(&spec, integer < 0, prefix, &digits, group))
        }
        (Kind::Integer(_) | Kind::Double(_) | Kind::Bool(_), code) => {
            let whole = value.as_double().ok_or_else(wrong)?;
            let magnitude = whole.abs();
            let digits = match (code, spec.precision) {
                (None, None) => double(magnitude),
                (None, Some(precision)) => {
                    let digits = with_code(magnitude, 'g', precision, false);
                    // Without a code at least one decimal is shown.
                    match digits.contains(['.', 'e', 'n', 'i']) {
                        true => digits,
                        false => digits + ".0",
                    }
                }
                (Some('n'), precision) => with_code(magnitude, 'g', precision.unwrap_or(6), false),
                (Some(code @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')), precision) => {
                    with_code(magnitude, code, precision.unwrap_or(6), spec.alternate)
                }
                (Some(_), _) => return Err(wrong().into()),
            };
            let is_negative = whole.is_sign_negative() && !whole.is_nan();
            Ok(number(&spec, is_negative, "", &digits, 3))
        }
        _ => Err(wrong().into()),
    }
}

fn is_integer_code(kind: &Kind, code: Option<char>) -> bool {
    match code {
        // A boolean without a code is printed as a number if there is a width.
        None => matches!(kind, Kind::Integer(_) | Kind::Bool(_)),
        Some(code) => matches!(code, 'd' | 'b' | 'o' | 'x' | 'X' | 'n' | 'c'),
    }
}

fn parse(specification: &str) -> Outcome<FormatSpec> {
    let letters: Vec<char> = specification.chars().collect();
    let mut spec = FormatSpec::default();
    let mut at = 0;
    let is_align = |letter: Option<&char>| letter.is_some_and(|letter| "<>=^".contains(*letter));
    if is_align(letters.get(1)) {
        spec.fill = letters.first().copied();
        spec.align = letters.get(1).copied();
        at = 2;
    } else if is_align(letters.first()) {
        spec.align = letters.first().copied();
        at = 1;
    }
    let take = |at: &mut usize, accepted: &str| -> Option<char> {
        let letter = letters.get(*at).copied();
        let found = letter.filter(|letter| accepted.contains(*letter));
        *at += usize::from(found.is_some());
        found
    };
    spec.sign = take(&mut at, "+- ");
    take(&mut at, "z");
    spec.alternate = take(&mut at, "#").is_some();
    spec.zero = take(&mut at, "0").is_some();
    spec.width = digits(&letters, &mut at, WIDTH_MAX)?.unwrap_or(0);
    spec.grouping = take(&mut at, ",_");
    if take(&mut at, ".").is_some() {
        let precision = digits(&letters, &mut at, PRECISION_MAX)?;
        let precision = precision.ok_or_else(|| {
            format!("in the format {specification:?} digits are missing after the point")
        })?;
        spec.precision = Some(precision);
    }
    spec.code = letters.get(at).copied();
    let is_known = spec
        .code
        .is_none_or(|code| "sdbocxXneEfFgG%".contains(code));
    if at + usize::from(spec.code.is_some()) != letters.len() || !is_known {
        return Err(format!(
            "{specification:?} is not a format; write [fill][<>=^][+-][#][0]width[,].precision and a code of s d b o c x X e f g %"
        )
        .into());
    }
    Ok(spec)
}

fn digits(letters: &[char], at: &mut usize, most: usize) -> Outcome<Option<usize>> {
    let start = *at;
    while letters.get(*at).is_some_and(char::is_ascii_digit) {
        *at += 1;
    }
    if start == *at {
        return Ok(None);
    }
    let text: String = letters[start..*at].iter().collect();
    let value = text.parse().ok().filter(|value| *value <= most);
    value
        .map(Some)
        .ok_or_else(|| format!("the width or precision {text} is larger than {most}").into())
}

/// A number with its sign, groups and padding.
fn number(
    spec: &FormatSpec,
    is_negative: bool,
    prefix: &str,
    digits: &str,
    group: usize,
) -> String {
    let sign = match (is_negative, spec.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    };
    let head = format!("{sign}{prefix}");
    let is_zero_padded =
        spec.zero && spec.align.is_none_or(|align| align == '=') && spec.fill.is_none();
    let digits = match spec.grouping {
        None => digits.to_owned(),
        Some(separator) => {
            let width = match is_zero_padded {
                true => spec.width.saturating_sub(head.len()),
                false => 0,
            };
            grouped(digits, separator, group, width)
        }
    };
    if is_zero_padded {
        let missing = spec
            .width
            .saturating_sub(head.len() + digits.chars().count());
        return format!("{head}{}{digits}", "0".repeat(missing));
    }
    padded(spec, &head, &digits, '>')
}

/// Digits with a separator between groups; zeros in front up to a width.
fn grouped(digits: &str, separator: char, group: usize, width: usize) -> String {
    let end = digits
        .find(|letter: char| !letter.is_ascii_hexdigit())
        .unwrap_or(digits.len());
    // `e` of an exponent is a hexadecimal digit, too.
    let end = match digits.find(['.', 'e']) {
        Some(point) if group == 3 => point.min(end),
        _ => end,
    };
    let (whole, rest) = digits.split_at(end);
    let mut whole = whole.to_owned();
    loop {
        let mut out = String::new();
        for (index, letter) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(group) {
                out.push(separator);
            }
            out.push(letter);
        }
        if out.len() + rest.len() >= width {
            return out + rest;
        }
        whole.insert(0, '0');
    }
}

fn padded(spec: &FormatSpec, head: &str, body: &str, default: char) -> String {
    let length = head.chars().count() + body.chars().count();
    let missing = spec.width.saturating_sub(length);
    let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
    let pad = |count: usize| fill.to_string().repeat(count);
    match spec.align.unwrap_or(default) {
        '<' => format!("{head}{body}{}", pad(missing)),
        '^' => format!(
            "{}{head}{body}{}",
            pad(missing / 2),
            pad(missing - missing / 2)
        ),
        '=' => format!("{head}{}{body}", pad(missing)),
        _ => format!("{}{head}{body}", pad(missing)),
    }
}
