//! Latency probe component: the age of messages at reception.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use pteros::SubscriptionOptions;
use pteros::component::{Component, ComponentError};
use pteros::interfaces::builtin_interfaces::msg::Time;
use pteros::interfaces::statistics_msgs::msg::{
    MetricsMessage, StatisticDataPoint, StatisticDataType,
};
use pteros::prelude::*;
use pteros::subscription::{SerializedMessage, SerializedType};

use crate::period::period;
use crate::throttle::type_descriptor;

/// Measures the time from source timestamp to reception of the messages on `input`,
/// of any type. It publishes statistics on `/statistics` as ROS 2's topic
/// statistics do (`message_age` in milliseconds: average, minimum, maximum,
/// standard deviation and sample count of each window). Between hosts the accuracy
/// is that of their clock synchronization.
///
/// Parameters: `type`, as `std_msgs/msg/String`, required; `rate` in windows per
/// second, 1 by default.
pub struct LatencyProbe {
    node: Node,
    _parts: (Subscription<SerializedMessage>, Timer),
}

impl Component for LatencyProbe {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("latency_probe"))?;
        let type_name = node
            .declare_required_parameter::<String>("type", type_descriptor())?
            .value();
        let rate = node.declare_parameter("rate", 1.0)?.value();
        let publisher = node.create_publisher::<MetricsMessage>("/statistics".keep_last(10))?;
        let window = Arc::new(Mutex::new(Window::default()));
        let filled = window.clone();
        let measure = move |message: Sample<SerializedMessage>| {
            let info = message.info();
            if let (Some(age), Ok(mut window)) = (info.latency(), filled.lock()) {
                window.add(age, info.received_timestamp);
            }
        };
        let options = SubscriptionOptions::of_type(
            &SerializedType::new(&type_name, None),
            "input".sensor_data(),
        );
        let input = node.create_subscription(options, measure)?;
        let (name, source) = (node.logger_name(), node.fully_qualified_name());
        let timer = node.create_timer(period(rate)?, move || {
            let last = window.lock().map(|mut window| std::mem::take(&mut *window));
            let Some(message) = last.ok().and_then(|window| window.message(&source)) else {
                return;
            };
            if let Err(error) = publisher.publish_owned(message) {
                tracing::warn!("[{name}] {error}");
            }
        })?;
        Ok(Self {
            node,
            _parts: (input, timer),
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

/// Ages of one window, in milliseconds.
#[derive(Default)]
struct Window {
    count: u64,
    sum: f64,
    squares: f64,
    least: f64,
    most: f64,
    times: Option<(SystemTime, SystemTime)>,
}

impl Window {
    fn add(&mut self, age: Duration, now: SystemTime) {
        let age = age.as_secs_f64() * 1e3;
        self.least = if self.count == 0 {
            age
        } else {
            self.least.min(age)
        };
        self.most = self.most.max(age);
        self.count += 1;
        self.sum += age;
        self.squares += age * age;
        let first = self.times.map_or(now, |(first, _)| first);
        self.times = Some((first, now));
    }

    /// The statistics; `None` for a window without messages.
    fn message(&self, source: &str) -> Option<MetricsMessage> {
        let (first, last) = self.times?;
        let count = self.count as f64;
        let average = self.sum / count;
        let deviation = (self.squares / count - average * average).max(0.0).sqrt();
        let points = [
            (StatisticDataType::STATISTICS_DATA_TYPE_AVERAGE, average),
            (StatisticDataType::STATISTICS_DATA_TYPE_MINIMUM, self.least),
            (StatisticDataType::STATISTICS_DATA_TYPE_MAXIMUM, self.most),
            (StatisticDataType::STATISTICS_DATA_TYPE_STDDEV, deviation),
            (StatisticDataType::STATISTICS_DATA_TYPE_SAMPLE_COUNT, count),
        ];
        let point = |(data_type, data)| StatisticDataPoint { data_type, data };
        Some(MetricsMessage {
            measurement_source_name: source.into(),
            metrics_source: "message_age".into(),
            unit: "ms".into(),
            window_start: stamp(first),
            window_stop: stamp(last),
            statistics: points.map(point).into(),
        })
    }
}

fn stamp(time: SystemTime) -> Time {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    Time {
        sec: i32::try_from(since.as_secs()).unwrap_or(i32::MAX),
        nanosec: since.subsec_nanos(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_average_extremes_deviation_and_count() {
        let mut window = Window::default();
        assert_eq!(window.message("/probe"), None);
        let at = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        window.add(Duration::from_millis(3), at(5));
        window.add(Duration::from_millis(1), at(6));
        let message = window.message("/probe").expect("two came");
        let data: Vec<f64> = message.statistics.iter().map(|point| point.data).collect();
        assert_eq!(data, [2.0, 1.0, 3.0, 1.0, 2.0]);
        assert_eq!((message.window_start.sec, message.window_stop.sec), (5, 6));
    }
}
