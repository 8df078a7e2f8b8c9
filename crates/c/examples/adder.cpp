// A service, a client, a topic and a timer in C++17, by lambdas. Ends by itself.
#include <cstdio>
#include <example_interfaces/srv/add_two_ints.h>
#include <pteros/pteros.hpp>
#include <std_msgs/msg/int64.h>

PTEROS_CPP_MESSAGE(std_msgs__msg__Int64)
PTEROS_CPP_SERVICE(example_interfaces__srv__AddTwoInts)

int main(int argc, char **argv) try {
  using namespace std::chrono_literals;
  using Add = example_interfaces__srv__AddTwoInts;
  using Number = std_msgs__msg__Int64;
  pteros::Context context(argc, argv);
  pteros::Node node(context, "adder");
  node.declare_parameter("step", 2);
  node.declare_parameter("frame", std::string("base"));
  node.declare_parameter("gain", 0.5f);
  node.declare_parameter("is_on", true);
  auto step = node.parameter<int64_t>("step");

  auto service = node.create_service<Add>(
      "add", [](const Add::Request &terms, Add::Response &sum) { sum.sum = terms.a + terms.b; });
  auto publisher = node.create_publisher<Number>("sums");
  auto client = node.create_client<Add>("add");
  client.wait_for_service(5s);

  int64_t sum = 0;
  auto subscription = node.create_subscription<Number>("sums", [&](const Number &number) {
    std::printf("sum: %lld\n", static_cast<long long>(number.data));
    if (number.data >= 3 * step) context.shutdown();
  });
  auto timer = node.create_timer(20ms, [&] {
    Add::Request request{};
    request.a = sum;
    request.b = step;
    client.call_async(request, [&](const Add::Response *response, const char *error) {
      if (response == nullptr) return std::puts(error), context.shutdown();
      sum = response->sum;
      pteros::Message<Number> number;
      number->data = sum;
      publisher.publish(number);
    });
  });
  pteros::Executor executor(context);
  executor.add_node(node);
  executor.spin();
  std::puts("passed");
} catch (const pteros::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
