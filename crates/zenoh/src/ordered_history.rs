//! A transient-local subscription: declares what it needs of Zenoh, sends the queries of
//! [`HistoryOrder`] to publishers, and delivers samples in order.
//!
//! It replaces the subscriber of zenoh-ext, and has its keys and parameters. That one drops
//! all samples of a publisher after one with a forged number, and waits for every queryable
//! that matches its query.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rtps::content_filter::ContentFilter;
use zenoh::key_expr::KeyExpr;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::{ConsolidationMode, QueryTarget, Reply, ReplyKeyExpr};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};

use crate::declarer::Declarer;
use crate::history_order::{HistoryOrder, HistoryQuery, HistoryReply, Source};
use crate::session_id::SessionId;

/// Timeout of a history query. Samples wait less: see
/// [`STALL_MAX`](crate::history_order::STALL_MAX).
const HISTORY_TIMEOUT: Duration = Duration::from_secs(600);

/// The content filter of a subscription, which may be replaced.
pub type SharedFilter = Arc<Mutex<Option<Arc<ContentFilter>>>>;

/// One transient-local subscription. Declared until it is dropped.
pub struct OrderedHistory {
    _samples: Subscriber<()>,
    _publishers: Subscriber<()>,
    _heartbeats: Option<Subscriber<()>>,
    _token: LivelinessToken,
}

/// Parameters of a subscription.
pub struct HistorySpec {
    /// Key of the samples.
    pub key: KeyExpr<'static>,
    /// History depth.
    pub depth: usize,
    /// Whether missing samples are queried.
    pub is_reliable: bool,
    /// The content filter.
    pub filter: SharedFilter,
}

struct Shared {
    session: Session,
    key: KeyExpr<'static>,
    order: Mutex<HistoryOrder<Sample>>,
    /// Whether a job of the declarer ends the waits without progress.
    is_timed: AtomicBool,
    declarer: Arc<Declarer>,
    filter: SharedFilter,
    deliver: Box<dyn Fn(&Sample) + Send + Sync>,
}

impl OrderedHistory {
    /// Declares the subscription and queries the history. `deliver` must not block.
    ///
    /// Blocks while Zenoh's transmission queue is full.
    ///
    /// # Errors
    /// Zenoh's.
    pub fn declare(
        session: &Session,
        declarer: &Arc<Declarer>,
        spec: HistorySpec,
        deliver: impl Fn(&Sample) + Send + Sync + 'static,
    ) -> zenoh::Result<Self> {
        let HistorySpec {
            key,
            depth,
            is_reliable,
            filter,
        } = spec;
        let shared = Arc::new(Shared {
            session: session.clone(),
            key: key.clone(),
            order: Mutex::new(HistoryOrder::new(
                declarer.now(),
                depth,
                is_reliable,
                |sample| sample.payload().len(),
            )),
            is_timed: AtomicBool::new(false),
            declarer: declarer.clone(),
            filter,
            deliver: Box::new(deliver),
        });
        let receiver = shared.clone();
        let samples = session
            .declare_subscriber(key.clone())
            .callback(move |sample| receiver.receive(sample))
            .allowed_origin(Locality::Remote)
            .wait()?;
        let of_publishers = format!("{key}/@adv/pub/**");
        let receiver = shared.clone();
        let heartbeats = session
            .declare_subscriber(of_publishers.clone())
            .callback(move |heartbeat| receiver.note_heartbeat(&heartbeat))
            .allowed_origin(Locality::Remote);
        let heartbeats = is_reliable.then(|| heartbeats.wait()).transpose()?;
        shared.query_all()?;
        let publishers = session
            .liveliness()
            .declare_subscriber(of_publishers)
            .history(true)
            .callback(move |token| shared.note_publisher(&token))
            .wait()?;
        let id = samples.id();
        let (id, entity) = (id.zid(), id.eid());
        let token = session.liveliness();
        let token = token.declare_token(format!("{key}/@adv/sub/{id}/{entity}/_"));
        Ok(Self {
            _samples: samples,
            _publishers: publishers,
            _heartbeats: heartbeats,
            _token: token.wait()?,
        })
    }
}

