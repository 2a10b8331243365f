/* What kind of container this process runs in, as far as such places tell. */
#ifndef ABX_PRIM_CONTAINER_KIND_H
#define ABX_PRIM_CONTAINER_KIND_H

#include <stdbool.h>

enum { CONTAINER_KIND_MAX = 33 };

/* "docker", "podman", "kubernetes", "lxc", "systemd-nspawn", "wsl" … ; false where none is seen (a virtual machine is
 * none). root as in kernel_text.h. Sources: systemd's CONTAINER_INTERFACE ($container of process 1,
 * /run/systemd/container, /run/host/container-manager), /run/.containerenv of podman, /.dockerenv, the mounted account
 * of Kubernetes, paths of control groups. */
bool container_kind(const char *root, char out[CONTAINER_KIND_MAX]);

#endif
