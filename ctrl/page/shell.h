// SPDX-License-Identifier: Apache-2.0
// What stands around the content of the status page: page.html with page.css and page.js in it,
// joined while it is built (ctrl/page/join). Each is terminated.
// Thread: any.
#pragma once

extern const char page_before_title[]; // up to the content of <title>
extern const char page_before_main[]; // from there to <main>
extern const char page_after_main[];
// The Content-Security-Policy that this style and script need.
extern const char page_policy[];
