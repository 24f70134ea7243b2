// SPDX-License-Identifier: Apache-2.0
// Policy nodes whose state the test says, and a visitor that writes what it is shown as text.
// Thread: the test's.
#pragma once

#include "lb/pick/picker.h"
#include "lb/policy/dump.h"
#include "lb/policy/node.h"

#define FAKE_MAX_MEMBERS 16

struct fake_node {
	struct lb_node base;
	struct fake_node *next;
	enum lb_policy_kind kind;
	char name[64]; // of its first locality
	uint32_t n_localities, n_members;
	struct lb_member *members[FAKE_MAX_MEMBERS];
	uint32_t weights[FAKE_MAX_MEMBERS];
	uint32_t n_updates, n_exit_idle;
	int last_error; // of publish
};

// Of all tests: what exists now, newest first.
extern struct fake_node *fake_nodes;
// What a node says from inside its first update; -1 = nothing.
extern int fake_first_state;
extern uint32_t fake_n_made; // since the program began
extern int fake_update_error; // of all updates, from now on

const struct lb_node_ops *fake_ops_of(enum lb_policy_kind);
struct fake_node *fake_find(const char *name); // by locality; NULL = none
uint32_t fake_count(void);
// Publishes; picks of the result answer with the state's outcome, and the name as text.
void fake_report(struct fake_node *, enum lb_state);
struct lb_picker *fake_picker_new(enum lb_state, const char *name); // NULL = out of memory

// As lines: "name STATE key=value …", two blanks deeper each.
struct fake_dump {
	struct lb_dump base;
	char text[8192];
	size_t len;
	int depth;
};
void fake_dump_init(struct fake_dump *);
