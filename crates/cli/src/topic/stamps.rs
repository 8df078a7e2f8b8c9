//! The message that `topic pub` sends again and again, with its stamps.

use anyhow::{Context as _, Result};
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use std::time::{SystemTime, UNIX_EPOCH};

/// A message and the places in it that take the time of each publication:
/// headers given as `auto`, times given as `now`.
#[derive(Debug)]
pub struct Template {
    message: DynamicMessage,
    stamp_paths: Vec<String>,
}

impl Template {
    /// Reads the user's YAML.
    pub fn from_yaml(message_type: &DynamicType, text: &str) -> Result<Self> {
        let (message, stamp_paths) = DynamicMessage::from_yaml_with_stamps(message_type, text)
            .with_context(|| {
                let name = message_type.name();
                format!(
                    "the values are no {name} (to see its fields: pteros interface proto {name})"
                )
            })?;
        Ok(Self {
            message,
            stamp_paths,
        })
    }

    /// The message as of `time`.
    pub fn stamped(&mut self, time: SystemTime) -> Result<&DynamicMessage> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i32::try_from(since.as_secs()).unwrap_or(i32::MAX);
        for path in &self.stamp_paths {
            self.message
                .set_stamp(path, seconds, since.subsec_nanos())?;
        }
        Ok(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn template(type_name: &str, yaml: &str) -> Result<Template> {
        let description = pteros::interfaces::library().describe(type_name)?;
        Template::from_yaml(&DynamicType::new(&description)?, yaml)
    }

    #[test]
    fn auto_and_now_take_the_time_of_each_publication() {
        let yaml = "{header: auto, pose: {position: {x: 1.5}}}";
        let mut template = template("geometry_msgs/msg/PoseStamped", yaml).unwrap();
        for seconds in [7, 8] {
            let time = UNIX_EPOCH + Duration::new(seconds, 9);
            let message = template.stamped(time).unwrap();
            let stamp = message.get("header.stamp.sec").unwrap();
            assert_eq!(stamp.as_integer(), Some(i128::from(seconds)));
            let nanoseconds = message.get("header.stamp.nanosec").unwrap();
            assert_eq!(nanoseconds.as_integer(), Some(9));
            assert_eq!(message.get("pose.position.x").unwrap().as_f64(), Some(1.5));
        }
    }

    #[test]
    fn values_that_do_not_fit_name_the_field_and_the_way_out() {
        let error = template("std_msgs/msg/Int8", "data: 300").unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("data") && text.contains("300"), "{text}");
        assert!(text.contains("interface proto std_msgs/msg/Int8"), "{text}");
    }
}
