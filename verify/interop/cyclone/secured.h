/* DDS Security for a participant of Cyclone DDS: the files of an enclave of
 * an SROS 2 keystore as properties of its QoS, as rmw_cyclonedds sets them. */
#ifndef CYCLONE_SECURED_H
#define CYCLONE_SECURED_H

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "dds/dds.h"

/* Debian installs the plug-ins in a folder beside the library, where the
 * loader does not search. */
static void set_plugin(dds_qos_t *qos, const char *role, const char *name, const char *functions)
{
  char property[64], path[PATH_MAX + 64], value[64];
  Dl_info library;
  snprintf(path, sizeof path, "dds_security_%s", name);
  if (dladdr((void *)(uintptr_t)dds_create_participant, &library)) {
    const char *slash = strrchr(library.dli_fname, '/');
    char beside[PATH_MAX];
    snprintf(beside, sizeof beside, "%.*s/libddsc0debian/libdds_security_%s.so",
             slash ? (int)(slash - library.dli_fname) : 1, slash ? library.dli_fname : ".", name);
    if (!access(beside, R_OK))
      snprintf(path, sizeof path, "%s", beside);
  }
  snprintf(property, sizeof property, "dds.sec.%s.library.path", role);
  dds_qset_prop(qos, property, path);
  snprintf(property, sizeof property, "dds.sec.%s.library.init", role);
  snprintf(value, sizeof value, "init_%s", functions);
  dds_qset_prop(qos, property, value);
  snprintf(property, sizeof property, "dds.sec.%s.library.finalize", role);
  snprintf(value, sizeof value, "finalize_%s", functions);
  dds_qset_prop(qos, property, value);
}

/* Secures the participant with the files in `folder`. */
static void secure(dds_qos_t *qos, const char *folder)
{
  static const char *const files[][2] = {
    { "dds.sec.auth.identity_ca", "identity_ca.cert.pem" },
    { "dds.sec.auth.identity_certificate", "cert.pem" },
    { "dds.sec.auth.private_key", "key.pem" },
    { "dds.sec.access.permissions_ca", "permissions_ca.cert.pem" },
    { "dds.sec.access.governance", "governance.p7s" },
    { "dds.sec.access.permissions", "permissions.p7s" },
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char value[PATH_MAX];
    snprintf(value, sizeof value, "file:%s/%s", folder, files[i][1]);
    if (access(value + 5, R_OK))
      fail(EXIT_USAGE, "--security %s: cannot read %s", folder, files[i][1]);
    dds_qset_prop(qos, files[i][0], value);
  }
  set_plugin(qos, "auth", "auth", "authentication");
  set_plugin(qos, "access", "ac", "access_control");
  set_plugin(qos, "crypto", "crypto", "crypto");
}

#endif
