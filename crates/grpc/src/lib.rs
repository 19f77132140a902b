//! gRPC transport: Tollgate's own service, Envoy's rate limit service, health and reflection.
//!
//! Connections run directly on `h2`, because the connection loop determines the cost of a call. The two hot methods
//! (`Check`, `ShouldRateLimit`) usually complete in the connection's own task, without a spawned task, channel or box.
//! Caps and deadlines are set here too; a framework would hide them. All other methods go through the services that
//! tonic generates, over the same streams.
//!
//! | file | contents |
//! |---|---|
//! | `connection.rs` | the protocol, and the connection loop: accepts calls and starts them |
//! | `keep_alive.rs` | connection lifetime: pings, maximum age, idle and write timeouts, drain |
//! | `io_activity.rs` | stream wrapper that counts reads and detects blocked writes |
//! | `method.rs` | list of methods and their paths |
//! | `call.rs` | call head: method, token, deadline |
//! | `deadline.rs` | `grpc-timeout`, and futures that end with it |
//! | `message.rs` | length-prefixed message of a unary call |
//! | `fast_path.rs` | `Check` and `ShouldRateLimit`, without tonic |
//! | `via_tonic.rs` | all other methods, through tonic |
//! | `incoming.rs`, `outgoing.rs` | request and response bodies, with size and time limits |
//! | `convert.rs` | messages to requests, decisions and errors to messages and statuses |
//! | `decide.rs` | decides one check, synchronously if the store allows |
//! | `services.rs` | services and settings shared by a listener's connections |
//! | `tollgate_v1.rs`, `stream.rs`, `health.rs` | service implementations |
//! | `metrics.rs` | calls by method and status code |

mod call;
mod connection;
mod convert;
mod deadline;
mod decide;
mod fast_path;
mod health;
mod incoming;
mod io_activity;
mod keep_alive;
mod message;
mod method;
mod metrics;
mod outgoing;
mod services;
mod stream;
mod tollgate_v1;
mod via_tonic;

pub use self::connection::Grpc;
pub use self::method::GrpcMethod;
pub use self::metrics::GrpcMetrics;
pub use self::services::GrpcConfig;
