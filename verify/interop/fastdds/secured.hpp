// DDS Security for a participant of Fast DDS: the files of an enclave of an
// SROS 2 keystore as properties of its QoS, as rmw_fastrtps sets them.
#ifndef FASTDDS_SECURED_HPP
#define FASTDDS_SECURED_HPP

#include <string>
#include <unistd.h>

#include <fastdds/dds/domain/qos/DomainParticipantQos.hpp>

// Secures the participant with the files in `folder`.
static void secure(eprosima::fastdds::dds::DomainParticipantQos &qos, const std::string &folder)
{
  auto &properties = qos.properties().properties();
  auto set = [&](const char *name, const std::string &value) { properties.emplace_back(name, value); };
  auto set_file = [&](const char *name, const char *file) {
    if (access((folder + "/" + file).c_str(), R_OK))
      fail(EXIT_USAGE, "--security %s: cannot read %s", folder.c_str(), file);
    set(name, "file://" + folder + "/" + file);
  };
  set("dds.sec.auth.plugin", "builtin.PKI-DH");
  set_file("dds.sec.auth.builtin.PKI-DH.identity_ca", "identity_ca.cert.pem");
  set_file("dds.sec.auth.builtin.PKI-DH.identity_certificate", "cert.pem");
  set_file("dds.sec.auth.builtin.PKI-DH.private_key", "key.pem");
  set("dds.sec.access.plugin", "builtin.Access-Permissions");
  set_file("dds.sec.access.builtin.Access-Permissions.permissions_ca", "permissions_ca.cert.pem");
  set_file("dds.sec.access.builtin.Access-Permissions.governance", "governance.p7s");
  set_file("dds.sec.access.builtin.Access-Permissions.permissions", "permissions.p7s");
  set("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
}

#endif
