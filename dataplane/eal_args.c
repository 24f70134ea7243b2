// SPDX-License-Identifier: Apache-2.0
#include "dataplane/eal_args.h"

#include "dataplane/device_name.h"
#include "dataplane/pci_addr.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// With one allowed device EAL leaves all others alone, but knows the bus, on which ports are opened
// later. No device ever has this address: Linux numbers domains from 0.
#define NO_DEVICE "ffffffff:ff:1f.7"

// With or without a value behind "=" or, of short ones, behind the letter.
static bool is_option(const char *arg, const char *name)
{
	size_t len = strlen(name);
	if (strncmp(arg, name, len) != 0)
		return false;
	bool is_long = name[1] == '-';
	return !is_long || arg[len] == '\0' || arg[len] == '=';
}

static bool is_any(const char *arg, const char *const *names)
{
	for (; *names; names++)
		if (is_option(arg, *names))
			return true;
	return false;
}

static bool has_any(const struct eal_args_conf *conf, const char *const *names)
{
	for (uint32_t i = 0; i < conf->n_given; i++)
		if (is_any(conf->given[i], names))
			return true;
	return false;
}

static bool has(const struct eal_args_conf *conf, const char *name)
{
	return has_any(conf, (const char *const[]){name, NULL});
}

static int add(struct eal_args *a, const char *arg)
{
	if (a->n == EAL_ARGS_MAX)
		return -E2BIG;
	char *copy = strdup(arg);
	if (!copy)
		return -ENOMEM;
	a->list[a->n++] = copy;
	return 0;
}

bool eal_args_want_hugepages(const char *const *given, uint32_t n)
{
	static const char *const words[] = {"--in-memory", "--huge-dir", "--huge-unlink",
		"--huge-worker-stack", "--legacy-mem", "--match-allocations",
		"--single-file-segments", "--socket-limit", "--socket-mem", NULL};
	struct eal_args_conf conf = {.given = given, .n_given = n};
	return has_any(&conf, words) && !has(&conf, "--no-huge");
}

// Devices.

// What `eal` allows at i, either in one argument or in two (*ret_n). NULL = it is no such option.
static const char *allowed_at(const struct eal_args_conf *conf, uint32_t i, uint32_t *ret_n)
{
	const char *arg = conf->given[i];
	*ret_n = 1;
	if (strncmp(arg, "--allow=", strlen("--allow=")) == 0)
		return arg + strlen("--allow=");
	if (strncmp(arg, "-a", 2) == 0 && arg[2])
		return arg + 2;
	if ((strcmp(arg, "-a") != 0 && strcmp(arg, "--allow") != 0) || i + 1 == conf->n_given)
		return NULL;
	*ret_n = 2;
	return conf->given[i + 1];
}

static int port_of(const struct eal_args_conf *conf, uint32_t device)
{
	return conf->device_ports ? conf->device_ports[device] : (int)device;
}

// -1 = of none.
static int port_with(const struct eal_args_conf *conf, const struct pci_addr *addr)
{
	struct pci_addr own;
	for (uint32_t i = 0; i < conf->n_devices; i++)
		if (pci_addr_parse(conf->devices[i], &own) && pci_addr_eq(&own, addr))
			return port_of(conf, i);
	return -1;
}

static bool has_pci_port(const struct eal_args_conf *conf)
{
	struct pci_addr addr;
	for (uint32_t i = 0; i < conf->n_devices; i++)
		if (pci_addr_parse(conf->devices[i], &addr))
			return true;
	return false;
}

static int check_devices(const struct eal_args_conf *conf, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < conf->n_devices; i++)
		if (device_name_check(conf->devices[i], reterr))
			return lb_err_within(reterr, "ports[%d].device", port_of(conf, i));
	return 0;
}

// *ret_taken: how many arguments at i stay out, since they allow a port's device.
static int skip_port(const struct eal_args_conf *conf, uint32_t i, bool *other_pci,
	uint32_t *ret_taken, struct lb_err *reterr)
{
	struct pci_addr addr;
	uint32_t n;
	const char *device = allowed_at(conf, i, &n);
	*ret_taken = 0;
	if (!device || !pci_addr_parse(device, &addr))
		return 0;
	int port = port_with(conf, &addr);
	if (port < 0) {
		*other_pci = true;
		return 0;
	}
	if (*pci_addr_skip(device))
		return lb_err_set(reterr,
			"eal[%u]: '%s': parameters of a port's device belong into ports[%d]",
			i + n - 1, device, port);
	*ret_taken = n;
	return 0;
}

static bool takes_next(const char *arg)
{
	return strcmp(arg, "-a") == 0 || strcmp(arg, "--allow") == 0 || strcmp(arg, "-m") == 0;
}

static int check_given(const struct eal_args_conf *conf, struct lb_err *reterr)
{
	static const char *const ours[] = {"-c", "-l", "-S", "--lcores", "--main-lcore", "-b",
		"--block", "--vdev", "--proc-type", NULL};
	for (uint32_t i = 0; i < conf->n_given; i++) {
		const char *arg = conf->given[i];
		if (is_any(arg, ours))
			return lb_err_set(
				reterr, "eal[%u]: %s is decided by workers and ports", i, arg);
		// What we add would become its value.
		if (i + 1 == conf->n_given && takes_next(arg))
			return lb_err_set(reterr, "eal[%u]: %s: its value is missing", i, arg);
		if (is_option(arg, "--no-pci") && has_pci_port(conf))
			return lb_err_set(
				reterr, "eal[%u]: --no-pci, but a port is a PCI device", i);
	}
	return 0;
}

