//! Message template of `topic pub`, with the stamps to set at each publication.

use anyhow::{Context as _, Result};
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use std::time::{SystemTime, UNIX_EPOCH};

/// A message, and the paths of the fields that get the publication time: headers
/// given as `auto` and times given as `now`.
#[derive(Debug)]
pub struct MessageTemplate {
    message: DynamicMessage,
    stamp_paths: Vec<String>,
}

impl MessageTemplate {
    /// Parses the YAML of the command line.
    pub fn from_yaml(message_type: &DynamicType, text: &str) -> Result<Self> {
        let (message, stamp_paths) = DynamicMessage::from_yaml_with_stamps(message_type, text)
            .with_context(|| {
                let name = message_type.name();
                format!(
                    "the values are not a valid {name} (to see its fields: pteros interface proto {name})"
                )
            })?;
        Ok(Self {
            message,
            stamp_paths,
        })
    }

    /// The message with the stamps set to `time`.
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

    fn template(type_name: &str, yaml: &str) -> Result<MessageTemplate> {
        let description = pteros::interfaces::library().describe(type_name)?;
        MessageTemplate::from_yaml(&DynamicType::new(&description)?, yaml)
    }

    #[test]
    fn auto_and_now_are_set_to_the_time_of_each_publication() {
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
    fn invalid_values_name_the_field_and_a_hint() {
        let error = template("std_msgs/msg/Int8", "data: 300").unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("data") && text.contains("300"), "{text}");
        assert!(text.contains("interface proto std_msgs/msg/Int8"), "{text}");
    }
}
