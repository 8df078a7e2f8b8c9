//! When readers are asked for acknowledgements that have not come: each destination
//! at its own pace, for one that has no time, or is gone, says nothing of the others.

use super::config::HeartbeatConfig;
use super::{TIMER_HEARTBEAT, Writer};
use crate::pace::Pace;
use crate::time::Instant;

/// When one destination is asked.
#[derive(Debug)]
pub(super) struct Asking {
    pace: Pace,
    /// When it is asked next, if it owes something then.
    at: Instant,
    /// The last number it was asked for, of those meant for every reader.
    through: i64,
    /// How often it was asked since it answered.
    unanswered: u32,
}

impl Asking {
    /// It owes nothing, and was asked nothing.
    pub const fn new(config: &HeartbeatConfig) -> Self {
        Self {
            pace: config.pace(false),
            at: Instant::FAR_FUTURE,
            through: 0,
            unanswered: 0,
        }
    }

    /// How often it was asked since it answered.
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    fn begin_anew(&mut self, config: &HeartbeatConfig, is_heard: bool) {
        if !fault!("heartbeat-pause-not-reset") {
            self.pace = config.pace(is_heard);
        }
    }

    /// It has answered. True if it had been silent for long.
    pub fn note_answer(&mut self, config: &HeartbeatConfig) -> bool {
        core::mem::take(&mut self.unanswered) > config.silent
    }
}

impl Writer {
    /// Owes a heartbeat to every group with something unacknowledged whose time
    /// it is, and its next one after a longer pause.
    pub(super) fn ask_for_acks(&mut self, now: Instant) {
        crate::fault::step();
        // Nobody owes an answer to what was not sent.
        let sent = self.cursor.number.saturating_sub(1);
        let shared = self.last_shared.min(sent);
        let news_are_due = self.news_at <= now;
        let mut next = match news_are_due {
            // Soon after the rest is sent somebody will.
            true if sent < self.last_shared => now.after(self.config.heartbeat.first),
            true => Instant::FAR_FUTURE,
            false => self.news_at,
        };
        self.news_at = next;
        for reader in &self.readers {
            if !reader.owes_ack(shared) {
                continue;
            }
            let Some(group) = self.groups.get_mut(reader.group) else {
                continue;
            };
            let is_heard = group.unheard == 0;
            let asking = &mut group.asking;
            if asking.through < shared && news_are_due {
                asking.through = shared;
                asking.begin_anew(&self.config.heartbeat, is_heard);
                asking.at = now;
            }
            if asking.at <= now {
                asking.at = match fault!("heartbeat-not-repeated") {
                    true => Instant::FAR_FUTURE,
                    false => now.after(asking.pace.pause()),
                };
                if !group.heartbeat_due {
                    asking.unanswered = asking.unanswered.saturating_add(1);
                }
                group.heartbeat_due = true;
                self.has_debts = true;
                // Who waits for room is not made to wait longer.
                let longest = match self.blocked {
                    true => self.config.heartbeat.max,
                    false => self.config.heartbeat.longest(asking.unanswered),
                };
                asking.pace.advance(longest);
            }
            next = next.min(asking.at);
        }
        self.timers.set(TIMER_HEARTBEAT, next);
    }

    /// What was just written is asked for at `at`, or earlier.
    pub(super) fn ask_for_news(&mut self, at: Instant) {
        self.news_at = self.news_at.min(at);
        self.timers.set_no_later(TIMER_HEARTBEAT, at);
    }

    /// One group is asked at `at`, or earlier.
    pub(super) fn ask_group(&mut self, group: usize, at: Instant) {
        self.note_news_of(group);
        if let Some(group) = self.groups.get_mut(group) {
            group.asking.at = group.asking.at.min(at);
            self.timers.set_no_later(TIMER_HEARTBEAT, at);
        }
    }

    /// There is something new for a group, or it has told something new: it is asked
    /// at short pauses again.
    pub(super) fn note_news_of(&mut self, group: usize) {
        if let Some(group) = self.groups.get_mut(group) {
            let is_heard = group.unheard == 0;
            group.asking.begin_anew(&self.config.heartbeat, is_heard);
        }
    }

    /// What was sent to a group asks it for all up to `through`: not before it is time
    /// for news is it asked again.
    pub(super) fn note_asked(&mut self, now: Instant, group: usize, through: i64) {
        // They may have been asked for while this was on its way.
        let next = match self.news_at {
            Instant::FAR_FUTURE => now.after(self.config.heartbeat.first),
            at => at,
        };
        self.note_news_of(group);
        if let Some(group) = self.groups.get_mut(group) {
            group.asking.through = group.asking.through.max(through);
            group.asking.at = next;
            self.timers.set_no_later(TIMER_HEARTBEAT, next);
        }
    }

    /// Somebody waits for acknowledgements: they are asked for at this time, or
    /// earlier.
    pub fn hurry(&mut self, at: Instant) {
        if self.all_acked {
            return;
        }
        for group in &mut self.groups {
            group.asking.at = group.asking.at.min(at);
        }
        self.ask_for_news(at);
    }

    /// All was acknowledged: nobody is asked for anything.
    pub(super) fn ask_nobody(&mut self) {
        for group in &mut self.groups {
            group.asking.at = Instant::FAR_FUTURE;
        }
        self.news_at = Instant::FAR_FUTURE;
        self.timers.stop(TIMER_HEARTBEAT);
    }
}
