//! A load generator: open and closed loops, exact histograms, little CPU of its own.
//!
//! It speaks HTTP/1.1, RESP and gRPC. One thread drives all connections: a generator that needs a second core measures
//! its own scheduling. A request is a template of fixed length whose key is patched in place, so that sending one costs a
//! system call and little else.
//!
//! - **Closed loop**: every connection keeps so many requests under way; the rate is whatever the server manages.
//! - **Open loop**: requests are due at a fixed rate, whatever the server does. Latency counts from the moment a request
//!   was due, so a server that stalls is charged for everything it kept waiting (no coordinated omission).
//!
//! ```no_run
//! use tollgate_load::{LoadPlan, LoadRequest, Target, run};
//!
//! let target = Target::parse("http://127.0.0.1:8080/v1/check")?;
//! let request = LoadRequest::post(target.path()).body(r#"{"client_key":"{key}","endpoint":"/api/orders"}"#);
//! let outcome = run(&target, &request, &LoadPlan::default(), &mut |second| drop(second.clone()))?;
//! assert_eq!(outcome.errors.total(), 0);
//! # Ok::<(), tollgate_load::LoadError>(())
//! ```

mod clock;
mod connection;
mod error;
mod generator;
mod grpc;
mod http;
mod keys;
mod lost;
mod plan;
mod protocol;
mod replies;
mod reply;
mod report;
mod request;
mod resp;
mod schedule;
mod socket;
mod tally;
mod target;
mod template;

pub use error::{ErrorKind, LoadError};
pub use generator::run;
pub use grpc::ProtobufMessage;
pub use plan::{LoadPace, LoadPlan, Popularity, WaitMode};
pub use report::{Errors, LatencyHistogram, LoadReport, Second};
pub use request::LoadRequest;
pub use target::{Target, TargetAddress, TargetProtocol};
