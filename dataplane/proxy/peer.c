// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/peer.h"

void proxy_peer_set(struct proxy_peer *p, const struct tlshs_result *r)
{
	static const enum lb_san_kind kinds[] = {
		[TLSHS_SAN_DNS] = LB_SAN_DNS,
		[TLSHS_SAN_URI] = LB_SAN_URI,
		[TLSHS_SAN_EMAIL] = LB_SAN_EMAIL,
		[TLSHS_SAN_IP] = LB_SAN_IP,
	};
	const struct tlshs_peer *c = &p->certificate;
	p->certificate = r->peer;
	p->own_uris = r->own_uris;
	for (uint32_t i = 0; i < c->n_sans; i++)
		p->sans[i] = (struct lb_san){kinds[c->sans[i].kind], tlshs_peer_san(c, i)};
}

void proxy_peer_tell(const struct proxy_peer *p, struct lb_peer_info *ret)
{
	ret->sans = p->sans;
	ret->n_sans = p->certificate.n_sans;
	ret->subject = tlshs_peer_subject(&p->certificate);
	ret->cut = p->certificate.cut;
}
