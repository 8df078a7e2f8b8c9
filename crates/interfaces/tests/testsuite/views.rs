//! Views of generated messages: an in-place view equals a copy, in every encoding
//! and at every alignment.

use pteros_interfaces::builtin_interfaces::msg::Time;
use pteros_interfaces::dds_shapes::msg::ShapeType;
use pteros_interfaces::geometry_msgs::msg::{Point, Pose, PoseStamped, PoseWithCovariance};
use pteros_interfaces::nav_msgs::msg::Path;
use pteros_interfaces::sensor_msgs::msg::{
    CameraInfo, Image, LaserScan, MultiDOFJointState, PointCloud2, PointField, view,
};
use pteros_interfaces::std_msgs::msg::{Bool, ColorRGBA, String as Text};
use pteros_interfaces::test_msgs::msg::{
    Arrays, BoundedSequences, Defaults, Empty, MultiNested, Strings, UnboundedSequences, WStrings,
};
use pteros_interfaces::visualization_msgs::msg::{Marker, MarkerArray};
use pteros_msg::cdr::{Encapsulation, Encoder, Endian};
use pteros_msg::plain::{FixedLayout, bytes_of};
use pteros_msg::view::{Cow, MaybeBorrowed, Str, Viewable, view_payload};
use pteros_msg::{Encode, Message, Representation, to_payload};

/// A payload in any encoding, that begins `shift` bytes behind a multiple of 64.
struct Shifted {
    memory: Vec<u8>,
    begin: usize,
}

impl Shifted {
    fn new<M: Message>(
        message: &M,
        representation: Representation,
        endian: Endian,
        shift: usize,
    ) -> Self {
        let mut body = Vec::new();
        message.encode(&mut Encoder::to_vec(&mut body, representation, endian));
        let header = Encapsulation::of(representation, M::EXTENSIBILITY, endian).to_bytes();
        let mut memory = vec![0; 128 + 4 + body.len()];
        let begin = (memory.as_ptr() as usize).wrapping_neg() % 64 + shift;
        memory[begin..begin + 4].copy_from_slice(&header);
        memory[begin + 4..begin + 4 + body.len()].copy_from_slice(&body);
        memory.truncate(begin + 4 + body.len());
        Self { memory, begin }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..]
    }
}

fn is_seen<M: Viewable>(message: &M) {
    let expected = format!("{:?}", message.as_view());
    for representation in [Representation::Xcdr1, Representation::Xcdr2] {
        for endian in [Endian::Little, Endian::Big] {
            for shift in [60, 0, 1, 2] {
                let payload = Shifted::new(message, representation, endian, shift);
                let view = view_payload::<M>(payload.bytes());
                assert_eq!(
                    format!("{:?}", view.unwrap()),
                    expected,
                    "{} {representation:?} {endian:?} {shift}",
                    M::TYPE_NAME
                );
            }
        }
        let payload = to_payload(message, representation);
        for cut in 0..payload.len().min(400) {
            // A truncated payload yields an error or a value, never a panic.
            let _ = view_payload::<M>(&payload[..cut]);
        }
    }
}

fn points(count: u32) -> Vec<Point> {
    let point = |n| Point {
        x: f64::from(n),
        y: -0.5,
        z: 1e9,
    };
    (0..count).map(point).collect()
}

#[test]
fn views_equal_copies_in_every_encoding() {
    is_seen(&Text {
        data: "näh".into()
    });
    is_seen(&Bool { data: true });
    is_seen(&Empty {});
    is_seen(&Pose::default());
    is_seen(&PoseWithCovariance::default());
    is_seen(&ShapeType {
        color: "BLUE".into(),
        x: 3,
        ..ShapeType::default()
    });
    is_seen(&Image {
        encoding: "rgb8".into(),
        data: (0..=255).collect(),
        ..Image::default()
    });
    is_seen(&LaserScan {
        ranges: vec![0.5, f32::INFINITY],
        ..LaserScan::default()
    });
    is_seen(&CameraInfo {
        d: vec![0.25; 5],
        ..CameraInfo::default()
    });
    is_seen(&PointCloud2 {
        fields: vec![PointField::default(); 3],
        data: vec![1; 99],
        is_dense: true,
        ..PointCloud2::default()
    });
    is_seen(&Path {
        poses: vec![PoseStamped::default(); 2],
        ..Path::default()
    });
    is_seen(&MultiDOFJointState {
        joint_names: vec!["a".into(), "bc".into()],
        transforms: vec![Default::default(); 2],
        ..MultiDOFJointState::default()
    });
    let marker = Marker {
        ns: "odd".into(),
        points: points(7),
        colors: vec![ColorRGBA::default(); 3],
        ..Marker::default()
    };
    is_seen(&marker);
    is_seen(&MarkerArray {
        markers: vec![marker; 3],
    });
}

#[test]
fn fields_of_every_kind_are_seen() {
    is_seen(&Defaults::default());
    is_seen(&Arrays::default());
    is_seen(&Strings::default());
    is_seen(&WStrings {
        wstring_value: "naïve 🦉".into(),
        ..WStrings::default()
    });
    is_seen(&MultiNested::default());
    is_seen(&BoundedSequences {
        bool_values: vec![true, false],
        float64_values: vec![1.0, 2.0],
        string_values: vec!["a".into()],
        ..BoundedSequences::default()
    });
    is_seen(&UnboundedSequences {
        uint8_values: vec![1],
        int64_values: vec![-1, 2],
        bool_values: vec![true],
        string_values: vec!["x".into(), String::new()],
        constants_values: vec![Default::default(); 2],
        ..UnboundedSequences::default()
    });
}

