//! State shared by the playback thread and the services.
#![allow(
    clippy::disallowed_methods,
    reason = "playback follows the steady clock of this host"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use pteros::interfaces::rosbag2_interfaces::srv::{BurstRequest, BurstResponse};
use pteros::service::PendingRequest;

use super::options::{PlaybackProgress, PlaybackSummary, PlayedPart};
use crate::saturating_instant::saturating_add;

/// Queued bursts. Further ones are answered at once, with no messages.
const BURSTS_MAX: usize = 16;

/// The state, and its changes as events.
pub(super) struct Shared {
    state: Mutex<PlayerState>,
    changed: Condvar,
}

/// Messages to publish while paused, as fast as possible.
pub(super) struct Burst {
    /// Remaining messages; `None` for all.
    left: Option<u64>,
    done: u64,
    /// Request to answer; `None` for the player's own burst, after which it ends.
    request: Option<PendingRequest<BurstRequest, BurstResponse>>,
}

impl Burst {
    pub(super) fn new(
        count: u64,
        request: Option<PendingRequest<BurstRequest, BurstResponse>>,
    ) -> Self {
        Self {
            left: (count > 0).then_some(count),
            done: 0,
            request,
        }
    }

    fn end(self) {
        if let Some(request) = self.request {
            let response = BurstResponse {
                actually_burst: self.done,
            };
            if let Err(error) = request.respond(response) {
                tracing::debug!("~/burst: {error}");
            }
        }
    }
}

/// Longest delay that a player catches up by playing faster.
const BEHIND_MAX: Duration = Duration::from_millis(100);

pub(super) struct PlayerState {
    pub is_paused: bool,
    pub rate: f64,
    pub is_stopped: bool,
    /// Whether the player has ended.
    pub is_ended: bool,
    pub seek: Option<u64>,
    /// Messages to publish while paused.
    pub steps: u64,
    bursts: VecDeque<Burst>,
    /// An instant and the bag time at it; `None` until the first message.
    pub anchor: Option<(Instant, u64)>,
    pub span: (u64, u64),
    /// Time of the last published message.
    played: Option<u64>,
    pub is_playing: bool,
    /// Part requested by `~/play`.
    pub play: Option<PlayedPart>,
    pub summary: Option<PlaybackSummary>,
}

impl PlayerState {
    pub(super) fn new(is_paused: bool, rate: f64, span: (u64, u64)) -> Self {
        Self {
            is_paused,
            rate,
            is_stopped: false,
            is_ended: false,
            seek: None,
            steps: 0,
            bursts: VecDeque::new(),
            anchor: None,
            span,
            played: None,
            is_playing: true,
            play: None,
            summary: None,
        }
    }

