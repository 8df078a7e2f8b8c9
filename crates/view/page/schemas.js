// Definitions of the messages that the page itself publishes.

const rule = "=".repeat(80);
const NESTED = {
  "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id\n",
  "builtin_interfaces/Time": "int32 sec\nuint32 nanosec\n",
  "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z\n",
  "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z\n",
  "geometry_msgs/Quaternion": "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n",
  "geometry_msgs/Pose": "Point position\nQuaternion orientation\n",
  "geometry_msgs/PoseWithCovariance": "Pose pose\nfloat64[36] covariance\n",
  "geometry_msgs/Twist": "Vector3 linear\nVector3 angular\n",
};

const definition = (own, ...nested) => own + nested.map((name) => `${rule}\nMSG: ${name}\n${NESTED[name]}`).join("");
const HEADER = ["std_msgs/Header", "builtin_interfaces/Time"];
const POSE = ["geometry_msgs/Pose", "geometry_msgs/Point", "geometry_msgs/Quaternion"];

export const SCHEMAS = {
  "geometry_msgs/msg/Twist": definition(NESTED["geometry_msgs/Twist"], "geometry_msgs/Vector3"),
  "geometry_msgs/msg/TwistStamped": definition("std_msgs/Header header\nTwist twist\n", ...HEADER, "geometry_msgs/Twist", "geometry_msgs/Vector3"),
  "sensor_msgs/msg/JointState": definition("std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n", ...HEADER),
  "geometry_msgs/msg/PoseStamped": definition("std_msgs/Header header\nPose pose\n", ...HEADER, ...POSE),
  "geometry_msgs/msg/PointStamped": definition("std_msgs/Header header\nPoint point\n", ...HEADER, "geometry_msgs/Point"),
  "geometry_msgs/msg/PoseWithCovarianceStamped": definition("std_msgs/Header header\nPoseWithCovariance pose\n", ...HEADER, "geometry_msgs/PoseWithCovariance", ...POSE),
};
