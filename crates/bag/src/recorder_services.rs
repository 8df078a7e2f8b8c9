//! Services of the recorder, equal to those of rosbag2's recorder.

use std::sync::Arc;

use pteros::error::CreateError;
use pteros::interfaces::rosbag2_interfaces::srv;
use pteros::{Node, Service};

use crate::message_cache::MessageCache;

/// Service servers, removed when dropped.
pub(crate) struct Services {
    _pause: Service<srv::Pause>,
    _resume: Service<srv::Resume>,
    _is_paused: Service<srv::IsPaused>,
    _split: Service<srv::SplitBagfile>,
    _snapshot: Option<Service<srv::Snapshot>>,
}

impl Services {
    pub(crate) fn new(
        node: &Node,
        cache: &Arc<MessageCache>,
        is_snapshot: bool,
    ) -> Result<Self, CreateError> {
        let [pause, resume, is_paused, split, snapshot] = std::array::from_fn(|_| cache.clone());
        let take_snapshot = move |_| srv::SnapshotResponse {
            success: snapshot.snapshot(),
        };
        let snapshot = if is_snapshot {
            Some(node.create_service("~/snapshot", take_snapshot)?)
        } else {
            None
        };
        Ok(Self {
            _snapshot: snapshot,
            _pause: node.create_service("~/pause", move |_| {
                pause.set_paused(true);
                srv::PauseResponse {}
            })?,
            _resume: node.create_service("~/resume", move |_| {
                resume.set_paused(false);
                srv::ResumeResponse {}
            })?,
            _is_paused: node.create_service("~/is_paused", move |_| srv::IsPausedResponse {
                paused: is_paused.is_paused(),
            })?,
            _split: node.create_service("~/split_bagfile", move |_| {
                split.split();
                srv::SplitBagfileResponse {}
            })?,
        })
    }
}
