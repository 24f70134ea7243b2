// SPDX-License-Identifier: Apache-2.0
#include "dataplane/gso.h"

#include "dataplane/interface.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int load_program(void)
{
	static const struct bpf_insn pass[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)pass,
		.insn_cnt = sizeof(pass) / sizeof(pass[0]),
		.license = (uintptr_t) "Apache-2.0",
		.prog_name = "shunt_pass",
		.expected_attach_type = BPF_XDP};
	return bpf(BPF_PROG_LOAD, &attr);
}

// A veth with an XDP program, whatever that does, takes no segments longer than a frame: the kernel
// takes TSO from the other end (veth_fix_features() of its veth driver). A link goes with its
// descriptor, so that nothing is left even by SIGKILL. Returns 0 or -errno.
static int hold_peer(struct gso *g, unsigned if_index)
{
	g->program = load_program();
	if (g->program < 0)
		return -errno;
	union bpf_attr attr = {.link_create = {.prog_fd = (uint32_t)g->program,
				       .target_ifindex = if_index,
				       .attach_type = BPF_XDP}};
	g->link = bpf(BPF_LINK_CREATE, &attr);
	if (g->link < 0) {
		int rc = -errno;
		close(g->program);
		return rc;
	}
	g->holds = true;
	return 0;
}

#define REMEDY "where they are sent: ethtool -K IF tso off gso off"

bool gso_refuse(struct gso *g, unsigned if_index, char *said, size_t size)
{
	const char *merged = interface_refuse_merging(if_index) ? "gro and lro switched off" : "";
	if (g->holds || !interface_is_veth(if_index)) {
		snprintf(said, size, "%s", *merged ? merged : REMEDY);
		return *merged;
	}
	int rc = hold_peer(g, if_index);
	if (rc == 0)
		snprintf(said, size, "%s%stso taken from the veth's peer", merged,
			*merged ? ", " : "");
	else
		snprintf(said, size, "the veth's peer cannot be told to split (%s); %s",
			strerror(-rc), REMEDY);
	return rc == 0;
}

void gso_release(struct gso *g)
{
	if (g->holds) {
		close(g->link);
		close(g->program);
	}
	*g = (struct gso){0};
}