static int add_given(const struct eal_args_conf *conf, struct eal_args *a, struct lb_err *reterr)
{
	// DPDK 22.11 refuses --in-memory beside --no-huge, which has no shared files but the
	// configuration anyway: say that instead.
	bool no_huge = has(conf, "--no-huge"), other_pci = false;
	uint32_t taken;
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < conf->n_given; i += taken) {
		rc = skip_port(conf, i, &other_pci, &taken, reterr);
		if (rc || taken)
			continue;
		taken = 1;
		bool memory_only = no_huge && is_option(conf->given[i], "--in-memory");
		rc = add(a, memory_only ? "--no-shconf" : conf->given[i]);
	}
	if (rc || other_pci)
		return rc;
	if (!has_pci_port(conf))
		return has(conf, "--no-pci") ? 0 : add(a, "--no-pci");
	rc = add(a, "-a");
	return rc ? rc : add(a, NO_DEVICE);
}

// Memory, and the rest of what shunt.yaml may leave out.

static int add_memory(const struct eal_args_conf *conf, struct eal_args *a)
{
	static const char *const with_files[] = {
		"--in-memory", "--huge-dir", "--huge-unlink", "--legacy-mem", NULL};
	if (eal_args_want_hugepages(conf->given, conf->n_given))
		return has_any(conf, with_files) ? 0 : add(a, "--in-memory");
	int rc = has(conf, "--no-huge") ? 0 : add(a, "--no-huge");
	if (rc == 0 && !has(conf, "--in-memory") && !has(conf, "--no-shconf"))
		rc = add(a, "--no-shconf");
	if (rc || has(conf, "-m") || !conf->memory_mib)
		return rc;
	char text[16];
	snprintf(text, sizeof(text), "%u", conf->memory_mib);
	rc = add(a, "-m");
	return rc ? rc : add(a, text);
}

static int add_iova(const struct eal_args_conf *conf, struct eal_args *a)
{
	bool huge = eal_args_want_hugepages(conf->given, conf->n_given);
	if (has(conf, "--iova-mode"))
		return 0;
	if (huge && conf->wants_pa)
		return add(a, "--iova-mode=pa");
	// Without a device that has a say, DPDK takes what the machine can do.
	return huge && !has_pci_port(conf) ? 0 : add(a, "--iova-mode=va");
}

static int add_implied(const struct eal_args_conf *conf, struct eal_args *a)
{
	int rc = add_memory(conf, a);
	if (rc == 0)
		rc = add_iova(conf, a);
	if (rc == 0 && !has(conf, "--file-prefix"))
		rc = add(a, "--file-prefix=shunt");
	// It warns at each start that nobody uses its older protocol.
	if (rc == 0 && !has(conf, "--no-telemetry"))
		rc = add(a, "--log-level=lib.telemetry:error");
	return rc;
}

// "0@(0,2),1@1": main on the cores that are left, worker i as lcore i + 1 on its own.
static int add_lcores(const struct eal_args_conf *conf, struct eal_args *a, struct lb_err *reterr)
{
	cpu_set_t rest = conf->usable;
	char text[8192];
	for (uint32_t i = 0; i < conf->n_cores; i++) {
		int core = conf->cores[i];
		if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &conf->usable))
			return lb_err_set(reterr,
				"workers[%u]: %d is not a CPU that this process may use", i, core);
		if (!CPU_ISSET(core, &rest))
			return lb_err_set(reterr, "workers[%u]: %d has a worker already", i, core);
		CPU_CLR(core, &rest);
	}
	if (CPU_COUNT(&rest) == 0)
		rest = conf->usable;
	size_t at = 0;
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &rest))
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s%d", at ? "," : "0@(", core);
	at += (size_t)snprintf(text + at, sizeof(text) - at, ")");
	for (uint32_t i = 0; i < conf->n_cores; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, ",%u@%d",
			eal_lcore_of_worker(i), conf->cores[i]);
	int rc = add(a, "--lcores");
	return rc ? rc : add(a, text);
}

int eal_args_make(const struct eal_args_conf *conf, struct eal_args *ret, struct lb_err *reterr)
{
	*ret = (struct eal_args){0};
	int rc = check_devices(conf, reterr);
	if (rc == 0)
		rc = check_given(conf, reterr);
	if (rc == 0)
		rc = add(ret, "shuntd");
	if (rc == 0)
		rc = add_given(conf, ret, reterr);
	if (rc == 0)
		rc = add_implied(conf, ret);
	if (rc == 0)
		rc = add_lcores(conf, ret, reterr);
	if (rc == -E2BIG)
		return lb_err_set(
			reterr, "eal: too many, at most %d with those implied", EAL_ARGS_MAX - 1);
	if (rc == -ENOMEM)
		lb_err_set(reterr, "eal: out of memory");
	return rc;
}

void eal_args_fini(struct eal_args *a)
{
	for (int i = 0; i < a->n; i++)
		free(a->list[i]);
	*a = (struct eal_args){0};
}

static void print_quoted(FILE *f, const char *arg)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_=+:.,/@%";
	if (*arg && arg[strspn(arg, plain)] == '\0') {
		fputs(arg, f);
		return;
	}
	fputc('\'', f);
	for (; *arg; arg++)
		if (*arg == '\'')
			fputs("'\\''", f);
		else
			fputc(*arg, f);
	fputc('\'', f);
}

char *eal_args_print(const struct eal_args *a)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	for (int i = 1; i < a->n; i++) {
		if (i > 1)
			fputc(' ', f);
		print_quoted(f, a->list[i]);
	}
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}
