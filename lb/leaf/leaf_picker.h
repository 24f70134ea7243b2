// SPDX-License-Identifier: Apache-2.0
// A leaf's picker: what its priorities picked with, and the layer above.
// Thread: ctrl; picks on workers.
#pragma once

struct lb_leaf_layer;
struct lb_picker;

// Takes references of its own of all that the layer names; its name is copied. NULL = no memory.
struct lb_picker *lb_leaf_picker_new(const struct lb_leaf_layer *);
