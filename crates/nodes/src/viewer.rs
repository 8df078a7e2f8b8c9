//! `rviz2` and `joint_state_publisher_gui`: programs with a window, whose part the page of
//! `pteros view` plays. They end in a [`CommandRequest::View`].
//!
//! `rviz2 -d FILE` opens the page with the displays of that file. The joints panel of the
//! page publishes joint states, as the sliders of `joint_state_publisher_gui` do.

use pteros::Context;
use pteros::NodeOptions;
use pteros::component::ComponentError;

use crate::running_node::{CommandRequest, RunningNode};

/// Opens a page of its own beside others.
const OPEN: [&str; 3] = ["--open", "--port", "0"];
/// Options of rviz2 with a value, besides the file. The page has no use for them.
const OTHERS: [&str; 6] = [
    "-f",
    "--fixed-frame",
    "-s",
    "--splash-screen",
    "-t",
    "--title-format",
];

/// `rviz2 [-d FILE]`.
pub(crate) fn start_rviz(
    _: &Context,
    _: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    Err(CommandRequest::View(rviz_words(words)?).into())
}

/// `joint_state_publisher_gui`.
pub(crate) fn start_joint_sliders(
    _: &Context,
    _: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let words = OPEN.iter().chain(&["--allow", "publish"]);
    let words = words.map(|word| (*word).to_owned()).collect();
    Err(CommandRequest::View(words).into())
}

/// The arguments of `pteros view` for those of rviz2.
fn rviz_words(words: &[String]) -> Result<Vec<String>, String> {
    let mut view: Vec<String> = OPEN.iter().map(|word| (*word).to_owned()).collect();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut file = None;
        if matches!(word.as_str(), "-d" | "--display-config") {
            let value = words.next().filter(|value| !value.is_empty());
            file = Some(
                value.ok_or_else(|| format!("{word} needs a file after it: {word} FILE.rviz"))?,
            );
        } else if OTHERS.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            file = Some(word);
        }
        if let Some(file) = file {
            view.extend(["--rviz".to_owned(), file.clone()]);
        }
    }
    Ok(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_rviz2_goes_to_the_page() {
        let words = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            rviz_words(&words).map(|words| words.join(" "))
        };
        for (line, expected) in [
            ("", "--open --port 0"),
            ("-d a.rviz", "--open --port 0 --rviz a.rviz"),
            (
                "-f map --display-config b.rviz -l",
                "--open --port 0 --rviz b.rviz",
            ),
            ("c.rviz --fixed-frame odom", "--open --port 0 --rviz c.rviz"),
        ] {
            assert_eq!(words(line), Ok(expected.into()), "{line}");
        }
        assert_eq!(
            words("-d"),
            Err("-d needs a file after it: -d FILE.rviz".into())
        );
    }
}
