//! `image_transport republish`: passes images on in another transport, as ROS 2's node of
//! that name.
//!
//! The transports are `raw` and `compressed` (JPEG and PNG). It subscribes to `in`, or to
//! `in/compressed`, while somebody reads `out` or `out/compressed`.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros::args::resolve_name;
use pteros::component::ComponentError;
use pteros::interfaces::sensor_msgs::msg::{CompressedImage, Image};
use pteros::names::NameKind;
use pteros::parameter::{
    Parameter, ParameterDescriptor, ParameterHandle, QosOverridingOptions, QosPolicyKind,
};
use pteros::prelude::*;
use pteros::{PublisherOptions, SubscriptionOptions, TimerOptions, error_throttle, info, warn};

use crate::image_codec::{Codec, Mode, decode, encode};
use crate::running_node::RunningNode;

/// How often the node looks whether somebody reads its output.
const MATCH_PERIOD: Duration = Duration::from_millis(100);
/// How often the same problem is reported at most.
const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// Starts the node: `republish [IN_TRANSPORT [OUT_TRANSPORT]]`.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    if words.len() > 2 {
        return Err(format!(
            "too many arguments ({}); it takes: [in_transport] [out_transport] --ros-args -r in:=TOPIC -r out:=TOPIC",
            words.join(" ")
        )
        .into());
    }
    let given = ["in_transport", "out_transport"].into_iter().zip(words);
    let given = given.map(|(name, word)| Parameter::new(name, word.as_str()));
    let node = context.create_node(options.name("image_republisher").parameter_overrides(given))?;
    let transport = |name: &str, default: &str| {
        let transport = node.declare_parameter(name, default)?.value();
        info!(
            node.logger(),
            "The '{name}' parameter is set to: {transport}"
        );
        Transport::of(&transport)
            .ok_or_else(|| {
                format!("{name} = \"{transport}\": the transports are raw and compressed")
            })
            .map_err(ComponentError::from)
    };
    let input = transport("in_transport", "raw")?;
    let output = transport("out_transport", "")?;
    let input = input.ok_or("in_transport is empty: the transports are raw and compressed")?;
    let republisher = Arc::new(Republisher::new(node.clone(), input, output)?);
    let followed = republisher.clone();
    let timer = node.create_timer(TimerOptions::new(MATCH_PERIOD), move || followed.follow())?;
    Ok(RunningNode::new(node, (timer, republisher)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Transport {
    Raw,
    Compressed,
}

impl Transport {
    /// `None` if there is none of that name; the inner one for all.
    fn of(name: &str) -> Option<Option<Self>> {
        match name {
            "" => Some(None),
            "raw" => Some(Some(Self::Raw)),
            "compressed" => Some(Some(Self::Compressed)),
            _ => None,
        }
    }
}

/// The parameters of the transport `compressed`, which count at once when they change.
struct CodecParameters {
    format: ParameterHandle<String>,
    png_level: ParameterHandle<i64>,
    jpeg_quality: ParameterHandle<i64>,
}

impl CodecParameters {
    fn declare(node: &Node) -> Result<Self, ComponentError> {
        let declare = |name: &str, default: i64, from: i64, to: i64| {
            let range = ParameterDescriptor::new().integer_range(from, to, 1);
            node.declare_parameter_with(&format!("out.compressed.{name}"), default, range)
        };
        let formats =
            ParameterDescriptor::new().additional_constraints("Supported values: [jpeg, png]");
        Ok(Self {
            format: node.declare_parameter_with("out.compressed.format", "jpeg", formats)?,
            png_level: declare("png_level", 3, 0, 9)?,
            jpeg_quality: declare("jpeg_quality", 95, 1, 100)?,
        })
    }

    fn codec(&self) -> Result<Codec, String> {
        // Their ranges are checked.
        let level = |handle: &ParameterHandle<i64>| u8::try_from(handle.value()).unwrap_or(1);
        match self.format.value().as_str() {
            "jpeg" => Ok(Codec::Jpeg(level(&self.jpeg_quality))),
            "png" => Ok(Codec::Png(level(&self.png_level))),
            other => Err(format!(
                "out.compressed.format = \"{other}\": the formats are jpeg and png"
            )),
        }
    }
}

struct Republisher {
    node: Node,
    input: Transport,
    mode: ParameterHandle<String>,
    raw: Option<Publisher<Image>>,
    compressed: Option<(Publisher<CompressedImage>, CodecParameters)>,
    subscription: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Republisher {
    fn new(
        node: Node,
        input: Transport,
        output: Option<Transport>,
    ) -> Result<Self, ComponentError> {
        let is_wanted = |transport| output.is_none_or(|output| output == transport);
        let raw = if is_wanted(Transport::Raw) {
            let options = PublisherOptions::new("out").qos_overrides(overrides());
            Some(node.create_publisher(options)?)
        } else {
            None
        };
        let compressed = if is_wanted(Transport::Compressed) {
            let topic = topic_below(&node, "out")?;
            let options = PublisherOptions::new(topic).qos_overrides(overrides());
            Some((
                node.create_publisher(options)?,
                CodecParameters::declare(&node)?,
            ))
        } else {
            None
        };
        Ok(Self {
            mode: node.declare_parameter("in.compressed.mode", "unchanged")?,
            node,
            input,
            raw,
            compressed,
            subscription: Mutex::default(),
        })
    }

    /// Subscribes while somebody reads.
    fn follow(self: &Arc<Self>) {
        let mut subscription = self.subscription.lock();
        if !self.is_raw_read() && !self.is_compressed_read() {
            *subscription = None;
        } else if subscription.is_none() {
            match self.subscribe() {
                Ok(created) => *subscription = Some(created),
                Err(problem) => self.report(&problem.to_string()),
            }
        }
    }

    fn is_raw_read(&self) -> bool {
        self.raw.as_ref().is_some_and(|raw| raw.matched_count() > 0)
    }

    fn is_compressed_read(&self) -> bool {
        let publisher = self.compressed.as_ref().map(|(publisher, _)| publisher);
        publisher.is_some_and(|publisher| publisher.matched_count() > 0)
    }

    fn subscribe(self: &Arc<Self>) -> Result<Box<dyn Any + Send>, ComponentError> {
        let republisher = Arc::downgrade(self);
        if self.input == Transport::Raw {
            let options = SubscriptionOptions::new("in").qos_overrides(overrides());
            let pass_on = move |image: Sample<Image>| {
                if let Some(republisher) = republisher.upgrade() {
                    republisher.pass_on(image.into_shared());
                }
            };
            return Ok(Box::new(self.node.create_subscription(options, pass_on)?));
        }
        let topic = topic_below(&self.node, "in")?;
        let options = SubscriptionOptions::new(topic).qos_overrides(overrides());
        let unpack = move |image: Sample<CompressedImage>| {
            let Some(republisher) = republisher.upgrade() else {
                return;
            };
            match decode(&image, republisher.mode()) {
                Ok(image) => republisher.pass_on(Arc::new(image)),
                Err(problem) => republisher.report(&problem),
            }
        };
        Ok(Box::new(self.node.create_subscription(options, unpack)?))
    }

    fn mode(&self) -> Mode {
        match self.mode.value().as_str() {
            "gray" => Mode::Gray,
            "color" => Mode::Color,
            mode => {
                if mode != "unchanged" {
                    self.report(&format!(
                        "in.compressed.mode = \"{mode}\": the modes are unchanged, gray and color; it is taken for unchanged"
                    ));
                }
                Mode::Unchanged
            }
        }
    }

    fn pass_on(&self, image: Arc<Image>) {
        let read = self
            .compressed
            .as_ref()
            .filter(|_| self.is_compressed_read());
        let packed = read.map(|(publisher, parameters)| {
            let packed = encode(&image, parameters.codec()?)?;
            publisher
                .publish_owned(packed)
                .map_err(|error| error.to_string())
        });
        let raw = self.raw.as_ref().filter(|_| self.is_raw_read());
        let passed = raw.map(|publisher| {
            let sent = publisher.publish_arc(image);
            sent.map_err(|error| error.to_string())
        });
        for problem in [packed, passed]
            .into_iter()
            .flatten()
            .filter_map(Result::err)
        {
            self.report(&problem);
        }
    }

    fn report(&self, problem: &str) {
        error_throttle!(self.node.logger(), REPORT_PERIOD, "{problem}");
    }
}

fn overrides() -> QosOverridingOptions {
    use QosPolicyKind::{Depth, Durability, History, Reliability};
    QosOverridingOptions::new([Depth, Durability, History, Reliability])
}

/// The topic of the transport `compressed` below a base topic. A rule for it comes before
/// one for its base, as `-r in/compressed:=…` before `-r in:=…`.
fn topic_below(node: &Node, base: &str) -> Result<String, ComponentError> {
    let resolve = |topic: &str, with_rules: bool| {
        let arguments = node.context().arguments();
        let rules = if with_rules {
            vec![arguments]
        } else {
            Vec::new()
        };
        let (name, namespace) = (node.name(), node.namespace());
        resolve_name(&rules, NameKind::Topic, topic, name, namespace)
    };
    let topic = format!("{base}/compressed");
    let is_named = resolve(&topic, true)? != resolve(&topic, false)?;
    let (remapped, plain) = (resolve(base, true)?, resolve(base, false)?);
    if is_named || remapped == plain {
        return Ok(topic);
    }
    let below = format!("{remapped}/compressed");
    warn!(
        node.logger(),
        "{base} is remapped, and {topic} is not: the topic is {below}, as it would not be upstream"
    );
    Ok(below)
}
