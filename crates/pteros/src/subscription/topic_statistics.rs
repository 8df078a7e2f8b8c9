//! Topic statistics: age and period of the messages that a subscription receives,
//! published as `statistics_msgs/msg/MetricsMessage`.
//!
//! The same numbers as rclcpp's topic statistics: one message each for
//! `message_age` and `message_period`, in milliseconds, per publish period. A
//! window without measurements has NaN and a sample count of 0. Windows do not
//! overlap: each begins with nothing.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_interfaces::builtin_interfaces::msg::Time as TimeMessage;
use pteros_interfaces::statistics_msgs::msg::{
    MetricsMessage, StatisticDataPoint, StatisticDataType,
};
use pteros_runtime::platform::Platform;
use pteros_runtime::rtps::time::{Instant, Timestamp};

use crate::error::CreateError;
use crate::named_qos::NamedQos;
use crate::node::{CallbackGroupCore, NodeCore};
use crate::publisher::{Publisher, PublisherOptions};
use crate::time::Time;
use crate::timer::{Timer, TimerCore, TimerSettings};

/// Where and how often a subscription publishes its statistics; see
/// [`SubscriptionOptions::topic_statistics`](super::SubscriptionOptions::topic_statistics).
#[derive(Clone, Debug, PartialEq)]
pub struct TopicStatisticsOptions {
    /// The topic of the statistics, with its QoS; `/statistics` by default.
    pub publish_topic: NamedQos,
    /// Time between two publications, longer than zero; 1 s by default.
    pub publish_period: Duration,
}

impl Default for TopicStatisticsOptions {
    fn default() -> Self {
        Self {
            publish_topic: "/statistics".into(),
            publish_period: Duration::from_secs(1),
        }
    }
}

/// The statistics of one subscription. They are published until it is dropped.
pub(crate) struct TopicStatistics {
    measured: Arc<Mutex<Window>>,
    platform: Arc<dyn Platform>,
    /// Publishes and empties the window, in the subscription's callback group.
    _timer: Timer,
}

impl TopicStatistics {
    pub(crate) fn start(
        node: &Arc<NodeCore>,
        group: &Arc<CallbackGroupCore>,
        options: TopicStatisticsOptions,
    ) -> Result<Self, CreateError> {
        let period = options.publish_period;
        if period.is_zero() {
            return Err(CreateError::ZeroPeriod);
        }
        let publisher =
            node.create_publisher::<MetricsMessage>(PublisherOptions::new(options.publish_topic))?;
        let platform = node.core().platform.clone();
        let measured = Arc::new(Mutex::new(Window::begin(platform.wall_clock())));
        let settings = TimerSettings {
            period_nanos: i64::try_from(period.as_nanos()).unwrap_or(i64::MAX),
            repeats: true,
            on_ros_time: false,
        };
        let (window, clock, name) = (measured.clone(), platform.clone(), node.name().to_owned());
        let publish = move || {
            let (ended, stop) = {
                let mut window = window.lock();
                let now = clock.wall_clock();
                let next = window.next(now);
                (std::mem::replace(&mut *window, next), now)
            };
            publish_window(&publisher, &name, &ended, stop);
        };
        Ok(Self {
            measured,
            platform,
            _timer: TimerCore::start(node, settings, group, Box::new(publish)),
        })
    }

    /// Measures a message that the subscription takes now.
    pub(crate) fn measure(&self, source: Option<Timestamp>) {
        let (now, wall) = (self.platform.now(), self.platform.wall_clock());
        let mut window = self.measured.lock();
        if let Some(source) = source {
            window
                .age
                .add(milliseconds(wall.as_nanos() - source.as_nanos()));
        }
        if let Some(before) = window.taken_before.replace(now) {
            let nanos = now.as_nanos().saturating_sub(before.as_nanos());
            window.period.add(nanos as f64 / NANOS_PER_MS);
        }
    }
}

const NANOS_PER_MS: f64 = 1e6;

