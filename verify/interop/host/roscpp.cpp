// Program of ROS 1's roscpp for `pteros lab`, with the options and lines of host.h.
// Needs a master (`rosmaster`) at ROS_MASTER_URI; messages go over TCPROS, one
// thread calls back, as in ros::spin().
//
// TCPROS has no QoS policies: nothing is lost while both sides run, and a queue of
// size 0 keeps all. Best effort is refused as unsupported; TRANSIENT_LOCAL and
// DEADLINE have no effect. Within a process a publisher passes a pointer, as
// between nodelets.

#include <memory>
#include <thread>
#include <vector>

#include <ros/ros.h>
#include <std_msgs/String.h>
#include <std_msgs/UInt8MultiArray.h>

#include "host.h"

using Bytes = std_msgs::UInt8MultiArray;
using Text = std_msgs::String;

static std::unique_ptr<ros::NodeHandle> node;
static std::unique_ptr<ros::AsyncSpinner> spinner;
static std::vector<ros::Publisher> publishers;
static std::vector<ros::Subscriber> subscribers;
static boost::shared_ptr<Bytes> bytes;
static boost::shared_ptr<Text> text;

static const char *path()
{
  return host.verb == HOST_INTRA ? "intra-process" : "TCP";
}

static void on_bytes(const Bytes::ConstPtr &message)
{
  if (traffic_receive(message->data.data(), message->data.size(), path()))
    stack_publish();
}

static void on_text(const Text::ConstPtr &message)
{
  if (traffic_receive(reinterpret_cast<const uint8_t *>(message->data.data()), message->data.size(), path()))
    stack_publish();
}

static void on_match(const ros::SingleSubscriberPublisher &)
{
  sem_post(&traffic.changed);
}

// roscpp has no notification that a subscription has found a publisher.
static void watch_subscriptions()
{
  while (subscribers.back().getNumPublishers() == 0)
    sleep_ns(2000000);
  sem_post(&traffic.changed);
}

static void add_endpoints(const char *out, const char *in)
{
  uint32_t queue = host.keep_all ? 0 : (uint32_t)host.depth;
  auto absolute = [](const char *name) { return std::string("/") + name; };
  if (out) {
    ros::SubscriberStatusCallback matched = on_match;
    publishers.push_back(host.text ? node->advertise<Text>(absolute(out), queue, matched, matched)
                                   : node->advertise<Bytes>(absolute(out), queue, matched, matched));
  }
  if (in) {
    subscribers.push_back(host.text ? node->subscribe<Text>(absolute(in), queue, on_text)
                                    : node->subscribe<Bytes>(absolute(in), queue, on_bytes));
    if (host.verb != HOST_NODES)
      std::thread(watch_subscriptions).detach();
  }
}

static void join()
{
  if (host.best_effort)
    fail(HOST_UNSUPPORTED, "unsupported: ROS 1 has no policies, and TCPROS is reliable");
  if (host.loan)
    fail(HOST_UNSUPPORTED, "unsupported: ROS 1 lends no memory");
  const uint32_t options = ros::init_options::NoSigintHandler | ros::init_options::AnonymousName;
  ros::init(ros::VP_string(), "host", options);
  node.reset(new ros::NodeHandle);
  spinner.reset(new ros::AsyncSpinner(1));
  spinner->start();
}

// A published message must not be changed afterwards.
static void renew()
{
  if (host.text) {
    text = boost::make_shared<Text>();
    text->data.assign(host.size, 'x');
  } else {
    bytes = boost::make_shared<Bytes>();
    bytes->data.resize(host.size);
    fill_payload(bytes->data.data(), host.size, 1, false);
  }
}

static void stack_open(const char *out, const char *in)
{
  join();
  renew();
  add_endpoints(out, in);
}

static void stack_publish(void)
{
  bool inside = host.verb == HOST_INTRA;
  if (inside)
    renew();
  if (host.text) {
    traffic_fill(reinterpret_cast<uint8_t *>(&text->data[0]));
    inside ? publishers.back().publish(text) : publishers.back().publish(*text);
  } else {
    traffic_fill(bytes->data.data());
    inside ? publishers.back().publish(bytes) : publishers.back().publish(*bytes);
  }
}

static void stack_matched(long *readers, long *writers)
{
  *readers = publishers.empty() ? 0 : (long)publishers.back().getNumSubscribers();
  *writers = subscribers.empty() ? 0 : (long)subscribers.back().getNumPublishers();
}

// A process is one ROS 1 node. Its parts are counted as nodes here.
static void stack_add_node(const char *out, const char *in)
{
  if (!node)
    join();
  add_endpoints(out, in);
}

int main(int argc, char **argv)
{
  return host_main(argc, argv);
}
