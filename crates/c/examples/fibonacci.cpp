// An action server and its client in C++17, by lambdas. Ends by itself.
#include <cstdio>
#include <example_interfaces/action/fibonacci.h>
#include <optional>
#include <pteros/pteros.hpp>
#include <thread>

PTEROS_CPP_ACTION(example_interfaces__action__Fibonacci)

using Fibonacci = example_interfaces__action__Fibonacci;
using Numbers = rosidl_runtime_c__int32__Sequence;

static void append(Numbers &numbers, int at) {
  numbers.data[at] = at < 2 ? at : numbers.data[at - 1] + numbers.data[at - 2];
}

int main(int argc, char **argv) try {
  using namespace std::chrono_literals;
  pteros::Context context(argc, argv);
  pteros::Node node(context, "fibonacci");

  std::optional<pteros::ServerGoal<Fibonacci>> endless;
  auto server = node.create_action_server<Fibonacci>(
      "fibonacci",
      [](const Fibonacci::Goal &goal) {
        return goal.order < 0 ? pteros::GoalResponse::Reject : pteros::GoalResponse::Accept;
      },
      [](const pteros::GoalId &) { return true; },
      [&](pteros::ServerGoal<Fibonacci> goal) {
        int order = goal.goal().order;
        if (order == 0) {  // works until it is cancelled
          endless = std::move(goal);
          return;
        }
        pteros::Message<Fibonacci::Feedback> partial;
        pteros::Message<Fibonacci::Result> result;
        rosidl_runtime_c__int32__Sequence__init(&partial->sequence, order);
        for (int at = 0; at < order; at++) append(partial->sequence, at);
        goal.publish_feedback(*partial);
        std::swap(result->sequence, partial->sequence);
        goal.succeed(*result);
      });
  auto timer = node.create_timer(10ms, [&] {
    if (!endless || !endless->is_canceling()) return;
    endless->canceled(*pteros::Message<Fibonacci::Result>());
    endless.reset();
  });

  pteros::Executor executor(context);
  executor.add_node(node);
  std::thread spinning([&] { executor.spin(); });
  int status = 0, rejected = 0, feedback = 0, last = 0;
  {
    auto client = node.create_action_client<Fibonacci>("fibonacci");
    client.wait_for_server(10s);
    auto accepted = client.send_goal({7}, 10s, [&](const Fibonacci::Feedback &partial) {
      feedback += static_cast<int>(partial.sequence.size);
    });
    auto [ended, result] = accepted.result(10s);
    last = ended == PTEROS_GOAL_STATUS_SUCCEEDED ? result->sequence.data[6] : -1;
    std::printf("the seventh number: %d\n", last);
    try {
      client.send_goal({-1}, 10s);
    } catch (const pteros::Error &error) {
      rejected = error.status() == PTEROS_REJECTED;
    }
    auto open = client.send_goal({0}, 10s);
    if (open.cancel(10s)) status = open.result(10s).status;
  }
  executor.cancel();
  spinning.join();
  if (last != 8 || !rejected || status != PTEROS_GOAL_STATUS_CANCELED || feedback > 7) return 1;
  std::puts("passed");
} catch (const pteros::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
