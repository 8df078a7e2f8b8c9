// ROS 1 side of a bridge: std_msgs/String, one topic, one direction. The Pteros
// side is `pteros-lab-worker bridge`, which starts this program.
//
//   ros1-bridge in TOPIC    writes messages of the ROS 1 topic to stdout
//   ros1-bridge out TOPIC   publishes messages of stdin there
//
// A message is its length, 4 bytes in this host's order, and its text. An empty
// one on stdout comes first of all: ROS 1's master knows us (in), or a subscriber
// is there (out). Needs a master at ROS_MASTER_URI; ends with whoever started it.

#include <csignal>
#include <string>
#include <sys/prctl.h>

#include <ros/ros.h>
#include <std_msgs/String.h>

#include "../peer.h"

static const uint32_t BYTES_MAX = 64u << 20, QUEUE_MAX = 1000;

static void write_frame(const std::string &text)
{
  uint32_t size = (uint32_t)text.size();
  bool all = fwrite(&size, sizeof size, 1, stdout) == 1 && fwrite(text.data(), 1, size, stdout) == size;
  if (!all || fflush(stdout))
    fail(EXIT_USAGE, "write to Pteros's half: %s", strerror(errno));
}

static bool read_frame(std::string &text)
{
  uint32_t size = 0;
  if (fread(&size, sizeof size, 1, stdin) != 1)
    return false;
  if (size > BYTES_MAX)
    fail(EXIT_USAGE, "a message of %u bytes; the most is %u", size, BYTES_MAX);
  text.resize(size);
  return fread(&text[0], 1, size, stdin) == size;
}

static void on_text(const std_msgs::String::ConstPtr &message)
{
  write_frame(message->data);
}

static void from_ros1(ros::NodeHandle &node, const char *topic)
{
  ros::Subscriber subscriber = node.subscribe<std_msgs::String>(topic, QUEUE_MAX, on_text);
  write_frame("");
  ros::spin();
}

static void to_ros1(ros::NodeHandle &node, const char *topic)
{
  ros::Publisher publisher = node.advertise<std_msgs::String>(topic, QUEUE_MAX);
  // Messages before that are lost by ROS 1.
  while (publisher.getNumSubscribers() == 0)
    sleep_ns(2000000);
  write_frame("");
  for (std_msgs::String message; read_frame(message.data);)
    publisher.publish(message);
}

int main(int argc, char **argv)
{
  if (argc != 3)
    fail(EXIT_USAGE, "usage: ros1-bridge in|out TOPIC");
  bool in = choice("direction", argv[1], "in|out") == 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ros::init(ros::VP_string(), "bridge", ros::init_options::NoSigintHandler | ros::init_options::AnonymousName);
  ros::NodeHandle node;
  in ? from_ros1(node, argv[2]) : to_ros1(node, argv[2]);
  return EXIT_OK;
}
