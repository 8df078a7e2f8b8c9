//! Misspelt names: a verb that waits for a topic, service or action ends at once if the
//! graph lacks it and has a name that differs by one slip. Any other name is waited for,
//! because its node may start later.

use anyhow::{Result, bail};
use pteros::msg::suggest::{did_you_mean, is_slip_of};

/// Refuses `name` if it is not among `known`, and one slip makes it one of them. `list` is
/// the command that lists the known ones. Allocates for the comparison only.
///
/// # Errors
/// The name is misspelt. The text has the name that is meant.
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
    match known.iter().find(|known| is_slip_of(name, known)) {
        None => Ok(()),
        Some(meant) => {
            bail!("unknown {kind} '{name}'; did you mean {meant}? See all of them with: {list}")
        }
    }
}

/// The warning about a topic that the graph lacks, with close names among `known`.
pub fn not_published<'a>(topic: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let others = known.into_iter().filter(|known| *known != topic);
    let similar = did_you_mean(topic, others);
    let similar = similar.trim_end_matches('.');
    format!("WARNING: topic [{topic}] does not appear to be published yet{similar}")
}

/// The warning about a topic without subscriptions, if one with a subscription differs by
/// one slip from it.
pub fn not_subscribed<'a>(
    topic: &str,
    subscribed: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let mut subscribed = subscribed.into_iter();
    let meant = subscribed.find(|known| is_slip_of(topic, known))?;
    Some(format!(
        "WARNING: topic [{topic}] has no subscription; did you mean {meant}?"
    ))
}

#[cfg(test)]
mod tests {
    use super::{not_published, not_subscribed, refuse_misspelt};

    #[test]
    fn a_topic_with_subscriptions_alone_is_not_suggested_for_itself() {
        let warning = not_published("/chatter", ["/chatter", "/scan"]);
        assert!(!warning.contains("did you mean"), "{warning}");
        let warning = not_published("/chater", ["/chatter", "/scan"]);
        assert!(warning.ends_with("; did you mean /chatter?"), "{warning}");
    }

    #[test]
    fn a_publisher_is_warned_of_a_close_topic_alone() {
        let warning = |name: &str| not_subscribed(name, ["/cmd_vel", "/scan1"]);
        assert_eq!(
            warning("/cmd_vle").as_deref(),
            Some("WARNING: topic [/cmd_vle] has no subscription; did you mean /cmd_vel?")
        );
        assert_eq!(warning("/scan2"), None);
        assert_eq!(warning("/odometry"), None);
    }

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
        assert_eq!(refuse("/front/scan"), Ok(()));
    }
}
