// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/xds_note.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/xds/federation_fixture.h"

// Two servers of one URI, which differ in a feature.
#define BOOTSTRAP                                                                                  \
	"{'xds_servers':[" ADS(0) "],'node':{'id':'me'},'authorities':{'a':{'xds_servers':"        \
				  "[" ADS_FAILS_ON_DATA_ERRORS(0) "]},'b':{'xds_servers':[" ADS(   \
					  1) "]}}}"
#define C(authority, id) "xdstp://" authority "/toy.Cluster/" id

// OPS-10
static void ops_10_servers_of_one_uri_are_series_of_their_own(void **state)
{
	struct world w;
	struct ear x, a, b;
	world_init(&w, BOOTSTRAP);
	world_listen(&w, &toy_cluster, "x", &x);
	world_refuse(&w, 0); // the fixture has room for one stream to it
	world_listen(&w, &toy_cluster, C("a", "x"), &a);
	world_listen(&w, &toy_cluster, C("b", "x"), &b);
	struct xds_note *n = xds_note_new(w.federation);
	assert_non_null(n);
	assert_int_equal(n->n_servers, 3);
	assert_string_equal(n->servers[0].uri, "ads:0");
	assert_string_equal(n->servers[1].uri, "ads:0#2");
	assert_string_equal(n->servers[2].uri, "ads:1");
	xds_note_free(n);
	world_refuse(&w, 0);
	world_fini(&w);
}

RUN_SUITE("ctrl/metrics/xds_note",
	cmocka_unit_test(ops_10_servers_of_one_uri_are_series_of_their_own))
