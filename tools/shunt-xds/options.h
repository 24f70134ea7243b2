// SPDX-License-Identifier: Apache-2.0
// The command line of shunt-xds.
// Thread: main.
#pragma once

#include "tools/shunt-xds/app.h"

// Reads the command line. Texts are borrowed from argv. Exits after --help and --version, and after
// naming what is wrong.
void options_read(int argc, char **argv, struct app_options *ret);
