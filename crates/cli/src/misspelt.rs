//! Misspelt names: a verb that waits for a topic, service or action ends at once if the
//! graph has a close name and not this one. A name with nothing close to it is waited
//! for, because its node may start later.

use anyhow::{Result, bail};
use pteros::msg::suggest::close_names;

/// Refuses `name` if it is not among `known` and a close name is. `list` is the command
/// that lists the known ones. Allocates for the comparison only.
///
/// # Errors
/// The name is misspelt. The text has up to three close names.
pub fn refuse_misspelt<'a>(
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    list: &str,
) -> Result<()> {
    let known: Vec<&str> = known.into_iter().collect();
    if known.contains(&name) {
        return Ok(());
    }
    let close = close_names(name, known);
    match close.split_last() {
        None => Ok(()),
        Some((last, others)) => {
            let names = match others {
                [] => last.clone(),
                others => format!("{} or {last}", others.join(", ")),
            };
            bail!("unknown {kind} '{name}'; did you mean {names}? See all of them with: {list}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::refuse_misspelt;

    #[test]
    fn a_close_name_ends_the_wait_and_a_strange_or_known_one_does_not() {
        let refuse = |name: &str| {
            let known = ["/chatter", "/scan"];
            refuse_misspelt("topic", name, known, "pteros topic list").map_err(|e| e.to_string())
        };
        let error = refuse("/chater").unwrap_err();
        assert!(
            error.starts_with("unknown topic '/chater'; did you mean /chatter?"),
            "{error}"
        );
        assert_eq!(refuse("/chatter"), Ok(()));
        assert_eq!(refuse("/odometry"), Ok(()));
    }
}
