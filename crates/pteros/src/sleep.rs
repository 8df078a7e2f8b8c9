//! Sleep and timeout futures, based on the timers of the polling executor.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_runtime::rtps::time::Instant;

use crate::node::{CurrentGroup, Node, NodeCore};
use crate::timer::{Timer, TimerCore, TimerSettings};

/// Future that completes after a time span; see [`Node::sleep`].
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    node: Arc<NodeCore>,
    deadline: Instant,
    timer: Option<SleepTimer>,
}

struct SleepTimer {
    state: Arc<Mutex<SleepState>>,
    /// Stops when dropped.
    _timer: Timer,
}

#[derive(Default)]
struct SleepState {
    is_elapsed: bool,
    waker: Option<Waker>,
}

impl Node {
    /// Returns a future that completes after `span` on the monotonic clock. The
    /// executor that runs the awaiting future drives it; no async runtime is
    /// needed.
    pub fn sleep(&self, span: Duration) -> Sleep {
        let core = self.core();
        Sleep {
            node: core.clone(),
            deadline: core.core().platform.now().after(span.into()),
            timer: None,
        }
    }

    /// Runs `future` with a time limit. Returns `None` and drops the future if it
    /// is not complete within `span`; dropping cancels a call.
    pub async fn timeout<F: Future>(&self, span: Duration, future: F) -> Option<F::Output> {
        let mut sleep = self.sleep(span);
        let mut future = pin!(future);
        poll_fn(move |context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            Pin::new(&mut sleep).poll(context).map(|()| None)
        })
        .await
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now = self.node.core().platform.now();
        if now >= self.deadline {
            return Poll::Ready(());
        }
        let nanos = self.deadline.as_nanos() - now.as_nanos();
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        let (node, waker) = (self.node.clone(), context.waker());
        let timer = self.timer.get_or_insert_with(|| {
            let state = Arc::<Mutex<SleepState>>::default();
            let shared = state.clone();
            let on_elapsed = move || {
                let mut state = shared.lock();
                state.is_elapsed = true;
                let waker = state.waker.take();
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
            };
            let group = CurrentGroup::of_node(node.key);
            let group = group.unwrap_or_else(|| node.default_callback_group.clone());
            // Set the waker before the timer can fire.
            state.lock().waker = Some(waker.clone());
            SleepTimer {
                state,
                _timer: TimerCore::start(
                    &node,
                    TimerSettings {
                        period_nanos: nanos,
                        repeats: false,
                        on_ros_time: false,
                    },
                    &group,
                    Box::new(on_elapsed),
                ),
            }
        });
        let mut state = timer.state.lock();
        if state.is_elapsed {
            return Poll::Ready(());
        }
        let previous = state.waker.replace(waker.clone());
        drop(state);
        drop(previous);
        Poll::Pending
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish()
    }
}
