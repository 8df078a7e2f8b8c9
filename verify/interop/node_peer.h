/* Common part of the action and parameter programs in C and C++: options,
 * commands on stdin that are read without blocking, service names. Plain C
 * that also compiles as C++; it contains no DDS. */
#ifndef NODE_PEER_H
#define NODE_PEER_H

#include <fcntl.h>
#include <unistd.h>

#include "peer.h"

struct node_options {
  bool serve, endless; /* endless: goals end only when cancelled */
  const char *name;    /* name of the action, or of the node with the parameters */
  int domain;
  double timeout;      /* seconds; 0 for no limit */
};

static struct node_options node_parse(int argc, char **argv, const char *name)
{
  struct node_options o;
  memset(&o, 0, sizeof o);
  o.name = name;
  if (argc < 2 || (strcmp(argv[1], "serve") && strcmp(argv[1], "call")))
    fail(EXIT_USAGE, "usage: serve|call [--name NAME] [--domain N] [--timeout S] [--endless yes]");
  o.serve = !strcmp(argv[1], "serve");
  for (int i = 2; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value)
      fail(EXIT_USAGE, "%s needs a value", argv[i]);
    if (!strcmp(argv[i], "--name"))
      o.name = value;
    else if (!strcmp(argv[i], "--domain"))
      o.domain = atoi(value);
    else if (!strcmp(argv[i], "--timeout"))
      o.timeout = atof(value);
    else if (!strcmp(argv[i], "--endless"))
      o.endless = !strcmp(value, "yes");
    else
      fail(EXIT_USAGE, "%s: no such option", argv[i]);
  }
  return o;
}

static int64_t node_end(const struct node_options *o)
{
  return o->timeout > 0 ? now_ns() + seconds(o->timeout) : INT64_MAX;
}

/* `rq/NAME/SERVICERequest` or `rr/NAME/SERVICEReply`, with NAME as it is in ROS;
 * good until the call after the next. */
static const char *service_topic(const char *name, const char *service, bool requests)
{
  static char names[2][512];
  static int next;
  char *topic = names[next = !next];
  snprintf(topic, sizeof names[0], requests ? "rq%s/%sRequest" : "rr%s/%sReply", name, service);
  return topic;
}

/* The next line of stdin without its line break; NULL if there is none yet.
 * Never blocks. The end of stdin requests the end of the program. */
static bool take_order(char *line, size_t room)
{
  static char held[4096];
  static size_t length;
  static bool nonblocking;
  if (!nonblocking)
    nonblocking = fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK) == 0;
  for (;;) {
    char *end = (char *)memchr(held, '\n', length);
    if (end) {
      size_t size = (size_t)(end - held);
      if (size >= room)
        fail(EXIT_USAGE, "an order of more than %zu bytes", room);
      memcpy(line, held, size);
      line[size] = 0;
      length -= size + 1;
      memmove(held, end + 1, length);
      return true;
    }
    ssize_t got = read(0, held + length, sizeof held - length);
    if (got == 0)
      stop_requested = 1;
    if (got <= 0)
      return false;
    length += (size_t)got;
  }
}

#endif
