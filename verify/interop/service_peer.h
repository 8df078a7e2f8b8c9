/* Common part of the C and C++ service programs: options and commands.
 * `serve` responds; `call` reads lines from stdin (`call A B`) and prints the
 * responses. README.md in this folder describes options and lines. Plain C
 * that also compiles as C++; it contains no DDS. */
#ifndef SERVICE_PEER_H
#define SERVICE_PEER_H

#include "peer.h"

struct service_options {
  bool serve;
  const char *service;
  int domain;
  double timeout;     /* seconds; 0 for no limit */
  long late_reader_ms; /* `call`: creates its reply reader this long after the first request */
};

static struct service_options service_parse(int argc, char **argv)
{
  struct service_options o;
  memset(&o, 0, sizeof o);
  o.service = "/add_two_ints";
  if (argc < 2 || (strcmp(argv[1], "serve") && strcmp(argv[1], "call")))
    fail(EXIT_USAGE, "usage: serve|call [--service NAME] [--domain N] [--timeout S] [--late-reader MS]");
  o.serve = !strcmp(argv[1], "serve");
  for (int i = 2; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value)
      fail(EXIT_USAGE, "%s needs a value", argv[i]);
    if (!strcmp(argv[i], "--service"))
      o.service = value;
    else if (!strcmp(argv[i], "--domain"))
      o.domain = atoi(value);
    else if (!strcmp(argv[i], "--timeout"))
      o.timeout = atof(value);
    else if (!strcmp(argv[i], "--late-reader"))
      o.late_reader_ms = atol(value);
    else
      fail(EXIT_USAGE, "%s: no such option", argv[i]);
  }
  return o;
}

static const char *service_topic(const struct service_options *o, bool requests)
{
  static char names[2][256];
  snprintf(names[requests], sizeof names[requests], requests ? "rq%sRequest" : "rr%sReply", o->service);
  return names[requests];
}

/* The next `call A B` of stdin; false at its end. */
static bool service_order(long long *a, long long *b)
{
  char line[128];
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "call %lld %lld", a, b) == 2)
      return true;
    say("refused %s", line);
  }
  return false;
}

static int64_t service_end(const struct service_options *o)
{
  return o->timeout > 0 ? now_ns() + seconds(o->timeout) : INT64_MAX;
}

#endif
