//! The message types of the DDS peers: std_msgs/msg/String and UInt8MultiArray.

#[cfg(feature = "dust_dds")]
use dust_dds::infrastructure::type_support::DdsType;
#[cfg(feature = "rustdds")]
use serde::{Deserialize, Serialize};

/// A message with some content.
pub trait Sample: Sized {
    const TYPE_NAME: &str;
    const IS_TEXT: bool;

    fn of(content: Vec<u8>) -> Self;
    fn into_content(self) -> Vec<u8>;

    /// The content of sample `seq`; README.md and `fill_payload` of peer.h have the pattern.
    fn pattern(seq: u64, size: Option<usize>) -> Vec<u8> {
        let byte = |i: usize| (i * 31 + i / 256) as u64 + seq * 7;
        match size {
            None if Self::IS_TEXT => format!("Hello World: {seq}").into_bytes(),
            Some(size) if Self::IS_TEXT => (0..size).map(|i| 97 + (byte(i) % 26) as u8).collect(),
            size => (0..size.unwrap_or(64)).map(|i| byte(i) as u8).collect(),
        }
    }
}

#[cfg_attr(feature = "rustdds", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "dust_dds", derive(DdsType))]
#[cfg_attr(
    feature = "dust_dds",
    dust_dds(name = "std_msgs::msg::dds_::String_", extensibility = "final")
)]
#[derive(Clone)]
pub struct Text {
    data: String,
}

#[cfg_attr(feature = "rustdds", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "dust_dds", derive(DdsType))]
#[cfg_attr(
    feature = "dust_dds",
    dust_dds(
        name = "std_msgs::msg::dds_::MultiArrayDimension_",
        extensibility = "final"
    )
)]
#[derive(Clone)]
pub struct Dimension {
    label: String,
    size: u32,
    stride: u32,
}

#[cfg_attr(feature = "rustdds", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "dust_dds", derive(DdsType))]
#[cfg_attr(
    feature = "dust_dds",
    dust_dds(
        name = "std_msgs::msg::dds_::MultiArrayLayout_",
        extensibility = "final"
    )
)]
#[derive(Clone)]
pub struct Layout {
    dim: Vec<Dimension>,
    data_offset: u32,
}

#[cfg_attr(feature = "rustdds", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "dust_dds", derive(DdsType))]
#[cfg_attr(
    feature = "dust_dds",
    dust_dds(
        name = "std_msgs::msg::dds_::UInt8MultiArray_",
        extensibility = "final"
    )
)]
#[derive(Clone)]
pub struct Bytes {
    layout: Layout,
    data: Vec<u8>,
}

impl Sample for Text {
    const TYPE_NAME: &str = "std_msgs::msg::dds_::String_";
    const IS_TEXT: bool = true;

    fn of(content: Vec<u8>) -> Self {
        let data = String::from_utf8(content).expect("the pattern is text");
        Self { data }
    }

    fn into_content(self) -> Vec<u8> {
        self.data.into_bytes()
    }
}

impl Sample for Bytes {
    const TYPE_NAME: &str = "std_msgs::msg::dds_::UInt8MultiArray_";
    const IS_TEXT: bool = false;

    fn of(data: Vec<u8>) -> Self {
        let layout = Layout {
            dim: Vec::new(),
            data_offset: 0,
        };
        Self { layout, data }
    }

    fn into_content(self) -> Vec<u8> {
        self.data
    }
}
