//! The API gateway: a reverse proxy that knows who is asking, decides, and forwards or refuses.
//!
//! A request's way is in `gateway`, top to bottom. It streams: a body is held as a whole only where the cost of the request
//! depends on it.
//!
//! | file | what |
//! |---|---|
//! | [`spec`] | the routes file |
//! | `canonical`, `routes` | one spelling of a path, and the route for it |
//! | `request_head` | the forwarded head, rebuilt |
//! | `upstream/` | servers: balancing, health, connections, bodies on their way |
//! | `cost/` | what requests cost: before they are decided, and when they end |
//! | `response`, `upgrade`, `tunnel_copy` | the way back, and tunnels |
//! | `fuzzing` | what must hold for any bytes |
//! | `explain` | what the routes make of a request, without sending it |
//! | `asked_request` | what rules see of a request |
//! | `queue_place` | the wait for a turn in the queue of a leaky bucket |
//! | `admitted_charge` | what was charged, and is given back if no server is asked |
//! | `uncounted`, `unpriced` | what routes charge and no rule counts; upgrades whose content costs nothing |
//! | `traceparent` | the trace that a request belongs to |
//! | `refusal`, `refusal_body`, `template`, `grpc_refusal` | responses of the gateway's own |
//! | `request_record`, `access_log` | what became of each request |
//! | `metrics`, `route_figures`, `duration_histogram` | what became of all of them |

mod access_log;
mod admitted_charge;
mod asked_request;
mod canonical;
mod cost;
mod duration_histogram;
mod explain;
mod fetch;
mod field_class;
pub mod fuzzing;
mod gateway;
mod grpc_refusal;
mod interim;
mod metrics;
mod queue_place;
mod refusal;
mod refusal_body;
mod request_head;
mod request_record;
mod response;
mod route_figures;
mod routes;
pub mod spec;
mod template;
mod traceparent;
mod tunnel_copy;
mod uncounted;
mod unpriced;
mod upgrade;
mod upstream;

pub use access_log::{AccessLogConfig, AccessLogFormat};
pub use explain::{RouteMatch, RoutedRequest};
pub use fetch::fetch;
pub use gateway::{Gateway, GatewayConfig};
pub use uncounted::{CountedMeters, UncountedCharge};
