//! Services of the player, equal to those of rosbag2's player.

use std::sync::Arc;
use std::time::Duration;

use pteros::error::CreateError;
use pteros::interfaces::builtin_interfaces;
use pteros::interfaces::rosbag2_interfaces::srv;
use pteros::service::PendingRequest;
use pteros::{Node, Service};

use super::options::PlayedPart;
use super::state::{Burst, Shared};

/// Service servers, removed when dropped.
pub(super) struct Services {
    _pause: Service<srv::Pause>,
    _resume: Service<srv::Resume>,
    _toggle: Service<srv::TogglePaused>,
    _is_paused: Service<srv::IsPaused>,
    _next: Service<srv::PlayNext>,
    _burst: Service<srv::Burst>,
    _play: Service<srv::Play>,
    _rate: Service<srv::GetRate>,
    _set_rate: Service<srv::SetRate>,
    _seek: Service<srv::Seek>,
    _stop: Service<srv::Stop>,
}

impl Services {
    pub(super) fn new(node: &Node, shared: &Arc<Shared>) -> Result<Self, CreateError> {
        let [
            pause,
            resume,
            toggle,
            is_paused,
            next,
            burst,
            play,
            rate,
            set_rate,
            seek,
            stop,
        ] = std::array::from_fn(|_| shared.clone());
        Ok(Self {
            _pause: node.create_service("~/pause", move |_| {
                pause.change(|state| state.set_paused(true));
                srv::PauseResponse {}
            })?,
            _resume: node.create_service("~/resume", move |_| {
                resume.change(|state| state.set_paused(false));
                srv::ResumeResponse {}
            })?,
            _toggle: node.create_service("~/toggle_paused", move |_| {
                toggle.change(|state| state.set_paused(!state.is_paused));
                srv::TogglePausedResponse {}
            })?,
            _is_paused: node.create_service("~/is_paused", move |_| srv::IsPausedResponse {
                paused: is_paused.lock().is_paused,
            })?,
            _next: node.create_service("~/play_next", move |_| srv::PlayNextResponse {
                success: next.change(super::state::PlayerState::play_next),
            })?,
            _burst: Service::deferred(
                node,
                "~/burst",
                move |request: PendingRequest<srv::BurstRequest, srv::BurstResponse>| {
                    let count = request.request().num_messages;
                    burst.change(|state| state.begin_burst(Burst::new(count, Some(request))));
                },
            )?,
            _play: node.create_service::<srv::Play>("~/play", move |request| {
                let part = played_part(&request);
                srv::PlayResponse {
                    success: play.change(|state| state.begin_part(part)),
                }
            })?,
            _rate: node.create_service("~/get_rate", move |_| srv::GetRateResponse {
                rate: rate.lock().rate,
            })?,
            _set_rate: node.create_service::<srv::SetRate>("~/set_rate", move |request| {
                srv::SetRateResponse {
                    success: set_rate.change(|state| state.set_rate(request.rate)),
                }
            })?,
            _seek: node.create_service::<srv::Seek>("~/seek", move |request| {
                let time = from_stamp(&request.time);
                let success = seek.change(|state| {
                    let (start, end) = state.span;
                    let possible = (start..=end).contains(&time) && state.is_playing;
                    if possible {
                        state.seek = Some(time);
                    }
                    possible
                });
                srv::SeekResponse { success }
            })?,
            _stop: node.create_service("~/stop", move |_| {
                stop.change(super::state::PlayerState::stop);
                srv::StopResponse {}
            })?,
        })
    }
}

/// Negative values of the request mean no limit.
fn played_part(request: &srv::PlayRequest) -> PlayedPart {
    let duration = &request.playback_duration;
    let seconds = u64::try_from(duration.sec).ok();
    let until = &request.playback_until_timestamp;
    PlayedPart {
        start_offset: Duration::from_nanos(from_stamp(&request.start_offset)),
        duration: seconds.map(|seconds| Duration::new(seconds, duration.nanosec)),
        until: (until.sec >= 0).then(|| from_stamp(until).saturating_add(1)),
    }
}

fn from_stamp(stamp: &builtin_interfaces::msg::Time) -> u64 {
    let seconds = u64::try_from(stamp.sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::from(stamp.nanosec)
}
