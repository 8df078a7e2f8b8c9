//! Sends the history queries of [`HistoryOrder`] to publishers, and delivers samples in
//! order.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rtps::content_filter::ContentFilter;
use zenoh::key_expr::KeyExpr;
use zenoh::query::{ConsolidationMode, Reply, ReplyKeyExpr};
use zenoh::sample::{Locality, Sample, SampleKind};
use zenoh::{Session, Wait};

use crate::history_order::{HistoryOrder, HistoryQuery, Source};
use crate::session_id::SessionId;

/// Timeout of a history query.
pub const HISTORY_TIMEOUT: Duration = Duration::from_secs(600);

/// The content filter of a subscription, which may be replaced.
pub type SharedFilter = Arc<Mutex<Option<Arc<ContentFilter>>>>;

/// The samples of one transient-local subscription. Thread-safe.
pub struct OrderedHistory {
    session: Session,
    key: KeyExpr<'static>,
    shared: Arc<Shared>,
}

struct Shared {
    order: Mutex<HistoryOrder<Sample>>,
    filter: SharedFilter,
    deliver: Box<dyn Fn(&Sample) + Send + Sync>,
}

impl OrderedHistory {
    /// For a subscription of history depth `depth`. `deliver` must not block.
    pub fn new(
        session: &Session,
        key: KeyExpr<'static>,
        depth: usize,
        filter: SharedFilter,
        deliver: impl Fn(&Sample) + Send + Sync + 'static,
    ) -> Self {
        Self {
            session: session.clone(),
            key,
            shared: Arc::new(Shared {
                order: Mutex::new(HistoryOrder::new(depth)),
                filter,
                deliver: Box::new(deliver),
            }),
        }
    }

    /// Handles a sample of zenoh-ext. Blocks only while Zenoh sends the query.
    pub fn receive(&self, sample: Sample) {
        let Some((source, number)) = origin(&sample) else {
            // A best-effort publisher: zenoh-ext orders its samples by time.
            return (self.shared.deliver)(&sample);
        };
        let filter = self.shared.filter.lock().clone();
        let query = {
            // Held while delivering, so that the end of a query is handled afterwards.
            let mut order = self.shared.order.lock();
            let passes = filter.as_ref().map(|filter| by(filter));
            let passes = passes
                .as_ref()
                .map(|passes| passes as &dyn Fn(&Sample) -> bool);
            let taken = order.take(source, number, sample, passes);
            taken.deliver.iter().for_each(&self.shared.deliver);
            taken.query
        };
        if let Some(query) = query
            && let Err(error) = self.ask(source, query)
        {
            tracing::debug!("ask for the history of {}: {error}", self.key);
        }
    }

    /// Handles a change of a publisher's zenoh-ext token.
    pub fn note_publisher(&self, token: &Sample) {
        let Some(source) = token_source(token.key_expr().as_str()) else {
            return;
        };
        let mut order = self.shared.order.lock();
        match token.kind() {
            SampleKind::Put => order.note_there(source),
            SampleKind::Delete => order.note_gone(source),
        }
    }

    /// Queries a publisher's samples before a number. Key and parameters are those of
    /// zenoh-ext.
    fn ask(&self, source: Source, query: HistoryQuery) -> zenoh::Result<()> {
        // Dropped with the query, also if sending fails.
        let end = End {
            shared: self.shared.clone(),
            source,
        };
        let (id, entity) = source;
        let id = SessionId::from_le_bytes(id);
        let HistoryQuery { before, max } = query;
        let (key, last) = (&self.key, before.saturating_sub(1));
        let selector = format!("{key}/@adv/*/{id}/{entity}/**?_max={max};_sn=..{last}");
        self.session
            .get(selector)
            .callback(move |reply: Reply| {
                if let Ok(sample) = reply.into_result()
                    && let Some((source, number)) = origin(&sample)
                {
                    let mut order = end.shared.order.lock();
                    order.take_history(source, number, sample);
                }
            })
            .consolidation(ConsolidationMode::None)
            .accept_replies(ReplyKeyExpr::Any)
            .allowed_destination(Locality::Remote)
            .timeout(HISTORY_TIMEOUT)
            .wait()
    }
}

/// The predicate of a content filter.
fn by(filter: &ContentFilter) -> impl Fn(&Sample) -> bool {
    |sample| filter.passes(&sample.payload().to_bytes())
}

/// The publisher of a sample and the sample's number, if the publisher numbers them.
fn origin(sample: &Sample) -> Option<(Source, u32)> {
    let info = sample.source_info()?;
    let id = info.source_id();
    Some(((id.zid().to_le_bytes(), id.eid()), info.source_sn()))
}

/// The publisher of a token `KEY/@adv/pub/SESSION/ENTITY/META`. `None` if it does not
/// number its samples: then the entity chunk is another word.
fn token_source(token: &str) -> Option<Source> {
    let (_, publisher) = token.rsplit_once("/@adv/pub/")?;
    let mut chunks = publisher.split('/');
    let session: SessionId = chunks.next()?.parse().ok()?;
    let entity = chunks.next()?.parse().ok()?;
    Some((session.to_le_bytes(), entity))
}

/// Guard that reports the end of a history query.
struct End {
    shared: Arc<Shared>,
    source: Source,
}

impl Drop for End {
    fn drop(&mut self) {
        let filter = self.shared.filter.lock().clone();
        let mut order = self.shared.order.lock();
        let passes = filter.as_ref().map(|filter| by(filter));
        let passes = passes
            .as_ref()
            .map(|passes| passes as &dyn Fn(&Sample) -> bool);
        let waited = order.end(self.source, passes);
        waited.iter().for_each(&self.shared.deliver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_publisher_names_its_session_and_entity() {
        let key = "0/map/nav_msgs::msg::dds_::OccupancyGrid_/RIHS01_00";
        let source = |end: &str| token_source(&format!("{key}/@adv/{end}"));
        let session: SessionId = "50657074a1".parse().unwrap();
        assert_eq!(
            source("pub/50657074a1/17/_"),
            Some((session.to_le_bytes(), 17))
        );
        for other in [
            "pub/50657074a1/uhlc/_",
            "sub/50657074a1/17/_",
            "pub/x/17/_",
            "pub/",
        ] {
            assert_eq!(source(other), None, "{other}");
        }
    }
}
