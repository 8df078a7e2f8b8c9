//! Formatting with `%`: `'%s_%02d' % (name, number)`.

use super::fault::Outcome;
use super::limits::TEXT_BYTES_MAX;
use super::machine::Machine;
use super::number_text::{exact_integer, in_base, with_code};
use super::printed::{ascii, representation, short, text};
use super::value::{Kind, Value};

/// Largest width and precision.
const WIDTH_MAX: usize = 10_000;

/// Formats a template with a tuple of values, a dictionary, or one value.
pub(super) fn format(machine: &mut Machine, template: &str, values: &Value) -> Outcome<String> {
    let mut reader = Reader {
        values,
        next: 0,
        uses_names: false,
    };
    let letters: Vec<char> = template.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        machine.steps(1)?;
        at += 1;
        if letter != '%' {
            out.push(letter);
            continue;
        }
        out += &reader.field(&letters, &mut at)?;
        if out.len() > TEXT_BYTES_MAX {
            machine.check_text(out.len())?;
        }
    }
    let given = match &values.0 {
        Kind::Tuple(sequence) => sequence.items.len(),
        Kind::Dictionary(_) => reader.next,
        _ => 1,
    };
    if !reader.uses_names && reader.next < given {
        return Err(format!("% has {given} values for {} fields", reader.next).into());
    }
    Ok(out)
}

struct Reader<'v> {
    values: &'v Value,
    next: usize,
    uses_names: bool,
}

impl Reader<'_> {
    fn value(&mut self) -> Outcome<Value> {
        let value = match &self.values.0 {
            Kind::Tuple(sequence) => sequence.items.get(self.next).cloned(),
            _ => (self.next == 0).then(|| self.values.clone()),
        };
        self.next += 1;
        value.ok_or_else(|| format!("% has no value for field {}", self.next).into())
    }

    /// A width or precision: digits, or `*` for a value.
    fn count(&mut self, letters: &[char], at: &mut usize) -> Outcome<Option<usize>> {
        if letters.get(*at) == Some(&'*') {
            *at += 1;
            let value = self.value()?;
            let count = value
                .as_integer()
                .and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| *count <= WIDTH_MAX);
            return count.map(Some).ok_or_else(|| {
                format!(
                    "the width {} is not a number up to {WIDTH_MAX}",
                    short(&value)
                )
                .into()
            });
        }
        let mut count: Option<usize> = None;
        while let Some(digit) = letters.get(*at).and_then(|letter| letter.to_digit(10)) {
            let more = count.unwrap_or(0) * 10 + digit as usize;
            if more > WIDTH_MAX {
                return Err(format!("a width is larger than {WIDTH_MAX}").into());
            }
            count = Some(more);
            *at += 1;
        }
        Ok(count)
    }

    /// A field from behind its % on.
    fn field(&mut self, letters: &[char], at: &mut usize) -> Outcome<String> {
        let mut named = None;
        if letters.get(*at) == Some(&'(') {
            let rest = &letters[*at + 1..];
            let end = rest.iter().position(|letter| *letter == ')');
            let end = end.ok_or("in a % format ) is missing")?;
            let name: String = rest[..end].iter().collect();
            let Kind::Dictionary(dictionary) = &self.values.0 else {
                return Err(
                    format!("%({name}) needs a dictionary, not {}", short(self.values)).into(),
                );
            };
            let value = dictionary.value(&Value::from(name.as_str()))?;
            let value = value.ok_or_else(|| format!("%({name}): there is no key {name:?}"))?;
            named = Some(value.clone());
            self.uses_names = true;
            *at += end + 2;
        }
        let mut flags = String::new();
        while let Some(flag) = letters.get(*at).filter(|letter| "#0- +".contains(**letter)) {
            flags.push(*flag);
            *at += 1;
        }
        let width = self.count(letters, at)?.unwrap_or(0);
        let mut precision = None;
        if letters.get(*at) == Some(&'.') {
            *at += 1;
            precision = Some(self.count(letters, at)?.unwrap_or(0));
        }
        while letters
            .get(*at)
            .is_some_and(|letter| "hlL".contains(*letter))
        {
            *at += 1;
        }
        let code = letters.get(*at).copied();
        *at += 1;
        let code = code.ok_or("a % at the end has no code; write %% for the character")?;
        if code == '%' {
            return Ok("%".into());
        }
        let value = match named {
            Some(value) => value,
            None => self.value()?,
        };
        let (head, body) = converted(&value, code, precision, &flags)?;
        let missing = width.saturating_sub(head.chars().count() + body.chars().count());
        let is_number = !matches!(code, 's' | 'r' | 'a' | 'c');
        Ok(if flags.contains('-') {
            format!("{head}{body}{}", " ".repeat(missing))
        } else if flags.contains('0') && is_number {
            format!("{head}{}{body}", "0".repeat(missing))
        } else {
            format!("{}{head}{body}", " ".repeat(missing))
        })
    }
}

/// Sign with prefix, and the rest.
fn converted(
    value: &Value,
    code: char,
    precision: Option<usize>,
    flags: &str,
) -> Outcome<(String, String)> {
    let cut = |text: String| match precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    };
    let wrong = || format!("%{code} needs a number, not {}", short(value));
    let sign = |is_negative: bool| match is_negative {
        true => "-",
        false if flags.contains('+') => "+",
        false if flags.contains(' ') => " ",
        false => "",
    };
    Ok(match code {
        's' => (String::new(), cut(text(value))),
        'r' => (String::new(), cut(representation(value))),
        'a' => (String::new(), cut(ascii(value))),
        'c' => match (value.as_text(), value.as_integer()) {
            (Some(text), _) if text.chars().count() == 1 => (String::new(), text.to_owned()),
            (None, Some(code)) => {
                let letter = u32::try_from(code).ok().and_then(char::from_u32);
                let letter = letter.ok_or_else(|| format!("%c: {code} is not a character"))?;
                (String::new(), letter.to_string())
            }
            _ => return Err(format!("%c needs one character, not {}", short(value)).into()),
        },
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let is_decimal = matches!(code, 'd' | 'i' | 'u');
            let integer = match value.0 {
                Kind::Double(double) if is_decimal => exact_integer(double.trunc()),
                _ => value.as_integer(),
            };
            let integer = integer.ok_or_else(wrong)?;
            let base = if is_decimal { 'd' } else { code };
            let mut digits = in_base(integer.unsigned_abs(), base);
            let missing = precision.unwrap_or(0).saturating_sub(digits.len());
            digits.insert_str(0, &"0".repeat(missing));
            let prefix = match (flags.contains('#'), code) {
                (true, 'x') => "0x",
                (true, 'X') => "0X",
                (true, 'o') => "0o",
                _ => "",
            };
            (format!("{}{prefix}", sign(integer < 0)), digits)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let double = value.as_double().ok_or_else(wrong)?;
            let digits = with_code(
                double.abs(),
                code,
                precision.unwrap_or(6).min(1_000),
                flags.contains('#'),
            );
            let is_negative = double.is_sign_negative() && !double.is_nan();
            (sign(is_negative).to_owned(), digits)
        }
        _ => {
            return Err(format!(
                "%{code} is not a format; write %s, %d, %f, %g, %e, %x, %o, %c, %r, or %% for the character"
            )
            .into());
        }
    })
}