/// As in a chunk of shared memory, whose bodies begin at a multiple of 64.
#[test]
fn aligned_data_is_borrowed_and_other_data_copied() {
    let marker = Marker {
        points: points(4),
        ..Marker::default()
    };
    let payload = Shifted::new(&marker, Representation::Xcdr1, Endian::NATIVE, 60);
    let seen = view_payload::<Marker>(payload.bytes()).unwrap();
    assert!(matches!(seen.points, Cow::Borrowed(_)));
    let range = payload.bytes().as_ptr_range();
    assert!(range.contains(&seen.points.as_ptr().cast()));
    let payload = Shifted::new(&marker, Representation::Xcdr1, Endian::NATIVE, 0);
    let seen = view_payload::<Marker>(payload.bytes()).unwrap();
    assert!(matches!(seen.points, Cow::Owned(_)), "4 bytes aside");
    assert_eq!(seen.points, marker.points);

    let image = Image {
        data: vec![9; 50],
        ..Image::default()
    };
    let payload = Shifted::new(&image, Representation::Xcdr2, Endian::Big, 1);
    let seen: view::Image<'_> = view_payload::<Image>(payload.bytes()).unwrap();
    assert!(matches!(seen.data, Cow::Borrowed([9, ..])), "single bytes");

    let pose = Pose::default();
    let payload = Shifted::new(&pose, Representation::Xcdr1, Endian::NATIVE, 60);
    let seen = view_payload::<Pose>(payload.bytes()).unwrap();
    assert!(matches!(seen, MaybeBorrowed::Borrowed(lent) if *lent == pose));
    assert_eq!(bytes_of(&[pose]), &payload.bytes()[4..]);
}

/// In XCDR1 a struct that begins with small numbers has gaps in a sequence
/// that begins beside the multiple of its largest one.
#[test]
fn a_struct_of_mixed_alignment_is_borrowed_without_a_gap() {
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    #[repr(C)]
    struct Mixed {
        stamp: Time,
        value: f64,
    }
    pteros_msg::fixed_layout!(Mixed {
        stamp: Time,
        value: f64
    });
    impl Encode for Mixed {
        fn encode(&self, out: &mut Encoder<'_>) {
            self.stamp.encode(out);
            out.f64(self.value);
        }
    }
    impl pteros_msg::Decode for Mixed {
        fn decode(
            input: &mut pteros_msg::cdr::Decoder<'_>,
        ) -> Result<Self, pteros_msg::cdr::DecodeError> {
            Ok(Self {
                stamp: pteros_msg::Decode::decode(input)?,
                value: input.f64()?,
            })
        }
    }
    assert_eq!((Mixed::FIRST_ALIGN, Mixed::ALIGN), (4, 8));
    let values = [1, 2, 3].map(|n| Mixed {
        stamp: Time { sec: n, nanosec: 5 },
        value: f64::from(n),
    });
    for (before, is_borrowed) in [(1, true), (0, false)] {
        let mut memory = vec![0_u64; 40];
        let mut body = Vec::new();
        let mut out = Encoder::to_vec(&mut body, Representation::Xcdr1, Endian::NATIVE);
        // The count itself takes four bytes.
        (0..before).for_each(|_| out.u32(0));
        out.message_sequence(&values);
        let bytes = pteros_msg::plain::bytes_of_mut(&mut memory);
        bytes[..body.len()].copy_from_slice(&body);
        let header = Encapsulation::plain(Representation::Xcdr1, Endian::NATIVE);
        let mut input = pteros_msg::cdr::Decoder::new(&bytes[..body.len()], header);
        (0..before).for_each(|_| assert_eq!(input.u32(), Ok(0)));
        let seen = input.fixed_sequence_view::<Mixed>(usize::MAX).unwrap();
        assert_eq!(seen[..], values);
        assert_eq!(matches!(seen, Cow::Borrowed(_)), is_borrowed, "{before}");
        assert_eq!(input.position(), body.len());
    }
}

#[test]
fn text_is_compared_in_place_and_copied_to_be_shown() {
    let text = Str::new(b"caf\xc3\xa9");
    assert!(text == "café" && text != "cafe" && text.len() == 5);
    assert_eq!(format!("{text} {text:>6} {text:?}"), "café   café \"café\"");
    assert_eq!(Str::new(b"\xff!").to_string(), "\u{fffd}!");
}

#[test]
fn sizes_that_a_payload_does_not_have_are_refused_without_memory() {
    let mut payload = to_payload(&Marker::default(), Representation::Xcdr1);
    let whole = payload.len();
    for at in 4..whole - 3 {
        let before = payload[at..at + 4].to_vec();
        payload[at..at + 4].fill(0xff);
        let _ = view_payload::<Marker>(&payload);
        payload[at..at + 4].copy_from_slice(&before);
    }
    let image = to_payload(&Image::default(), Representation::Xcdr1);
    let mut long = image.clone();
    let count = image.len() - 4;
    long[count..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(view_payload::<Image>(&long).is_err());
}
