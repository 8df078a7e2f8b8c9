//! Stamped messages: those with a time of origin.

use pteros_interfaces as interfaces;

use crate::time::Time;

/// A message with a stamp, by which message filters join it with others.
///
/// All standard messages with a `std_msgs/Header` have it. Implement it for your own
/// messages.
pub trait Stamped {
    /// The time of the message.
    fn stamp(&self) -> Time;
}

macro_rules! stamped {
    ($($package:ident: $($message:ident)+;)+) => {$($(
        impl Stamped for interfaces::$package::msg::$message {
            fn stamp(&self) -> Time {
                Time::from(&self.header.stamp)
            }
        }
    )+)+};
}

stamped! {
    actionlib_msgs: GoalStatusArray;
    diagnostic_msgs: DiagnosticArray;
    geometry_msgs: AccelStamped AccelWithCovarianceStamped InertiaStamped PointStamped
        PolygonInstanceStamped PolygonStamped PoseArray PoseStamped PoseWithCovarianceStamped
        QuaternionStamped TransformStamped TwistStamped TwistWithCovarianceStamped
        Vector3Stamped VelocityStamped WrenchStamped;
    map_msgs: OccupancyGridUpdate PointCloud2Update;
    nav_msgs: Goals GridCells OccupancyGrid Odometry Path;
    sensor_msgs: BatteryState CameraInfo CompressedImage FluidPressure Illuminance Image Imu
        JointState Joy LaserScan MagneticField MultiDOFJointState MultiEchoLaserScan NavSatFix
        PointCloud PointCloud2 Range RelativeHumidity Temperature TimeReference;
    stereo_msgs: DisparityImage;
    trajectory_msgs: JointTrajectory MultiDOFJointTrajectory;
    visualization_msgs: ImageMarker InteractiveMarker InteractiveMarkerFeedback
        InteractiveMarkerPose Marker;
}

impl Stamped for interfaces::std_msgs::msg::Header {
    fn stamp(&self) -> Time {
        Time::from(&self.stamp)
    }
}