impl Shared {
    /// Handles a live sample. Blocks only while Zenoh sends the query.
    fn receive(self: &Arc<Self>, sample: Sample) {
        let Some((source, number)) = origin(&sample) else {
            return (self.deliver)(&sample);
        };
        let query = self.with_filter(|passes| {
            // Held while delivering, so that the end of a query is handled afterwards.
            let mut order = self.order.lock();
            let taken = order.take(self.declarer.now(), source, number, sample, passes);
            taken.deliver.iter().for_each(&self.deliver);
            taken.query
        });
        self.send(query);
        self.watch();
    }

    /// Ends the waits that have no progress, now and later.
    fn watch(self: &Arc<Self>) {
        let next = self.order.lock().next_expiry();
        let Some(at) = next else { return };
        if self.is_timed.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::downgrade(self);
        self.declarer.push_at(at, move || {
            if let Some(shared) = shared.upgrade() {
                shared.expire();
            }
        });
    }

    fn expire(self: &Arc<Self>) {
        self.is_timed.store(false, Ordering::Release);
        let now = self.declarer.now();
        self.apply(|order, passes| order.expire(now, passes));
    }

    /// Runs a step, delivers its samples and sends its queries.
    fn apply(
        self: &Arc<Self>,
        step: impl FnOnce(
            &mut HistoryOrder<Sample>,
            Option<&dyn Fn(&Sample) -> bool>,
        ) -> (Vec<Sample>, Vec<HistoryQuery>),
    ) {
        let queries = self.with_filter(|passes| {
            let mut order = self.order.lock();
            let (waited, queries) = step(&mut order, passes);
            waited.iter().for_each(&self.deliver);
            queries
        });
        for query in queries {
            self.send(Some(query));
        }
        self.watch();
    }

    /// Handles a change of a publisher's token.
    fn note_publisher(self: &Arc<Self>, token: &Sample) {
        let Some(source) = source_of(token.key_expr().as_str()) else {
            return;
        };
        let is_filtered = self.filter.lock().is_some();
        let mut order = self.order.lock();
        let query = match token.kind() {
            SampleKind::Put => order.note_there(self.declarer.now(), source, is_filtered),
            SampleKind::Delete => {
                order.note_gone(source);
                None
            }
        };
        drop(order);
        self.send(query);
        self.watch();
    }

    /// Handles the heartbeat of a publisher, whose payload is its last number.
    fn note_heartbeat(self: &Arc<Self>, heartbeat: &Sample) {
        let source = source_of(heartbeat.key_expr().as_str());
        let payload = heartbeat.payload();
        let Some(source) = source.filter(|_| payload.len() == size_of::<u32>()) else {
            return;
        };
        let Ok(number) = payload.to_bytes().as_ref().try_into() else {
            return;
        };
        let number = i64::from(u32::from_le_bytes(number));
        let is_filtered = self.filter.lock().is_some();
        let now = self.declarer.now();
        let mut order = self.order.lock();
        let query = order.note_heartbeat(now, source, number, is_filtered);
        drop(order);
        self.send(query);
        self.watch();
    }

    /// Queries the history of all publishers.
    fn query_all(self: &Arc<Self>) -> zenoh::Result<()> {
        let max = self.order.lock().max(self.filter.lock().is_some());
        let end = End {
            shared: self.clone(),
            of: None,
        };
        self.get(format!("{}/@adv/**?_max={max}", self.key), end)?;
        self.watch();
        Ok(())
    }

    fn send(self: &Arc<Self>, query: Option<HistoryQuery>) {
        let Some(query) = query else { return };
        let HistoryQuery {
            source: (id, entity),
            id: number,
            from,
            to,
            max,
        } = query;
        let id = SessionId::from_le_bytes(id);
        let selector = match entity {
            Some(entity) => {
                let to = to.map(|to| to.to_string()).unwrap_or_default();
                format!(
                    "{}/@adv/*/{id}/{entity}/**?_max={max};_sn={from}..{to}",
                    self.key
                )
            }
            None => format!("{}/@adv/*/{id}/{BY_TIME}/**?_max={max}", self.key),
        };
        // Dropped with the query, also if sending fails.
        let end = End {
            shared: self.clone(),
            of: Some((query.source, number)),
        };
        if let Err(error) = self.get(selector, end) {
            tracing::debug!("query the history of {}: {error}", self.key);
        }
    }

