//! The recorder as a component.
#![allow(
    clippy::disallowed_methods,
    reason = "the recorder looks for topics by the steady clock of this host"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pteros::component::{Component, ComponentError};
use pteros::prelude::*;
use pteros_bag::mcap::Compression;
use pteros_bag::{BagOptions, RecorderOptions, StoragePreset};

use crate::parameters::{count, duration, filter, folder};

/// Time between two looks at the graph.
const POLL_PERIOD: Duration = Duration::from_millis(50);

/// Records topics until it is unloaded, and offers the services of rosbag2's recorder.
///
/// Parameters:
/// - `storage.uri`: the folder, which must not exist.
/// - `record.all`, `record.all_topics`, `record.topics`, `record.regex` and others of
///   `pteros bag record`; `record.start_paused`.
/// - `storage.max_bagfile_size` in bytes, `storage.max_bagfile_duration` in seconds.
/// - `storage.max_cache_size` in bytes, `storage.snapshot_mode`.
/// - `storage.storage_preset_profile`, `storage.compression` (none, lz4 or zstd).
pub struct Recorder {
    node: Node,
    recorder: Arc<Mutex<Option<pteros_bag::Recorder>>>,
    _timer: Timer,
}

impl Component for Recorder {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("rosbag2_recorder"))?;
        let folder = folder(&node)?;
        let recorder = pteros_bag::Recorder::start(&node, &folder, recorder_options(&node)?)?;
        let recorder = Arc::new(Mutex::new(Some(recorder)));
        let polled = recorder.clone();
        let log = node.logger();
        let timer = node.create_timer(POLL_PERIOD, move || {
            let mut polled = polled.lock();
            let Some(recorder) = polled.as_mut() else {
                return;
            };
            for note in recorder.poll(Instant::now()) {
                pteros::info!(log, "{note}");
            }
        })?;
        Ok(Self {
            node,
            recorder,
            _timer: timer,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

impl Drop for Recorder {
    /// Ends the bag, and reports what was lost.
    fn drop(&mut self) {
        let Some(recorder) = self.recorder.lock().take() else {
            return;
        };
        let log = self.node.logger();
        match recorder.finish() {
            Ok(summary) => {
                let messages = summary.messages();
                pteros::info!(log, "{messages} messages, {} lost", summary.lost());
                for (topic, account) in &summary.accounts {
                    if account.lost() > 0 {
                        pteros::warn!(log, "{topic}: lost messages: {account}");
                    }
                }
                for (topic, reason) in &summary.unrecorded {
                    pteros::warn!(log, "{topic}: not recorded: {reason}");
                }
                if summary.unpublished_events > 0 {
                    let count = summary.unpublished_events;
                    pteros::warn!(log, "{count} events of the recorder were not published");
                }
                if let Some(problem) = summary.problem {
                    pteros::error!(log, "{problem}");
                }
            }
            Err(error) => pteros::error!(log, "{error}"),
        }
    }
}

fn recorder_options(node: &Node) -> Result<RecorderOptions, ComponentError> {
    let flag = |name: &str| -> Result<bool, ComponentError> {
        Ok(node.declare_parameter(name, false)?.value())
    };
    let text = |name: &str, default: &str| -> Result<String, ComponentError> {
        Ok(node.declare_parameter(name, default.to_owned())?.value())
    };
    let all = flag("record.all")?;
    let mut filter = filter(node, "record", false)?;
    filter.all_topics = all || flag("record.all_topics")?;
    filter.all_services = all || flag("record.all_services")?;
    filter.all_actions = all || flag("record.all_actions")?;
    filter.include_hidden = flag("record.include_hidden_topics")?;
    let mut bag = BagOptions::default();
    let preset: StoragePreset = text("storage.storage_preset_profile", "none")?.parse()?;
    preset.apply(&mut bag);
    let compression: Compression = text("storage.compression", "none")?.parse()?;
    if compression != Compression::None {
        bag.compression = compression;
    }
    let split_bytes = count(node, "storage.max_bagfile_size", 0)?;
    let split_seconds = count(node, "storage.max_bagfile_duration", 0)?;
    bag.split_bytes = (split_bytes > 0).then_some(split_bytes);
    bag.split_duration = (split_seconds > 0).then(|| Duration::from_secs(split_seconds));
    let defaults = RecorderOptions::default();
    let cache = i64::try_from(defaults.cache_bytes)?;
    let interval = duration(node, "record.topic_polling_interval")?;
    Ok(RecorderOptions {
        filter,
        bag,
        cache_bytes: usize::try_from(count(node, "storage.max_cache_size", cache)?)?,
        start_paused: flag("record.start_paused")?,
        is_snapshot: flag("storage.snapshot_mode")?,
        include_unpublished: flag("record.include_unpublished_topics")?,
        ignore_leaf_topics: flag("record.ignore_leaf_topics")?,
        no_discovery: flag("record.is_discovery_disabled")?,
        polling_interval: if interval.is_zero() {
            defaults.polling_interval
        } else {
            interval
        },
        ..defaults
    })
}
