//! A load generator: open and closed loops, exact histograms, little CPU of its own.
//!
//! It speaks HTTP/1.1, RESP and gRPC. One thread drives all connections: a generator on several cores would measure its
//! own scheduling. A request is a template of fixed length whose key is patched in place, so that sending one costs
//! little more than a system call.
//!
//! - **Closed loop**: every connection keeps a fixed number of requests in flight; the server determines the rate.
//! - **Open loop**: requests fall due at a fixed rate, independent of the server. Latency counts from the moment a
//!   request was due, so the delays of a stalling server are measured in full (no coordinated omission).
//!
//! [`ramp`] offers more and more, step by step, and finds the rate up to which a server keeps up: its knee.
//!
//! ```no_run
//! use tollgate_load::{LoadPlan, LoadRequest, Target, run};
//!
//! let target = Target::parse("http://127.0.0.1:8080/v1/check")?;
//! let request = LoadRequest::post(target.path()).body(r#"{"client_key":"{key}","endpoint":"/api/orders"}"#);
//! let report = run(&target, &request, &LoadPlan::default(), &mut |second| drop(second.clone()))?;
//! assert_eq!(report.errors.total(), 0);
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
mod ramp;
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
pub use generator::{run, run_while};
pub use grpc::ProtobufMessage;
pub use plan::{LoadPace, LoadPlan, Popularity, WaitMode};
pub use ramp::{KneeCriteria, LimitProposal, RampEnd, RampPlan, RampReport, RampStep, StepVerdict, ramp};
pub use report::{Errors, LatencyHistogram, LoadReport, Second};
pub use request::LoadRequest;
pub use target::{Target, TargetAddress, TargetProtocol};
