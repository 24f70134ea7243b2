// SPDX-License-Identifier: Apache-2.0
// `shuntctl top`: what the daemon does, once a second, on the whole terminal.
// Thread: main.
#pragma once

// Until q or Ctrl-C. Returns the exit status: 2 = there is no terminal to draw on.
int top_run(const char *socket);
