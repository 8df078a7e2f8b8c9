//! Time for futures: a sleep on the timers of the executor that polls them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rmw::rtps::time::Instant;

use super::Within;
use crate::node::{Node, NodeCore};
use crate::timer::{Timer, TimerCore};

/// Is done when its time has come; see [`Node::sleep`].
#[must_use = "it sleeps when it is awaited"]
pub struct Sleep {
    node: Arc<NodeCore>,
    until: Instant,
    alarm: Option<Alarm>,
}

struct Alarm {
    rings: Arc<Mutex<Rings>>,
    /// Stops when dropped.
    _timer: Timer,
}

#[derive(Default)]
struct Rings {
    rang: bool,
    waker: Option<Waker>,
}

impl Node {
    /// A future that is done `span` from now, by the monotonic clock. Needs the
    /// executor that runs the future that awaits it, and no runtime.
    pub fn sleep(&self, span: Duration) -> Sleep {
        let core = self.core();
        Sleep {
            node: core.clone(),
            until: core.core().env.now().after(span.into()),
            alarm: None,
        }
    }

    /// `future` with a time limit: `None` if it is not done within `span`; it is
    /// dropped then, which takes a call back.
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
        let now = self.node.core().env.now();
        if now >= self.until {
            return Poll::Ready(());
        }
        let nanos = self.until.as_nanos() - now.as_nanos();
        let (node, waker) = (self.node.clone(), context.waker());
        let alarm = self.alarm.get_or_insert_with(|| {
            let rings = Arc::<Mutex<Rings>>::default();
            let bell = rings.clone();
            let ring = move || {
                let mut rings = bell.lock();
                rings.rang = true;
                let waker = rings.waker.take();
                drop(rings);
                if let Some(waker) = waker {
                    waker.wake();
                }
            };
            let group = Within::of(&node);
            // Before it stands in line, who is to be woken.
            rings.lock().waker = Some(waker.clone());
            Alarm {
                rings,
                _timer: TimerCore::start(&node, (nanos, false, false), &group, Box::new(ring)),
            }
        });
        let mut rings = alarm.rings.lock();
        if rings.rang {
            return Poll::Ready(());
        }
        let left = rings.waker.replace(waker.clone());
        drop(rings);
        drop(left);
        Poll::Pending
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("until", &self.until).finish()
    }
}
