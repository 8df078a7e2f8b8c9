/* Prints what it hears on /chatter. Ends after as many messages as the first argument says.
 * It waits for them in its own event loop: poll(2) on the executor's descriptor. */
#include <poll.h>
#include <pteros/pteros.h>
#include <stdio.h>
#include <std_msgs/msg/string.h>

typedef struct {
  pteros_context_t *context;
  long left;
} listener_t;

static void hear(const void *message, const pteros_message_info_t *info, void *user) {
  const std_msgs__msg__String *text = message;
  listener_t *listener = user;
  (void)info;
  printf("I heard: [%s]\n", text->data.data);
  fflush(stdout);
  if (--listener->left == 0) pteros_context_shutdown(listener->context);
}

int main(int argc, char **argv) {
  listener_t listener = {0};
  listener.left = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
  listener.context = pteros_context_new(argc, (const char *const *)argv);
  pteros_node_t *node = pteros_node_new(listener.context, "listener", NULL);
  pteros_subscription_t *subscription = pteros_subscription_new(
      node, &std_msgs__msg__String__type, "chatter", NULL, hear, &listener, NULL);
  pteros_executor_t *executor = pteros_executor_new(listener.context);
  struct pollfd ready = {.events = POLLIN};
  int failed = subscription == NULL || pteros_executor_add_node(executor, node) != PTEROS_OK ||
               pteros_executor_fd(executor, &ready.fd) != PTEROS_OK;
  if (failed) fprintf(stderr, "%s\n", pteros_error_message());
  while (!failed && !pteros_context_is_shut_down(listener.context)) {
    poll(&ready, 1, -1);
    failed = pteros_executor_spin_some(executor, NULL) != PTEROS_OK;
  }
  pteros_executor_free(executor);
  pteros_subscription_free(subscription);
  pteros_node_free(node);
  pteros_context_free(listener.context);
  return failed;
}