    /// Bag time at `now`.
    pub(super) fn position(&self, now: Instant) -> Option<u64> {
        let (at, time) = self.anchor?;
        if self.is_paused {
            return Some(time);
        }
        let passed = now.saturating_duration_since(at).as_secs_f64() * self.rate;
        let passed = Duration::try_from_secs_f64(passed).unwrap_or(Duration::MAX);
        Some(time.saturating_add(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Shifts all later messages by the delay of a message that is overdue by more than
    /// [`BEHIND_MAX`]. So the missed messages are not played in a burst. Returns the
    /// delay.
    pub(super) fn skip_delay(&mut self, now: Instant, due: Instant, time: u64) -> Option<Duration> {
        let behind = now.saturating_duration_since(due);
        if behind <= BEHIND_MAX {
            return None;
        }
        self.anchor = Some((now, time));
        Some(behind)
    }

    /// Anchors later messages at the current bag time.
    fn settle(&mut self) {
        let now = Shared::now();
        if let Some(time) = self.position(now) {
            self.anchor = Some((now, time));
        }
    }

    pub(super) fn set_paused(&mut self, is_paused: bool) {
        self.settle();
        self.is_paused = is_paused;
        self.settle();
    }

    /// Sets the rate. Returns false if it is not a number above 0.
    pub(super) fn set_rate(&mut self, rate: f64) -> bool {
        let is_valid = rate.is_finite() && rate > 0.0;
        if is_valid {
            self.settle();
            self.rate = rate;
        }
        is_valid
    }

    /// Stops the current part. Without one it does nothing: the next part is not
    /// affected.
    pub(super) fn stop(&mut self) {
        self.is_stopped |= self.is_playing;
    }

    /// Starts a part. Returns false if another one is playing, or the player has ended.
    pub(super) fn begin_part(&mut self, part: PlayedPart) -> bool {
        let possible = !self.is_playing && !self.is_ended;
        if possible {
            self.play = Some(part);
            self.is_playing = true;
        }
        possible
    }

    /// Plays nothing until [`begin_part`](Self::begin_part). Requests for the last part
    /// are discarded.
    pub(super) fn be_idle(&mut self) {
        self.end_bursts();
        self.is_playing = false;
        self.is_stopped = false;
        self.seek = None;
        self.steps = 0;
    }

    /// Publishes the next message while paused. Returns false if it plays, or has ended.
    pub(super) fn play_next(&mut self) -> bool {
        let possible = self.is_paused && self.is_playing;
        self.steps += u64::from(possible);
        possible
    }

    /// Starts a burst. Answers at once with no messages if it plays, has ended, or too
    /// many bursts are queued.
    pub(super) fn begin_burst(&mut self, burst: Burst) {
        if self.is_paused && self.is_playing && self.bursts.len() < BURSTS_MAX {
            self.bursts.push_back(burst);
        } else {
            burst.end();
        }
    }

    /// Whether a burst publishes the next message.
    pub(super) fn is_bursting(&self) -> bool {
        !self.bursts.is_empty()
    }

    pub(super) fn progress(&self) -> PlaybackProgress {
        let (start, end) = self.span;
        PlaybackProgress {
            time: self.played.unwrap_or(start),
            start,
            end,
            is_paused: self.is_paused,
        }
    }

    /// Counts a published message by its time, also for a burst, which ends after its
    /// last one.
    pub(super) fn count(&mut self, time: u64) {
        self.played = Some(time);
        let Some(burst) = self.bursts.front_mut() else {
            return;
        };
        burst.done += 1;
        if let Some(left) = &mut burst.left {
            *left -= 1;
            if *left == 0
                && let Some(burst) = self.bursts.pop_front()
            {
                self.is_stopped |= burst.request.is_none();
                burst.end();
            }
        }
    }

    /// Ends all bursts, because there are no more messages.
    pub(super) fn end_bursts(&mut self) {
        for burst in self.bursts.drain(..) {
            self.is_stopped |= burst.request.is_none();
            burst.end();
        }
    }
}

impl Shared {
    pub(super) fn new(state: PlayerState) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Reads the steady clock.
    pub(super) fn now() -> Instant {
        Instant::now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, PlayerState> {
        self.state.lock()
    }

    /// Changes the state and wakes the playback thread.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut PlayerState) -> R) -> R {
        let result = change(&mut self.state.lock());
        self.changed.notify_all();
        result
    }

    /// Whether the current part is to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits for a change of the state.
    pub(super) fn wait(&self, state: &mut MutexGuard<'_, PlayerState>) {
        self.changed.wait(state);
    }

    /// Waits for a change of the state, at most until `moment`.
    pub(super) fn wait_until(&self, state: &mut MutexGuard<'_, PlayerState>, moment: Instant) {
        self.changed.wait_until(state, moment);
    }

    /// Sleeps. Returns false if playback was stopped.
    pub(super) fn sleep(&self, span: Duration) -> bool {
        let end = saturating_add(Self::now(), span);
        let mut state = self.lock();
        while !state.is_stopped && Self::now() < end {
            self.wait_until(&mut state, end);
        }
        !state.is_stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn after_a_stop_of_thirty_seconds_nothing_is_played_in_a_burst() {
        let mut state = PlayerState::new(false, 2.0, (0, 100 * SECOND));
        let start = Shared::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        state.anchor = Some((start, 10 * SECOND));
        // The message of 14 s is due after 2 s, and the process continues after 32 s.
        let due = after(2);
        let delay = state.skip_delay(after(32), due, 14 * SECOND);
        assert_eq!(delay, Some(Duration::from_secs(30)));
        assert_eq!(state.position(after(32)), Some(14 * SECOND));
        assert_eq!(state.position(after(33)), Some(16 * SECOND));
        // A late wake-up on a loaded host is caught up.
        let due = after(34);
        assert_eq!(state.skip_delay(due + BEHIND_MAX, due, 18 * SECOND), None);
        assert_eq!(state.position(after(34)), Some(18 * SECOND));
    }
}
