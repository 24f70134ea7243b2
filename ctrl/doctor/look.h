// SPDX-License-Identifier: Apache-2.0
// Reading the kernel's files below a root, for the checks of a host. Private to ctrl/doctor.
// Thread: any.
#pragma once

#include "ctrl/doctor/host.h"

#include <limits.h>
#include <sched.h>
#include <stddef.h>

#define LOOK_GROUP_MAX 256

// The file's first line, without its end. False = it can't be read.
bool look_line(const char *path, char *ret, size_t size);
// The number that the file begins with; fallback = there is none.
long look_number(const char *path, long fallback);
// "0-3,8": the kernel's lists of cores. Of a text, and of a file. False = there is none.
bool look_cores_of(const char *text, cpu_set_t *ret);
bool look_cores(const char *path, cpu_set_t *ret);
// The value, in KiB, of a line such as "MemAvailable: 1234 kB"; -1 = there is none.
long look_field(const char *path, const char *field);
// The directory of a path; "/" or "." at least.
const char *look_folder(const char *path, char ret[PATH_MAX]);

// The least value of a file of our control group and of those around it, in the unified hierarchy,
// with the group's name. read: the value in the file, negative = it says nothing. False = there is
// none.
bool look_cgroups(const struct doctor_host *, const char *file, double (*read)(const char *path),
	double *ret, char ret_group[LOOK_GROUP_MAX]);

// The checks, by file.
void check_core_online(const struct doctor_host *); // cores.c
void check_core_usable(const struct doctor_host *);
void check_core_control(const struct doctor_host *);
void check_core_sibling(const struct doctor_host *);
void check_core_isolated(const struct doctor_host *);
void check_core_irq(const struct doctor_host *);
void check_core_numa(const struct doctor_host *);
void check_cpu_quota(const struct doctor_host *);
void check_hugepages(const struct doctor_host *); // memory.c
void check_hugetlbfs(const struct doctor_host *);
void check_dpdk_memory(const struct doctor_host *);
void check_memory(const struct doctor_host *);
void check_memory_limit(const struct doctor_host *);
void check_memlock(const struct doctor_host *);
void check_device(const struct doctor_host *); // devices.c
void check_capabilities(const struct doctor_host *);
void check_link(const struct doctor_host *);
void check_mtu(const struct doctor_host *);
void check_offloads(const struct doctor_host *);
void check_kernel_address(const struct doctor_host *);
void check_files(const struct doctor_host *); // access.c
void check_socket(const struct doctor_host *);
void check_socket_mode(const struct doctor_host *);
void check_listen(const struct doctor_host *);
void check_log_directory(const struct doctor_host *);
void check_log_file(const struct doctor_host *);
void check_directory(const struct doctor_host *);
void check_clock_source(const struct doctor_host *); // clocks.c
void check_clock_synchronised(const struct doctor_host *);
void check_clock_date(const struct doctor_host *);
void check_bootstrap(const struct doctor_host *); // upstream.c
void check_xds_server(const struct doctor_host *);
void check_certificates(const struct doctor_host *);
void check_certificate_dates(const struct doctor_host *);
