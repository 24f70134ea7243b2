// SPDX-License-Identifier: Apache-2.0
// Counters of one worker's proxy, in addition to those in lb/pick/link.h that the control thread
// reads.
// Thread: written by the owning worker, read by any.
#pragma once

// clang-format off
#define PROXY_COUNTERS(X)                                                                          \
	X(clients_refused) /* no room for another client connection */                             \
	X(clients_unmatched) /* of a frontend whose filter chains are for others */                \
	X(vips_refused) /* addresses of Listeners at which the worker can't listen */              \
	X(clients_over_share) /* likewise, of a source that has its share of connections */        \
	X(clients_over_budget) /* likewise, of one that has spent one of its budgets */            \
	X(clients_idled) /* sent away: without an open stream for too long */                      \
	X(clients_aged) /* sent away: connected for limits.max_connection_age_s */                 \
	X(clients_killed) /* ended by an operator */                                               \
	X(clients_evicted) /* idle, and closed to make room for a newcomer */                      \
	X(inputs_put_off) /* what clients sent, until its source's next part of a turn */          \
	X(clients_silent) /* sent no SETTINGS in time */                                           \
	X(clients_in_header) /* did not finish a header block in time */                           \
	/* PROXY headers of clients, and connections without a good one that were aborted: */      \
	X(headers_taken)                                                                           \
	X(headers_untrusted) /* their other end is not in `allow` */                               \
	X(headers_missing) /* they begin otherwise, or end before */                               \
	X(headers_malformed)                                                                       \
	X(headers_too_long)                                                                        \
	X(headers_bad_tlvs) /* where TLVs are kept, what should be them is none */                 \
	X(headers_late)                                                                            \
	X(hellos_too_large) /* a client's first message, upon which its chain depends */           \
	X(hellos_malformed) /* no good one, where the Listener demands one */                      \
	X(clients_drained) /* their listener was replaced, or their frontend left */               \
	/* Connections that we ended, and that clients or backends did not end in return: */       \
	X(ends_unanswered) /* let go: they had taken all, and were silent for a second */          \
	X(ends_untaken) /* reset: they did not take what had been said before the end */           \
	X(clients_stalled) /* did not take a byte of output in time */                             \
	X(streams_stalled) /* got no window from the client in time */                             \
	/* Kept most of the worker's chunks when they ran short: */                               \
	X(streams_cut_for_memory)                                                                  \
	X(clients_cut_for_memory)                                                                  \
	/* More than limits.client_buffer_kib was kept for a client that took too little: */       \
	X(streams_cut_for_buffer)                                                                  \
	X(clients_cut_for_buffer)                                                                  \
	X(answers_over_buffer) /* ended, as their fields would have added to it */                 \
	X(requests_over_buffer) /* refused: so much of the client's requests waits for backends */ \
	/* Ended, as their clients sent, or took, too little: */                                   \
	X(bodies_too_slow) /* for 30 s, while half of a breaker was taken */                       \
	X(bodies_gave_way) /* and their places went to others */                                   \
	X(answers_gave_way) /* likewise: their clients took too little of them */                  \
	X(local_replies) /* local replies */                                                       \
	X(transparent_retries) /* the backend surely did nothing with the request */               \
	X(transparent_retries_exhausted) /* likewise, not retried: it was the last attempt */      \
	X(unconnected_retries) /* never sent: its client's own connection was not to be had */     \
	X(idempotent_retries) /* lost with its connection, and safe to repeat */                   \
	X(retries) /* by the route's policy */                                                     \
	/* Retries that the policy wanted and that were not made: */                               \
	X(retries_exhausted) /* it was the last attempt */                                         \
	X(retries_forbidden) /* the backend forbade it */                                          \
	X(retries_abandoned) /* too much of the request's body was already sent */                 \
	X(retries_overflow) /* too many requests are waiting */                                    \
	X(retries_over_budget) /* of the cluster (CB-07) */                                        \
	/* Deadlines that passed, by what the request did then: */                                 \
	X(deadlines_paused) /* waiting for a delay or a backoff */                                 \
	X(deadlines_queued) /* waiting for a backend */                                            \
	X(deadlines_sent) /* waiting for the backend's answer */                                   \
	X(deadlines_answered) /* being answered */                                                 \
	X(fault_delays)                                                                            \
	X(fault_aborts)                                                                            \
	X(faults_over_limit) /* drawn but not made: too many requests are under a fault */         \
	X(rbac_allowed) /* requests that a filter let through */                                  \
	X(rbac_denied)                                                                             \
	X(rbac_logged) /* that a policy matched whose action is LOG */                             \
	X(rbac_shadow_allowed) /* that shadow rules would have let through */                      \
	X(rbac_shadow_denied)                                                                      \
	X(sessions_kept) /* attempts that went where the client's cookie said */                   \
	X(sessions_set) /* attempts whose answer sets a cookie */                                  \
	X(queued_for_pick) /* requests that waited for a picker to choose */                       \
	X(queued_for_stream) /* requests that waited for a stream of a chosen backend */           \
	X(queue_overflows)                                                                         \
	X(connects) /* attempts to connect to backends */                                          \
	X(connect_failures)                                                                        \
	/* Connections through HTTP proxies, and why others were not opened (no_memory aside): */  \
	X(through_opened)                                                                          \
	X(through_unreachable) /* the proxy took no connection */                                  \
	X(through_refused) /* it answered with a status that is not 2xx */                         \
	X(through_malformed)                                                                       \
	X(through_too_long)                                                                        \
	X(through_closed) /* it ended the connection */                                            \
	X(through_late) /* it did not answer */                                                    \
	/* Connections that begin with a PROXY header, and those that single clients have: */      \
	X(headers_sent)                                                                            \
	X(client_backends_evicted) /* idle, and closed to make room for others */                  \
	X(client_backends_refused) /* requests: no place was left for their client's */            \
	X(client_backends_over_share) /* likewise, of a source that has its share of places */     \
	X(upstream_goaways)                                                                        \
	X(upstreams_idled) /* spare connections closed */                                          \
	X(refused_early_ends) /* requests of sources that ended too many of theirs early */        \
	X(upstreams_killed) /* ended by an operator */                                             \
	X(upstreams_retired_resets) /* before their backends close them for too many resets */    \
	X(upstreams_unanswered) /* retired: TCP had no answer for six seconds or more */           \
	X(windows_grown) /* of HTTP/2: doubled, as half of one was used in a round trip */         \
	X(tickets_dropped) /* of TLS: backends' that found no room on the way to their thread */   \
	X(pings_unanswered) /* connections cut: no answer to PING, nor anything else */            \
	X(events_delayed) /* the ring to the control thread was full */                            \
	X(reports_bad) /* load reports of backends that cannot be parsed */                        \
	X(metrics_lost) /* values for load reports: too many, or a name too long */                \
	/* Gauges, as of the end of the last turn. */                                              \
	X(requests)                                                                                \
	X(requests_waiting) /* for a backend */                                                    \
	X(requests_paused) /* for a delay or a backoff */                                          \
	X(clients)                                                                                 \
	X(upstreams)                                                                               \
	/* Of breakers, kept for requests to come (lb/pick/quota_cache.h). */                      \
	X(spare_places)
// clang-format on

#define X(name) PROXY_##name,
enum proxy_counter { PROXY_COUNTERS(X) PROXY_N_COUNTERS };
#undef X
