/* Prints the nodes of the graph on rcl at each change, until SIGINT: `nodes /a /b`. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>

enum { NODES_MAX = 64, NAME_BYTES = 512 };

static volatile sig_atomic_t is_stopped;

static void stop(int number)
{
  (void)number;
  is_stopped = 1;
}

static int by_name(const void *one, const void *other)
{
  return strcmp(one, other);
}

/* Writes the line of the nodes that are known now, sorted; returns whether it can. */
static int list(const rcl_node_t *node, char *line, size_t size)
{
  static char all[NODES_MAX][NAME_BYTES];
  rcutils_string_array_t names = rcutils_get_zero_initialized_string_array();
  rcutils_string_array_t spaces = rcutils_get_zero_initialized_string_array();
  if (rcl_get_node_names(node, rcl_get_default_allocator(), &names, &spaces) != RCL_RET_OK) {
    return 0;
  }
  size_t count = names.size < NODES_MAX ? names.size : NODES_MAX;
  for (size_t i = 0; i < count; i++) {
    const char *space = strcmp(spaces.data[i], "/") == 0 ? "" : spaces.data[i];
    snprintf(all[i], NAME_BYTES, "%s/%s", space, names.data[i]);
  }
  qsort(all, count, NAME_BYTES, by_name);
  size_t used = (size_t)snprintf(line, size, "nodes");
  for (size_t i = 0; i < count && used + NAME_BYTES < size; i++) {
    used += (size_t)snprintf(line + used, size - used, " %s", all[i]);
  }
  return rcutils_string_array_fini(&names) == RCUTILS_RET_OK
    && rcutils_string_array_fini(&spaces) == RCUTILS_RET_OK;
}

int main(int argc, const char **argv)
{
  static char line[NODES_MAX * NAME_BYTES], before[sizeof line];
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_node_options_t node_options = rcl_node_get_default_options();
  if (rcl_init_options_init(&options, rcl_get_default_allocator()) != RCL_RET_OK
    || rcl_init(argc, argv, &options, &context) != RCL_RET_OK
    || rcl_node_init(&node, "lister", "", &context, &node_options) != RCL_RET_OK)
  {
    fprintf(stderr, "%s\n", rcl_get_error_string().str);
    return 1;
  }
  signal(SIGINT, stop);
  while (!is_stopped) {
    if (!list(&node, line, sizeof line)) {
      fprintf(stderr, "%s\n", rcl_get_error_string().str);
      return 1;
    }
    if (strcmp(line, before) != 0) {
      printf("%s\n", line);
      fflush(stdout);
      strcpy(before, line);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
  }
  return rcl_node_fini(&node) != RCL_RET_OK || rcl_shutdown(&context) != RCL_RET_OK
    || rcl_context_fini(&context) != RCL_RET_OK;
}