    fn get(&self, selector: String, end: End) -> zenoh::Result<()> {
        self.session
            .get(selector)
            .callback(move |reply: Reply| end.shared.take_reply(reply))
            .target(QueryTarget::All)
            .consolidation(ConsolidationMode::None)
            .accept_replies(ReplyKeyExpr::Any)
            .allowed_destination(Locality::Remote)
            .timeout(HISTORY_TIMEOUT)
            .wait()
    }

    fn take_reply(self: &Arc<Self>, reply: Reply) {
        let replier = reply.replier_id().map(|id| id.zid().to_le_bytes());
        let Ok(sample) = reply.into_result() else {
            return;
        };
        let Some((source, number)) = origin(&sample) else {
            return;
        };
        if !self.key.intersects(sample.key_expr()) {
            return;
        }
        let is_own = replier == Some(source.0);
        let (now, reply) = (self.declarer.now(), HistoryReply { sample, is_own });
        self.apply(|order, passes| {
            let waited = order.take_history(now, source, number, reply, passes);
            (waited, Vec::new())
        });
    }

    /// Runs a step with the predicate of the content filter.
    fn with_filter<R>(&self, step: impl FnOnce(Option<&dyn Fn(&Sample) -> bool>) -> R) -> R {
        let filter = self.filter.lock().clone();
        let passes = filter
            .as_ref()
            .map(|filter| |sample: &Sample| filter.passes(&sample.payload().to_bytes()));
        step(
            passes
                .as_ref()
                .map(|passes| passes as &dyn Fn(&Sample) -> bool),
        )
    }
}

/// The publisher of a sample and the sample's number. A best-effort publisher does not
/// number its samples, and their time is the number. `None` without both.
fn origin(sample: &Sample) -> Option<(Source, i64)> {
    if let Some(info) = sample.source_info() {
        let id = info.source_id();
        let source = (id.zid().to_le_bytes(), Some(id.eid()));
        return Some((source, i64::from(info.source_sn())));
    }
    let timestamp = sample.timestamp()?;
    let time = i64::try_from(timestamp.get_time().as_u64()).unwrap_or(i64::MAX);
    Some(((timestamp.get_id().to_le_bytes(), None), time))
}

/// Chunk of a publisher's key in the place of the entity, if it does not number its samples.
const BY_TIME: &str = "uhlc";

/// The publisher of a token or heartbeat `KEY/@adv/pub/SESSION/ENTITY/META`.
fn source_of(key: &str) -> Option<Source> {
    let (_, publisher) = key.rsplit_once("/@adv/pub/")?;
    let mut chunks = publisher.split('/');
    let session: SessionId = chunks.next()?.parse().ok()?;
    let entity = match chunks.next()? {
        BY_TIME => None,
        number => Some(number.parse().ok()?),
    };
    Some((session.to_le_bytes(), entity))
}

/// Guard that reports the end of a query: of one publisher, or of the first one.
struct End {
    shared: Arc<Shared>,
    of: Option<(Source, u64)>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.apply(|order, passes| match self.of {
            Some((source, query)) => (order.end(source, query, passes), Vec::new()),
            None => order.end_start(passes),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_publisher_names_its_session_and_entity() {
        let key = "0/map/nav_msgs::msg::dds_::OccupancyGrid_/RIHS01_00";
        let source = |end: &str| source_of(&format!("{key}/@adv/{end}"));
        let session: SessionId = "50657074a1".parse().unwrap();
        let session = session.to_le_bytes();
        assert_eq!(source("pub/50657074a1/17/_"), Some((session, Some(17))));
        assert_eq!(source("pub/50657074a1/uhlc/_"), Some((session, None)));
        for other in ["sub/50657074a1/17/_", "pub/x/17/_", "pub/1/-1/_", "pub/"] {
            assert_eq!(source(other), None, "{other}");
        }
    }
}
