//! Routes whose upgraded connections cost too little, because their operators allow them.

use crate::spec::GatewaySpec;

/// Warns of routes that price what requests say, and let upgrades through because they say so.
pub(crate) fn warn_of_unpriced_upgrades(spec: &GatewaySpec) {
    for route in spec.routes.iter().filter(|route| route.upgrade && route.reads_requests()) {
        let name = &route.name;
        tracing::warn!(
            "the route {name} has `upgrade: true`: what passes behind an upgrade is not read, and costs nothing"
        );
    }
}
