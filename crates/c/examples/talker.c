/* Publishes "Hello World: N" on /chatter, as often as the first argument says, or for ever. */
#include <pteros/pteros.h>
#include <stdio.h>
#include <std_msgs/msg/string.h>

typedef struct {
  pteros_context_t *context;
  pteros_publisher_t *publisher;
  std_msgs__msg__String message;
  long count, count_max;
} talker_t;

static void speak(void *user) {
  talker_t *talker = user;
  char text[64];
  snprintf(text, sizeof text, "Hello World: %ld", ++talker->count);
  pteros_string_assign(&talker->message.data, text);
  if (pteros_publisher_publish(talker->publisher, &talker->message) != PTEROS_OK)
    fprintf(stderr, "%s\n", pteros_error_message());
  printf("Publishing: '%s'\n", text);
  fflush(stdout);
  if (talker->count == talker->count_max) pteros_context_shutdown(talker->context);
}

int main(int argc, char **argv) {
  talker_t talker = {0};
  talker.count_max = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  talker.context = pteros_context_new(argc, (const char *const *)argv);
  pteros_node_t *node = pteros_node_new(talker.context, "talker", NULL);
  talker.publisher = pteros_publisher_new(node, &std_msgs__msg__String__type, "chatter", NULL);
  pteros_timer_t *timer = pteros_timer_new(node, 100 * 1000000, false, speak, &talker, NULL);
  pteros_executor_t *executor = pteros_executor_new(talker.context);
  int failed = timer == NULL || !std_msgs__msg__String__init(&talker.message) ||
               pteros_executor_add_node(executor, node) != PTEROS_OK ||
               pteros_executor_spin(executor) != PTEROS_OK;
  if (failed) fprintf(stderr, "%s\n", pteros_error_message());
  std_msgs__msg__String__fini(&talker.message);
  pteros_executor_free(executor);
  pteros_timer_free(timer);
  pteros_publisher_free(talker.publisher);
  pteros_node_free(node);
  pteros_context_free(talker.context);
  return failed;
}
