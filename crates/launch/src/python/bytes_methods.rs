//! Methods of bytes.

use super::fault::Outcome;
use super::machine::{Arguments, Machine};
use super::value::{Kind, Value};

pub(super) const NAMES: &[&str] = &["count", "decode", "endswith", "find", "hex", "startswith"];

pub(super) fn call(
    machine: &mut Machine,
    bytes: &[u8],
    name: &str,
    arguments: &Arguments,
) -> Outcome<Value> {
    machine.steps(bytes.len() / 16)?;
    let part = match arguments.positional.first().map(|one| &one.0) {
        Some(Kind::Bytes(part)) => Some(&**part),
        _ => None,
    };
    match (name, part) {
        ("decode", None) => match std::str::from_utf8(bytes) {
            Ok(text) => machine.text(text),
            Err(error) => Err(format!("decode: byte {} is not UTF-8", error.valid_up_to()).into()),
        },
        ("hex", None) => {
            machine.check_text(2 * bytes.len())?;
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Ok(text.into())
        }
        ("startswith", Some(part)) => Ok(bytes.starts_with(part).into()),
        ("endswith", Some(part)) => Ok(bytes.ends_with(part).into()),
        ("find", Some(part)) => {
            machine.steps(bytes.len())?;
            let mut windows = bytes.windows(part.len().max(1));
            let found = match part.is_empty() {
                true => Some(0),
                false => windows.position(|window| window == part),
            };
            Ok(found.map_or(-1, |at| at as i128).into())
        }
        ("count", Some(part)) if !part.is_empty() => {
            machine.steps(bytes.len())?;
            let (mut count, mut at) = (0i128, 0);
            while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= part.len()) {
                let is_here = rest.starts_with(part);
                count += i128::from(is_here);
                at += if is_here { part.len() } else { 1 };
            }
            Ok(count.into())
        }
        _ => Err(format!("{name} needs bytes, as b'…'").into()),
    }
}
