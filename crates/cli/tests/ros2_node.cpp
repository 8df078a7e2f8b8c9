// A node of rclcpp that serves or asks: an action and the states of a managed node.
// Arguments: `serve` or `ask`. `ask` ends after each was answered, and says so.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <example_interfaces/action/fibonacci.hpp>
#include <lifecycle_msgs/srv/change_state.hpp>
#include <lifecycle_msgs/srv/get_state.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_action/rclcpp_action.hpp>
#include <rclcpp_lifecycle/lifecycle_node.hpp>

using namespace std::chrono_literals;
using Fibonacci = example_interfaces::action::Fibonacci;
using Goal = rclcpp_action::ServerGoalHandle<Fibonacci>;
using lifecycle_msgs::srv::ChangeState;
using lifecycle_msgs::srv::GetState;

static void say(const char * text)
{
  std::puts(text);
  std::fflush(stdout);
}

// The client ignores feedback that arrives before it knows that the goal is accepted.
static void execute(std::shared_ptr<Goal> goal)
{
  auto feedback = std::make_shared<Fibonacci::Feedback>();
  auto result = std::make_shared<Fibonacci::Result>();
  for (int number = 0; number < goal->get_goal()->order; ++number) {
    std::this_thread::sleep_for(50ms);
    result->sequence.push_back(number);
    feedback->sequence = result->sequence;
    goal->publish_feedback(feedback);
  }
  goal->succeed(result);
}

static void serve()
{
  auto node = std::make_shared<rclcpp_lifecycle::LifecycleNode>("server");
  auto count = rclcpp_action::create_server<Fibonacci>(
    node, "count",
    [](const rclcpp_action::GoalUUID &, std::shared_ptr<const Fibonacci::Goal>) {
      return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
    },
    [](std::shared_ptr<Goal>) {return rclcpp_action::CancelResponse::ACCEPT;},
    [](std::shared_ptr<Goal> goal) {std::thread(execute, goal).detach();});
  say("serving");
  rclcpp::spin(node->get_node_base_interface());
}

template<typename Future>
static auto answer(rclcpp::Node::SharedPtr node, Future & future)
{
  if (rclcpp::spin_until_future_complete(node, future, 30s) != rclcpp::FutureReturnCode::SUCCESS) {
    say("no answer in time");
    std::exit(1);
  }
  return future.get();
}

template<typename Service>
static auto call(rclcpp::Node::SharedPtr node, const char * name, typename Service::Request request)
{
  auto client = node->create_client<Service>(name);
  if (!client->wait_for_service(30s)) {
    say("no server in time");
    std::exit(1);
  }
  auto future = client->async_send_request(std::make_shared<typename Service::Request>(request));
  return answer(node, future);
}

static void ask()
{
  auto node = std::make_shared<rclcpp::Node>("asker");
  auto client = rclcpp_action::create_client<Fibonacci>(node, "count");
  if (!client->wait_for_action_server(30s)) {
    say("no action server in time");
    std::exit(1);
  }
  bool is_heard = false;
  auto options = rclcpp_action::Client<Fibonacci>::SendGoalOptions();
  options.feedback_callback =
    [&is_heard](auto, const std::shared_ptr<const Fibonacci::Feedback>) {is_heard = true;};
  Fibonacci::Goal goal;
  goal.order = 5;
  auto sent = client->async_send_goal(goal, options);
  auto accepted = answer(node, sent);
  auto result = client->async_get_result(accepted);
  std::printf("action: %zu numbers\n", answer(node, result).result->sequence.size());
  say(is_heard ? "feedback: heard" : "feedback: none");
  ChangeState::Request change;
  for (auto transition : {1, 3}) {  // configure, activate
    change.transition.id = transition;
    auto done = call<ChangeState>(node, "/server/change_state", change);
    std::printf("transition %d: %s\n", transition, done->success ? "done" : "refused");
  }
  auto state = call<GetState>(node, "/server/get_state", GetState::Request());
  std::printf("state: %s\n", state->current_state.label.c_str());
  say("all answered");
}

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  if (argc > 1 && !std::strcmp(argv[1], "serve")) {
    serve();
  } else {
    ask();
  }
  rclcpp::shutdown();
}