fn milliseconds(nanos: i64) -> f64 {
    nanos as f64 / NANOS_PER_MS
}

/// Measurements between two publications.
struct Window {
    start: Timestamp,
    age: Moments,
    period: Moments,
    /// When the last message was taken, also in an earlier window.
    taken_before: Option<Instant>,
}

impl Window {
    fn begin(start: Timestamp) -> Self {
        Self {
            start,
            age: Moments::default(),
            period: Moments::default(),
            taken_before: None,
        }
    }

    fn next(&self, start: Timestamp) -> Self {
        Self {
            taken_before: self.taken_before,
            ..Self::begin(start)
        }
    }
}

/// Mean, extremes and standard deviation of a series, in constant memory (Welford's
/// method).
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    least: f64,
    most: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        if self.count == 1 {
            (self.least, self.most) = (value, value);
        }
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    /// The data points, in rclcpp's order.
    fn data_points(&self) -> Vec<StatisticDataPoint> {
        let or_nan = |value: f64| if self.count == 0 { f64::NAN } else { value };
        let deviation = (self.squares / self.count as f64).sqrt();
        [
            (
                StatisticDataType::STATISTICS_DATA_TYPE_AVERAGE,
                or_nan(self.mean),
            ),
            (
                StatisticDataType::STATISTICS_DATA_TYPE_MAXIMUM,
                or_nan(self.most),
            ),
            (
                StatisticDataType::STATISTICS_DATA_TYPE_MINIMUM,
                or_nan(self.least),
            ),
            (
                StatisticDataType::STATISTICS_DATA_TYPE_SAMPLE_COUNT,
                self.count as f64,
            ),
            (
                StatisticDataType::STATISTICS_DATA_TYPE_STDDEV,
                or_nan(deviation),
            ),
        ]
        .map(|(data_type, data)| StatisticDataPoint { data_type, data })
        .into()
    }
}

/// Publishes age and period. Statistics are no reason to end a node: an error is
/// logged.
fn publish_window(
    publisher: &Publisher<MetricsMessage>,
    node: &str,
    window: &Window,
    stop: Timestamp,
) {
    for (metric, moments) in [
        ("message_age", &window.age),
        ("message_period", &window.period),
    ] {
        let message = MetricsMessage {
            measurement_source_name: node.to_owned(),
            metrics_source: metric.to_owned(),
            unit: "ms".to_owned(),
            window_start: time_message(window.start),
            window_stop: time_message(stop),
            statistics: moments.data_points(),
        };
        if let Err(error) = publisher.publish_owned(message) {
            tracing::warn!(topic = %publisher.topic(), "topic statistics are not published: {error}");
        }
    }
}

fn time_message(stamp: Timestamp) -> TimeMessage {
    Time::from_nanos(stamp.as_nanos()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(moments: &Moments) -> Vec<f64> {
        moments
            .data_points()
            .iter()
            .map(|point| point.data)
            .collect()
    }

    #[test]
    fn the_moments_are_those_of_the_whole_series() {
        let mut moments = Moments::default();
        for value in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            moments.add(value);
        }
        assert_eq!(values(&moments), [5.0, 9.0, 2.0, 8.0, 2.0]);
    }

    #[test]
    fn a_series_without_values_has_nan_and_the_count_zero() {
        let of_none = values(&Moments::default());
        assert_eq!(of_none[3], 0.0);
        assert_eq!(of_none.iter().filter(|value| value.is_nan()).count(), 4);
    }

    #[test]
    fn a_new_window_measures_the_period_from_the_last_message_of_the_old_one() {
        let mut window = Window::begin(Timestamp::from_nanos(1));
        window.taken_before = Some(Instant::from_nanos(7));
        window.age.add(3.0);
        let next = window.next(Timestamp::from_nanos(9));
        assert_eq!(next.taken_before, Some(Instant::from_nanos(7)));
        assert_eq!((next.age.count, next.start.as_nanos()), (0, 9));
    }
}
