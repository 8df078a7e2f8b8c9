//! Copies messages of bags into a new bag, unchanged.

use std::collections::BTreeMap;
use std::path::Path;

use crate::accounting::is_account;
use crate::error::BagError;
use crate::metadata::BagMetadata;
use crate::reader::{BagMessage, BagReader, MessageFilter};
use crate::writer::{BagOptions, BagWriter};

/// Copies the selected messages in the order of their log times. Topics without messages
/// and the custom data of the source are copied as well, except the recorder's accounts.
/// Blocks in the file system.
///
/// # Errors
/// The output exists or cannot be written. Damage of the input is noted in its
/// [`problems`](BagReader::problems).
pub fn copy(
    bag: &mut BagReader,
    filter: MessageFilter,
    output: &Path,
    options: BagOptions,
) -> Result<BagMetadata, BagError> {
    copy_and_report(bag, filter, output, options, |_| {})
}

/// As [`copy`]. `report` receives each message before it is copied, so that a program can
/// show progress.
///
/// # Errors
/// As [`copy`].
pub fn copy_and_report(
    bag: &mut BagReader,
    filter: MessageFilter,
    output: &Path,
    mut options: BagOptions,
    mut report: impl FnMut(&BagMessage),
) -> Result<BagMetadata, BagError> {
    let mut described = bag.describe();
    // The accounts apply to the source's recorder and all of its messages.
    described
        .custom_data
        .retain(|key, _| !is_account(key) && !options.custom_data.contains_key(key));
    options.custom_data.extend(described.custom_data);
    if !described.ros_distro.is_empty() {
        options.ros_distro = described.ros_distro;
    }
    let mut writer = BagWriter::create(output, options)?;
    let mut channels = BTreeMap::new();
    for (at, recorded) in bag.topics().iter().enumerate() {
        if filter
            .topics
            .as_ref()
            .is_none_or(|chosen| chosen.contains(&at))
        {
            let channel = writer.add_topic(recorded.topic.clone())?;
            channels.insert(at, (channel, recorded.topic.is_transient_local()));
        }
    }
    for message in bag.messages(filter) {
        report(&message);
        if let Some((channel, is_transient_local)) = channels.get(&message.topic) {
            let (log, publish) = (message.log_time, message.publish_time);
            if *is_transient_local {
                writer.write_transient_local(*channel, None, log, publish, &message.payload)?;
            } else {
                writer.write(*channel, log, publish, &message.payload)?;
            }
        }
    }
    writer.finish(&BTreeMap::new())
}
